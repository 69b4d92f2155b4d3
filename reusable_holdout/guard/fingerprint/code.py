"""The content of classes, functions and modules: name and version if installed, else the code itself."""

from __future__ import annotations

import builtins
import functools
import hashlib
import importlib.util
import operator
import os
import platform
import site
import sys
import sysconfig
import types
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple, cast

from reusable_holdout.deferred import metadata
from reusable_holdout.guard.fingerprint import bytecode
from reusable_holdout.guard.fingerprint.bytecode import Bytecode

_NOT_DONE = {  # attributes that describe a class, or that each process makes anew
    *("__doc__", "__module__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__"),
    "__slotnames__",  # pickle writes it down when it first meets the class
    *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__abstractmethods__", "_abc_impl"),
}
_MADE_AT_RUN_TIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_WRAPS = ("fget", "fset", "fdel", "func", "__func__", "__wrapped__")
_COMPILED = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)


class OfCode(ABC):
    """A walk through the parts of code; a class, function or module that occurs again is added by its number alone."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._numbered: dict[int, tuple[int, Any]] = {}
        self._editions: dict[str, str | None] = {}

    @abstractmethod
    def add(self, value: Any) -> None:
        """Add a value of any kind to the fingerprint."""

    def say(self, text: str) -> None:
        """Add a fixed text to the fingerprint."""
        self.add_bytes(text.encode(errors="surrogatepass"))

    def add_bytes(self, content: bytes) -> None:
        """Add bytes to the fingerprint, after their length."""
        self.digest.update(len(content).to_bytes(8, "big"))
        self.digest.update(content)

    def _is_known(self, value: Any) -> bool:
        if id(value) in self._numbered:
            self.say(f"number {self._numbered[id(value)][0]}")
            return True
        self._numbered[id(value)] = len(self._numbered), value  # kept alive: no other gets its id
        return False

    def _edition(self, module: Any) -> str | None:
        if not isinstance(module, str):
            return None
        top = module.partition(".")[0]
        if top not in self._editions:
            self._editions[top] = edition(top)
        return self._editions[top]

    def _is_named(self, value: Any) -> bool:
        """Add the name of an installed object; return False if it is not installed, or not found by its name."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        installed = self._edition(module)
        # some types of the interpreter, such as the type of functions, are not found under their names
        builtin = isinstance(value, type) and module == "builtins" and not value.__flags__ & _MADE_AT_RUN_TIME
        if installed is None or not (builtin or is_found(value, module, name)):
            return False
        self.say(f"named {module} {name} of {installed}")
        return True

    # ---- functions

    def _function(self, function: types.FunctionType) -> None:
        own = self._edition(function.__globals__.get("__name__")) is None
        if self._is_known(function) or (not own and self._is_named(function)):
            return
        done = bytecode.bytecode(function.__code__)
        self.say(f"function {function.__qualname__}")
        self.add_bytes(done.digest)
        for part in (function.__defaults__, function.__kwdefaults__, function.__dict__, list(done.texts)):
            self.add(part)
        for cell in function.__closure__ or ():
            try:
                inside = cell.cell_contents
            except ValueError:
                self.say("empty cell")
            else:
                self.add(inside)
        home = home_of(function.__globals__, function.__code__.co_filename)
        if home is None and done.asks_environment:
            raise LookupError("what it does depends on environment variables")
        if home is None:
            self._what_it_names(done, function.__globals__)
        else:
            self.say(f"names of {function.__globals__['__name__']} of {home}")

    def _what_it_names(self, done: Bytecode, names: dict[str, Any]) -> None:
        """Add the globals that the user's own code reads, and its imports at run time."""
        for chain in done.reads:
            first = chain[0]
            self.say(f"global {'.'.join(chain) if first in names else first}")
            if first == "__file__" and first in names:  # the code may read files next to it
                self.add(Path(names[first]).parent)
            elif first in names and first != "__name__":
                self._along(names[first], chain[1:])
            elif not hasattr(builtins, first):
                self.say("missing")
        for name, level, taken in done.imports:
            package = names.get("__package__")
            full = importlib.util.resolve_name("." * level + name, package) if level else name
            self.say(f"import {full} {taken}")
            module = sys.modules.get(full)
            if self._edition(full) is not None:
                self.say(str(self._edition(full)))
            elif module is not None:
                for one in taken or ("",):
                    self._along(module, (one,) if one and one != "*" else ())
            elif full.partition(".")[0] not in sys.stdlib_module_names:  # its content is not known yet
                raise ImportError(f"{full} is not imported yet")

    def _along(self, value: Any, attributes: tuple[str, ...]) -> None:
        """Add the parts of the user's own module that code reads: an attribute, or all of it."""
        for attribute in attributes:
            if not isinstance(value, types.ModuleType) or self._edition(value.__name__) is not None:
                break
            value = getattr(value, attribute)  # a part that is not imported yet is not known
        self.add(value)

    # ---- modules

    def _module(self, module: types.ModuleType) -> None:
        if self._is_known(module):
            return
        installed = self._edition(module.__name__)
        self.say(f"module {module.__name__ if installed else ''} of {installed}")
        if installed is None:
            file = getattr(module, "__file__", None)
            if file is not None and not file.endswith((".py", ".pyc")):
                raise TypeError("compiled code of the user's own cannot be read")
            for name, value in sorted(vars(module).items()):
                if not (name.startswith("__") and name.endswith("__")):
                    self.say(f"global {name}")
                    self.add(value)

    # ---- classes

    def _class(self, made: type) -> None:
        if self._is_known(made):
            return
        if self._is_named(made):
            self._what_was_put_into(made)
            return
        self.say(f"class {made.__qualname__}")
        self.add(type(made))
        self.add(made.__bases__)
        for name, value in sorted(vars(made).items()):
            if name in _NOT_DONE:
                continue
            self.say(f"attribute {name}")
            if isinstance(value, _SLOTS):
                self.say("slot")
            elif isinstance(value, _COMPILED) and value.__objclass__ is made:
                raise TypeError("compiled code of the user's own cannot be read")
            else:
                self.add(value)
        self.say("end of class")

    def _what_was_put_into(self, made: type) -> None:
        """Add the user's own code that replaced methods of an installed class, also inside wrappers."""
        for one in made.__mro__:
            known = _UNTOUCHED.get(one)
            if known is not None and known.is_still(one):
                continue
            own, touched = list(vars(one).items()), False
            for name, value in own:
                if any(map(self._is_put_there, _unwrapped(value))):
                    touched = True
                    self.say(f"attribute {name} of {one.__qualname__}")
                    self.add(value)
            if not touched:
                _UNTOUCHED[one] = _Untouched.of([value for _, value in own])

    def _is_put_there(self, value: Any) -> bool:
        if isinstance(value, types.FunctionType):
            own = self._edition(value.__globals__.get("__name__")) is None
            return own and home_of(value.__globals__, value.__code__.co_filename) is None
        if isinstance(value, type) or self._edition(type(value).__module__) is not None:
            return False
        home = sys.modules.get(type(value).__module__)  # compilers make types of modules that have no file
        has_file = getattr(home, "__file__", None) is not None
        return home is not None and (has_file or home.__name__ == "__main__")

    # ---- wrappers of functions

    def _is_wrapping(self, value: Any) -> bool:
        """Add the content of a property or another wrapper; return False if the value is no wrapper."""
        inside: list[Any]
        if isinstance(value, property):
            inside = [value.fget, value.fset, value.fdel]
        elif isinstance(value, staticmethod | classmethod):
            inside = [value.__func__]
        elif isinstance(value, types.MethodType):  # pickle would look for it by its name
            inside = [value.__func__, value.__self__]
        elif type(value).__name__ == "cached_property" and self._edition(type(value).__module__):
            inside = [cast("Any", value).func]
        elif isinstance(value, types.MappingProxyType):
            inside = [dict(value)]
        elif isinstance(value, _COMPILED + _SLOTS):
            self.say(value.__name__)
            inside = [value.__objclass__]
        elif isinstance(value, types.CodeType):
            self.add_bytes(bytecode.bytecode(value).digest)
            inside = []
        else:
            return False
        for one in (type(value), *inside):
            self.add(one)
        return True


