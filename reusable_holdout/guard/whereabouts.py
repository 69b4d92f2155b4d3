"""What a search or a scorer holds of its guard when it is pickled: to a worker where it lies, to a file what it said.

A guard that is pickled itself is a handle, which says where ledger, key and holdout lie. What is deployed must not; and
what goes to a worker must. The same call of pickle makes both, so the two are told apart by who calls it: processes
get what they work on through a few functions, those of `_SENDERS`. Whoever is none of them gets a frozen certificate,
and no path; a worker of an unknown sender says where the guard lives.

Names and registered reductions would not do: Dask calls plain pickle and plain cloudpickle, as one who deploys does,
and workers of another machine have no table in common with this one.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from reusable_holdout.errors import HandleError
from reusable_holdout.guard.absent import AbsentGuard, FrozenGuard
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.handle import Handle, UnreachableGuard, arrive

__all__ = ["ForWorkers", "Whereabouts", "reduced"]

_SENDERS = {
    "distributed.protocol.pickle": "dumps",
    "joblib.externals.loky.backend.reduction": "dumps",
    "joblib.pool": "send",
    "loky.backend.reduction": "dumps",
    "multiprocess.reduction": "dumps",
    "multiprocessing.reduction": "dumps",
    "pyspark.cloudpickle.cloudpickle": "dumps",
    "ray.cloudpickle.cloudpickle": "dumps",
}
"""Functions that pickle for another process, by their modules; a process that starts by `spawn` takes ``dump``."""

_RAISE = {"joblib.pool", "multiprocess.reduction", "multiprocessing.reduction"}
"""Those that raise what pickling raises; the others say that something could not be pickled, and not why."""

_HERE: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Guards of this process that were pickled in it: what is loaded where it was dumped has its guard again."""


class Whereabouts:
    """Stands for a guard in the state of what holds it.

    Parameters
    ----------
    guard : ReusableHoldout, AbsentGuard or Handle
    certificate : FrozenCertificate, optional
        What a file gets; by default, all that the guard has answered about its metric.
    """

    #: By which a fingerprint knows it.
    stands_for_a_guard = True

    def __init__(self, guard: Any, certificate: FrozenCertificate | None = None) -> None:
        self._guard = guard
        self._certificate = certificate

    @property
    def name(self) -> str:
        """Which guard it is; the same in every process."""
        guard: Any = self._guard
        return str(guard.name if isinstance(guard, FrozenGuard) else guard._name)

    def guard(self) -> Any:
        """The guard, if it is open in this process or can be opened; what stands for it, if not."""
        if isinstance(self._guard, Handle):
            return arrive(self._guard)
        if isinstance(self._guard, FrozenGuard):
            return _HERE.get(self._guard.name, self._guard)
        return self._guard

    def __deepcopy__(self, _: object) -> Whereabouts:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        guard: Any = self._guard
        if not isinstance(guard, FrozenGuard | Handle):
            guard = _sent(guard) if _sender() else self._frozen(guard)
        return Whereabouts, (guard,)

    def _frozen(self, guard: Any) -> FrozenGuard:
        frozen = guard.certificate() if self._certificate is None else self._certificate
        name = ""
        if not isinstance(guard, AbsentGuard):
            name = guard._name
            _HERE[name] = guard
        return FrozenGuard(name, frozen.to_json())


class ForWorkers:
    """Something that a worker needs, and nobody who loads a file: training rows, for one.

    Parameters
    ----------
    value : object or None
        None where it was left out.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __deepcopy__(self, _: object) -> ForWorkers:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ForWorkers, (self.value if _sender() else None,)


def reduced(handle_of: Callable[[], Handle]) -> tuple[Any, ...]:
    """Return the pickled form of a guard: its handle.

    If it can have none, the HandleError is raised, or if that would be lost on the way, the worker gets what says it.
    """
    try:
        return arrive, (handle_of(),)
    except HandleError as error:
        if _sender() in {"", *_RAISE}:
            raise
        return UnreachableGuard, (None, error)


def _sent(guard: Any) -> Any:
    """Return what a worker gets of a guard: a handle, or in its place what says why there is none."""
    make, arguments = guard.__reduce__()
    return arguments[0] or make(*arguments)


def _sender() -> str:
    """Return the module of the function that pickles for another process now; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module in _SENDERS and frame.f_code.co_name in {_SENDERS[module], "dump"}:
            return str(module)
        frame = frame.f_back  # type: ignore[assignment]
    return ""
