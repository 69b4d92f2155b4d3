"""Copies of the working tree, in which mutants are made: the tree itself is never touched."""

from __future__ import annotations

import ast
import compileall
import functools
import hashlib
import py_compile
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of", "copy_tree", "digest", "watched"]

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


# ---- sources that take note of which blocks are reached


@dataclass(frozen=True, slots=True)
class Block:
    """Statements of a function that are reached together, but for exceptions.

    Attributes
    ----------
    function : str
        Qualified name.
    version : str
        Digest of the function's statements, so that what was noted of others is not taken for it.
    number : int
        Counts the blocks of functions of that name from 0; the first is reached by every call.
    statement : ast.stmt
        The first.
    first, last : int
        Lines; blocks inside it, which begin later, are others.
    """

    function: str
    version: str
    number: int
    statement: ast.stmt
    first: int
    last: int

    @property
    def name(self) -> str:
        """Its name in its file."""
        return f"{self.function}@{self.version}#{self.number}"


@functools.lru_cache(maxsize=256)
def blocks_of(source: str) -> tuple[Block, ...]:
    """Blocks of all functions, in the order of the text of each function.

    One begins with every body, and after every statement that may leave the body it stands in.
    """
    found: list[Block] = []
    counts: dict[str, int] = {}

    def take(function: str, version: str, statements: list[ast.stmt]) -> None:
        while statements:
            size = next(
                (place for place, one in enumerate(statements, 1) if _may_leave(one)), len(statements)
            )
            first = min(
                node.lineno for node in [statements[0], *getattr(statements[0], "decorator_list", [])]
            )
            number = counts[function] = counts.get(function, -1) + 1
            last = statements[size - 1].end_lineno or first
            found.append(Block(function, version, number, statements[0], first, last))
            for statement in statements[:size]:
                look_inside(function, version, statement)
            statements = statements[size:]

    def look_inside(function: str, version: str, statement: ast.stmt) -> None:
        for body in _bodies(statement):
            if isinstance(statement, ast.If) and body is statement.orelse and _is_elif(statement):
                look_inside(function, version, body[0])
            else:
                take(function, version, body)

    for name, body in functions_of(source):
        take(name, digest(*map(ast.dump, body))[:6], body)
    return tuple(found)


def functions_of(source: str) -> list[tuple[str, list[ast.stmt]]]:
    """Qualified name of each function, with its body less the docstring; not those that have no other body."""
    found: list[tuple[str, list[ast.stmt]]] = []

    def look(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = (*names, child.name)
                if not isinstance(child, ast.ClassDef):
                    rest = child.body[1:] if ast.get_docstring(child, clean=False) is not None else child.body
                    if rest:
                        found.append((".".join(inner), rest))
                look(child, inner)
            else:
                look(child, names)

    look(ast.parse(source), ())
    return found


def _bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Those inside a statement; not those of a function or class, which are others' or run at once."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    inner += [part.body for part in getattr(statement, "handlers", []) + getattr(statement, "cases", [])]
    return [body for body in inner if body]


def _may_leave(statement: ast.stmt) -> bool:
    leaving = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(
        isinstance(inner, leaving) or _may_leave(inner) for body in _bodies(statement) for inner in body
    )


def _is_elif(statement: ast.If) -> bool:
    """Whether what comes otherwise is an elif, before which nothing can stand."""
    first = statement.orelse[0]
    return isinstance(first, ast.If) and first.col_offset == statement.col_offset


def watched(file: str, source: str) -> str:
    """Source whose blocks first take note that they are reached."""
    lines = source.encode().splitlines(keepends=True)
    for block in sorted(blocks_of(source), key=lambda block: -block.first):
        name = f"{file}:{block.name}"
        note = f"{name!r} in __seen__ or __reached__({name!r})"
        column = block.statement.col_offset
        line = lines[block.first - 1]
        if line[:column].strip():  # def f(): return 1
            lines[block.first - 1] = line[:column] + f"{note}; ".encode() + line[column:]
        else:
            lines.insert(block.first - 1, line[:column] + f"{note}\n".encode())
    place = max((node.end_lineno or 0 for node in _preamble(ast.parse(source))), default=0)
    lines.insert(place, f"from {_NOTING} import reached as __reached__, seen as __seen__\n".encode())
    return b"".join(lines).decode()


def _preamble(module: ast.Module) -> list[ast.stmt]:
    """Docstring and imports from the future, after which other statements may stand."""
    return [
        node
        for place, node in enumerate(module.body)
        if (place == 0 and ast.get_docstring(module, clean=False) is not None)
        or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]
