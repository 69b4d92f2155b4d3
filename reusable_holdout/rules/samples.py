"""The samples on which a question's confidence set rests: a mean's rows, a ratio's counts, or ranks of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import (
    Evidence,
    EvidenceRows,
    EvidenceSet,
    average_precision_interval,
    gains_of_rows,
)
from reusable_holdout.metrics import GRID, BoundMetric, Counted, Explained, Ratio
from reusable_holdout.rules import Floats, Integers, terms_of

__all__ = [
    "MeanSample",
    "RatioSample",
    "Sample",
    "ratio_sample",
    "sample_of",
    "unpacked",
]

_OF_RATIOS, _OF_RANKS, _OF_ERRORS = range(3)
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

    @abstractmethod
    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if the sample has the nats, for a set of evidence, that this evidence holds."""


@dataclass(frozen=True, repr=False)
class CountedSample(RatioSample):
    """Rows of a ratio of means, or of the least of several; see :class:`~reusable_holdout.metrics.Counted`."""

    score: int
    ratios: tuple[Ratio, ...]

    def ends(self, left: EvidenceSet) -> tuple[float, float]:
        """Return the interval of values that the evidence does not exclude, by all ratios.

        The lower end is the least lower end of any ratio, and the upper end is the first ratio's. The population value
        can lie below the lower end because of one ratio only, the least in the population.
        """
        each = [replace(left, mean=min(left.mean / one.factor, 1.0)).of(_rows(one)) for one in self.ratios]
        lows = [one.factor * low for one, (low, _) in zip(self.ratios, each, strict=True)]
        return min(*lows, 1.0), 1.0 - self.ratios[0].factor * (1.0 - each[0][1])

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if the rows certify it: all asked sides of the first ratio, the lower side of the others."""
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
        return np.concatenate([[_OF_RATIOS, self.score], np.concatenate(parts).view(np.int64)])

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Return the sample of packed numbers."""
        parts, ratios = np.ascontiguousarray(numbers[2:]).view(np.float64), []
        while len(parts):
            size = int(parts[0])
            end = 2 + _COLUMNS * size
            values, weights, counts = parts[2:end].reshape(_COLUMNS, size)
            ratios.append(Ratio(values, weights, counts, float(parts[1])))
            parts = parts[end:]
        return cls(int(numbers[1]), tuple(ratios))


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

    def certifies(self, evidence: Evidence, left: EvidenceSet) -> bool:
        """Return True if the interval lies inside."""
        low, high = self.ends(left)
        return (evidence.sides == "high" or low >= min(evidence.named - evidence.tolerance, 1.0)) and (
            evidence.sides == "low" or high <= max(evidence.named + evidence.tolerance, 0.0)
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
    if isinstance(found, Counted):
        return CountedSample(*found)
    if isinstance(found, Explained):
        return ExplainedSample(*found)
    return RankedSample(*found)


def unpacked(bound: BoundMetric, numbers: Integers) -> Sample:
    """Return the sample of packed numbers."""
    if not bound.is_ratio:
        return MeanSample(int(numbers[0]), numbers[1:], bound.relative_weights)
    return ratio_sample(numbers)


def ratio_sample(numbers: Integers) -> RatioSample:
    """Return the sample of a ratio's packed numbers."""
    sample: RatioSample = _PACKED[int(numbers[0])].of(numbers)
    return sample


_PACKED: dict[int, Any] = {_OF_RATIOS: CountedSample, _OF_RANKS: RankedSample, _OF_ERRORS: ExplainedSample}


def _rows(one: Ratio) -> EvidenceRows:
    return EvidenceRows(one.values, one.counts, one.weights)
