"""The budget that several metrics of one set of rows share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from reusable_holdout.validity import THEORY

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OWN_BUDGET", "SharedBudget"]


@dataclass(frozen=True, kw_only=True)
class SharedBudget:
    """What a plan of one view of the rows must keep to: the promises of the plan that the guard was made with.

    Attributes
    ----------
    view : int
        Number of the view; 0 for the guard's own metric, which made the budget.
    told_before : float
        Nats of what was told of the rows when the guard was made.
    charge_nats : float
        What the dearest charge of any view costs; 0 for view 0, whose own says it.
    told_nats : float
        Nats that may be told beside the charges, so that every promise is kept; 0 for view 0.
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
        """All fields by name, as JSON can write them."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """What :meth:`record` wrote."""
        return cls(**record)


OWN_BUDGET = SharedBudget()
"""Of a guard's own metric, if nothing was told when it was made."""
