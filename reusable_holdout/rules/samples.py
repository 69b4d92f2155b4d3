"""The samples on which a question's confidence set rests: a mean's rows, a ratio's counts, or ranks of scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import mul
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import (
    Evidence,
    EvidenceRows,
    EvidenceSet,
    average_precision_interval,
    gains_of_rows,
    matched,
    matthews_interval,
    ratio_interval,
)
from reusable_holdout.metrics import GRID, BoundMetric
from reusable_holdout.metrics.samples import Counted, Explained, Ordered, Ranked, Rates, Ratio
from reusable_holdout.rules import Floats, Integers, terms_of

_COLUMNS = 3  # values, weights, counts


class Sample(ABC):
    """The private measurement of one question."""

    score: int  # on the grid

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @abstractmethod
    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the normalised ends of the confidence set; each fails with probability at most ``exp(-left.nats)``."""

    @abstractmethod
    def packed(self) -> Integers:
        """Return the sample as integers, from which :func:`unpacked` makes it again."""


@dataclass(frozen=True, repr=False)
class MeanSample(Sample):
    """The rows of a mean."""

    score: int
    terms: Integers  # on the grid; shape (rows,)
    weights: NDArray[Any] | None  # as fractions of the largest, the metric's own; shape (rows,)

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of means that the rows' evidence does not exclude."""
        return left.of_rows(self.terms / GRID, self.weights)

    def packed(self) -> Integers:
        """Return the score and the terms."""
        return np.concatenate([[self.score], self.terms])


class RatioSample(Sample):
    """A sample that can decide by itself if it certifies an answer, and that is unpacked without the metric."""

    def packed(self) -> Integers:
        """Return the index in `_KINDS`, the score, and the parts; the length hides how many rows a class has."""
        rest = np.concatenate([np.atleast_1d(part) for part in self._parts()])
        return np.concatenate(
            [[_KINDS.index(type(self)), self.score], np.ascontiguousarray(rest).view(np.int64)]
        )

    @abstractmethod
    def _parts(self) -> Iterable[Any]:
        """Return the numbers to pack after the score: all integers, or all floats, which are packed bit by bit."""

    @classmethod
    @abstractmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample, given its score and the numbers that were packed after it."""

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if its confidence set lies within the tolerance of the named value, on the asked sides."""
        low, high = self.ends(left)
        return (
            low <= high
            and (evidence.sides == "high" or low >= min(evidence.named - evidence.tolerance, 1.0))
            and (evidence.sides == "low" or high <= max(evidence.named + evidence.tolerance, 0.0))
        )


