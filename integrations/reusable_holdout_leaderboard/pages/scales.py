"""Scales of drawings, with round ticks.

All positions are in percent of a drawing's width or height, so that SVG attributes alone can draw it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Bar", "Scale", "Tick", "scale_of"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MARGIN = 0.04


class Tick(NamedTuple):
    """A mark of a scale: its label, and its place in percent."""

    label: str
    at: float


class Bar(NamedTuple):
    """An interval and its value on a scale, in percent of its width."""

    low: float
    width: float
    at: float


class Scale(NamedTuple):
    """The range of values that the width of a drawing shows."""

    low: float  # value at its left end
    high: float  # at its right end
    ticks: list[Tick]

    def at(self, value: float) -> float:
        """Return the place of a value in percent; a value outside the drawing is moved to its edge."""
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 3)

    def bar(self, low: float, high: float, value: float) -> Bar:
        """Return the place of an interval and its value; an end outside the drawing is moved to its edge."""
        left, right = self.at(low), self.at(high)
        return Bar(left, round(right - left, 3), self.at(value))


def scale_of(values: Iterable[float], *, lower: float, upper: float, most_ticks: int = 5) -> Scale:
    """Return a scale that shows all values or interval ends, with round ticks, within the metric's range.

    >>> scale = scale_of([0.71, 0.93], lower=0.0, upper=1.0)
    >>> [tick.label for tick in scale.ticks], scale.at(0.71)
    (['0.75', '0.80', '0.85', '0.90'], 3.704)
    """
    shown = list(values)
    low, high = (min(shown), max(shown)) if shown else (lower, upper)
    if high - low < (upper - lower) * 1e-9:
        low, high = low - (upper - lower) / 20, high + (upper - lower) / 20
    margin = (high - low) * _MARGIN
    low, high = max(lower, low - margin), min(upper, high + margin)
    step = _step((high - low) / most_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) + (1 if _is_quarter(step) else 0)
    scale = Scale(low, high, [])
    marks = [number * step for number in range(first, last + 1)]
    return scale._replace(ticks=[Tick(f"{mark:.{digits}f}", scale.at(mark)) for mark in marks])


def _step(least: float) -> float:
    """Return the smallest round number of at least this size."""
    power = 10.0 ** math.floor(math.log10(least))
    return power * next(one for one in _STEPS if one * power >= least * (1 - 1e-9))


def _is_quarter(step: float) -> bool:
    return math.isclose(step / 10.0 ** math.floor(math.log10(step) + 1e-9), 2.5)
