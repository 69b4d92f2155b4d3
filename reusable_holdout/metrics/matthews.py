"""Matthews's correlation of predicted and true labels, with the most one row can change it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.scoring import GRID, Statistic
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["Matthews"]

_CHUNK = 1 << 20


class Matthews(Statistic):
    """Correlation of two binary labels, with a floor under the predictions' variance; computed in integers.

    With P and N rows of the classes, both public, TP and PP as for a precision: (n TP - P PP) / sqrt(P N Q), Q =
    max(PP (n - PP), m (n - m)), with the floor m from 1 to min(P, N).

    Notes
    -----
    It lies in [-1, 1]: without the floor by the inequality of Cauchy and Schwarz, and the floor makes it no larger.

    A positive row whose prediction becomes positive takes (TP, PP) to (TP + 1, PP + 1), a negative one to (TP, PP +
    1). At a given PP the change is a linear function of TP, so it is largest at the smallest or at the largest TP that
    PP allows. All PP from 0 to n - 1 with both ends of TP are tried: the changes are exact, up to rounding, for which
    there is room.
    """

    def __init__(self, targets: ClassTargets, least: int) -> None:
        self._positive = targets.codes == 1
        self.rows = targets.rows
        negatives, positives = (int(count) for count in targets.counts)
        self._counts = positives, negatives
        self._floor = least * (self.rows - least)
        own = self._largest_change(hit=1) / 2 * (1 + 1e-12) + 1e-14  # half: [-1, 1] becomes [0, 1]
        other = self._largest_change(hit=0) / 2 * (1 + 1e-12) + 1e-14
        self.sensitivity = min(Fraction(max(own, other)), Fraction(1))
        self.sum_of_squares = positives * own**2 + negatives * other**2

    def units(self, query: NDArray[Any]) -> int:
        """Half the grid, and as much of it as the correlation says; the floor of a root is a root of integers."""
        upper, square = self._fraction(query)
        scaled = upper**2 * (GRID // 2) ** 2
        if upper >= 0:
            return GRID // 2 + math.isqrt(scaled // square)
        return GRID // 2 - math.isqrt((scaled - 1) // square) - 1

    def value(self, query: NDArray[Any]) -> float:
        """Correlation, in [-1, 1]."""
        upper, square = self._fraction(query)
        return upper / math.sqrt(square)

    def _fraction(self, query: NDArray[Any]) -> tuple[int, int]:
        """Numerator, and square of the denominator."""
        positives, negatives = self._counts
        predicted = int(np.count_nonzero(query))
        hits = int(np.count_nonzero(query[self._positive]))
        spread = max(predicted * (self.rows - predicted), self._floor)
        return self.rows * hits - positives * predicted, positives * negatives * spread

    def _largest_change(self, *, hit: int) -> float:
        """Largest change by a positive row (hit=1) or a negative one (hit=0) that becomes predicted positive."""
        positives, negatives = map(float, self._counts)
        rows, largest = float(self.rows), 0.0
        for start in range(0, self.rows, _CHUNK):
            predicted = np.arange(start, min(start + _CHUNK, self.rows), dtype=np.float64)
            before, after = (
                1 / np.sqrt(positives * negatives * np.maximum(count * (rows - count), float(self._floor)))
                for count in (predicted, predicted + 1)
            )
            fewest = np.maximum(predicted - (negatives - (1 - hit)), 0)
            most = np.minimum(predicted, positives - hit)
            for hits in (fewest, most):
                first = (rows * hits - positives * predicted) * before
                second = (rows * (hits + hit) - positives * (predicted + 1)) * after
                largest = max(largest, float(np.abs(second - first).max()))
        return largest
