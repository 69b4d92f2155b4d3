"""The tail of a mean of losses in [0, 1] by convex order: narrower than Chernoff's bound, and as general.

Let B count successes in n trials of probability p, and S be the sum of n independent losses in [0, 1] whose means have
the mean p. Then ``E f(S) <= E f(B)`` for every convex f [1]_, [2]_; the same holds of n times a mean over all ways to
pair rows, such as the area under a ROC curve. ``f(s) = max(s - j, 0) / (x - j)`` is at least one from x on, hence::

    Pr[S >= x] <= min over whole j < x of E max(B - j, 0) / (x - j)

No convex function does better, and an exponential one gives Chernoff's bound: this is never wider. It is within a
factor of e of a binomial tail [3]_.

References
----------
.. [1] Hoeffding (1956), "On the distribution of the number of successes in independent trials", theorem 3.
.. [2] Hoeffding (1963), "Probability inequalities for sums of bounded random variables", sections 4 and 5.
.. [3] Bentkus (2004), "On Hoeffding's inequalities", theorem 1.2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np

from reusable_holdout.deferred import special
from reusable_holdout.validity.confidence import checked, chernoff_lower, chernoff_reach_low

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.validity.floats_and_arrays import Real

__all__ = ["convex_lower", "convex_reach_low", "log_convex_tail"]

_LEAST_LEVEL = -600.0  # below, tails are no floats
_MOST_ROWS = 10**7  # above, their rounding is too coarse
_CANCELLED = 1e-3  # of what is subtracted: less is left over of rounding
_STEPS = 40


def log_convex_tail(
    successes: NDArray[np.float64], *, rows: int, probability: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log of the bound for ``Pr[S >= successes]``; infinite where rounding spoils it.

    Parameters
    ----------
    successes, probability : numpy.ndarray of shape (questions,)
        x and p, with ``rows p < x <= rows`` and ``0 < p < 1``.
    rows : int
    """
    place, found = _first_place(successes, rows, probability), np.full(len(successes), np.inf)
    for _ in range(_STEPS):
        tail = _Tail.at(successes, rows, probability, place)
        nearer = tail.log < found - 1e-15
        found = np.where(nearer, tail.log, found)
        if not nearer.any():
            break
        place = tail.next_place
    return found


def convex_lower(value: Real | float, *, rows: int, log_level: Real | float) -> Real:
    """Lower confidence bound for a mean of independent losses in [0, 1], whatever their distribution.

    The population mean lies below it with probability at most ``exp(log_level)``; rounding only lowers it.

    Parameters
    ----------
    value, rows, log_level
        As for :func:`~reusable_holdout.validity.confidence.chernoff_lower`.

    Returns
    -------
    float or array
        In [0, 1], never below that bound.

    Examples
    --------
    >>> round(convex_lower(0.9, rows=100, log_level=math.log(0.025)), 4)
    0.8147
    """
    value, level = checked(value, log_level, rows)
    chernoff = chernoff_lower(value, rows=rows, log_level=level)
    return cast("Real", _narrowed(_lower, _lower_of_one, value, rows, level, chernoff))


def convex_reach_low(target: Real | float, *, rows: int, log_level: Real | float) -> Real:
    """Smallest observed mean whose :func:`convex_lower` reaches a target; rounded upwards.

    Infinite as :func:`~reusable_holdout.validity.confidence.binomial_reach_low`, whose parameters it has.

    Examples
    --------
    >>> round(convex_reach_low(0.8147, rows=100, log_level=math.log(0.025)), 3)
    0.9
    """
    target, level = checked(target, log_level, rows)
    chernoff = chernoff_reach_low(target, rows=rows, log_level=level)
    return cast("Real", _narrowed(_reach, _reach_of_one, target, rows, level, chernoff))


def _narrowed(
    of_many: Callable[..., Any], of_one: Callable[..., Any], first: Any, rows: int, level: Any, chernoff: Any
) -> Any:
    if rows > _MOST_ROWS:
        return chernoff
    return (of_one if isinstance(first, float) else of_many)(first, rows, level, chernoff)


# ---- one number at a time, which is twenty times as fast as an array of one


@lru_cache(maxsize=4096)
def _lower_of_one(value: float, rows: int, level: float, chernoff: float) -> float:
    if not (level > _LEAST_LEVEL and 0.0 < chernoff < value):
        return chernoff
    slack = _slack(rows)
    best = low = tried = chernoff
    high = min(value, 1.0)
    successes, goal = rows * high, level - slack
    place = _first_place_of_one(successes, rows, tried)
    for _ in range(_STEPS):
        log, excess, slope, following = _tail_of_one(successes, rows, tried, place)
        gap = goal - log
        if gap >= 0.0:
            best, low = max(best, tried), tried
        elif math.isinf(gap):  # rounding spoils what lies far below
            low = tried
        else:
            high = tried
        if high - low <= 1e-14 or (0.0 <= gap <= slack and following == place):
            break
        moved = tried * math.exp(min(gap * excess / (slope * tried), 700.0)) if excess else low
        tried, place = moved if low < moved < high else (low + high) / 2.0, following
    return best


