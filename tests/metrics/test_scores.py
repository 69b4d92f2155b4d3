"""Scores are the textbook's values, counted exactly on the grid."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sklearn.metrics
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import (
    GRID,
    GRID_BITS,
    log_loss,
    mae,
    mse,
    quantile_loss,
    r2,
    resolve_metric,
    rmse,
)

ROWS = 501
ROUNDING = 1 / GRID + 1e-12


def random_problem(seed, classes):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.resize(np.arange(classes), ROWS))
    matrix = rng.dirichlet(np.ones(classes), ROWS)
    matrix = np.maximum(matrix, 0.02)
    return y, matrix / matrix.sum(axis=1, keepdims=True), rng


def normalised(bound, prepared):
    return (
        bound.score(prepared[None])[0] / GRID * (bound.metric.upper - bound.metric.lower) + bound.metric.lower
    )


def agrees(metric, y, predictions, expected):
    bound = metric.bind(y)
    width = metric.upper - metric.lower
    assert normalised(bound, bound.prepare(predictions)) == pytest.approx(expected, abs=width * ROUNDING)
    assert metric.measure(y, predictions) == pytest.approx(expected, abs=1e-12)


@for_each("classes", [2, 3, 7, 300])
@for_each(
    ("name", "reference"),
    [
        ("accuracy", sklearn.metrics.accuracy_score),
        ("zero_one_loss", sklearn.metrics.zero_one_loss),
        ("balanced_accuracy", sklearn.metrics.balanced_accuracy_score),
    ],
)
def test_label_metrics_equal_scikit_learns(name, reference, classes):
    y, _, rng = random_problem(classes, classes)
    predictions = np.where(rng.random(ROWS) < 0.6, y, rng.integers(0, classes, ROWS))
    agrees(resolve_metric(name), y, predictions, reference(y, predictions))


def test_brier_of_two_classes_equals_scikit_learns():
    y, matrix, _ = random_problem(1, 2)
    expected = sklearn.metrics.brier_score_loss(y, matrix[:, 1])
    agrees(resolve_metric("brier"), y, matrix[:, 1], expected)
    agrees(resolve_metric("brier"), y, matrix, expected)


@pytest.mark.parametrize("classes", [3, 7])
def test_brier_of_more_classes_is_half_the_squared_distance(classes):
    y, matrix, _ = random_problem(classes, classes)
    agrees(
        resolve_metric("brier"), y, matrix, 0.5 * np.square(matrix - np.eye(classes)[y]).sum(axis=1).mean()
    )


def test_brier_as_a_matrix_of_two_classes_is_the_same_number_as_half_the_squared_distance():
    y, matrix, _ = random_problem(2, 2)
    half = 0.5 * np.square(matrix - np.eye(2)[y]).sum(axis=1).mean()
    assert resolve_metric("brier").measure(y, matrix) == pytest.approx(half)


@for_each("classes", [2, 3, 7])
def test_log_loss_equals_scikit_learns_where_nothing_is_clipped(classes):
    y, matrix, _ = random_problem(classes, classes)
    agrees(resolve_metric("log_loss"), y, matrix, sklearn.metrics.log_loss(y, matrix))


@pytest.mark.parametrize("classes", [2, 4])
def test_log_loss_raises_the_true_classs_probability_to_the_clip(classes):
    y, matrix, _ = random_problem(classes, classes)
    truth = matrix[np.arange(ROWS), y]
    agrees(log_loss(clip=0.4), y, matrix, -np.log(np.maximum(truth, 0.4)).mean())


def test_an_area_equals_scikit_learns_with_ties():
    y, matrix, _ = random_problem(5, 2)
    for digits in (1, 2, 15):
        scores = np.round(matrix[:, 1], digits) - 0.5
        agrees(resolve_metric("roc_auc"), y, scores, sklearn.metrics.roc_auc_score(y, scores))


@settings(max_examples=100, deadline=None)
@given(scores=st.lists(st.integers(-2, 2), min_size=6, max_size=6), y=st.permutations([0, 0, 1, 1, 1, 1]))
def test_an_area_is_the_share_of_ordered_pairs_to_the_last_unit(scores, y):
    pairs = [
        Fraction(1 if up > down else 0) if up != down else Fraction(1, 2)
        for (up, is_up), (down, is_down) in itertools.product(zip(scores, y, strict=True), repeat=2)
        if is_up and not is_down
    ]
    bound = resolve_metric("roc_auc").bind(y)
    assert bound.score(bound.prepare(scores)[None])[0] == sum(pairs) * GRID // len(pairs)


def test_errors_of_values_equal_scikit_learns_within_the_bounds():
    rng = np.random.default_rng(3)
    y, predictions = rng.uniform(-2, 5, ROWS), rng.uniform(-2, 5, ROWS)
    agrees(mae(lower=-2, upper=5), y, predictions, sklearn.metrics.mean_absolute_error(y, predictions))
    agrees(mse(lower=-2, upper=5), y, predictions, sklearn.metrics.mean_squared_error(y, predictions))


def test_predicted_values_beyond_the_bounds_are_clipped():
    assert mae(lower=0, upper=1).measure([0, 1], [-1e300, 1e300]) == 0
    assert mse(lower=0, upper=2).measure([0.0, 2.0], [9.0, 2.0]) == 2.0


@for_each("rows", [1, 3, 7, 1_000, 4_099])
@for_each("name", ["accuracy", "zero_one_loss"])
def test_shares_are_exact_to_the_last_unit(name, rows):
    bound = resolve_metric(name).bind(np.zeros(rows, int), classes=[0, 1])
    hits = sorted({0, 1, rows // 3, rows - 1, rows})
    prepared = bound.prepare_many([[0] * hit + [1] * (rows - hit) for hit in hits])
    counts = [hit if name == "accuracy" else rows - hit for hit in hits]
    assert bound.score(prepared).tolist() == [(count << GRID_BITS) // rows for count in counts]


def test_a_balanced_accuracy_is_exact_to_the_last_unit():
    y = np.repeat([0, 1, 2], [3, 7, 11])
    bound = resolve_metric("balanced_accuracy").bind(y, classes=[0, 1, 2, 3])
    for hits in itertools.product(range(4), range(8), range(12)):
        wrong = np.concatenate([np.arange(n) >= h for n, h in zip((3, 7, 11), hits, strict=True)])
        exact = (Fraction(hits[0], 3) + Fraction(hits[1], 7) + Fraction(hits[2], 11)) / 3
        assert bound.score(bound.prepare(np.where(wrong, 3, y))[None])[0] == exact * GRID // 1


BINARY = ["recall", "specificity", "precision", "f1", "matthews_corrcoef"]
AVERAGED = ["recall_macro", "precision_macro", "precision_weighted", "f1_macro", "f1_micro", "f1_weighted"]


def every_metric():
    rng = np.random.default_rng(9)
    y, three = np.resize([0, 1, 1], 60), np.resize([0, 1, 2], 60)
    real = rng.uniform(0, 1, 60)
    matrices = rng.dirichlet(np.ones(3), (5, 60))
    return {
        "accuracy": (resolve_metric("accuracy"), y, rng.integers(0, 2, (5, 60))),
        "zero_one_loss": (resolve_metric("zero_one_loss"), three, rng.integers(0, 3, (5, 60))),
        "balanced_accuracy": (resolve_metric("balanced_accuracy"), three, rng.integers(0, 3, (5, 60))),
        "brier": (resolve_metric("brier"), y, rng.uniform(0, 1, (5, 60))),
        "brier of three": (resolve_metric("brier"), three, matrices),
        "log_loss": (resolve_metric("log_loss"), y, rng.uniform(0, 1, (5, 60))),
        "log_loss of three": (resolve_metric("log_loss"), three, matrices),
        "roc_auc": (resolve_metric("roc_auc"), y, rng.integers(0, 9, (5, 60))),
        "mae": (mae(lower=0, upper=1), real, rng.uniform(-1, 2, (5, 60))),
        "mse": (mse(lower=0, upper=1), real, rng.uniform(-1, 2, (5, 60))),
        "rmse": (rmse(lower=0, upper=1), real, rng.uniform(-1, 2, (5, 60))),
        "r2": (r2(lower=0, upper=1, variance=0.1), real, rng.uniform(-1, 2, (5, 60))),
        "quantile_loss": (quantile_loss(lower=0, upper=1), real, rng.uniform(-1, 2, (5, 60))),
        "average_precision": (resolve_metric("average_precision"), y, rng.integers(0, 9, (5, 60))),
        "roc_auc_ovr": (resolve_metric("roc_auc_ovr"), three, matrices),
        **{name: (resolve_metric(name), y, rng.integers(0, 2, (5, 60))) for name in BINARY},
        **{name: (resolve_metric(name), three, rng.integers(0, 3, (5, 60))) for name in AVERAGED},
    }


@for_each("name", every_metric())
def test_a_batch_scores_as_its_queries_do_one_by_one(name):
    metric, y, batch = every_metric()[name]
    bound = metric.bind(y)
    prepared = bound.prepare_many(batch)
    scores = bound.score(prepared)
    assert scores.dtype == np.int64
    assert scores.shape == (5,)
    for query, score, one in zip(batch, scores, prepared, strict=True):
        alone = bound.prepare(query)
        assert (alone.tobytes(), alone.dtype, alone.shape) == (one.tobytes(), one.dtype, one.shape)
        assert bound.score(alone[None]).tolist() == [score]
        exact = (metric.measure(y, query) - metric.lower) / (metric.upper - metric.lower)
        assert score / GRID == pytest.approx(exact, abs=ROUNDING)


@for_each("name", every_metric())
def test_scoring_changes_nothing_that_will_be_hashed(name):
    metric, y, batch = every_metric()[name]
    bound = metric.bind(y)
    prepared = bound.prepare_many(batch)
    before = prepared.tobytes()
    bound.score(prepared)
    assert prepared.tobytes() == before


@for_each("name", every_metric())
def test_later_changes_of_labels_and_predictions_change_nothing(name):
    metric, y, batch = every_metric()[name]
    y, batch = y.copy(), batch.copy()
    bound = metric.bind(y)
    prepared = bound.prepare_many(batch)
    one = bound.prepare(batch[0])
    before = bound.score(prepared).tolist()
    y[:], batch[:] = y[0], batch[0, 0]
    assert bound.score(prepared).tolist() == before
    assert bound.score(one[None])[0] == before[0]


def test_one_prepared_query_needs_a_leading_axis():
    bound = resolve_metric("accuracy").bind([0, 1, 1])
    prepared = bound.prepare([0, 1, 0])
    assert bound.score(prepared[None]).shape == (1,)
    with pytest.raises(InputError, match=r"\(queries, 3, ...\); got \(3,\)"):
        bound.score(prepared)


def test_no_queries_have_no_scores():
    for metric, y, batch in every_metric().values():
        bound = metric.bind(y)
        assert bound.score(bound.prepare_many(batch)[:0]).tolist() == []
