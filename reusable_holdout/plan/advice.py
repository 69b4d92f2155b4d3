"""Changes of a plan that would narrow its answers, with the tolerance that each would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reusable_holdout.errors import PlanError
from reusable_holdout.plan.numbers import round_up
from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.plan.solution import solved

_LIKELY = 0.9  # of the range: the score of a model that a user may expect


def narrower(plan: Outlook) -> list[tuple[str, float]]:
    """Return changes in words, each with the tolerance that it would give, the smallest first."""
    if plan.asks != "all" or plan.final_share == 1.0 or plan.stated_threshold is not None:
        return []
    changes: dict[str, dict[str, Any]] = {f"{2 * plan.rows:,} rows": {"rows": 2 * plan.rows}}
    likely = float(f"{plan.scale.value(_LIKELY):.4g}")
    # a ratio's rows follow from its estimate
    if plan.family != "ratio" and plan.unit(plan.estimate) < plan.unit(likely):
        changes[f"estimate={likely:g}, if you expect it"] = {"estimate": plan.unit(likely)}
    if plan.reveals or plan.choices:
        changes["no reveals= and choices="] = {"reserved_nats": 0.0}
    found = {words: _tolerance(plan, **change) for words, change in changes.items()}
    less = [(words, one) for words, one in found.items() if one is not None and one < plan.tolerance]
    return sorted(less, key=lambda change: change[1])


def more_charges(plan: Outlook) -> tuple[int, float] | None:
    """Return twice the charges and the tolerance they need; None unless it is wider than the plan's and not vacuous."""
    if plan.asks != "all" or plan.final_share == 1.0 or 2 * plan.charges > plan.queries:
        return None
    tolerance = _tolerance(plan, charges=2 * plan.charges)
    if tolerance is None or not plan.tolerance < tolerance <= 0.25 * plan.span:
        return None
    return 2 * plan.charges, tolerance


def _tolerance(plan: Outlook, **changes: Any) -> float | None:
    """Return the tolerance that the plan would derive with these changes; None if no such plan can be made."""
    noise = plan.open_wish.noise_scale if "noise" in plan.stated else None
    numbers = {"rows": plan.rows, "queries": plan.queries, "charges": plan.charges, "tolerance": None}
    wish = replace(plan.open_wish, kept_sds=None, noise_scale=noise, **numbers | changes)
    try:
        return round_up(solved(wish, scale=plan.scale).tolerance * plan.span)
    except PlanError:
        return None
