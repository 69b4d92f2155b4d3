"""Statistics of private labels and prepared predictions, as integers on the grid.

Each score is floor(normalised statistic * 2**32). Where the statistic is a count it is exact; where it is a
mean of real losses, each row's loss is first rounded to the grid and the rest is exact. So the score moves by
at most ceil(sensitivity * 2**32) between neighbours whatever order a machine adds in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.queries.grid import GRID, GRID_BITS
from reusable_holdout.queries.targets import HoldsLabels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries.targets import ClassTargets

__all__ = ["Agreement", "BalancedAgreement", "MeanLoss", "PairOrder", "Statistic"]


class Statistic(HoldsLabels, ABC):
    """A statistic bound to private labels.

    Attributes
    ----------
    rows : int
        Rows of the holdout.
    sensitivity : fractions.Fraction
        Largest change of the normalised statistic between neighbours.
    sum_of_squares : float
        Sum over rows of the squared largest change of the normalised statistic.
    """

    rows: int
    sensitivity: Fraction
    sum_of_squares: float

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Grid units of each query; `prepared` has shape (queries, rows[, classes]).

        One query at a time: its rows are what fits a processor's cache, and threads were measured to be slower.
        """
        return np.fromiter((self.units(query) for query in prepared), np.int64, len(prepared))

    @abstractmethod
    def units(self, query: NDArray[Any]) -> int:
        """Grid units of one query of shape (rows[, classes])."""

    @abstractmethod
    def value(self, query: NDArray[Any]) -> float:
        """Statistic of one query of shape (rows[, classes]), in its own units."""

    def _mean_of_rows(self, rows: int) -> None:
        """Set the sensitivities of a mean of per-row terms in [0, 1]."""
        self.rows = rows
        self.sensitivity = Fraction(1, rows)
        self.sum_of_squares = 1 / rows


class Agreement(Statistic):
    """Share of rows whose predicted code equals the label's, or differs from it.

    The count is exact.

    Parameters
    ----------
    targets : ClassTargets
        Private labels.
    errors : bool
        Count the rows that differ.
    """

    def __init__(self, targets: ClassTargets, *, errors: bool = False) -> None:
        self._mean_of_rows(targets.rows)
        self._codes = targets.codes
        self._counted = np.not_equal if errors else np.equal

    def units(self, query: NDArray[Any]) -> int:
        """Shift the count left and divide by the rows, in integers."""
        return (self._count(query) << GRID_BITS) // self.rows

    def value(self, query: NDArray[Any]) -> float:
        """Share of the rows counted."""
        return self._count(query) / self.rows

    def _count(self, query: NDArray[Any]) -> int:
        return int(np.count_nonzero(self._counted(query, self._codes)))


