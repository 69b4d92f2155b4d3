"""Privacy profiles of many releases that are one event, in a bounded amount of work."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.accounting.bisection import smallest_between
from reusable_holdout.mechanisms.accounting.gaussian import gaussian_delta
from reusable_holdout.mechanisms.accounting.losses import composed_deltas
from reusable_holdout.mechanisms.accounting.privacy_event import PrivacyEvent
from reusable_holdout.mechanisms.accounting.renyi import ORDERS, renyi_deltas
from reusable_holdout.mechanisms.accounting.target_charging import target_charging_delta

__all__ = ["Chords", "charging_profile", "repeated_profile"]

_MOST_POINTS = 400
_MOST_PURE = 10**6  # repetitions of what has a formula, which takes longer the more there are
_STRIDE = 8  # of the points that are computed, where all would take too long
_FARTHEST = 200.0  # epsilon; nobody wants more
_NEGLIGIBLE = 1e-20  # delta
_FEWER_POINTS, _MANY_CHARGES = (
    50,
    10_000,
)  # of target charging, where each takes longer the more charges there are
_LEAST_CHARGING = 1e-30  # delta; what is less counts for nothing there


class Chords(NamedTuple):
    """Straight lines in ``exp(epsilon)`` between points of a profile: they lie above it, for it is convex.

    Attributes
    ----------
    points, deltas : ndarray of float, shape (m,)
        Epsilons, from 0 upwards, and bounds of delta there. Beyond the last the last bound holds.
    """

    points: npt.NDArray[np.float64]
    deltas: npt.NDArray[np.float64]

    def at(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bound of delta at each epsilon."""
        place = np.minimum(np.searchsorted(self.points, epsilons, side="right") - 1, len(self.points) - 2)
        start, end = self.points[place], self.points[place + 1]
        inside = np.minimum(epsilons, end)
        share = -np.expm1(start - inside) * np.exp(inside - end) / -np.expm1(start - end)
        return np.asarray(self.deltas[place] + share * (self.deltas[place + 1] - self.deltas[place]))


@functools.lru_cache(maxsize=256)
def repeated_profile(event: PrivacyEvent, count: int) -> Chords:
    """Bounds of delta of an event with a profile, repeated adaptively; at most 401 points of it are computed.

    By the formula for such events where there is one, else by privacy-loss distributions, and where those would take
    too long, from Renyi divergences: closed, and larger.
    """
    shift = event.squared_shift()
    costs = count * event.renyi(ORDERS)
    points = np.linspace(0.0, _end(costs, min(_FARTHEST, count * event.pure())), _MOST_POINTS + 1)
    if shift is not None:
        deviation = 1 / math.sqrt(count * shift)
        return Chords(points, np.array([gaussian_delta(epsilon=at, deviation=deviation) for at in points]))
    few = count <= _MOST_POINTS and count * event.pure() < _FARTHEST
    ends = (
        np.linspace(0.0, count * event.pure(), count + 1) if few else points
    )  # of all chords of pure events
    if count <= _MOST_PURE and (known := event.repeated_deltas(count, ends)) is not None:
        return Chords(ends, known)
    for some in (points, points[::_STRIDE]):
        known = composed_deltas(lambda at: np.asarray(event.delta(at)), count, some)
        if known is not None:
            return Chords(some, known)
    return Chords(points, np.minimum(renyi_deltas(ORDERS, costs, points) + count * event.failure(), 1.0))


@functools.lru_cache(maxsize=256)
def charging_profile(epsilon: float, charges: int, q: float, mean: float | None, reach: int) -> Chords:
    """Bounds of delta of an interaction with target charging up to `reach` calls' epsilon.

    Some 400 points of it are computed, or 50, once.
    """

    def at(step: float) -> float:
        return target_charging_delta(total=step * epsilon, epsilon=epsilon, charges=charges, q=q, mean=mean)

    steps = 1
    while at(steps) > _LEAST_CHARGING and steps < reach:
        steps += steps
    number = _MOST_POINTS if charges <= _MANY_CHARGES else _FEWER_POINTS
    points = np.unique(np.linspace(0, steps, number + 1).round())
    return Chords(points * epsilon, np.array([at(step) for step in points.tolist()]))


def _end(costs: npt.NDArray[np.float64], whole: float) -> float:
    """Epsilon from which on there is next to no delta but that of failing."""

    def negligible(epsilon: float) -> bool:
        return float(renyi_deltas(ORDERS, costs, np.array([epsilon]))[0]) <= _NEGLIGIBLE

    return smallest_between(negligible, 0.0, whole)
