"""The unit of a metric: its own values, and those in [0, 1], where greater is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from reusable_holdout.metrics import Definition

__all__ = ["Unit"]


class Unit(NamedTuple):
    """Bounds of a metric, or of differences of it, and whether a larger value is better."""

    lower: float
    upper: float
    greater_is_better: bool

    @classmethod
    def of(cls, metric: Definition | Mapping[str, Any], *, paired: bool = False) -> Self:
        """Return the unit of a metric, or of its description in a ledger."""
        facts = (
            metric
            if isinstance(metric, Mapping)
            else vars(metric) | {"lower": metric.lower, "upper": metric.upper}
        )
        greater = metric["greater_is_better"] if isinstance(metric, Mapping) else metric.greater_is_better
        lower, upper = float(facts["lower"]), float(facts["upper"])
        return cls(lower - upper, upper - lower, greater) if paired else cls(lower, upper, greater)

    @property
    def span(self) -> float:
        """Range of the values."""
        return self.upper - self.lower

    @property
    def is_plain(self) -> bool:
        """True if values are their own units."""
        return self.greater_is_better and self.lower == 0.0 and self.upper == 1.0

    def unit(self, value: float) -> float:
        """Return a value in [0, 1]."""
        if self.is_plain:
            return value
        return (value - self.lower if self.greater_is_better else self.upper - value) / self.span

    def own(self, unit: float) -> float:
        """Return the metric's own value, without the digits below the noise grid."""
        if self.is_plain:
            return unit
        value = self.lower + unit * self.span if self.greater_is_better else self.upper - unit * self.span
        digits = math.ceil(9.0 - math.log10(self.span))
        return min(max(round(value, digits), self.lower), self.upper)

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval in the metric's own unit, the lower first."""
        if self.is_plain:
            return low, high
        if self.greater_is_better:
            return self.lower + low * self.span, self.lower + high * self.span
        return self.upper - high * self.span, self.upper - low * self.span
