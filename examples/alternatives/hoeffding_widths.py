"""Half-widths by Hoeffding's inequality and a union bound: over shares of the rows, over queries, over transcripts.

Every query is a mean over the holdout's rows of values in [0, 1]. Widths are fractions of the range, for all queries at
once with probability ``1 - beta``; 1 says nothing. Exact bounds are narrower; these are the bounds that the literature
prints.
"""

from __future__ import annotations

import math

import numpy as np

from reusable_holdout.errors import InputError

__all__ = ["hoeffding_splitting_half_width", "naive_union_half_width", "rounded_answers_half_width"]


def hoeffding_splitting_half_width(*, rows: int, queries: int, beta: float) -> float:
    """Compute the half-width if every query had a fresh share of the rows, by Hoeffding's inequality.

    It is valid for adaptively chosen queries, and infinite if there are fewer rows than queries. The literature
    compares with this number; ``sample_splitting_half_width`` is narrower, by exact bounds.

    Parameters
    ----------
    rows : int
        Holdout rows n, >= 1, independent draws from the population.
    queries : int
        Queries K, >= 1.
    beta : float
        Failure probability of everything together, in (0, 1).

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``sqrt(ln(2K / beta) / (2 floor(n / K)))``.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1.

    Examples
    --------
    >>> [round(hoeffding_splitting_half_width(rows=10_000, queries=k, beta=0.05), 3) for k in (10, 100, 1_000)]
    [0.055, 0.204, 0.728]
    """
    _check(rows=rows, queries=queries, beta=beta)
    share = rows // queries
    return math.sqrt(math.log(2.0 * queries / beta) / (2.0 * share)) if share else math.inf


def naive_union_half_width(*, rows: int, queries: int, beta: float) -> float:
    """Compute the half-width of a union bound over the queries that were asked, by Hoeffding's inequality.

    It is **not** valid for adaptively chosen queries, although it is often used for them; boosting attacks refute it.
    It is valid if all queries were fixed before the first answer.

    Parameters
    ----------
    rows, queries, beta
        As in :func:`hoeffding_splitting_half_width`.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``sqrt(ln(2K / beta) / (2n))``.

    Examples
    --------
    >>> round(naive_union_half_width(rows=10_000, queries=1_000, beta=0.05), 4)
    0.023
    """
    _check(rows=rows, queries=queries, beta=beta)
    return math.sqrt(math.log(2.0 * queries / beta) / (2.0 * rows))


def rounded_answers_half_width(*, rows: int, queries: int, beta: float, levels: int | None = None) -> float:
    """Compute the half-width of a union bound over every query that could have been asked, if all answers are rounded.

    It is valid for adaptively chosen queries: with M possible answers there are ``M^(i-1)`` possible i-th queries.

    Parameters
    ----------
    rows, queries, beta
        As in :func:`hoeffding_splitting_half_width`.
    levels : int, optional
        Number of possible answers M, the midpoints of as many cells, >= 2; the best number by default.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``sqrt((ln(2K / beta) + (K - 1) ln M) / (2n)) + 1 / (2M)``; one bit gives no sharper bound than a few digits.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold and Roth (2015), "Generalization in Adaptive Data Analysis and
       Holdout Reuse", section 3.

    Examples
    --------
    >>> round(rounded_answers_half_width(rows=10_000, queries=1_000, beta=0.05, levels=100), 3)
    0.485
    """
    _check(rows=rows, queries=queries, beta=beta)
    if levels is not None and levels < 2:
        raise InputError(f"levels is at least 2; got {levels}")
    tried = np.arange(2, 10_001) if levels is None else np.array([levels])
    nats = math.log(2.0 * queries / beta) + (queries - 1) * np.log(tried)
    return float(np.min(np.sqrt(nats / (2.0 * rows)) + 0.5 / tried))


def _check(*, rows: int, queries: int, beta: float) -> None:
    if rows < 1 or queries < 1:
        raise InputError(f"rows and queries are at least 1; got {rows} and {queries}")
    if not 0.0 < beta < 1.0:
        raise InputError(f"beta lies in (0, 1); got {beta}")
