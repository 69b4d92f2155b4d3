"""Mean of the classes' recalls."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.queries.samples import Counted, Likely, ratio
from reusable_holdout.queries.scoring import GRID_BITS, Statistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reusable_holdout.queries.targets import ClassTargets

__all__ = ["BalancedAgreement"]


class BalancedAgreement(Statistic):
    """Mean over the classes of the share of a class's rows that are predicted right.

    Computed in integers of any size, so it is exact. Class counts are public: neighbours keep every label.

    Parameters
    ----------
    targets : ClassTargets
        Private labels; classes without rows are left out of the mean.

    Notes
    -----
    Given the class counts it is a mean of independent terms with the weights c_r = 1/(K n_k): the confidence bound of
    :class:`~reusable_holdout.queries.weights.WeightedMean`, of 1/max c_r = K min n_k rows.
    """

    family = "bounded"

    def __init__(self, targets: ClassTargets) -> None:
        counts = targets.counts[targets.counts > 0].tolist()
        self.rows = targets.rows
        self.sensitivity = Fraction(1, len(counts) * min(counts))
        self.sum_of_squares = float(sum(Fraction(1, count) for count in counts) / len(counts) ** 2)
        self._order = np.argsort(targets.codes, kind="stable")
        self._codes = targets.codes[self._order]
        ends = np.cumsum(counts).tolist()
        self._classes = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        self._counts, self._possible = counts, len(targets.counts)
        common = math.lcm(*counts)
        self._weights = [common // count for count in counts]
        self._whole = common * len(counts)

    @property
    def effective_rows(self) -> int:
        """1/max c_r."""
        return self.sensitivity.denominator

    def units(self, query: NDArray[Any]) -> int:
        """Weigh each class's hits by an integer, so that all share one denominator."""
        return (self._weighted(self._hits(query)) << GRID_BITS) // self._whole

    def value(self, query: NDArray[Any]) -> float:
        """Mean of the classes' recalls."""
        return self._weighted(self._hits(query)) / self._whole

    @property
    def is_ratio(self) -> bool:
        """Always: the population's mean of recalls, whatever the class counts."""
        return True

    def sample(self, query: NDArray[Any]) -> Counted:
        """Hits and misses of each class, with the weight of its rows.

        Given the labels, terms are independent, and the weighted mean of their expectations is the population's value;
        of the recall of a class that may occur and has no rows nothing is known.
        """
        hits, least, missing = self._hits(query), min(self._counts), self._possible - len(self._counts)
        each = [
            ((1.0, least / count, hit), (0.0, least / count, count - hit))
            for count, hit in zip(self._counts, hits, strict=True)
        ]
        each += [((0.0, 0.0, 0), (0.0, 0.0, 0))] * missing  # how many classes have rows shows in no length
        score = (self._weighted(hits) << GRID_BITS) // self._whole
        rows = ratio(*(row for pair in each for row in pair), factor=1.0 - missing / self._possible)
        return Counted(score, (rows,))

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """What is likely if all recalls are alike."""
        counts = [share * self.rows for share in prevalence]
        rows = [
            row
            for count in counts
            for row in (
                (1.0, min(counts) / count, count * mean),
                (0.0, min(counts) / count, count * (1.0 - mean)),
            )
        ]
        return Likely.of(ratio(*rows), mean)

    def _hits(self, query: NDArray[Any]) -> list[int]:
        marks = query[self._order] == self._codes
        return [int(np.count_nonzero(marks[rows])) for rows in self._classes]

    def _weighted(self, hits: Sequence[int]) -> int:
        return sum(weight * hit for weight, hit in zip(self._weights, hits, strict=True))
