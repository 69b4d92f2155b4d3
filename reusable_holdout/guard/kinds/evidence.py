"""Checks that the rows' evidence decides: agreed if and only if they make it certain enough."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np

from reusable_holdout.certainty import Evidence, EvidenceRows, Interval, worst_rows
from reusable_holdout.guard.kinds import Floats, Integers, Posed, Prepared, State, Terms
from reusable_holdout.guard.kinds.check import Check, OfTwo
from reusable_holdout.guard.kinds.gate import Gate, open_to
from reusable_holdout.guard.kinds.stated import StatedWithTolerance
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.noise import GuardCore

__all__ = [
    "AnyTolerance",
    "EvidenceCheck",
    "EvidenceCompare",
    "EvidenceGate",
    "EvidenceGateCompare",
    "EvidenceGuessAndCheck",
    "GateWithinTolerance",
    "WithinTolerance",
]

_SCORE, _EVIDENCE, _UNITS = range(3)  # columns of what decisions are made on
_CERTAIN = 1 << 60  # evidence where both ends lie beyond the metric's bounds


class WithinTolerance(Check):
    """Checks whose agreed answers are the prior and the tolerance, for the rows themselves say that this holds."""

    measures_rows: ClassVar[bool] = True
    by_table: ClassVar[bool] = False

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Unit of the cells: half the tolerance."""
        return (self.certificate.tolerance if tolerance is None else tolerance) / 2.0

    def agreed(self, priors: Floats | float, thresholds: Floats | float, length: float) -> Interval:
        """The prior and the tolerance, within the bounds."""
        lower, upper = self.certificate.lower, self.certificate.upper
        low, high = priors - 2.0 * thresholds, priors + 2.0 * thresholds
        return Interval(np.maximum(low, lower), np.minimum(high, upper))

    def _evidence(self, prior: float, tolerance: float) -> Evidence:
        return self.certificate.evidence(prior, tolerance)

    def _deviates(self, mechanism: GuardCore, measured: int | Integers, posed: Posed) -> bool:
        prior, threshold = np.array([posed.terms.prior]), np.array([posed.terms.threshold])
        excess = self._excess(np.asarray(measured)[None], prior, threshold, posed.length)
        return mechanism.deviates(int(excess[0]), 0, 0, posed.question)

    def _compared(
        self, measured: Integers, priors: Floats, thresholds: Floats, length: float
    ) -> tuple[Integers, Integers, Integers]:
        none = np.zeros(len(measured), dtype=np.int64)
        return self._excess(measured, priors, thresholds, length), none, none

    @abstractmethod
    def _excess(self, measured: Integers, priors: Floats, thresholds: Floats, length: float) -> Integers:
        """What is charged if it is 0 or more, of each question; shape (queries,)."""

    @property
    def _direction_compared(self) -> int:
        return 1


