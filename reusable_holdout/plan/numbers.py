"""Checks of stated numbers: what must hold, what came."""

from __future__ import annotations

import math

from reusable_holdout.errors import InputError

__all__ = ["check_real", "check_whole", "checked_bounds"]


def checked_bounds(bounds: object) -> tuple[float, float]:
    """Two finite numbers, the lower first."""
    try:
        lower, upper = (float(end) for end in bounds)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        lower = upper = math.nan
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise InputError(f"bounds must be two finite numbers, the lower first; got {bounds!r}")
    return lower, upper


def check_whole(name: str, value: object, most: int) -> None:
    """Refuse what is neither None nor a whole number from 1 to `most`."""
    if value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= value.__index__() <= most:
        raise InputError(f"{name} must be a whole number from 1 to {most:,}; got {value!r}")


def check_real(
    name: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is neither None nor a finite number within the limits."""
    if value is None:
        return
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, str | bool) or not (
        math.isfinite(number) and least <= number <= most and above < number < below
    ):
        low = f"[{least:g}" if least > above else f"({above:g}"
        high = f"{most:g}]" if most < below else f"{below:g})"
        raise InputError(f"{name} must be a number in {low}, {high}; got {value!r}")
