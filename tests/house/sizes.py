"""How large the house is: lines of code, ways to ask, public names, pages and words, each beside its limit and goal."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, NamedTuple

from house.tree import TOP

import reusable_holdout
from reusable_holdout.rules import Distance, evidence, sets
from reusable_holdout.ways import Way, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from house.tree import Module

__all__ = ["FILES_OF_WAYS", "Size", "code_lines", "loads_late", "sizes"]

_OTHERS = {"earlier", "mechanisms"}  # rooms that are counted apart from the guard's
_DEFINED_BY = (table, evidence, sets)  # modules that import all ways and rules


class Size(NamedTuple):
    """One measure; the limit holds today, the goal is that of the design."""

    what: str
    measured: int
    limit: int
    goal: int


FILES_OF_WAYS = {
    "one guarded scorer call, to the ledger and back": (40, 28),
    "a batch of three": (27, 20),
    "a CSV posted to the board": (43, 38),
    "`verify`": (24, 12),
}
"""Files that each way through the code passes: limit and goal."""


def sizes(known: Mapping[str, Module]) -> Iterator[Size]:
    """Measure everything that needs no guard."""
    rooms: dict[str, int] = {}
    for module in known.values():
        package, *rest = module.name.split(".")
        room = rest[0] if package == "reusable_holdout" and rest else package
        rooms[room] = rooms.get(room, 0) + code_lines(module.text)
    apart = {room for room in rooms if room in _OTHERS or room.startswith("reusable_holdout_")}
    yield Size("code lines of the guard", sum(rooms[room] for room in rooms.keys() - apart), 17_010, 12_000)
    yield Size("code lines of `earlier`", rooms["earlier"], 900, 900)
    yield Size("code lines of package and integrations", sum(rooms.values()), 35_150, 33_000)
    yield Size("code lines of tests", _code_in(TOP / "tests"), 50_450, 45_000)
    yield Size("code lines of examples", _code_in(TOP / "examples"), 9_000, 9_000)
    yield Size("ways to ask, and rules", len(_concrete(Way)) + len(_rules()), 10, 10)
    yield Size("longest ancestry of a way or rule", max(map(_depth, _concrete(Way) | _rules())), 4, 4)
    arguments = inspect.signature(reusable_holdout.ReusableHoldout).parameters
    yield Size("arguments of the constructor", len(arguments), 14, 14)
    yield Size("public names at the top", len(reusable_holdout.__all__), 20, 20)
    yield Size("files that load our own modules late", sum(map(loads_late, known.values())), 0, 0)
    yield Size(
        "files that import for type checkers alone",
        sum("if TYPE_CHECKING:" in module.text for module in known.values()),
        20,
        20,
    )
    pages = [page.read_text(encoding="utf-8") for page in (TOP / "docs").glob("*.md")]
    yield Size("pages", len(pages), 26, 26)  # 24, and two of those that later issues add
    yield Size("words of all pages", sum(len(page.split()) for page in pages), 21_650, 21_650)


def code_lines(text: str) -> int:
    """Count lines that hold code: no comments, blanks or docstrings."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines[first.lineno - 1 : first.end_lineno] = [""] * (
                    (first.end_lineno or 0) - first.lineno + 1
                )
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def _code_in(folder: Path) -> int:
    return sum(code_lines(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))


def _concrete(base: type) -> set[type]:
    """Return the classes of this kind that can be made, without those of earlier versions."""
    ours = (one for one in _below(base) if not one.__module__.startswith("reusable_holdout.earlier"))
    return {one for one in ours if not inspect.isabstract(one)}


def _below(base: type) -> Iterable[type]:
    for one in base.__subclasses__():
        yield one
        yield from _below(one)


def _rules() -> set[type]:
    """Return the rules; all others derive from the first."""
    return {Distance, *_concrete(Distance)}


def _depth(one: type) -> int:
    return sum(ancestor.__module__.startswith("reusable_holdout") for ancestor in one.__mro__)


def loads_late(module: Module) -> bool:
    """True if a function of a module imports a module of ours."""
    inside = (
        node
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return any(_name_of(node).startswith("reusable_holdout") for node in inside)


def _name_of(node: ast.Import | ast.ImportFrom) -> str:
    return (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
