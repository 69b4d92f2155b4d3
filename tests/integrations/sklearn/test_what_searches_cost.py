"""A search, a scorer or a cross-validation that asks again, or after a halt, costs nothing and reads no rows."""

import sqlite3

import numpy as np
import pytest
from cases import for_each, refuses
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer, prior_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout.errors import Halted, HoldoutError, Refused
from reusable_holdout.guard.inputs import PrivateData

MODEL = LogisticRegression()


def search(guard, rows, ask):
    grid, scoring = {"max_depth": [1, 2, 3]}, prior_scorer(guard)
    inner = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=2, scoring=scoring)
    return GuardedSearchCV(inner, guard, ask=ask).fit(*rows)


WAYS = {
    "choose": lambda guard, rows: search(guard, rows, "choose"),
    "evaluate": lambda guard, rows: search(guard, rows, "evaluate"),
    "cross-validation": lambda guard, rows: guarded_cross_validate(MODEL, *rows, guard, cv=2),
    "scorer": lambda guard, rows: cross_val_score(
        MODEL, *rows, cv=2, scoring=guarded_scorer(guard), error_score="raise"
    ),
}


@pytest.fixture
def read(monkeypatch):
    """Models that have predicted the holdout's rows."""
    models, predicted = [], PrivateData.predicted

    def noted(self, model, *more):
        models.append(model)
        return predicted(self, model, *more)

    monkeypatch.setattr(PrivateData, "predicted", noted)
    return models


def dumped(guard):
    ledger = sqlite3.connect(guard._view.ledger.path)
    try:
        return list(ledger.iterdump())
    finally:
        ledger.close()


@for_each("way", WAYS)
@for_each("then", ["at once", "after a halt", "after a final"])
def test_asked_again_it_is_free_and_reads_nothing(make_guard, train, read, way, then):
    guard = make_guard(queries=12, tolerance=0.3)
    WAYS[way](guard, train)
    assert read
    if then == "after a final":
        guard.final(LogisticRegression().fit(*train))
    while then == "after a halt" and not guard.halted:
        guard.evaluate(np.arange(4_000) % 2, prior=0.5 + guard.queries_asked / 1_000)
    before = dumped(guard)
    read.clear()
    WAYS[way](guard, train)
    assert (dumped(guard), read) == (before, [])
    if then != "at once":
        refuses(Halted, "", WAYS[way], guard, (train[0][:1_000], train[1][:1_000]))
        assert (dumped(guard), read) == (before, [])


@for_each("way", WAYS)
def test_what_is_refused_costs_nothing_and_reads_nothing(make_guard, train, read, way):
    guard = make_guard()
    before, wide = dumped(guard), (np.hstack([train[0], train[0]]), train[1])
    refuses((HoldoutError, Refused), "", WAYS[way], guard, wide)
    assert (dumped(guard), read) == (before, [])
    guard.close()
    refuses((HoldoutError, Refused), "closed", WAYS[way], guard, train)
    assert (dumped(guard), read) == (before, [])
