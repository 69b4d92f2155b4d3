"""Several targets or labels for each row: a row is one draw, and its term is a mean over its outputs."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.metrics
from cases import for_each
from queries.one_row import allowed

from reusable_holdout.errors import InputError
from reusable_holdout.queries import (
    GRID,
    Metric,
    hamming_loss,
    mae,
    mse,
    negated,
    quantile_loss,
    r2,
    resolve_metric,
    rmse,
    score_of_sets,
)

ROWS, OUTPUTS = 200, 3
LOW, HIGH = -1.0, 3.0
RNG = np.random.default_rng(0)
REAL = RNG.uniform(LOW, HIGH, (ROWS, OUTPUTS))
VALUES = np.clip(REAL + RNG.normal(0, 0.7, REAL.shape), LOW, HIGH)
MARKS = (RNG.random((ROWS, OUTPUTS)) < 0.4).astype(int)
GUESSES = np.where(RNG.random(MARKS.shape) < 0.2, 1 - MARKS, MARKS)
GROUPS = np.arange(ROWS) // 4


def own_loss(y, p):
    return np.abs(y - p).max(axis=1) / (HIGH - LOW)


METRICS = {  # and scikit-learn's
    "mae": (mae(lower=LOW, upper=HIGH), sklearn.metrics.mean_absolute_error),
    "mse": (mse(lower=LOW, upper=HIGH), sklearn.metrics.mean_squared_error),
    "mse negated": (
        negated(mse(lower=LOW, upper=HIGH)),
        lambda y, p: -sklearn.metrics.mean_squared_error(y, p),
    ),
    "quantile_loss": (
        quantile_loss(lower=LOW, upper=HIGH, quantile=0.8),
        lambda y, p: sklearn.metrics.mean_pinball_loss(y, p, alpha=0.8),
    ),
    "accuracy": (resolve_metric("accuracy"), sklearn.metrics.accuracy_score),
    "zero_one_loss": (resolve_metric("zero_one_loss"), sklearn.metrics.zero_one_loss),
    "hamming_loss": (hamming_loss(), sklearn.metrics.hamming_loss),
    "own": (
        Metric(name="own", lower=0, upper=1, greater_is_better=False, loss=own_loss),
        lambda y, p: own_loss(y, p).mean(),
    ),
}


def problem(metric):
    return (REAL, VALUES) if metric.response == "values" else (MARKS, GUESSES)


@for_each("name", METRICS)
def test_the_value_is_scikit_learns(name):
    metric, reference = METRICS[name]
    y, predictions = problem(metric)
    expected = reference(y, predictions)
    assert metric.measure(y, predictions) == pytest.approx(expected, abs=1e-12)
    bound = metric.bind(y)
    share = bound.score(bound.prepare(predictions)[None])[0] / GRID
    assert metric.lower + share * (metric.upper - metric.lower) == pytest.approx(expected, abs=1e-8)


@for_each("name", METRICS)
def test_a_row_is_one_draw_with_all_its_outputs(name):
    metric, _ = METRICS[name]
    y, predictions = problem(metric)
    bound = metric.bind(y)
    assert (bound.rows, bound.effective_rows, bound.sensitivity) == (ROWS, ROWS, Fraction(1, ROWS))
    assert bound.sum_of_squares == pytest.approx(1 / ROWS)
    assert bound.by_rows
    assert bound.family == ("binomial" if name in {"accuracy", "zero_one_loss"} else "bounded")
    ends = LOW + HIGH - y if metric.response == "values" else 1 - y
    before = bound.score(bound.prepare(predictions)[None])[0]
    for row in range(10):
        changed = predictions.copy()
        changed[row] = ends[row]
        assert abs(bound.score(bound.prepare(changed)[None])[0] - before) <= allowed(bound)


@for_each("name", METRICS)
def test_slices_weights_and_groups_are_of_rows(name):
    metric, _ = METRICS[name]
    y, predictions = problem(metric)
    rows = np.array([metric.measure(y[[row]], predictions[[row]]) for row in range(ROWS)])
    for settings, expected in (
        ({"sample_weight": GROUPS % 3 == 0}, rows[GROUPS % 3 == 0].mean()),
        ({"sample_weight": 1.0 + GROUPS % 3}, np.average(rows, weights=1.0 + GROUPS % 3)),
        ({"groups": GROUPS}, rows.mean()),
    ):
        bound = metric.bind(y, **settings)
        share = bound.score(bound.prepare(predictions)[None])[0] / GRID
        assert metric.lower + share * (metric.upper - metric.lower) == pytest.approx(expected, abs=1e-8)


def test_the_same_numbers_are_one_question_in_any_container():
    bound = hamming_loss().bind(pd.DataFrame(MARKS))
    asked = {
        bound.prepare(given).tobytes()
        for given in (
            GUESSES,
            GUESSES.tolist(),
            pd.DataFrame(GUESSES),
            scipy.sparse.csr_matrix(GUESSES),
            GUESSES > 0,
        )
    }
    assert len(asked) == 1
    batch = bound.prepare_many(np.stack([GUESSES, MARKS]))
    assert batch.shape == (2, ROWS, OUTPUTS)
    assert bound.score(batch)[1] == 0


def test_labels_that_are_never_set_may_be():
    assert hamming_loss().measure([[0, 0], [0, 0]], [[0, 1], [0, 0]]) == 0.25
    assert resolve_metric("accuracy").bind(MARKS).classes is None


def test_a_column_in_a_matrix_of_its_own_is_one_output():
    assert mae(lower=0, upper=1).measure([[0.5], [1.0]], [[0.5], [0.5]]) == 0.25
    assert hamming_loss().measure(["a", "b", "c"], ["a", "b", "b"]) == pytest.approx(1 / 3)


@for_each("score", ["f1", "jaccard", "precision", "recall"])
def test_rows_without_labels_score_nothing(score):
    metric = score_of_sets(score)
    assert metric.measure([[0, 0], [1, 0]], [[0, 0], [1, 0]]) == 0.5
    assert metric.measure([[0, 0], [1, 0]], [[0, 1], [0, 0]]) == 0


@for_each(
    "metric",
    [
        rmse(lower=LOW, upper=HIGH),
        r2(lower=LOW, upper=HIGH, variance=1.0),
        negated(rmse(lower=LOW, upper=HIGH)),
    ],
)
def test_what_is_no_mean_over_outputs_is_refused(metric):
    with pytest.raises(InputError, match=f"for {metric.name} y must be one column; got 3; use mae, mse"):
        metric.bind(REAL)


@for_each(
    "name",
    ["f1", "f1_micro", "recall_weighted", "balanced_accuracy", "log_loss", "roc_auc", "neg_brier_score"],
)
def test_what_is_about_the_classes_of_one_column_is_refused(name):
    with pytest.raises(
        InputError, match=f'for {name} y must be one column; got 3; use "accuracy", "hamming_loss"'
    ):
        resolve_metric(name).bind(MARKS)


REFUSED = {
    "sets of one label": (lambda: score_of_sets("f1").bind([0, 1]), 'a column for each.*got one column; use "f1"'),
    "an unknown score": (lambda: score_of_sets("f2"), "score must be one of"),
    "several classes": (lambda: hamming_loss().bind(MARKS + 1), r"zeros and ones.*\(200, 3\) of other values"),
    "text": (lambda: hamming_loss().bind(MARKS.astype(str).tolist()), "zeros and ones"),
    "classes": (lambda: hamming_loss().bind(MARKS, classes=[0, 1]), "got classes=; leave it out"),
    "three axes": (lambda: hamming_loss().bind(MARKS[None]), r"\(rows,\) or \(rows, outputs\); got \(1, 200, 3\)"),
    "no columns": (lambda: hamming_loss().bind(MARKS[:, :0]), r"got \(200, 0\)"),
    "targets beyond the bounds": (lambda: mae(lower=0, upper=1).measure(REAL, REAL), r"must lie in \[0, 1\]"),
    "one column predicted": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES[:, 0]), r"\(200, 3\); got \(200,\)"),
    "a transposed matrix": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES.T), "transpose it"),
    "a stranger": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES + 1), "among the classes 0, 1; got 2"),
    "several values for one": (lambda: mae(lower=LOW, upper=HIGH).bind(REAL[:, 0]).prepare(VALUES), "one number"),
}  # fmt: skip


@for_each("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    act, words = REFUSED[case]
    with pytest.raises(InputError, match=words) as caught:
        act()
    assert str(caught.value).count(";") >= 1