class CountedSample(RatioSample, Counted):
    """Rows of a ratio, of the least of some, or of a mean; see :class:`~reusable_holdout.metrics.samples.Counted`."""

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the weighted means of the parts' ends; each part has an equal share of the failure probability."""
        size = len(self.ratios) // len(self.weights)
        left = replace(left, nats=left.nats + math.log(len(self.weights)))
        parts = [
            _least(self.ratios[start : start + size], left) for start in range(0, len(self.ratios), size)
        ]
        lows, highs = (math.fsum(map(mul, self.weights, ends)) for ends in zip(*parts, strict=True))
        return lows, highs

    def _parts(self) -> Iterable[Any]:
        yield np.array([len(self.weights), *self.weights], dtype=np.float64)
        for one in self.ratios:
            yield from ([len(one.values), one.factor], one.values, one.weights, one.counts)

    @classmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample of a score, and of its rows and factors."""
        parts, ratios = rest.view(np.float64), []
        shares, parts = np.split(parts[1:], [int(parts[0])])
        while len(parts):
            size = int(parts[0])
            end = 2 + _COLUMNS * size
            values, weights, counts = parts[2:end].reshape(_COLUMNS, size)
            ratios.append(Ratio(values, weights, counts, float(parts[1])))
            parts = parts[end:]
        return cls(score, tuple(ratios), tuple(shares.tolist()))


def _exact(one: Ratio, left: EvidenceSet) -> tuple[float, float] | None:
    """Return the exact interval of a ratio; None if the edition has none, or the rows do not allow one."""
    if not left.theory.exact_ratios:
        return None
    return ratio_interval(one.values, one.weights, one.counts, left.nats)


def _least(ratios: tuple[Ratio, ...], left: EvidenceSet) -> tuple[float, float]:
    """Return the interval of the least of several ratios.

    The lower end is the least lower end of any ratio, and the upper end is the first ratio's. The population value lies
    below the lower end only if the interval of one ratio fails: the ratio that is least in the population.
    """
    each = [
        _exact(one, left) or replace(left, mean=min(left.mean / one.factor, 1.0)).of(_rows(one))
        for one in ratios
    ]
    lows = [one.factor * low for one, (low, _) in zip(ratios, each, strict=True)]
    return min(*lows, 1.0), 1.0 - ratios[0].factor * (1.0 - each[0][1])


class OrderedSample(RatioSample, Ordered):
    """The scores of two classes; see :class:`~reusable_holdout.metrics.samples.Ordered`."""

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of areas that the evidence of many matchings does not exclude."""
        won = matched(self.positive, self.negative, left.theory.matchings)
        return left.lowest(left.mean, won.log_gains), 1.0 - left.lowest(
            1.0 - left.mean, won.mirrored.log_gains
        )

    def _parts(self) -> Iterable[Any]:
        return float(len(self.positive)), self.positive, self.negative

    @classmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample of a score, the number of positives, and all scores."""
        count, *_ = scores = rest.view(np.float64)
        return cls(score, *np.split(scores[1:], [int(count)]))


class RatesSample(RatioSample, Rates):
    """Numbers of rows of two classes that are predicted right; see :class:`~reusable_holdout.metrics.samples.Rates`."""

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the exact interval of Matthews's correlation, mapped to [0, 1]."""
        counts = self.hits, self.positives, self.rejected, self.negatives
        low, high = matthews_interval(*counts, nats=left.nats)
        return (1.0 + low) / 2.0, (1.0 + high) / 2.0

    def _parts(self) -> Iterable[Any]:
        return self[1:]

    @classmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample of a score and of the numbers of rows."""
        return cls(score, *rest.tolist())


class RankedSample(RatioSample, Ranked):
    """The ranks that scores give the rows; see :class:`~reusable_holdout.metrics.samples.Ranked`."""

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval from bands around both classes' scores."""
        return average_precision_interval(
            self.above, self.negatives, nats=left.nats, shares=left.theory.bands
        )

    def _parts(self) -> Iterable[Any]:
        return self.negatives, self.above, np.zeros(self.negatives, dtype=np.int64)  # one number for each row

    @classmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample of a score, the number of negatives, and the ranks."""
        negatives = int(rest[0])
        return cls(score, rest[1 : len(rest) - negatives], negatives)


class ExplainedSample(RatioSample, Explained):
    """Errors of a model and of a constant; see :class:`~reusable_holdout.metrics.samples.Explained`.

    With e and d the errors of a row and s the unit, the value is at most m if and only if ``E[(1 - m) d - e/s] <= 0``:
    no row gains less than -1/s. That it is at least m is the mirror image: no row gains less than -(1 - m) max d.
    """

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of values that the rows' evidence does not exclude."""
        return left.lowest(left.mean, self._above), 1.0 - left.lowest(1.0 - left.mean, self._below)

    def _parts(self) -> Iterable[Any]:
        return self.most, self.unit, self.errors, self.totals

    @classmethod
    def of(cls, score: int, rest: Integers) -> Self:
        """Return the sample of a score, the numbers `most` and `unit`, and the rows."""
        most, unit, *_ = parts = rest.view(np.float64)
        errors, totals = parts[2:].reshape(2, -1)
        return cls(score, errors, totals, float(most), float(unit))

    def _above(self, value: float, bets: Floats) -> Floats:
        """Return the log gains of bets against values that are at most `value`."""
        return gains_of_rows((1.0 - value) * self.unit * self.totals - self.errors, 0.0, bets)

    def _below(self, value: float, bets: Floats) -> Floats:
        """Return the log gains of bets against values that are at least one minus `value`."""
        worst = value * self.most
        return gains_of_rows((self.errors / self.unit - value * self.totals) / worst, 0.0, bets)


def sample_of(bound: BoundMetric, query: NDArray[Any]) -> Sample:
    """Return the prepared sample of one query; ModelError if a user's own metric fails on the holdout."""
    if not bound.is_ratio:
        return unpacked(bound, terms_of(bound, query))
    found = bound.sample(query)
    sample: Sample = next(kind for kind in _KINDS if issubclass(kind, type(found)))(*found)
    return sample


def unpacked(bound: BoundMetric, numbers: Integers) -> Sample:
    """Return the sample of packed numbers."""
    if not bound.is_ratio:
        return MeanSample(int(numbers[0]), numbers[1:], bound.relative_weights)
    return ratio_sample(numbers)


def ratio_sample(numbers: Integers) -> RatioSample:
    """Return the sample of a ratio's packed numbers."""
    sample: RatioSample = _KINDS[int(numbers[0])].of(int(numbers[1]), numbers[2:])
    return sample


# Samples of ratios; a packed one begins with its place here.
_KINDS: tuple[Any, ...] = (CountedSample, RankedSample, ExplainedSample, OrderedSample, RatesSample)


def _rows(one: Ratio) -> EvidenceRows:
    return EvidenceRows(one.values, one.counts, one.weights)
