"""From Renyi divergences to epsilon and delta, in closed form."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["ORDERS", "renyi_deltas", "renyi_epsilon"]

ORDERS = 1 + np.geomspace(1e-2, 1e4, 240)
"""Orders of a divergence that are tried."""


def renyi_epsilon(
    orders: npt.NDArray[np.float64], divergences: npt.NDArray[np.float64], delta: float
) -> float:
    """Compute the smallest epsilon at a delta of a release with these divergences (Canonne et al. 2020, Prop. 12)."""
    known = divergences + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(known.min()))


def renyi_deltas(
    orders: npt.NDArray[np.float64], divergences: npt.NDArray[np.float64], epsilons: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Compute the smallest deltas at many epsilons of a release with these divergences (Canonne et al., Prop. 12)."""
    a = orders[:, None]
    logs = (a - 1) * (divergences[:, None] - epsilons + np.log1p(-1 / a)) - np.log(a)
    return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))
