"""Opening a view: what another metric, slice or policy of the same rows needs, and whether it was opened before."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

from numpy.typing import ArrayLike

from reusable_holdout.certainty import Policy
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.class_counts import rest_on, told
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.kinds.stated import checked_names
from reusable_holdout.guard.pricing import (
    Kept,
    Wanted,
    decided_as_ratio,
    guessed,
    warn_of_counted_class,
)
from reusable_holdout.guard.stores import told_of
from reusable_holdout.guard.views import Counts, View
from reusable_holdout.ledger import Row
from reusable_holdout.metrics import BoundMetric, Definition, Metric
from reusable_holdout.plan import Plan

__all__ = ["Opening"]

_HOLD = {"judged": "ids", "values": "targets"}
"""What the rows must hold for a metric, by its response; for others labels."""


class Opening(NamedTuple):
    """A view that is asked for, see :meth:`ReusableHoldout.on`, of the guard that has the budget."""

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
    root: Asking

    def open(self) -> tuple[PrivateData, View, Plan]:
        """View that was opened before, or a new one, with the rows and the plan it stands on."""
        root, rows, first = self.root, self.root._holdout, self.root._view
        if "parameter-free-ladder" in {self.policy, root.policy}:
            raise InputError(
                "a parameter-free ladder keeps its best in memory, and shares its rows with no other metric or policy; "
                'nothing was made; use policy="ladder"'
            )
        if "claims" in {self.policy, root.policy} and self.policy != root.policy:
            raise InputError(
                "what claims cost is counted in another way, so all metrics of their rows are asked by claims or none; "
                f"got policy={self.policy!r} on one of {root.policy!r}; nothing was made; leave policy out"
            )
        self._check_targets(rows.bound.metric)
        data = PrivateData(
            rows.X,
            rows.y,
            self.metric,
            classes=None if self.metric.response == "values" else rows.bound.class_set,
            sample_weight=self.sample_weight,
            groups=rows.groups,
            opened=True,
        )
        described = data.bound.describe()
        same = described == first.metric and self.policy == root.policy
        view = first if same else View.parse(self._row(data.bound, described).told)
        rest_on(data.bound, view.counts)
        plan = Plan.kept(view.record)
        if self.tolerance is not None and self.tolerance != plan.tolerance and not self._lost(view, plan):
            raise LedgerMismatchError(
                f"this metric, slice and policy keeps the tolerance it was opened with; {plan.tolerance:g} is in the "
                f"ledger, and {self.tolerance!r} was asked for; nothing was asked; leave tolerance out"
            )
        return data, view, plan

    def _check_targets(self, root: Definition) -> None:
        """Refuse labels for ids, ids for labels, and classes for real targets: they would be all values there are."""
        held, needed = (_HOLD.get(metric.response, "labels") for metric in (root, self.metric))
        if held != needed and (held, needed) != ("labels", "targets"):
            raise InputError(
                f"metric {self.metric.name!r} must have {needed} of the rows; got a guard of {root.name!r}, whose rows "
                f"have {held}; nothing was made; make another guard, of rows that no other guard has"
            )

    def _row(self, bound: BoundMetric, metric: dict[str, Any]) -> Row:
        """Row that opened it, now or before; what is refused follows from the class counts that are guessed."""
        transcript, theory = self.root._transcript, self.root._view.kept.scores.theory.edition
        digest = self.root._content.view(json.dumps([metric, self.policy], sort_keys=True))
        row = transcript.opened(digest)
        if row is not None:
            return row
        warn_of_counted_class(bound, stacklevel=5)  # _row, open, on, sealed, user
        (name,) = checked_names([bound.metric.name if self.name is None else self.name], 1)
        while row is None:  # another process may open another view meanwhile, and take its number
            before = [self.root._view, *transcript.views()]
            number = len(before)
            known = next((one for one in before if one.knows_of(metric) and _tell(one.counts)), None)
            by_ratio, shared = self._by_ratio(bound), None if known is None else known.counts
            if shared is None or by_ratio:
                expected = self.prevalence if shared is None else shared.guessed
                counts = guessed(bound, expected, by_ratio=by_ratio, theory=theory)
            else:
                counts = shared
                rest_on(bound, counts)
            told_by = number if known is None or not _tell(counts) else known.told_by
            view = View(number=number, metric=metric, plan=None, rules=None, counts=counts, told_by=told_by)
            nats = self.root.plan.shared.told_before
            wanted = Wanted(
                bound,
                counts,
                partial(self._plan, number),
                told_before=nats,
                charges=self.root.plan.charges,
                estimate=self.estimate,
                spread=self.spread,
            )
            wanted.guess.check_says_something(vacuous=self.vacuous)
            kept = Kept(wanted.guess, counts)
            if view.tells:
                kept = wanted.kept(told(bound, counts), nats)
            view = replace(view, counts=kept.counts).planned(kept.plan)
            row = transcript.open(view, digest, name, self.root._ways)
            if row is not None and view.tells:
                told_of(self.root._holdout, view.counts, metric)
                kept.warn(view.nats, vacuous=self.vacuous, stacklevel=5)  # _row, open, on, sealed, user
        return row

    def _lost(self, view: View, plan: Plan) -> bool:
        """Return True if a view was opened that keeps less than this tolerance, because class counts were told."""
        derived = "tolerance" not in plan.stated
        return _tell(view.counts) and derived and cast("float", self.tolerance) < plan.tolerance

    def _by_ratio(self, bound: BoundMetric) -> bool:
        root = self.root.plan
        private = root.noise_scale > 0.0 and not root.privacy_is_vacuous
        return not private and decided_as_ratio(
            bound, policy=self.policy, mechanism=root.mechanism, final_noise=root.final_noise
        )

    def _plan(self, number: int, numbers: dict[str, Any], _: float, **less: Any) -> Plan:
        root = self.root.plan
        lower, upper = numbers["bounds"]
        return Plan(
            **numbers,
            queries=root.queries,
            charges=root.charges,
            tolerance=less.get("tolerance", self.tolerance),
            noise_scale=None if root.noise_scale else 0.0,
            confidence=root.confidence,
            estimate=self.estimate,
            prior_error=self.prior_error,
            mechanism=root.mechanism,
            policy=self.policy,
            final_noise=root.final_noise / root.span * (upper - lower) if root.final_noise else None,
            shared=self.root._view.kept.budget_of_view(number),
        )


def _tell(counts: Counts | None) -> bool:
    return counts is not None and counts.place is not None
