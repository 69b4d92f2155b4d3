"""The budget that a plan shares, and its numbers as a record.

A ledger keeps the record. What was not stated was derived, and a later version may derive other numbers: so the record
holds the solved ones, and a certificate follows from these and the constants of its edition alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from reusable_holdout.certainty import THEORY

__all__ = ["OWN_BUDGET", "STATED", "SharedBudget", "same_wish"]

STATED = (
    *("charges", "choices", "confidence", "delta", "estimate", "noise", "prior_error", "queries", "reveals"),
    *("spread", "threshold", "tolerance"),
)
"""Numbers of a plan that a person states."""


@dataclass(frozen=True, kw_only=True)
class SharedBudget:
    """What a plan of one metric of the rows must keep to: the promises of the plan that the guard was made with.

    Attributes
    ----------
    view : int
        Number of the metric; 0 for the guard's own, which made the budget.
    told_before : float
        Nats of what was told of the rows when the guard was made.
    charge_nats : float
        Cost of the dearest charge of any metric; 0 for the guard's own, whose plan says it.
    told_nats : float
        Nats that may be told beside the charges, so that every promise is kept; 0 for the guard's own metric.
    theory : int
        Edition of the theory that all of it is certified by.
    noisy : bool
        Whether another metric of the rows has noise, which a share of the failure probability is kept for.
    """

    view: int = 0
    told_before: float = 0.0
    charge_nats: float = 0.0
    told_nats: float = 0.0
    noisy: bool = False
    theory: int = THEORY.edition

    def record(self) -> dict[str, Any]:
        """Return all fields by name, as JSON can write them."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what :meth:`record` wrote."""
        return cls(**record)


OWN_BUDGET = SharedBudget()
"""Of a guard's own metric, if nothing was told when it was made."""


def same_wish(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return, of two records of plans, the numbers that either was stated with."""
    names = sorted({*one["stated"], *other["stated"], "asks"})
    return {name: one[name] for name in names}, {name: other[name] for name in names}
