"""An interval, and how its sides divide a question's failure probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "Numbers", "Shares"]

Numbers = float | NDArray[np.float64]


class Interval(NamedTuple):
    """Lower and upper end, in the metric's unit."""

    low: Numbers
    high: Numbers


class Shares(NamedTuple):
    """Share of a question's failure probability that each side of an interval may spend; see `Certificate`.

    Attributes
    ----------
    agreed, charged : float
        Of the interval of a question that was not charged, and of one that was.
    """

    agreed: float
    charged: float
