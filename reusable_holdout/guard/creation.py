"""The making of guards: new, resumed, with another plan, and rotated."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from reusable_holdout.errors import InputError, LedgerError
from reusable_holdout.guard import class_counts, epochs
from reusable_holdout.guard import overlap as overlapping
from reusable_holdout.guard.configuration import (
    ALLOWED,
    NO_WITNESS,
    OVERLAP,
    SECOND_BUDGET,
    VACUOUS,
    Configuration,
    KeptRows,
    metric_of,
)
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.known_rows import OwnedRows
from reusable_holdout.guard.row_sets import warn_of_copies
from reusable_holdout.guard.stores import (
    budgeted,
    declared_classes,
    find_key,
    new_or_kept,
    told_of,
    watched,
)
from reusable_holdout.guard.time_order import check_embargo, check_follows
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.views import VIEW, Counts, View, newest, tells
from reusable_holdout.guard.wanted_plan import (
    Kept,
    Wanted,
    decided_as_ratio,
    guessed,
    saying_what_counts,
    usual_plan,
    warn_of_counted_class,
)
from reusable_holdout.ledger import Ledger, MemoryLedger, SqlLedger
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.plan import Plan
from reusable_holdout.plan.renewal import renewed
from reusable_holdout.rows import Rows


class Stated(NamedTuple):
    """The owner's settings of a guard, without its rows."""

    metric: str | Metric = "accuracy"
    plan: Plan | None = None
    queries: int | None = None
    tolerance: float | None = None
    charges: int | None = None
    estimate: float | None = None
    ledger: str | Path | None = None
    key: bytes | Path | None = None
    seed: int | None = None
    witness: str | Path | None = None
    allow: frozenset[str] = frozenset()
    replan: bool = False

    def wish(self) -> dict[str, Any]:
        """Return the plan's numbers, as they were stated: in a plan, or one by one."""
        own = {name: getattr(self, name) for name in ("queries", "tolerance", "charges", "estimate")}
        given = {name: value for name, value in own.items() if value is not None}
        if self.plan is not None:
            if not isinstance(self.plan, Plan):
                raise InputError(f"plan must be a Plan; got {type(self.plan).__name__}; nothing was made")
            if given:
                raise InputError(
                    f"a plan already holds all its numbers; got plan= and {', '.join(given)}; nothing was made; "
                    "pass either plan= or the numbers"
                )
            return self.plan.wished()
        return given


def allowed_of(allow: Iterable[str]) -> frozenset[str]:
    """Return the owner's allowances; InputError if one is unknown."""
    names = frozenset([allow] if isinstance(allow, str) else allow)
    unknown = sorted(map(str, names - ALLOWED))
    if unknown:
        raise InputError(
            f"allow must be among {', '.join(map(repr, sorted(ALLOWED)))}; got {unknown[0]!r}; nothing was made"
        )
    return names


def made(rows: Rows, stated: Stated) -> GuardedView:
    """Make a guard, or resume the one that a ledger has; warn of wishes that the plan does not keep."""
    wish, allow = stated.wish(), stated.allow - ({NO_WITNESS} if stated.witness else set())
    wish |= {"order": rows.order} if rows.order else {}
    data = private(
        rows,
        resolve_metric(stated.metric),
        None,
        order=wish.get("order"),
        declared=lambda: declared_classes(stated.ledger),
    )
    counts = guessed(data.bound, rows.prevalence, by_ratio=decided_as_ratio(data.bound, wish))
    numbers = {name: wish.get(name) for name in ("charges", "estimate", "spread")}

    def planned(facts: dict[str, Any], told_before: float, **less: Any) -> Plan:
        return usual_plan(wish | less, facts, told_before)

    wanted = Wanted(data.bound, counts, planned, **numbers)
    _check_may_stand(data, wanted.guess, vacuous=VACUOUS in allow)
    owned = owned_of(data, rows, allow)
    with new_or_kept(data, stated.ledger, allowed=SECOND_BUDGET in allow) as (store, another):
        key = find_key(store, key=stated.key, seed=stated.seed)
        witness = watched(store, False if NO_WITNESS in allow else stated.witness)
        text = store.configuration()
        known = None if text is None else Configuration.parse(text)
        may_tell = stated.replan and not store.tail().query
        kept = _kept(data, wanted, known, may_tell=may_tell)
        facts = replace(
            Configuration.of(kept.plan, data, key[0], kept.counts, allow),
            another_budget=another,
            witness=witness,
        )
        stands: Ledger = store
        if stated.replan:
            stands = epochs.planned_anew(store, facts, owned, key[0], witness)
        view = _begun(data, kept.plan, facts, stands, key, owned)
    if known is None or stands is not store:
        kept.warn(kept.plan.shared.told_before, vacuous=VACUOUS in allow)
    return view


