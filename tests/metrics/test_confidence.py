"""Confidence bounds of metrics against the exact law of the metric on a few rows, or many samples of it."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from cases import for_each
from long_tests import VALIDITY
from metrics.problems import HIGH, LOW, METRICS, ROOTS

from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.metrics import GRID, accuracy, mse, precision, rmse

LEVELS = [0.5, 0.2, 0.05, 1e-3, 1e-6]


def limits_of(bound):
    return ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)


def assert_misses_no_more_than_its_level(bound, values, chances, truth, levels=LEVELS):
    """Exact, given the law of the scores."""
    limits = limits_of(bound)
    for level in levels:
        low = limits.lower(values, log_level=math.log(level))
        high = limits.upper(values + 1 / GRID, log_level=math.log(level))
        assert chances[low > truth + 1e-8].sum() <= level + 1e-12
        assert chances[high < truth - 1e-8].sum() <= level + 1e-12


def every_score(bound, choices):
    """All predictions of a few rows, and their scores."""
    every = np.array(list(itertools.product(choices, repeat=bound.rows)))
    return every, bound.score(bound.prepare_many(every)) / GRID


def law(every, chances):
    """Chance of each prediction, given that of each value for each row: shape (rows, values)."""
    return np.prod(chances[np.arange(every.shape[1]), every], axis=1)


# ---- two classes, by counts: exact

CHANCES = [0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.97, 1.0]
BY_COUNTS = [
    "f1", "fbeta", "fbeta half", "precision", "precision of floor 1", "precision of floor 0.2", "recall",
]  # fmt: skip
BY_COUNTS += ["specificity", "f1_macro", "precision_macro", "f1_weighted", "jaccard", "matthews_corrcoef"]
WITH_TRUTH = BY_COUNTS[:8]  # of endless data at these shares; of others the mean of fresh holdouts


def table(bound, negatives, positives):
    """Score for each (FP, TP)."""
    guesses = [
        np.concatenate([np.arange(negatives) < false, np.arange(positives) < hits])
        for false, hits in itertools.product(range(negatives + 1), range(positives + 1))
    ]
    return bound.score(bound.prepare_many(guesses)) / GRID


def laws(negatives, positives, chances=CHANCES):
    """Chances of a negative and of a positive to be predicted positive, and the exact law of (FP, TP)."""
    false, hits = np.arange(negatives + 1), np.arange(positives + 1)
    for f, r in itertools.product(chances, repeat=2):
        both = np.outer(scipy.stats.binom.pmf(false, negatives, f), scipy.stats.binom.pmf(hits, positives, r))
        yield f, r, both.ravel()


def population(name, negatives, positives, f, r):
    parameters, hits, predicted = METRICS[name].parameters, positives * r, positives * r + negatives * f
    if name in {"recall", "specificity"}:
        return r if name == "recall" else 1 - f
    if name.startswith("precision"):
        return hits / max(predicted, math.ceil(parameters["floor"] * positives))
    b = parameters.get("beta", 1) ** 2
    return (1 + b) * hits / (predicted + b * positives)


@pytest.mark.long(*VALIDITY)
@for_each("name", BY_COUNTS)
def test_confidence_bounds_of_counts_miss_no_more_often_than_their_level(name):
    for size in [(12, 12), (25, 6), (6, 25)]:
        bound = METRICS[name].bind(np.repeat([0, 1], size))
        values = table(bound, *size)
        for f, r, chances in laws(*size):
            truth = population(name, *size, f, r) if name in WITH_TRUTH else chances @ values
            assert_misses_no_more_than_its_level(bound, values, chances, truth)


@pytest.mark.long(*VALIDITY)
@for_each("size", [(1, 1), (10, 10), (40, 5), (5, 40), (30, 30), (2, 9)])
@for_each("name", BY_COUNTS[:6])
def test_beyond_every_distance_the_exact_tails_of_a_ratio_are_below_the_declared_ones(name, size):
    bound = METRICS[name].bind(np.repeat([0, 1], size))
    values = table(bound, *size)
    order = np.argsort(values)
    values = values[order]
    # values that tie on the grid: the tail from the first of them, up to the last
    first = np.searchsorted(values, values - 1e-9, side="left")
    last = np.searchsorted(values, values + 1e-9, side="right") - 1
    for f, r, chances in laws(*size):
        truth = population(name, *size, f, r)
        below, above = np.cumsum(chances[order]), np.cumsum(chances[order][::-1])[::-1]
        declared = np.exp(-2 * np.square(values - truth) / bound.sum_of_squares)
        counted = declared <= 0.5  # a precision's floor needs it, and confidence bounds ask no more
        low, high = values < truth - 1e-8, values > truth + 1e-8
        assert (below[last] <= declared * (1 + 1e-9) + 1e-15)[low & counted].all()
        assert (above[first] <= declared * (1 + 1e-9) + 1e-15)[high & counted].all()


@for_each("floor", [0.2, 0.5, 1])
@for_each("size", [(2_000, 30), (400, 60), (300, 300)])
def test_the_tails_of_a_precision_are_below_the_declared_ones_where_positives_are_rare(size, floor):
    negatives, positives = size
    spread = precision(floor=floor).bind(np.repeat([0, 1], size)).sum_of_squares
    least = math.ceil(floor * positives)
    false, hits = np.arange(negatives + 1)[:, None], np.arange(positives + 1)[None]
    values = (hits / np.maximum(hits + false, least)).ravel()
    for f, r, chances in laws(*size, chances=[0, 0.002, 0.02, 0.1, 0.5, 0.9]):
        truth = positives * r / max(positives * r + negatives * f, least)
        for level in (0.5, 0.1, 1e-3, 1e-9):
            width = math.sqrt(-math.log(level) * spread / 2)
            assert chances[values > truth + width + 1e-12].sum() <= level
            assert chances[values < truth - width - 1e-12].sum() <= level


def test_the_inequality_behind_the_floor_of_a_precision_holds():
    q = np.linspace(1e-4, 1, 100_001)
    assert (2**-q + 2 ** (-1 / q)).max() <= 1


# ---- areas, recalls and weighted means, by all predictions of a few rows: exact

OF_SCORES = [  # laws of a negative's score and of a positive's: chances of 0, 1, 2
    ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]),
    ([0.9, 0.1, 0.0], [0.2, 0.8, 0.0]),
    ([0.0, 1.0, 0.0], [0.3, 0.0, 0.7]),
    ([0.98, 0.0, 0.02], [0.0, 1.0, 0.0]),
    ([0.4, 0.2, 0.4], [0.1, 0.8, 0.1]),
]


def area(negative, positive):
    """Population value: the probability that a positive is above a negative, and half of that of a tie."""
    above = np.sign(np.arange(3)[:, None] - np.arange(3)) / 2 + 0.5
    return float(np.array(positive) @ above @ np.array(negative))


@for_each(("negatives", "positives"), [(1, 1), (2, 2), (1, 5), (3, 4), (5, 2)])
def test_the_area_under_the_curve_misses_at_most_as_often_as_its_pairs_allow(negatives, positives):
    bound = METRICS["roc_auc"].bind([0] * negatives + [1] * positives)
    assert (bound.family, bound.effective_rows) == ("bounded", min(negatives, positives))
    every, values = every_score(bound, range(3))
    for negative, positive in OF_SCORES:
        chances = law(every, np.array([negative] * negatives + [positive] * positives))
        assert_misses_no_more_than_its_level(bound, values, chances, area(negative, positive))


@for_each("counts", [(1, 1), (1, 6), (3, 4), (2, 2, 3)])
def test_balanced_accuracy_misses_at_most_as_often_as_its_weights_allow(counts):
    classes, labels = len(counts), np.repeat(np.arange(len(counts)), counts)
    bound = METRICS["balanced_accuracy"].bind(labels)
    assert (bound.family, bound.effective_rows) == ("bounded", classes * min(counts))
    every, values = every_score(bound, range(classes))
    for recalls in itertools.product([0.1, 0.5, 0.9, 1.0], repeat=classes):
        right = np.array(recalls)[labels]
        chances = np.eye(classes)[labels] * right[:, None]
        chances[np.arange(len(labels)), labels - 1] += 1 - right
        assert_misses_no_more_than_its_level(bound, values, law(every, chances), np.mean(recalls))


WEIGHTS = [
    [1, 1, 1, 5], [1, 2, 3, 4, 5], [1, 1, 1, 1, 100], range(1, 11), [1, 9] * 5, [1] * 9 + [40],
    [0, 3, 2, 2] * 2,
]  # fmt: skip


@pytest.mark.long(*VALIDITY)
@for_each("weights", WEIGHTS)
@for_each("name", ["accuracy", "mse", "rmse"])
def test_confidence_bounds_of_a_weighted_mean_miss_no_more_often_than_their_level(name, weights):
    """The chances of an error may depend on the weights."""
    w, rows = np.array(list(weights), float), len(weights)
    metric = {"accuracy": accuracy(), "mse": mse(lower=0, upper=1), "rmse": rmse(lower=0, upper=1)}[name]
    known = {"classes": [0, 1]} if name == "accuracy" else {}
    bound = metric.bind(np.zeros(rows, int), sample_weight=w, **known)
    every, values = every_score(bound, [0, 1])
    for errors in (
        np.full(rows, 0.02),
        np.full(rows, 0.5),
        w / w.max() * 0.9,
        1 - w / w.max(),
        np.full(rows, 0.95),
    ):
        truth = np.average(1 - errors if name == "accuracy" else errors, weights=w)
        chances = law(every, np.stack([1 - errors, errors], axis=1))
        assert_misses_no_more_than_its_level(bound, values, chances, truth**0.5 if name == "rmse" else truth)


@for_each("rows", [1, 7, 60, 500])
def test_beyond_every_distance_the_exact_tails_of_a_root_are_below_the_declared_ones(rows):
    """For losses of 0 or 1, the extreme ones."""
    spread = rmse(lower=0, upper=1).bind(np.zeros(rows)).sum_of_squares
    counts = np.arange(rows + 1)
    roots = np.sqrt(counts / rows)
    for chance in [1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9, 0.999]:
        truth = math.sqrt(chance)
        declared = np.exp(-2 * np.square(roots - truth) / spread)
        below, above = (
            scipy.stats.binom.cdf(counts, rows, chance),
            scipy.stats.binom.sf(counts - 1, rows, chance),
        )
        assert (below <= declared * (1 + 1e-9))[roots < truth].all()
        assert (above <= declared * (1 + 1e-9))[roots > truth].all()


# ---- sampled, false alarm 1e-9

RUNS = 20_000
SAMPLED = ["accuracy", "average_precision", "roc_auc", "roc_auc_ovr", "roc_auc_ovr_weighted", "rmse", "r2"]
SAMPLED += ["quantile_loss 0.9", "neg_root_mean_squared_error"]


def sampled(name):
    """Bound metric, scores of many batches of predictions of one law, and their population value if it is known."""
    rng, metric = np.random.default_rng(11), METRICS[name]
    if metric.response == "values":  # predictions are LOW, or seldom HIGH: an asymmetric law of errors
        bound = metric.bind(np.full(40, LOW))
        queries = np.where(rng.random((RUNS, 40)) < 0.05, HIGH, LOW)
        ends = [metric.measure([LOW], [end]) for end in (LOW, HIGH)]
        truth = 0.95 * ends[0] + 0.05 * ends[1]
        if name in ROOTS:
            root = math.sqrt(0.05) * (HIGH - LOW)
            truth = -root if metric.greater_is_better else root
        truth = (truth - metric.lower) / (metric.upper - metric.lower)
    elif name == "accuracy":  # of a slice: others are more often right
        group = np.arange(100) % 3 == 0
        bound = metric.bind(np.zeros(100, int), classes=[0, 1], sample_weight=group)
        queries, truth = (rng.random((RUNS, 100)) < np.where(group, 0.3, 0.05)).astype(int), 0.7
    elif metric.response == "probabilities":
        bound, truth = metric.bind(np.resize([0, 1, 2, 2], 40)), None
        queries = rng.dirichlet([0.3] * 3, (RUNS // 5, 40)) + 0.2 * np.eye(3)[np.resize([0, 1, 2, 2], 40)]
        queries /= queries.sum(axis=2, keepdims=True)
    else:
        bound, truth = metric.bind(np.repeat([0, 1], [15, 25])), None
        queries = np.repeat([0, 1], [15, 25]) * 0.8 + rng.normal(0, 1, (RUNS // 5, 40))
    return bound, bound.score(bound.prepare_many(queries)) / GRID, truth


@pytest.mark.long(*VALIDITY)
@for_each("name", SAMPLED)
def test_confidence_bounds_miss_no_more_often_than_their_level(name):
    """If the truth is not known, it is the mean of other samples, known to six standard errors."""
    bound, scores, truth = sampled(name)
    error = 1e-8
    if truth is None:
        others, scores = np.split(scores, 2)
        truth, error = others.mean(), 6 * others.std() / math.sqrt(len(others))
    limits = limits_of(bound)
    for level in (0.5, 0.2, 0.05):
        misses = scipy.stats.binom.isf(1e-9, len(scores), level)
        assert (limits.lower(scores, log_level=math.log(level)) > truth + error).sum() <= misses
        assert (limits.upper(scores + 1 / GRID, log_level=math.log(level)) < truth - error).sum() <= misses


def test_a_bound_about_all_rows_would_miss_the_mean_of_a_slice():
    bound, scores, _ = sampled("accuracy")
    assert (limits_of(bound).upper(scores, log_level=math.log(0.05)) < 0.867).mean() > 0.5
