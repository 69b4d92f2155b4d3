"""The same promise for other rows, when a ledger goes on to the next holdout."""

from __future__ import annotations

from typing import Any, TypeVar

from reusable_holdout.plan.stated import SharedBudget, Stated

__all__ = ["renewed"]

PlanT = TypeVar("PlanT", bound=Stated)


def renewed(
    plan: PlanT,
    numbers: dict[str, Any],
    *,
    told_before: float = 0.0,
    queries: int | None = None,
    tolerance: float | None = None,
    charges: int | None = None,
    estimate: float | None = None,
) -> PlanT:
    """Plan of the same promise for other rows.

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
    derived, stated = "noise_scale" not in plan.stated, {*plan.stated} - {"tolerance", "charges"}
    renewed_plan = type(plan).from_record(
        plan.record()
        | numbers
        | {
            "shared": SharedBudget(told_before=told_before).record(),
            "queries": plan.queries if queries is None else queries,
            "tolerance": plan.tolerance if tolerance is None and charges is None else tolerance,
            "charges": charges,
            "estimate": plan.estimate if estimate is None else estimate,
            "noise_scale": None if derived else plan.noise_scale,
            "comparison_tolerance": plan.comparison_tolerance
            if "comparison_tolerance" in plan.stated
            else None,
            "comparison_noise": None if derived else plan.comparison_noise,
            "exam": None,
            "delta": plan.delta if "delta" in plan.stated else None,
        }
    )
    stated |= {"tolerance"} if tolerance is not None or charges is None else set()
    renewed_plan.stated = tuple(sorted(stated | ({"charges"} if charges is not None else set())))
    return renewed_plan
