"""Pickled guards: a handle has the places of the ledger, its key and the holdout, but not their content.

All processes that open the handle share one budget in the ledger, and one copy of the holdout on the disk: its arrays
are mapped into memory, not loaded.
"""

from __future__ import annotations

import functools
import os
import pickle
import secrets
import weakref
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.answer import Answer
from reusable_holdout.errors import HandleError, HoldoutError, InputError, LedgerError, LedgerKeyError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.configuration import metric_of
from reusable_holdout.guard.digests import Owned
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.pools import write_to_the_end
from reusable_holdout.ledger import Ledger
from reusable_holdout.ledger.connection import file_identity, without_password
from reusable_holdout.ledger.failures import refusal
from reusable_holdout.metrics import Metric
from reusable_holdout.rows import Rows

_T = TypeVar("_T")
_GUARD: list[Any] = []


def the_guard(cls: type[_T]) -> type[_T]:
    """Register the class of guards, which handles open and absent guards stand for; a decorator of that class."""
    _GUARD.append(cls)
    return cls


def guard_class() -> Any:
    """Return the class of guards."""
    return _GUARD[-1]


class ElsewhereError(LedgerError, AttributeError):
    """The guard is not here; as an AttributeError, it tells code that the guard lacks the attribute."""


class AbsentGuard:
    """A stand-in for a guard that is not here.

    It has a guard's methods, which raise: a worker must load the pickle of a guard before it can report an error.
    """

    def why(self) -> HoldoutError:
        """Say where the guard is, or why it cannot be opened."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if callable(getattr(guard_class(), name, None)):
            return functools.partial(AbsentGuard._refuse, self)
        raise ElsewhereError(str(self.why()))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise self.why()

    def __copy__(self) -> AbsentGuard:
        return self

    def __deepcopy__(self, _: object) -> AbsentGuard:
        return self


class FrozenGuard(AbsentGuard):
    """A stand-in for a guard in a deployed file: its answers, as a frozen certificate's JSON, and the guard's name."""

    def __init__(self, name: str, certificate: str) -> None:
        self.name = name
        self._text = certificate

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenGuard, (self.name, self._text)

    def __guard_name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<FrozenGuard: {self.certificate()}>"

    def why(self) -> LedgerError:
        """Say where the guard lives."""
        frozen = self.certificate()
        return LedgerError(
            f"a guard must be asked where it lives, on {frozen.machine!r} beside its ledger (holdout "
            f"{frozen.holdout[:12]}, head {frozen.head[:12]} when it was frozen); this is only its frozen certificate; "
            "nothing was asked; open it there with ReusableHoldout.open(ledger, X, y), and put it in this one's place: "
            "search.set_params(guard=guard), or scoring=guarded_scorer(guard)"
        )

    def certificate(self, *answers: Answer) -> FrozenCertificate:
        """Return the frozen certificate, as :meth:`ReusableHoldout.certificate` does.

        An InputError is raised if the certificate does not hold one of the answers.
        """
        frozen = FrozenCertificate.from_json(self._text)
        return frozen.of([answer.query for answer in answers]) if answers else frozen

    @property
    def metric(self) -> Metric:
        """Metric, if it is one of the catalogue; if it is the owner's own, its code stays where the guard lives."""
        try:
            return metric_of(self.certificate().metric)
        except InputError:
            raise ElsewhereError(str(self.why())) from None

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        known = self.class_set
        return None if isinstance(known, str) else known

    @property
    def class_set(self) -> NDArray[Any] | str | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as the guard does its own."""
        classes = self.certificate().classes
        return np.array(classes) if isinstance(classes, tuple) else classes


def check_is_guard(guard: object) -> None:
    """Refuse an object that is no guard, before anything is fitted.

    Raises
    ------
    InputError
        If it is anything else; the error says what.
    LedgerError
        If it is a stand-in for a guard that is not here; the error says where the guard is.
    """
    if isinstance(guard, guard_class()):
        return
    if isinstance(guard, AbsentGuard):
        raise guard.why()
    if hasattr(type(guard), "evaluate"):  # looked up on the type: a class itself is no guard
        raise InputError(
            f"a guard asked about models must have its rows here; got {type(guard).__name__}, a guard elsewhere that "
            "takes predictions; nothing was fitted and nothing was asked; predict, and ask about the predictions"
        )
    came = f"the class {guard.__name__}" if isinstance(guard, type) else type(guard).__name__
    raise InputError(
        f"guard must be a ReusableHoldout; got {came}; nothing was fitted and nothing was asked; make one with "
        "ReusableHoldout(X, y, ...)"
    )


class Handle(NamedTuple):
    """The place of a guard: it can be opened on this machine, or wherever its paths and its server can be reached.

    A password in the ledger's URL does not travel: each machine takes its own from ``~/.pgpass`` or ``PGPASSWORD``. The
    private files are the same on all machines, in a shared folder.
    """

    ledger: str  # SQLite file, or URL of a server
    key_file: str
    holdout_file: str
    view_file: str = ""  # what another metric of the rows needs
    epoch: int | None = None  # None: the last one

    def __repr__(self) -> str:
        where = "a server" if _is_url(self.ledger) else self.ledger
        return f"<Handle: ledger on {where}, holdout in {self.holdout_file}>"

    @sealed
    def open(self) -> Any:
        """Return the guard of this handle: the one that is open in this process, or a new one.

        Raises HandleError or LedgerKeyError if holdout or key cannot be read here; LedgerError if the ledger cannot.
        """
        files = (self.holdout_file,) if _is_url(self.ledger) else (self.ledger, self.holdout_file)
        state = (os.getpid(), *map(file_identity, files))
        opened_with, guard = _OPEN.get(self, ((), None))
        if guard is not None and opened_with == state and not guard.closed:
            return guard
        guard = self._opened_view() if self.view_file else self._opened()
        guard._handle = self  # pickled again, the guard gives the same handle
        _OPEN.pop(self, None)
        _OPEN[self] = (state, guard)
        for old in list(_OPEN)[:-_MOST_OPEN]:  # not closed, for another thread may use it
            _OPEN.pop(old, None)
        return guard

    def of_view(self, view: int, contents: dict[str, Any]) -> Handle:
        """Return the handle of another metric of the rows, after writing its private file."""
        file = Path(f"{self.holdout_file}.view{view}")
        write_private(file, contents)
        return self._replace(view_file=str(file))

    def _opened(self) -> Any:
        contents = read_private(Path(self.holdout_file))
        rows = Rows(
            Owned(contents["X"]),  # mapped, and shared by all processes
            Owned(contents["y"]),
            classes=contents["classes"],
            sample_weight=contents["sample_weight"],
            groups=contents["groups"],
        )
        guard = guard_class().open(self.ledger, rows, metric=contents["metric"], key=Path(self.key_file))
        if self.epoch is not None and self.epoch != guard.epoch:  # these rows were given another plan
            guard.close()
            raise refusal("rotated", epoch=self.epoch, latest=guard.epoch)
        return guard

    def _opened_view(self) -> Any:
        contents = read_private(Path(self.view_file))
        guard = self._replace(view_file="").open()
        for rows in contents.pop("added", ()):
            guard = guard.extend(rows)
        return guard.on(**contents)


class UnreachableGuard(AbsentGuard):
    """A stand-in for a guard whose handle could not be opened here; when it is asked, it raises the reason."""

    def __init__(self, handle: Handle, error: HoldoutError) -> None:
        self._handle, self._error = handle, error

    def __reduce__(self) -> tuple[Any, ...]:
        return arrive, (self._handle,)

    def __repr__(self) -> str:
        return f"<UnreachableGuard: {self._error}>"

    def why(self) -> HoldoutError:
        """Return the error that was raised when the guard was opened."""
        return self._error.with_traceback(None)


def arrive(handle: Handle) -> Any:
    """Return the guard of a handle that was unpickled.

    A worker that fails while it unpickles a task dies without a message. So a guard that cannot be opened is replaced
    by an object that raises the error when it is asked.
    """
    write_to_the_end()
    try:
        return handle.open()
    except HoldoutError as error:
        return UnreachableGuard(handle, error)


_MOST_OPEN = 16  # each holds files and memory
# Guards with the process and files they were opened with: workers unpickle the guard with every task.
_OPEN: dict[Handle, tuple[tuple[object, ...], Any]] = {}


def make_handle(ledger: Ledger, key_file: Path | None, contents: dict[str, Any], *, epoch: int = 1) -> Handle:
    """Write the holdout next to a SQLite ledger, or next to the key of a ledger on a server; return the handle.

    One key file serves one guard, and each of the ledger's holdouts has a file of its own. Raises HandleError if other
    processes could not find the budget or the key, or the holdout cannot be written.
    """
    if ledger.url is None:
        raise HandleError(
            "a guard that goes to other processes must keep its budget where they can share it; this one keeps it in "
            'memory; give it a file or a server: ReusableHoldout(..., ledger="guard.db")'
        )
    if key_file is None:
        raise HandleError(
            "a guard that goes to other processes must have its key in a file; this one was given bytes; pass "
            "key=Path(...)"
        )
    beside = (ledger.path or key_file).absolute()
    name = beside.name if epoch == 1 else f"{beside.name}.{epoch}"
    holdout_file = beside.with_name(f"{name}.holdout")
    write_private(holdout_file, contents)
    place = str(ledger.path or without_password(ledger.url))
    return Handle(place, str(key_file.absolute()), str(holdout_file), epoch=epoch)


def write_private(path: Path, contents: dict[str, Any]) -> None:
    """Write the holdout with :func:`joblib.dump`, all or nothing, to a file that only its owner can read.

    Processes that have an earlier file of this name mapped keep that one. Raises HandleError if something in it cannot
    be pickled, such as a metric made of a lambda, or the file cannot be written.
    """
    import joblib  # noqa: PLC0415 - not needed by guards that stay in their process

    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        # an array in a list would get a mapping of its own, and a process has at most 65,530
        written = {
            name: pickle.dumps(part) if isinstance(part, list | tuple) else part
            for name, part in contents.items()
        }
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            joblib.dump(written, file, protocol=5)
        temporary.replace(path)
    except (pickle.PicklingError, AttributeError, TypeError, OSError):
        raise HandleError(
            f"a guard that goes to other processes must be able to write its holdout to {path}; writing failed; use a "
            "folder you can write to, and a metric made of importable functions"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)  # also when interrupted: it holds private data


def read_private(path: Path) -> dict[str, Any]:
    """Return the content that :func:`write_private` wrote; arrays are mapped read-only, shared by all processes.

    Content that joblib does not map is loaded: text, objects, polars frames, lists of rows. Raises LedgerKeyError if
    the file is missing or others can read or change it; HandleError if it cannot be read.
    """
    try:
        status = path.stat()
    except OSError:
        raise LedgerKeyError(
            f"the holdout of this handle must lie in {path}; it was not found; open the guard with its data instead"
        ) from None
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise LedgerKeyError(
            f"only its owner may read {path}; got mode {status.st_mode & 0o777:o}; chmod 600 it"
        )
    try:
        contents = _mapped(path)
    except Exception:  # unpickling can raise anything, and its message may quote the file
        raise HandleError(
            f"{path} must hold the holdout that a guard wrote, and the module of a metric of your own must be "
            "importable here; it cannot be read, and may be of another version of the library; open the guard with its "
            "data instead, a gate with --labels"
        ) from None
    return {name: pickle.loads(part) if type(part) is bytes else part for name, part in contents.items()}  # noqa: S301 - a private file of this user


def _mapped(path: Path) -> dict[str, Any]:
    import joblib  # noqa: PLC0415

    contents: dict[str, Any]
    try:
        contents = joblib.load(path, mmap_mode="r")
    except OSError:  # a file system that cannot map files: a copy for each process
        contents = joblib.load(path)
    return contents


def _is_url(ledger: str) -> bool:
    return "://" in ledger


# ---- guards that were deployed

# Guards of this process that were pickled in it, by their names.
_HERE: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def remember(guard: Any) -> None:
    """Note that a guard is open in this process, for :func:`guard_here`."""
    _HERE[guard.__guard_name__()] = guard


def frozen_guard(guard: Any, certificate: FrozenCertificate) -> FrozenGuard:
    """Return the frozen guard that a file gets in the guard's place.

    Parameters
    ----------
    guard : ReusableHoldout or FrozenGuard
    certificate : FrozenCertificate
        Certificate that the file carries.
    """
    if isinstance(guard, FrozenGuard):
        return guard
    remember(guard)
    return FrozenGuard(guard.__guard_name__(), certificate.to_json())


def guard_here(guard: Any) -> Any:
    """Return the guard that a frozen guard stands for, if it is open in this process; else the given object."""
    return _HERE.get(guard.name, guard) if isinstance(guard, FrozenGuard) else guard