def opened(rows: Rows, place: str | Path, stated: Stated) -> GuardedView:
    """Resume a guard from its ledger; the budget is not refilled."""
    store = SqlLedger(place, must_exist=True)
    text = store.configuration()
    if text is None:
        raise LedgerError(f"{store!r} holds no guard yet; make one with ReusableHoldout(X, y, ledger=...)")
    configuration = Configuration.parse(text)
    metric = metric_of(configuration.metric) if stated.metric is None else resolve_metric(stated.metric)
    plan = Plan.kept(configuration.plan)
    data = private(rows, metric, configuration.classes, order=plan.order)
    class_counts.rest_on(data.bound, configuration.counts)
    key = find_key(store, key=stated.key, seed=stated.seed)
    watched(store, stated.witness)
    facts = Configuration.of(plan, data, key[0], configuration.counts)
    return _begun(data, plan, facts, store, key, None)


def rotated(view: GuardedView, rows: Rows, stated: Stated) -> GuardedView:
    """Go on with a fresh holdout in the same ledger, and release this one."""
    holdout, root, nothing = view.holdout, view.root, "nothing was released"
    _check_has_all_rows(view)
    if rows.groups is None and holdout.groups is not None:
        raise InputError(
            f"the next rows must come with groups, as these did; got none; {nothing}; pass Rows(X, y, groups=...)"
        )
    data = private(rows, view.metric, holdout.bound.class_set, order=root.plan.order)
    if root.plan.order:
        check_follows(holdout, data, nothing=nothing)
    before, by_ratio = root.facts.counts, root.plan.family == "ratio"
    expected = before.guessed if rows.prevalence is None and before is not None else rows.prevalence
    guess = guessed(data.bound, expected, by_ratio=by_ratio)
    own = {name: getattr(stated, name) for name in ("queries", "tolerance", "charges", "estimate")}

    def planned(facts: dict[str, Any], told_before: float, **less: Any) -> Plan:
        return renewed(root.plan, facts, told_before=told_before, **(own | less))

    wanted = Wanted(
        data.bound,
        guess,
        planned,
        charges=stated.charges,
        estimate=root.plan.estimate if stated.estimate is None else stated.estimate,
        spread=None if by_ratio else root.plan.stated_spread,
    )
    allow, ledger, key = stated.allow, view.ledger, view.key
    _check_may_stand(data, wanted.guess, vacuous=VACUOUS in allow)
    owned = owned_of(data, rows, allow, nothing=nothing)
    kept_rows = overlapping.kept_of_fresh(owned, ledger, key[0], root.holdout.X)
    with budgeted(data, ledger, allowed=SECOND_BUDGET in allow, next_epoch=True) as another:
        counts = class_counts.told(data.bound, guess)
        kept = wanted.kept(counts, told_of(data, counts))
        facts = replace(
            Configuration.of(kept.plan, data, key[0], counts, allow),
            another_budget=another,
            witness=Configuration.parse(ledger.configuration() or "").witness,
            known_rows=kept_rows.digests,
        )
        _begin_epoch(ledger, facts, kept_rows.text)
    fresh = _begun(data, kept.plan, facts, ledger.latest(), key, None)
    kept.warn(kept.plan.shared.told_before, vacuous=VACUOUS in allow)
    return fresh


def _check_has_all_rows(view: GuardedView) -> None:
    """Refuse to rotate a guard to whose rows others were added."""
    views = [view.root.facts, *(View.parse(row.told) for row in view.ledger.rows(kind=VIEW))]
    if newest(views) != view.number:
        raise InputError(
            "the guard that rotates must have all rows; this one lacks rows that were added later; nothing was "
            "released; call extend() with those rows again, and rotate the guard that it returns"
        )


