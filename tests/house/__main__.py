"""The house measured: ways through the code, sizes, circles, and what reaches into the guard's room.

``./check --house`` prints a table. What may not get worse is a test: ``tests/house/test_house.py``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from house.shape import circles, functions, underscored
from house.sizes import FILES_OF_WAYS, sizes
from house.tree import modules
from house.ways import WAYS

from reusable_holdout.registry import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from house.tree import Module


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./check --house", description=__doc__.splitlines()[0])
    parser.parse_args(arguments)
    os.environ[VARIABLE] = "off"  # what is made to be measured is not among one's budgets
    known = modules()
    print("| what | measured | limit | goal |\n|---|---|---|---|")
    for line in (*ways(), *shapes(known)):
        print(f"| {' | '.join(line)} |")
    for size in sizes(known):
        print(f"| {size.what} | {size.measured:,} | {size.limit:,} | {size.goal:,} |")


def ways() -> Iterator[tuple[str, ...]]:
    """Lines of the table about what runs."""
    for what, way in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = way(Path(folder))
        own = f", {found.boards} of them the board's own" if found.boards else ""
        limit, goal = FILES_OF_WAYS[what]
        yield (
            what,
            f"{found.functions} functions, {found.files} files{own}",
            f"{limit} files",
            f"{goal} files",
        )


def shapes(known: dict[str, Module]) -> Iterator[tuple[str, ...]]:
    """Lines of the table about the source."""
    largest = max(known.values(), key=lambda module: module.lines)
    yield "largest file", f"{largest.lines} lines ({largest.file})", "400", "400"
    longest = functions(known)[0]
    yield "longest function, its body", f"{longest.body} lines ({longest.place})", "45", "45"
    found = circles(known)
    yield (
        "circles of imports",
        f"{len(found)}{''.join(f'; {len(one)} from {one[0]}' for one in found)}",
        "0",
        "0",
    )
    used = underscored(known, "reusable_holdout.guard")
    yield (
        "underscored uses of the guard's room from outside",
        f"{len(used)} {' '.join(used)}".strip(),
        "0",
        "0",
    )


if __name__ == "__main__":
    main()
