"""What is mutated, what is passed over and why, and where the tests are. After a move of files, change this one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutant, mutants_of

__all__ = ["OURS", "PassedOver", "Project", "Room"]


@dataclass(frozen=True)
class Room:
    """A folder or file of the package, and the folders of the tests that are about it; these are run first."""

    source: str
    tests: tuple[str, ...]

    def has(self, file: str) -> bool:
        """Whether a file is part of it."""
        return f"{file}/".startswith(f"{self.source}/")


@dataclass(frozen=True)
class PassedOver:
    """Mutants that are not made: by some operators, where `line` and `function` are found in the names of both."""

    operators: tuple[str, ...]
    line: str
    reason: str
    function: str = ""


@dataclass(frozen=True)
class Project:
    """A tree of sources and tests.

    Attributes
    ----------
    top : Path
    package : str
        What tests import.
    rooms : dict of str to Room
    tests : str
        Folder of all tests.
    tests_left_out : tuple of str
        Folders of tests that are never run.
    servers : tuple of str
        Fixtures that start a server: a test with one is run against a mutant that all others let live.
    libraries : tuple of str
        What tests import beside the package, and is imported once for all mutants.
    passed_over : tuple of PassedOver
    known : Path
        File that names survivors.
    grace_seconds : float
        How much longer than three times as long as usual a test may take.
    """

    top: Path
    package: str
    rooms: dict[str, Room]
    tests: str
    tests_left_out: tuple[str, ...]
    servers: tuple[str, ...]
    libraries: tuple[str, ...]
    passed_over: tuple[PassedOver, ...]
    known: Path
    grace_seconds: float = 5.0

    @property
    def kept(self) -> Path:
        """Folder of what one run leaves to the next."""
        return self.top / ".mutation"

    def source(self, file: str) -> str:
        """Text of a file, which may be gone."""
        path = self.top / file
        return path.read_text() if path.exists() else ""

    def candidates(self, room: Room) -> list[Mutant]:
        """Every mutant of a room, in the order of its files.

        Raises
        ------
        FileNotFoundError
            If there is no such room.
        """
        whole = self.top / room.source
        if not whole.exists():
            raise FileNotFoundError(f"a room must be where project.py says; {room.source} is not")
        found = []
        for path in [whole] if whole.is_file() else sorted(whole.rglob("*.py")):
            file = path.relative_to(self.top).as_posix()
            found += [
                mutant for mutant in mutants_of(path.read_text(), file) if not self._passes_over(mutant)
            ]
        return found

    def _passes_over(self, mutant: Mutant) -> bool:
        return any(
            mutant.operator in entry.operators
            and re.search(entry.line, mutant.line)
            and re.search(entry.function, mutant.function)
            for entry in self.passed_over
        )

    def files_of_tests(self) -> list[str]:
        """Those whose tests may be run."""
        left_out = tuple(f"{folder}/" for folder in self.tests_left_out)
        files = [path.relative_to(self.top).as_posix() for path in (self.top / self.tests).rglob("test_*.py")]
        return sorted(file for file in files if not file.startswith(left_out))


_HERE = Path(__file__).resolve()

OURS = Project(
    top=_HERE.parents[2],
    package="reusable_holdout",
    rooms={
        "noise": Room("reusable_holdout/noise", ("tests/noise", "tests/mechanisms")),
        "mechanisms": Room("reusable_holdout/mechanisms", ("tests/mechanisms", "tests/incorrect")),
        "accounting": Room("reusable_holdout/mechanisms/accounting", ("tests/mechanisms/accounting",)),
        "certainty": Room("reusable_holdout/certainty", ("tests/certainty",)),
        "rules": Room("reusable_holdout/rules", ("tests/certainty", "tests/guard")),
        "ways": Room("reusable_holdout/ways", ("tests/guard", "tests/certainty")),
        "plan": Room("reusable_holdout/plan", ("tests/plan",)),
        "metrics": Room("reusable_holdout/metrics", ("tests/metrics",)),
        "ledger": Room("reusable_holdout/ledger", ("tests/ledger",)),
        "guard": Room("reusable_holdout/guard", ("tests/guard",)),
    },
    tests="tests",
    # Slow, and about something else: they look at the core through its public names.
    tests_left_out=("tests/integrations", "tests/examples", "tests/demo", "tests/mutation"),
    servers=("postgresql_server", "server_url"),
    libraries=(
        "numpy",
        "scipy.stats",
        "scipy.optimize",
        "pandas",
        "sqlalchemy",
        "sklearn.model_selection",
        "hypothesis",
    ),
    passed_over=(
        PassedOver(
            ("number",),
            r"^_?(BLOCK|FEW|LEAF|THREADS|PROPOSALS|CHUNK|CHUNK_ROWS|SCANNED|BRACKET|PAUSE_SECONDS|TAIL|RISE) = ",
            "how fast an answer comes, not which",
        ),
        PassedOver(
            ("number",),
            r"^_?(BINS|HELD_BINS|NODES|BENDS|PANELS|CELLS|BISECTIONS|HALVINGS|LONGEST_FRACTION) = ",
            "effort of a numerical method, above what its tolerance needs",
        ),
        PassedOver(
            ("boundary",),
            r"\b_DOUBT\b",
            "what floating point leaves open: at exactly its limit both ways decide right, and one of them exactly",
        ),
        PassedOver(
            ("number",),
            r"^size = 1 << ",
            "length of an array, above what is needed; what is needed is mutated all the same",
        ),
        PassedOver(
            ("number",),
            r"^_LENGTHS_OF_FRACTIONS = ",
            "terms of a fraction that are summed before those that have settled are left out",
        ),
        PassedOver(
            ("number",),
            r"^_?(MOST_(NATS|POINTS|ROUNDS)|FARTHEST|PATIENCE_SECONDS) = |\"maxiter\": ",
            "when to give up: a limit somewhat further out is as good",
        ),
        PassedOver(
            ("number",),
            r"^_?(DOUBT|EPS|[A-Z_]*ROUND(ING|_UP|_DOWN)|PRECISION|[A-Z_]*SLACK|OUTWARDS|NEVER|REACH|FAR) = ",
            "allowance for rounding, several times what is needed; its direction is mutated all the same",
        ),
        PassedOver(
            ("number",),
            r"^(precision|digits) \*?= (?!0$)|^return _series\(",
            "how many digits are computed, at first and then, until what they say is certified",
        ),
        PassedOver(
            ("number",),
            r"^_(STIRLING|TAIL)_FROM = |^h = ",
            "where one formula takes over from another that is as exact, and the step of a difference quotient",
        ),
        PassedOver(
            ("number", "boundary"),
            r"\b_(SMALL_SHIFT|STIRLING_FROM)\b",
            "where one formula takes over from another that is as exact: both are compared with sixty digits",
        ),
        PassedOver(
            ("number",),
            r"^(low -|high \+)= 1\.0$",
            "by how much a bracket grows until it holds the root, which is the same in any",
        ),
        PassedOver(
            ("dropped",),
            r"^step \+= step$",
            "by how much a bracket grows until it holds the root: one that grows by as much each time does, later",
        ),
        PassedOver(
            ("boundary",),
            r"\bLARGEST_EXPONENT\b",
            "exp is finite at this very number: there the branches on both sides of it are as good",
        ),
        PassedOver(
            ("boundary",),
            r"^settled = abs\(delta\) <= EPS \* total$",
            "whether a last term of exactly a float's rounding is followed by one that is smaller still",
        ),
        PassedOver(
            ("boundary",),
            r"^if (low <|abs\(log_each\) >) _FARTHEST:$",
            "when to give up: at the limit or just beyond it",
        ),
        PassedOver(
            ("boundary",),
            r"^while excess\((low|high)\) (<=|>) 0:$",
            "whether a bracket whose end is exactly the root grows once more",
        ),
        PassedOver(
            ("boundary",),
            r"^while excess\(root\) > 0:$",
            "whether a root that costs exactly what is allowed moves by its tolerance once more: both keep the promise",
        ),
        PassedOver(
            ("number", "boundary"),
            r"^if epsilon < 1 and rate > 1e-300:$",
            "from 1 to 2 both formulas are as exact, and at 1e-300 neither overflows; what is farther off is tested",
            function=r"^epsilon_of_the_sample$",
        ),
        PassedOver(
            ("number",),
            r"^for _ in range\(\d\d+\):",
            "rounds of a method that has converged long before the last, or gives up after it",
        ),
        PassedOver(
            ("number", "arithmetic", "sign", "function", "and/or", "side"),
            r"^start = ",
            "where a search starts, not where it ends",
            function=r"^(_near_(log_odds|failures)|solve_chernoff_reach|_start)$",
        ),
        PassedOver(
            ("number", "arithmetic", "sign", "function", "and/or", "side"),
            "",
            "where a bracket begins to grow, not where it ends",
            function=r"^_start$",
        ),
        PassedOver(
            ("number",),
            "",
            "constants of a start for Newton's method, which ends at the same root from anywhere",
            function=r"^(_near_(log_odds|failures)|_saddlepoint_exponent|_score_log_odds)$",
        ),
        PassedOver(
            ("arithmetic",),
            r"^(return f\.least\(f\.most\(moved,|p = v \* v)",
            "a start of a start, and its limits; how many looks the others save is tested",
            function=r"^(_near_failures|_score_log_odds)$",
        ),
        PassedOver(
            ("number",),
            r"\bEPS\b|^return 2e-15 \* ",
            "allowance for rounding, which a larger number makes larger; its direction is mutated all the same",
        ),
    ),
    known=_HERE.with_name("survivors.toml"),
)
