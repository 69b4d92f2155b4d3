"""Conversion of Renyi divergences to epsilon and delta, in closed form."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

ORDERS = 1 + np.geomspace(1e-2, 1e4, 240)
"""Orders of the Renyi divergence that are tried."""


def renyi_epsilon(
    orders: npt.NDArray[np.float64], divergences: npt.NDArray[np.float64], delta: float
) -> float:
    """Compute the epsilon at a delta from a release's Renyi divergences, by Canonne et al. (2020), Proposition 12."""
    known = divergences + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(known.min()))


def renyi_deltas(
    orders: npt.NDArray[np.float64], divergences: npt.NDArray[np.float64], epsilons: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Compute the delta at each epsilon from a release's Renyi divergences, by Canonne et al. (2020), Prop. 12."""
    a = orders[:, None]
    logs = (a - 1) * (divergences[:, None] - epsilons + np.log1p(-1 / a)) - np.log(a)
    return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))
