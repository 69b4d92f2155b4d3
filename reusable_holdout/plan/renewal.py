"""The same promise for other rows, if a ledger goes on to the next holdout."""

from __future__ import annotations

from typing import Any

from reusable_holdout.plan.numbers import SharedBudget
from reusable_holdout.plan.plan import Plan

__all__ = ["renewed"]


def renewed(
    plan: Plan,
    numbers: dict[str, Any],
    *,
    told_before: float = 0.0,
    queries: int | None = None,
    tolerance: float | None = None,
    charges: int | None = None,
    estimate: float | None = None,
) -> Plan:
    """Return the plan of the same promise for other rows.

    Everything stays as it is unless it is named, the tolerance first of all: the charges follow from it and the rows.
    Charges that are named without a tolerance make the tolerance follow. Noise that was derived is derived anew.

    Parameters
    ----------
    plan : Plan
        Of the rows before.
    numbers : dict
        What the plan must know of the metric on the new rows: rows, influence, variation.
    told_before : float
        Nats of what was told of the new rows.
    queries, tolerance, charges, estimate
        As for :class:`Plan`.

    Raises
    ------
    PlanError
        If the rows cannot keep it.
    """
    stated = plan.wished() | {
        "queries": plan.queries if queries is None else queries,
        "tolerance": plan.tolerance if tolerance is None and charges is None else tolerance,
        "charges": charges,
        "estimate": plan.estimate if estimate is None else estimate,
        "reveals": plan.reveals,
        "choices": plan.choices,
    }
    if plan.asks == "claims":
        stated |= {"tolerance": None, "charges": plan.charges if charges is None else charges}
    made = Plan(**stated | numbers, shared=SharedBudget(told_before=told_before))
    own = {*plan.stated} - {"tolerance", "charges"}
    own |= {"tolerance"} if tolerance is not None or charges is None else set()
    made.stated = tuple(sorted(own | ({"charges"} if charges is not None else set())))
    return made
