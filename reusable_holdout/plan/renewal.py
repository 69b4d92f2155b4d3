"""The same promise for other rows, if a ledger goes on to the next holdout."""

from __future__ import annotations

from typing import Any

from reusable_holdout.plan.numbers import SharedBudget
from reusable_holdout.plan.plan import Plan


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

    All numbers that are not named stay the same. That holds first for the tolerance: the charges follow from it and the
    rows. If charges are named without a tolerance, the tolerance follows from them. Derived noise is derived anew.

    Parameters
    ----------
    plan : Plan
        The plan of the earlier rows.
    numbers : dict
        Facts of the metric on the new rows: rows, influence, variation.
    told_before : float
        Nats already released about the new rows.
    queries, tolerance, charges, estimate
        As for :class:`Plan`.

    Raises
    ------
    PlanError
        If the new rows cannot keep the promise.
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
