"""The stated numbers of a plan, which of their combinations can be kept, and the search for the missing one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from reusable_holdout.validity import (
    Certificate,
    ConfidenceBound,
    NoiseTails,
    PairedBound,
    Policy,
    certificate_of,
)
from reusable_holdout.validity.one_sided import parameter_free_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.mechanisms.calibration import GuardMechanism

__all__ = ["MOST_QUERIES", "MOST_ROWS", "Family", "MechanismChoice", "Wish", "round_up"]

MOST_ROWS = 10**12
MOST_QUERIES = 10**12

_NOISE_SHARE = 0.1  # of the tolerance: the reach of the comparison's noise, when the scale is derived
_FIXED_NOISE_SHARE = 0.25  # of the threshold, when the threshold is stated
_SLACK = 1e-9  # a tolerance that was derived must pass when it is stated

Family: TypeAlias = Literal["binomial", "bounded", "bounded-difference", "paired"]
MechanismChoice: TypeAlias = Literal[
    "numeric-sparse", "standard-svt", "target-charging", "noiseless", "tightest"
]


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Numbers of a plan in units of the metric's range; what was not stated is None.

    A wish *holds* when, up to the state before the last charge, every agreed answer at `estimate` is within the
    tolerance of the population value, with a threshold that is not below one standard deviation of an honest
    deviation (a smaller one would charge every third honest question).
    """

    rows: int | None
    queries: int | None
    charges: int | None
    tolerance: float | None
    threshold: float | None
    noise_scale: float | None
    resolution: float | None
    beta: float
    estimate: float
    family: Family
    influence: float
    variation: float
    disagreement: float
    mechanism: GuardMechanism
    policy: Policy

    def deviation_sd(self, rows: int) -> float:
        """Standard deviation of holdout value minus an honest prior that comes from as many rows."""
        if self.family == "bounded-difference":
            variance = (
                self.variation / 4.0
            )  # Efron and Stein: at most a quarter of the sum of squared differences
        elif self.family == "paired":
            variance = self.disagreement / 4.0
        else:
            variance = self.estimate * (1.0 - self.estimate)
        return math.sqrt(2.0 * max(variance, 1.0 / rows) / rows)

    def fixed_threshold(self, rows: int) -> float | None:
        """Threshold that does not follow from the tolerance: a stated one, or that of a policy which has its own."""
        return parameter_free_step(rows) if self.policy == "parameter-free-ladder" else self.threshold

    def scale(self, *, tolerance: float, queries: int, charges: int) -> float:
        """Noise scale: the stated one, or one whose reach is a small share of what it disturbs."""
        if self.mechanism == "noiseless":
            return 0.0
        if self.noise_scale is not None:
            return self.noise_scale
        tails = NoiseTails(queries=queries, charges=charges, beta=self.beta, mechanism=self.mechanism)
        room = _FIXED_NOISE_SHARE * self.threshold if self.threshold else _NOISE_SHARE * tolerance
        return room / tails.comparison

    def certificate(
        self,
        *,
        rows: int,
        queries: int,
        charges: int,
        tolerance: float,
        resolution: float | None = None,
        least_threshold: float = -math.inf,
    ) -> Certificate:
        """Certificate of a metric with bounds 0 and 1."""
        certificate = Certificate(
            bound=self._bound(rows),
            queries=queries,
            charges=charges,
            beta=self.beta,
            noise_scale=self.scale(tolerance=tolerance, queries=queries, charges=charges),
            resolution=resolution,
            lower=0.0,
            upper=1.0,
            tolerance=tolerance,
            fixed_threshold=self.threshold,
            least_threshold=least_threshold,
            mechanism=self.mechanism,
        )
        return certificate_of(self.policy, certificate)

    def _bound(self, rows: int) -> ConfidenceBound | PairedBound:
        if self.family == "paired":
            return PairedBound(rows=rows, disagreement=self.disagreement)
        return ConfidenceBound(self.family, rows=rows, sum_of_squares=self.variation / rows)

    def reach(self, *, rows: int, queries: int, charges: int, tolerance: float) -> float:
        """Farthest end of an agreed answer's interval at `estimate`, under a threshold that stays as it is."""
        certificate = self.certificate(
            rows=rows,
            queries=queries,
            charges=charges,
            tolerance=tolerance,
            resolution=self.resolution,
        )
        fixed = self.fixed_threshold(rows)
        threshold = math.nan if fixed is None else fixed
        # both ends, also of a policy that leaves one open: which one depends on the metric
        low, high = Certificate.agreed(certificate, self.estimate, threshold, certificate.affordable_length)
        return float(max(self.estimate - low, high - self.estimate))

    def holds(self, *, rows: int, queries: int, charges: int, tolerance: float) -> bool:
        """Whether these four numbers can be kept together."""
        if not 1 <= charges <= queries or tolerance <= 0.0:
            return False
        if self.fixed_threshold(rows) is not None:
            reach = self.reach(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
            return reach <= tolerance + _SLACK
        certificate = self.certificate(rows=rows, queries=queries, charges=charges, tolerance=tolerance)
        threshold = certificate.threshold_of_length(self.estimate, certificate.affordable_length)
        return bool(threshold >= self.deviation_sd(rows))

    def most_charges(self, *, rows: int, queries: int, tolerance: float) -> int | None:
        """Largest number of charges that holds, or None."""
        return _largest(
            lambda charges: self.holds(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            queries,
        )

    def most_queries(self, *, rows: int, charges: int, tolerance: float) -> int | None:
        """Largest number of queries that holds, or None."""
        return _largest(
            lambda queries: self.holds(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            MOST_QUERIES,
            least=charges,
        )

    def least_rows(self, *, queries: int, charges: int, tolerance: float) -> int | None:
        """Smallest number of rows that holds, or None."""
        refused = _largest(
            lambda rows: not self.holds(rows=rows, queries=queries, charges=charges, tolerance=tolerance),
            MOST_ROWS,
        )
        if refused is None:
            return 1
        return refused + 1 if refused < MOST_ROWS else None

    def least_tolerance(self, *, rows: int, queries: int, charges: int) -> float | None:
        """Smallest tolerance that holds, rounded up to three digits, or None if not even the whole range does."""
        if charges > queries:
            return None
        if self.fixed_threshold(rows) is not None:
            return round_up(self.reach(rows=rows, queries=queries, charges=charges, tolerance=1.0))
        if not self.holds(rows=rows, queries=queries, charges=charges, tolerance=2.0):
            return None
        refused, kept = 0.0, 2.0
        while kept - refused > 1e-5 * kept:
            middle = (refused + kept) / 2.0
            if self.holds(rows=rows, queries=queries, charges=charges, tolerance=middle):
                kept = middle
            else:
                refused = middle
        return round_up(kept)


def round_up(value: float, digits: int = 3) -> float:
    """Round a positive number up to so many significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.12g}")


def _largest(holds: Callable[[int], bool], most: int, least: int = 1) -> int | None:
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
