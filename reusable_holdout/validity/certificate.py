"""The certificate: which interval an answer may carry, and how far a prior may stray before it is corrected.

Everything here is a function of public numbers: the plan's, the prior's and the released transcript's. Anyone who holds
the ledger can recompute it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.mechanisms.calibration import Calibration
from reusable_holdout.validity.transcript_code import PLANNED_NATS_PER_CHARGE, TranscriptCode, ValueCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout.mechanisms.calibration import GuardMechanism
    from reusable_holdout.validity.confidence import ConfidenceBound
    from reusable_holdout.validity.paired import PairedBound

__all__ = ["Certificate", "Interval", "NoiseTails", "nice_step"]

NOISE_BETA = 0.05
"""Share of the failure probability that pays for the mechanism's own noise; the transcript code has the rest."""

_QUERY_BETA, _THRESHOLD_BETA, _ANSWER_BETA = 0.8 * NOISE_BETA, 0.1 * NOISE_BETA, 0.1 * NOISE_BETA

GRID_SLACK = 8.0 * 2.0**-32
"""Bounds all rounding to the noise grid (statistic, losses, prior, threshold, tails); fraction of the range."""

_GRID_ROUNDING = 1e-6  # of a grid step

_GRID_OF_THRESHOLD = 4.0 / 3.0
"""Steps of the derived answer grid are at most this many thresholds, and at least three quarters of that.

A coarser one would cost less, but a charged answer's interval would reach beyond the tolerance more often where a prior
near the metric's bound is far off: its threshold is larger than that of the value which is told.
"""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)

_AGREED_SHARE = 0.8
"""Share of a question's failure probability on each side of an agreed answer's interval; see `Certificate`."""

Numbers = float | NDArray[np.float64]


class Interval(NamedTuple):
    """Lower and upper end, in the metric's unit."""

    low: Numbers
    high: Numbers


