"""The samples on which a question's confidence set rests: a mean's rows, a ratio's counts, or ranks of scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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
from reusable_holdout.metrics import GRID, BoundMetric, Counted, Explained, Ordered, Ranked, Rates, Ratio
from reusable_holdout.rules import Floats, Integers, terms_of

__all__ = ["MeanSample", "RatioSample", "Sample", "ratio_sample", "sample_of", "unpacked"]

_OF_RATIOS, _OF_RANKS, _OF_ERRORS, _OF_ORDER, _OF_RATES = range(5)
_COLUMNS = 3  # values, weights, counts


class Sample(ABC):
    """Private: what was measured of one question."""

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
    """Sample that can say by itself whether it certifies an answer, and is packed without the metric."""

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if the sample's set lies inside what the evidence is for."""
        low, high = self.ends(left)
        return (evidence.sides == "high" or low >= min(evidence.named - evidence.tolerance, 1.0)) and (
            evidence.sides == "low" or high <= max(evidence.named + evidence.tolerance, 0.0)
        )


@dataclass(frozen=True, repr=False)
class CountedSample(RatioSample):
    """Rows of a ratio, of the least of several, or of their mean; see :class:`~reusable_holdout.metrics.Counted`."""

    score: int
    ratios: tuple[Ratio, ...]
    weights: tuple[float, ...] = (1.0,)

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the weighted means of the parts' ends; each part has an equal share of the failure probability."""
        size = len(self.ratios) // len(self.weights)
        left = replace(left, nats=left.nats + math.log(len(self.weights)))
        parts = [
            _least(self.ratios[start : start + size], left) for start in range(0, len(self.ratios), size)
        ]
        lows, highs = (math.fsum(map(mul, self.weights, ends)) for ends in zip(*parts, strict=True))
        return lows, highs

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if the rows certify it: all asked sides of the first ratio, the lower side of the others."""
        if len(self.weights) > 1 or _exact(self.ratios[0], left) is not None:
            return super().certifies(evidence, left)
        named, tolerance, sizes, first = evidence.named, evidence.tolerance, evidence.sizes, self.ratios[0]
        low = evidence.sides == "high" or all(
            Evidence(named / one.factor, tolerance / one.factor, "low", sizes).of(_rows(one)) >= left.nats
            for one in self.ratios
        )
        above = Evidence(1.0 - (1.0 - named) / first.factor, tolerance / first.factor, "high", sizes)
        return low and (evidence.sides == "low" or above.of(_rows(first)) >= left.nats)

    def packed(self) -> Integers:
        """Return integers that hold the rows and the factor of each ratio, bit by bit."""
        parts = [
            np.concatenate([[len(one.values), one.factor], one.values, one.weights, one.counts])
            for one in self.ratios
        ]
        weights = np.array([len(self.weights), *self.weights])
        return np.concatenate([[_OF_RATIOS, self.score], np.concatenate([weights, *parts]).view(np.int64)])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        parts, ratios = np.ascontiguousarray(numbers[2:]).view(np.float64), []
        shares, parts = np.split(parts[1:], [int(parts[0])])
        while len(parts):
            size = int(parts[0])
            end = 2 + _COLUMNS * size
            values, weights, counts = parts[2:end].reshape(_COLUMNS, size)
            ratios.append(Ratio(values, weights, counts, float(parts[1])))
            parts = parts[end:]
        return cls(int(numbers[1]), tuple(ratios), tuple(shares.tolist()))


def _exact(one: Ratio, left: EvidenceSet) -> tuple[float, float] | None:
    """Return the exact interval of a ratio, if its edition has any and its rows allow it."""
    if not left.theory.exact_ratios:
        return None
    return ratio_interval(one.values, one.weights, one.counts, left.nats)


def _least(ratios: tuple[Ratio, ...], left: EvidenceSet) -> tuple[float, float]:
    """Return the interval of the least of several ratios.

    The lower end is the least lower end of any ratio, and the upper end is the first ratio's. The population value can
    lie below the lower end because of one ratio only, the least in the population.
    """
    each = [
        _exact(one, left) or replace(left, mean=min(left.mean / one.factor, 1.0)).of(_rows(one))
        for one in ratios
    ]
    lows = [one.factor * low for one, (low, _) in zip(ratios, each, strict=True)]
    return min(*lows, 1.0), 1.0 - ratios[0].factor * (1.0 - each[0][1])


@dataclass(frozen=True, repr=False)
class OrderedSample(RatioSample):
    """The scores of two classes; see :class:`~reusable_holdout.metrics.Ordered`."""

    score: int
    positive: Floats
    negative: Floats

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of areas that the evidence of many matchings does not exclude."""
        won = matched(self.positive, self.negative, left.theory.matchings)
        return left.lowest(left.mean, won.log_gains), 1.0 - left.lowest(
            1.0 - left.mean, won.mirrored.log_gains
        )

    def packed(self) -> Integers:
        """Return the number of positives, and all scores bit by bit: the length hides the classes."""
        scores = np.concatenate([self.positive, self.negative])
        return np.concatenate([[_OF_ORDER, self.score, len(self.positive)], scores.view(np.int64)])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        scores = np.ascontiguousarray(numbers[3:]).view(np.float64)
        return cls(int(numbers[1]), scores[: int(numbers[2])], scores[int(numbers[2]) :])