class _Untouched(NamedTuple):
    """The content of an installed class when it held nothing of the user's own."""

    values: list[Any]
    functions: list[types.FunctionType]
    codes: list[types.CodeType]

    @classmethod
    def of(cls, values: list[Any]) -> _Untouched:
        every = (inside for value in values for inside in _unwrapped(value))
        functions = [one for one in every if isinstance(one, types.FunctionType)]
        return cls(values, functions, [one.__code__ for one in functions])

    def is_still(self, made: type) -> bool:
        """Return True if the class holds the same objects, with the same code."""
        own = vars(made)
        return (
            len(own) == len(self.values)
            and all(map(operator.is_, own.values(), self.values))
            and all(map(operator.is_, map(_CODE, self.functions), self.codes))
        )


_CODE = operator.attrgetter("__code__")
_UNTOUCHED: weakref.WeakKeyDictionary[type, _Untouched] = weakref.WeakKeyDictionary()


def _unwrapped(value: Any) -> list[Any]:
    """Return a class attribute and the functions inside it."""
    inside = (getattr(value, name, None) for name in _WRAPS)
    return [value, *(one for one in inside if isinstance(one, types.FunctionType))]


# ---- whose code it is


def edition(module: str) -> str | None:
    """Return the name and version of a module's installation; None if it is the user's own.

    A module is installed if it lies in the standard library, or with a version in a site-packages folder. All others
    are the user's own, also an installation that is edited in place.
    """
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    if loaded is None or top == "__main__":
        return None
    origin = getattr(getattr(loaded, "__spec__", None), "origin", None)
    if origin in {"built-in", "frozen"}:
        return f"python {platform.python_version()}"
    files = [getattr(loaded, "__file__", None), *getattr(loaded, "__path__", ())]
    lies = next((one for one in files if one), None)
    if lies is None:
        return None
    try:
        file = os.path.abspath(lies)  # noqa: PTH100 - it is text that is compared
    except OSError:  # a relative path, and the working folder is gone: not installed
        return None
    installed, standard = _folders()
    if file.startswith(installed):
        told = getattr(loaded, "__version__", None)
        return _version(top, told if isinstance(told, str) else None)
    return f"python {platform.python_version()}" if file.startswith(standard) else None


