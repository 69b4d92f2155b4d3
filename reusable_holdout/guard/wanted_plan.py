"""The plan that an owner wishes, and the part of it that can be kept at the released counts; see `class_counts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import HoldoutError, InputError, PlanError
from reusable_holdout.guard import class_counts
from reusable_holdout.guard.views import Counts
from reusable_holdout.metrics import BoundMetric
from reusable_holdout.plan import Plan, SharedBudget
from reusable_holdout.plan.solution import needs, says_something
from reusable_holdout.slips import warn

_QUERIES, _CHARGES = 100, 3
_OF_ONE_CLASS = {"average_precision", "f1", "fbeta", "jaccard", "precision", "recall", "specificity"}


class CountedClassWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """A metric counts one of two classes that are text as positive, and which one follows from the alphabet alone.

    It is also an error of this library: if warnings are raised as errors, its message must reach the user.
    """


def warn_of_counted_class(bound: BoundMetric) -> None:
    """Warn which of two text classes a metric counts as positive; classes are public, so the warning may name them."""
    classes, metric = bound.classes, bound.metric
    if metric.kernel is None or metric.name not in _OF_ONE_CLASS:
        return
    if classes is None or len(classes) != 2 or classes.dtype.kind != "U":
        return
    other, counted = classes.tolist()
    warn(
        CountedClassWarning(
            f"{metric.name} counts {counted!r} as the positive class, the last of {other!r} and {counted!r} in sorted "
            f"order; if {other!r} is meant, guard y == {other!r}, and ask with models or predictions of the same kind, "
            "or rename the classes so that it sorts last"
        )
    )


def decided_as_ratio(bound: BoundMetric, stated: Mapping[str, Any]) -> bool:
    """Return True if questions are decided by the metric's confidence sets, which need no class counts and no noise.

    InputError if the metric has no other bounds, and a stated option needs other ones.
    """
    plain = not (stated.get("noise") or stated.get("threshold") or stated.get("board"))
    if bound.statistic.only_as_ratio and not plain:
        other = "variance= in place of center=" if bound.metric.name == "r2" else "floor="
        raise InputError(
            f"{bound.metric.name} takes no noise and no threshold here, and no board; nothing was made; "
            f"leave noise=, threshold= and board= out, or pass {other}"
        )
    return bound.is_ratio and plain


def guessed(
    bound: BoundMetric, prevalence: object = None, *, by_ratio: bool = False, theory: int = THEORY.edition
) -> Counts | None:
    """Return the guess of the class counts, or group sizes, that a metric rests on; None for other metrics.

    The metric's public numbers are set as if the guess were correct, so a plan, or its refusal, is the same for all
    labels. For a metric that is decided `by_ratio` nothing is released, and only the plan uses the guess. Raises
    InputError if `prevalence` does not hold the class shares that the owner expects, or if the metric has no classes.
    """
    if prevalence is not None and bound.classes is None:
        raise InputError(
            f"prevalence= is about public classes, and metric {bound.metric.name!r} has none; leave it out"
        )
    if prevalence is None and not by_ratio and _rests_on_no_counts(bound):
        return None
    return class_counts.guess(bound, prevalence, by_ratio=by_ratio, theory=theory)


def _rests_on_no_counts(bound: BoundMetric) -> bool:
    """Return True if the metric's bound does not depend on class counts.

    It does not for means of 0/1 losses, for a user's own loss, and for constant stated differences.
    """
    metric = bound.metric
    named = metric.family == "binomial" if metric.differences is None else not callable(metric.differences)
    own = metric.loss is not None or named
    return bound.classes is None or own


def plan_numbers(
    bound: BoundMetric,
    *,
    counts: Counts | None = None,
    estimate: float | None = None,
    spread: float | None = None,
) -> dict[str, Any]:
    """Return the facts of a metric and its rows that a plan needs."""
    if counts is not None and counts.place is None:
        return class_counts.numbers_of_ratio(bound, counts, estimate, spread)
    return {
        "greater_is_better": bound.metric.greater_is_better,
        "rows": bound.effective_rows,
        "bounds": (bound.metric.lower, bound.metric.upper),
        "family": "mean" if bound.by_rows and bound.family == "bounded" else bound.family,
        "influence": float(bound.sensitivity * bound.effective_rows),
        "variation": bound.sum_of_squares * bound.effective_rows,
        "spread": spread,
    }


def usual_plan(stated: Mapping[str, Any], facts: Mapping[str, Any], told_before: float) -> Plan:
    """Return the plan of a new guard, from the numbers that its owner stated.

    There are 100 queries by default. If neither tolerance nor charges are stated there are three charges, or fewer if
    the rows are too few for a useful tolerance that leaves room for a reveal or the class counts of another metric.
    """

    def of(**usual: int) -> Plan:
        return Plan(**{**usual, **stated, **facts}, shared=SharedBudget(told_before=told_before))

    if stated.get("board") or stated.get("final_share") == 1.0:
        return of()
    if {"tolerance", "charges"} & stated.keys():
        return of(queries=_QUERIES)
    tried: list[Plan] = []
    queries = stated.get("queries")
    most = min(_CHARGES, queries) if isinstance(queries, int) and queries > 0 else _CHARGES
    for charges in range(most, 0, -1):
        tried.append(of(queries=_QUERIES, charges=charges))
        if not tried[-1].vacuous and tried[-1].leaves_room:
            return tried[-1]
    return next((plan for plan in tried if not plan.vacuous), tried[-1])


@contextmanager
def saying_what_counts(bound: BoundMetric, counts: int) -> Iterator[None]:
    """Make a PlanError name numbers with which a guard could be made: holdout rows, and a tolerance not vacuous.

    If fewer rows count than the holdout has, the error states both numbers, which are public.
    """
    try:
        yield
    except PlanError as error:
        nearest, counted = dict(error.nearest), bound.counted_rows
        fewer = bound.groups is None and counted != counts
        if fewer and "rows" in nearest:
            nearest["rows"] = math.ceil(nearest["rows"] * counted / (counts - 0.5))  # `counts` was rounded
        if not says_something(nearest.get("tolerance", 0.0), bound.metric.upper - bound.metric.lower):
            del nearest["tolerance"]
        told = str(error).replace(needs(dict(error.nearest)), needs(nearest))
        told += f"; for {bound.metric.name} these {counted:,} rows count as {counts:,}" * fewer
        raise PlanError(told, nearest) from None


# ---- the wish, and the part of it that is kept

# A plan is refused by the guess alone, because a refusal by the true counts would tell something of them. If the
# released counts leave less than was wished, the guard is made all the same, and its owner is warned.


class KeptLessWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """The class counts leave a smaller budget than was wished, and the guard keeps to the smaller one.

    It is also an error of this library: if warnings are raised as errors, its message must reach the user.
    """


class Kept(NamedTuple):
    """The plan that a guard keeps, the class counts it assumes, and why it differs from the plan that was asked for."""

    plan: Plan
    counts: Counts | None
    lost: str = ""

    def warn(self, nats: float, *, vacuous: bool) -> None:
        """Warn of wishes that are not kept; `nats` is what the release of the counts has cost."""
        if not (self.lost or (self.plan.vacuous and not vacuous)):
            return
        nothing = ", which says nothing: it is more than a quarter of the range" if self.plan.vacuous else ""
        warn(
            KeptLessWarning(
                f"the released class counts or group sizes of these rows, which cost {nats:.1f} nats, allow less than "
                f"was wished: {self.lost or 'fewer rows count than was guessed'}; the guard was made all the same, "
                f"with a tolerance of {self.plan.tolerance:g}{nothing}; print(guard.plan) says what else changed"
            )
        )


class Wanted:
    """A wished plan for a metric's rows.

    Parameters
    ----------
    bound : BoundMetric
        Metric on the rows, whose numbers rest on the counts.
    counts : Counts or None
        Guessed counts, or counts known from before.
    planned : callable
        Function that returns a plan from its :func:`plan_numbers`, the nats released before the first question, and
        other stated numbers by name.
    told_before : float, optional
        Nats released before the first question; by default the cost of the counts if the guess is right.
    charges : int, optional
        Stated number of charges.
    **stated
        Other arguments of :func:`plan_numbers`.

    Attributes
    ----------
    counts : Counts or None
    guess : Plan
        Plan at the guessed counts; a PlanError is raised if there is none.
    """

    def __init__(
        self,
        bound: BoundMetric,
        counts: Counts | None,
        planned: Callable[..., Plan],
        *,
        told_before: float | None = None,
        charges: int | None = None,
        **stated: Any,
    ) -> None:
        self._bound, self._planned, self._stated = bound, planned, stated
        self._wider = {"tolerance": None, "charges": charges or 1}
        self.counts, self._numbers = counts, plan_numbers(bound, counts=counts, **stated)
        self.guess = self._plan(
            self._numbers, (0.0 if counts is None else counts.nats) if told_before is None else told_before
        )

    def kept(self, counts: Counts | None, told_before: float) -> Kept:
        """Return the part of the wish that can be kept at the released counts.

        If more rows count than was guessed, the guess is tried second. If the wish cannot be kept at all, the charges
        are kept with the smallest possible tolerance, in the last resort the whole range.
        """
        numbers = [plan_numbers(self._bound, counts=counts, **self._stated)]
        if counts is not None and counts.place is not None and counts.place > 0:
            numbers.append(self._numbers)
        lost: list[str] = []
        for less in ({}, self._wider):
            for each in numbers:
                try:
                    return Kept(self._plan(each, told_before, **less), counts, lost[0] if less else "")
                except (PlanError, InputError) as error:
                    lost.append(str(error))
        record = self.guess.record()
        whole = {
            "tolerance": self.guess.span,
            "charges": self._wider["charges"],
            "delta": record["delta"] if "delta" in record["stated"] else 1.0 / numbers[-1]["rows"] ** 2,
            "shared": record["shared"] | {"told_before": told_before},
            "stated": [name for name in record["stated"] if name != "tolerance"],
            "told_nats": self.guess.set_aside,
        }
        return Kept(Plan.kept(record | numbers[-1] | whole), counts, lost[0])

    def _plan(self, numbers: dict[str, Any], told_before: float, **less: Any) -> Plan:
        with saying_what_counts(self._bound, numbers["rows"]):
            return self._planned(numbers, told_before, **less)
