"""Rows that are added to a guard's: one budget, narrower intervals, and finals that rest on the new rows, too."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import for_each
from children import Child
from guard.forging import rewrite
from guard.killing import DEATHS, DYING, died
from made_guards import made_guard
from scipy import sparse

from reusable_holdout import Plan, ReusableHoldout, Rows, verify
from reusable_holdout.errors import (
    Halted,
    InputError,
    LedgerMismatchError,
    OverlapError,
    RolledBackError,
    SecondBudgetError,
)

OLD, NEW = 1_000, 400
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(OLD + 3 * NEW, 2)), columns=["a", "b"])
Y = RNG.integers(0, 2, len(X))
GUESS = np.where(RNG.random(len(X)) < 0.85, Y, 1 - Y)
FREE = {"no witness"}
PLAN = {"queries": 50, "charges": 3, "estimate": 0.85, "noise": 0.0}


def begun(ledger=None, rows=(X[:OLD], Y[:OLD]), *, metric="accuracy", **plan):
    return ReusableHoldout(
        *rows, metric=metric, plan=Plan(**PLAN | plan), ledger=ledger, seed=1, allow=FREE if ledger else ()
    )


def more(guard, number=0, size=NEW):
    rows = slice(OLD + number * NEW, OLD + number * NEW + size)
    return guard.extend(X[rows], Y[rows])


def half(answer):
    return (answer.high - answer.low) / 2.0


def test_later_questions_rest_on_all_rows_and_earlier_answers_stay(tmp_path):
    place = tmp_path / "guard.db"
    guard = begun(place)
    before = guard.evaluate(GUESS[:OLD], prior=0.85)
    whole = more(guard)
    assert (whole.plan.rows, whole.queries_asked) == (OLD + NEW, 1)
    now = whole.evaluate(GUESS[: OLD + NEW], prior=0.85)
    assert not now.replayed
    assert half(now) < half(before)
    again = guard.evaluate(GUESS[:OLD], prior=0.85)
    assert (again.replayed, again.low, again.high) == (True, before.low, before.high)
    brier = whole.on("brier", spread=0.3, estimate=0.15)
    assert brier.plan.rows == OLD + NEW
    brier.evaluate(GUESS[: OLD + NEW].astype(float), prior=0.15)
    assert "known" not in whole.certificate().metric  # digests of the added rows stay in the ledger
    third = more(whole, 1)
    final = third.final(GUESS[: OLD + 2 * NEW])
    assert final.low <= (GUESS == Y)[: OLD + 2 * NEW].mean() <= final.high
    with pytest.raises(Halted):
        more(third, 2)
    assert verify(place).sound
    opened = third.history().query("way == 'view'")["name"].tolist()
    assert opened == ["accuracy, 1,400 rows", "brier", "accuracy, 1,800 rows"]
    assert third.history().query("name == 'accuracy, 1,400 rows'")["told"].tolist() == [""]


def test_the_same_rows_give_the_same_guard_in_all_processes(tmp_path):
    place = tmp_path / "guard.db"
    whole = more(begun(place))
    first = whole.evaluate(GUESS[: OLD + NEW], prior=0.85)
    with ReusableHoldout.open(place, X[:OLD], Y[:OLD], seed=1) as opened:
        again = more(opened).evaluate(GUESS[: OLD + NEW], prior=0.85)
        assert (again.replayed, again.query) == (True, first.query)
    with whole.on("brier", spread=0.3, estimate=0.15) as view:
        arrived = pickle.loads(pickle.dumps(view))
        assert (arrived.view, arrived.plan.rows) == (view.view, OLD + NEW)
    with pytest.raises(LedgerMismatchError, match=r"without rows that extend\(\) added"):
        ReusableHoldout.open(place, X[: OLD + NEW], Y[: OLD + NEW], seed=1)


KINDS = {
    "numpy": X.to_numpy(),
    "pandas": X.assign(kind=pd.Categorical(np.where(X["a"] > 0, "up", "down"))),
    "sparse": sparse.csr_matrix(X.to_numpy()),
    "polars": pl.DataFrame(X.to_numpy(), schema=["a", "b"]),
    "no features": None,
}


@for_each("kind", KINDS)
@for_each("metric", ["accuracy", "f1", "balanced_accuracy"])
def test_rows_of_each_kind_and_metrics_that_tell_counts(kind, metric, tmp_path):
    table, place = KINDS[kind], tmp_path / f"{kind} {metric}.db"
    old, new = (None, None) if table is None else (table[:OLD], table[OLD : OLD + NEW])
    whole = begun(place, (old, Y[:OLD]), metric=metric, growth_share=0.125).extend(new, Y[OLD : OLD + NEW])
    final = whole.final(GUESS[: OLD + NEW])
    assert final.low <= final.value <= final.high
    assert half(final) < 0.07
    assert verify(place).sound


def test_groups_ids_and_weights_come_with_all_rows_or_with_none(tmp_path):
    whole, parts = np.arange(OLD + NEW) // 2, (slice(OLD), slice(OLD, OLD + NEW))
    given = [
        Rows(X[one], Y[one], groups=whole[one], ids=whole[one] * 2 + np.arange(len(X[one])) % 2)
        for one in parts
    ]
    guard = begun(tmp_path / "guard.db", (given[0],))
    assert guard.extend(given[1]).plan.rows == (OLD + NEW) / 2
    rows = parts[1]
    with pytest.raises(InputError, match="groups"):
        guard.extend(X[rows], Y[rows])
    with pytest.raises(InputError, match="group is one draw"):
        guard.extend(Rows(X[rows], Y[rows], groups=whole[rows] - NEW, ids=np.arange(NEW) - 10**6))
    with pytest.raises(InputError, match="sample_weight"):
        begun().extend(Rows(X[rows], Y[rows], sample_weight=np.ones(NEW)))


@for_each(
    ("words", "rows"),
    [
        ("the type, the columns", (X[OLD:].to_numpy(), Y[OLD:])),
        ("the type, the columns", (X[OLD:][["b", "a"]], Y[OLD:])),
        ("the type, the columns", (X[OLD:].astype("category"), Y[OLD:])),
        ("X if and only if", (None, Y[OLD:])),
        ("number of rows", (X[OLD:], Y[OLD + 1 :])),
        ("several columns must be", (X[OLD:], np.stack([Y[OLD:]] * 2, axis=1))),
        ("prevalence and order", (Rows(X[OLD:], Y[OLD:], order="time"),)),
        ("prevalence and order", (Rows(X[OLD:], Y[OLD:], classes=[0, 1]),)),
    ],
)
def test_rows_that_do_not_fit_are_refused(words, rows):
    guard = begun()
    with pytest.raises(InputError, match=words):
        guard.extend(*rows)
    assert more(guard).plan.rows == OLD + NEW


def test_rows_that_are_known_are_refused(tmp_path):
    guard = begun(tmp_path / "guard.db")
    with pytest.raises(OverlapError, match="added rows must be new"):
        guard.extend(X[:NEW], Y[:NEW])
    whole = more(guard)
    with pytest.raises(OverlapError, match="added rows must be new"):
        more(whole)
    following = whole.rotate(X[OLD + NEW :], Y[OLD + NEW :], early=True, tolerance=0.2).guard
    with pytest.raises(OverlapError, match="rows of this guard or of an earlier epoch"):
        following.extend(X[OLD + 1 : OLD + NEW], Y[OLD + 1 : OLD + NEW])
    labels = begun(None, (None, Y[:OLD])).extend(None, Y[OLD:])
    for rows in (Y[:OLD], Y[OLD:]):
        with pytest.raises(OverlapError, match="as a whole"):
            labels.extend(None, rows)


def test_added_rows_have_one_budget(tmp_path, monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_REGISTRY", str(tmp_path / "registry"))
    whole = more(begun(tmp_path / "guard.db"))
    for ledger in (None, tmp_path / "other.db"):
        with pytest.raises(SecondBudgetError):
            begun(ledger, (X[OLD : OLD + NEW], Y[OLD : OLD + NEW]))
    begun(tmp_path / "third.db", (X[OLD + NEW :], Y[OLD + NEW :]))
    with pytest.raises(SecondBudgetError):
        more(whole, 1)


def test_only_the_guard_of_all_rows_grows_and_rotates(tmp_path):
    guard = begun(tmp_path / "guard.db")
    whole = more(guard)
    with pytest.raises(LedgerMismatchError, match="this one is older"):
        more(guard, 1)
    with pytest.raises(InputError, match="another metric or slice"):
        more(whole.on(where=np.arange(OLD + NEW) < OLD), 1)
    fresh = X[OLD + NEW :], Y[OLD + NEW :]
    with pytest.raises(InputError, match="must have all rows"):
        guard.rotate(*fresh, early=True)
    with pytest.raises(OverlapError, match="rows of epoch 1"):
        whole.rotate(X[OLD : OLD + 2 * NEW], Y[OLD : OLD + 2 * NEW], early=True)
    with pytest.raises(InputError, match="extend allows 'vacuous' alone"):
        whole.extend(*fresh, allow={"overlap"})
    following, old, _ = whole.rotate(*fresh, early=True, tolerance=0.2)
    assert (following.epoch, len(old)) == (2, OLD + NEW)
    assert verify(tmp_path / "guard.db").sound


def test_finals_rest_on_the_new_rows_too():
    widths = {}
    for share in (0.0, 0.125):
        guard = begun(None, (None, Y[:OLD]), growth_share=share)
        for turn in range(3):  # each is charged
            guard.evaluate(np.roll(GUESS[:OLD], turn + 1), prior=0.85)
        whole = guard.extend(None, Y[OLD:])
        one, other = whole.final([GUESS, 1 - GUESS], [0.85, 0.15])
        assert one.low <= (GUESS == Y).mean() <= one.high
        assert other.high < 0.5
        widths[share] = half(one)
    assert widths[0.125] < widths[0.0]


def games():
    """Two questions about five old rows, and then two about all eight, the last of them the final."""
    flips = list(itertools.product([0, 1], repeat=8))[::37]
    for first, second in itertools.product(flips, flips[::2]):
        yield np.array(first), np.array(second)


@pytest.mark.long("reusable_holdout/guard", "reusable_holdout/certainty")
def test_all_labels_of_eight_coins_are_missed_no_more_often_than_said():
    plan = Plan(
        queries=3, charges=2, confidence=0.5, noise=0.0, growth_share=0.5, estimate=0.5, threshold=0.2
    )
    for first, second in [*games()][::9]:
        missed = 0
        for labels in map(np.array, itertools.product([0, 1], repeat=8)):
            guard = made_guard(None, labels[:5], plan=plan, classes=[0, 1], allow={"vacuous"}, seed=1)
            told = [guard.evaluate(first[:5], prior=0.5)]
            best = first if told[0].value >= 0.5 else 1 - first
            whole = guard.extend(Rows(None, labels[5:]), allow={"vacuous"})
            told.append(whole.evaluate(np.where(second, best, 1 - best), prior=0.5))
            after = best if told[1].value < 0.5 else np.where(second, best, 1 - best)
            told.append(whole.final(after))
            missed += any(not one.low <= 0.5 <= one.high for one in told)
        assert missed <= 128


_CHILD = f"""
import sys
sys.path.insert(0, {str(__file__).rsplit("/guard/", 1)[0]!r})
from guard.test_extension import begun, more
{DYING}
guard = begun(sys.argv[1], growth_share=0.125)
dies(sys.argv[2])
more(guard)
"""


@DEATHS
def test_a_death_while_rows_are_added_loses_and_doubles_nothing(moment, recorded, tmp_path):
    place = tmp_path / "guard.db"
    begun(place, growth_share=0.125).close()
    died(Child(_CHILD, place, moment))
    guard = begun(place, growth_share=0.125)
    assert len(guard._view.ledger.rows()) == 2 * recorded
    assert more(guard).plan.rows == OLD + NEW
    assert len(guard._view.ledger.rows()) == 2
    assert verify(place).sound


def test_two_processes_add_the_same_rows_once(tmp_path):
    place = tmp_path / "guard.db"
    begun(place, growth_share=0.125).close()
    children = [Child(_CHILD, place, "never") for _ in range(3)]
    assert [child.communicate() for child in children] == [""] * 3
    with begun(place, growth_share=0.125) as guard:
        assert len(guard._view.ledger.rows()) == 2


def test_a_restored_copy_is_refused(tmp_path):
    place, witness = tmp_path / "guard.db", tmp_path / "seen" / "witness"
    witness.parent.mkdir()
    guard = ReusableHoldout(X[:OLD], Y[:OLD], plan=Plan(**PLAN), ledger=place, seed=1, witness=witness)
    copy = place.read_bytes()
    more(guard)
    guard.close()
    place.write_bytes(copy)
    with pytest.raises(RolledBackError):
        ReusableHoldout(X[:OLD], Y[:OLD], plan=Plan(**PLAN), ledger=place, seed=1, witness=witness)


@for_each(
    ("old", "new"),
    [
        ('"growth_share":0.125', '"growth_share":0.01'),
        ('"alone":1', '"alone":0'),
        ('"rows":400', '"rows":40000'),
        ('"extends":0', '"extends":7'),
        ('"rows":1400', '"rows":9400'),
        ('"confidence":0.99', '"confidence":0.5'),
    ],
)
def test_a_forged_addition_is_found(old, new, tmp_path):
    place = tmp_path / "guard.db"
    more(begun(place, growth_share=0.125)).final(GUESS[: OLD + NEW])
    rewrite(place, lambda rows: [row._replace(told=row.told.replace(old, new)) for row in rows])
    assert not verify(place).sound


def test_finals_of_several_models_and_metrics_verify(tmp_path):
    place = tmp_path / "guard.db"
    whole = more(begun(place, growth_share=0.125))
    brier = whole.on("brier", spread=0.3, estimate=0.15)
    guesses = [GUESS[: OLD + NEW], 1 - GUESS[: OLD + NEW]]
    found = whole.final(guesses, [0.9, 0.4], also=[(brier, [one.astype(float) for one in guesses])])
    assert len(found) == 4
    assert verify(place).sound


def test_a_mapped_array_grows(tmp_path):
    guard = begun(tmp_path / "guard.db", (X[:OLD].to_numpy(), Y[:OLD]))
    whole = guard.extend(X[OLD : OLD + NEW].to_numpy(), Y[OLD : OLD + NEW])
    assert pickle.loads(pickle.dumps(whole)).plan.rows == OLD + NEW
    child = Child(
        "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).plan.rows)", tmp_path / "guard.pkl"
    )
    (tmp_path / "guard.pkl").write_bytes(pickle.dumps(whole))
    assert child.communicate().strip() == str(OLD + NEW)


def test_rows_in_time_order_are_added_after_those_before(tmp_path):
    times = pd.date_range("2024-01-01", periods=len(X), freq="h")
    labels = pd.Series(Y, index=times)
    guard = begun(tmp_path / "guard.db", (Rows(None, labels[OLD:], order="time"),))
    for earlier in (labels[:OLD], labels[:OLD].tz_localize("UTC"), labels[:OLD].to_numpy()):
        with pytest.raises(InputError, match="must come after the rows before"):
            guard.extend(None, earlier)
    with pytest.raises(InputError, match="take no growth_share"):
        begun(None, (Rows(None, labels[:OLD], order="time"),), growth_share=0.1)
    with pytest.raises(InputError, match="no growth_share"):
        Plan(OLD, queries=10, board="claims", growth_share=0.1)
    guard = begun(tmp_path / "other.db", (Rows(None, labels[:OLD], order="time"),))
    whole = guard.extend(None, labels[OLD:])
    assert whole.plan.order == "time"
    assert whole.final(GUESS).low < 0.85


def test_columns_with_other_categories_do_not_fit():
    kinds = [pd.DataFrame({"a": pd.Categorical(["u", one] * 500)}) for one in ("v", "w")]
    with pytest.raises(InputError, match="the type, the columns"):
        begun(None, (kinds[0], Y[:OLD])).extend(kinds[1][:NEW], Y[OLD : OLD + NEW])


def test_drift_is_the_difference_of_two_slices():
    whole = more(begun())
    new = np.arange(OLD + NEW) >= OLD
    guess = np.where(new, 1 - Y[: OLD + NEW], Y[: OLD + NEW])  # right on all old rows, wrong on all new ones
    found = whole.drift(guess, where=new, prior=0.5)
    assert (found.new.charged, found.old.charged) == (True, True)
    assert found.low <= -1.0 <= found.high
    assert found.high < -0.4
    assert whole.drift(guess, where=new, prior=0.5).new.replayed
    with pytest.raises(InputError, match="where must leave rows to compare with"):
        whole.drift(guess, where=new | True, prior=0.5)
    assert (found.low, found.high) == (found.new.low - found.old.high, found.new.high - found.old.low)


@for_each(
    ("rows", "added", "charges", "rotates"),
    [(1_000, 100, 0, False), (5_000, 5_000, 3, True), (5_000, 500, 3, False)],
)
def test_the_plan_says_when_to_rotate(rows, added, charges, rotates):
    plan, both, fresh = (Plan(count, **PLAN) for count in (rows, rows + added, added))
    assert (added >= plan.rows_to_rotate(plan.final_half_width(charges=charges))) == rotates
    narrower = fresh.final_half_width() < both.final_half_width(charges=charges)
    assert narrower == rotates
    assert "rotate() gives a narrower final from" in str(plan)
