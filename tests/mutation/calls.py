"""Which tests call which functions, found by running every test once on sources that take note of their calls.

It is kept under ``.mutation/calls``, a file for each file of tests, and is made again only for those whose own text, or
a source whose functions they call, has changed.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutation.tree import digest, functions_of, watched
from mutation.workers import in_parallel, workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mutation.operators import Mutant
    from mutation.project import Project
    from mutation.workers import Worker

__all__ = ["Calls", "Test", "calls_of_tests"]

_PATIENCE_SECONDS = 1800.0  # for all tests of a file


@dataclass(frozen=True, slots=True)
class Test:
    """A test, with the seconds it takes, those of the fixtures it shares, and whether it needs a server."""

    name: str
    seconds: float
    shared: float
    server: bool

    @property
    def file(self) -> str:
        """File it stands in."""
        return self.name.split("::")[0]

    __test__ = False  # for pytest


@dataclass
class Calls:
    """Tests by the functions they call, as ``file:qualified name``."""

    tests_of: dict[str, set[Test]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def add(self, unit: dict[str, Any]) -> None:
        """Take in what was found for a file of tests; tests that fail on the original kill nothing."""
        servers = set(unit["servers"])
        shared: dict[str, float] = {}  # by file; those of a session have none
        for setup in unit["shared"]:
            file = setup["of"].split("::")[0]
            shared[file] = shared.get(file, 0.0) + setup["shared"]
        tests = {}
        for test in unit["tests"]:
            name = test["test"]
            if test["outcome"] == "passed":
                setups = shared.get(name.split("::")[0], 0.0) + shared.get("", 0.0)
                tests[name] = Test(name, test["seconds"], setups, name in servers)
            elif test["outcome"] == "failed":
                self.failed.append(name)
        for name, function in unit["calls"]:
            callers = {tests[name]} if name in tests else set() if name else set(tests.values())
            self.tests_of.setdefault(function, set()).update(callers)

    def callers(self, mutant: Mutant, source: str) -> set[Test]:
        """Tests that may tell a mutant from the original.

        Of what stands in no function, those that call any function of its class, else of its file.
        """
        functions = {name for name, _ in functions_of(source)}
        name = mutant.function
        if name in functions:
            return self.tests_of.get(f"{mutant.file}:{name}", set())
        inside = [function for function in functions if function.startswith(f"{name}.")] if name else []
        return self._of_any(mutant.file, inside) or self._of_any(mutant.file, functions)

    def _of_any(self, file: str, functions: Iterable[str]) -> set[Test]:
        return set().union(*(self.tests_of.get(f"{file}:{function}", ()) for function in functions))


def calls_of_tests(project: Project, *, count: int, say: Callable[[str], None]) -> Calls:
    """Make what is missing with so many workers, and read the rest."""
    kept = _Kept(project)
    found = {name: kept.read(name) for name in kept.units}
    missing = [name for name, unit in found.items() if unit is None]
    if missing:
        say(f"finding out which functions the tests of {len(missing)} of {len(found)} files call ...")
        with workers(project, count, change=watched) as started:

            def work(worker: Worker, name: str) -> dict[str, Any]:
                job = {"files": kept.units[name], "package": project.package, "servers": project.servers}
                return worker.ask({"kind": "watch", "seconds": _PATIENCE_SECONDS} | job)

            for done, (name, unit) in enumerate(in_parallel(started, work, missing), 1):
                found[name] = unit
                kept.write(name, unit)
                say(f"{done} of {len(missing)}: {name}, {len(unit['tests'])} tests")
    calls = Calls()
    for unit in filter(None, found.values()):
        calls.add(unit)
    return calls


class _Kept:
    """Files of tests that are run together, each for itself or the doctests of a folder, and what was found then."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folder = project.kept / "calls"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._helpers = _digest_of_helpers(project)
        self.units = {file: [file] for file in project.files_of_tests()}
        for path in sorted((project.top / project.package).rglob("*.py")):
            if ">>> " in path.read_text():
                file = path.relative_to(project.top)
                self.units.setdefault(f"doctests of {file.parent.as_posix()}", []).append(file.as_posix())

    def read(self, name: str) -> dict[str, Any] | None:
        """What was found; None if that was never, or with other texts."""
        place = self._folder / f"{digest(name)}.json"
        if not place.exists():
            return None
        found: dict[str, Any] = json.loads(place.read_text())
        return found if found["needs"] == self._needs(name, found) else None

    def write(self, name: str, unit: dict[str, Any]) -> None:
        """Keep what was found."""
        content = unit | {"name": name, "needs": self._needs(name, unit)}
        (self._folder / f"{digest(name)}.json").write_text(json.dumps(content))

    def _needs(self, name: str, unit: dict[str, Any]) -> str:
        called = sorted({function.split(":")[0] for _, function in unit["calls"]})
        texts = [self._project.source(file) for file in [*self.units[name], *called]]
        return digest(self._helpers, *self.units[name], *texts)


def _digest_of_helpers(project: Project) -> str:
    """Of all that tests import and that is no test: conftests, contracts, settings."""
    files = sorted((project.top / project.tests).rglob("*.py"))
    texts = [
        path.read_text()
        for path in files
        if not path.name.startswith("test_") and path.parent.name != "mutation"
    ]
    settings = tomllib.loads(project.source("pyproject.toml")).get("tool", {}).get("pytest", {})
    return digest(json.dumps(settings), *texts)
