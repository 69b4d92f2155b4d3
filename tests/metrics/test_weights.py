"""Slices are holdouts of their own, weighted means are those of the rows, and weights that are none are refused."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from metrics.one_row import allowed, largest_changes
from metrics.problems import HIGH, LOW, MEANS, METRICS, ROOTS, cases, problem, scored

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import GRID, accuracy, mae, resolve_metric, rmse

ROWS = 60
GROUP = np.random.default_rng(8).random(ROWS) < 0.4
WEIGHTS = {
    "whole numbers": np.random.default_rng(1).integers(0, 5, ROWS),
    "real numbers": np.random.default_rng(2).uniform(0.1, 1, ROWS),
    "skewed": np.random.default_rng(3).lognormal(0, 2, ROWS),
    "one row of all": np.where(np.arange(ROWS) == 7, 1e6, 1.0),
}
SLICED = cases()
AVERAGED = [(name, classes) for name, classes in SLICED if name in MEANS | ROOTS]


def chosen(y, rows):
    return [y[row] for row in np.flatnonzero(rows)] if isinstance(y, list) else y[rows]


def known(metric, y):
    """Classes, where some rows alone would not have them all."""
    return {} if metric.response in {"values", "judged"} or y.ndim > 1 else {"classes": np.unique(y)}


# ---- slices


@for_each(("name", "classes"), SLICED)
def test_a_slice_is_a_holdout_of_its_rows_and_the_others_do_not_matter(name, classes):
    metric = METRICS[name]
    y, batch = problem(metric, classes)
    bound, alone = metric.bind(y, sample_weight=GROUP), metric.bind(chosen(y, GROUP), **known(metric, y))
    assert (bound.rows, bound.counted_rows) == (ROWS, GROUP.sum())
    assert (bound.family, bound.numbers) == (alone.family, alone.numbers)
    expected = alone.score(alone.prepare_many(batch[:, GROUP])).tolist()
    assert bound.score(bound.prepare_many(batch)).tolist() == expected
    changed = batch.copy()
    changed[:, ~GROUP] = batch[:, ~GROUP][::-1]
    assert bound.score(bound.prepare_many(changed)).tolist() == expected
    plain = metric.measure(y, batch[0], sample_weight=GROUP)
    assert plain == metric.measure(chosen(y, GROUP), batch[0][GROUP], **known(metric, y))


@for_each(("name", "classes"), SLICED)
@for_each("weight", [1, 2.5, True])
def test_equal_weights_are_none(name, classes, weight):
    metric = METRICS[name]
    y, batch = problem(metric, classes)
    bound, plain = metric.bind(y, sample_weight=np.full(ROWS, weight)), metric.bind(y)
    assert bound.weights_digest is None
    assert (bound.describe(), bound.family, bound.numbers) == (metric.describe(), plain.family, plain.numbers)
    assert bound.score(bound.prepare_many(batch)).tolist() == plain.score(plain.prepare_many(batch)).tolist()


def test_a_slice_of_one_class_is_refused_where_two_are_needed():
    y, _ = problem(METRICS["f1"])
    refuses(InputError, "at least two classes", resolve_metric("f1").bind, y, sample_weight=y == 1)


# ---- weighted means


@for_each("weights", WEIGHTS)
@for_each(("name", "classes"), AVERAGED)
def test_a_weighted_mean_is_the_mean_of_rows_measured_alone(name, classes, weights):
    metric, w = METRICS[name], WEIGHTS[weights]
    y, (predictions, *_) = problem(metric, classes)
    rows = [
        metric.measure(y[row : row + 1], predictions[row : row + 1], **known(metric, y))
        for row in range(ROWS)
    ]
    expected = np.average(rows, weights=w)
    if name in ROOTS:
        exact = np.sqrt(np.average(np.square(y - predictions), weights=w))
        expected = exact * (-1 if metric.greater_is_better else 1)
    close = 1e-8 * (metric.upper - metric.lower)
    assert scored(metric.bind(y, sample_weight=w), predictions) == pytest.approx(expected, abs=close)
    assert metric.measure(y, predictions, sample_weight=w) == pytest.approx(expected, abs=close)


@for_each(("name", "classes"), [case for case in SLICED if case not in AVERAGED])
def test_what_is_no_mean_over_all_rows_takes_slices_only(name, classes):
    metric = METRICS[name]
    y, _ = problem(metric, classes)
    with pytest.raises(
        InputError, match=rf"of metric '{metric.name}' must be 0 or one other number.*a slice"
    ):
        metric.bind(y, sample_weight=WEIGHTS["real numbers"])


def test_a_weighted_score_is_exact_to_the_last_unit():
    w = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    bound = accuracy().bind(np.zeros(8, int), classes=[0, 1], sample_weight=w)
    every = np.array(list(itertools.product([0, 1], repeat=8)))
    exact = [Fraction(int(w @ hits), int(w.sum())) * GRID // 1 for hits in every]
    assert bound.score(bound.prepare_many(1 - every)).tolist() == exact


def test_large_weights_of_many_rows_do_not_overflow():
    rows = 300_000
    w = np.full(rows, 1 << 30)
    w[0] = 1
    bound = mae(lower=0, upper=1).bind(np.zeros(rows), sample_weight=w)
    scores = bound.score(bound.prepare_many([np.ones(rows), np.full(rows, 0.5), np.zeros(rows)]))
    assert scores.tolist() == [GRID, GRID // 2, 0]


@for_each("weights", [(1, 2), (1, 2, 3, 4), (0, 1, 5, 1), (0.1, 0.7, 0.25, 1e-9), (1, 100, 100)])
@for_each("name", ["accuracy", "mae", "r2", "quantile_loss", *ROOTS])
def test_no_row_of_any_small_holdout_changes_a_weighted_score_by_more_than_declared(name, weights):
    metric, shares = METRICS[name], np.array(weights) / np.sum(weights)
    whole = name == "accuracy"
    stated = {"classes": [0, 1]} if whole else {}
    bound = metric.bind(np.full(len(weights), 0 if whole else LOW), sample_weight=weights, **stated)
    changes = largest_changes(bound, np.array([0, 1]) if whole else np.linspace(LOW, HIGH, 6))
    assert changes.max() <= allowed(bound)
    if not metric.parameters.get("floor"):
        assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, rel=1e-6, abs=3)
    if name not in ROOTS:
        assert (changes <= np.ceil(shares * GRID) + 8).all()
        assert bound.sum_of_squares == pytest.approx(np.square(shares).sum(), rel=1e-6)


@for_each(
    ("weights", "effective_rows"),
    [([1, 1, 1, 2], 2), (np.r_[np.ones(100), 2 * np.ones(100)], 150), (np.r_[np.ones(1_000), 100, 0, 0], 11)],
)
def test_a_weighted_mean_has_as_many_rows_as_its_largest_weight_leaves(weights, effective_rows):
    zeros, w = np.zeros(len(weights), int), np.array(weights) / np.sum(weights)
    bound = accuracy().bind(zeros, classes=[0, 1], sample_weight=weights)
    assert (bound.family, bound.effective_rows) == ("bounded", effective_rows)
    assert bound.sum_of_squares == pytest.approx(w @ w)
    root = rmse(lower=0, upper=1).bind(zeros, sample_weight=weights)
    assert (root.family, root.sum_of_squares) == ("bounded-difference", pytest.approx(2 * w.max()))


# ---- weights themselves


def test_weights_are_told_apart_by_their_digest_up_to_a_factor():
    metric, w = accuracy(), WEIGHTS["whole numbers"]
    y, _ = problem(metric)
    first = metric.bind(y, sample_weight=w)
    for same in (w * 3, w / 4, w.tolist(), pd.Series(w), w.astype(np.float32), w[:, None]):
        assert metric.bind(y, sample_weight=same).weights_digest == first.weights_digest
    others = {metric.bind(y, sample_weight=one).weights_digest for one in (*WEIGHTS.values(), GROUP, ~GROUP)}
    assert len(others) == 6
    assert metric.bind([0, 1, 1, 0], sample_weight=[1, 1, 1, 0]).weights_digest[:8] == "1218a115"
    assert first.describe() == metric.describe() | {"weights": first.weights_digest}
    assert metric.bind(y[::-1].copy(), sample_weight=w).weights_digest == first.weights_digest


BAD = {
    "too few": np.ones(ROWS - 1), "two columns": np.ones((ROWS, 2)), "a number": 1.0,
    "NaN": np.where(np.arange(ROWS) == 3, np.nan, 1), "infinity": np.where(np.arange(ROWS) == 3, np.inf, 1),
    "negative": np.where(np.arange(ROWS) == 3, -1, 1), "all zero": np.zeros(ROWS),
    "text": np.full(ROWS, "1"), "complex": np.ones(ROWS, complex), "missing": [None] * ROWS, "empty": [],
}  # fmt: skip


@for_each("case", BAD)
@for_each("name", ["accuracy", "f1", "mae", "own"])
def test_weights_that_are_none_are_refused_in_words_that_depend_on_no_label(name, case):
    y, _ = problem(METRICS[name])
    messages = set()
    for labels in (y, y[::-1].copy()):
        caught = refuses(InputError, "", METRICS[name].bind, labels, sample_weight=BAD[case])
        messages.add(str(caught))
    (message,) = messages
    assert "sample_weight" in message
    assert message.count(";") >= 2
