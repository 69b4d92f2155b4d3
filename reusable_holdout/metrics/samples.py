"""Statistics of one question that a confidence set is made of, where the metric is a ratio: private, for the guard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counted", "Explained", "Likely", "Ranked", "Ratio", "ratio"]


class Ratio(NamedTuple):
    """Rows that make a ratio ``E[weight * value] / E[weight]``, times a factor.

    Values and weights lie in [0, 1]; counts are the numbers of rows that have both. With a factor below 1 nothing is
    known of the rest: the population's value may be larger by up to one minus the factor.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.float64]
    factor: float = 1.0

    def __repr__(self) -> str:
        return "<Ratio>"


def ratio(rows: Iterable[tuple[float, float, float]], factor: float = 1.0) -> Ratio:
    """Return the ratio of rows that are given as (value, weight, count)."""
    values, weights, counts = np.array(list(rows), dtype=np.float64).T
    return Ratio(values, weights, counts, factor)


class Counted(NamedTuple):
    """The score on the grid of a metric that counts rows, such as precision, and the ratios its interval is made of.

    A single ratio is the metric itself. The least of several ratios is the metric, as the least of two recalls.
    """

    score: int
    ratios: tuple[Ratio, ...]

    def __repr__(self) -> str:
        return "<Counted>"


class Ranked(NamedTuple):
    """The metric's score on the grid, and the order in which scores put the rows of two classes.

    `above` has shape (positives,), from the highest score down: the number of negative rows that score at least as
    high.
    """

    score: int
    above: NDArray[np.int64]
    negatives: int

    def __repr__(self) -> str:
        return "<Ranked>"


class Explained(NamedTuple):
    """Errors of a model and of a constant: the value is ``1 - mean(errors) / (unit * mean(totals))``.

    Both have shape (rows,); errors lie in [0, 1] and totals in [0, `most`]. The score is on the grid.
    """

    score: int
    errors: NDArray[np.float64]
    totals: NDArray[np.float64]
    most: float
    unit: float

    def __repr__(self) -> str:
        return "<Explained>"


class Likely(NamedTuple):
    """Rows of equal weight and this standard deviation, whose mean is about as uncertain as a metric: for a plan."""

    rows: float
    spread: float

    @classmethod
    def of(cls, rows: Ratio, mean: float) -> Likely:
        """Return such rows for the rows that make a ratio."""
        whole = float(rows.counts @ rows.weights)
        square = float(rows.counts @ np.square(rows.weights * (rows.values - mean)))
        return cls(whole, (square / whole) ** 0.5)
