"""The privacy profile (delta as a function of epsilon) of an interaction with target charging."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.accounting.target_charging import target_charging_delta

_MOST_POINTS = 400
_FEWER_POINTS, _MANY_CHARGES = 50, 10_000  # each point takes longer the more charges there are
_LEAST_CHARGING = 1e-30  # the points end where delta is smaller


class Chords(NamedTuple):
    """Straight lines between points of a profile, in ``exp(epsilon)``. The profile is convex, so they lie above it.

    Attributes
    ----------
    points, deltas : ndarray of float, shape (m,)
        Epsilons, from 0 upwards, and bounds of delta there. Beyond the last point the last bound holds.
    """

    points: npt.NDArray[np.float64]
    deltas: npt.NDArray[np.float64]

    def at(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return a bound of delta at each epsilon."""
        place = np.minimum(np.searchsorted(self.points, epsilons, side="right") - 1, len(self.points) - 2)
        start, end = self.points[place], self.points[place + 1]
        inside = np.minimum(epsilons, end)
        share = -np.expm1(start - inside) * np.exp(inside - end) / -np.expm1(start - end)
        return np.asarray(self.deltas[place] + share * (self.deltas[place + 1] - self.deltas[place]))


@functools.lru_cache(maxsize=256)
def charging_profile(epsilon: float, charges: int, q: float, mean: float | None, reach: int) -> Chords:
    """Bound the delta of an interaction with target charging for epsilons up to `reach` times that of one call.

    About 400 points of the profile are computed, or 50 if there are many charges.
    """

    def at(step: float) -> float:
        return target_charging_delta(total=step * epsilon, epsilon=epsilon, charges=charges, q=q, mean=mean)

    steps = 1
    while at(steps) > _LEAST_CHARGING and steps < reach:
        steps += steps
    number = _MOST_POINTS if charges <= _MANY_CHARGES else _FEWER_POINTS
    points = np.unique(np.linspace(0, steps, number + 1).round())
    return Chords(points * epsilon, np.array([at(step) for step in points.tolist()]))
