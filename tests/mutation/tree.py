"""Copies of the working tree, in which mutants are made: the tree itself is never touched."""

from __future__ import annotations

import ast
import compileall
import hashlib
import py_compile
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["copy_tree", "digest", "functions_of", "watched"]

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.pyc", "*.egg-info", "build", "dist")
_NOTING = "mutation.noting"


def digest(*texts: str | bytes) -> str:
    """Short digest of some texts."""
    whole = hashlib.sha256()
    for text in texts:
        content = text.encode() if isinstance(text, str) else text
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()[:16]


def copy_tree(
    top: Path, target: Path, package: str, *, change: Callable[[str, str], str] | None = None
) -> None:
    """Copy what is needed to run tests; ``change(file, source)`` makes the package's new sources.

    Compiled code is told stale by the digest of its source: by size and second, a mutant would pass for the original.
    """
    shutil.copytree(top, target, ignore=_LEFT_OUT, dirs_exist_ok=True)
    if change is not None:
        for path in (target / package).rglob("*.py"):
            file = path.relative_to(target).as_posix()
            path.write_text(change(file, path.read_text()))
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(target / package, quiet=1, invalidation_mode=mode)


# ---- sources that take note of which functions are called


def functions_of(source: str) -> list[tuple[str, ast.stmt]]:
    """Qualified name of each function, with the first statement of its body that is no docstring."""
    found: list[tuple[str, ast.stmt]] = []

    def look(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = (*names, child.name)
                if not isinstance(child, ast.ClassDef):
                    rest = child.body[1:] if ast.get_docstring(child, clean=False) is not None else child.body
                    if rest:
                        found.append((".".join(inner), rest[0]))
                look(child, inner)
            else:
                look(child, names)

    look(ast.parse(source), ())
    return found


def watched(file: str, source: str) -> str:
    """Source whose functions first take note that they are called."""
    lines = source.encode().splitlines(keepends=True)
    for name, statement in sorted(functions_of(source), key=lambda found: -found[1].lineno):
        note = f"__called__({f'{file}:{name}'!r})"
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))]) - 1
        line, column = lines[first], statement.col_offset
        if line[:column].strip():  # def f(): return 1
            lines[first] = line[:column] + f"{note}; ".encode() + line[column:]
        else:
            lines.insert(first, line[:column] + f"{note}\n".encode())
    place = max((node.end_lineno or 0 for node in _preamble(ast.parse(source))), default=0)
    lines.insert(place, f"from {_NOTING} import called as __called__\n".encode())
    return b"".join(lines).decode()


def _preamble(module: ast.Module) -> list[ast.stmt]:
    """Docstring and imports from the future, after which other statements may stand."""
    return [
        node
        for place, node in enumerate(module.body)
        if (place == 0 and ast.get_docstring(module, clean=False) is not None)
        or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]
