"""A set of labels is public where it is declared, or small beside the rows; otherwise exact match needs no list."""

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from guard.counting import AGREEMENT
from made_guards import made_guard
from reusable_holdout_sklearn import prior_scorer
from sklearn.dummy import DummyClassifier

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.metrics.predictions import normal_form

WISH = {"queries": 10, "charges": 1, "estimate": 0.8, "vacuous": True, "seed": 0}
NAMES = np.array([f"name {k}" for k in range(200)])


def guard_of(y, **wish):
    return made_guard(None, y, **{**WISH, **wish})


@for_each(
    ("rows", "labels", "public"),
    [
        (500, NAMES[:10], True),
        (500, NAMES[:11], False),
        (99, NAMES[:2], False),
        (100, NAMES[:2], True),
        (500, np.arange(10) * 7, True),
        (500, np.arange(11) * 7, False),
        (20, np.arange(2), True),  # two numbers encode yes and no
        (20, np.arange(3), False),
        (20, np.array([True, False]), True),
    ],
)
def test_a_set_of_labels_is_public_up_to_a_fiftieth_of_the_rows(rows, labels, public):
    y = np.resize(labels, rows)
    guard = guard_of(y)
    assert (guard.classes is not None) == public == (guard.private_labels is None)
    declared = guard_of(y, classes=labels)
    assert declared.classes.tolist() == sorted(set(labels.tolist()))
    hidden = guard_of(y, classes="private")
    assert hidden.classes is None
    assert hidden.evaluate(y, prior=1.0).value == 1.0


@for_each(
    ("predicted", "right"),
    [
        ("New York", True),
        (" new\u00a0  york\n", True),
        ("\uff2e\uff45\uff57 York", True),  # wide letters
        ("NEW YORK", True),
        ("New York.", False),
        ("Newyork", False),
        ("", False),
    ],
)
def test_answers_are_compared_without_case_and_extra_spaces(predicted, right):
    y = [*NAMES[:50], "New York"]
    guesses = [*NAMES[:50], predicted]
    guard = guard_of(y)
    assert guard.evaluate(guesses, prior=1.0 if right else 50 / 51).value == (1.0 if right else 50 / 51)
    assert (normal_form(predicted) == "new york") == right


def test_labels_of_a_public_set_are_compared_as_they_are():
    y = np.resize(["Yes", "No"], 400)
    with pytest.raises(InputError, match="among the classes No, Yes; got yes"):
        guard_of(y).evaluate(np.char.lower(y), prior=0.9)


def test_the_same_answers_in_other_letters_are_the_same_question():
    guard = guard_of(NAMES)
    first = guard.evaluate(NAMES, prior=1.0)
    assert guard.evaluate(np.char.upper(NAMES).tolist(), prior=1.0).query == first.query
    assert guard.evaluate(pd.Series(NAMES), prior=1.0).replayed
    assert guard.queries_asked == 1


def test_exact_match_counts_rows_weights_groups_and_slices():
    guesses = np.where(np.arange(200) < 150, NAMES, "no")
    weights = np.where(np.arange(200) < 100, 1.0, 3.0)
    metric = resolve_metric("accuracy")
    assert metric.measure(NAMES, guesses, classes="private") == 0.75
    assert metric.measure(NAMES, guesses, classes="private", sample_weight=weights) == 250 / 400
    assert metric.bind(NAMES, classes="private", groups=np.arange(200) // 100).statistic.value(
        metric.bind(NAMES, classes="private").prepare(guesses)
    ) == pytest.approx(0.75)
    guard = guard_of(NAMES)
    assert (
        guard.on(sample_weight=np.arange(200) >= 100, allow={"vacuous"}).evaluate(guesses, prior=0.5).value
        == 0.5
    )
    assert guard.on("zero_one_loss", allow={"vacuous"}).evaluate(guesses, prior=0.25).value == 0.25


@for_each("name", ["balanced_accuracy", "f1_macro", "recall_micro", "log_loss", "brier", "roc_auc_ovr"])
def test_other_metrics_name_the_remedy(name):
    with pytest.raises(
        InputError, match=f"^for {name} the set of labels must be public: declared with classes="
    ) as told:
        guard_of(NAMES, metric=name)
    assert "name 1" not in str(told.value)
    assert guard_of(np.resize(NAMES, 400), metric="recall_micro", classes=NAMES).classes is not None


def test_a_metric_of_ones_own_must_not_see_private_labels():
    own = Metric(name="accuracy", loss=lambda y, p: y == p, **AGREEMENT)
    refuses(InputError, "declared with classes=", guard_of, NAMES, metric=own)


@for_each(
    ("strange", "words"),
    [
        (np.full(200, 0.5), "whole numbers"),
        (np.full(200, "a"), "must be numbers like the labels; got text"),
        (np.full(200, np.nan), "whole numbers"),
    ],
)
def test_numbers_are_compared_as_whole_numbers(strange, words):
    y = np.arange(200) * 3
    guard = guard_of(y)
    assert guard.evaluate(y.astype(float), prior=1.0).value == 1.0
    assert guard.evaluate(np.full(200, 10**12), prior=0.0).value == 0.0
    refused = refuses(InputError, words, guard.evaluate, strange, prior=0.5)
    assert "597" not in str(refused)


def test_a_guard_is_resumed_by_what_its_ledger_says(tmp_path):
    y = np.resize(NAMES, 400)
    for name, classes in (("private.db", None), ("declared.db", NAMES)):
        with guard_of(y, ledger=tmp_path / name, classes=classes, unwitnessed=True) as guard:
            first = guard.evaluate(y, prior=1.0)
        for again in (
            lambda name=name: ReusableHoldout.open(tmp_path / name, None, y),
            lambda name=name: guard_of(y, ledger=tmp_path / name),  # as one of 0.2.0 that told all labels
        ):
            with again() as guard:
                assert (guard.classes is None) == (classes is None)
                assert guard.evaluate(y, prior=1.0).query == first.query
    kept = [
        Configuration.parse(SqlLedger(tmp_path / name).configuration())
        for name in ("private.db", "declared.db")
    ]
    assert [one.classes for one in kept] == ["private", sorted(NAMES)]
    with pytest.raises(
        LedgerMismatchError, match="the classes must be the same as when the ledger was made"
    ) as refused:
        guard_of(y, ledger=tmp_path / "private.db", classes=NAMES)
    assert "name" not in str(refused.value)


def test_fresh_rows_keep_a_private_set_private():
    guard = guard_of(NAMES)
    guard.final(NAMES)
    fresh = np.resize(["red", "blue"], 400)
    assert guard.rotate(None, fresh).guard.private_labels == "text"


def test_a_prior_is_measured_as_the_guard_measures():
    X = np.arange(200.0)[:, None]
    guard = made_guard(X, NAMES, **WISH)
    known = np.resize(["name 7", "NAME  7"], 60)
    answer = guard.evaluate(DummyClassifier(strategy="constant", constant="name 7"), X[:60], known)
    assert answer.prior == 1.0  # cross-validated
    assert answer.charged
    model = DummyClassifier(strategy="most_frequent").fit(X[:60], np.full(60, "Name 8"))
    assert prior_scorer(guard)(model, X[:60], np.full(60, "name 8")) == 1.0
