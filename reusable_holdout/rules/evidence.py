"""The rule by evidence: a question is agreed if and only if its rows certify it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Evidence, EvidenceRows, Interval, worst_rows
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.rules import Compared, Distance, Floats, Integers, terms_of

_SCORE, _EVIDENCE, _UNITS = range(3)  # columns of the numbers that decisions use
_CERTAIN = 1 << 60  # evidence where both ends lie beyond the bounds


class WithinTolerance(Distance, ABC):
    """The base of rules that agree only if the rows certify a value within the tolerance of the prior."""

    by_rows: ClassVar[bool] = True

    def tolerances(self, stated: Floats | None, beyond: Floats, length: float) -> Floats:
        """Return the stated tolerances, or those that keep the thresholds at this description length.

        A gate that certifies the named value has no tolerance: the nats of evidence that it needs are returned instead.
        """
        if self.certifies:
            return np.full(len(beyond), self.certificate.needed(length, self.certificate.shares.charged))
        if stated is not None:
            return stated
        return np.array([self.certificate.tolerance_at(length, one) for one in beyond.tolist()])

    def units(
        self, priors: Floats, charges: int, nats: float, tolerances: Floats | None, beyond: Floats
    ) -> Floats:
        """Return the unit of the cells: half the tolerance; for a gate the tolerance."""
        own = np.full(len(priors), self.certificate.tolerance) if tolerances is None else tolerances
        if self.certifies:
            return np.zeros(len(priors))
        return own if self.gate else own / 2.0

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if rows that all equal the prior could certify it now, for any noise within its reach.

        A gate keeps any tolerance: a smaller tolerance only makes it harder to accept.
        """
        if self.gate:
            return True
        evidence = self._evidence(prior, tolerance)
        found = evidence.of(EvidenceRows(np.array([prior]), np.array([float(self.certificate.bound.rows)])))
        # the comparison allows for the noise's reach, and the noise may lower the evidence as far again
        needed = self.certificate.evidence_needed(evidence, length) + self.certificate.evidence_tail(evidence)
        return found >= needed * (1.0 + 1e-9)

    def agreed(self, priors: Floats | float, units: Floats | float, length: float) -> Interval:
        """Return the interval of the prior plus and minus the tolerance."""
        return Interval(np.maximum(priors - 2.0 * units, 0.0), np.minimum(priors + 2.0 * units, 1.0))

    def _step(self, unit: float) -> float:
        return unit

    def accepted(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval from the prior, less the tolerance if there is one, upwards."""
        return Interval(max(prior - unit, 0.0), 1.0)

    @abstractmethod
    def measured(self, bound: BoundMetric, query: NDArray[Any]) -> Integers:
        """Return the measurement of one question's rows."""

    def measured_many(self, bound: BoundMetric, prepared: NDArray[Any]) -> Integers:
        """Return the measurements of several questions, all of one length."""
        return np.stack([self.measured(bound, query) for query in prepared])

    def _evidence(self, prior: float, tolerance: float) -> Evidence:
        return self.certificate.evidence(prior, tolerance, "low" if self.gate else "both")


class ByEvidence(WithinTolerance):
    """The rule that agrees if the rows' evidence certifies the prior within the tolerance, else releases a cell.

    Agreement is the only outcome that uses the evidence, so the deciding set may depend on the rows in any way. Its
    width follows the spread of this metric on these rows, which nobody declares. The sparse vector's noise acts on the
    evidence, in units of the largest change by one row. The cells of a charge are half tolerances. The nearest cells
    begin at the prior itself, because rows that deviate little from it may still be charged if they spread much. See
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSSB 86.

    A gate's "yes" needs evidence that the population value is at least the named value; a "no" says nothing. Before the
    fourth edition a "yes" certified the named value less the tolerance, and a "no" an upper bound, because rows of 0
    and 1 have the least evidence of all rows with their mean. The score's excess and the evidence's were each counted
    in units of the largest change by one row, so the lesser of the two, which decided, had the sensitivity of one.
    """

    def rejected(self, prior: float, unit: float, length: float) -> Interval:
        """Return all values, or those up to a bound that holds even for rows of 0 and 1, whose evidence is least."""
        if self.certifies:
            return Interval(0.0, 1.0)
        certificate, evidence = self.certificate, self._evidence(prior, unit)
        # the comparison allows for the noise's reach, and the noise may have lowered the evidence as far again
        needed = certificate.evidence_needed(evidence, length) + certificate.evidence_tail(evidence)
        reach = evidence.reach(needed, lambda mean: worst_rows(mean, certificate.bound.rows), above=False)
        value = prior + max(certificate.comparison_tail, -reach)
        if not 0.0 <= value <= 1.0:  # infinite where no evidence would do
            return Interval(0.0, 1.0)
        _, high = certificate.around(value, value, length=length, share=certificate.shares.agreed)
        return Interval(0.0, high)

    def _cell(self, place: int, prior: float, unit: float) -> tuple[float, float]:
        near, far = super()._cell(place, prior, unit)
        return (prior if self._code.cells[place].near <= 1.0 else near), far

    def reached(self, place: int, prior: float, unit: float) -> tuple[float, float]:
        """Return the ends of the holdout's possible values for a released cell, including the reach of the noise."""
        near, far = self._cell(place, prior, unit)
        tail = self.certificate.answer_tail
        return min(near, far) - tail, max(near, far) + tail

    # ---- private

    def measured(self, bound: BoundMetric, query: NDArray[Any]) -> Integers:
        """Return the score, and the term that each row adds to it; shape (1 + rows,)."""
        return terms_of(bound, query)

    def weighed(
        self, bound: BoundMetric, measured: Integers, priors: Floats, tolerances: Floats | None
    ) -> Integers:
        """Return the score, the evidence and its units per nat, of each question; shape (questions, 3).

        One row changes the evidence by at most as many of its units as it changes the score in units of the grid.
        """
        found = np.empty((len(measured), 3), dtype=np.int64)
        if tolerances is None and self.certifies:
            tolerances = self.tolerances(
                None, np.zeros(len(priors)), self.certificate.length(charges=0, nats=0.0)
            )
        limits = [self.certificate.tolerance] * len(priors) if tolerances is None else tolerances.tolist()
        for row, prior, limit, into in zip(measured, priors.tolist(), limits, found, strict=True):
            named = self.certificate.named_evidence if self.certifies else self._evidence
            evidence = named(prior, limit)
            change = evidence.sensitivity
            # 0 if no row can change the evidence, or a nat is less than a unit
            units = math.floor(self.certificate.sensitivity / change * GRID) if change else 0
            nats = evidence.of_rows(row[1:] / GRID, bound.relative_weights)
            into[:] = row[0], _CERTAIN if math.isinf(nats) else min(math.floor(nats * units), _CERTAIN), units
        return found

    def compared(
        self, weighed: Integers, named: Integers, priors: Floats, units: Floats, length: float
    ) -> Compared:
        """Compare the missing evidence with 0: a question is charged if it is 0 or more.

        For a gate it is the evidence above the needed nats; before the fourth edition, the lesser of this and the
        score's excess over the named value.
        """
        nats = self.certificate.needed(length, self.certificate.shares.agreed)
        tail = self.certificate.comparison_tail * GRID
        needed = np.ceil(nats * weighed[:, _UNITS] + tail).astype(np.int64) + 1
        excess: Integers = needed - weighed[:, _EVIDENCE]
        if self.gate:
            excess = -excess if self.certifies else np.minimum(weighed[:, _SCORE] - named, -excess)
        return Compared(excess, np.zeros(len(weighed), dtype=np.int64))
