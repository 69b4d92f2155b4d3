"""The behaviour of compiled code as a digest that does not depend on file names and line numbers."""

from __future__ import annotations

import dis
import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Bytecode", "bytecode"]

_HAS_DOCSTRING = 0x4000000  # since Python 3.13
_SILENT = {"NOP", "EXTENDED_ARG", "RESUME"}
_ABOUT_ITSELF = {"__doc__", "__module__", "__firstlineno__", "__static_attributes__"}
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_GOES_ON = {"LOAD_ATTR", "LOAD_METHOD"}
_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}
_STORES = {"STORE_NAME", "STORE_GLOBAL"}


class Bytecode(NamedTuple):
    """The content of one code object, and of the code objects inside it.

    `reads` are the global names that it reads, each with the attributes read directly after: ``numpy.linalg.norm``.
    `imports` are modules that it imports itself: name, level, and the names taken from the module; no names mean all.
    `texts` are its text constants. `asks_environment` is True if it uses a name such as ``getenv``.
    """

    digest: bytes
    reads: tuple[tuple[str, ...], ...]
    imports: tuple[tuple[str, int, tuple[str, ...]], ...]
    texts: tuple[str, ...]
    asks_environment: bool


@functools.lru_cache(maxsize=4_096)
def bytecode(code: types.CodeType) -> Bytecode:
    """Return the digest of a code object's instructions, constants and names, without docstrings and lines."""
    reader = _Reader()
    reader.read(code)
    digest = hashlib.sha256()
    for part in reader.parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return Bytecode(
        digest.digest(),
        tuple(dict.fromkeys(reader.reads)),
        tuple(dict.fromkeys(reader.imports)),
        tuple(dict.fromkeys(reader.texts)),
        reader.asks_environment,
    )


class _Reader:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.reads: list[tuple[str, ...]] = []
        self.imports: list[tuple[str, int, tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.asks_environment = False

    def read(self, code: types.CodeType) -> None:
        self.asks_environment |= not _ENVIRONMENT.isdisjoint(code.co_names)
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        inside = (code.co_varnames, code.co_freevars, code.co_cellvars)
        flags = code.co_flags & ~_HAS_DOCSTRING
        self.parts.append(f"code {code.co_name} {shape} {inside} {flags}".encode())
        self.parts.append(code.co_exceptiontable)
        before: list[Any] = [None, None]  # the last constants
        chain: list[str] = []
        for step in _steps(code):
            if step.opname in _GOES_ON and chain:
                chain.append(step.argval)
            elif chain:
                self.reads.append(tuple(chain))
                chain = []
            if step.opname in _LOADS:
                chain = [step.argval]
            elif step.opname == "IMPORT_NAME":
                level, taken = before
                self.imports.append((step.argval, level, taken or ()))
            if step.opcode in dis.hasconst or step.opname == "LOAD_SMALL_INT":
                before = [before[1], step.argval]
                self.parts.append(step.opname.encode())
                self._constant(step.argval)
            else:
                named = isinstance(step.argval, str | tuple)
                self.parts.append(f"{step.opname} {step.argval if named else step.arg!r}".encode())
        self.parts.append(b"end")
        if chain:
            self.reads.append(tuple(chain))

    def _constant(self, value: Any) -> None:
        if isinstance(value, types.CodeType):
            self.read(value)
        elif isinstance(value, tuple):
            self.parts.append(f"tuple of {len(value)}".encode())
            for item in value:
                self._constant(item)
        elif isinstance(value, frozenset):
            self.parts.append(f"set of {len(value)}".encode())
            for item in sorted(value, key=lambda one: (type(one).__name__, repr(one))):
                self._constant(item)
        else:
            if isinstance(value, str):
                self.texts.append(value)
            self.parts.append(f"{type(value).__name__} {value!r}".encode(errors="surrogatepass"))


def _steps(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions that have an effect.

    Instructions by which an inner class stores its own name and place are left out.
    """
    held: dis.Instruction | None = None
    for step in dis.get_instructions(code):
        if step.opname in _SILENT:
            continue
        if step.opname in _STORES and step.argval in _ABOUT_ITSELF:
            held = None
            continue
        if held is not None:
            yield held
        held = step
    if held is not None:
        yield held
