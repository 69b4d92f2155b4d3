"""Warnings and hints about probable slips of callers; their words are in `misfits`."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from reusable_holdout import misfits

__all__ = ["checked_call", "percentage", "warn"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def checked_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that arguments which it does not take raise an InputError that says which it takes.

    A correct call costs nothing: the arguments are examined only after a TypeError.
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


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Issue a warning that points to the line outside this library from which the library was called."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - Python 3.12 has skip_file_prefixes
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("contextlib", "reusable_holdout")
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def percentage(number: float, *, most: float) -> str:
    """Return a hint if a number beyond a limit of about 1 is probably a percentage; else an empty text.

    >>> percentage(90.0, most=1.0)
    '; a percentage? write 0.9'
    """
    return f"; a percentage? write {number / 100.0:g}" if most < number <= 100.0 and most <= 2.0 else ""
