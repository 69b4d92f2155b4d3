"""The frozen guard in a deployed model, and its replacement by the open guard where there is one.

A pickled guard is a handle: it has the places of ledger, key and holdout, and a worker opens it. A fitted search is
deployed, so it is pickled with a frozen certificate instead of the guard; the certificate holds no path.
"""

from __future__ import annotations

import weakref
from typing import Any

from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.handle import FrozenGuard

__all__ = ["frozen_guard", "guard_here", "remember"]

_HERE: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Guards of this process that were pickled in it, by their names."""


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
    """Return the guard of a frozen one, if it is open in this process; else the given object."""
    return _HERE.get(guard.name, guard) if isinstance(guard, FrozenGuard) else guard
