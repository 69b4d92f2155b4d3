"""How a guard takes its place: on a ledger, as one view of its rows, by the side of others."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast, get_args

from numpy.typing import ArrayLike

from reusable_holdout.certainty import Policy
from reusable_holdout.errors import InputError
from reusable_holdout.guard import class_counts, epochs, opening
from reusable_holdout.guard import overlap as overlapping
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.configuration import Configuration, KeptRows
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.handle import Handle
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.kinds.table import POLICIES, Ways
from reusable_holdout.guard.known_rows import Overlap, OwnedRows, TrainedOn
from reusable_holdout.guard.pricing import Kept, Wanted, saying_what_counts, warn_of_counted_class
from reusable_holdout.guard.row_sets import warn_of_copies
from reusable_holdout.guard.stores import told_of
from reusable_holdout.guard.transcript import Transcript
from reusable_holdout.guard.views import Counts, View
from reusable_holdout.ledger import Ledger, MemoryLedger
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan

__all__ = ["Standing", "check_may_stand", "looked_through"]


def check_may_stand(holdout: PrivateData, plan: Plan, ledger: str | Path | None, *, vacuous: bool) -> None:
    """Refuse a metric or ledger that the policy is not for, or a vacuous plan; warn of what is easy to miss."""
    POLICIES[plan.policy].check(holdout.bound, ledger)
    with saying_what_counts(holdout.bound, plan.rows):
        plan.check_says_something(vacuous=vacuous)
    if holdout.groups is None:  # which say what belongs together
        warn_of_copies(holdout.X)
    warn_of_counted_class(holdout.bound, stacklevel=4)  # check_may_stand, __init__ or rotate, sealed, user


def looked_through(
    holdout: PrivateData, ids: Any, training: Any, overlap: str, *, nothing: str = "nothing was made"
) -> OwnedRows:
    """Rows of a holdout, none of which is among training rows, beyond chance, unless their owner insists.

    Raises OverlapError if some are; InputError if they cannot be compared, or ids are no names, one for each row.
    """
    if overlap not in get_args(Overlap):
        raise InputError(f'overlap must be "refuse" or "allow"; got {overlap!r}; {nothing}')
    rows = OwnedRows(holdout, ids, overlap, nothing=nothing)
    if training is not None and overlap == "refuse":
        overlapping.check_training(rows, training, nothing=nothing)
    return rows


def _kept(holdout: PrivateData, wanted: Wanted, stored: Configuration | None, *, may_tell: bool) -> Kept:
    """The part of a wish that is kept in a ledger that is new, where counts are told now, or has a configuration.

    Where they were told by the same guess they are known; by another one they are not told again.
    """
    guess = wanted.counts
    if stored is not None:
        if epochs.guesses(stored.counts, stored.metric) == epochs.guesses(guess, holdout.bound.describe()):
            class_counts.rest_on(holdout.bound, stored.counts)
            return wanted.kept(stored.counts, stored.plan["shared"]["told_before"])
        if epochs.tells(stored.counts) or not may_tell:
            return Kept(wanted.guess, guess)
    counts = None if guess is None else class_counts.told(holdout.bound, guess)
    return wanted.kept(counts, told_of(holdout, counts))


class Standing(Asking):
    """A guard in its place: on its ledger and key, by the side of the one that has the budget."""

    digest: str
    _root: Self
    _place: str
    _key: tuple[bytes, Path | None]
    _handle: Handle | None

    def _begin_as_kept(
        self,
        holdout: PrivateData,
        wanted: Wanted,
        ledger: Ledger,
        key: tuple[bytes, Path | None],
        rows: OwnedRows,
        *,
        replan: bool,
        **begun: Any,
    ) -> Kept | None:
        """Take the place of a guard that is wanted, by what is told of the counts; what is kept of the wish, if new."""
        text = ledger.configuration()
        stored = None if text is None else Configuration.parse(text)
        kept = _kept(holdout, wanted, stored, may_tell=replan and not ledger.tail().query)
        stands = ledger
        if replan:
            configuration = Configuration.of(kept.plan, holdout, key[0], kept.counts)
            stands = epochs.planned_anew(ledger, configuration, rows, key[0], begun["witness"])
        self._begin(holdout, kept.plan, kept.counts, stands, key, rows=rows, **begun)
        return kept if stored is None or stands is not ledger else None

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
        kept = KeptRows({}, b"") if rows is None or ledger.configuration() else rows.kept(key[0])
        configuration = replace(
            Configuration.of(plan, holdout, key[0], counts),
            another_budget=another_budget,
            overlap="refuse" if rows is None else rows.overlap,
            known_rows=kept.digests,
            witness=witness,
        )
        stored = Configuration.parse(ledger.create(configuration.text(), kept.text))
        past = [Configuration.parse(text) for text in ledger.configurations()[: ledger.epoch - 1]]
        configuration.check_same(stored, past=past)
        if rows is not None:
            rows.check_same(stored, key[0])
        if stored.plan != configuration.plan:  # a version before this one derived it from what was stated
            plan = Plan.kept(stored.plan)
            class_counts.rest_on(holdout.bound, stored.counts)
        self.digest = configuration.holdout
        self._transcript = Transcript(
            ledger, plan, another_budget=stored.another_budget, has_exam=stored.exam > 0
        )
        self._place = ledger.url or cast("MemoryLedger", ledger).beside.setdefault(
            "place", secrets.token_hex(16)
        )
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
        self._ways = Ways(view.kept.within(plan.shared.told_nats), self._noise)
        if ledger.url is None:  # ladders remember there what was best
            kept = cast("MemoryLedger", ledger).beside
            self._ways = kept.setdefault(("ways", ledger.epoch, view.number), self._ways)
        self._trained_on = self._root._trained_on
        self._listeners, self._handle = [], None

    def __guard_name__(self) -> str:
        """Return the guard's name, the same in every process: without the key nothing can be learnt from it."""
        return self._root._content.guard(f"{self._root._place} {self._ledger.epoch} {self.view}")

    @sealed
    def on(
        self,
        metric: str | Metric | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        tolerance: float | None = None,
        policy: Policy | None = None,
        estimate: float | None = None,
        prior_error: float | None = None,
        spread: float | None = None,
        prevalence: Any = None,
        vacuous: bool = False,
        name: str | None = None,
    ) -> Self:
        """Ask about another metric of the same rows, a slice of them, or by another policy, on the same budget.

        Queries, charges and confidence are the guard's, and all that is told anywhere widens everything. What is not
        named is as here. The same metric, weights and policy give the same guard again, in all processes.

        Parameters
        ----------
        metric : str or Metric, optional
        sample_weight : array-like of shape (rows,), optional
            Public weights; those of 0 and 1 make a slice, such as ``group == "A"``.
        tolerance : float, optional
            In the metric's unit; by default the smallest one that can be kept, whatever the guard's plan allows to be
            told.
        policy : {"thresholdout", "ladder", "guess-and-check", "gate"}, optional
        estimate, prior_error, spread : float, optional
            As for :class:`Plan`; of another metric, nothing is known of them by default.
        prevalence : float, sequence of float or dict, optional
            As for :class:`ReusableHoldout`; of the same metric that of the guard by default. Class counts that a metric
            rests on are told when it is first asked for, and cost up to 5 nats.
        vacuous : bool
            Whether to open it though its plan says nothing: its tolerance is more than a quarter of the metric's range.
        name : str, optional
            What history calls it.

        Returns
        -------
        ReusableHoldout
            With all ways to ask; its `plan`, `metric`, `policy` and listeners are its own.

        Raises
        ------
        PlanError
            If the tolerance cannot be kept, or the plan is vacuous, at the class shares that you expect; `nearest` says
            which can. What was opened before is opened again.
        InputError
            If rows and metric do not fit, or what must be told of the class counts could break a promise of the plan.
        LedgerMismatchError
            If it was opened with another tolerance.
        Halted
            If a final was given.

        Warns
        -----
        KeptLessWarning
            If the class counts, once they were told, keep less than was wished: it was opened all the same.

        Notes
        -----
        That a slice has rows of one class only is a fact about the labels: such a metric is given, and fails when it is
        asked, which takes a charge. Real targets outside the metric's bounds are moved to them, and nothing says so.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=5, estimate=0.9, seed=1)
        >>> first_half = guard.on(sample_weight=np.arange(10_000) < 5_000)
        >>> first_half.evaluate_predictions(labels, prior=0.99).charges_left
        5
        >>> guard.queries_asked
        1
        """
        root, chosen = self._root, self.metric if metric is None else resolve_metric(metric)
        same, counts = chosen == self.metric, self._view.counts
        guessed = self.plan.stated_spread if same and self.plan.family != "ratio" else None
        shares = counts.guessed if same and counts is not None else None
        asked = opening.Opening(
            metric=chosen,
            sample_weight=self._holdout.sample_weight if sample_weight is None else sample_weight,
            policy=self.policy if policy is None else policy,
            tolerance=tolerance,
            estimate=self.plan.estimate if same and estimate is None else estimate,
            prior_error=self.plan.stated_prior_error if same and prior_error is None else prior_error,
            spread=guessed if spread is None else spread,
            prevalence=shares if prevalence is None else prevalence,
            vacuous=vacuous,
            name=name,
            root=root,
        )
        holdout, view, plan = asked.open()
        if view.number == 0:
            return root
        guard = type(self).__new__(type(self))
        guard.digest, guard._transcript = self.digest, self._transcript
        guard._stand(holdout, view, plan, self._ledger, self._key, root)
        return guard