@dataclass(frozen=True, repr=False)
class RatesSample(RatioSample):
    """Numbers of rows of two classes that are predicted right; see :class:`~reusable_holdout.metrics.Rates`."""

    score: int
    hits: int
    positives: int
    rejected: int
    negatives: int

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the exact interval of Matthews's correlation, mapped to [0, 1]."""
        counts = self.hits, self.positives, self.rejected, self.negatives
        low, high = matthews_interval(*counts, nats=left.nats)
        return (1.0 + low) / 2.0, (1.0 + high) / 2.0

    def packed(self) -> Integers:
        """Return all integers as they are."""
        return np.array([_OF_RATES, self.score, self.hits, self.positives, self.rejected, self.negatives])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        return cls(*numbers[1:].tolist())


@dataclass(frozen=True, repr=False)
class RankedSample(RatioSample):
    """The ranks that scores give the rows; see :class:`~reusable_holdout.metrics.Ranked`."""

    score: int
    above: Integers
    negatives: int

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval from bands around both classes' scores."""
        return average_precision_interval(
            self.above, self.negatives, nats=left.nats, shares=left.theory.bands
        )

    def packed(self) -> Integers:
        """Return all integers as they are, padded to the number of rows, so that the length hides the classes."""
        rest = np.zeros(self.negatives, dtype=np.int64)
        return np.concatenate([[_OF_RANKS, self.score, self.negatives], self.above, rest])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        negatives = int(numbers[2])
        return cls(int(numbers[1]), numbers[3 : len(numbers) - negatives], negatives)


@dataclass(frozen=True, repr=False)
class ExplainedSample(RatioSample):
    """Errors of a model and of a constant; see :class:`~reusable_holdout.metrics.Explained`.

    With e and d the errors of a row and s the unit, the value is at most m if and only if ``E[(1 - m) d - e/s] <= 0``:
    no row gains less than -1/s. That it is at least m is the mirror image: no row gains less than -(1 - m) max d.
    """

    score: int
    errors: Floats
    totals: Floats
    most: float
    unit: float

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of values that the rows' evidence does not exclude."""
        return left.lowest(left.mean, self._above), 1.0 - left.lowest(1.0 - left.mean, self._below)

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if both ends, or the asked one, are excluded."""
        left = EvidenceSet(left.nats, len(self.errors), theory=left.theory)
        low, high = evidence.named - evidence.tolerance, 1.0 - evidence.named - evidence.tolerance
        return (evidence.sides == "high" or _excluded(left, low, self._above)) and (
            evidence.sides == "low" or _excluded(left, high, self._below)
        )

    def packed(self) -> Integers:
        """Return integers that hold the errors and totals, bit by bit."""
        numbers = np.concatenate([[self.most, self.unit], self.errors, self.totals])
        return np.concatenate([[_OF_ERRORS, self.score], numbers.view(np.int64)])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        most, unit, *_ = parts = np.ascontiguousarray(numbers[2:]).view(np.float64)
        errors, totals = parts[2:].reshape(2, -1)
        return cls(int(numbers[1]), errors, totals, float(most), float(unit))

    def _above(self, value: float, bets: Floats) -> Floats:
        """Return the log gains of bets against values that are at most `value`."""
        return gains_of_rows((1.0 - value) * self.unit * self.totals - self.errors, 0.0, bets)

    def _below(self, value: float, bets: Floats) -> Floats:
        """Return the log gains of bets against values that are at least one minus `value`."""
        worst = value * self.most
        return gains_of_rows((self.errors / self.unit - value * self.totals) / worst, 0.0, bets)


def _excluded(left: EvidenceSet, value: float, won: Any) -> bool:
    return value <= 0.0 or (value < 1.0 and left.excludes(value, 0.5, won))


def sample_of(bound: BoundMetric, query: NDArray[Any]) -> Sample:
    """Return the prepared sample of one query; ModelError if a user's own metric fails on the holdout."""
    if not bound.is_ratio:
        return unpacked(bound, terms_of(bound, query))
    found = bound.sample(query)
    sample: Sample = _MEASURED[type(found)](*found)
    return sample


def unpacked(bound: BoundMetric, numbers: Integers) -> Sample:
    """Return the sample of packed numbers."""
    if not bound.is_ratio:
        return MeanSample(int(numbers[0]), numbers[1:], bound.relative_weights)
    return ratio_sample(numbers)


def ratio_sample(numbers: Integers) -> RatioSample:
    """Return the sample of a ratio's packed numbers."""
    sample: RatioSample = _PACKED[int(numbers[0])].of(numbers)
    return sample


_MEASURED: dict[type, Any] = {
    Counted: CountedSample,
    Explained: ExplainedSample,
    Ordered: OrderedSample,
    Ranked: RankedSample,
    Rates: RatesSample,
}
_PACKED: dict[int, Any] = {
    _OF_RATIOS: CountedSample,
    _OF_RANKS: RankedSample,
    _OF_ERRORS: ExplainedSample,
    _OF_ORDER: OrderedSample,
    _OF_RATES: RatesSample,
}


def _rows(one: Ratio) -> EvidenceRows:
    return EvidenceRows(one.values, one.counts, one.weights)
