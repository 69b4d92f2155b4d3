"""The trial of a mutant: which tests are run against it, how long, and whether a trial before still counts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from mutation.operators import Mutant, apply
from mutation.project import Project, Room
from mutation.reach import Test
from mutation.tree import digest
from mutation.workers import Worker

__all__ = ["Result", "Results", "try_mutant", "turns"]

_SECONDS = 60.0  # of tests for one mutant
_NEAR = (2.0, 8.0, 35.0)  # of them, in each turn for those of its own room
_FIRST_FAR = 5.0  # in the first turn for others
_WITH_SERVER = 45.0  # beside the others
_COLLECTING = 0.2  # to read a file of tests


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant.

    Attributes
    ----------
    name : str
        Of the mutant.
    outcome : {"killed", "timed out", "survived"}
    by, why : str
        The test that told it from the original, and the first line of what that test said.
    ran : int
        Tests that were begun.
    files : list of str
        The files these tests stand in; of a mutant that was killed, that of the one test.
    digest : str
        Of the mutated source and those files: while it stays the same, so does the result.
    """

    name: str
    outcome: str
    by: str
    why: str
    ran: int
    files: list[str]
    digest: str


def turns(mutant: Mutant, room: Room, callers: Iterable[Test]) -> list[list[Test]]:
    """Tests to run against a mutant, in turns that grow: those about its room, then others, each the fastest first.

    A turn is a process, which reads the files of its tests only; those of one file stay together, for they share
    fixtures. Those that need a server come last.
    """
    every = sorted(callers, key=lambda test: (test.seconds, test.name))
    found = [test for test in every if not test.server]
    folders = tuple(f"{folder}/" for folder in room.tests)
    near = [test for test in found if test.file.startswith(folders) or test.file == mutant.file]
    far = [test for test in found if test not in set(near)]
    first, spent = _in_turns(near, _NEAR)
    second, _ = _in_turns(far, (_FIRST_FAR, _SECONDS - _FIRST_FAR - spent))
    third, _ = _in_turns([test for test in every if test.server], (_WITH_SERVER,))
    return first + second + third or [every[:1]]


def _in_turns(tests: list[Test], limits: Iterable[float]) -> tuple[list[list[Test]], float]:
    """Turns of at most so many seconds each, without those for which nothing is left; and what all take."""
    chosen, spent = [], 0.0
    for limit in limits:
        turn, seconds = _within(tests, limit)
        if turn:
            chosen.append(turn)
            spent += seconds
            tests = [test for test in tests if test not in set(turn)]
    return chosen, spent


def _within(tests: list[Test], seconds: float) -> tuple[list[Test], float]:
    """As many of the first tests as there is time for, file by file."""
    by_file: dict[str, list[Test]] = {}
    spent = 0.0
    for test in tests:
        cost = test.seconds + (0.0 if test.file in by_file else test.shared + _COLLECTING)
        if spent + cost <= seconds:
            by_file.setdefault(test.file, []).append(test)
            spent += cost
    return [test for found in by_file.values() for test in found], spent


def try_mutant(worker: Worker, mutant: Mutant, planned: list[list[Test]], project: Project) -> Result:
    """Run the tests until one fails that the original passes when it is run alone."""
    source = project.source(mutant.file)
    mutated = apply(mutant, source)
    job = {"kind": "try", "file": mutant.file, "of": digest(source)}
    ran = 0
    answer: dict[str, Any] = {"outcome": "survived", "by": "", "why": ""}
    for tests in filter(None, planned):
        left = [test for test in tests if test.name not in worker.doubted]
        while left:
            answer = worker.ask(job | {"source": mutated, "tests": _limits(left, project)})
            ran += answer["ran"]
            if answer["outcome"] == "survived":
                if not answer["ran"]:
                    raise RuntimeError(f"tests must be found again; none of {_limits(left, project)} was")
                break
            killer = next((test for test in left if test.name == answer["by"]), left[0])
            if _passes_alone(worker, killer, job | {"source": source}, project):
                break
            left = left[left.index(killer) + 1 :]
            answer = {"outcome": "survived", "by": "", "why": ""}
        if answer["outcome"] != "survived":
            break
    files = sorted({test.file for tests in planned for test in tests})
    if answer["by"].split("::")[0] in files:
        files = [answer["by"].split("::")[0]]
    key = _digest(mutated, files, project)
    return Result(mutant.name, answer["outcome"], answer["by"], answer["why"], ran, files, key)


def _limits(tests: list[Test], project: Project) -> list[tuple[str, float]]:
    return [(test.name, project.grace_seconds + 3.0 * (test.seconds + test.shared)) for test in tests]


def _passes_alone(worker: Worker, test: Test, job: dict[str, Any], project: Project) -> bool:
    """Whether the original passes a test, in time; what it needs may have been ready when it was timed among others."""
    if test.name not in worker.passed | worker.doubted:
        answer = worker.ask(job | {"tests": _limits([test], project)})
        (worker.passed if answer["outcome"] == "survived" else worker.doubted).add(test.name)
    return test.name in worker.passed


def _digest(mutated: str, files: list[str], project: Project) -> str:
    return digest(mutated, *map(project.source, files))


class Results:
    """Results so far, a line of JSON each; a run that was interrupted goes on from them."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._path = path = project.kept / "results.jsonl"
        self._found: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                with contextlib.suppress(json.JSONDecodeError):  # the run was stopped while it wrote
                    result = Result(**json.loads(line))
                    self._found[result.name] = result

    def add(self, result: Result) -> None:
        """Keep it."""
        self._found[result.name] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def still_valid(self, mutant: Mutant, planned: list[list[Test]]) -> Result | None:
        """Result of the same mutant of the same source, if its tests are the same; None if there is none."""
        result = self._found.get(mutant.name)
        mutated = apply(mutant, self._project.source(mutant.file))
        if result is None or result.digest != _digest(mutated, result.files, self._project):
            return None
        files = {test.file for tests in planned for test in tests}
        if result.outcome == "survived" and not files <= set(result.files):
            return None  # a test that was added may kill it
        return result
