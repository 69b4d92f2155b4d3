"""The numbers of a plan as a record, and which of them were stated.

The others follow from those that were stated, and a later version may derive others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from reusable_holdout.certainty import THEORY, Policy
from reusable_holdout.noise import GuardMechanism
from reusable_holdout.plan.numbers import Family

__all__ = ["OWN_BUDGET", "SharedBudget", "Stated", "same_wish", "stated_of", "stated_problems"]

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
    """Return the names of what was given, in order."""
    return tuple(sorted(name for name in _STATED & given.keys() if given[name] is not None))


def stated_problems(record: Mapping[str, Any]) -> Iterator[str]:
    """Name what of a record cannot be, if one looks at what it was stated with."""
    stated = record["stated"]
    unlike = any((record[name] is None) == (name in stated) for name in ("threshold", "prior_error"))
    always = {"confidence", "policy", "queries"} <= {*stated}
    if stated != sorted(_STATED.intersection(stated)) or not always or unlike:
        yield "plan.stated"
    if record["spread"] is None and "spread" in stated:
        yield "plan.spread"
    if "delta" not in stated and not math.isclose(record["delta"], 1.0 / record["rows"] ** 2, rel_tol=1e-9):
        yield "plan.delta"


def same_wish(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What either of two records of plans was stated with, of both."""
    names = sorted({*one["stated"], *other["stated"]})
    return {name: one[name] for name in names}, {name: other[name] for name in names}


def _arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan is made of again, from its record."""
    parts = {"bounds": tuple(record["bounds"]), "shared": SharedBudget.from_record(record["shared"])}
    parts["rows"] = record["rows"] - (record["exam"] or 0)
    if "delta" not in record["stated"] and record["delta"] == 1.0:
        parts["delta"] = None  # that of one row, which nobody may state: it is derived again
    return {name: value for name, value in record.items() if name not in {"stated", "exam"}} | parts


class Stated:
    """The numbers of a plan, stated or derived."""

    stated: tuple[str, ...]
    rows: int
    exam_rows: int = 0  # beside `rows`: those that a plan of version 0.2.0 kept for its final
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
            "rows": self.rows + self.exam_rows,
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
        plan.stated, plan.exam_rows = tuple(record["stated"]), record["exam"] or 0
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
