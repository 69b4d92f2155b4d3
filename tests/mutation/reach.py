"""Which tests reach which blocks of code, found by running every test once on sources that take note of it.

It is kept under ``.mutation/reached``, a file for each file of tests, and is made again only for those whose own text,
or a source that they reach, has changed.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation.operators import Mutant
from mutation.project import Project
from mutation.tree import Block, blocks_of, digest, watched
from mutation.workers import Worker, in_parallel, workers

__all__ = ["Reach", "Test", "reach_of_tests"]

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
class Reach:
    """Tests by the blocks they reach, as ``file:block``, and by the functions of these and their versions."""

    tests_of: dict[str, set[Test]] = field(default_factory=dict)
    callers: dict[str, dict[str, set[Test]]] = field(default_factory=dict)
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
        for name, blocks in unit["reached"].items():
            those = {tests[name]} if name in tests else set() if name else set(tests.values())
            for block in blocks:
                self.tests_of.setdefault(block, set()).update(those)
                function, _, rest = block.rpartition("@")
                versions = self.callers.setdefault(function, {})
                versions.setdefault(rest.partition("#")[0], set()).update(those)

    def tests(self, mutant: Mutant, source: str) -> set[Test]:
        """Tests that may tell a mutant from the original: those that reach the block in which it lies.

        Of a default, and as far as the function has changed since they were watched, those that call the function; of
        what stands in no function, those that call any function of its class, else of its file.
        """
        line = source.encode()[: mutant.start].count(b"\n") + 1
        every = blocks_of(source)
        own = [block for block in every if block.function == mutant.function]
        inside = [block for block in own if block.first <= line <= block.last]
        if inside:
            innermost = max(inside, key=lambda block: block.first)
            known = {block.version for block in own}
            versions = self.callers.get(f"{mutant.file}:{mutant.function}", {})
            changed = (tests for version, tests in versions.items() if version not in known)
            return self.tests_of.get(f"{mutant.file}:{innermost.name}", set()).union(*changed)
        if own:
            return self._callers(mutant.file, own)
        of_class = [block for block in every if block.function.startswith(f"{mutant.function}.")]
        return self._callers(mutant.file, of_class) or self._callers(mutant.file, every)

    def _callers(self, file: str, blocks: Iterable[Block]) -> set[Test]:
        versions = (self.callers.get(f"{file}:{block.function}", {}) for block in blocks)
        return set().union(*(tests for found in versions for tests in found.values()))


def reach_of_tests(
    project: Project, *, count: int, say: Callable[[str], None], trusting: bool = False
) -> Reach:
    """Make what is missing with so many workers, and read the rest; see :class:`_Kept` for `trusting`."""
    kept = _Kept(project, trusting=trusting)
    found = {name: kept.read(name) for name in kept.units}
    missing = kept.longest_first([name for name, unit in found.items() if unit is None])
    if missing:
        say(f"finding out what the tests of {len(missing)} of {len(found)} files reach ...")
        with workers(project, min(count, len(missing)), change=watched) as started:

            def work(worker: Worker, name: str) -> dict[str, Any]:
                job = {"files": kept.units[name], "package": project.package, "servers": project.servers}
                return worker.ask({"kind": "watch", "seconds": _PATIENCE_SECONDS} | job)

            for done, (name, unit) in enumerate(in_parallel(started, work, missing), 1):
                found[name] = unit
                kept.write(name, unit)
                seconds = sum(test["seconds"] for test in unit["tests"])
                say(f"{done} of {len(missing)}: {name}, {len(unit['tests'])} tests, {seconds:.0f} s")
    reach = Reach()
    for unit in filter(None, found.values()):
        reach.add(unit)
    return reach


class _Kept:
    """Files of tests that are run together, each for itself or the doctests of a folder, and what was found then.

    One that is `trusting` believes what was found with the same tests, though the sources have changed since. A test
    that reaches a mutant only now is then not tried, which can let the mutant survive, never kill it.
    """

    def __init__(self, project: Project, *, trusting: bool) -> None:
        self._trusting = trusting
        self._folder = project.kept / "reached"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._helpers = _digest_of_helpers(project)
        texts = [*project.files_of_tests(), *_sources(project)]
        self._digests = {file: digest(project.source(file)) for file in texts}  # of now: the tree may change
        self.units = {file: [file] for file in project.files_of_tests()}
        for file in _sources(project):
            if ">>> " in project.source(file):
                self.units.setdefault(f"doctests of {Path(file).parent.as_posix()}", []).append(file)

    def read(self, name: str) -> dict[str, Any] | None:
        """What was found; None if that was never, or with other texts."""
        found = self._last(name)
        if found is None or found["own"] != self._own(name):
            return None
        if not self._trusting and found["sources"] != self._sources(found["blocks"]):
            return None
        blocks = found["blocks"]
        found["reached"] = {
            test: [blocks[number] for number in numbers] for test, numbers in found["reached"].items()
        }
        return found

    def write(self, name: str, unit: dict[str, Any]) -> None:
        """Keep what was found; the name of each block once."""
        blocks = sorted(set().union(*unit["reached"].values()))
        number = {block: place for place, block in enumerate(blocks)}
        reached = {test: [number[block] for block in found] for test, found in unit["reached"].items()}
        digests = {"own": self._own(name), "sources": self._sources(blocks)}
        content = unit | {"name": name, "blocks": blocks, "reached": reached} | digests
        place = self._place(name)
        place.with_suffix(".new").write_text(json.dumps(content))
        place.with_suffix(".new").replace(place)

    def longest_first(self, names: list[str]) -> list[str]:
        """In the order of how long they took the last time, so that no worker ends long after the others."""

        def seconds(name: str) -> float:
            found = self._last(name)
            return sum(test["seconds"] for test in found["tests"]) if found else math.inf

        return sorted(names, key=lambda name: -seconds(name))

    def _last(self, name: str) -> dict[str, Any] | None:
        """What was found last, now true or not."""
        place = self._place(name)
        found: dict[str, Any] | None = json.loads(place.read_text()) if place.exists() else None
        return found

    def _place(self, name: str) -> Path:
        return self._folder / f"{digest(name)}.json"

    def _own(self, name: str) -> str:
        return digest(self._helpers, *self.units[name], *(self._digests[file] for file in self.units[name]))

    def _sources(self, blocks: list[str]) -> str:
        files = sorted({block.split(":")[0] for block in blocks})
        return digest(*(self._digests.get(file, "") for file in files))


def _sources(project: Project) -> list[str]:
    files = sorted((project.top / project.package).rglob("*.py"))
    return [file.relative_to(project.top).as_posix() for file in files]


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
