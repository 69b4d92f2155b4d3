"""What the guard releases."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Answer"]


class Answer(NamedTuple):
    """One released answer.

    With the guard's confidence, the intervals of all its answers together contain the population values.

    Attributes
    ----------
    value : float
        The answer, in the metric's unit: the prior if the holdout agrees, else a fresh holdout value with noise.
    charged : bool
        Whether the prior deviated and a charge was paid.
    low, high : float
        The interval of the population value.
    prior : float
        The training estimate the question came with.
    query : int
        Number of the question, from 1.
    charges_left : int
        Charges still affordable; at 0 the guard has halted.
    replayed : bool
        Whether the same question had been answered before: then this is that answer, and it cost nothing.
    threshold : float
        Deviation beyond which this question would be charged, before noise.
    name : str
        What the analyst called the question; may be empty.
    paired : bool
        Whether two models were compared: then value, prior and interval are differences.
    """

    value: float
    charged: bool
    low: float
    high: float
    prior: float
    query: int
    charges_left: int
    replayed: bool
    threshold: float
    name: str
    paired: bool = False

    def __str__(self) -> str:
        kind = "charged" if self.charged else "agreed"
        again = ", replayed" if self.replayed else ""
        return (
            f"{self.value:.4f} in [{self.low:.4f}, {self.high:.4f}] ({kind}{again}; "
            f"query {self.query}, {self.charges_left} charges left)"
        )
