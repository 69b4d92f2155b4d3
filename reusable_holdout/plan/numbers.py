"""Checks of stated numbers: what must hold, what came."""

from __future__ import annotations

import math

import numpy as np

from reusable_holdout.errors import InputError

__all__ = ["checked_bounds", "choice", "real", "real_or_none", "whole_or_none"]


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
        raise InputError(f"{name} is one of {', '.join(allowed)}; got {value!r}")


def whole_or_none(name: str, value: object, most: int) -> int | None:
    """None, or a whole number from 1 to `most`, as an int whatever type it came in."""
    if value is None:
        return None
    fits = hasattr(value, "__index__") and not isinstance(value, bool | np.bool_ | np.ndarray)
    number = value.__index__() if fits else 0  # type: ignore[attr-defined]
    if not 1 <= number <= most:
        raise InputError(f"{name} must be a whole number from 1 to {most:,}; got {value!r}")
    return int(number)


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
        raise InputError(f"{name} must be a number in {low}, {high}; got {value!r}")
    return number
