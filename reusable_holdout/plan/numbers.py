"""Checks of stated numbers: what must hold, what came."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.slips import closest, percentage

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "bisected",
    "checked_bounds",
    "checked_exam",
    "choice",
    "exam_count",
    "largest",
    "real",
    "real_or_none",
    "round_up",
    "whole",
    "whole_or_none",
    "wholes",
]


def checked_bounds(bounds: object) -> tuple[float, float]:
    """Two finite numbers, the lower first."""
    try:
        lower, upper = (float(end) for end in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        lower = upper = math.nan
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise InputError(f"bounds must be two finite numbers, the lower first; got {bounds!r}")
    return lower, upper


def choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of those allowed."""
    if value not in allowed:
        near = closest(value, allowed) if isinstance(value, str) else None
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"{name} is one of {', '.join(allowed)}; got {value!r}{hint}")


def whole_or_none(name: str, value: object, most: int, *, least: int = 1) -> int | None:
    """None, or a whole number from `least` to `most`, as an int whatever type it came in."""
    if value is None:
        return None
    fits = hasattr(value, "__index__") and not isinstance(value, bool | np.bool_ | np.ndarray)
    number = value.__index__() if fits else least - 1  # type: ignore[attr-defined]
    if not least <= number <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most:,}; got {value!r}")
    return int(number)


def checked_exam(exam: object) -> float:
    """A share of the rows in (0, 0.5], or a whole number of them; 0 for None."""
    if exam is None:
        return 0.0
    try:
        if isinstance(exam, float | np.floating):
            return real("exam", exam, above=0.0, most=0.5)
        return float(whole_or_none("exam", exam, 10**12) or 0)
    except InputError:
        raise InputError(
            f"exam must be a share of the rows, a float in (0, 0.5], or their number, from 1; got {exam!r}"
        ) from None


def exam_count(exam: float, units: int) -> int:
    """How many of so many rows, or groups, an exam keeps that :func:`checked_exam` gave."""
    return math.ceil(exam * units) if exam < 1 else int(exam)


def whole(name: str, value: object) -> int:
    """Whole number of at least 1."""
    number = whole_or_none(name, value, 10**12)
    if number is None:
        raise InputError(f"{name} must be a whole number of at least 1; got None")
    return number


def wholes(name: str, values: object) -> tuple[int, ...]:
    """Several whole numbers of at least 1, in a sequence or array; none for None."""
    if values is None:
        return ()
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputError(f"{name} must be several whole numbers, such as [20, 100]; got {values!r}")
    return tuple(whole(name, value) for value in values)


def real_or_none(name: str, value: object, **limits: float) -> float | None:
    """None, or a number within the limits of :func:`real`."""
    return None if value is None else real(name, value, **limits)


def real(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Finite number within the limits, as a float whatever type it came in."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes | bool | np.bool_) or not (
        math.isfinite(number) and least <= number <= most and above < number < below
    ):
        low = f"[{least:g}" if least > above else f"({above:g}"
        high = f"{most:g}]" if most < below else f"{below:g})"
        hint = percentage(number, most=min(most, below))
        raise InputError(f"{name} must be a number in {low}, {high}; got {value!r}{hint}")
    return number


def round_up(value: float, digits: int = 3) -> float:
    """Round a positive number up to so many significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")


def largest(holds: Callable[[int], bool], most: int, least: int = 1) -> int | None:
    """Largest whole number in [least, most] at which a condition holds that fails from some number on."""
    if least > most or not holds(least):
        return None
    kept, step = least, 1
    while kept + step <= most and holds(kept + step):
        kept, step = kept + step, 2 * step
    refused = min(kept + step, most + 1)
    while refused - kept > 1:
        middle = (kept + refused) // 2
        if holds(middle):
            kept = middle
        else:
            refused = middle
    return kept


def bisected(
    holds: Callable[[float], bool],
    *,
    kept: float,
    refused: float,
    accuracy: float = 0.0,
    relative: float = 0.0,
) -> float:
    """Number at which a condition still holds, found between one where it does and one where it does not.

    It fails within so much of that: an accuracy, and a fraction of what is found.
    """
    while abs(kept - refused) > accuracy + relative * kept:
        middle = (kept + refused) / 2.0
        if holds(middle):
            kept = middle
        else:
            refused = middle
    return kept
