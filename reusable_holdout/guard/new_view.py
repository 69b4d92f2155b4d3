"""The opening of a view: another metric or slice of the same rows, which may have been opened before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from reusable_holdout.errors import InputError, LedgerMismatchError, PlanError
from reusable_holdout.guard.class_counts import rest_on, told
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.stores import told_of
from reusable_holdout.guard.subjects import checked_names
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.views import VIEW, Counts, View, newest, tells
from reusable_holdout.guard.wanted_plan import (
    Kept,
    Wanted,
    decided_as_ratio,
    guessed,
    plan_numbers,
    warn_of_counted_class,
)
from reusable_holdout.ledger import Row
from reusable_holdout.metrics import BoundMetric, Definition, Metric
from reusable_holdout.plan import Plan
from reusable_holdout.rows import Rows
from reusable_holdout.ways import State

# The part of the rows that a metric needs, by its response; labels for all other responses.
_HOLD = {"judged": "ids", "values": "targets"}


class Opening(NamedTuple):
    """A request to open a view; see :meth:`ReusableHoldout.on`."""

    metric: Metric
    sample_weight: ArrayLike | None
    tolerance: float | None
    estimate: float | None
    prior_error: float | None
    spread: float | None
    prevalence: Any
    vacuous: bool
    name: str | None
    base: GuardedView
    pooled: PrivateData | None = None
    added: tuple[Rows, ...] = ()
    digest: str = ""
    fresh: PrivateData | None = None
    known: Mapping[str, str] = {}

    @property
    def root(self) -> GuardedView:
        """The view that the guard was made with."""
        return self.base.root

    def is_open(self) -> bool:
        """Return True if added rows were added before, in any process."""
        described = self._described(self.pooled.bound) if self.pooled else {}
        return self.root.ledger.find(self._digest(described)) is not None

    def open(self) -> GuardedView:
        """Return the view: the guard's own, one that was opened before, or a new one."""
        root, rows, first = self.root, self.base.holdout, self.base.facts
        self._check_targets(rows.bound.metric)
        data = self.pooled or PrivateData(
            rows.X,
            rows.y,
            self.metric,
            classes=None if self.metric.response == "values" else rows.bound.class_set,
            sample_weight=self.sample_weight,
            groups=rows.groups,
            order=root.plan.order,
            opened=True,
        )
        described = self._described(data.bound)
        if self.pooled is None and data.bound.describe() == rows.bound.describe():
            self._check_tolerance(self.base.plan, first.counts)
            return self.base
        facts = View.parse(self._row(data.bound, described).told)
        rest_on(data.bound, facts.counts)
        plan = facts.kept
        self._check_tolerance(plan, facts.counts)
        held: dict[str, Any] = {"added": self.added, "alone": self._view_alone(facts), "fresh": self.fresh}
        base = None if self.pooled else self.base
        return GuardedView(data, facts, plan, root.ledger, root.key, root=root, base=base, **held)

    def _view_alone(self, facts: View) -> GuardedView | None:
        """Return the view of added rows alone, if the plan keeps a share for it; a final rests on it, too."""
        ledger, fresh = self.root.ledger, self.fresh
        row = ledger.find(self._digest(self._alone(fresh.bound, facts.number))) if fresh else None
        if row is None or fresh is None:
            return None
        own = View.parse(row.told)
        first = next(one for one in ledger.rows(kind=VIEW) if View.parse(one.told).adds)
        since = State.after(first)
        return GuardedView(fresh, own, own.kept, ledger, self.root.key, root=self.root, since=since)

    def _alone(self, bound: BoundMetric, number: int) -> dict[str, Any]:
        return bound.describe() | {"alone": number, "added": self.digest}

    def _facts_alone(self, facts: View) -> View | None:
        """Return the facts of the view of added rows alone; None without a share, or if it would tell class counts."""
        root, number = self.root.plan, facts.number + 1
        if self.fresh is None or not root.growth_share or facts.counts is not None:
            return None
        numbers = plan_numbers(self.fresh.bound, spread=self.spread)
        try:
            plan = self._plan(number, numbers, 0.0, confidence=root.confidence_of_added)
        except PlanError:  # so few rows narrow no final
            return None
        metric = self._alone(self.fresh.bound, facts.number)
        return View(number=number, metric=metric, plan=plan.record(), counts=None, told_by=number)

    def _described(self, bound: BoundMetric) -> dict[str, Any]:
        """Return the description of a metric, and the rows that it is about if rows were added to the guard's own."""
        number = self.base.number
        if self.pooled:
            return bound.describe() | {"extends": number, "added": self.digest}
        return bound.describe() | ({"rows_of": number} if number else {})

    def _digest(self, described: dict[str, Any]) -> bytes:
        return self.root.content.view(json.dumps(described, sort_keys=True))

    def _check_tolerance(self, plan: Plan, counts: Counts | None) -> None:
        if self.tolerance is None or self.tolerance == plan.tolerance:
            return
        if tells(counts) and "tolerance" not in plan.stated and self.tolerance < plan.tolerance:
            return  # released class counts widened the tolerance, and it was opened all the same
        raise LedgerMismatchError(
            f"this metric and slice keeps the tolerance it was opened with; {plan.tolerance:g} is in the ledger, and "
            f"{self.tolerance!r} was asked for; nothing was asked; leave tolerance out"
        )

    def _check_targets(self, root: Definition) -> None:
        """Refuse ids as labels, labels as ids, and real-valued targets as classes: each value would be a class."""
        held, needed = (_HOLD.get(metric.response, "labels") for metric in (root, self.metric))
        if held != needed and (held, needed) != ("labels", "targets"):
            raise InputError(
                f"metric {self.metric.name!r} must have {needed} of the rows; got a guard of {root.name!r}, whose rows "
                f"have {held}; nothing was made; make another guard, of rows that no other guard has"
            )

    def _row(self, bound: BoundMetric, metric: dict[str, Any]) -> Row:
        """Return the ledger's row of the view, opened now or before; refusals depend on the guessed counts alone."""
        root, ledger, digest = self.root, self.root.ledger, self._digest(metric)
        row = ledger.find(digest)
        if row is not None:
            return row
        warn_of_counted_class(bound)
        (name,) = checked_names([bound.metric.name if self.name is None else self.name], 1)
        while row is None:  # another process may open another view meanwhile, and take its number
            before = [root.facts, *(View.parse(one.told) for one in ledger.rows(kind=VIEW))]
            if self.pooled and newest(before) != self.base.number:
                raise LedgerMismatchError(
                    "rows are added to the guard that the last extend() returned, here or in another process; this one "
                    "is older; nothing was added; repeat the earlier extend() calls in their order first"
                )
            facts, kept = self._facts(bound, metric, before)
            row = self._opened(facts, digest, name, self._facts_alone(facts))
            if row is not None and facts.tells:
                told_of(self.base.holdout if self.pooled is None else self.pooled, facts.counts, metric)
                kept.warn(facts.nats, vacuous=self.vacuous)
        return row

    def _facts(self, bound: BoundMetric, metric: dict[str, Any], before: list[View]) -> tuple[View, Kept]:
        """Return the facts of a view that is not opened yet, and the part of the wish that it keeps."""
        number, root = len(before), self.root
        known = next((one for one in before if one.knows_of(metric) and tells(one.counts)), None)
        by_ratio, shared = self._by_ratio(bound), None if known is None else known.counts
        if shared is None or by_ratio:
            expected = self.prevalence if shared is None else shared.guessed
            counts = guessed(bound, expected, by_ratio=by_ratio, theory=root.plan.shared.theory)
        else:
            counts = shared
            rest_on(bound, counts)
        told_by = number if known is None or not tells(counts) else known.told_by
        nats = root.plan.shared.told_before
        wanted = Wanted(
            bound,
            counts,
            partial(self._plan, number),
            told_before=nats,
            charges=root.plan.charges,
            estimate=self.estimate,
            spread=self.spread,
        )
        wanted.guess.check_says_something(vacuous=self.vacuous)
        kept = Kept(wanted.guess, counts)
        metric = metric | ({"known": dict(self.known)} if self.pooled else {})
        facts = View(number=number, metric=metric, plan=kept.plan.record(), counts=counts, told_by=told_by)
        if facts.tells:
            kept = wanted.kept(told(bound, counts), nats)
        return replace(facts, counts=kept.counts, plan=kept.plan.record()), kept

    def _opened(self, facts: View, digest: bytes, name: str, alone: View | None = None) -> Row | None:
        """Record the facts of a view durably; return None if another view took its number meanwhile.

        Raises InputError if releasing the class counts could break a promise of the guard's own plan; this reveals
        nothing. Raises Halted if a final was given.
        """
        root = self.root
        ways, transcript = root.ways, root.transcript
        with root.ledger.transaction(digest) as transaction:
            row = transaction.row
            state = transcript.state_at(transaction.tail)
            reason = ways.final.halt_reason(state) if row is None else None
            number = len(transaction.rows(kind=VIEW)) + 1 if row is None else 0
            if row is None and reason is None and number == facts.number:
                if facts.tells and ways.main.halt_reason(state) is None:
                    worst = ways.reveal.certificate.theory.counts.worst
                    ways.reveal.check_affordable(worst, state, "telling class counts")
                row = facts.row(state, digest, name)
                rows = [row]
                if alone is not None:
                    digest, after = self._digest(alone.metric), State.after(row)
                    rows.append(alone.row(after, digest, f"{self.metric.name}, new rows"))
                transaction.append(rows)
        if reason is not None:
            raise transcript.halt(reason, [])
        return row

    def _by_ratio(self, bound: BoundMetric) -> bool:
        plan = self.root.plan
        private = plan.noise > 0.0 and not plan.privacy_is_vacuous
        board = "claims" if plan.asks == "claims" else None
        return not private and decided_as_ratio(bound, {"board": board})

    def _plan(self, number: int, facts: dict[str, Any], _: float, **less: Any) -> Plan:
        root = self.root.plan
        return Plan(
            **facts,
            queries=root.queries,
            charges=root.charges,
            tolerance=less.get("tolerance", self.tolerance),
            noise=None if root.noise else 0.0,
            confidence=less.get("confidence", root.confidence),
            growth_share=root.growth_share if "confidence" not in less else None,
            estimate=self.estimate,
            prior_error=self.prior_error,
            board="claims" if root.asks == "claims" else None,
            gates=root.asks == "gates",
            final_share=root.stated_final_share,
            shared=root.shared_with(number),
        )
