"""Whether what an adapter was given is a guard."""

from __future__ import annotations

from reusable_holdout.errors import InputError
from reusable_holdout.guard.guard import ReusableHoldout

__all__ = ["check_is_guard"]


def check_is_guard(guard: object) -> None:
    """Refuse what is no guard, before anything is fitted.

    Raises
    ------
    InputError
        Saying what came.
    """
    if isinstance(guard, ReusableHoldout):
        return
    came = f"the class {guard.__name__}" if isinstance(guard, type) else type(guard).__name__
    raise InputError(
        f"guard must be a ReusableHoldout; got {came}; nothing was fitted and nothing was asked; make one with "
        "ReusableHoldout(X, y, ...)"
    )