def _check_may_stand(holdout: PrivateData, plan: Plan, *, vacuous: bool) -> None:
    """Refuse a vacuous plan unless allowed; warn of copied rows, and of which class counts as positive."""
    with saying_what_counts(holdout.bound, plan.rows):
        plan.check_says_something(vacuous=vacuous)
    if holdout.groups is None:  # groups say which rows belong together
        warn_of_copies(holdout.X)
    warn_of_counted_class(holdout.bound)


def private(rows: Rows, metric: Metric, classes: Any, **others: Any) -> PrivateData:
    """Return rows as a guard holds them; they have these classes unless they state their own."""
    return PrivateData(
        rows.X,
        rows.y,
        metric,
        classes=classes if rows.classes is None else rows.classes,
        sample_weight=rows.sample_weight,
        groups=rows.groups,
        **others,
    )


def owned_of(
    holdout: PrivateData, rows: Rows, allow: frozenset[str], *, nothing: str = "nothing was made"
) -> OwnedRows:
    """Return the rows, to be recognised later; refuse training rows among them, unless the owner allows it."""
    owned = OwnedRows(holdout, rows.ids, allowed=OVERLAP in allow, nothing=nothing)
    check_embargo(holdout.begins, rows.training, nothing=nothing)
    if rows.training is not None and OVERLAP not in allow:
        overlapping.check_training(owned, rows.training, nothing=nothing)
    return owned


def _kept(holdout: PrivateData, wanted: Wanted, stored: Configuration | None, *, may_tell: bool) -> Kept:
    """Return the part of a wish that a ledger keeps; a new ledger releases the counts now.

    Counts that were released for the same guess are known; for another guess they are not released again.
    """
    guess: Counts | None = wanted.counts
    if stored is not None:
        if epochs.guesses(stored.counts, stored.metric) == epochs.guesses(guess, holdout.bound.describe()):
            class_counts.rest_on(holdout.bound, stored.counts)
            return wanted.kept(stored.counts, stored.plan["shared"]["told_before"])
        if tells(stored.counts) or not may_tell:
            return Kept(wanted.guess, guess)
    counts = None if guess is None else class_counts.told(holdout.bound, guess)
    return wanted.kept(counts, told_of(holdout, counts))


def _begun(
    holdout: PrivateData,
    plan: Plan,
    facts: Configuration,
    ledger: Ledger,
    key: tuple[bytes, Path | None],
    owned: OwnedRows | None,
) -> GuardedView:
    """Begin a new ledger, or continue the ledger of these rows; return the view of the guard's own metric."""
    kept = KeptRows({}, b"") if owned is None or ledger.configuration() else owned.kept(key[0])
    facts = replace(facts, known_rows=facts.known_rows or kept.digests)
    stored = Configuration.parse(ledger.create(facts.text(), kept.text))
    past = [Configuration.parse(text) for text in ledger.configurations()[: ledger.epoch - 1]]
    facts.check_same(stored, past=past)
    if owned is not None:
        owned.check_same(stored, key[0])
    if stored.plan != facts.plan:  # an earlier version derived it from the same statements
        plan = Plan.kept(stored.plan)
        class_counts.rest_on(holdout.bound, stored.counts)
    return GuardedView(
        holdout,
        stored.view,
        plan,
        ledger,
        key,
        another_budget=stored.another_budget,
        overlap_allowed=OVERLAP in stored.allow,
        digest=stored.holdout,
    )


def _begin_epoch(ledger: Ledger, facts: Configuration, known_rows: bytes) -> None:
    """End the current epoch of a ledger and begin the next, all or nothing; refuse rows of an earlier epoch."""
    for number, text in enumerate(ledger.configurations(), start=1):
        if Configuration.parse(text).holdout == facts.holdout:
            raise InputError(
                f"a new holdout must be rows that were not used before; these are the rows of epoch {number}; nothing "
                "was released; pass fresh rows"
            )
    with ledger.transaction() as transaction:
        epochs.begin_epoch(ledger, transaction, facts, known_rows)


def place_of(ledger: Ledger) -> str:
    """Return where a guard lives: its ledger's URL, or a token of a ledger in memory."""
    return ledger.url or cast("MemoryLedger", ledger).beside.setdefault("place", secrets.token_hex(16))
