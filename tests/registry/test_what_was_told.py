"""Class counts and sizes of groups that were told are remembered: to hear them by another guess is paid for."""

import contextlib
import json
import os
import sqlite3
import warnings

import made_guards
import numpy as np
import pytest
from cases import for_each, refuses
from children import Child
from made_guards import made_guard

from reusable_holdout import KeptLessWarning, ReusableHoldout, verify
from reusable_holdout.errors import PlanError
from reusable_holdout.registry import VARIABLE, Registry, registry_of_its_own

ROWS = 3_000
LABELS = np.random.default_rng(0).permutation(np.arange(ROWS) < 900).astype(int)
RARE = (np.arange(ROWS) < 40).astype(int)
WISH = {"queries": 20, "charges": 1, "estimate": 0.8, "seed": 1, "metric": "recall"}
ELSEWHERE = f"""
import os, sys
os.environ["{VARIABLE}"] = sys.argv[2]
from registry.test_what_was_told import make
guard = make(prevalence=float(sys.argv[1]), vacuous=True)
print(guard._view.facts.counts.nats, guard.plan.shared.told_before)
"""


@contextlib.contextmanager
def another_memory(folder):
    """As in another process of the same user: nothing is known but what is in the folder."""
    with registry_of_its_own():  # which gives the variable its value back
        os.environ[VARIABLE] = str(folder)
        yield


@pytest.fixture(autouse=True)
def registry(tmp_path):
    with another_memory(tmp_path / "registry"):
        yield tmp_path / "registry"


def make(y=LABELS, ledger=None, **changes):
    place = {} if ledger is None else {"ledger": ledger, "witness": False}
    return made_guard(None, y, **WISH | place | changes)


def told(guard):
    return guard.plan.shared.told_before


def another_process(guess):
    """Price of the counts that a guard in memory tells, and the nats of all that it knows to have been told."""
    return map(float, Child(ELSEWHERE, guess, os.environ[VARIABLE]).communicate().split())


def test_who_bisects_the_counts_by_other_guesses_in_other_processes_pays_for_each():
    """Each guess tells whether the counts are above a cell: unpaid, a dozen of them told the count exactly."""
    paid = 0.0
    for guess in (0.5, 0.4, 0.35, 0.3, 0.29, 0.31):
        own, before = another_process(guess)
        assert own > 1.0
        paid += own
        assert before == pytest.approx(paid, abs=1e-9)
    assert [*another_process(0.3)][1] == pytest.approx(
        paid, abs=1e-9
    )  # what was heard before is told for nothing


def test_a_guard_of_any_metric_pays_for_what_was_told_elsewhere(registry, tmp_path):
    nats = told(make(prevalence=0.3))
    with another_memory(registry):
        assert told(make(metric="accuracy")) == nats
    with another_memory(registry):
        for asked in (0, 1):
            with make(ledger=tmp_path / "g.db", metric="f1", vacuous=True) as guard:
                assert (told(guard), guard.queries_asked) == (nats, asked)
                guard.evaluate(LABELS, prior=0.9)
        assert verify(tmp_path / "g.db").sound


def test_another_metric_of_the_rows_that_tells_is_remembered_too(tmp_path):
    with make(ledger=tmp_path / "g.db", metric="accuracy", reveals=3) as guard:
        nats = guard.on("recall", prevalence=0.3, allow={"vacuous"})._view.facts.nats
    assert told(make(metric="accuracy", another_budget=True)) == nats > 1.0


@for_each("changes", [{"tolerance": 0.001, "charges": None}, {"prevalence": 1e-3, "charges": 12}])
def test_what_is_refused_told_nothing_and_nothing_is_remembered(changes):
    refuses(PlanError, "", make, **changes)
    assert told(make(metric="accuracy")) == 0.0


def test_what_was_told_is_told_again_for_nothing():
    first, again = make(prevalence=0.3), make(prevalence=0.3)
    assert again.plan == first.plan
    assert [*another_process(0.3)][1] == told(first)


def test_the_registry_holds_no_label_and_no_count(registry):
    make(prevalence=0.3)
    with contextlib.closing(sqlite3.connect(registry / "registry.db")) as connection:
        ((what, nats),) = connection.execute("SELECT what, nats FROM told").fetchall()
    metric, prevalence, _, labels = json.loads(what)
    assert (metric["name"], prevalence, nats > 1.0, len(labels)) == ("recall", [0.7, 0.3], True, 16)
    assert Registry(registry).has_told()


# ---- counts that keep less than was wished


@for_each("metric", ["recall"])
def test_a_guard_that_the_counts_leave_less_is_made_all_the_same_and_says_what_is_kept(metric, tmp_path):
    wish = {"metric": metric, "ledger": tmp_path / f"{metric}.db", "charges": None, "tolerance": 0.24}
    with registry_of_its_own():
        with pytest.warns(
            KeptLessWarning, match=r"nats, allow less than was wished: no plan keeps"
        ) as caught:
            guard = make(RARE, **wish)
        assert [one.filename for one in caught] == [made_guards.__file__]
        assert told(guard) >= guard._view.facts.counts.nats > 1.0
        assert guard.plan.tolerance > 0.24
        assert f"{guard.plan.tolerance:g}, whatever is told" in str(guard.plan)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = make(RARE, **wish)  # is resumed, and its owner has been warned
        last = again.final(np.random.default_rng(0).integers(0, 2, ROWS))
        assert last.low <= last.value <= last.high
        assert verify(wish["ledger"]).sound
        with ReusableHoldout.open(wish["ledger"], None, RARE, seed=1) as opened:
            assert opened.plan == again.plan == guard.plan


def test_a_rotation_that_the_counts_leave_less_is_made_too():
    guard = make(prevalence=0.3, charges=None, tolerance=0.15)
    with pytest.warns(KeptLessWarning) as caught:
        fresh = guard.rotate(None, RARE, early=True).guard
    assert [one.filename for one in caught] == [__file__]
    assert fresh.plan.tolerance > 0.15
