"""Plan: what can be promised, computed from the wish before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from reusable_holdout.accounting import optimal_composition
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.mechanisms import expected_null_charges
from reusable_holdout.validity import (
    Certificate,
    ConfidenceBound,
    NoiseTails,
    fixed_queries_half_width,
    sample_splitting_half_width,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Plan"]

_NOISE_SHARE = 0.1  # of the tolerance: the reach of the comparison's noise under a derived noise scale
_FIXED_NOISE_SHARE = 0.25  # of the threshold, when the threshold is stated
_MOST_ROWS = 10**12
_SLACK = 1e-9

Family = Literal["binomial", "bounded", "bounded-difference"]


@dataclass(frozen=True)
class _Wish:
    """The stated numbers in units of the metric's range; ``None`` is what the plan has to find."""

    rows: int | None
    queries: int | None
    charges: int | None
    tolerance: float | None
    threshold: float | None
    noise_scale: float | None
    beta: float
    estimate: float
    family: Family
    influence: float
    variation: float

    def scale(self, *, tolerance: float, queries: int, charges: int) -> float:
        if self.noise_scale is not None:
            return self.noise_scale
        tails = NoiseTails(queries=queries, charges=charges, beta=self.beta)
        if self.threshold is not None:
            return _FIXED_NOISE_SHARE * self.threshold / tails.comparison
        return _NOISE_SHARE * tolerance / tails.comparison

    def deviation_sd(self, rows: int) -> float:
        """Standard deviation of holdout value minus prior for an honest prior from as many rows."""
        variance = self.variation / 4.0 if self.family == "bounded-difference" else self.estimate * (1.0 - self.estimate)
        return math.sqrt(2.0 * variance / rows)

    def least_threshold(self, rows: int) -> float:
        """Below one standard deviation of honest deviations a threshold charges every third honest question."""
        return self.deviation_sd(rows)

    def certificate(self, *, rows: int, queries: int, charges: int, tolerance: float) -> Certificate:
        least = self.least_threshold(rows)
        return Certificate(
            bound=ConfidenceBound(self.family, rows=rows, sum_of_squares=self.variation / rows),
            queries=queries,
            charges=charges,
            beta=self.beta,
            noise_scale=self.scale(tolerance=tolerance, queries=queries, charges=charges),
            resolution=0.0,
            lower=0.0,
            upper=1.0,
            tolerance=tolerance,
            fixed_threshold=self.threshold,
            least_threshold=-math.inf,
        ), least

    def holds(self, *, rows: int, queries: int, charges: int, tolerance: float) -> bool:
        """Whether the tolerance leaves room for a useful threshold up to the last charge."""
        if charges < 1 or charges > queries or tolerance <= 0.0:
            return False
        certificate, least = self.certificate(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
        length = certificate.affordable_length
        if self.threshold is None:
            nats = 3.0 * (charges - 1)
            return bool(certificate.threshold(self.estimate, charges=charges - 1, nats=nats) >= least)
        low, high = certificate.agreed(self.estimate, self.threshold, length)
        return max(self.estimate - low, high - self.estimate) <= tolerance + _SLACK
