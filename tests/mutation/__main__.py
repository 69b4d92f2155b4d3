"""Mutation run: does a test fail when the code is wrong?

``./check --mutants`` makes a sample of wrong programs, each the package with one small change, and runs the tests that
reach the changed code until one fails. It fails itself if more than 3% of the mutants survive, or one that is not
named in ``survivors.toml``. :mod:`mutation.operators` has the changes, :mod:`mutation.project` the places.

The working tree is not touched. Results are kept in ``.mutation``: a run that was interrupted goes on where it stopped,
and a mutant is tried again only when its source or its tests have changed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator

from mutation import survivors
from mutation.operators import Mutant
from mutation.project import OURS, Project
from mutation.reach import Reach, Test, reach_of_tests
from mutation.report import Tried, change_of, report
from mutation.sample import sample
from mutation.trial import Result, Results, try_mutant, turns
from mutation.workers import Worker, in_parallel, workers


def main(arguments: list[str] | None = None, project: Project = OURS) -> int:
    """Run, print, and tell whether it is good enough: 0 if so."""
    settings = _parser(list(project.rooms)).parse_args(arguments)
    rooms = {name: project.rooms[name] for name in settings.rooms or project.rooms}
    room_of = {mutant: name for name, room in rooms.items() for mutant in project.candidates(room)}
    chosen = sample(list(room_of), settings.sample or len(room_of), settings.seed)
    _say(f"{len(chosen)} mutants of {len(room_of)}")
    reach = reach_of_tests(project, count=settings.workers, say=_say, trusting=settings.trust)
    for test in reach.failed:
        _say(f"fails on the original, so it is left out: {test}")
    tried = _try_all(project, {mutant: room_of[mutant] for mutant in chosen}, reach, settings.workers)
    elsewhere = [room for name, room in project.rooms.items() if name not in rooms]
    known = survivors.read(project.known, but_not_of=elsewhere)
    text, problems = report(tried, known, {mutant.identity for mutant in room_of})
    print(text)
    for problem in problems:
        _say(problem)
    return 1 if problems else 0


def _try_all(project: Project, room_of: dict[Mutant, str], reach: Reach, count: int) -> list[Tried]:
    """Mutants with their results, in the same order: results of runs before, or new ones."""
    planned = {
        mutant: turns(mutant, project.rooms[room], reach.tests(mutant, project.source(mutant.file)))
        for mutant, room in room_of.items()
    }
    results = Results(project)
    done = {mutant: results.still_valid(mutant, tests) for mutant, tests in planned.items()}
    missing = [mutant for mutant, result in done.items() if result is None]
    _say(f"{len(done) - len(missing)} of them have been tried before")
    for mutant, result in _try_new(project, {mutant: planned[mutant] for mutant in missing}, count):
        results.add(result)
        done[mutant] = result
    return [
        Tried(room_of[mutant], mutant, project.source(mutant.file), result)
        for mutant, result in done.items()
        if result is not None
    ]


def _try_new(
    project: Project, planned: dict[Mutant, list[list[Test]]], count: int
) -> Iterator[tuple[Mutant, Result]]:
    if not planned:
        return

    def work(worker: Worker, mutant: Mutant) -> Result:
        return try_mutant(worker, mutant, planned[mutant], project)

    began = time.monotonic()
    with workers(project, min(count, len(planned))) as started:
        for number, (mutant, result) in enumerate(in_parallel(started, work, planned), 1):
            minutes = (time.monotonic() - began) / number * (len(planned) - number) / 60
            by = f" by {result.by}" if result.by else ""
            change = change_of(mutant, project.source(mutant.file))
            _say(
                f"{number} of {len(planned)}, {minutes:.0f} min left: {mutant.file} {mutant.function} {change}"
            )
            _say(f"  {result.outcome} after {result.ran} tests{by}")
            yield mutant, result
    seconds = time.monotonic() - began
    _say(f"{len(planned)} tried in {seconds:.0f} s with {len(started)} workers")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser(rooms: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./check --mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=300, help="how many mutants; 0 for all (default 300)")
    parser.add_argument("--rooms", type=_names(rooms), help=f"some of {','.join(rooms)} (default all)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="what tests reached before sources changed need not be found again",
    )
    return parser


def _names(rooms: list[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        unknown = set(text.split(",")) - set(rooms)
        if unknown:
            raise argparse.ArgumentTypeError(f"no room is called {', '.join(sorted(unknown))}")
        return text.split(",")

    return names


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and so remove the copies of the tree
    sys.exit(main())
