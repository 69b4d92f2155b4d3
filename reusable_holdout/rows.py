"""Rows: a holdout with its public facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

__all__ = ["Rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """A holdout's rows with further facts, passed in place of X and y.

    Parameters
    ----------
    X : array-like of shape (rows, features), ParquetRows, Dask array or DataFrame, or None
        Private features, for models; NumPy, pandas, polars or scipy.sparse. The guard keeps a copy, which needs as much
        memory again: later changes to your data change no answer. It does not copy polars, whose columns never change,
        nor arrays that are mapped read-only. Parquet files and Dask collections stay where they are: models predict
        them chunk by chunk, on joblib's current backend.
    y : array-like of shape (rows,) or (rows, outputs), or the name of a column of ParquetRows or of a Dask DataFrame
        Private labels. Rows must be independent draws from the population of interest, or have an `order`, and no
        training rows. For judged
        scores give the rows' ids here, which are distinct names, and None for X.
    classes : array-like, or "private", optional
        All classes that may occur, which makes them public. By default the classes in `y` are public if there is at
        most one class per 50 rows. Otherwise they are private: accuracy compares answers in a normal form (NFKC,
        without case and extra spaces), and no other metric is measured.
    sample_weight : array-like of shape (rows,), optional
        Public weights, at least 0. Weights of 0 and 1 make a slice: then only its rows count.
    groups : array-like of shape (rows,), optional
        Names of the rows' groups, such as users or documents, if rows of a group are not independent. A group is one
        draw and counts once, with the mean of its rows; the plan's rows are groups. Only means of losses allow groups.
    ids : array-like of shape (rows,), optional
        Distinct names of the rows, by which the guard recognizes rows; they never leave it.
    order : "time", optional
        The rows are in time order, and each may depend on those before it. Then intervals are wider, and about the mean
        of the risks over the rows' period, each given what came before the row; the future is not promised. Metrics are
        means of bounded losses, groups are steps that follow one another, and weights are 0 or 1. All data that the
        analyst uses must end before the first row: where the rows and the training rows have an index of times, this is
        checked.
    prevalence : float, sequence of float or dict, optional
        Class shares that you expect, such as those in training: a number for the last of two classes, a sequence for
        all in sorted order, or a dict by class; equal shares by default. If a metric's interval rests on the class
        counts, their distance from these shares is released, for nats: the nearer, the cheaper.
    training : array-like, optional
        The models' training rows, to be searched for rows of the holdout: a table with the holdout's columns, or ids if
        the holdout has ids. Nothing of it is kept.

    Examples
    --------
    >>> import numpy as np
    >>> Rows(None, np.arange(100) % 2, classes=[0, 1])
    <Rows>
    """

    X: Any
    y: Any
    classes: ArrayLike | str | None = None
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None
    ids: ArrayLike | None = None
    order: Literal["time"] | None = None
    prevalence: Any = None
    training: Any = None

    def __repr__(self) -> str:
        return "<Rows>"
