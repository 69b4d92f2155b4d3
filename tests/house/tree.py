"""The source of the package and its integrations, as modules that import one another."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TOP", "Module", "modules", "packages"]

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """One file of source.

    Attributes
    ----------
    name : str
        As it is imported.
    path : Path
    """

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def file(self) -> str:
        """Its path in the repository."""
        return self.path.relative_to(TOP).as_posix() if self.path.is_relative_to(TOP) else self.path.name

    def imports(self, known: Mapping[str, Module]) -> Iterator[str]:
        """Names of our own modules that it imports: at once, when a function runs, or for type checkers alone.

        A package is passed through to the module where it finds the name: ``from package import name`` needs this one,
        and so does ``package.name``. The face of a package that the module lies in is not: see :meth:`uses_own_face`.
        """
        for package, name in self._taken(known):
            if package in self._above:
                yield f"{package}.{name}" if f"{package}.{name}" in known else package
            else:
                yield from _homes(package, name, known)

    def uses_own_face(self, known: Mapping[str, Module]) -> bool:
        """Whether it takes what another module defines from the face of a package that it lies in, as one outside."""
        return any(
            package in self._above and name in _from_elsewhere(known[package])
            for package, name in self._taken(known)
        )

    @property
    def _above(self) -> set[str]:
        parts = self.name.split(".")
        return {".".join(parts[:end]) for end in range(1, len(parts))}

    def _taken(self, known: Mapping[str, Module]) -> Iterator[tuple[str, str]]:
        """What it takes from our modules, as pairs of a module's name and what is taken."""
        rooms: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    if node.module in known:
                        yield node.module, alias.name
                    if f"{node.module}.{alias.name}" in known:
                        rooms[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in rooms
            ):
                yield rooms[node.value.id], node.attr


def _homes(package: str, name: str, known: Mapping[str, Module]) -> Iterator[str]:
    if f"{package}.{name}" in known and name not in _from_elsewhere(known.get(package)):
        yield f"{package}.{name}"
    elif package in known:
        yield package
        home = _from_elsewhere(known[package]).get(name)
        if home is not None and home in known:
            yield home


def _from_elsewhere(module: Module | None) -> dict[str, str]:
    """What a package takes from its modules: names, and where they are from; its stub says it, if it has one."""
    if module is None or module.path.name != "__init__.py":
        return {}
    stub = module.path.with_suffix(".pyi")
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(stub.read_text()) if stub.exists() else module.tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


def packages(top: Path = TOP) -> list[Path]:
    """Folders of the import packages."""
    found = sorted(path.parent for path in (top / "integrations").glob("*/__init__.py"))
    return [top / "reusable_holdout", *found]


def modules(top: Path = TOP) -> dict[str, Module]:
    """All modules by their names."""
    found = [_module(path, package.parent) for package in packages(top) for path in package.rglob("*.py")]
    return {module.name: module for module in sorted(found, key=lambda module: module.name)}


def _module(path: Path, above: Path) -> Module:
    parts = path.relative_to(above).with_suffix("").parts
    return Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path)
