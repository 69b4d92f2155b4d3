"""The numbers of a plan as a record: which were stated, and the same promise for other rows.

The others follow from those that were stated, and a later version may derive others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from reusable_holdout.validity import THEORY, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reusable_holdout.mechanisms import GuardMechanism
    from reusable_holdout.plan.numbers import Family

__all__ = ["OWN_BUDGET", "SharedBudget", "Stated", "renewed", "same_wish", "stated_of"]

PlanT = TypeVar("PlanT", bound="Stated")

_STATED = frozenset(
    {"queries", "tolerance", "charges", "threshold", "noise_scale", "confidence", "estimate", "prior_error"}
    | {"reveals", "choices", "final_noise", "delta", "mechanism", "policy", "spread", "comparison_tolerance"}
)


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


def stated_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of what was given, in order; a mechanism that is to be the tightest is derived."""
    chosen = (name for name in _STATED & given.keys() if given[name] is not None)
    return tuple(sorted(name for name in chosen if given[name] != "tightest"))


def same_wish(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What either of two records of plans was stated with, of both."""
    names = sorted({*one["stated"], *other["stated"]})
    return {name: one[name] for name in names}, {name: other[name] for name in names}


def _arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan is made of again, from its record."""
    parts = {"bounds": tuple(record["bounds"]), "shared": SharedBudget.from_record(record["shared"])}
    return {name: value for name, value in record.items() if name != "stated"} | parts


class Stated:
    """The numbers of a plan, stated or derived."""

    stated: tuple[str, ...]
    rows: int
    asked_rows: int
    exam_rows: int
    queries: int
    charges: int
    tolerance: float
    confidence: float
    estimate: float
    lower: float
    upper: float
    span: float
    delta: float
    family: Family
    influence: float
    variation: float
    policy: Policy
    mechanism: GuardMechanism
    noise_scale: float
    stated_threshold: float | None
    stated_prior_error: float | None
    stated_spread: float | None
    reveals: int
    choices: tuple[int, ...]
    final_noise: float
    comparison_tolerance: float
    comparison_noise: float
    shared: SharedBudget
    _is_kept = False

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

    @classmethod
    def kept(cls, record: Mapping[str, Any]) -> Self:
        """Plan that a ledger keeps, as it is: a later version may plan otherwise, and breaks no promise of this one."""
        plan = cls.__new__(cls)
        plan._is_kept = True
        cls.__init__(plan, **_arguments_of(record))
        plan.stated = tuple(record["stated"])
        return plan

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Plan of a :meth:`record`."""
        plan = cls(**_arguments_of(record))
        plan.stated = tuple(record["stated"])
        return plan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stated) and self.record() | {"stated": 0} == other.record() | {"stated": 0}

    def __hash__(self) -> int:
        return hash((self.rows, self.queries, self.charges, self.tolerance))


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
            "delta": plan.delta if "delta" in plan.stated else None,
        }
    )
    stated |= {"tolerance"} if tolerance is not None or charges is None else set()
    renewed_plan.stated = tuple(sorted(stated | ({"charges"} if charges is not None else set())))
    return renewed_plan
