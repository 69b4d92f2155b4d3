"""Private data from which a confidence set is computed, for one question about a metric that is no mean over rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ratio(NamedTuple):
    """A sample of rows for the ratio ``E[weight * value] / E[weight]``, times a factor.

    Values and weights lie in [0, 1]. A count is the number of rows with a given value and weight. If the factor is
    below 1, nothing is known about the rest: the population value may be larger by up to one minus the factor.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.float64]
    factor: float = 1.0

    def __repr__(self) -> str:
        return "<Ratio>"


def ratio(rows: Iterable[tuple[float, float, float]], factor: float = 1.0) -> Ratio:
    """Make a :class:`Ratio` from rows that are given as (value, weight, count)."""
    values, weights, counts = np.array(list(rows), dtype=np.float64).T
    return Ratio(values, weights, counts, factor)


class Counted(NamedTuple):
    """The grid score of a metric that counts rows, such as precision, and the ratios from which its interval is made.

    The metric is the smallest of the ratios. With several weights, the ratios are divided, in order, into one part for
    each weight, all of the same size, and the metric is the weighted mean of the parts' smallest ratios.
    """

    score: int
    ratios: tuple[Ratio, ...]
    weights: tuple[float, ...] = (1.0,)

    def __repr__(self) -> str:
        return "<Counted>"


class Rates(NamedTuple):
    """A metric's score on the grid, and for each of two classes the numbers of rows predicted right and of all rows."""

    score: int
    hits: int
    positives: int
    rejected: int
    negatives: int

    def __repr__(self) -> str:
        return "<Rates>"


class Ordered(NamedTuple):
    """A metric's score on the grid, and a model's scores of the positive and of the negative rows, in a fixed order."""

    score: int
    positive: NDArray[np.float64]
    negative: NDArray[np.float64]

    def __repr__(self) -> str:
        return "<Ordered>"


class Ranked(NamedTuple):
    """A metric's score on the grid, and the order in which a model's scores rank the rows of two classes.

    `above` has shape (positives,). For each positive row, from the highest score down, it is the number of negative
    rows that score at least as high.
    """

    score: int
    above: NDArray[np.int64]
    negatives: int

    def __repr__(self) -> str:
        return "<Ranked>"


class Explained(NamedTuple):
    """Errors of a model and of a constant prediction; the value is ``1 - mean(errors) / (unit * mean(totals))``.

    `errors` are the model's, in [0, 1], and `totals` the constant's, in [0, `most`]. Both have shape (rows,). The score
    is in grid units.
    """

    score: int
    errors: NDArray[np.float64]
    totals: NDArray[np.float64]
    most: float
    unit: float

    def __repr__(self) -> str:
        return "<Explained>"


Measured = Counted | Explained | Ordered | Ranked | Rates


class Likely(NamedTuple):
    """A row count and a standard deviation: the mean of such rows is about as uncertain as a metric. Plans use it."""

    rows: float
    spread: float

    @classmethod
    def of(cls, rows: Ratio, mean: float) -> Likely:
        """Return the row count and the standard deviation for a ratio whose value is `mean`."""
        whole = float(rows.counts @ rows.weights)
        square = float(rows.counts @ np.square(rows.weights * (rows.values - mean)))
        return cls(whole, (square / whole) ** 0.5)

    @classmethod
    def with_error(cls, error: float, mean: float) -> Likely:
        """Return the count and standard deviation of rows of 0 and 1 that have this mean and standard error."""
        variance = max(mean * (1.0 - mean), 1e-6)
        return cls(variance / max(error, 1e-9) ** 2, variance**0.5)
