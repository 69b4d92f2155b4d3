"""Sizes, circles of imports, and what reaches into a room from outside."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from house.tree import Module

__all__ = ["Function", "circles", "functions", "underscored"]

_OWNERS = {"self", "cls"}
_OF_NAMED_TUPLES = {
    "_asdict",
    "_fields",
    "_make",
    "_replace",
}  # public: the underscore keeps them apart from fields


class Function(NamedTuple):
    """A function of the source.

    Attributes
    ----------
    body : int
        Lines from its first statement to its last, the docstring left out: a table of parameters is no work.
    place : str
        File and name.
    """

    body: int
    place: str


def functions(known: Mapping[str, Module]) -> list[Function]:
    """All functions, the longest first."""
    found = [
        Function(_body_of(node), f"{module.file}: {node.name}")
        for module in known.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return sorted(found, reverse=True)


def _body_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    described = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if described else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def circles(known: Mapping[str, Module]) -> list[list[str]]:
    """Modules that import one another in a circle, imports for type checkers and inside functions included.

    A package's ``__init__`` is no part of one: it gathers what its modules define.
    """
    edges = {
        name: {
            other
            for other in module.imports(known)
            if other != name and known[other].path.name != "__init__.py"
        }
        for name, module in known.items()
        if module.path.name != "__init__.py"
    }
    reached = {name: _reached(name, edges) for name in edges}
    found = {
        frozenset(two for two in reached[one] if one in reached[two]) for one in edges if one in reached[one]
    }
    return sorted(sorted(circle) for circle in found)


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for other in edges[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def underscored(known: Mapping[str, Module], room: str) -> list[str]:
    """Uses, outside a room, of what is underscored in it: attributes of its objects, and names imported from it.

    An attribute counts if a class or module of the room has one of this name, and the user's own package has none.
    """
    inside = {name for name in known if f"{name}.".startswith(f"{room}.")}
    private = {one for name in inside for one in _private_names(known[name])}
    own: dict[str, set[str]] = {}
    for name, module in known.items():
        own.setdefault(name.rpartition(".")[0], set()).update(_private_names(module))
    return [
        f"{module.file}:{line}: {name}"
        for module in known.values()
        if module.name not in inside
        for line, name in _uses(module, inside)
        if name in private - own[module.name.rpartition(".")[0]]
    ]


@cache
def _private_names(module: Module) -> frozenset[str]:
    """What a module defines with a leading underscore, or sets on `self`."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    private = (name for name in found if name.startswith("_") and not name.startswith("__"))
    return frozenset(private) - _OF_NAMED_TUPLES


def _uses(module: Module, inside: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module in inside:
            yield from ((node.lineno, alias.name) for alias in node.names)


def _is_own(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in _OWNERS
