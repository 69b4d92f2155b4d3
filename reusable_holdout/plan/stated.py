"""Which numbers of a plan were stated; the others follow from them, and a later version may derive others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.plan.shared import SharedBudget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.plan.plan import Plan

__all__ = ["arguments_of", "record_of", "same_wish", "stated_of"]

_STATED = frozenset(
    {"queries", "tolerance", "charges", "threshold", "noise_scale", "confidence", "estimate", "prior_error"}
    | {"reveals", "choices", "final_noise", "delta", "mechanism", "policy", "spread", "comparison_tolerance"}
)


def stated_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of what was given, in order; a mechanism that is to be the tightest is derived."""
    return tuple(
        sorted(
            name for name in _STATED & given.keys() if given[name] is not None and given[name] != "tightest"
        )
    )


def same_wish(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What either of two records of plans was stated with, of both."""
    names = sorted({*one["stated"], *other["stated"]})
    return {name: one[name] for name in names}, {name: other[name] for name in names}


def arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan is made of again, from its record."""
    parts = {"bounds": tuple(record["bounds"]), "shared": SharedBudget.from_record(record["shared"])}
    return {name: value for name, value in record.items() if name != "stated"} | parts


def record_of(plan: Plan) -> dict[str, Any]:
    """Everything a plan rests on, as JSON can write it."""
    return {
        "rows": plan.rows,
        "queries": plan.queries,
        "tolerance": plan.tolerance,
        "charges": plan.charges,
        "threshold": plan.stated_threshold or None,
        "noise_scale": plan.noise_scale,
        "confidence": plan.confidence,
        "estimate": plan.estimate,
        "prior_error": plan.stated_prior_error,
        "reveals": plan.reveals,
        "choices": list(plan.choices),
        "final_noise": plan.final_noise or None,
        "exam": plan.exam_rows or None,
        "delta": plan.delta,
        "mechanism": plan.mechanism,
        "policy": plan.policy,
        "bounds": [plan.lower, plan.upper],
        "family": plan.family,
        "influence": plan.influence,
        "variation": plan.variation,
        "spread": plan.stated_spread,
        "comparison_tolerance": plan.comparison_tolerance,
        "comparison_noise": plan.comparison_noise,
        "shared": plan.shared.record(),
        "stated": list(plan.stated),
    }
