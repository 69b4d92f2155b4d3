"""The confidence interval of an average precision, from bands around the scores of both classes and their shares."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.bound import binomial_lower, binomial_upper
from reusable_holdout.certainty.exact_ratios import share_interval
from reusable_holdout.certainty.theory import THEORY, BandShares


class _Band(NamedTuple):
    """Bounds of the share of the population that scores as high as the k best rows do, for k from 0 to rows."""

    least: NDArray[np.float64]
    most: NDArray[np.float64]


def average_precision_interval(
    above: NDArray[np.int64], negatives: int, *, nats: float, shares: BandShares = THEORY.bands
) -> tuple[float, float]:
    """Return an interval for the population's average precision; each end fails with probability at most exp(-nats).

    Parameters
    ----------
    above : numpy.ndarray of int64 of shape (positives,)
        For each positive row, from the highest score down, the number of negative rows that score at least as high; not
        empty.
    negatives : int
        Rows of the other class, >= 1.
    nats : float
        > 0.
    shares : BandShares

    Notes
    -----
    Let p be the share of positives in the population, S_1(t) and S_0(t) the chances that a positive and a negative
    score t or more. Average precision is the mean, over positives' scores t, of p S_1 / (p S_1 + (1 - p) S_0).

    For u in (0, 1) let t(u) be the largest t with S_1(t) >= u: for uniform u it is distributed as a positive's score.
    Where the band says S_1(t') >= u, t(u) is at least t', so S_0(t(u)) <= S_0(t'), and precision at t(u) is at least
    p u / (p u + (1 - p) S_0(t')). Where it says S_1(t) < u for all t above t*, t(u) is at most t*, and precision there
    is at most the largest one that the bands allow at or below t*. Both are integrated over u. Ties, in the rows or in
    the population, only widen the interval.

    Each end rests on one side of each band, and of the exact interval of p.

    References
    ----------
    .. [1] Massart (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality".
    """
    positives = len(above)
    rows = positives + negatives
    level = math.log(shares.positives) - nats
    least, most = share_interval(positives, rows, -level)
    own, other = (_band(count, nats - math.log(shares.band), shares) for count in (positives, negatives))
    return _lower(above, least, own.least, other.most), _upper(above, most, own.most, other.least)


def _lower(
    above: NDArray[np.int64], share: float, least: NDArray[np.float64], most: NDArray[np.float64]
) -> float:
    """Return the integral of ``u / (u + odds S_0)``; S_0 is constant between the steps of the band."""
    if share <= 0.0:
        return 0.0
    ends = np.append(least, 1.0)
    against = (1.0 - share) / share * np.append(most[above], 1.0)  # beyond the last step S_0 is unknown
    some = np.diff(ends) != 0.0  # the band never falls
    start, wide, against = ends[:-1][some], np.diff(ends)[some], against[some]
    parts = wide - against * np.log1p(wide / (start + against))  # exact to rounding of `wide`, at any odds
    return max(float(parts.sum()), 0.0)


def _upper(
    above: NDArray[np.int64], share: float, most: NDArray[np.float64], least: NDArray[np.float64]
) -> float:
    own = share * most[1:]
    largest = own / (own + (1.0 - share) * least[above])
    at_or_below = np.maximum.accumulate(largest[::-1])[::-1]
    steps = np.diff(most, prepend=0.0)  # for u below the first step, t(u) may exceed all rows' scores
    return min(float(steps[0] + steps[1:] @ at_or_below), 1.0)


@lru_cache(maxsize=64)
def _band(rows: int, nats: float, shares: BandShares = THEORY.bands) -> _Band:
    """Return both sides of a band; each holds everywhere with probability at least ``1 - exp(-nats)``.

    At each place it is the narrower of two: Massart's distance, and an exact interval at some rank k, used up to the
    next rank. The chance of a score at least as high as the k-th highest of n is distributed as the k-th smallest of n
    uniform draws, or is larger if scores tie; the chance of a higher score is distributed in this way, too, or smaller.
    """
    counts = np.arange(rows + 1)
    distance = math.sqrt((nats - math.log1p(-shares.ranks)) / (2.0 * rows))
    ranks = _ranks(rows, shares.ratio)
    level = np.full(len(ranks), -(nats - math.log(shares.ranks) + math.log(len(ranks))))
    # of the k-th smallest uniform draw u: at least k draws are below u's upper bound, at most k - 1 below its lower one
    lows = np.asarray(binomial_lower(ranks / rows, rows=rows, log_level=level))
    highs = np.asarray(binomial_upper((ranks - 1) / rows, rows=rows, log_level=level))
    reached = np.searchsorted(ranks, counts, side="right")
    low, high = np.append(0.0, lows)[reached], np.append(highs, 1.0)[reached]
    return _Band(np.maximum(low, counts / rows - distance), np.minimum(high, counts / rows + distance))


def _ranks(rows: int, ratio: float) -> NDArray[np.int64]:
    """Return ranks from 1 to rows, each about `ratio` times the one before."""
    found, rank = [], 1.0
    while rank < rows:
        found.append(int(rank))
        rank = max(rank * ratio, rank + 1.0)
    return np.array([*found, rows])
