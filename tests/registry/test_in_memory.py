"""A process keeps one budget in memory for a set of rows, until it exits."""

import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from cases import for_each
from children import Child

from reusable_holdout import Metric, ReusableHoldout
from reusable_holdout.errors import (
    HandleError,
    InputError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    RotatedError,
    SecondBudgetError,
    SecondBudgetWarning,
)
from reusable_holdout.registry import VARIABLE, Registry, forget, registry_of_its_own

ROWS = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 4))
Y = (X[:, 0] + RNG.normal(size=ROWS) > 0).astype(int)
FRESH = np.random.default_rng(1).normal(size=(ROWS, 4))
WISH = {"queries": 20, "charges": 2, "estimate": 0.7, "seed": 1}
ELSEWHERE = """
import numpy as np
from reusable_holdout import ReusableHoldout
X = np.random.default_rng(0).normal(size=(600, 4))
print(ReusableHoldout(X, X[:, 0] > 0, queries=20, charges=2, seed=1).queries_asked)
"""


@pytest.fixture(autouse=True)
def _forgets():
    with registry_of_its_own():
        yield


def make(x=X, y=Y, **changes):
    return ReusableHoldout(x, y, **(WISH | changes))


@for_each("settings", [{}, {"seed": None}, {"seed": None, "key": bytes(range(32))}, {"policy": "ladder"}])
def test_a_cell_that_is_run_again_goes_on_with_its_budget_and_its_answers_replay(settings):
    prior = None if "policy" in settings else 0.2
    with registry_of_its_own():
        first = make(**settings)
        told = first.evaluate_predictions(Y, prior=prior)
        again = make(**settings)
        assert again.evaluate_predictions(Y, prior=prior) == told._replace(replayed=True)
        assert again.evaluate_predictions(1 - Y, prior=prior).query == 2
        assert first.queries_asked == again.queries_asked == 2
        assert (again.digest, again.plan) == (first.digest, first.plan)


def test_a_guard_that_was_dropped_or_closed_left_its_budget():
    with make() as guard:
        guard.evaluate_predictions(Y, prior=0.2)
    del guard
    assert make().charges_left == 1


