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

from reusable_holdout.queries.blocks import BLOCK, each_block
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

    @abstractmethod
    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Grid units of each query; `prepared` has shape (queries, rows[, classes])."""

    @abstractmethod
    def value(self, prepared: NDArray[Any]) -> float:
        """Statistic of one query in its own units; `prepared` has shape (rows[, classes])."""

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
        self._errors = errors

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Shift the count left and divide by the rows, in integers."""
        counts = np.empty(len(prepared), np.int64)
        compare = np.not_equal if self._errors else np.equal

        def work(piece: slice) -> None:
            marks = compare(prepared[piece], self._codes)
            counts[piece] = [np.count_nonzero(row) for row in marks]  # many times faster than along an axis

        each_block(work, len(prepared), max(1, BLOCK // self.rows))
        return (counts << GRID_BITS) // self.rows

    def value(self, prepared: NDArray[Any]) -> float:
        """Share of the rows counted."""
        agreeing = int(np.count_nonzero(prepared == self._codes))
        return (self.rows - agreeing if self._errors else agreeing) / self.rows


class BalancedAgreement(Statistic):
    """Mean over the classes of the share of a class's rows that are predicted right.

    Computed in integers of any size, so it is exact. Class counts are public: neighbours keep every label.

    Parameters
    ----------
    targets : ClassTargets
        Private labels; classes without rows are left out of the mean.
    """

    def __init__(self, targets: ClassTargets) -> None:
        present = np.flatnonzero(targets.counts)
        counts = [int(targets.counts[k]) for k in present]
        self.rows = targets.rows
        self.sensitivity = Fraction(1, len(counts) * min(counts))
        self.sum_of_squares = float(sum(Fraction(1, count) for count in counts) / len(counts) ** 2)
        self._order = np.argsort(targets.codes, kind="stable")
        self._codes = targets.codes[self._order]
        self._ends = np.cumsum(counts).tolist()
        common = math.lcm(*counts)
        self._weights = [common // count for count in counts]
        self._whole = common * len(counts)

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Weigh each class's hits by an integer, so that all share one denominator."""
        scores = np.empty(len(prepared), np.int64)

        def work(piece: slice) -> None:
            marks = np.take(prepared[piece], self._order, axis=1) == self._codes
            scores[piece] = [(self._weighted_hits(row) << GRID_BITS) // self._whole for row in marks]

        each_block(work, len(prepared), max(1, BLOCK // self.rows))
        return scores

    def value(self, prepared: NDArray[Any]) -> float:
        """Mean of the classes' recalls."""
        return self._weighted_hits(prepared[self._order] == self._codes) / self._whole

    def _weighted_hits(self, marks: NDArray[Any]) -> int:
        starts = [0, *self._ends[:-1]]
        return sum(
            weight * int(np.count_nonzero(marks[start:end]))
            for weight, start, end in zip(self._weights, starts, self._ends, strict=True)
        )


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

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Count pairs by binary search among the sorted scores of the negatives."""
        scores = np.empty(len(prepared), np.int64)

        def work(piece: slice) -> None:
            scores[piece] = [
                (self._twice_ordered(row) << GRID_BITS) // self._twice_pairs for row in prepared[piece]
            ]

        each_block(work, len(prepared), max(1, BLOCK // self.rows))
        return scores

    def value(self, prepared: NDArray[Any]) -> float:
        """Area under the receiver operating characteristic."""
        return self._twice_ordered(prepared) / self._twice_pairs

    def _twice_ordered(self, scores: NDArray[Any]) -> int:
        negative = np.sort(scores[self._negative])
        positive = np.sort(scores[self._positive])  # sorted searches stay in cache
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
        Takes a block (queries, rows[, classes]), gives losses (queries, rows) in the metric's units.
    lower, upper : float
        Bounds of a loss.
    worst : float
        The bound that stands for the worst model.
    binary : bool
        Losses are `lower` or `upper` and nothing between; others go to the nearer one.
    parallel : bool
        Whether `losses` may be called from several threads.
    """

    def __init__(
        self,
        rows: int,
        losses: Callable[[NDArray[Any]], NDArray[Any]],
        *,
        lower: float,
        upper: float,
        worst: float,
        binary: bool = False,
        parallel: bool = True,
    ) -> None:
        self._mean_of_rows(rows)
        self._losses = losses
        self._lower, self._upper, self._worst = lower, upper, worst
        self._binary = binary
        self._parallel = parallel

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Round each row's normalised loss to the grid, then sum and divide in integers."""
        sums = np.empty(len(prepared), np.int64)

        def work(piece: slice) -> None:
            unit = (self._bounded(prepared[piece]) - self._lower) / (self._upper - self._lower)
            units = np.rint(np.clip(unit, 0.0, 1.0) * GRID).astype(np.int64)
            sums[piece] = units.sum(axis=1)

        if self._parallel:
            each_block(work, len(prepared), max(1, BLOCK // (prepared.size // len(prepared) or 1)))
        else:
            for query in range(len(prepared)):
                work(slice(query, query + 1))
        return sums // self.rows

    def value(self, prepared: NDArray[Any]) -> float:
        """Mean loss in the metric's units."""
        return float(self._bounded(prepared[None]).mean())

    def _bounded(self, prepared: NDArray[Any]) -> NDArray[Any]:
        losses = np.clip(self._losses(prepared), self._lower, self._upper)  # carries NaN through
        losses = np.where(np.isnan(losses), self._worst, losses)
        if self._binary:
            losses = np.where(losses - self._lower < self._upper - losses, self._lower, self._upper)
        return losses
