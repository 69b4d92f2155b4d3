"""Class counts and sizes of groups that were told are remembered: to hear them by another guess is paid for."""

import json
import os
import sqlite3
import warnings

import numpy as np
import pytest
from cases import for_each
from children import Child

from reusable_holdout import KeptLessWarning, ReusableHoldout, verify
from reusable_holdout.errors import PlanError
from reusable_holdout.registry import VARIABLE, Registry, registry_of_its_own

ROWS = 3_000
LABELS = np.random.default_rng(0).permutation(np.arange(ROWS) < 900).astype(int)
WISH = {"queries": 20, "charges": 1, "estimate": 0.8, "seed": 1, "metric": "recall"}

ELSEWHERE = f"""
import os
import sys
os.environ["{VARIABLE}"] = sys.argv[2]
import numpy as np
from reusable_holdout import ReusableHoldout
labels = np.random.default_rng(0).permutation(np.arange({ROWS}) < 900).astype(int)
guess = float(sys.argv[1])
guard = ReusableHoldout(None, labels, prevalence=guess, vacuous=True, **{WISH!r})
print(guard._view.counts.place, guard._view.counts.nats, guard.plan.shared.told_before)
"""


@pytest.fixture(autouse=True)
def _registry(tmp_path):
    with registry_of_its_own():  # which gives the variable its value back
        os.environ[VARIABLE] = str(tmp_path / "registry")
        yield


def another_process(guess):
    """Place that a guard in memory tells, its price, and the nats of all that it knows to have been told."""
    place, own, before = Child(ELSEWHERE, guess, os.environ[VARIABLE]).communicate().split()
    return int(place), float(own), float(before)


def make(y=LABELS, **changes):
    return ReusableHoldout(None, y, **(WISH | changes))


def test_who_bisects_the_counts_by_other_guesses_in_other_processes_pays_for_each():
    """Each guess tells whether the counts are above a cell: unpaid, a dozen of them told the count exactly."""
    paid, known = 0.0, 0.0
    for guess in (0.5, 0.4, 0.35, 0.3, 0.29, 0.31):
        _, own, before = another_process(guess)
        paid += own
        assert own > 1.0
        assert before == pytest.approx(paid, abs=1e-9)
        assert before > known
        known = before
    assert another_process(0.3)[2] == pytest.approx(
        paid, abs=1e-9
    )  # what was heard before is told for nothing


def test_a_guard_of_any_metric_pays_for_what_was_told_elsewhere(tmp_path):
    make(prevalence=0.3)
    with registry_of_its_own():  # as another process, of the same user
        os.environ[VARIABLE] = str(tmp_path / "registry")
        plain = make(metric="accuracy")
        assert plain.plan.shared.told_before == make_nats(0.3)
    with registry_of_its_own():
        os.environ[VARIABLE] = str(tmp_path / "registry")
        with ReusableHoldout(
            None,
            LABELS,
            ledger=tmp_path / "g.db",
            witness=False,
            **(WISH | {"metric": "f1", "vacuous": True}),
        ) as guard:
            assert guard.plan.shared.told_before == make_nats(0.3)
            guard.evaluate_predictions(LABELS, prior=0.9)
        assert verify(tmp_path / "g.db").sound
        with ReusableHoldout(
            None,
            LABELS,
            ledger=tmp_path / "g.db",
            witness=False,
            **(WISH | {"metric": "f1", "vacuous": True}),
        ) as again:
            assert again.queries_asked == 1


def make_nats(guess):
    with registry_of_its_own():
        return make(prevalence=guess).plan.shared.told_before


def test_another_metric_of_the_rows_that_tells_is_remembered_too(tmp_path):
    with ReusableHoldout(
        None, LABELS, ledger=tmp_path / "g.db", witness=False, **(WISH | {"metric": "accuracy", "reveals": 3})
    ) as guard:
        told = guard.on("recall", prevalence=0.3, vacuous=True)._view.nats
    assert told > 1.0
    assert make(metric="accuracy", another_budget=True).plan.shared.told_before == told


@for_each("changes", [{"tolerance": 0.001, "charges": None}, {"prevalence": 1e-3, "charges": 12}])
def test_what_is_refused_told_nothing_and_nothing_is_remembered(changes):
    with pytest.raises(PlanError):
        make(**changes)
    assert make(metric="accuracy").plan.shared.told_before == 0.0


def test_a_cell_that_is_run_again_pays_nothing_more():
    first, again = make(prevalence=0.3), make(prevalence=0.3)
    assert again.plan == first.plan
    assert another_process(0.3)[2] == first.plan.shared.told_before


def test_the_registry_holds_no_label_and_no_count(tmp_path):
    make(prevalence=0.3)
    rows = (
        sqlite3.connect(tmp_path / "registry" / "registry.db")
        .execute("SELECT what, nats FROM told")
        .fetchall()
    )
    ((what, nats),) = rows
    metric, prevalence, _, labels = json.loads(what)
    assert (metric["name"], prevalence, nats > 1.0, len(labels)) == ("recall", [0.7, 0.3], True, 16)
    assert Registry(tmp_path / "registry").has_told()


# ---- counts that keep less than was wished


@for_each("metric", ["recall", "roc_auc", "f1_macro", "matthews_corrcoef"])
def test_a_guard_that_the_counts_leave_less_is_made_all_the_same_and_says_what_is_kept(metric, tmp_path):
    rare = np.zeros(ROWS, dtype=int)
    rare[:40] = 1
    with registry_of_its_own():
        ledger = tmp_path / f"{metric}.db"
        wish = {"metric": metric, "ledger": ledger, "witness": False, "charges": None, "tolerance": 0.24}
        wish |= {"queries": 5} if metric in {"f1_macro", "matthews_corrcoef"} else {}
        with pytest.warns(
            KeptLessWarning, match=r"nats, leaves less than was wished: no plan keeps"
        ) as caught:
            guard = make(rare, **wish)
        assert [one.filename for one in caught] == [__file__]
        told = guard.plan.shared.told_before
        assert told >= guard._view.counts.nats > 1.0
        assert guard.plan.tolerance > 0.24
        assert f"{guard.plan.tolerance:g} of the population value" in str(guard.plan)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = make(rare, **wish)  # is resumed, and its owner has been warned
        assert again.plan == guard.plan
        predictions = np.random.default_rng(0).integers(0, 2, ROWS)
        last = again.final_predictions(predictions)
        assert last.low <= last.value <= last.high
        assert verify(ledger).sound
        with ReusableHoldout.open(ledger, None, rare, seed=1) as opened:
            assert opened.plan == guard.plan


def test_a_rotation_that_the_counts_leave_less_is_made_too():
    guard = make(prevalence=0.3, charges=None, tolerance=0.15)
    rare = np.zeros(ROWS, dtype=int)
    rare[:60] = 1
    with pytest.warns(KeptLessWarning) as caught:
        fresh = guard.rotate(None, rare, early=True).guard
    assert [one.filename for one in caught] == [__file__]
    assert fresh.plan.tolerance > 0.15
