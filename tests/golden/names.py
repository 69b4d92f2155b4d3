"""Write down the names of this version: ``PYTHONPATH=tests python -m golden.names``, when it is released.

Until then it may be run again. Afterwards the file stays as it is, and every later version has these names
(docs/stability.md), until one whose first number is new takes some away, and their lines.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from made_guards import made_guard

from reusable_holdout.cli import _parser
from reusable_holdout.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FOLDER", "names_now"]

FOLDER = Path(__file__).parent / "names"
_ROOT = Path(__file__).parents[2]


def names_now() -> list[str]:
    """What packages list, commands with their options, and columns of a history: one a line, sorted."""
    return sorted({*_listed(), *_of_commands(_parser([]), "command"), *_columns()})


def _listed() -> Iterator[str]:
    """Names of packages; rooms within a room are the library's own."""
    inits = (*_ROOT.glob("reusable_holdout/__init__.py"), *_ROOT.glob("reusable_holdout/*/__init__.py"))
    for init in (*inits, *_ROOT.glob("integrations/*/__init__.py")):
        package = ".".join(init.parent.relative_to(_ROOT).parts).removeprefix("integrations.")
        stub = init.with_suffix(".pyi")
        for node in ast.parse((stub if stub.exists() else init).read_text()).body:
            if stub.exists() and isinstance(node, ast.ImportFrom):
                yield from (f"name {package}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                yield from (f"name {package}.{name}" for name in ast.literal_eval(node.value))


def _of_commands(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    yield name
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, inner in action.choices.items():
                yield from _of_commands(inner, f"{name} {command}")
        else:
            yield from (f"{name} {option}" for option in action.option_strings)


def _columns() -> Iterator[str]:
    guard = made_guard(None, np.arange(100) % 2, queries=1, charges=1, vacuous=True)
    return (f"column {name}" for name in guard.history().columns)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{__version__}.txt").write_text("".join(f"{name}\n" for name in names_now()))
