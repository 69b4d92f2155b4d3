"""What a confidence set of one question rests on, where that is a ratio: private, the guard's alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counted", "Explained", "Likely", "Ranked", "Ratio", "ratio"]


class Ratio(NamedTuple):
    """Rows that make a ratio ``E[weight * value] / E[weight]``, times a factor.

    Values and weights lie in [0, 1], and counts say how many rows have both. With a factor below 1 nothing is known of
    the rest: up to one minus the factor may be added.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.float64]
    factor: float = 1.0

    def __repr__(self) -> str:
        return "<Ratio>"


class Counted(NamedTuple):
    """Score on the grid of a metric that counts rows, such as precision, and the ratios its interval is made of.

    One ratio is the metric itself; of several the least is the metric, as the least of two classes' recalls.
    """

    score: int
    ratios: tuple[Ratio, ...]

    def __repr__(self) -> str:
        return "<Counted>"


class Ranked(NamedTuple):
    """How scores rank the rows of two classes, and the metric's score on the grid.

    Of shape (positives,), from the highest score down: how many of the negative rows score at least as high.
    """

    score: int
    above: NDArray[np.int64]
    negatives: int

    def __repr__(self) -> str:
        return "<Ranked>"


class Explained(NamedTuple):
    """Errors of a model and of a constant: the value is ``1 - mean(errors) / (unit * mean(totals))``.

    Both of shape (rows,), in [0, 1] and in [0, `most`]; the score is on the grid.
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
        """Rows of equal weight, of those that make a ratio."""
        whole = float(rows.counts @ rows.weights)
        square = float(rows.counts @ np.square(rows.weights * (rows.values - mean)))
        return cls(whole, (square / whole) ** 0.5)


def ratio(*rows: tuple[float, float, float], factor: float = 1.0) -> Ratio:
    """Ratio of rows given as (value, weight, count)."""
    values, weights, counts = np.array(rows, dtype=np.float64).T
    return Ratio(values, weights, counts, factor)
