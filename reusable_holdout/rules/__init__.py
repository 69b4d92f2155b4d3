"""The rules that pick the outcome of a check or a gate from the rows.

The metric and the noise of a plan determine its rule, which never changes. A rule has a public half and a private half.
The public half says how far the population value can be from an outcome; verification uses nothing else. The private
half measures the rows outside the ledger's lock, and compares inside it.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Certificate, Interval, ThresholdTable
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.ways import CELL, FAILED, Told

__all__ = [
    "Compared",
    "Distance",
    "Floats",
    "Integers",
    "cell_ends",
    "difference",
    "score_of",
    "terms_of",
]

_BEYOND_NOISE = 1e6  # a score that no noisy value reaches

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Compared(NamedTuple):
    """The numbers that the sparse vector compares, on the grid; each of shape (questions,)."""

    deviations: Integers
    limits: Integers


# ---- oriented so that greater is better


def score_of(bound: BoundMetric, prepared: NDArray[Any]) -> Integers:
    """Return the score of each question on the grid; raises ModelError if a metric of the owner's own fails."""
    scores = bound.score(prepared)
    return scores if bound.metric.greater_is_better else GRID - scores


def terms_of(bound: BoundMetric, query: NDArray[Any]) -> Integers:
    """Return the score of one question, and the terms of its rows; shape (1 + rows,)."""
    terms = bound.row_terms(query)
    found = np.concatenate([[bound.score_of_terms(terms)], terms])
    return found if bound.metric.greater_is_better else GRID - found


def difference(new: Integers, old: Integers) -> Integers:
    """Return the difference of two models' measurements on the grid, mapped to [0, 1]."""
    return np.asarray((new - old + GRID) >> 1)


