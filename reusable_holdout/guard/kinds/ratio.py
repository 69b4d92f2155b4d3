"""Checks of ratios, such as an F: the rows give a confidence set, and what is told is a public interval around it."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from reusable_holdout.certainty import Interval, SpanCode
from reusable_holdout.guard.kinds import AGREED, FAILED, Floats, Integers, Outcome, Posed, Prepared, Terms
from reusable_holdout.guard.kinds.evidence import AnyTolerance, GateWithinTolerance, WithinTolerance
from reusable_holdout.guard.kinds.samples import RatioSample, ratio_sample, sample_of
from reusable_holdout.metrics import BoundMetric
from reusable_holdout.noise import GuardCore

__all__ = ["RatioCheck", "RatioGate", "RatioGuessAndCheck"]


class _BySample(WithinTolerance):
    """Decide by what each question's rows certify, without noise."""

    def measured(self, bound: BoundMetric, prepared: Prepared) -> Integers:
        """Sample of each question, packed; shape (queries, numbers)."""
        return np.stack([sample_of(bound, query).packed() for query in prepared])

    @abstractmethod
    def _charged(self, sample: RatioSample, terms: Terms, length: float) -> bool:
        """Whether a question is charged."""

    def _certified(self, sample: RatioSample, prior: float, tolerance: float, length: float) -> bool:
        nats = -float(self.certificate.log_level(length, self.certificate.shares.agreed))
        left = self.certificate.evidence_set(nats, prior)
        return sample.certifies(self._evidence(prior, tolerance), left)

    def _excess(self, measured: Integers, priors: Floats, thresholds: Floats, length: float) -> Integers:
        """0 of the first that is charged; without noise nobody looks at those after it."""
        excess = np.full(len(measured), -1)
        for place, terms in enumerate(map(Terms, priors.tolist(), thresholds.tolist())):
            if self._charged(ratio_sample(measured[place]), terms, length):
                excess[place] = 0
                break
        return excess

    def _score(self, measured: int | Integers) -> int:
        return ratio_sample(np.asarray(measured)).score


class RatioCheck(_BySample):
    """Agree with the analyst's own estimate where the rows certify it within the tolerance; else tell where they lie.

    How far one row moves a ratio has no public bound, and neither has how far the holdout's lies from the population's:
    both follow from rows that the model chooses. So nothing rests on the ratio's value. A charge tells the first of
    some public intervals around the prior that holds the whole confidence set of the rows, each side at the level of a
    charge. There is no noise.
    """

    # ---- code and interval

    @property
    def spans(self) -> SpanCode:
        """Spans of a charge."""
        return self.certificate.theory.spans

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "agreed", "failed", or "span" and its place."""
        if told in {AGREED, FAILED}:
            outcome = super().outcome(told, terms)
            return outcome if told == AGREED else outcome._replace(nats=self.spans.failure_nats)
        place = self.numbered(told, "span", range(len(self.spans.spans)))
        value = terms.prior + self.certificate.better * self.spans.spans[place].told * terms.threshold
        return Outcome(f"span {place}", self.certificate.tidy(value), True, self.spans.nats[place])

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the population value: the tolerance around the prior, or the one that was told."""
        if outcome.told in {AGREED, FAILED}:
            return super().interval(outcome, terms, length)
        return self._span(int(outcome.told.split()[1]), terms)

    def _span(self, place: int, terms: Terms) -> Interval:
        certificate, span = self.certificate, self.spans.spans[place]
        ends = [terms.prior + certificate.better * end * terms.threshold for end in (span.low, span.high)]
        return Interval(max(min(ends), certificate.lower), min(max(ends), certificate.upper))

    # ---- rule

    def _charged(self, sample: RatioSample, terms: Terms, length: float) -> bool:
        return not self._certified(sample, terms.prior, 2.0 * terms.threshold, length)

    def _charge(self, mechanism: GuardCore, measured: int | Integers, posed: Posed) -> Outcome:
        certificate, terms = self.certificate, posed.terms
        nats = -float(certificate.log_level(posed.length, certificate.shares.charged))
        rows = certificate.evidence_set(nats, terms.prior)
        low, high = certificate.left_by(ratio_sample(np.asarray(measured)).ends(rows))
        around = [self._span(place, terms) for place in range(len(self.spans.spans))]
        place = next(place for place, span in enumerate(around) if span.low <= low and high <= span.high)
        return self.outcome(f"span {place}", terms)


class RatioGuessAndCheck(AnyTolerance, RatioCheck):
    """A check of a ratio, within the tolerance that is named for each question."""

    name: ClassVar[str] = "guess-and-check"


class RatioGate(_BySample, GateWithinTolerance):
    """Say whether a ratio is at least what was named, and certified to within the tolerance; nothing else.

    A "no" bounds nothing: the rows may have been too few to tell.
    """

    def _rejected(self, prior: float, tolerance: float, length: float) -> Interval:
        return self.all_values

    def _charged(self, sample: RatioSample, terms: Terms, length: float) -> bool:
        reached = self.certificate.better * (sample.score - self.grid_unit(terms.prior)) >= 0
        return reached and self._certified(sample, terms.prior, terms.threshold, length)
