"""Rows that pandas knows by the same labels in another order are refused, free, and never mixed up."""

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from sklearn.linear_model import LogisticRegression

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import index_of, is_reordered

ROWS = 2_000
NAMES = pd.Index([f"PRIVATE{place}" for place in range(ROWS)])
ORDER = np.random.default_rng(3).permutation(ROWS)
IN_ORDER = r"same order; their indexes.*pass {0}\.loc\[{1}\.index\], or {0}\.to_numpy\(\).*; nothing was {2}$"
INDEXES = {
    "text": NAMES,
    "default": pd.RangeIndex(ROWS),
    "numbers": pd.Index(np.arange(ROWS) * 7),
    "dates": pd.date_range("2020-01-01", periods=ROWS, freq="h"),
    "levels": pd.MultiIndex.from_arrays([np.arange(ROWS) // 2, np.arange(ROWS) % 2]),
}


@pytest.fixture
def frame(labels):
    return pd.DataFrame({"a": np.where(labels, 1.0, -1.0), "b": np.arange(ROWS) / ROWS}, index=NAMES)


def refused(words, function, *args, **kwargs):
    caught = refuses(InputError, words, function, *args, **kwargs)
    assert "PRIVATE" not in str(caught)


@for_each("index", INDEXES)
def test_labels_in_another_order_than_the_features_are_refused(make_guard, labels, frame, index):
    X = frame.set_axis(INDEXES[index], axis=0)
    y = pd.Series(labels, index=X.index)
    shuffled = y.iloc[ORDER]
    refused(IN_ORDER.format("y", "X", "made"), make_guard, X=X, y=shuffled)
    refused(IN_ORDER.format("y", "X", "made"), make_guard, X=X, y=shuffled.to_frame())
    for taken in (y, y.copy(), shuffled.loc[X.index], y.to_numpy(), y.tolist()):
        assert make_guard(X=X, y=taken).evaluate(Sign(), prior=1.0).value == 1.0
    refused(IN_ORDER.format("y", "X", "made"), make_guard().rotate, X, shuffled, early=True)


@for_each("beside", ["sample_weight", "groups"])
def test_weights_and_groups_in_another_order_are_refused(make_guard, labels, frame, beside):
    given = pd.Series(np.arange(ROWS) % 2, index=NAMES)
    refused(IN_ORDER.format(beside, "X", "made"), make_guard, X=frame, **{beside: given.iloc[ORDER]})
    y = pd.Series(labels, index=NAMES)
    refused(IN_ORDER.format(beside, "y", "made"), make_guard, y=y, **{beside: given.iloc[ORDER]})
    make_guard(X=frame, y=y, **{beside: given})


class Sign:
    def predict(self, X):
        return (X["a"] > 0).astype(int)  # with the rows' index


@for_each("held", ["X", "y", "both"])
def test_predictions_in_another_order_than_the_holdout_are_refused_free(make_guard, labels, frame, held):
    y = labels if held == "X" else pd.Series(labels, index=NAMES)
    guard = make_guard(X=None if held == "y" else frame, y=y, choices=[2], reveals=1)
    mine = pd.Series(labels, index=NAMES)
    other = mine.iloc[ORDER]
    words = (
        r"predictions must be in the order.*pass predictions\.loc\[X\.index\], or predictions\.to_numpy\(\)"
    )
    for ask in (guard.evaluate, guard.reveal):
        refused(words, ask, other, prior=0.5)
    refused(words, guard.check_predictions, other.to_frame())
    refused(words, guard.final, other)
    refused(rf"predictions\[1\]: {words}", guard.evaluate, [mine, other], prior=[0.5, 0.5])
    refused(words, guard.compare, mine, other, prior=0.0)
    refused(words, guard.choose, [mine, other], [0.5, 0.5])
    refused(words, guard.gate, other, 0.5)
    assert (guard.queries_asked, guard.charges_left) == (0, 3)
    same = (mine, mine.copy(), other.loc[NAMES], pd.Series(labels), labels)
    assert len({guard.evaluate(one, prior=1.0).query for one in same}) == 1
    if held != "y":
        assert guard.evaluate(Sign(), prior=1.0).value == 1.0


@for_each("names", ["fresh", "reordered"])
def test_what_a_model_predicts_is_in_the_order_of_what_it_was_given(make_guard, labels, frame, names):
    class Labelled:
        def predict(self, X):
            index = pd.RangeIndex(len(X)) if names == "fresh" else X.index[::-1]
            return pd.Series(np.asarray(X["a"] > 0).astype(int), index=index)

    numbered = frame.set_axis(ORDER, axis=0)
    for held in (frame, numbered):
        guard = make_guard(X=held, y=pd.Series(labels, index=held.index))
        assert guard.evaluate(Labelled(), prior=1.0).value == 1.0


def test_probabilities_in_another_order_are_refused(make_guard, labels, frame):
    guard = make_guard(X=frame, metric="brier", threshold=None, noise=None, queries=20, charges=2)
    table = pd.DataFrame({"no": 1.0 - labels, "yes": labels}, index=NAMES)
    refused("in the order of the holdout", guard.evaluate, table.iloc[ORDER], prior=0.1)
    guard.evaluate(table, prior=0.1)


def test_training_labels_in_another_order_than_their_rows_are_refused_free(make_guard, labels, frame):
    guard = make_guard(X=frame)
    train = frame.set_axis([f"PRIVATE train {place}" for place in range(ROWS)], axis=0) + 3.0
    y = pd.Series(labels, index=train.index).iloc[ORDER]
    model, words = LogisticRegression(), IN_ORDER.format("y_train", "X_train", "asked")
    refused(words, guard.evaluate, model, train, y)
    refused(words, guard.compare, model, LogisticRegression(C=2.0), train, y)
    assert (guard.queries_asked, guard.charges_left) == (0, 3)


def test_only_the_same_labels_each_once_in_another_order_are_reordered():
    values = pd.Series(range(3), index=[5, 6, 7])
    assert is_reordered(values.iloc[[0, 2, 1]], values.index)
    for other in (
        *(pd.Index([5, 6, 7]), pd.Index([5.0, 6.0, 7.0]), pd.Index([7, 6, 8]), pd.Index([7, 6])),
        *(pd.Index([7, 7, 5]), pd.Index(["7", "6", "5"]), pd.RangeIndex(3)),
        pd.MultiIndex.from_tuples([(7, 1), (6, 1), (5, 1)]),
        *(pd.IntervalIndex.from_tuples([(0, 7), (1, 6), (2, 5)]), None),
    ):
        assert not is_reordered(values, other)
    numbered = pd.Series(range(3))
    assert not is_reordered(numbered, pd.Index([2, 0, 1]))  # made anew, of an array that is in order
    assert is_reordered(numbered.iloc[::-1], numbered.index)
    overlapping = pd.IntervalIndex.from_tuples([(0, 7), (1, 6), (2, 5)])
    assert not is_reordered(values.set_axis(overlapping[::-1]), overlapping)
    assert [index_of(one) for one in ([1], (1,), "text", {1: 2}, np.ones(1), pd.Series, None)] == [None] * 7
