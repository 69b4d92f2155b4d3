"""How far the best must lead so that a selection finds all of them: one number for noises of different laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reusable_holdout.deferred import special

__all__ = ["needed_lead"]

_NODES = 96
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(_NODES)
_UNIFORM, _WEIGHTS = (_PLACES + 1) / 2, _WEIGHTS / 2
_BISECTIONS = 50


def needed_lead(noise: str, *, count: int, candidates: int, beta: float) -> float:
    """Lead at which all of the best are found, except with a probability.

    The best few have one score, and all others have another that is the result lower: the hardest scores with this gap.

    Parameters
    ----------
    noise : str
        "gumbel" and "exponential" of rounds without replacement, the second drawn anew in each round; "laplace" drawn
        once; or "joint".
    count, candidates : int
        How many are chosen, and from how many.
    beta : float
        In (0, 1).

    Returns
    -------
    float
        In scales of the noise, to four digits; 0 where all are chosen.
    """
    others = candidates - count
    if not others:
        return 0.0
    if noise == "joint":
        ways = special.gammaln(candidates + 1) - special.gammaln(count + 1) - special.gammaln(others + 1)
        return max(0.0, float(ways + math.log(-math.expm1(-ways)) + math.log1p(-beta) - math.log(beta)))
    chance = {"gumbel": _gumbel, "exponential": _exponential, "laplace": _laplace}[noise]
    return _smallest(lambda lead: chance(lead, count, others), 1 - beta)


def _gumbel(lead: float, count: int, others: int) -> float:
    """Clocks: while i of the best are left, one of them rings before all others with chance ``i / (i + theta)``."""
    theta = others * math.exp(-lead)
    return math.exp(-float(np.log1p(theta / np.arange(1, count + 1)).sum()))


def _exponential(lead: float, count: int, others: int) -> float:
    """In each round the largest of the i best that are left exceeds the largest of all others."""
    left = np.arange(1, count + 1)[:, None]
    above = -np.expm1(
        np.log(_UNIFORM) / left
    )  # the chance that one exponential noise exceeds the largest of i
    rounds = np.exp(others * np.log1p(-above * math.exp(-lead))) @ _WEIGHTS
    return float(np.prod(rounds))


def _laplace(lead: float, count: int, others: int) -> float:
    """The smallest of the best exceeds the largest of all others."""
    log_above = (
        np.log(_UNIFORM) / count
    )  # the log of the chance that one noise exceeds the smallest of `count`
    positive = np.maximum(0.0, -math.log(2) - log_above)
    negative = np.minimum(0.0, np.log(2 * -np.expm1(log_above)))
    smallest = positive + negative  # one of them is 0
    reached = smallest + lead
    below = np.log1p(-np.exp(-np.maximum(0.0, reached)) / 2) + np.minimum(0.0, reached)
    return float(np.exp(others * below) @ _WEIGHTS)


def _smallest(chance: Callable[[float], float], wanted: float) -> float:
    """Lead at which a chance that grows with it is as large as wanted."""

    def enough(lead: float) -> bool:
        return chance(lead) >= wanted

    start = 1.0
    low, high = 0.0, start
    while not enough(high):
        high += high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
