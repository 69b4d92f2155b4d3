"""A process keeps one budget in memory for a set of rows, until it exits."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from children import Child
from registry.guards import FRESH, ROWS, X, Y, made

from reusable_holdout import Metric
from reusable_holdout.errors import (
    InputError,
    LedgerError,
    LedgerKeyError,
    LedgerMismatchError,
    RotatedError,
    SecondBudgetError,
    SecondBudgetWarning,
)
from reusable_holdout.registry import VARIABLE, Registry, forget, registry_of_its_own


@pytest.fixture(autouse=True)
def _forgets():
    with registry_of_its_own():
        yield


def make(x=X, y=Y, ledger=None, **changes):
    return made(ledger, x, y, **{"seed": 1, **changes})


def answered(guard):
    return guard.evaluate(Y, prior=0.2)


@for_each("settings", [{}, {"seed": None}, {"seed": None, "key": bytes(range(32))}])
def test_a_cell_that_is_run_again_goes_on_with_its_budget_and_its_answers_replay(settings):
    with registry_of_its_own():
        with make(**settings) as first:
            told = answered(first)
        again, third = make(**settings), make(**settings)
        assert answered(again) == told._replace(replayed=True)
        assert again.evaluate(1 - Y, prior=0.2).query == 2
        assert third.queries_asked == again.queries_asked == 2
        assert (again.digest, again.plan) == (first.digest, first.plan)
        del again, third
        assert make(**settings).queries_asked == 2
        with pytest.raises(LedgerError, match="closed"):  # though another object of the same ledger is open
            answered(first)


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
        refuses(LedgerMismatchError, f"{words}.*one budget there for a set of rows", make, **other)
        assert guard.queries_asked == 0


@for_each("other", [{"seed": 2}, {"seed": None}, {"seed": None, "key": bytes(32)}])
def test_another_key_is_refused(other):
    for first, second in (({}, other), ({"seed": None}, {})):
        with registry_of_its_own():
            make(**first)
            refuses(LedgerKeyError, "its own seed or key", make, **second)
            make(**first)


def test_some_of_the_rows_have_the_budget_too():
    make()
    for rows in ((X[100:], Y[100:]), (np.c_[X, FRESH[:, 0]], Y), (pd.DataFrame(X[::2]), Y[::2])):
        refuses(SecondBudgetError, "one in the memory of this process", make, *rows)


def test_rows_without_features_are_known_by_their_labels_or_their_names():
    make(None)
    refuses(LedgerMismatchError, "charges", make, None, charges=1)
    make(None, Y[::-1])
    names = np.arange(ROWS)
    make(None, names, metric="score")
    refuses(SecondBudgetError, "", make, None, names[::2], metric="score")


def test_fresh_rows_and_another_process_have_budgets_of_their_own():
    answered(make())
    assert make(FRESH, charges=1).charges_left == 1
    elsewhere = "from registry.guards import made; print(made(None, seed=1).queries_asked)"
    assert Child(elsewhere).communicate() == "0\n"


def test_another_budget_is_made_if_its_owner_insists_and_says_so():
    answered(make())
    for _ in range(2):  # which is run again, too
        other = make(charges=1, another_budget=True)
        assert other.charges_left == 1
    assert other.evaluate(Y, prior=0.9).another_budget
    assert make(charges=1, another_budget=True).queries_asked == 1
    assert not answered(make()).another_budget


def test_a_plan_may_be_changed_before_the_first_question_and_not_afterwards():
    first = make()
    guard = make(charges=1, replan=True)
    assert guard.plan.charges == 1
    refuses(RotatedError, "given another plan", answered, first)
    guard.evaluate(Y, prior=0.6)
    refuses(LedgerMismatchError, "queries answered: 1", make, replan=True)
    assert make(charges=1).queries_asked == 1


def test_rows_that_were_rotated_in_have_that_budget_and_those_that_were_released_none():
    fresh = make().rotate(FRESH, Y, early=True).guard
    answered(fresh)
    refuses(RotatedError, "was released", make)
    refuses(LedgerMismatchError, "charges", make, FRESH, charges=fresh.plan.charges + 1, tolerance=None)
    refuses(SecondBudgetError, "", make, FRESH[100:], Y[100:])


def test_what_could_not_be_made_keeps_no_budget():
    refuses(InputError, "", make, witness="somewhere", seed=3)
    assert make(charges=1).plan.charges == 1


def test_of_threads_that_make_the_same_guard_at_once_all_have_it():
    with ThreadPoolExecutor(4) as threads:
        guards = list(threads.map(lambda _: make(), range(8)))
    answered(guards[0])
    assert {guard.queries_asked for guard in guards} == {1}


def refused(ask):
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
        uses = (lambda: answered(guard), make, lambda: make(X[100:], Y[100:]), lambda: make(FRESH))
        os.write(writing, "\n".join(map(refused, uses)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        asked, again, part, fresh = said.read().split("\n")
    os.waitpid(child, 0)
    assert "belongs to the process that made it; this is a fork of it" in asked
    assert "one in the memory of this process" in part
    assert (again, fresh, guard.queries_asked) == (asked, "made", 0)


def test_a_metric_of_ones_own_with_other_code_is_another_metric():
    def of(loss):
        own = Metric(name="own", loss=loss, lower=0.0, upper=1.0, greater_is_better=False, response="labels")
        return make(metric=own, estimate=None)

    def misses(y, predictions):
        return np.asarray(y != predictions, dtype=float)

    def hits(y, predictions):
        return np.asarray(y == predictions, dtype=float)

    told = of(misses).evaluate(Y, prior=0.1)
    assert of(misses).evaluate(Y, prior=0.1) == told._replace(replayed=True)
    refuses(LedgerMismatchError, "other code", of, hits)


def test_a_registry_that_is_off_keeps_none(monkeypatch):
    monkeypatch.setenv(VARIABLE, "off")
    answered(make())
    assert make().queries_asked == make(charges=1).queries_asked == 0


PLACES = [(None, "g.db", "the memory of this process"), ("g.db", None, "g.db")]


@for_each(("first", "second", "words"), PLACES)
@for_each("seed", [1, None])
def test_a_budget_in_memory_and_one_in_a_file_are_two_for_the_same_rows(
    tmp_path_factory, seed, first, second, words
):
    """Both had been given, in one process, each with all its charges."""
    folder = tmp_path_factory.mktemp("two")

    def of(name, *rows, **more):
        place = {"ledger": folder / name, "witness": False} if name else {}
        return make(*rows, seed=seed, **place, **more)

    with registry_of_its_own():
        answered(of(first))
        for rows in ((X, Y), (X[100:], Y[100:])):
            refuses(SecondBudgetError, words, of, second, *rows)
        assert (folder / "g.db").exists() == bool(first)
        assert answered(of(second, another_budget=True)).another_budget
        assert of(first).queries_asked == 1


def test_a_budget_that_was_forgotten_on_disk_is_recalled_when_its_rows_have_one_in_memory(tmp_path):
    make(ledger=tmp_path / "g.db", witness=False)
    forget(Registry.of_user(), str(tmp_path / "g.db"), "a rehearsal")
    with pytest.warns(SecondBudgetWarning, match="a rehearsal") as told:
        guard = make(seed=None)
    assert [one.filename.endswith("made_guards.py") for one in told] == [True]
    assert answered(guard).another_budget