def nice_step(most: float, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> float:
    """Largest 1, 2 or 5 times a power of ten that is not above a number; other leading digits may be named.

    Examples
    --------
    >>> nice_step(0.037)
    0.02
    """
    power = 10.0 ** math.floor(math.log10(most))
    return float(f"{max(step for step in steps if step * power <= most * (1 + 1e-9)) * power:.12g}")


@dataclass(frozen=True)
class NoiseTails:
    """How far the mechanism's noise reaches, in units of the plan's noise scale, all questions at once.

    With probability at least ``1 - 0.05 beta`` no comparison is off by more than ``comparison`` and no charged value by
    more than ``answer``.

    Notes
    -----
    A comparison's noise, one-sided, K times; the threshold's noise, one-sided, once for each time it is drawn; a
    charged value's noise, two-sided, C times. Under target charging one noise is all three: two-sided, K times. Each
    question's noise is drawn after the question is chosen, so a plain union over indices is enough: no tree.
    """

    queries: int
    charges: int
    beta: float
    mechanism: GuardMechanism = "numeric-sparse"

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration(self.mechanism, self.charges)

    @property
    def comparison(self) -> float:
        """Reach of query noise minus threshold noise, in units of the noise scale."""
        threshold, query, _ = self._calibration.scales
        if self._calibration.releases_the_comparison:
            return query * math.log(self.queries / (NOISE_BETA * self.beta))
        reach = query * math.log(self.queries / (2.0 * _QUERY_BETA * self.beta))
        if not threshold:
            return reach
        draws = self._calibration.threshold_draws
        return reach + threshold * math.log(draws / (2.0 * _THRESHOLD_BETA * self.beta))

    @property
    def answer(self) -> float:
        """Reach of the noise of a charged value, in units of the noise scale."""
        if self._calibration.releases_the_comparison:
            return self.comparison
        return self._calibration.scales[2] * math.log(max(1, self.charges) / (_ANSWER_BETA * self.beta))


@dataclass(frozen=True)
class Certificate:
    """Intervals and thresholds of one plan, valid for all adaptively chosen questions at once.

    With probability at least ``1 - beta`` every interval returned for an answer contains the population value.

    Parameters
    ----------
    bound : ConfidenceBound or PairedBound
        The confidence bound of the statistic, normalised to [0, 1].
    queries, charges : int
        Declared questions K and affordable charges C.
    beta : float
        Failure probability of everything together, in (0, 1).
    noise_scale : float
        The plan's, in the metric's unit.
    resolution : float or None
        Step of the answer grid, in the metric's unit; None for one that follows the threshold in force.
    lower, upper : float
        Bounds of the metric.
    tolerance : float
        In the metric's unit; thresholds are as large as it allows.
    fixed_threshold : float or None
        A threshold stated by the user instead, in the metric's unit.
    least_threshold : float
        No derived threshold goes below this, in the metric's unit.
    greater_is_better : bool
        Whether a larger metric is better.
    mechanism : {"numeric-sparse", "standard-svt", "target-charging", "noiseless"}
        What the guard runs on.

    Notes
    -----
    A node of weight w has ``0.95 beta w``. Of this an agreed answer's interval spends 0.8 on *each* side, a charged
    one's 0.2. Take a node: question, prior a, threshold T and description length are fixed, and with them both ends of
    the agreed interval, so the population value q lies beyond one of them at most. Say above the upper end (below the
    lower one it is the same with the sides exchanged, in between less can go wrong), and write v for the holdout's
    value. The answer misses if it is

    - agreed: then ``v <= a + T + t``, so q lies above the upper bound of v at 0.8;
    - charged and too low: then q lies above the upper bound of v at 0.2, hence above that at 0.8, so both together
      have probability at most 0.8 of the node's;
    - charged and too high: then q lies below the lower bound of v at 0.2: at most 0.2 of the node's.

    Policies that look one way only (`direction` is not 0) have a half for each, as two-sided intervals do.
    """

    bound: ConfidenceBound | PairedBound
    queries: int
    charges: int
    beta: float
    noise_scale: float
    resolution: float | None
    lower: float
    upper: float
    tolerance: float
    fixed_threshold: float | None
    least_threshold: float
    greater_is_better: bool = True
    mechanism: GuardMechanism = "numeric-sparse"

    @property
    def span(self) -> float:
        """Range of the metric."""
        return self.upper - self.lower

    @cached_property
    def code(self) -> TranscriptCode:
        """The transcript code of the declared numbers of questions and charges."""
        return TranscriptCode(queries=self.queries, charges=max(1, self.charges))

    @cached_property
    def tails(self) -> NoiseTails:
        """Reach of the mechanism's noise."""
        return NoiseTails(
            queries=self.queries, charges=self.charges, beta=self.beta, mechanism=self.mechanism
        )

    @cached_property
    def comparison_tail(self) -> float:
        """Reach of the comparison's noise and rounding; fraction of the metric's range."""
        return self.tails.comparison * self.noise_scale / self.span + GRID_SLACK

    def resolution_at(self, threshold: float) -> float:
        """Step of the answer grid at a question of the given threshold, in the metric's unit.

        Rounding to it keeps a charged answer within two thirds of the threshold of the holdout's value, and no finer
        step would be worth its description length. So a charged answer keeps the tolerance as an agreed one does, but
        where its prior had a larger threshold than its value would have.
        """
        if self.resolution is not None:
            return self.resolution
        if not threshold > 0.0:  # in no ledger but a forged one
            threshold = 0.0
        return nice_step(
            max(min(_GRID_OF_THRESHOLD * threshold, self.span / 2.0), GRID_SLACK * self.span), _STEPS
        )

    def answer_reach(self, threshold: Numbers) -> Numbers:
        """Reach of a charged value's noise and rounding to the answer grid; fraction of the metric's range."""
        noise = self.tails.answer * self.noise_scale
        return (noise + self._steps(threshold) / 2.0) / self.span + GRID_SLACK

    def _steps(self, threshold: Numbers) -> Numbers:
        """Steps of the answer grid at each threshold."""
        if isinstance(threshold, np.ndarray):
            different, places = np.unique(threshold, return_inverse=True)
            return np.array([self.resolution_at(each) for each in different.tolist()])[places]
        return self.resolution_at(threshold)

    def log_level(self, length: Numbers) -> Numbers:
        """Log of half the failure probability spent at a node of the given description length."""
        return math.log((1.0 - NOISE_BETA) * self.beta / 2.0) - length

    def agreed_level(self, length: Numbers) -> Numbers:
        """Log failure probability of each side of an agreed answer's interval."""
        return self.log_level(length) + (0.0 if self.direction else math.log(2.0 * _AGREED_SHARE))

    def charged_level(self, length: Numbers) -> Numbers:
        """Log failure probability of each side of a charged answer's interval."""
        return self.log_level(length) + (0.0 if self.direction else math.log(2.0 * (1.0 - _AGREED_SHARE)))

    def last_length(self, *, charges: int, nats: float) -> float:
        """Description length of the last declared question, should no further charge happen."""
        return self.code.length(query=self.queries, charges=charges, nats=nats)

    @cached_property
    def planned_nats(self) -> float:
        """Nats set aside for a charged value, or what two stated thresholds cost if a finer grid makes it more."""
        if self.fixed_threshold is None or not self.resolution:
            return PLANNED_NATS_PER_CHARGE
        low = 2.0 * self.fixed_threshold - self.resolution / 2.0
        return max(PLANNED_NATS_PER_CHARGE, ValueCode(self.fixed_threshold).nats(low, low + self.resolution))

    def planned(self, charges: int) -> float:
        """Nats set aside for so many charged values together."""
        return self.planned_nats * charges

    @cached_property
    def affordable_length(self) -> float:
        """Description length at which the plan's promise ends: the dearest state before the last charge."""
        last = max(0, self.charges - 1)
        # with more charges than half the questions the last positions cost less than some before
        first = last if last < self.queries // 2 else 0
        return max(
            self.last_length(charges=charges, nats=self.planned(charges))
            for charges in range(first, last + 1)
        )

    def charges_left(self, *, charges: int, nats: float) -> int:
        """Charges still affordable after ``charges`` charges whose values cost ``nats``; at 0 the guard halts."""
        for left in range(min(self.charges, self.queries) - charges, 0, -1):
            ahead = left - 1
            length = self.last_length(charges=charges + ahead, nats=nats + self.planned_nats * ahead)
            if length <= self.affordable_length + 1e-9:
                return left
        return 0

    def half_width(self, *, query: int, charges: int, estimate: float) -> float:
        """Half-width of an agreed answer's confidence bound alone around ``estimate``, in the metric's unit."""
        length = self.code.length(query=query, charges=charges, nats=PLANNED_NATS_PER_CHARGE * charges)
        level = self.agreed_level(length)
        value = self._unit(estimate)
        width = self.bound.upper(value, log_level=level) - self.bound.lower(value, log_level=level)
        return float(width) * self.span / 2.0

    def threshold(self, prior: Numbers, *, charges: int, nats: float) -> Numbers:
        """Largest deviation that may go uncorrected at this prior, in the metric's unit.

        An agreed answer is then within the tolerance of the population value, up to the plan's ``estimate``.

        Notes
        -----
        The largest T such that ``[lower(a - T - t), upper(a + T + t)]`` stays within ``a +- tolerance``, with the
        confidence bound taken at the last declared question: so T changes only when a charge is made.
        """
        if self.fixed_threshold is not None:
            return (
                np.full_like(prior, self.fixed_threshold)
                if isinstance(prior, np.ndarray)
                else self.fixed_threshold
            )
        return self.threshold_of_length(prior, self.last_length(charges=charges, nats=nats))

    def threshold_of_length(
        self, prior: Numbers, length: float, *, tolerance: float | None = None, least: float | None = None
    ) -> Numbers:
        """Largest deviation that may go uncorrected at a description length; see :meth:`threshold`.

        Another tolerance and another least threshold may be named than the plan's.
        """
        level = self.agreed_level(length)
        value = self._unit(prior)
        tolerance = (self.tolerance if tolerance is None else tolerance) / self.span
        least = self.least_threshold if least is None else least
        below = value - self.bound.reach_low(value - tolerance, log_level=level)
        above = self.bound.reach_high(value + tolerance, log_level=level) - value
        room = np.minimum(np.minimum(below, above), 1.0) - self.comparison_tail
        threshold = np.maximum(room * self.span, least)
        return threshold if isinstance(prior, np.ndarray) else float(threshold)

    def agreed(self, prior: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of an answer that is the prior itself."""
        reach = threshold / self.span + self.comparison_tail
        return self._around(prior, reach, length, level=self.agreed_level(length))

    def charged(self, value: Numbers, threshold: Numbers, length: Numbers) -> Interval:
        """Interval of an answer that is a fresh holdout value."""
        return self._around(value, self.answer_reach(threshold), length, level=self.charged_level(length))

    def rounded(self, noisy: float, prior: float, threshold: float) -> float:
        """Value that is released for a noisy score: the nearest one on the answer grid."""
        step = self.resolution_at(threshold)
        return self._tidy(self.lower + round((noisy - self.lower) / step) * step)

    def is_answer(self, value: float, *, prior: float, threshold: float) -> bool:
        """Whether a charged value can have been released."""
        cells = (value - self.lower) / self.resolution_at(threshold)
        return value == self.upper or abs(cells - round(cells)) <= _GRID_ROUNDING

    def failed_value(self, prior: float) -> float:
        """Value recorded for a question that failed on the holdout: the worst there is."""
        return self.lower if self.greater_is_better else self.upper

    @property
    def direction(self) -> int:
        """Which deviations are charged: both."""
        return 0

    @property
    def start(self) -> float:
        """Released value before the first question: none."""
        return math.nan

    def value_code(self, *, prior: float, threshold: float) -> ValueCode:
        """Code of a charged value at a question of the given prior and threshold."""
        below, above = prior - self.lower > threshold, self.upper - prior > threshold
        if below == above:
            return ValueCode(threshold)
        return ValueCode(threshold, overfitting=1.0 if below == self.greater_is_better else 0.0)

    def value_nats(self, value: float, *, prior: float, threshold: float) -> float:
        """Description length of a charged value on the answer grid."""
        step = self.resolution_at(threshold)
        cell, last = round((value - self.lower) / step), round(self.span / step)
        centre = self.lower + cell * step
        low = -math.inf if cell <= 0 else centre - step / 2.0 - prior
        high = math.inf if cell >= last else centre + step / 2.0 - prior
        if self.greater_is_better:
            low, high = -high, -low
        return self.value_code(prior=prior, threshold=threshold).nats(low, high)

    def _around(
        self, centre: Numbers, reach: Numbers, length: Numbers, *, level: Numbers | None = None
    ) -> Interval:
        level, value = self.log_level(length) if level is None else level, self._unit(centre)
        low = self.lower + self.bound.lower(value - reach, log_level=level) * self.span
        high = self.lower + self.bound.upper(value + reach, log_level=level) * self.span
        if isinstance(
            low, np.ndarray
        ):  # an answer is in its own interval, even where no score lies within reach
            return Interval(np.minimum(low, centre), np.maximum(high, centre))
        return Interval(min(low, centre), max(high, centre))

    def _tidy(self, value: float) -> float:
        """Hide 0.30000000000000004, far below the noise grid, and stay within the bounds."""
        digits = 12 - math.ceil(math.log10(self.span))
        return min(max(round(value, digits), self.lower), self.upper)

    def _unit(self, value: Numbers) -> Numbers:
        return (value - self.lower) / self.span