@lru_cache(maxsize=4096)
def _reach_of_one(target: float, rows: int, level: float, chernoff: float) -> float:
    if not (level > _LEAST_LEVEL and 0.0 < target < 1.0):
        return chernoff
    needed = math.exp(-level + 3.0 * _slack(rows))
    best = min(chernoff * rows, rows * (1.0 + 1e-9))
    place = _first_place_of_one(min(max(best, rows * target * (1.0 + 1e-12)), float(rows)), rows, target)
    for _ in range(_STEPS):
        before, following = best, place
        for one in {max(place - 1.0, 0.0), min(place, rows - 1.0), min(place + 1.0, rows - 1.0)}:
            excess, _, beyond = _mean_excess_of_one(one, rows, target)
            if excess and one + excess * needed < best * (1.0 - 1e-15):
                best = one + excess * needed
            if excess and beyond > 0.0 and one == place:
                following = min(max(math.floor(best - excess / beyond), 0.0), rows - 1.0)
        if best == before and following == place:
            break
        place = following
    return min(chernoff, best / rows * (1.0 + 1e-15)) if best <= rows else chernoff


def _first_place_of_one(successes: float, rows: int, probability: float) -> float:
    last = math.ceil(successes) - 1.0
    if successes >= rows:
        return last
    rate = math.log(successes / (rows - successes)) - math.log(probability / (1.0 - probability))
    return min(max(math.floor(successes - 1.0 / rate), 0.0), last) if rate > 0.0 else 0.0


def _tail_of_one(
    successes: float, rows: int, probability: float, place: float
) -> tuple[float, float, float, float]:
    """As :class:`_Tail`; an excess of 0 is none."""
    last, found = math.ceil(successes) - 1.0, (math.inf, 0.0, 0.0, place)
    for one in (place, place + 1.0):
        if one > last:
            break
        excess, slope, beyond = _mean_excess_of_one(one, rows, probability)
        if excess and (log := math.log(excess / (successes - one))) < found[0]:
            following = math.floor(successes - excess / beyond) if beyond > 0.0 else one
            found = log, excess, slope, min(max(following, 0.0), last)
    return found


def _mean_excess_of_one(place: float, rows: int, probability: float) -> tuple[float, float, float]:
    """As :func:`_mean_excess`, with 0 in place of what is not a number."""
    tail = float(special.betainc(place, rows - place, probability)) if place > 0.0 else 1.0
    log_mass = math.lgamma(rows) - math.lgamma(place + 1.0) - math.lgamma(rows - place)
    log_mass += place * math.log(probability) + (rows - 1.0 - place) * math.log1p(-probability)
    mass = (1.0 - probability) * math.exp(log_mass)
    excess = (rows * probability - place) * tail + place * mass
    return (
        (excess if excess > _CANCELLED * place * mass and excess > 1e-290 else 0.0),
        rows * tail,
        tail - mass,
    )


# ---- arrays


class _Tail(NamedTuple):
    """The bound at a place j near the best one, each of shape (questions,).

    Attributes
    ----------
    log : numpy.ndarray
        Infinite where rounding spoils it.
    excess, slope : numpy.ndarray
        ``E max(B - j, 0)``, and its derivative in the probability.
    next_place : numpy.ndarray
        Where the bound is least: x - j is there the mean of B - j, if B is above j.
    """

    log: NDArray[np.float64]
    excess: NDArray[np.float64]
    slope: NDArray[np.float64]
    next_place: NDArray[np.float64]

    @classmethod
    def at(
        cls,
        successes: NDArray[np.float64],
        rows: int,
        probability: NDArray[np.float64],
        place: NDArray[np.float64],
    ) -> Self:
        """The better one of a place and the next."""
        last = np.ceil(successes) - 1.0
        places = np.minimum(np.stack([place, place + 1.0]), last)
        excess, slope, beyond = _mean_excess(places, rows, probability)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.nan_to_num(np.log(excess) - np.log(successes - places), nan=np.inf, posinf=np.inf)
            nexts = np.nan_to_num(np.floor(successes - excess / beyond), nan=-1.0, neginf=-1.0)
        better = (logs[1] < logs[0]).astype(np.intp)
        log, excess, slope, following = (
            np.where(better, each[1], each[0]) for each in (logs, excess, slope, nexts)
        )
        return cls(log, excess, slope, np.where(following < 0.0, place, np.minimum(following, last)))


