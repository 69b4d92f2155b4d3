"""Weights: slices are holdouts of their own, weighted means are scikit-learn's, and what a row can change."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import sklearn.metrics
from cases import for_each
from long_tests import QUERIES, VALIDITY
from metrics.one_row import allowed, climbed_change, largest_changes

from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import (
    GRID,
    Metric,
    fbeta,
    log_loss,
    mae,
    mse,
    negated,
    precision,
    quantile_loss,
    r2,
    resolve_metric,
    rmse,
)

ROWS = 90


def own_loss(y, p):
    return np.clip(np.abs(y - p), 0, 1)


def spread_of_half(y, p):
    return float(np.clip(np.mean(np.abs(y - p)) / 2, 0, 1))


def one_over_the_rows(y):
    return np.full(len(y), 1 / len(y))


def problems():
    """Metric, labels and predictions of three queries, by name."""
    rng = np.random.default_rng(5)
    y, three = rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)
    real = rng.uniform(0, 1, ROWS)
    guesses, threes = rng.integers(0, 2, (3, ROWS)), rng.integers(0, 3, (3, ROWS))
    p, matrices, values = rng.random((3, ROWS)), rng.dirichlet(np.ones(3), (3, ROWS)), rng.random((3, ROWS))
    return {
        "accuracy": (resolve_metric("accuracy"), y, guesses),
        "zero_one_loss": (resolve_metric("zero_one_loss"), three, threes),
        "brier": (resolve_metric("brier"), y, p),
        "brier of three": (resolve_metric("brier"), three, matrices),
        "log_loss": (log_loss(clip=0.001), three, matrices),
        "f1_micro": (resolve_metric("f1_micro"), three, threes),
        "recall_weighted": (resolve_metric("recall_weighted"), three, threes),
        "mae": (mae(lower=0, upper=1), real, values),
        "mse": (mse(lower=0, upper=1), real, values),
        "rmse": (rmse(lower=0, upper=1), real, values),
        "rmse above a floor": (rmse(lower=0, upper=1, floor=0.2), real, values),
        "neg_log_loss": (resolve_metric("neg_log_loss"), three, matrices),
        "rmse negated": (negated(rmse(lower=0, upper=1, floor=0.2)), real, values),
        "r2": (r2(lower=0, upper=1, variance=0.1), real, values),
        "quantile_loss": (quantile_loss(lower=0, upper=1, quantile=0.8), real, values),
        "own": (Metric(name="own", lower=0, upper=1, greater_is_better=False, loss=own_loss), real, values),
        # no means over all rows: slices only
        "balanced_accuracy": (resolve_metric("balanced_accuracy"), three, threes),
        "recall": (resolve_metric("recall"), y, guesses),
        "specificity": (resolve_metric("specificity"), y, guesses),
        "precision": (resolve_metric("precision"), y, guesses),
        "f1": (resolve_metric("f1"), y, guesses),
        "fbeta": (fbeta(beta=2), y, guesses),
        "f1_macro": (resolve_metric("f1_macro"), three, threes),
        "precision_weighted": (precision(average="weighted"), three, threes),
        "matthews_corrcoef": (resolve_metric("matthews_corrcoef"), y, guesses),
        "roc_auc": (resolve_metric("roc_auc"), y, p),
        "roc_auc_ovr": (resolve_metric("roc_auc_ovr"), three, matrices),
        "average_precision": (resolve_metric("average_precision"), y, p),
        "declared": (
            Metric(
                name="declared",
                lower=0,
                upper=1,
                greater_is_better=True,
                statistic=spread_of_half,
                differences=one_over_the_rows,
            ),
            real,
            values,
        ),
    }


PROBLEMS = problems()
MEANS = list(PROBLEMS)[:16]
OTHERS = list(PROBLEMS)[16:]
GROUP = np.random.default_rng(8).random(ROWS) < 0.4


# ---- slices


@for_each("name", PROBLEMS)
def test_a_slice_is_a_holdout_of_its_rows(name):
    metric, y, batch = PROBLEMS[name]
    bound, alone = metric.bind(y, sample_weight=GROUP), metric.bind(y[GROUP])
    assert bound.rows == ROWS
    assert bound.effective_rows == alone.effective_rows <= GROUP.sum()
    assert (bound.family, bound.sensitivity, bound.sum_of_squares) == (
        alone.family,
        alone.sensitivity,
        alone.sum_of_squares,
    )
    scores = bound.score(bound.prepare_many(batch))
    assert scores.tolist() == alone.score(alone.prepare_many(batch[:, GROUP])).tolist()
    plain = metric.measure(y, batch[0], sample_weight=GROUP)
    assert plain == metric.measure(y[GROUP], batch[0][GROUP])


def test_a_slice_of_a_binomial_metric_is_binomial_with_its_rows():
    _, y, _ = PROBLEMS["accuracy"]
    bound = resolve_metric("accuracy").bind(y, sample_weight=GROUP)
    assert (bound.family, bound.effective_rows) == ("binomial", GROUP.sum())
    assert bound.sensitivity == Fraction(1, int(GROUP.sum()))


def test_a_slice_of_a_recall_is_binomial_with_the_slices_rows_of_the_class():
    _, y, _ = PROBLEMS["recall"]
    bound = resolve_metric("recall").bind(y, sample_weight=GROUP)
    assert (bound.family, bound.effective_rows) == ("binomial", (y[GROUP] == 1).sum())


@for_each("name", PROBLEMS)
@for_each("weight", [1, 2.5, True])
def test_equal_weights_are_none(name, weight):
    metric, y, batch = PROBLEMS[name]
    bound, plain = metric.bind(y, sample_weight=np.full(ROWS, weight)), metric.bind(y)
    assert bound.weights_digest is None
    assert bound.describe() == metric.describe()
    assert bound.score(bound.prepare_many(batch)).tolist() == plain.score(plain.prepare_many(batch)).tolist()
    assert (bound.family, bound.effective_rows) == (plain.family, plain.effective_rows)


@for_each("name", PROBLEMS)
def test_the_rows_outside_a_slice_do_not_matter(name):
    metric, y, batch = PROBLEMS[name]
    bound = metric.bind(y, sample_weight=GROUP)
    changed = batch.copy()
    changed[:, ~GROUP] = batch[:, ~GROUP][::-1]
    before, after = (bound.score(bound.prepare_many(queries)) for queries in (batch, changed))
    assert before.tolist() == after.tolist()


# ---- weighted means

WEIGHTS = {
    "whole numbers": np.random.default_rng(1).integers(0, 5, ROWS),
    "real numbers": np.random.default_rng(2).uniform(0.1, 1, ROWS),
    "skewed": np.random.default_rng(3).lognormal(0, 2, ROWS),
    "one row of all": np.where(np.arange(ROWS) == 7, 1e6, 1.0),
}


@for_each("weights", WEIGHTS)
@for_each("name", MEANS)
def test_a_weighted_mean_is_the_mean_of_rows_measured_alone(name, weights):
    metric, y, batch = PROBLEMS[name]
    w = WEIGHTS[weights]
    settings = {} if metric.response == "values" else {"classes": np.unique(y)}
    rows = np.array([metric.measure(y[[r]], batch[0][[r]], **settings) for r in range(ROWS)])
    expected = np.average(rows, weights=w)
    if name.startswith("rmse"):
        exact = np.square(y - batch[0])
        expected = max(math.sqrt(np.average(exact, weights=w)), metric.parameters["floor"])
        expected *= -1 if metric.greater_is_better else 1
    bound = metric.bind(y, sample_weight=w)
    units = bound.score(bound.prepare_many(batch))[0]
    span = metric.upper - metric.lower
    assert metric.lower + units / GRID * span == pytest.approx(expected, abs=1e-8 * span)
    assert metric.measure(y, batch[0], sample_weight=w) == pytest.approx(expected, abs=1e-8 * span)


@for_each("weights", WEIGHTS)
def test_weighted_means_equal_scikit_learns(weights):
    w = WEIGHTS[weights]
    pairs = {
        "accuracy": lambda y, p: sklearn.metrics.accuracy_score(y, p, sample_weight=w),
        "zero_one_loss": lambda y, p: sklearn.metrics.zero_one_loss(y, p, sample_weight=w),
        "brier": lambda y, p: sklearn.metrics.brier_score_loss(y, p, sample_weight=w),
        "mae": lambda y, p: sklearn.metrics.mean_absolute_error(y, p, sample_weight=w),
        "mse": lambda y, p: sklearn.metrics.mean_squared_error(y, p, sample_weight=w),
        "rmse": lambda y, p: sklearn.metrics.root_mean_squared_error(y, p, sample_weight=w),
        "quantile_loss": lambda y, p: sklearn.metrics.mean_pinball_loss(y, p, sample_weight=w, alpha=0.8),
        "f1_micro": lambda y, p: sklearn.metrics.f1_score(y, p, sample_weight=w, average="micro"),
    }
    for name, reference in pairs.items():
        metric, y, batch = PROBLEMS[name]
        assert metric.measure(y, batch[1], sample_weight=w) == pytest.approx(reference(y, batch[1]), abs=1e-8)


@for_each("name", OTHERS)
def test_what_is_no_mean_over_all_rows_takes_slices_only(name):
    metric, y, _ = PROBLEMS[name]
    with pytest.raises(
        InputError, match=rf"of metric '{metric.name}' must be 0 or one other number.*a slice"
    ):
        metric.bind(y, sample_weight=WEIGHTS["real numbers"])


def test_a_weighted_score_is_exact_to_the_last_unit():
    w = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    bound = resolve_metric("accuracy").bind(np.zeros(8, int), classes=[0, 1], sample_weight=w)
    for hits in itertools.product([0, 1], repeat=8):
        exact = Fraction(int(w @ np.array(hits)), int(w.sum()))
        assert bound.score(bound.prepare(1 - np.array(hits))[None])[0] == exact * GRID // 1


def test_large_weights_of_many_rows_do_not_overflow():
    rows = 300_000
    w = np.full(rows, 1 << 30)
    w[0] = 1
    bound = mae(lower=0, upper=1).bind(np.zeros(rows), sample_weight=w)
    scores = bound.score(bound.prepare_many([np.ones(rows), np.full(rows, 0.5), np.zeros(rows)]))
    assert scores.tolist() == [GRID, GRID // 2, 0]


# ---- what one row can change


@for_each("weights", [(1, 2), (1, 2, 3, 4), (0, 1, 5, 1), (0.1, 0.7, 0.25, 1e-9), (1, 100, 100)])
@for_each("name", ["accuracy", "mae", "rmse", "rmse above a floor", "rmse negated", "r2", "quantile_loss"])
def test_no_row_of_any_small_holdout_changes_a_weighted_score_by_more_than_declared(name, weights):
    metric, _, _ = PROBLEMS[name]
    y = np.zeros(len(weights), int if name == "accuracy" else float)
    classes = [0, 1] if name == "accuracy" else None
    bound = metric.bind(y, sample_weight=weights, classes=classes)
    changes = largest_changes(bound, np.array([0, 1]) if name == "accuracy" else np.linspace(0, 1, 6))
    assert changes.max() <= allowed(bound)
    if name not in {"rmse above a floor", "rmse negated", "quantile_loss"}:
        assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, rel=1e-6, abs=3)
    if not name.startswith("rmse"):
        shares = np.array(weights) / np.sum(weights)
        assert (changes <= np.ceil(shares * GRID) + 8).all()
        assert bound.sum_of_squares == pytest.approx(np.square(shares).sum(), rel=1e-6)


@pytest.mark.long(*QUERIES)
@for_each("name", ["brier", "mse", "rmse", "r2", "zero_one_loss"])
def test_climbing_finds_no_larger_change_of_a_weighted_score(name):
    metric, y, batch = PROBLEMS[name]
    bound = metric.bind(y, sample_weight=WEIGHTS["skewed"])
    whole = name == "zero_one_loss"

    def draw(rng, rows):
        return rng.integers(0, 3, rows) if whole else rng.choice([0.0, 1.0, rng.random()], rows)

    found = climbed_change(bound, draw, np.random.default_rng(4))
    assert 0 < found <= allowed(bound)
    assert batch.shape[1] == bound.rows


@pytest.mark.long(*QUERIES)
@for_each("name", OTHERS)
def test_climbing_finds_no_larger_change_of_a_slice(name):
    metric, y, batch = PROBLEMS[name]
    bound = metric.bind(y, sample_weight=GROUP)
    choices = np.concatenate([batch[0], batch[1]])
    found = climbed_change(
        bound,
        lambda rng, rows: choices[rng.integers(0, len(choices), rows)],
        np.random.default_rng(6),
        steps=60,
    )
    assert 0 < found <= allowed(bound)


# ---- confidence


@for_each(
    ("weights", "effective_rows"),
    [
        ([1, 1, 1, 2], 2),
        (np.r_[np.ones(100), 2 * np.ones(100)], 150),
        (np.r_[np.ones(1_000), 100], 11),
        (np.r_[np.ones(1_000), 100, 0, 0], 11),
    ],
)
def test_a_weighted_mean_has_as_many_rows_as_its_largest_weight_leaves(weights, effective_rows):
    bound = resolve_metric("accuracy").bind(
        np.zeros(len(weights), int), classes=[0, 1], sample_weight=weights
    )
    assert (bound.family, bound.effective_rows) == ("bounded", effective_rows)
    assert bound.sum_of_squares == pytest.approx(np.sum(np.square(weights)) / np.sum(weights) ** 2)
    root = rmse(lower=0, upper=1).bind(np.zeros(len(weights)), sample_weight=weights)
    assert root.family == "bounded-difference"
    assert root.sum_of_squares == pytest.approx(2 * max(weights) / sum(weights))


def values_of_subsets(bound, rows):
    """Score for each set of rows predicted 1."""
    every = np.array(list(itertools.product([0, 1], repeat=rows)))
    return every, bound.score(bound.prepare_many(every)) / GRID


@pytest.mark.long(*VALIDITY)
@for_each("weights", [range(1, 13), [1, 9] * 6, [1] * 11 + [4], [1] * 11 + [40], [0, 3, 2, 2] * 3])
@for_each("name", ["accuracy", "mse", "rmse"])
def test_confidence_bounds_of_a_weighted_mean_miss_no_more_often_than_their_level(name, weights):
    """Exact, over all sets of rows that are predicted wrong; their chances may depend on the weights."""
    rows, w = 12, np.array(list(weights), float)
    metric = PROBLEMS[name][0]
    classes = [0, 1] if name == "accuracy" else None
    y = np.zeros(rows, int if classes else float)
    bound = metric.bind(y, sample_weight=w, classes=classes)
    every, values = values_of_subsets(bound, rows)
    limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    for chances in (
        np.full(rows, 0.02),
        np.full(rows, 0.5),
        w / w.max() * 0.9,
        1 - w / w.max(),
        np.full(rows, 0.95),
    ):
        law = np.prod(np.where(every, chances, 1 - chances), axis=1)
        truth = np.average(1 - chances if name == "accuracy" else chances, weights=w)
        truth = math.sqrt(truth) if name == "rmse" else truth
        for level in (0.5, 0.05, 1e-4):
            assert law[limits.lower(values, log_level=math.log(level)) > truth + 1e-8].sum() <= level
            assert law[limits.upper(values, log_level=math.log(level)) < truth - 1e-8].sum() <= level


def test_confidence_bounds_of_a_slice_miss_its_population_no_more_often_than_their_level():
    """Sampled: false alarm 1e-9. The groups differ, so a bound about all rows would miss nearly always."""
    runs, rng, level = 20_000, np.random.default_rng(9), 0.05
    group = np.arange(100) % 3 == 0
    bound = resolve_metric("accuracy").bind(np.zeros(100, int), classes=[0, 1], sample_weight=group)
    wrong = rng.random((runs, 100)) < np.where(group, 0.3, 0.05)
    scores = bound.score(bound.prepare_many(wrong.astype(int))) / GRID
    limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    misses = scipy.stats.binom.isf(1e-9, runs, level)
    assert (limits.lower(scores, log_level=math.log(level)) > 0.7).sum() <= misses
    assert (limits.upper(scores, log_level=math.log(level)) < 0.7).sum() <= misses
    assert (limits.upper(scores, log_level=math.log(level)) < 0.867).mean() > 0.5


# ---- what tells weights apart


def test_weights_are_told_apart_by_their_digest_up_to_a_factor():
    metric, y, _ = PROBLEMS["accuracy"]
    w = WEIGHTS["whole numbers"]
    first = metric.bind(y, sample_weight=w)
    for same in (w * 3, w / 4, w.tolist(), pd.Series(w), w.astype(np.float32), w[:, None]):
        assert metric.bind(y, sample_weight=same).weights_digest == first.weights_digest
    digests = {
        metric.bind(y, sample_weight=other).weights_digest for other in (*WEIGHTS.values(), GROUP, ~GROUP)
    }
    assert len(digests) == 6
    assert (
        resolve_metric("accuracy").bind([0, 1, 1, 0], sample_weight=[1, 1, 1, 0]).weights_digest[:8]
        == "1218a115"
    )
    assert first.describe() == metric.describe() | {"weights": first.weights_digest}
    assert metric.bind(y[::-1].copy(), sample_weight=w).weights_digest == first.weights_digest


BAD = {
    "too few": np.ones(ROWS - 1),
    "two columns": np.ones((ROWS, 2)),
    "a number": 1.0,
    "NaN": np.where(np.arange(ROWS) == 3, np.nan, 1),
    "infinity": np.where(np.arange(ROWS) == 3, np.inf, 1),
    "negative": np.where(np.arange(ROWS) == 3, -1, 1),
    "all zero": np.zeros(ROWS),
    "text": np.full(ROWS, "1"),
    "complex": np.ones(ROWS, complex),
    "missing": [None] * ROWS,
    "empty": [],
}


@for_each("case", BAD)
@for_each("name", ["accuracy", "f1", "mae", "own"])
def test_weights_that_are_none_are_refused_in_words_that_depend_on_no_label(name, case):
    metric, y, _ = PROBLEMS[name]
    messages = set()
    for labels in (y, y[::-1].copy()):
        with pytest.raises(InputError) as caught:
            metric.bind(labels, sample_weight=BAD[case])
        messages.add(str(caught.value))
    assert len(messages) == 1
    (message,) = messages
    assert "sample_weight" in message
    assert message.count(";") >= 2


def test_a_slice_of_one_class_is_refused_where_two_are_needed():
    _, y, _ = PROBLEMS["f1"]
    with pytest.raises(InputError, match="at least two classes"):
        resolve_metric("f1").bind(y, sample_weight=y == 1)
