"""Exact intervals of scores that depend on counts alone: a class's ratio, such as F1, and Matthews's correlation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.bound import binomial_lower, binomial_upper


def share_interval(hits: float, rows: float, nats: float) -> tuple[float, float]:
    """Return the exact interval (Clopper and Pearson) of a share of rows; each end fails with at most exp(-nats).

    Without rows it is [0, 1].
    """
    if not rows:
        return 0.0, 1.0
    value, count = hits / rows, round(rows)
    low = binomial_lower(value, rows=count, log_level=-nats)
    return float(low), float(binomial_upper(value, rows=count, log_level=-nats))


def ratio_interval(
    values: NDArray[np.float64], weights: NDArray[np.float64], counts: NDArray[np.float64], nats: float
) -> tuple[float, float] | None:
    """Return the exact interval of a ratio ``E[weight * value] / E[weight]``, or None if the rows do not allow one.

    They allow one if all values are 0 or 1, all rows with value 1 (hits) have one weight u > 0, and all other rows have
    one weight w > 0.

    Notes
    -----
    Let J be the share of hits among rows of weight above 0, in the population. Given the number of such rows, hits are
    Binomial with this J, whatever that number is. The ratio is ``u J / (u J + w (1 - J))``, which rises in J. For F1,
    u = 1 and w = 1/2, so that F1 = 2 J / (1 + J).
    """
    hit, missed = values == 1.0, values == 0.0
    if np.count_nonzero(hit) != 1 or not missed.any() or not (hit | missed).all() or not weights.all():
        return None
    own, other = float(weights[hit][0]), float(weights[missed][0])
    if (weights[missed] != other).any():
        return None
    ends = share_interval(float(counts[hit][0]), float(counts.sum()), nats)
    low, high = (own * share / (own * share + other * (1.0 - share)) for share in ends)
    return low, high


def matthews(recall: float, specificity: float, share: float) -> float:
    """Return Matthews's correlation at this recall, specificity and share of positives; 0 where it is not defined."""
    predicted = share * recall + (1.0 - share) * (1.0 - specificity)
    variance = predicted * (1.0 - predicted)
    if variance <= 0.0:
        return 0.0
    return math.sqrt(share * (1.0 - share) / variance) * (recall + specificity - 1.0)


def matthews_interval(
    hits: int, positives: int, rejected: int, negatives: int, nats: float
) -> tuple[float, float]:
    """Return the ends of an interval of Matthews's correlation; each fails with probability at most exp(-nats).

    The correlation is that of a population which has the rows' share of positives, given the class counts.

    Parameters
    ----------
    hits, positives : int
        Number of rows of the positive class that are predicted right, and of all its rows, >= 1.
    rejected, negatives : int
        The same numbers for the other class.
    nats : float

    Notes
    -----
    Each end rests on one side of the exact intervals of recall s and of specificity t. At a share P of positives the
    correlation is ``(s + t - 1) sqrt(P (1 - P) / (q (1 - q)))``, where q is the share that is predicted positive. Its
    derivative in s has the sign of ``2 q (1 - q) - P (s + t - 1)(1 - 2 q) = q + (1 - t)(1 - 2 q)``, which is at least
    ``min(q, 1 - q)``; exchanging the classes, the same holds for t. So the correlation is least at both
    lower ends, and largest at both upper ends.
    """
    level, share = nats + math.log(2.0), positives / (positives + negatives)
    recalls, others = share_interval(hits, positives, level), share_interval(rejected, negatives, level)
    low, high = (matthews(*ends, share) for ends in zip(recalls, others, strict=True))
    return low, high