def _first_place(
    successes: NDArray[np.float64], rows: int, probability: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Whole number below the place where the tangent of the best exponential function is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log(successes / (rows - successes)) - np.log(probability / (1.0 - probability))
        place = np.floor(successes - 1.0 / rate)
    return np.asarray(np.clip(np.nan_to_num(place), 0.0, np.ceil(successes) - 1.0))


def _mean_excess(
    place: NDArray[np.float64], rows: int, probability: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """``E max(B - place, 0)``, not a number where rounding may spoil it, its derivative, and ``Pr[B > place]``.

    With A = Pr[B' >= place] and b = Pr[B' = place], B' of one trial less: (n p - place) A + place (1 - p) b, n A, and
    A - (1 - p) b.
    """
    tail = np.where(
        place > 0.0, special.betainc(np.maximum(place, 1.0), np.maximum(rows - place, 1.0), probability), 1.0
    )
    log_mass = (
        special.gammaln(float(rows))
        - special.gammaln(place + 1.0)
        - special.gammaln(rows - place)
        + special.xlogy(place, probability)
        + special.xlog1py(rows - 1.0 - place, -probability)
    )
    mass = (1.0 - probability) * np.exp(log_mass)
    excess = (rows * probability - place) * tail + place * mass
    sound = (excess > _CANCELLED * place * mass) & (excess > 1e-290)
    kept: NDArray[np.float64] = np.where(sound, excess, np.nan)
    return kept, rows * tail, tail - mass


def _slack(rows: int) -> float:
    """Nats above all rounding: that of the log of a factorial, as much as subtracting may enlarge it."""
    return 1e-9 + 4e-16 / _CANCELLED * math.lgamma(rows + 1.0)


def _lower(
    value: NDArray[np.float64], rows: int, level: NDArray[np.float64], chernoff: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Newton's method on the log of the bound, inside a bracket; what is answered was seen to keep the level."""
    wanted = (level > _LEAST_LEVEL) & (chernoff > 0.0) & (chernoff < value)
    found = np.array(chernoff, dtype=np.float64)
    if not wanted.any():
        return found
    slack = _slack(rows)
    best, high = found[wanted], np.minimum(value[wanted], 1.0)
    successes, goal = rows * high, level[wanted] - slack
    low = tried = best
    place = _first_place(successes, rows, tried)
    for _ in range(_STEPS):
        tail = _Tail.at(successes, rows, tried, place)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = goal - tail.log
            moved = tried * np.exp(gap * tail.excess / (tail.slope * tried))  # Newton's step in log p
        best = np.where(gap >= 0.0, np.maximum(best, tried), best)
        below = (gap >= 0.0) | np.isinf(gap)  # rounding spoils what lies far below
        settled = (gap >= 0.0) & (gap <= slack) & (tail.next_place == place)
        low, high = np.where(below, tried, low), np.where(below, high, tried)
        if np.all((high - low <= 1e-14) | settled):
            break
        tried = np.where((moved > low) & (moved < high), moved, (low + high) / 2.0)
        place = tail.next_place
    found[wanted] = best
    return found


def _reach(
    target: NDArray[np.float64], rows: int, level: NDArray[np.float64], chernoff: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For a fixed j the bound says which x it needs, and at the best one the probability beyond j is the level."""
    wanted = (level > _LEAST_LEVEL) & (target > 0.0) & (target < 1.0)
    found = np.array(chernoff, dtype=np.float64)
    if not wanted.any():
        return found
    probability, needed = target[wanted], np.exp(-level[wanted] + 3.0 * _slack(rows))
    best = np.minimum(found[wanted] * rows, rows * (1.0 + 1e-9))  # may be infinite
    place = _first_place(np.clip(best, rows * probability * (1.0 + 1e-12), rows), rows, probability)
    for _ in range(_STEPS):
        places = np.clip(place + np.array([[-1.0], [0.0], [1.0]]), 0.0, rows - 1.0)
        excess, _, beyond = _mean_excess(places, rows, probability)
        nearer = np.fmin.reduce(places + excess * needed)
        moved = np.where(np.isnan(excess[1]), 0.0, nearer - excess[1] / beyond[1])
        improved = nearer < best * (1.0 - 1e-15)
        best = np.where(improved, nearer, best)
        following = np.clip(np.floor(np.where(np.isfinite(moved), moved, place)), 0.0, rows - 1.0)
        if not improved.any() and np.array_equal(following, place):
            break
        place = following
    found[wanted] = np.fmin(found[wanted], np.where(best <= rows, best / rows * (1.0 + 1e-15), np.inf))
    return found
