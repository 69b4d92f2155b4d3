"""Several targets or labels for each row: a row is one draw, and its term is a mean over its outputs."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.metrics
from cases import for_each, refuses
from metrics.one_row import allowed
from metrics.problems import BOUNDS, HIGH, LOW, METRICS, scored

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, hamming_loss, mae, resolve_metric

ROWS, OUTPUTS = 200, 3
RNG = np.random.default_rng(0)
REAL = RNG.uniform(LOW, HIGH, (ROWS, OUTPUTS))
VALUES = np.clip(REAL + RNG.normal(0, 0.7, REAL.shape), LOW, HIGH)
MARKS = (RNG.random((ROWS, OUTPUTS)) < 0.4).astype(int)
GUESSES = np.where(RNG.random(MARKS.shape) < 0.2, 1 - MARKS, MARKS)
GROUPS = np.arange(ROWS) // 4


def own_loss(y, p):
    return np.abs(y - p).max(axis=1) / (HIGH - LOW)


FUNCTIONS = {  # of scikit-learn
    "accuracy": sklearn.metrics.accuracy_score,
    "hamming_loss": sklearn.metrics.hamming_loss,
    "mae": sklearn.metrics.mean_absolute_error,
    "mse": sklearn.metrics.mean_squared_error,
    "neg_mean_squared_error": lambda y, p: -sklearn.metrics.mean_squared_error(y, p),
    "own": lambda y, p: own_loss(y, p).mean(),
    "quantile_loss 0.9": lambda y, p: sklearn.metrics.mean_pinball_loss(y, p, alpha=0.9),
    "zero_one_loss": sklearn.metrics.zero_one_loss,
}
OWN = Metric(name="own", lower=0, upper=1, greater_is_better=False, loss=own_loss)


@for_each("name", FUNCTIONS)
def test_a_row_is_one_draw_and_its_term_a_mean_over_its_outputs(name):
    metric = METRICS[name] if name != "own" else OWN
    y, predictions = (REAL, VALUES) if metric.response == "values" else (MARKS, GUESSES)
    bound, expected = metric.bind(y), FUNCTIONS[name](y, predictions)
    assert metric.measure(y, predictions) == pytest.approx(expected, abs=1e-12)
    assert scored(bound, predictions) == pytest.approx(expected, abs=1e-8)
    assert (bound.rows, bound.effective_rows, bound.sensitivity) == (ROWS, ROWS, Fraction(1, ROWS))
    assert (bound.sum_of_squares, bound.by_rows) == (pytest.approx(1 / ROWS), True)
    assert bound.family == ("binomial" if name in {"accuracy", "zero_one_loss"} else "bounded")
    changed = np.repeat(predictions[None], 11, axis=0)
    changed[np.arange(10), np.arange(10)] = (LOW + HIGH - y if metric.response == "values" else 1 - y)[:10]
    scores = bound.score(bound.prepare_many(changed))
    assert np.abs(scores[:10] - scores[10]).max() <= allowed(bound)
    rows = np.array([metric.measure(y[[row]], predictions[[row]]) for row in range(ROWS)])
    for settings, mean in (
        ({"sample_weight": GROUPS % 3 == 0}, rows[GROUPS % 3 == 0].mean()),
        ({"sample_weight": 1.0 + GROUPS % 3}, np.average(rows, weights=1.0 + GROUPS % 3)),
        ({"groups": GROUPS}, rows.mean()),
    ):
        assert scored(metric.bind(y, **settings), predictions) == pytest.approx(mean, abs=1e-8)


def test_the_same_numbers_are_one_question_in_any_container():
    bound = hamming_loss().bind(pd.DataFrame(MARKS))
    containers = (list, pd.DataFrame, scipy.sparse.csr_matrix, np.asfortranarray, lambda one: one > 0)
    asked = {bound.prepare(container(GUESSES)).tobytes() for container in containers}
    assert asked == {bound.prepare(GUESSES).tobytes()}
    batch = bound.prepare_many(np.stack([GUESSES, MARKS]))
    assert batch.shape == (2, ROWS, OUTPUTS)
    assert bound.score(batch)[1] == 0


def test_labels_that_never_occur_may_be_predicted_and_one_column_is_one_output():
    assert hamming_loss().measure([[0, 0], [0, 0]], [[0, 1], [0, 0]]) == 0.25
    assert resolve_metric("accuracy").bind(MARKS).classes is None
    assert mae(lower=0, upper=1).measure([[0.5], [1.0]], [[0.5], [0.5]]) == 0.25
    assert hamming_loss().measure(["a", "b", "c"], ["a", "b", "b"]) == pytest.approx(1 / 3)


REFUSED = {
    "several classes": (lambda: hamming_loss().bind(MARKS + 1), r"zeros and ones.*\(200, 3\) of other values"),
    "text": (lambda: hamming_loss().bind(MARKS.astype(str).tolist()), "zeros and ones"),
    "classes": (lambda: hamming_loss().bind(MARKS, classes=[0, 1]), "got classes=; leave it out"),
    "three axes": (lambda: hamming_loss().bind(MARKS[None]), r"\(rows,\) or \(rows, outputs\); got \(1, 200, 3\)"),
    "no columns": (lambda: hamming_loss().bind(MARKS[:, :0]), r"got \(200, 0\)"),
    "targets beyond the bounds": (lambda: mae(lower=0, upper=1).measure(REAL, REAL), r"must lie in \[0, 1\]"),
    "one column predicted": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES[:, 0]), r"\(200, 3\); got \(200,\)"),
    "a transposed matrix": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES.T), "transpose it"),
    "a stranger": (lambda: hamming_loss().bind(MARKS).prepare(GUESSES + 1), "among the classes 0, 1; got 2"),
    "several values for one": (lambda: mae(**BOUNDS).bind(REAL[:, 0]).prepare(VALUES), "one number"),
    **{
        f"no mean over outputs: {name}": (
            lambda name=name: METRICS[name].bind(REAL),
            "y must be one column; got 3; use mae, mse",
        )
        for name in ("rmse", "r2", "neg_root_mean_squared_error")
    },
    **{
        f"about the classes of one column: {name}": (
            lambda name=name: METRICS[name].bind(MARKS),
            f'for {name} y must be one column; got 3; use "accuracy" or "hamming_loss"',
        )
        for name in ("f1", "f1_micro", "recall_weighted", "balanced_accuracy", "log_loss", "neg_brier_score")
    },
}  # fmt: skip


@for_each("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    act, words = REFUSED[case]
    caught = refuses(InputError, words, act)
    assert str(caught).count(";") >= 1
