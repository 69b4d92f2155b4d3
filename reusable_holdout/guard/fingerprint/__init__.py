"""The digest of a fitted model's content: its numbers, code and files. It is the same in every process.

joblib's hash is not enough: it can change when a model is sent to a worker, with the strides of arrays and with shared
parts. And pickle only names classes and functions and paths, so their code and the files would not be part of the
digest.
"""

from __future__ import annotations

import copyreg
import hashlib
import os
import pickle
import secrets
import stat
import types
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from reusable_holdout.guard.fingerprint.code import OfCode, is_found

__all__ = ["LARGEST", "MOST", "fingerprint"]

LARGEST = 1 << 30
"""Bytes of all files behind one name; a model that names more is a new question each time."""
MOST = 10_000
"""Files behind one name, at most."""

_LONGEST = 4_096  # of a path, in characters
_BLOCK = 1 << 20
_OF_THE_MACHINE = {"n_jobs", "n_threads"}  # how many cores there were is no part of a model
_SEARCH_TREES, _COUNTERS = (
    {"BallTree", "KDTree"},
    slice(7, 11),
)  # scikit-learn's; they count searches in their states
_MADE_BY_EACH_FIT = ("model_guid", "train_finish_time")  # CatBoost's name and date of a model
_PLAIN = (int, float, complex, bool, bytes, type(None), type(...), type(NotImplemented))
_ARRAYS = (np.ndarray, np.memmap)  # other arrays hold more than their bytes


def _file_named(text: str) -> Path | None:
    """Return the file or folder that a text names; None if there is none.

    A long text, or one of dots and slashes alone, names none.
    """
    if not text or len(text) > _LONGEST or "\n" in text or "\0" in text or not text.strip("./\\"):
        return None
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if text.startswith("~") or "$" in text:
        text = os.path.expandvars(os.path.expanduser(text))  # noqa: PTH111 - most texts are no paths
    try:
        os.stat(text)  # noqa: PTH116 - of many thousand words, perhaps
    except (OSError, ValueError):  # the model cannot read it either
        return None
    return Path(text)


def _digest_of_files(path: Path) -> bytes:
    """Return the digest of a file's content, or of the names and contents of all files below a folder.

    An OSError is raised if they cannot be read, are no plain files, or exceed the limits of number and size. Sizes are
    looked up before any is read, and counted again as they are read, because some files say that they are empty.
    """
    files = {os.fsencode(file.relative_to(path)): file for file in _each_below(path)}
    about = [file.stat() for file in files.values()]
    if not all(stat.S_ISREG(one.st_mode) for one in about) or sum(one.st_size for one in about) > LARGEST:
        raise OSError("the files are too large, or no plain files")
    whole, left = hashlib.sha256(), LARGEST
    for name, file in sorted(files.items()):
        whole.update(len(name).to_bytes(8, "big") + name)
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise OSError("the files are larger than is read")
                whole.update(block)
        whole.update(left.to_bytes(8, "big"))
    return whole.digest()


def _each_below(path: Path) -> Iterator[Path]:
    """Yield the files below a path; OSError if they are too many."""
    if not path.is_dir():
        yield path
    count = 0
    for top, folders, files in os.walk(path, followlinks=True):
        folders[:] = [one for one in folders if one != "__pycache__"]
        count += len(files)
        if count > MOST:
            raise OSError("the files are too many")
        yield from (Path(top, name) for name in files)


def fingerprint(model: Any) -> bytes:
    """Return the digest of a model's content, 32 bytes: its parameters, fitted numbers, code and files.

    It is equal for a model and its pickled copy, and for models of deterministic fits to the same data in any process;
    different for models that differ in a parameter, in a fitted number, or in what their code does. A model that cannot
    be read whole gets another digest each time, and so is a new question each time.

    *Installed code*, in site-packages or the standard library, counts by its name and version: the package's
    ``__version__`` and the version of the distribution of its name. An upgrade changes every model's digest, because it
    may change the predictions. The user's own code inside an installed class counts, too.

    *All other code* counts by what it does, wherever it lies: bytecode and constants, defaults, closures, decorators,
    base classes, class attributes, and the globals that it reads, other modules of the user's own among them; not by
    lines, files, docstrings, annotations or the names of modules.

    *A text or path that names a file* or folder counts with its content, up to 1 GiB and 10,000 files; beyond that, and
    for devices and pipes, it is a new question each time. This holds for texts in the user's own code, too, and for the
    folder of code that reads ``__file__``. A text of dots and slashes alone, or of several lines, names no file.

    *A new question each time* is a model that can be pickled neither plainly nor by value, that holds locks, handles,
    sockets, generators or weak references, that runs compiled code of the user's own, whose own code reads environment
    variables, or that, when it predicts, imports a module of the user's own which is not imported yet.

    *Not seen* are names put together when the model predicts (of files, of attributes of a module), what comes over a
    network, what an object's own pickling leaves out, `n_jobs` and `n_threads`, when CatBoost was fitted, settings of
    packages, what was put into installed modules, and the versions of packages that installed code calls in turn.

    >>> import pickle
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> fingerprint(model) == fingerprint(pickle.loads(pickle.dumps(model)))
    True
    >>> fingerprint(model) == fingerprint(model.set_params(C=2.0))
    False
    """
    try:
        content = _Content()
        content.add(model)
    except Exception:  # pickling and reading can raise anything
        return secrets.token_bytes(32)
    return content.digest.digest()


