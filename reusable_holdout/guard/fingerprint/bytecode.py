"""The behaviour of compiled code as a digest that does not depend on file names and line numbers."""

from __future__ import annotations

import dis
import functools
import hashlib
import types
from collections.abc import Iterator
from typing import Any

_HAS_DOCSTRING = 0x4000000  # since Python 3.13
_SILENT = {"NOP", "EXTENDED_ARG", "RESUME"}
_ABOUT_ITSELF = {"__doc__", "__module__", "__firstlineno__", "__static_attributes__"}
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_GOES_ON = {"LOAD_ATTR", "LOAD_METHOD"}
_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}
_STORES = {"STORE_NAME", "STORE_GLOBAL"}


class Bytecode:
    """The content of one code object, and of the code objects inside it, without docstrings and lines.

    `reads` are the global names that it reads, each with the attributes read directly after: ``numpy.linalg.norm``.
    `imports` are modules that it imports itself: name, level, and the names taken from the module; no names mean all.
    `texts` are its text constants. All three are in order, and each entry occurs once. `asks_environment` is True if it
    uses a name such as ``getenv``. `digest` is that of its instructions, constants and names.
    """

    def __init__(self, code: types.CodeType) -> None:
        self._content = hashlib.sha256()
        self.reads: dict[tuple[str, ...], None] = {}
        self.imports: dict[tuple[str, int, tuple[str, ...]], None] = {}
        self.texts: dict[str, None] = {}
        self.asks_environment = False
        self._read(code)
        self.digest = self._content.digest()

    def _say(self, part: str | bytes) -> None:
        content = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        self._content.update(len(content).to_bytes(8, "big") + content)

    def _read(self, code: types.CodeType) -> None:
        self.asks_environment |= not _ENVIRONMENT.isdisjoint(code.co_names)
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        inside = (code.co_varnames, code.co_freevars, code.co_cellvars)
        self._say(f"code {code.co_name} {shape} {inside} {code.co_flags & ~_HAS_DOCSTRING}")
        self._say(code.co_exceptiontable)
        before: list[Any] = [None, None]  # the last constants
        chain: list[str] = []
        for step in _steps(code):
            if step.opname in _GOES_ON and chain:
                chain.append(step.argval)
            elif chain:
                self.reads[tuple(chain)] = None
                chain = []
            if step.opname in _LOADS:
                chain = [step.argval]
            elif step.opname == "IMPORT_NAME":
                level, taken = before
                self.imports[step.argval, level, taken or ()] = None
            if step.opcode in dis.hasconst or step.opname == "LOAD_SMALL_INT":
                before = [before[1], step.argval]
                self._say(step.opname)
                self._constant(step.argval)
            else:
                named = isinstance(step.argval, str | tuple)
                self._say(f"{step.opname} {step.argval if named else step.arg!r}")
        self._say("end")
        if chain:
            self.reads[tuple(chain)] = None

    def _constant(self, value: Any) -> None:
        if isinstance(value, types.CodeType):
            self._read(value)
        elif isinstance(value, tuple | frozenset):
            ordered = value if isinstance(value, tuple) else sorted(value, key=_type_and_repr)
            self._say(f"{'tuple' if ordered is value else 'set'} of {len(value)}")
            for item in ordered:
                self._constant(item)
        else:
            if isinstance(value, str):
                self.texts[value] = None
            self._say(f"{type(value).__name__} {value!r}")


bytecode = functools.lru_cache(maxsize=4_096)(Bytecode)
"""Return the content of a code object, which is read once."""


def _type_and_repr(value: Any) -> tuple[str, str]:
    return type(value).__name__, repr(value)


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
