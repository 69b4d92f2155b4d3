"""What is told: an outcome's name, its value, and what it costs."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["AGREED", "APART", "FAILED", "HaltReason", "Outcome"]

AGREED = "agreed"
FAILED = "failed"
APART = "; apart"
"""How the outcome of a final ends whose exam contradicts the other rows."""

HaltReason = Literal["charges", "queries", "final"]


class Outcome(NamedTuple):
    """What is told, and what it costs.

    Attributes
    ----------
    told : str
        Its public name.
    value : float
        In the metric's unit.
    charged : bool
    nats : float
    """

    told: str
    value: float
    charged: bool
    nats: float
