"""Opening a view: what another metric, slice or policy of the same rows needs, and whether it was opened before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import InputError, LedgerMismatchError, PlanError
from reusable_holdout.guard.inputs import PrivateData, checked_names
from reusable_holdout.guard.views import View, as_guessed, plan_numbers, priced
from reusable_holdout.plan import Plan
from reusable_holdout.queries import PublicNumbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from reusable_holdout.guard.content import ContentKey
    from reusable_holdout.guard.exam import BoundRows
    from reusable_holdout.guard.kinds import Ways
    from reusable_holdout.guard.transcript import Transcript
    from reusable_holdout.guard.views import Counts
    from reusable_holdout.ledger import Row
    from reusable_holdout.queries import Metric
    from reusable_holdout.validity import Policy

__all__ = ["Opened", "Opening"]


class Opened(NamedTuple):
    """A view with the rows and the plan it stands on."""

    holdout: PrivateData
    view: View
    plan: Plan


class Opening(NamedTuple):
    """A view that is asked for; see :meth:`ReusableHoldout.on`.

    Attributes
    ----------
    metric, sample_weight, policy, tolerance, estimate, prior_error, spread, prevalence, vacuous, name
        Of the view.
    root : Plan
        Of the guard that has the budget.
    """

    metric: Metric
    sample_weight: ArrayLike | None
    policy: Policy
    tolerance: float | None
    estimate: float | None
    prior_error: float | None
    spread: float | None
    prevalence: Any
    vacuous: bool
    name: str | None
    root: Plan

    def open(
        self, first: View, rows: PrivateData, transcript: Transcript, content: ContentKey, ways: Ways
    ) -> Opened:
        """View that was opened before, or a new one.

        Parameters
        ----------
        first : View
            The guard's own metric.
        rows : PrivateData
        transcript : Transcript
        content : ContentKey
        ways : Ways
            The guard's.
        """
        if "parameter-free-ladder" in {self.policy, self.root.policy}:
            raise InputError(
                "a parameter-free ladder keeps its best in memory, and shares its rows with no other metric or policy; "
                'nothing was made; use policy="ladder"'
            )
        self._check_targets(rows.bound.metric)
        known = None if self.metric.response == "values" else rows.bound.classes
        data = PrivateData(
            rows.X,
            rows.y,
            self.metric,
            classes=known,
            sample_weight=self.sample_weight,
            groups=rows.groups,
            largest_group=rows.largest_group,
            exam=rows.rows.kept,
        )
        own, bound = data.rows, data.bound
        described = own.every.describe()
        if described == first.metric and self.policy == self.root.policy:
            view = first
            priced(bound, told=first.counts)
        else:
            text = json.dumps([described, self.policy], sort_keys=True)
            view = View.parse(self._row(own, first, transcript, content.view(text), ways).told)
            priced(bound, told=view.counts)
        plan = Plan.from_record(view.plan)
        if self.tolerance is not None and self.tolerance != plan.tolerance:
            raise LedgerMismatchError(
                f"this metric, slice and policy keeps the tolerance it was opened with; {plan.tolerance:g} is in the "
                f"ledger, and {self.tolerance!r} was asked for; nothing was asked; leave tolerance out"
            )
        return Opened(data, view, plan)

    def _check_targets(self, root: Metric) -> None:
        """Refuse labels for ids, and ids for labels."""
        held, needed = ("ids" if metric.response == "judged" else "labels" for metric in (root, self.metric))
        if held != needed:
            raise InputError(
                f"metric {self.metric.name!r} must have {needed} of the rows; got a guard of {root.name!r}, whose rows "
                f"have {held}; nothing was made; make another guard, of rows that no other guard has"
            )

    def _row(self, rows: BoundRows, first: View, transcript: Transcript, digest: bytes, ways: Ways) -> Row:
        """Row that opened it, now or before."""
        row = transcript.opened(digest)
        if row is not None:
            return row
        bound, metric = rows.asked, rows.every.describe()
        (name,) = checked_names([bound.metric.name if self.name is None else self.name], 1)
        exact = PublicNumbers.of(bound)
        while row is None:  # another process may open another view meanwhile, and take its number
            before = [first, *transcript.views()]
            number = len(before)
            known = next((one for one in before if one.knows_of(metric)), None)
            plan, counts = self._planned(rows, exact, number, None if known is None else known.counts)
            view = View(
                number=number,
                metric=metric,
                plan=plan.record(),
                counts=counts,
                told_by=number if known is None else known.told_by,
            )
            row = transcript.open(view, digest, name, ways)
        return row

    def _planned(
        self, rows: BoundRows, exact: PublicNumbers, number: int, told: Counts | None
    ) -> tuple[Plan, Counts | None]:
        """Plan of a new view, and what it knows of the class counts.

        What these are is told and paid for when the view is opened, so it is refused by what is expected of them.

        Raises
        ------
        PlanError
            If the tolerance cannot be kept or says nothing, by public numbers.
        """
        bound = rows.asked
        as_guessed(bound, self.prevalence, told)
        plan = self._plan(rows, number, self.tolerance)
        plan.check_says_something(vacuous=self.vacuous)
        counts = priced(bound.told(exact), self.prevalence, told)
        if counts is None or told is not None:
            return plan, counts
        try:
            return self._plan(rows, number, self.tolerance), counts
        except (
            PlanError
        ):  # an error would tell what is not paid for yet: what can be kept stands in the ledger
            return self._plan(rows, number, None), counts

    def _plan(self, rows: BoundRows, number: int, tolerance: float | None) -> Plan:
        root, numbers = self.root, plan_numbers(rows)
        lower, upper = numbers["bounds"]
        return Plan(
            **numbers,
            queries=root.queries,
            charges=root.charges,
            tolerance=tolerance,
            noise_scale=None if root.noise_scale else 0.0,
            confidence=root.confidence,
            estimate=self.estimate,
            prior_error=self.prior_error,
            mechanism=root.mechanism,
            policy=self.policy,
            final_noise=root.final_noise / root.span * (upper - lower) if root.final_noise else None,
            spread=self.spread,
            shared=root.budget_of_view(number),
        )
