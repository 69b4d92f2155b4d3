"""How a guard takes its place: on a ledger, as one view of its rows."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Self, cast

from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.configuration import Configuration, past_epochs
from reusable_holdout.guard.copies import warn_of_copies
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.kinds import POLICIES, Ways
from reusable_holdout.guard.known_rows import Sealed
from reusable_holdout.guard.pricing import priced
from reusable_holdout.guard.releases import Allowance
from reusable_holdout.guard.trained import TrainedOn
from reusable_holdout.guard.transcript import Transcript
from reusable_holdout.mechanisms import KeyedNoise
from reusable_holdout.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

    from reusable_holdout.guard.handle import Handle
    from reusable_holdout.guard.inputs import PrivateData
    from reusable_holdout.guard.overlap import OwnedRows
    from reusable_holdout.guard.views import Counts, View
    from reusable_holdout.ledger import Ledger
    from reusable_holdout.queries import Metric

__all__ = ["Standing", "check_may_stand"]


def check_may_stand(holdout: PrivateData, plan: Plan, ledger: str | Path | None, *, vacuous: bool) -> None:
    """Refuse a metric or ledger that the policy is not for, and a plan that says nothing; warn of copied rows.

    Raises
    ------
    InputError, PlanError
        Saying what to do.
    """
    POLICIES[plan.policy].check(holdout.bound, ledger)
    plan.check_says_something(vacuous=vacuous)
    warn_of_copies(holdout)


class Standing(Asking):
    """A guard in its place: on its ledger and key, by the side of the one that has the budget."""

    digest: str
    _root: Self
    _place: str
    _ledger: Ledger
    _key: tuple[bytes, Path | None]
    _handle: Handle | None

    def _begin(
        self,
        holdout: PrivateData,
        plan: Plan,
        counts: Counts | None,
        ledger: Ledger,
        key: tuple[bytes, Path | None],
        *,
        another_budget: bool = False,
        rows: OwnedRows | None = None,
        witness: str = "",
    ) -> None:
        """Take the place of the guard's own metric, on a ledger that is new or its own."""
        sealed = Sealed({}, b"") if rows is None or ledger.configuration() else rows.sealed(key[0])
        configuration = Configuration.of(
            plan,
            holdout,
            key[0],
            counts,
            another_budget=another_budget,
            overlap="refuse" if rows is None else rows.overlap,
            known_rows=sealed.digests,
            witness=witness,
        )
        stored = Configuration.parse(ledger.create(configuration.text(), sealed.text))
        configuration.check_same(stored, past=past_epochs(ledger))
        if rows is not None:
            rows.check_same(stored, key[0])
        if stored.plan != configuration.plan:  # a version before this one derived it from what was stated
            plan = Plan.kept(stored.plan)
            by_ratio = plan.family == "ratio"
            priced(holdout.bound, told=stored.counts, by_ratio=by_ratio, theory=plan.shared.theory)
        self.digest = configuration.holdout
        self._transcript = Transcript(
            ledger,
            allowance=Allowance.of(plan.record()),
            queries=plan.queries,
            metric=holdout.bound.metric.name,
            another_budget=stored.another_budget,
        )
        self._place = ledger.url or secrets.token_hex(16)
        self._trained_on = TrainedOn(holdout, allowed=stored.overlap == "allow")
        self._stand(holdout, stored.view, plan, ledger, key)

    def _stand(
        self,
        holdout: PrivateData,
        view: View,
        plan: Plan,
        ledger: Ledger,
        key: tuple[bytes, Path | None],
        root: Self | None = None,
    ) -> None:
        """Take the place of one view: its own metric, noise and questions, on the one ledger."""
        secret, metric = view.secret(key[0]), holdout.bound.metric
        self.plan, self.metric, self.policy = plan, cast("Metric", metric), plan.policy
        self._holdout, self._ledger, self._key = holdout, ledger, key
        self._view, self.view, self._root = view, view.number, root or self
        self._content = ContentKey(secret)
        self._noise = KeyedNoise(secret, epoch=ledger.epoch - 1)
        self._ways = Ways(view.kept, self._noise)
        self._trained_on = self._root._trained_on
        self._listeners, self._handle = [], None

    @property
    def _name(self) -> str:
        """Which guard this is, in every process: without the key nothing can be learnt from it."""
        return ContentKey(self._root._key[0]).guard(f"{self._root._place} {self._ledger.epoch} {self.view}")
