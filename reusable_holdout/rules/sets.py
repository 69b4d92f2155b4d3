"""The rule by confidence sets, for ratios such as an F score: agree if the set lies within the tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import GRID_SLACK, Interval
from reusable_holdout.metrics import BoundMetric
from reusable_holdout.rules import Compared, Floats, Integers
from reusable_holdout.rules.evidence import WithinTolerance
from reusable_holdout.rules.samples import RatioSample, ratio_sample, sample_of
from reusable_holdout.ways import FAILED, SPAN, Told


class BySets(WithinTolerance):
    """The rule that agrees with the prior if the rows' confidence set lies within the tolerance, else releases a span.

    There is no public bound on how far one row moves a ratio, nor on how far the holdout's ratio lies from the
    population's: both depend on rows that the model chooses. So nothing rests on the ratio's value. A charge releases
    the first of some public intervals around the prior that holds the whole confidence set of the rows, each side at
    the level of a charge. There is no noise. A gate's "no" bounds nothing, because the rows may have been too few.
    """

    def rejected(self, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of all values: a "no" bounds nothing."""
        return Interval(0.0, 1.0)

    def cost(self, told: Told) -> float | None:
        """Return the nats of a span, or of a failure."""
        spans = self.certificate.theory.spans
        if told.word == FAILED:
            return spans.failure_nats
        fits = told.word == SPAN and told.place in range(len(spans.spans))
        return spans.nats[told.place] if fits else None  # type: ignore[index]

    def value(self, place: int, prior: float, unit: float) -> float:
        """Return the value that is released with a span."""
        return prior + self.certificate.theory.spans.spans[place].told * unit

    def charged(self, place: int, prior: float, unit: float, length: float) -> Interval:
        """Return the interval of a released span."""
        span = self.certificate.theory.spans.spans[place]
        return Interval(max(prior + span.low * unit, 0.0), min(prior + span.high * unit, 1.0))

    # ---- private

    def measured(self, bound: BoundMetric, query: NDArray[Any]) -> Integers:
        """Return the sample, packed."""
        return sample_of(bound, query).packed()

    def compared(
        self, weighed: Integers, named: Integers, priors: Floats, units: Floats, length: float
    ) -> Compared:
        """Return 0 for the first question that is charged and -1 for the others, to compare with 0, without noise."""
        excess = np.full(len(weighed), -1)
        for place, (prior, unit) in enumerate(zip(priors.tolist(), units.tolist(), strict=True)):
            sample = ratio_sample(weighed[place])
            if self.certifies:
                is_charged = self._reaches(sample, prior, length)
            elif self.gate:
                is_charged = sample.score >= named[place] and self._certified(sample, prior, unit, length)
            else:
                is_charged = not self._certified(sample, prior, 2.0 * unit, length)
            if is_charged:
                excess[place] = 0
                break
        return Compared(excess, np.zeros(len(weighed), dtype=np.int64))

    def _certified(self, sample: RatioSample, prior: float, tolerance: float, length: float) -> bool:
        left = self.certificate.evidence_set(
            self.certificate.needed(length, self.certificate.shares.agreed), prior
        )
        return sample.certifies(self._evidence(prior, tolerance), left)

    def _reaches(self, sample: RatioSample, named: float, length: float) -> bool:
        nats = self.certificate.needed(length, self.certificate.shares.charged)
        return bool(left_by(sample.ends(self.certificate.evidence_set(nats, named))).low >= named)

    def score(self, weighed: Integers) -> int:
        """Return the score of a sample."""
        return ratio_sample(weighed).score

    def place(self, weighed: Integers, noisy: float, prior: float, unit: float, length: float) -> Told:
        """Return the first span that holds the whole confidence set."""
        nats = self.certificate.needed(length, self.certificate.shares.charged)
        low, high = left_by(ratio_sample(weighed).ends(self.certificate.evidence_set(nats, prior)))
        spans = enumerate(self.certificate.theory.spans.spans)
        around = ((place, self.charged(place, prior, unit, length)) for place, _ in spans)
        return Told(SPAN, next(place for place, span in around if span.low <= low and high <= span.high))


def left_by(ends: tuple[float, float]) -> Interval:
    """Return the ends of a set, rounded outwards, in [0, 1]; for an empty set return [0, 1]."""
    if ends[0] > ends[1]:
        return Interval(0.0, 1.0)
    return Interval(max(ends[0] - GRID_SLACK, 0.0), min(ends[1] + GRID_SLACK, 1.0))