def is_found(value: Any, module: Any, name: Any) -> bool:
    """Return True if a loaded module has this very object under this name."""
    found: Any = sys.modules.get(module) if isinstance(module, str) and isinstance(name, str) else None
    if found is None:
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def home_of(names: dict[str, Any], file: str) -> str | None:
    """Return the edition of the module that holds a function's globals; None if it is the user's own.

    It also works for a function that was sent by value.
    """
    module = names.get("__name__")
    loaded = sys.modules.get(module) if isinstance(module, str) else None
    if loaded is None:
        return None
    sent_from = {file, names.get("__file__", file)}  # every version of cloudpickle keeps one of them
    if vars(loaded) is not names and getattr(loaded, "__file__", None) not in sent_from:
        return None
    return edition(loaded.__name__)


@functools.cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders of installed packages and of the standard library, with both spellings of linked folders."""
    paths = sysconfig.get_paths()
    installed = [*site.getsitepackages(), site.getusersitepackages(), paths["purelib"], paths["platlib"]]
    standard = [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]  # noqa: PTH120
    return _spelled(installed), _spelled(standard)


def _spelled(folders: list[str]) -> tuple[str, ...]:
    every = {spelled for one in folders for spelled in (os.path.abspath(one), os.path.realpath(one))}  # noqa: PTH100
    return tuple(sorted(one + os.sep for one in every))


@functools.cache
def _version(top: str, told: str | None) -> str | None:
    """Return the version that a package states and the one it was installed with; None if there is neither.

    The result is kept, because a later installation does not change the loaded code.
    """
    versions = [] if told is None else [told]
    try:
        versions.append(metadata.version(top))
    except metadata.PackageNotFoundError:
        if told is None:  # to look through all distributions is slow
            others = metadata.packages_distributions().get(top, ())
            versions = [metadata.version(one) for one in sorted(set(others))]
    return f"{top} {' '.join(versions)}" if versions else None
