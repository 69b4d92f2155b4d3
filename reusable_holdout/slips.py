"""Slips that are noticed wherever somebody calls us; `misfits` has the words for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from reusable_holdout import misfits

__all__ = ["checked_call", "percentage"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def checked_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments that a function does not take by an InputError that says which it takes.

    A call that fits costs nothing: only after a TypeError is it asked whether the arguments were to blame.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            problem = misfits.misfit(function, args, kwargs)
            if problem is None:
                raise
        del args, kwargs
        raise problem

    return call


def percentage(number: float, *, most: float) -> str:
    """Hint for a number beyond a limit of about 1 that would be within it, were it a percentage; else nothing.

    >>> percentage(90.0, most=1.0)
    '; a percentage? write 0.9'
    """
    return f"; a percentage? write {number / 100.0:g}" if most < number <= 100.0 and most <= 2.0 else ""
