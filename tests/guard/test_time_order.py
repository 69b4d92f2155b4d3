"""Guards of rows in time order: what is refused, what is kept, and the data that must end before them."""

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses

from reusable_holdout import Difference, Plan, ReusableHoldout, Rows, verify
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import mae

ROWS = 1_000
TIMES = pd.date_range("2024-01-01", periods=ROWS, freq="h")
LABELS = pd.Series(np.arange(ROWS) % 2, index=TIMES)
GUESS = np.where(np.arange(ROWS) % 20 < 17, LABELS, 1 - LABELS)
FREE = {"vacuous", "no witness"}


def guard_of(ledger=None, *, y=LABELS, order="time", metric="accuracy", **more):
    rows = {name: more.pop(name) for name in ("X", "groups", "sample_weight", "training") if name in more}
    given = Rows(rows.pop("X", None), y, order=order, **rows)
    return ReusableHoldout(given, metric=metric, ledger=ledger, seed=1, allow=FREE, **more)


def test_all_ways_are_asked_and_the_ledger_is_opened_and_verified(tmp_path):
    place = tmp_path / "guard.db"
    with guard_of(place, plan=Plan(queries=40, charges=6, estimate=0.85, reveals=1, choices=[2])) as guard:
        assert guard.plan.order == "time"
        agreed, charged = guard.evaluate(GUESS, prior=0.85), guard.evaluate(GUESS, prior=0.99)
        assert (agreed.outcome, charged.outcome) == ("agreed", "corrected")
        assert guard.compare(GUESS, 1 - GUESS, prior=0.7).low > 0.3
        assert guard.gate(Difference(GUESS, 1 - GUESS), at_least=0.3).outcome == "better"
        brier = guard.on("brier", spread=0.3, estimate=0.15, allow={"vacuous"})
        assert brier.evaluate(GUESS.astype(float), prior=0.15).low >= 0.0
        assert guard.reveal(GUESS, prior=0.85).outcome == "revealed"
    with ReusableHoldout.open(place, None, LABELS, seed=1) as again:
        assert again.plan.order == "time"
        assert again.evaluate(GUESS, prior=0.85).replayed
        final = again.final(GUESS)
    independent = guard_of(order=None, plan=Plan(queries=40, charges=3, estimate=0.85))
    assert final.low <= 0.85 <= final.high
    assert final.high - final.low > independent.final_width
    assert verify(place).sound


def test_the_plan_says_what_the_intervals_are_about():
    gates = Plan(500, gates=True, queries=20, charges=2, order="time")
    for plan in (guard_of().plan, Plan(5_000, queries=50, charges=2, order="time"), gates):
        assert "given what came before each; not the future" in str(plan)
    assert "not the future" not in str(guard_of(order=None, y=1 - LABELS).plan)


@for_each(
    ("words", "given"),
    [
        ("mean of losses over all rows", {"metric": "roc_auc"}),
        ("mean of losses over all rows", {"metric": "f1"}),
        ("mean of losses over all rows", {"metric": "recall"}),
        ("several numbers", {"sample_weight": np.linspace(0.5, 1.0, ROWS)}),
        ("one piece", {"groups": np.arange(ROWS) % 100}),
        ("another order", {"y": LABELS[::-1]}),
        ("no board of claims", {"plan": Plan(board="claims")}),
        ("order is one of time", {"order": "date"}),
        (
            "must end before the first row",
            {"X": pd.DataFrame({"a": LABELS}), "training": pd.DataFrame({"a": LABELS})},
        ),
    ],
)
def test_what_needs_independent_rows_is_refused(words, given):
    refuses(InputError, words, guard_of, **given)


def test_views_are_in_time_order_too():
    guard = guard_of(sample_weight=None)
    refuses(InputError, "mean of losses over all rows", guard.on, "f1", allow={"vacuous"})
    half = guard.on(where=np.arange(ROWS) < 500, allow={"vacuous"})
    assert half.plan.order == "time"
    refuses(InputError, "several numbers", guard.on, sample_weight=np.linspace(0.5, 1.0, ROWS))


def test_steps_of_several_rows_count_once():
    guard = guard_of(groups=np.arange(ROWS) // 10, metric=mae(lower=0, upper=1), y=LABELS.astype(float))
    assert guard.plan.rows == 100


def test_training_rows_must_end_before_the_first_row():
    X = pd.DataFrame({"a": np.arange(ROWS)}, index=TIMES)
    guard = guard_of(X=X)
    before = pd.DataFrame({"a": np.arange(50.0)}, index=TIMES[:50] - pd.Timedelta(days=60))
    assert guard.evaluate(GUESS, prior=0.85, X_train=before).query == 1
    for late in (before.set_index(TIMES[:50]), before.set_index(before.index.tz_localize("UTC"))):
        refuses(InputError, "must end before", guard.evaluate, GUESS, prior=0.8, X_train=late)
    assert guard.queries_asked == 1


def test_the_next_rows_are_in_time_order(tmp_path):
    guard = guard_of(tmp_path / "guard.db")
    later = pd.Series(1 - LABELS.to_numpy(), index=TIMES + pd.Timedelta(days=365))
    with pytest.raises(InputError, match="another order"):
        guard.rotate(None, later[::-1], early=True)
    following = guard.rotate(None, later, early=True).guard
    assert following.plan.order == "time"
