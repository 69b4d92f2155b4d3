"""Which numbers of a plan were stated; the others follow from them, and a later version may derive others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.plan.outlook import Outlook
from reusable_holdout.plan.privacy import Privacy
from reusable_holdout.plan.shared import SharedBudget
from reusable_holdout.plan.vacuity import Vacuity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.plan.wish import Family

__all__ = ["Stated", "arguments_of", "same_wish", "stated_of"]

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


class Stated(Vacuity, Outlook, Privacy):
    """The numbers of a plan, stated or derived."""

    stated: tuple[str, ...]
    stated_threshold: float | None
    stated_prior_error: float | None
    stated_spread: float | None
    family: Family
    variation: float
    shared: SharedBudget

    def record(self) -> dict[str, Any]:
        """Everything the plan rests on, as JSON can write it; :meth:`from_record` gives the same plan."""
        return {
            "rows": self.rows,
            "queries": self.queries,
            "tolerance": self.tolerance,
            "charges": self.charges,
            "threshold": self.stated_threshold or None,
            "noise_scale": self.noise_scale,
            "confidence": self.confidence,
            "estimate": self.estimate,
            "prior_error": self.stated_prior_error,
            "reveals": self.reveals,
            "choices": list(self.choices),
            "final_noise": self.final_noise or None,
            "exam": self.exam_rows or None,
            "delta": self.delta,
            "mechanism": self.mechanism,
            "policy": self.policy,
            "bounds": [self.lower, self.upper],
            "family": self.family,
            "influence": self.influence,
            "variation": self.variation,
            "spread": self.stated_spread,
            "comparison_tolerance": self.comparison_tolerance,
            "comparison_noise": self.comparison_noise,
            "shared": self.shared.record(),
            "stated": list(self.stated),
        }