class Distance:
    """The rule that compares the score with the prior; the other rules inherit from it what they do not override.

    Releases are (epsilon, delta)-differentially private as the plan states. The intervals are valid by the transcript
    code, for any noise. A charged deviation is released as a cell, with noise of its own. See Dwork, Feldman, Hardt,
    Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349, and "Generalization in Adaptive Data Analysis
    and Holdout Reuse", Figure 1.

    Parameters
    ----------
    certificate : Certificate
        The plan's certificate of checks, or of gates.
    gate : bool
        True for the rule of gates, which bound one side only.
    """

    #: True if the rows of a question are measured, and not its score alone.
    by_rows: ClassVar[bool] = False

    def __init__(self, certificate: Certificate, *, gate: bool = False) -> None:
        self.certificate, self.gate = certificate, gate
        self.certifies = gate and certificate.theory.gates_certify  # the named value itself, not one near it
        is_fixed = certificate.decides == "distance" and certificate.fixed_threshold is not None
        #: True if a question may state a tolerance of its own; it may not if the threshold is fixed.
        self.takes_tolerances = not (self.certifies or is_fixed)
        self._code = certificate.theory.charge
        self.table = lru_cache(maxsize=4)(partial(ThresholdTable, certificate))

    # ---- public

    def tolerances(self, stated: Floats | None, beyond: Floats, length: float) -> Floats | None:
        """Return the tolerance of each question at a description length; None where a threshold alone decides.

        `beyond` is what the standard error of each prior adds to the plan's; see Certificate.constant_threshold.
        """
        return stated

    def units(
        self, priors: Floats, charges: int, nats: float, tolerances: Floats | None, beyond: Floats
    ) -> Floats:
        """Return the unit of each question's outcomes: its threshold.

        In a batch, an earlier charge may have made the question's own tolerance too narrow to keep. A refusal then
        would reveal that charge and take it back. So the least threshold is used instead, and the interval says how
        wide it has become.
        """
        if tolerances is None:
            if self.certificate.is_constant:
                return np.asarray(self.certificate.constant_threshold(priors, beyond))
            return self.table(charges=charges, nats=nats).at_each(priors)
        length = self.certificate.length(charges=charges, nats=nats)
        each = zip(priors.tolist(), tolerances.tolist(), strict=True)
        exact = np.array([self._exact(prior, limit, length) for prior, limit in each])
        return np.asarray(np.maximum(exact, self.certificate.least_threshold))

    def unit(
        self, prior: float, charges: int, nats: float, tolerance: float | None, beyond: float = 0.0
    ) -> float:
        """Return the unit of one question's outcomes."""
        own = None if tolerance is None else np.array([tolerance])
        return float(self.units(np.array([prior]), charges, nats, own, np.array([beyond]))[0])

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if an answer whose history costs this many nats (its description length) can keep a tolerance."""
        return self._exact(prior, tolerance, length) >= self.certificate.least_threshold

    def _exact(self, prior: float, tolerance: float, length: float) -> float:
        least = -math.inf
        return float(self.certificate.threshold_of_length(prior, length, tolerance=tolerance, least=least))

    def agreed(self, priors: Floats | float, units: Floats | float, length: float) -> Interval:
        """Return the intervals of checks that were not charged, around all values within threshold and noise."""
        return self._around(
            priors, units + self.certificate.comparison_tail, length, self.certificate.shares.agreed
        )

    def accepted(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of an accepted gate: from the named value, or from the bound that it certifies, to 1."""
        if self.certifies:
            return Interval(prior, 1.0)
        share = self.certificate.shares.charged
        low, _ = self._around(prior, self.certificate.comparison_tail, length, share)
        return Interval(low, 1.0)

    def rejected(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of a gate that was not accepted: all values, or those up to an upper bound."""
        if self.certifies:
            return Interval(0.0, 1.0)
        _, high = self.agreed(prior, unit, length)
        return Interval(0.0, high)

    def _around(self, priors: Floats | float, reach: Floats | float, length: float, share: float) -> Interval:
        """Return intervals that hold their priors, even where no score lies within reach."""
        low, high = self.certificate.around(priors - reach, priors + reach, length=length, share=share)
        if isinstance(low, np.ndarray):
            return Interval(np.minimum(low, priors), np.maximum(high, priors))
        return Interval(min(low, priors), max(high, priors))

    def cost(self, told: Told) -> float | None:
        """Return the nats of a charge of a check, or of its failure; None if there is no such outcome."""
        if told.word == FAILED:
            return self._code.failure_nats
        fits = told.word == CELL and told.place in range(len(self._code.cells))
        return self._code.nats[told.place] if fits else None  # type: ignore[index]

    def value(self, place: int, prior: float, unit: float) -> float:
        """Return the value that is released with a charge: the middle of the cell, or the near end of an open cell."""
        near, far = self._cell(place, prior, unit)
        return near if math.isinf(self._code.cells[place].far) else (near + far) / 2.0

    def _step(self, unit: float) -> float:
        """Return the unit of the cells: the threshold, or that at `estimate` if larger, as at priors near 0 or 1."""
        return max(unit, self.certificate.threshold_at_estimate)

    def charged(self, place: int, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of the population value after a charge."""
        low, high = self.reached(place, prior, unit)
        return self.certificate.around(low, high, length=length, share=self.certificate.shares.charged)

    def _cell(self, place: int, prior: float, unit: float) -> tuple[float, float]:
        """Return the ends of a cell, the nearest to the prior first."""
        cell, step = self._code.cells[place], self._step(unit)
        near = unit / step if cell.near <= 1.0 else cell.near
        return cell_ends(near, cell.far, cell.side, prior, step)

    def reached(self, place: int, prior: float, unit: float) -> tuple[float, float]:
        """Return the ends of the holdout's possible values for a released cell, including the reach of the noise."""
        tail, cell = self.certificate.answer_tail, self._code.cells[place]
        near, far = self._cell(place, prior, unit)
        if cell.near <= 1.0:  # it is also told if noise has moved the value nearer to the prior
            deviation = unit - self.certificate.comparison_tail
            near = prior - cell.side * (deviation if deviation > tail else -tail)
        else:
            near += cell.side * tail
        far -= cell.side * tail
        return min(near, far), max(near, far)

    # ---- private

    def measured(self, bound: BoundMetric, query: NDArray[Any]) -> Integers:
        """Return the measurement of one question, which does not use its prior; shape (numbers,)."""
        return score_of(bound, query[None])

    def measured_many(self, bound: BoundMetric, prepared: NDArray[Any]) -> Integers:
        """Return the measurements of several questions; shape (questions, numbers)."""
        return score_of(bound, prepared)[:, None]

    def weighed(
        self, bound: BoundMetric, measured: Integers, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """Return the numbers that decisions use, from measurements and priors; shape (questions, numbers)."""
        return measured

    def compared(
        self, weighed: Integers, named: Integers, priors: Floats, units: Floats, length: float
    ) -> Compared:
        """Return the numbers that the sparse vector compares; `named` are the priors on the grid.

        Scores may deviate from priors by the thresholds. A gate counts the better side alone, and a gate that certifies
        compares scores with the least passing scores.
        """
        if self.certifies:
            level = self.certificate.log_level(length, self.certificate.shares.charged)
            each = [float(self.certificate.bound.reach_low(one, log_level=level)) for one in priors.tolist()]
            least = np.array(each) + self.certificate.comparison_tail
            reached = np.ceil(np.clip(least, -1.0, _BEYOND_NOISE) * GRID).astype(np.int64)
            return Compared(weighed[:, 0] - reached, np.zeros(len(reached), dtype=np.int64))
        deviations = weighed[:, 0] - named
        limits = np.floor(units * GRID).astype(np.int64)
        return Compared(deviations if self.gate else np.abs(deviations), limits)

    def score(self, weighed: Integers) -> int:
        """Return the score of one question on the grid, from the numbers that decide it."""
        return int(weighed[0])

    def place(self, weighed: Integers, noisy: float, prior: float, unit: float, length: float) -> Told:
        """Return the cell that a charged check releases, given the noisy value."""
        return Told(CELL, self._code.place((prior - noisy) / self._step(unit)))


def cell_ends(near: float, far: float, side: int, prior: float, unit: float) -> tuple[float, float]:
    """Return the ends of a cell of deviations, in [0, 1]; the overfitting side lies below the prior."""
    return (min(max(prior - side * near * unit, 0.0), 1.0), min(max(prior - side * far * unit, 0.0), 1.0))