class _Content(OfCode):
    """A walk through a value and all that it holds."""

    def __init__(self) -> None:
        super().__init__()
        self._above: dict[int, int] = {}  # depth of each enclosing value; a value may contain itself
        self._files: dict[str, bytes | None] = {}

    def add(self, value: Any) -> None:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        kind = type(value)
        if kind is str:
            self.say(f"str {value!r}")
            self._add_file(value)
        elif kind in _PLAIN:
            self.say(f"{kind.__name__} {value!r}")
        elif isinstance(value, type):
            self._class(value)
        elif kind is types.FunctionType:
            self._function(value)
        elif kind is types.ModuleType:
            self._module(value)
        elif kind is types.BuiltinFunctionType:
            self._builtin(value)
        elif not self._is_wrapping(value):
            self._add_holding(value, kind)

    def _add_holding(self, value: Any, kind: type) -> None:
        """Go on with a value that may hold others, even itself."""
        if id(value) in self._above:
            self.say(f"the value {self._above[id(value)]} levels below the top")
            return
        self._above[id(value)] = len(self._above)
        if kind in _ARRAYS:
            self._array(value)
        elif kind is dict:
            self._dictionary(value)
        elif kind in {list, tuple}:
            self.say(f"{kind.__name__} of {len(value)}")
            for item in value:
                self.add(item)
        elif kind in {set, frozenset}:
            self._set(value)
        else:
            self._object(value)
        del self._above[id(value)]

    def _add_file(self, text: str) -> None:
        """Add the content of a file, if a text names one."""
        if text not in self._files:
            named = _file_named(text)
            self._files[text] = None if named is None else _digest_of_files(named)
        content = self._files[text]
        if content is not None:
            self.add_bytes(content)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        self.say(f"array {array.shape}")
        if array.dtype.hasobject and array.dtype.names is None:
            self.say("of objects")
            for item in array.ravel().tolist():
                self.add(item)
        elif array.dtype.names is not None:  # field by field: the bytes between them mean nothing
            self.say(f"of fields {array.dtype.names}")
            for name in array.dtype.names:
                self._array(array[name])
        else:
            self.say(array.dtype.str)
            self.add_bytes(array.tobytes())
            if array.dtype.kind == "U":
                for item in array.ravel().tolist():
                    self._add_file(item)

    def _dictionary(self, items: dict[Any, Any]) -> None:
        kept = [one for one in items.items() if not (isinstance(one[0], str) and one[0] in _OF_THE_MACHINE)]
        self.say(f"dict of {len(kept)}")
        for key, item in kept:
            self.add(key)
            self.add(item)

    def _set(self, items: set[Any] | frozenset[Any]) -> None:
        whole, each = self.digest, []
        for item in items:
            self.digest = hashlib.sha256()
            self.add(item)
            each.append(self.digest.digest())
        self.digest = whole
        self.say(f"{type(items).__name__} of {len(items)}")
        self.add_bytes(b"".join(sorted(each)))

    def _builtin(self, function: Any) -> None:
        """Add a compiled function of a module, or one bound to an object."""
        if self._is_named(function):
            return
        owner = function.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            raise TypeError("compiled code of the user's own cannot be read")
        self.say(f"method {function.__name__}")
        self.add(owner)

    def _object(self, value: Any) -> None:
        """Add an object's type, and the state that pickle would keep."""
        # a guard counts by its name alone: later answers do not change the digest
        if hasattr(type(value), "__guard_name__"):
            self.say(f"guard {value.__guard_name__()}")
            return
        registered = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        self.say("object")
        if isinstance(reduced, str):
            self._by_name(value, reduced)
            return
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        for part in (type(value), make, arguments, _own_state(value, state)):
            self.add(part)
        for item in items or ():
            self.add(item)
        for key, item in pairs or ():
            self.add(key)
            self.add(item)
        self.say("end of object")
        if isinstance(value, PurePath) and Path(value).exists():
            self.add_bytes(_digest_of_files(Path(value)))

    def _by_name(self, value: Any, name: str) -> None:
        """Add an object that pickle stores by name: by its name if it is installed, else by what it wraps or holds."""
        module = pickle.whichmodule(value, name)  # type: ignore[attr-defined]  # not in the stubs
        installed = self._edition(module)
        if installed is not None and is_found(value, module, name):
            self.say(f"named {module} {name} of {installed}")
        elif type(value).__module__ == "typing":  # a type variable: an annotation
            self.say(f"typing {name}")
        elif hasattr(value, "__wrapped__"):
            self.add(type(value))
            self.add(value.__wrapped__)
        elif self._edition(type(value).__module__) is None:
            self.add(type(value))
            self.add(getattr(value, "__dict__", None))
        else:
            raise TypeError("compiled code of the user's own cannot be read")


def _own_state(value: Any, state: Any) -> Any:
    """Return the state of an object, without the parts in which two equal objects of some libraries differ."""
    name = type(value).__name__
    if name == "Bunch":  # a pickled one has lost it
        return None
    if name in _SEARCH_TREES and isinstance(state, tuple):
        return (*state[: _COUNTERS.start], *state[_COUNTERS.stop :])
    if isinstance(state, dict) and "__model" in state and hasattr(value, "get_metadata"):
        copied = value.copy()
        metadata = copied.get_metadata()
        for made in _MADE_BY_EACH_FIT:
            metadata[made] = ""
        return copied.__getstate__()
    return state