class BalancedAgreement(Statistic):
    """Mean over the classes of the share of a class's rows that are predicted right.

    Computed in integers of any size, so it is exact. Class counts are public: neighbours keep every label.

    Parameters
    ----------
    targets : ClassTargets
        Private labels; classes without rows are left out of the mean.
    """

    def __init__(self, targets: ClassTargets) -> None:
        counts = targets.counts[targets.counts > 0].tolist()
        self.rows = targets.rows
        self.sensitivity = Fraction(1, len(counts) * min(counts))
        self.sum_of_squares = float(sum(Fraction(1, count) for count in counts) / len(counts) ** 2)
        self._order = np.argsort(targets.codes, kind="stable")
        self._codes = targets.codes[self._order]
        ends = np.cumsum(counts).tolist()
        self._classes = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        common = math.lcm(*counts)
        self._weights = [common // count for count in counts]
        self._whole = common * len(counts)

    def units(self, query: NDArray[Any]) -> int:
        """Weigh each class's hits by an integer, so that all share one denominator."""
        return (self._weighted_hits(query) << GRID_BITS) // self._whole

    def value(self, query: NDArray[Any]) -> float:
        """Mean of the classes' recalls."""
        return self._weighted_hits(query) / self._whole

    def _weighted_hits(self, query: NDArray[Any]) -> int:
        marks = query[self._order] == self._codes
        hits = [int(np.count_nonzero(marks[rows])) for rows in self._classes]
        return sum(weight * hit for weight, hit in zip(self._weights, hits, strict=True))


class PairOrder(Statistic):
    """Share of (positive, negative) pairs of rows that scores put in order, ties counting one half.

    Twice the number of pairs in order is an integer, counted exactly in n log n. Class counts are public:
    neighbours keep every label.

    Parameters
    ----------
    targets : ClassTargets
        Private labels of two classes, both present.
    """

    def __init__(self, targets: ClassTargets) -> None:
        self._negative = np.flatnonzero(targets.codes == 0)
        self._positive = np.flatnonzero(targets.codes == 1)
        negatives, positives = len(self._negative), len(self._positive)
        self.rows = targets.rows
        self.sensitivity = Fraction(1, min(negatives, positives))
        self.sum_of_squares = 1 / negatives + 1 / positives
        self._twice_pairs = 2 * negatives * positives

    def units(self, query: NDArray[Any]) -> int:
        """Shift twice the pairs in order left and divide by twice all pairs, in integers."""
        return (self._twice_ordered(query) << GRID_BITS) // self._twice_pairs

    def value(self, query: NDArray[Any]) -> float:
        """Area under the receiver operating characteristic."""
        return self._twice_ordered(query) / self._twice_pairs

    def _twice_ordered(self, query: NDArray[Any]) -> int:
        """Count by binary search among the sorted scores of the negatives."""
        negative = np.sort(query[self._negative])
        positive = np.sort(query[self._positive])  # sorted searches stay in cache
        below = np.searchsorted(negative, positive, side="left").sum(dtype=np.int64)
        not_above = np.searchsorted(negative, positive, side="right").sum(dtype=np.int64)
        return int(below) + int(not_above)


class MeanLoss(Statistic):
    """Mean of bounded losses, one per row.

    Losses outside the bounds are moved to them and a loss that is not a number becomes the worst value:
    raising would tell the analyst something about a label.

    Parameters
    ----------
    rows : int
        Rows of the holdout.
    losses : callable
        Takes one query (rows[, classes]), gives its losses (rows,) in the metric's units.
    lower, upper : float
        Bounds of a loss.
    greater_is_better : bool
        Whether `lower` is the worst value, else `upper` is.
    binary : bool
        Losses are `lower` or `upper` and nothing between; others go to the nearer one.
    """

    def __init__(
        self,
        rows: int,
        losses: Callable[[NDArray[Any]], NDArray[Any]],
        *,
        lower: float,
        upper: float,
        greater_is_better: bool,
        binary: bool = False,
    ) -> None:
        self._mean_of_rows(rows)
        self._losses = losses
        self._lower, self._upper = lower, upper
        self._greater_is_better = greater_is_better
        self._binary = binary

    def units(self, query: NDArray[Any]) -> int:
        """Round each row's normalised loss to the grid, then sum and divide in integers."""
        shares = (self._bounded(query) - self._lower) / (self._upper - self._lower)
        return int(np.rint(shares * GRID).astype(np.int64).sum()) // self.rows

    def value(self, query: NDArray[Any]) -> float:
        """Mean loss in the metric's units."""
        return float(self._bounded(query).mean())

    def _bounded(self, query: NDArray[Any]) -> NDArray[Any]:
        losses = self._losses(query)
        if self._greater_is_better:  # fmax and fmin replace what is not a number by the bound met first
            losses = np.fmin(np.fmax(losses, self._lower), self._upper)
        else:
            losses = np.fmax(np.fmin(losses, self._upper), self._lower)
        if self._binary:
            losses = np.where(losses - self._lower < self._upper - losses, self._lower, self._upper)
        return losses