def test_ladders_go_on_from_their_best():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guards = [make(policy="parameter-free-ladder", queries=40, vacuous=True) for _ in range(2)]
    right = np.where(np.arange(ROWS) < ROWS // 4, 1 - Y, Y)
    best = guards[0].evaluate_predictions(right)
    assert best.charged
    nearly = np.where(np.arange(ROWS) < ROWS // 4 + 1, 1 - Y, Y)
    assert not guards[1].evaluate_predictions(nearly).charged


@for_each(
    ("other", "words"),
    [
        ({"charges": 1}, "charges is 2 in the ledger, and 1 was asked for"),
        ({"queries": 30}, "queries is 20"),
        ({"metric": "f1"}, "the metric is 'accuracy'"),
        ({"classes": [0, 1, 2]}, "the classes must be"),
        ({"sample_weight": np.arange(ROWS) < 300}, "weights is None"),
        ({"y": 1 - Y}, "must belong to this holdout"),
        ({"x": X[::-1], "y": Y[::-1]}, "must belong to this holdout"),
    ],
)
def test_other_settings_are_refused_as_they_are_of_a_file(other, words):
    with registry_of_its_own():
        guard = make()
        with pytest.raises(LedgerMismatchError, match=words) as caught:
            make(**other)
        assert "one budget there for a set of rows, until it exits" in str(caught.value)
        assert guard.queries_asked == 0


@for_each("other", [{"seed": 2}, {"seed": None}, {"seed": None, "key": bytes(32)}])
def test_another_key_is_refused(other):
    with registry_of_its_own():
        make()
        with pytest.raises(LedgerKeyError, match="its own seed or key"):
            make(**other)
        make()
    with registry_of_its_own():
        make(seed=None)
        with pytest.raises(LedgerKeyError, match="its own seed or key"):
            make()


@for_each("rows", [(X[100:], Y[100:]), (np.c_[X, FRESH[:, 0]], Y), (pd.DataFrame(X[::2]), Y[::2])])
def test_some_of_the_rows_have_the_budget_too(rows):
    make()
    with pytest.raises(SecondBudgetError, match="one in the memory of this process"):
        make(*rows)


def test_rows_without_features_are_known_by_their_labels_or_their_names():
    make(None)
    with pytest.raises(LedgerMismatchError, match="charges"):
        make(None, charges=1)
    make(None, Y[::-1])
    names = np.arange(ROWS)
    make(None, names, metric="score")
    with pytest.raises(SecondBudgetError):
        make(None, names[::2], metric="score")


def test_fresh_rows_have_a_budget_of_their_own():
    make().evaluate_predictions(Y, prior=0.2)
    assert make(FRESH, charges=1).charges_left == 1


def test_another_budget_is_made_if_its_owner_insists_and_says_so():
    make().evaluate_predictions(Y, prior=0.2)
    for _ in range(2):  # which is run again, too
        other = make(charges=1, another_budget=True)
        assert other.charges_left == 1
    assert other.evaluate_predictions(Y, prior=0.9).another_budget
    assert make(charges=1, another_budget=True).queries_asked == 1
    assert not make().evaluate_predictions(Y, prior=0.2).another_budget


def test_a_plan_may_be_changed_before_the_first_question_and_not_afterwards():
    first = make()
    guard = make(charges=1, replan=True)
    assert guard.plan.charges == 1
    with pytest.raises(RotatedError, match="given another plan"):
        first.evaluate_predictions(Y, prior=0.2)
    guard.evaluate_predictions(Y, prior=0.6)
    with pytest.raises(LedgerMismatchError, match="queries answered: 1"):
        make(replan=True)
    assert make(charges=1).queries_asked == 1


def test_rows_that_were_rotated_in_have_that_budget_and_those_that_were_released_none():
    guard = make()
    fresh = guard.rotate(FRESH, Y, early=True).guard
    fresh.evaluate_predictions(Y, prior=0.2)
    with pytest.raises(RotatedError, match="was released"):
        make()
    with pytest.raises(LedgerMismatchError, match="charges"):
        make(FRESH, charges=fresh.plan.charges + 1, tolerance=None)
    with pytest.raises(SecondBudgetError):
        make(FRESH[100:], Y[100:])


def test_what_could_not_be_made_keeps_no_budget():
    with pytest.raises(InputError):
        make(witness="somewhere", seed=3)
    assert make(charges=1).plan.charges == 1


def test_of_threads_that_make_the_same_guard_at_once_all_have_it():
    with ThreadPoolExecutor(4) as threads:
        guards = list(threads.map(lambda _: make(), range(8)))
    guards[0].evaluate_predictions(Y, prior=0.2)
    assert {guard.queries_asked for guard in guards} == {1}


def _refused(ask):
    try:
        ask()
    except LedgerError as error:
        return str(error)
    return "made"


def test_a_fork_can_neither_ask_nor_make_it_again_and_is_told_why():
    guard = make()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        words = [
            _refused(lambda: guard.evaluate_predictions(Y, prior=0.2)),
            _refused(make),
            _refused(lambda: make(X[100:], Y[100:])),
            _refused(lambda: make(FRESH)),
        ]
        os.write(writing, "\n".join(words).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        asked, again, part, fresh = said.read().split("\n")
    os.waitpid(child, 0)
    assert "belongs to the process that made it; this is a fork of it" in asked
    assert again == asked
    assert "one in the memory of this process" in part
    assert fresh == "made"
    assert guard.queries_asked == 0


def test_a_guard_that_is_sent_to_a_worker_says_why_it_cannot_be():
    with pytest.raises(HandleError, match=r"keeps it in memory; give it a file or a server"):
        pickle.dumps(make())


def test_a_metric_of_ones_own_with_other_code_is_another_metric():
    def made(loss):
        own = Metric(name="own", loss=loss, lower=0.0, upper=1.0, greater_is_better=False, response="labels")
        return make(metric=own, estimate=None)

    def misses(y, predictions):
        return np.asarray(y != predictions, dtype=float)

    def hits(y, predictions):
        return np.asarray(y == predictions, dtype=float)

    told = made(misses).evaluate_predictions(Y, prior=0.1)
    assert made(misses).evaluate_predictions(Y, prior=0.1) == told._replace(replayed=True)
    with pytest.raises(LedgerMismatchError, match="other code"):
        made(hits)


def test_another_process_has_a_budget_of_its_own():
    make().evaluate_predictions(Y, prior=0.2)
    assert Child(ELSEWHERE).communicate().strip() == "0"


def test_a_registry_that_is_off_keeps_none(monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    make().evaluate_predictions(Y, prior=0.2)
    assert make().queries_asked == make(charges=1).queries_asked == 0


@for_each("seed", [1, None])
def test_a_budget_in_memory_and_one_in_a_file_are_two_for_the_same_rows(seed, tmp_path):
    """Both had been given, in one process, each with all its charges."""
    for number, (first, second) in enumerate([(None, "g.db"), ("g.db", None)]):
        with registry_of_its_own():
            folder = tmp_path / f"{seed}{number}"
            folder.mkdir()
            places = [{"ledger": folder / one, "witness": False} if one else {} for one in (first, second)]
            make(seed=seed, **places[0]).evaluate_predictions(Y, prior=0.2)
            for rows in ((X, Y), (X[100:], Y[100:])):
                with pytest.raises(
                    SecondBudgetError, match="g.db" if first else "in the memory of this process"
                ):
                    make(*rows, seed=seed, **places[1])
            assert (folder / "g.db").exists() == bool(first)
            insisted = make(seed=seed, another_budget=True, **places[1])
            assert insisted.evaluate_predictions(Y, prior=0.2).another_budget
            assert make(seed=seed, **places[0]).queries_asked == 1


def test_a_budget_that_was_forgotten_on_disk_is_recalled_when_its_rows_have_one_in_memory(tmp_path):
    make(ledger=tmp_path / "g.db", witness=False)
    registry = Registry.of_user()
    forget(registry, str(tmp_path / "g.db"), "a rehearsal")
    with pytest.warns(SecondBudgetWarning, match="a rehearsal") as told:
        guard = ReusableHoldout(X, Y, **WISH)
    assert [one.filename for one in told] == [__file__]
    assert guard.evaluate_predictions(Y, prior=0.2).another_budget
