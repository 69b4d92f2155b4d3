"""Checks of ratios, such as an F: the rows give a confidence set, and what is told is a public interval around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.guard.kinds.evidence import EvidenceCheck, EvidenceGate, EvidenceGuessAndCheck
from reusable_holdout.guard.kinds.kind import AGREED, FAILED, Outcome
from reusable_holdout.guard.kinds.samples import ratio_sample, sample_of
from reusable_holdout.validity import SPANS, Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.kind import Terms
    from reusable_holdout.mechanisms import GuardCore
    from reusable_holdout.queries import BoundMetric

__all__ = ["RatioCheck", "RatioGate", "RatioGuessAndCheck"]


class RatioCheck(EvidenceCheck):
    """Agree with the analyst's own estimate where the rows certify it within the tolerance; else tell where they lie.

    Notes
    -----
    How far one row moves a ratio has no public bound, and neither has how far the holdout's lies from the population's:
    both follow from rows that the model chooses. So nothing rests on the ratio's value. A charge tells the first of
    some public intervals around the prior that holds the whole confidence set of the rows, each side at the level of a
    charge. There is no noise.
    """

    # ---- code and interval

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "failed", or "span" and its place."""
        if told in {AGREED, FAILED}:
            return super().outcome(told, terms)
        word, _, place = told.partition(" ")
        if word != "span" or not place.isdecimal() or int(place) >= len(SPANS.spans):
            raise self.unknown(told)
        span = SPANS.spans[int(place)]
        value = terms.prior + self.certificate.better * span.told * terms.threshold
        return Outcome(f"span {int(place)}", self.certificate.tidy(value), True, SPANS.nats[int(place)])

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the population value: the tolerance around the prior, or the one that was told."""
        if outcome.told in {AGREED, FAILED}:
            return super().interval(outcome, terms, length)
        return self._span(int(outcome.told.split()[1]), terms)

    def _span(self, place: int, terms: Terms) -> Interval:
        certificate, span = self.certificate, SPANS.spans[place]
        ends = sorted(
            terms.prior + certificate.better * end * terms.threshold for end in (span.low, span.high)
        )
        return Interval(max(ends[0], certificate.lower), min(ends[1], certificate.upper))

    # ---- rule

    def measured(self, bound: BoundMetric, prepared: NDArray[np.generic]) -> NDArray[np.int64]:
        """Sample of each question, packed; shape (queries, numbers)."""
        return np.stack([sample_of(bound, query).packed() for query in prepared])

    def weighed(
        self,
        bound: BoundMetric,
        measured: NDArray[np.int64],
        priors: NDArray[np.float64],
        tolerances: NDArray[np.float64] | None,
    ) -> NDArray[np.int64]:
        """The same: what a sample says of a prior depends on the state, too."""
        return measured

    def scored(
        self,
        bound: BoundMetric,
        prepared: NDArray[np.generic],
        priors: NDArray[np.float64],
        tolerances: NDArray[np.float64] | None,
    ) -> NDArray[np.int64]:
        """Samples of all questions at once, for they are short."""
        return self.measured(bound, prepared)

    def _deviates(
        self,
        mechanism: GuardCore,
        measured: int | NDArray[np.int64],
        terms: Terms,
        question: bytes,
        length: float,
    ) -> bool:
        excess = self._excess_of(measured, terms.prior, terms.threshold, length)
        return mechanism.deviates(excess, 0, 0, question)

    def _compared(
        self,
        measured: NDArray[np.int64],
        priors: NDArray[np.float64],
        thresholds: NDArray[np.float64],
        length: float,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        each = zip(measured, priors.tolist(), thresholds.tolist(), strict=True)
        excess = np.array([self._excess_of(*one, length) for one in each], dtype=np.int64)
        none = np.zeros(len(excess), dtype=np.int64)
        return excess, none, none

    def _excess_of(
        self, measured: int | NDArray[np.int64], prior: float, threshold: float, length: float
    ) -> int:
        """What is charged if it is 0 or more: 0 where the rows do not certify the answer, else -1."""
        return -int(self._certified(measured, prior, 2.0 * threshold, length))

    def _certified(
        self, measured: int | NDArray[np.int64], prior: float, tolerance: float, length: float
    ) -> bool:
        nats = -float(self.certificate.log_level(length, self.certificate.shares.agreed))
        return ratio_sample(np.asarray(measured)).certifies(self._evidence(prior, tolerance), nats)

    def _charge(
        self,
        mechanism: GuardCore,
        measured: int | NDArray[np.int64],
        terms: Terms,
        question: bytes,
        length: float,
    ) -> Outcome:
        certificate = self.certificate
        nats = -float(certificate.log_level(length, certificate.shares.charged))
        ends = ratio_sample(np.asarray(measured)).ends(certificate.evidence_set(nats, terms.prior))
        slack = certificate.grid_slack
        low = max(certificate.lower + ends[0] * certificate.span - slack, certificate.lower)
        high = min(certificate.lower + ends[1] * certificate.span + slack, certificate.upper)
        around = [self._span(place, terms) for place in range(len(SPANS.spans))]
        place = next(place for place, span in enumerate(around) if span.low <= low and high <= span.high)
        return self.outcome(f"span {place}", terms)


class RatioGuessAndCheck(RatioCheck, EvidenceGuessAndCheck):
    """The same, within the tolerance that is named for each question."""


class RatioGate(RatioCheck, EvidenceGate):
    """Say whether a ratio is at least what was named, and certified to within the tolerance; nothing else.

    A "no" bounds nothing: the rows may have been too few to tell.
    """

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name, a gate's."""
        return EvidenceGate.outcome(self, told, terms)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of what was accepted, open to the good side; of what was rejected all there is."""
        return EvidenceGate.interval(self, outcome, terms, length)

    def _rejected(self, prior: float, tolerance: float, length: float) -> Interval:
        return Interval(self.certificate.lower, self.certificate.upper)

    def _excess_of(
        self, measured: int | NDArray[np.int64], prior: float, threshold: float, length: float
    ) -> int:
        """What is accepted if it is 0 or more: 0 where the score is as named and certified, else -1."""
        reached = self.certificate.better * (self._score(measured) - self.grid_unit(prior)) >= 0
        tolerance = threshold or self.certificate.tolerance  # a guardrail is asked without terms
        return 0 if reached and self._certified(measured, prior, tolerance, length) else -1

    def _charge(
        self,
        mechanism: GuardCore,
        measured: int | NDArray[np.int64],
        terms: Terms,
        question: bytes,
        length: float,
    ) -> Outcome:
        return EvidenceGate._charge(self, mechanism, measured, terms, question, length)

    def _score(self, measured: int | NDArray[np.int64]) -> int:
        return ratio_sample(np.asarray(measured)).score
