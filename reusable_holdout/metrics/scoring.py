"""Statistics of private labels and prepared predictions, as integers on a grid of 2**-32.

A statistic is normalised to [0, 1] by its bounds and then counted in these units, so that noise can be integers and no
floating-point rounding reaches an answer.

Each score is floor(normalised statistic * 2**32). Where the statistic is a count it is exact; where it is a
mean of real losses, each row's loss is first rounded to the grid and the rest is exact. So the score moves by
at most ceil(sensitivity * 2**32) between neighbours whatever order a machine adds in.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.containers import in_blocks
from reusable_holdout.metrics.samples import Counted, Explained, Likely, Ranked
from reusable_holdout.metrics.targets import ClassTargets, HoldsLabels

__all__ = [
    "FINE_BITS",
    "FINE_SLACK",
    "GRID",
    "GRID_BITS",
    "Agreement",
    "Family",
    "Mean",
    "MeanLoss",
    "PublicNumbers",
    "Statistic",
]

Family = Literal["binomial", "bounded", "bounded-difference"]

GRID_BITS: Final = 32
GRID: Final = 1 << GRID_BITS

FINE_BITS = 96  # of each class's score, where several are averaged
FINE_SLACK = Fraction(1, 1 << 90)  # far above what that rounding can add to a change


class PublicNumbers(NamedTuple):
    """Numbers of a bound metric that its confidence bound and its noise rest on; `rows` are effective ones.

    :class:`BoundMetric` says what they mean.
    """

    sensitivity: Fraction
    sum_of_squares: float
    rows: int

    def scaled(self, factor: float, rests: Sequence[bool]) -> PublicNumbers:
        """Numbers when so many times the rows count; of those that rest on class counts."""
        exactly, rows = Fraction(factor), self.rows
        if rests[2]:  # a mean over the rows of a class, which has one at least
            rows = max(1, math.floor(rows * exactly))
            exactly, factor = Fraction(rows, self.rows), rows / self.rows
        return PublicNumbers(
            min(self.sensitivity / exactly, Fraction(1)) if rests[0] else self.sensitivity,
            self.sum_of_squares / factor if rests[1] else self.sum_of_squares,
            rows,
        )


class Statistic(HoldsLabels, ABC):
    """A statistic bound to private labels; :class:`BoundMetric` says what its numbers mean."""

    rows: int
    sensitivity: Fraction
    sum_of_squares: float
    family: Family | None = None  # of the confidence bound, where it is not the metric's
    part: tuple[NDArray[Any], Statistic] | None = None
    """Of some rows alone: their places, and their statistic, which is of all of these."""

    is_ratio: bool = False
    """Whether its population value is one that the rows of a query give a confidence set of; see `sample`."""
    only_as_ratio: bool = False
    """Whether it is known as a ratio only: no other bound of it is."""

    @cached_property
    def effective_rows(self) -> int:
        """Rows that the confidence bound may count; some statistics set others."""
        return self.rows

    def score(self, prepared: NDArray[Any]) -> NDArray[np.int64]:
        """Grid units of each query; `prepared` has shape (queries, rows[, classes])."""
        # one query at a time: its rows are what fits a processor's cache, and threads were measured to be slower
        return np.fromiter((self.units(query) for query in prepared), np.int64, len(prepared))

    @abstractmethod
    def units(self, query: NDArray[Any]) -> int:
        """Grid units of one query of shape (rows[, classes])."""

    @abstractmethod
    def value(self, query: NDArray[Any]) -> float:
        """Statistic of one query of shape (rows[, classes]), in its own units."""

    def sample(self, query: NDArray[Any]) -> Counted | Explained | Ranked:
        """What the confidence set of a ratio rests on."""
        raise NotImplementedError

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Rows that are about as uncertain, if classes have these shares, near a value of the metric."""
        raise NotImplementedError


class Mean(Statistic):
    """A mean over the rows of terms in [0, 1] after normalisation, one per row.

    Its sensitivity is the largest weight of a row in the mean.
    """

    def _mean_of_rows(self, rows: int) -> None:
        """Set the sensitivities of a mean in which all rows weigh the same."""
        self.rows = rows
        self.sensitivity = Fraction(1, rows)
        self.sum_of_squares = 1 / rows

    @property
    def relative_weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows, as fractions of the largest; None if all are equal."""
        return None

    @abstractmethod
    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Normalised term of each row, float64 in [0, 1]."""

    def total(self, terms: NDArray[np.int64]) -> tuple[int, int]:
        """Sum of whole-numbered terms of at most 2**52, one per row, and the weight of all rows; exact."""
        low = terms & ((1 << 26) - 1)  # in halves, for the sum may exceed 64 bits
        return (int((terms >> 26).sum()) << 26) + int(low.sum()), self.rows

    def mean_of(self, values: NDArray[Any]) -> float:
        """Mean of one value per row."""
        return float(values.mean())

    @abstractmethod
    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Term of each row in the metric's units."""

    def units(self, query: NDArray[Any]) -> int:
        """Round each row's normalised term to the grid, then sum and divide in integers."""
        total, whole = self.total(np.rint(self.shares(query) * GRID).astype(np.int64))
        return total // whole

    def value(self, query: NDArray[Any]) -> float:
        """Mean in the metric's units."""
        return self.mean_of(self.row_values(query))


class Agreement(Mean):
    """Share of rows whose predicted code equals the label's, or differs from it; of several labels all, or any."""

    def __init__(self, targets: ClassTargets, *, errors: bool = False) -> None:
        self._mean_of_rows(targets.rows)
        self._codes = targets.codes
        self._errors = errors

    def units(self, query: NDArray[Any]) -> int:
        """Shift the exact count left and divide by the rows, in integers."""
        marks = (self._marks(query[rows], self._codes[rows]) for rows in in_blocks(self.rows))
        return (sum(int(np.count_nonzero(block)) for block in marks) << GRID_BITS) // self.rows

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """1 for the rows counted, else 0."""
        return self._marks(query, self._codes).astype(np.float64)

    row_values = shares

    def _marks(self, query: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        marks: NDArray[Any] = np.not_equal(query, codes) if self._errors else np.equal(query, codes)
        if marks.ndim == 2:
            marks = np.any(marks, axis=1) if self._errors else np.all(marks, axis=1)
        return marks


class MeanLoss(Mean):
    """Mean of bounded losses, one per row.

    Losses outside the bounds are moved to them and a loss that is not a number becomes the worst value:
    raising would tell the analyst something about a label.

    Of one query (rows[, classes]) `losses` gives the losses (rows,) in the metric's units. Binary ones are `lower` or
    `upper` and nothing between; others go to the nearer one.
    """

    def __init__(
        self,
        rows: int,
        losses: Callable[[NDArray[Any]], NDArray[Any]],
        bounds: tuple[float, float],
        *,
        greater_is_better: bool,
        binary: bool = False,
    ) -> None:
        self._mean_of_rows(rows)
        self._losses = losses
        self._lower, self._upper = bounds
        self._greater_is_better = greater_is_better
        self._binary = binary

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Place of each row's loss between the bounds."""
        shares: NDArray[Any] = (self.row_values(query) - self._lower) / (self._upper - self._lower)
        return shares

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Losses within the bounds."""
        losses = self._losses(query)
        if self._greater_is_better:  # fmax and fmin replace what is not a number by the bound met first
            losses = np.fmin(np.fmax(losses, self._lower), self._upper)
        else:
            losses = np.fmax(np.fmin(losses, self._upper), self._lower)
        if self._binary:
            losses = np.where(losses - self._lower < self._upper - losses, self._lower, self._upper)
        return losses
