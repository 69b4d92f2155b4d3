"""What a confidence set of one question rests on, where that is a ratio: private, the guard's alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Counted", "Explained", "Likely", "Ranked", "Ratio", "ratio"]


class Ratio(NamedTuple):
    """Rows that make a ratio ``E[weight * value] / E[weight]``, times a factor.

    With a factor below 1 nothing is known of the rest: up to one minus the factor may be added.

    Attributes
    ----------
    values, weights, counts : numpy.ndarray of float64
        In [0, 1], in [0, 1], and how many rows have both.
    factor : float
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.float64]
    factor: float = 1.0

    def __repr__(self) -> str:
        return "<Ratio>"


class Counted(NamedTuple):
    """Score of a metric that counts rows, such as precision, and the ratios of rows that its interval is made of.

    Attributes
    ----------
    score : int
        In steps of the grid.
    ratios : tuple of Ratio
        The metric itself; or several of which the least is the metric, as the least of two classes' recalls.
    """

    score: int
    ratios: tuple[Ratio, ...]

    def __repr__(self) -> str:
        return "<Counted>"


class Ranked(NamedTuple):
    """How scores rank the rows of two classes.

    Attributes
    ----------
    score : int
        On the grid.
    above : numpy.ndarray of int64 of shape (positives,)
        Of each positive row, from the highest score down, the negative rows that score at least as high.
    negatives : int
        Rows of the other class.
    """

    score: int
    above: NDArray[np.int64]
    negatives: int

    def __repr__(self) -> str:
        return "<Ranked>"


class Explained(NamedTuple):
    """Errors of a model and of a constant: the value is ``1 - mean(errors) / (unit * mean(totals))``.

    Attributes
    ----------
    score : int
        On the grid.
    errors, totals : numpy.ndarray of float64 of shape (rows,)
        In [0, 1] and in [0, `most`].
    most, unit : float
    """

    score: int
    errors: NDArray[np.float64]
    totals: NDArray[np.float64]
    most: float
    unit: float

    def __repr__(self) -> str:
        return "<Explained>"


class Likely(NamedTuple):
    """Rows of equal weight whose mean is about as uncertain as a metric: what a plan is made with.

    Attributes
    ----------
    rows : float
    spread : float
        Standard deviation of a row.
    """

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
