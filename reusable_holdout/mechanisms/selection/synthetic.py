"""Synthetic data that answer a family of queries: the exponential mechanism over all small databases."""

from __future__ import annotations

import bisect
import decimal
import math
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.race import first_rings

_MOST_CANDIDATES = 2_000_000
_MOST_NATS = 50.0  # candidates are counted exactly if the log of their number is below this
_UNIT = 2**20  # values of queries are rounded to multiples of 1/_UNIT, which costs accuracy, not privacy
_WIDE = decimal.Context(prec=6, Emax=decimal.MAX_EMAX)  # for numbers in messages
_MOST_PRODUCT = 2**42  # rows times size, so that products with _UNIT fit int64


class _Question(NamedTuple):
    """The histogram of the rows, shape (cells,), and the queries in multiples of 1/_UNIT, shape (queries, cells)."""

    counts: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int64]


def synthetic_data(
    rows: npt.ArrayLike,
    queries: npt.ArrayLike,
    *,
    epsilon: float,
    accuracy: float | None = None,
    size: int | None = None,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Draw a small synthetic database that answers all queries nearly as the private rows do.

    The draw is (epsilon, 0)-differentially private for data sets that differ in one replaced row. So is everything that
    is computed from it.

    Parameters
    ----------
    rows : array_like of int, shape (n,)
        The private rows. The domain is divided into finitely many cells, and a row is given by the number of its cell.
        The number ``n`` of rows is public.
    queries : array_like of float, shape (queries, cells)
        Public linear queries. Each assigns to each cell a value in [0, 1], and its answer is the mean of these values
        over the rows. Values are rounded to multiples of 2**-20.
    epsilon : float
        Privacy parameter of the draw; finite, > 0.
    accuracy : float, optional
        Error of the best synthetic database, in (0, 1]; `synthetic_size` turns it into a size. Give this or `size`.
    size : int, optional
        Number ``m`` of rows of the synthetic database; at least 1.
    seed : int, optional
        Seed for a reproducible draw, which protects nobody. By default the draw is unpredictable.

    Returns
    -------
    ndarray of int64, shape (m,)
        Cells of the synthetic rows, in ascending order.

    Raises
    ------
    InputError
        If an argument is out of range, or there are more than 2,000,000 candidates.

    Notes
    -----
    This is the exponential mechanism over all ``C(cells + m - 1, m)`` multisets ``y`` of ``m`` cells. With ``x`` the
    private rows and ``e`` epsilon, the probability of ``y`` is proportional to ``exp(-e max_q |q(x) - q(y)| / (2 D))``.
    The sensitivity ``D`` is ``1/n`` times the largest range of a query's values. The choice is exact.

    References
    ----------
    .. [1] Blum, Ligett and Roth (2008), "A learning theory approach to non-interactive database privacy", Section 3.
    .. [2] Dwork and Roth (2014), Section 4.1, Algorithm 4 (SmallDB).

    Examples
    --------
    >>> rows = [0] * 500 + [2] * 500
    >>> synthetic_data(rows, np.eye(3), epsilon=1.0, size=4, seed=1).tolist()
    [0, 0, 2, 2]
    """
    question = _question(rows, queries)
    _check(epsilon=epsilon)
    if (accuracy is None) == (size is None):
        raise InputError("give accuracy or size, and not both; nothing was drawn")
    if accuracy is not None:
        size = synthetic_size(queries=len(question.queries), accuracy=accuracy)
    chosen_size = _check_size(cast("int", size), question)
    deviations = _deviations(question, chosen_size)
    # One row moves a deviation, in its unit 1/(n m _UNIT), by at most m times the widest query's range.
    span = int(np.ptp(question.queries, axis=1).max())
    rate = Fraction(epsilon) / (2 * chosen_size * (span or _UNIT))  # without a span all deviations are 0
    drawn = first_rings(deviations - deviations.min(), rate, 1, RandomWords(seed))
    return _candidate(int(drawn[0]), chosen_size, question.counts.size)


def synthetic_size(*, queries: int, accuracy: float) -> int:
    """Compute the number of synthetic rows that can answer all queries within an accuracy.

    Every data set, however large, has a multiset of this many of its rows on which the answer of every query with
    values in [0, 1] differs from the answer on the data set by at most `accuracy`.

    Parameters
    ----------
    queries : int
        Number of linear queries; at least 1.
    accuracy : float
        Largest error ``a`` of an answer, in (0, 1].

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It is ``ceil(ln(2 |Q|) / (2 a^2))``: the expected largest error of ``m`` random rows is at most ``sqrt(ln(2 |Q|) /
    (2 m))``, by Hoeffding's lemma for the ``2 |Q|`` signed errors. The size ``ln |Q| / a^2`` in [1]_ is larger for more
    than two queries, and useless for one query, where it is 0.

    References
    ----------
    .. [1] Dwork and Roth (2014), Theorem 4.2.

    Examples
    --------
    >>> synthetic_size(queries=20, accuracy=0.25)
    30
    """
    if queries < 1:
        raise InputError(f"queries is at least 1; got {queries}")
    if not 0 < accuracy <= 1:
        raise InputError(f"accuracy lies in (0, 1]; got {accuracy}")
    return math.ceil(math.log(2 * queries) / (2 * accuracy**2))


def synthetic_accuracy(
    *, rows: int, queries: int, cells: int, size: int, epsilon: float, beta: float
) -> float:
    """Bound the error of every query on the synthetic database.

    With probability ``1 - beta`` every query's answers on the private rows and on a database drawn by `synthetic_data`
    differ by at most the result.

    Parameters
    ----------
    rows : int
        Number ``n`` of private rows; at least 1.
    queries, cells : int
        Numbers of queries and of cells of the domain; at least 1.
    size : int
        Number ``m`` of synthetic rows; at least 1.
    epsilon
        As for `synthetic_data`.
    beta : float
        Failure probability, in (0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It is ``sqrt(ln(2 |Q|) / (2 m)) + 2 (ln C(cells + m - 1, m) + ln(1/beta)) / (n e)``, plus 2**-20 as query values
    are rounded. The first term is the best database's error, the second how much larger the drawn one's may be.

    References
    ----------
    .. [1] Dwork and Roth (2014), Theorems 3.11 and 4.2, Proposition 4.4; multisets in place of sequences.

    Examples
    --------
    >>> round(synthetic_accuracy(rows=10_000, queries=20, cells=8, size=10, epsilon=1.0, beta=0.05), 3)
    0.432
    """
    _check(epsilon=epsilon)
    for name, value in {"rows": rows, "queries": queries, "cells": cells, "size": size}.items():
        if value < 1:
            raise InputError(f"{name} is at least 1; got {value}")
    if not 0 < beta < 1:
        raise InputError(f"beta lies in (0, 1); got {beta}")
    best = math.sqrt(math.log(2 * queries) / (2 * size))
    lost = 2 * (math.log(math.comb(cells + size - 1, size)) - math.log(beta)) / (rows * epsilon)
    return min(1.0, best + lost + 1 / _UNIT)


def _check(*, epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")


def _check_size(size: int, question: _Question) -> int:
    """Refuse a size whose candidates are too many to enumerate."""
    if size < 1:
        raise InputError(f"size is at least 1; got {size}")
    cells, rows = question.counts.size, int(question.counts.sum())
    log_candidates = math.lgamma(cells + size) - math.lgamma(size + 1) - math.lgamma(cells)
    candidates = math.comb(cells + size - 1, size) if log_candidates < _MOST_NATS else math.inf
    if candidates > _MOST_CANDIDATES:
        about = _WIDE.exp(decimal.Decimal(log_candidates))
        raise InputError(
            f"at most {_MOST_CANDIDATES:,} synthetic databases can be enumerated; {size} rows over {cells} cells are "
            f"about {about:.1e}; take a smaller size, a larger accuracy, or a coarser domain"
        )
    if rows * size >= _MOST_PRODUCT:
        raise InputError(f"rows times size is below 2**42; got {rows} rows and size {size}")
    return size


def _question(rows: npt.ArrayLike, queries: npt.ArrayLike) -> _Question:
    """Check and round the rows and the queries."""
    values = np.asarray(queries, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"queries has a row per query and a column per cell; got shape {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError("a query's values lie in [0, 1]; got others; rescale them")
    cells = np.asarray(rows)
    if cells.ndim != 1 or not cells.size:
        raise InputError(f"rows is a list of cell numbers, at least one; got shape {cells.shape}")
    # The message tells no more, for the cells are private.
    if cells.dtype.kind not in "iu" or cells.min() < 0 or cells.max() >= values.shape[1]:
        raise InputError(
            f"each row is its cell's number, an integer from 0 to {values.shape[1] - 1}; got something else"
        )
    counts = np.bincount(cells.astype(np.int64), minlength=values.shape[1]).astype(np.int64)
    return _Question(counts, np.rint(values * _UNIT).astype(np.int64))


def _deviations(question: _Question, size: int) -> npt.NDArray[np.int64]:
    """Compute the deviation ``max_q |q(x) - q(y)|`` of every candidate ``y``, in units of ``1 / (n m _UNIT)``."""
    rows = int(question.counts.sum())
    worst = np.zeros(math.comb(question.counts.size + size - 1, size), dtype=np.int64)
    for query in question.queries:
        truth = int(query @ question.counts)
        np.maximum(worst, np.abs(size * truth - rows * _sums(query, size)), out=worst)
    return worst


def _sums(values: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Add up values over every multiset of cells, in colexicographic order.

    A multiset with largest cell ``k`` consists of ``k`` and a multiset that has one element less and no cell above
    ``k``. In the order of all multisets with one element less, those without a cell above ``k`` come first.
    """
    sums = np.zeros_like(values)
    for level in range(1, size + 1):
        sums = np.concatenate(
            [sums[: math.comb(cell + level - 1, level - 1)] + value for cell, value in enumerate(values)]
        )
    return sums


def _candidate(place: int, size: int, cells: int) -> npt.NDArray[np.int64]:
    """Return the multiset at a position of the colexicographic order."""
    chosen = []
    for level in range(size, 0, -1):
        first = [math.comb(cell + level - 1, level) for cell in range(cells)]
        cell = bisect.bisect_right(first, place) - 1
        place -= first[cell]
        chosen.append(cell)
    return np.array(chosen[::-1], dtype=np.int64)