class EvidenceCheck(WithinTolerance):
    """Agree with the analyst's own estimate where the rows certify it within the tolerance; else tell a cell.

    Only whether it is agreed is told, so the set that decides may depend on the rows in any way: theirs is the spread
    of this metric on these rows, and nothing is declared. The sparse vector's noise acts on the evidence, in units of
    what one row can change of it. The cells of a charge are half tolerances; the nearest begin at the prior itself, for
    what is charged may deviate little and spread much. See Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting", JRSSB 86.
    """

    def _cell(self, place: int, terms: Terms) -> tuple[float, float]:
        near, far = super()._cell(place, terms)
        return (terms.prior if self.code.cells[place].near <= 1.0 else near), far

    def _reached(self, place: int, terms: Terms) -> tuple[float, float]:
        near, far = self._cell(place, terms)
        tail = self.certificate.answer_tail
        return min(near, far) - tail, max(near, far) + tail

    # ---- rule

    def measured(self, bound: BoundMetric, prepared: Prepared) -> Integers:
        """Score of each question on the grid, and the terms of its rows; shape (queries, 1 + rows)."""
        each = [bound.row_terms(query) for query in prepared]
        return np.stack([np.concatenate([[bound.score_of_terms(terms)], terms]) for terms in each])

    def weighed(
        self, bound: BoundMetric, measured: Integers, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """Score, evidence and units to a nat of each question; shape (queries, 3).

        A unit of evidence is what a unit of the score's grid is: one row changes both by as many at most.
        """
        found = np.empty((len(measured), 3), dtype=np.int64)
        limits = [self.certificate.tolerance] * len(priors) if tolerances is None else tolerances.tolist()
        for row, prior, limit, into in zip(measured, priors.tolist(), limits, found, strict=True):
            evidence = self._evidence(prior, limit)
            units = self._units(evidence)
            nats = evidence.of_rows(row[1:] / GRID, bound.relative_weights)
            into[:] = row[0], _CERTAIN if math.isinf(nats) else min(math.floor(nats * units), _CERTAIN), units
        return found

    def scored(
        self, bound: BoundMetric, prepared: Prepared, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """What decisions are made on; one question at a time, for each has as many terms as rows."""
        if len(priors) == 1:
            return super().scored(bound, prepared, priors, tolerances)
        limits: Any = [None] * len(priors) if tolerances is None else tolerances[:, None]
        stated = zip(prepared[:, None], priors[:, None], limits, strict=True)
        return np.concatenate([self.scored(bound, *each) for each in stated])

    def _units(self, evidence: Evidence) -> int:
        """Units of evidence to a nat; 0 where no row can change it, or so many rows each so little that none counts."""
        change = evidence.sensitivity
        return math.floor(self.certificate.sensitivity / change * GRID) if change else 0

    def _excess(self, measured: Integers, priors: Floats, thresholds: Floats, length: float) -> Integers:
        """Evidence that is missing of what is needed at a description length, the noise's reach included; in units."""
        certificate = self.certificate
        nats = -certificate.log_level(length, certificate.shares.agreed)
        tail = certificate.comparison_tail / certificate.span * GRID
        needed: Integers = np.ceil(nats * measured[:, _UNITS] + tail).astype(np.int64) + 1
        return needed - measured[:, _EVIDENCE]

    def _score(self, measured: int | Integers) -> int:
        return int(np.asarray(measured)[_SCORE])


class AnyTolerance(StatedWithTolerance, WithinTolerance):
    """Questions that may state a tolerance: rows that do not certify it are charged."""

    def can_keep(self, prior: float, tolerance: float, state: State) -> bool:
        """Whether rows could certify it now, whatever the noise: such as are all what was stated."""
        certificate = self.certificate
        evidence, length = self._evidence(prior, tolerance), self.length(state)
        alike = np.array([(prior - certificate.lower) / certificate.span])
        found = evidence.of(EvidenceRows(alike, np.array([float(certificate.bound.rows)])))
        needed = certificate.evidence_needed(evidence, length) + certificate.evidence_tail(evidence)
        return found >= needed * (1.0 + 1e-9)


class EvidenceGuessAndCheck(AnyTolerance, EvidenceCheck):
    """A check by evidence, within the tolerance that is named for each question."""

    name: ClassVar[str] = "guess-and-check"


class GateWithinTolerance(Gate, WithinTolerance):
    """Say whether the score is at least what was named, and certified to within the tolerance; nothing else."""

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Tolerance of what was named."""
        return self.certificate.tolerance if tolerance is None else tolerance

    def check_room(self, priors: Floats, tolerances: Floats | None, state: State) -> None:
        """Any tolerance can be kept: the smaller it is, the better must be what is accepted."""

    def accepted(self, prior: float, threshold: float, length: float) -> Interval:
        """Interval of what was accepted: from what was named less the tolerance to the good side."""
        return open_to(self.best, self, WithinTolerance.agreed(self, prior, threshold / 2.0, length))

    def agreed(self, priors: Floats | float, thresholds: Floats | float, length: float) -> Interval:
        """Intervals of what was rejected."""
        low, high = np.vectorize(self._rejected, otypes=[float, float])(priors, thresholds, length)
        return Interval(low, high)

    @abstractmethod
    def _rejected(self, prior: float, tolerance: float, length: float) -> Interval:
        """Interval of what was rejected."""

    def _evidence(self, prior: float, tolerance: float) -> Evidence:
        side: Literal["low", "high"] = "low" if self.certificate.greater_is_better else "high"
        return self.certificate.evidence(prior, tolerance, side)


class EvidenceGate(GateWithinTolerance, EvidenceCheck):
    """Say whether the score is at least what was named, and certified to within the tolerance; nothing else.

    "Yes" bounds the population value by what was named and the tolerance. After a "no" it is bounded from the other
    side: rows of 0 and 1 have the least evidence of all rows with their mean, so the holdout's value is below what was
    named, or below the one at which even those would have had enough. Score and evidence beyond what is needed are
    compared in units of what one row can change of each, so the lesser of them has the sensitivity of one.
    """

    def _rejected(self, prior: float, tolerance: float, length: float) -> Interval:
        certificate, better = self.certificate, self.certificate.greater_is_better
        evidence = self._evidence(prior, tolerance)
        needed = certificate.evidence_needed(evidence, length) + certificate.evidence_tail(evidence)
        reach = evidence.reach(
            needed, lambda mean: worst_rows(mean, certificate.bound.rows), above=not better
        )
        # at most what was named and the noise, or where even zeros and ones had enough; infinite where none would do
        beyond = max(certificate.comparison_tail, -reach * certificate.span)
        value = prior + certificate.better * beyond
        if not certificate.lower <= value <= certificate.upper:
            return self.all_values
        around = certificate.around(value, value, length=length, share=certificate.shares.agreed)
        return open_to(self.worst, self, around)

    def _excess(self, measured: Integers, priors: Floats, thresholds: Floats, length: float) -> Integers:
        """The lesser of score beyond what was named, and evidence beyond need: 0 or more is accepted."""
        beyond = self.certificate.better * (measured[:, _SCORE] - self.grid_units(priors))
        lesser: Integers = np.minimum(beyond, -super()._excess(measured, priors, thresholds, length))
        return lesser


class EvidenceCompare(OfTwo, EvidenceGuessAndCheck):
    """A check of the difference of two models; a tolerance of its own may be named."""

    name: ClassVar[str] = "compare"


class EvidenceGateCompare(OfTwo, EvidenceGate, AnyTolerance):
    """A gate on the difference of two models: whether the new one is better by what was named, within the tolerance."""

    name: ClassVar[str] = "gate-compare"
