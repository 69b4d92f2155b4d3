"""Precision, recall and F: the textbook's values, what one row can change, and how far they stray."""

import itertools
import math
from fractions import Fraction

import numpy as np
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
    accuracy,
    balanced_accuracy,
    described_metric,
    f1,
    fbeta,
    precision,
    recall,
    resolve_metric,
    specificity,
)

AVERAGES = ["macro", "micro", "weighted"]


def score(bound, predictions):
    return bound.score(bound.prepare(predictions)[None])[0] / GRID


def labels_and_guesses(seed, classes, rows=400):
    rng = np.random.default_rng(seed)
    y = np.concatenate(
        [np.arange(classes), rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 5.0)))]
    )
    return y, np.where(rng.random(len(y)) < 0.5, y, rng.integers(0, classes, len(y)))


def sklearns(name, **settings):
    function = getattr(sklearn.metrics, f"{name}_score")
    return lambda y, guesses: function(y, guesses, zero_division=0, **settings)


BINARY = {
    "recall": (recall(), sklearns("recall")),
    "specificity": (specificity(), sklearns("recall", pos_label=0)),
    "precision": (precision(), sklearns("precision")),
    "f1": (f1(), sklearns("f1")),
    "fbeta 2": (fbeta(beta=2), sklearns("fbeta", beta=2)),
    "fbeta half": (fbeta(beta=0.5), sklearns("fbeta", beta=0.5)),
}
AVERAGED = {
    f"{name} {average}": (factory(average=average, **settings), sklearns(name, average=average, **settings))
    for name, factory, settings in [
        ("recall", recall, {}),
        ("precision", precision, {}),
        ("f1", f1, {}),
        ("fbeta", fbeta, {"beta": 1.7}),
    ]
    for average in AVERAGES
}


@for_each("seed", range(5))
@for_each("name", BINARY)
def test_of_two_classes_they_equal_scikit_learns(name, seed):
    metric, reference = BINARY[name]
    y, guesses = labels_and_guesses(seed, 2)
    expected = reference(y, guesses)
    assert metric.measure(y, guesses) == pytest.approx(expected, abs=1e-12)
    assert score(metric.bind(y), guesses) == pytest.approx(expected, abs=1.1 / GRID)
    names = np.array(["ham", "spam"])
    assert metric.measure(names[y], names[guesses]) == pytest.approx(expected, abs=1e-12)


@for_each("classes", [2, 3, 7])
@for_each("name", AVERAGED)
def test_averages_equal_scikit_learns(name, classes):
    metric, reference = AVERAGED[name]
    y, guesses = labels_and_guesses(classes, classes)
    expected = reference(y, guesses)
    assert metric.measure(y, guesses) == pytest.approx(expected, abs=1e-12)
    assert score(metric.bind(y), guesses) == pytest.approx(expected, abs=1.1 / GRID)


@for_each("name", [*BINARY, *AVERAGED])
@for_each("constant", [0, 1])
def test_a_constant_prediction_is_scored_as_scikit_learn_does_where_the_floor_is_kept(name, constant):
    metric, reference = (BINARY | AVERAGED)[name]
    y = np.repeat([0, 1], [7, 3])
    guesses = np.full(10, constant)
    assert metric.measure(y, guesses) == pytest.approx(reference(y, guesses), abs=1e-12)


def test_classes_without_rows_are_left_out_of_averages_and_predicting_them_is_an_error():
    y, guesses = [0, 0, 1, 1], [0, 2, 1, 0]
    assert f1(average="macro").measure(y, guesses, classes=[0, 1, 2]) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert precision(average="macro").measure(y, guesses, classes=[0, 1, 2]) == pytest.approx((1 / 2 + 1) / 2)
    assert recall(average="macro").measure(y, guesses, classes=[0, 1, 2]) == pytest.approx(1 / 2)
    with pytest.raises(InputError, match="exactly two classes; got 3"):
        f1().bind(y, classes=[0, 1, 2])


def test_a_precision_below_its_floor_counts_the_missing_predictions_as_wrong():
    y = np.repeat([0, 1], [10, 8])
    for floor, least in [(0.5, 4), (1, 8), (0.26, 3), (1e-9, 1)]:
        metric = precision(floor=floor)
        for hits, predicted in [(0, 0), (1, 1), (2, 3), (3, 4), (8, 8), (8, 18)]:
            guesses = np.concatenate([np.arange(10) < predicted - hits, np.arange(8) < hits])
            assert metric.measure(y, guesses) == pytest.approx(hits / max(predicted, least))


@for_each("counts", [(1, 1), (3, 7), (8, 2)])
@for_each("beta", [0.5, 1, 2])
def test_an_f_is_exact_to_the_last_unit(counts, beta):
    y = np.repeat([0, 1], counts)
    bound = fbeta(beta=beta).bind(y)
    for false, hits in itertools.product(range(counts[0] + 1), range(counts[1] + 1)):
        guesses = np.concatenate([np.arange(counts[0]) < false, np.arange(counts[1]) < hits])
        b = Fraction(beta) ** 2
        exact = (1 + b) * hits / (hits + false + b * counts[1])
        assert bound.score(bound.prepare(guesses)[None])[0] == exact * GRID // 1


# ---- what one row can change

SMALL = [(1, 1), (1, 4), (4, 1), (3, 4), (2, 6), (6, 2)]


@for_each("counts", SMALL)
@for_each("name", [*BINARY, *(name for name in AVERAGED if "micro" not in name)])
def test_no_row_of_any_small_holdout_changes_a_score_by_more_than_declared(name, counts):
    metric = (BINARY | AVERAGED)[name][0]
    y = np.repeat([0, 1], counts)
    bound = metric.bind(y)
    changes = largest_changes(bound, np.array([0, 1]))
    assert changes.max() <= allowed(bound)
    if name in {"recall", "specificity", "f1", "fbeta 2", "fbeta half"}:
        assert changes.max() == pytest.approx(bound.sensitivity * GRID, abs=2)
    if "macro" in name or "weighted" in name:  # McDiarmid's condition itself
        assert np.square(changes / GRID).sum() <= bound.sum_of_squares * (1 + 1e-7)


@for_each("counts", [(1, 2, 3), (2, 2, 2), (4, 1, 1)])
@for_each("name", ["f1 macro", "precision macro", "f1 weighted", "precision weighted", "fbeta macro"])
def test_no_row_of_three_classes_changes_an_average_by_more_than_declared(name, counts):
    y = np.repeat([0, 1, 2], counts)
    bound = AVERAGED[name][0].bind(y)
    changes = largest_changes(bound, np.arange(3))
    assert changes.max() <= allowed(bound)
    assert np.square(changes / GRID).sum() <= bound.sum_of_squares * (1 + 1e-7)


def test_the_declared_changes_of_an_average_are_attained_with_three_classes():
    bound = f1(average="macro").bind(np.repeat([0, 1, 2], [3, 2, 2]))
    assert largest_changes(bound, np.arange(3)).max() == pytest.approx(bound.sensitivity * GRID, abs=2)
    bound = precision(average="macro", floor=1).bind(np.repeat([0, 1, 2], [2, 2, 2]))
    assert largest_changes(bound, np.arange(3)).max() == pytest.approx(bound.sensitivity * GRID, rel=0.03)


@pytest.mark.long(*QUERIES)
@for_each("classes", [2, 4])
@for_each("name", [name for name in AVERAGED if "micro" not in name])
def test_climbing_finds_no_larger_change(name, classes):
    rng = np.random.default_rng(classes)
    y = np.resize(np.arange(classes), 30)
    bound = AVERAGED[name][0].bind(y)
    found = climbed_change(bound, lambda rng, rows: rng.integers(0, classes, rows), rng)
    assert found <= allowed(bound)
    assert found > 0.2 * allowed(bound)


@for_each("counts", [(5_000, 5_000), (9_500, 500), (500, 9_500)])
def test_the_changes_of_the_binary_forms_are_those_derived(counts):
    y = np.repeat([0, 1], counts)
    positives = counts[1]
    assert recall().bind(y).sensitivity == Fraction(1, positives)
    assert recall().bind(y).sum_of_squares == pytest.approx(1 / positives)
    assert specificity().bind(y).sensitivity == Fraction(1, counts[0])
    assert f1().bind(y).sensitivity == Fraction(2, positives + 1)
    assert precision().bind(y).sensitivity == Fraction(2, positives)
    assert precision(floor=0.1).bind(y).sensitivity == Fraction(10, positives)
    assert fbeta(beta=2).bind(y).sensitivity == Fraction(5, 4 * positives + 1)


def test_a_recall_is_binomial_with_the_rows_of_its_class():
    bound = recall().bind(np.repeat([0, 1], [70, 30]))
    assert (bound.family, bound.rows, bound.effective_rows) == ("binomial", 100, 30)
    bound = specificity().bind(np.repeat([0, 1], [70, 30]))
    assert (bound.family, bound.rows, bound.effective_rows) == ("binomial", 100, 70)
    bound = f1().bind(np.repeat([0, 1], [70, 30]))
    assert (bound.family, bound.rows, bound.effective_rows) == ("bounded-difference", 100, 100)


def test_micro_and_recall_weighted_are_the_accuracy_and_recall_macro_the_balanced_one():
    y, guesses = labels_and_guesses(1, 4)
    for metric in [f1(average="micro"), precision(average="micro"), recall(average="micro")]:
        assert metric.measure(y, guesses) == accuracy().measure(y, guesses)
        assert metric.bind(y).sensitivity == Fraction(1, len(y))
    assert recall(average="weighted").measure(y, guesses) == accuracy().measure(y, guesses)
    assert recall(average="macro").measure(y, guesses) == balanced_accuracy().measure(y, guesses)


# ---- how far they stray from the population's value

CHANCES = [0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.97, 1.0]


def laws(negatives, positives):
    """Of each pair of chances: them, and the exact law of (FP, TP) as a matrix."""
    false, hits = np.arange(negatives + 1), np.arange(positives + 1)
    for f, r in itertools.product(CHANCES, CHANCES):
        yield (
            f,
            r,
            np.outer(scipy.stats.binom.pmf(false, negatives, f), scipy.stats.binom.pmf(hits, positives, r)),
        )


def table(bound, negatives, positives):
    """Score for each (FP, TP)."""
    guesses = [
        np.concatenate([np.arange(negatives) < false, np.arange(positives) < hits])
        for false in range(negatives + 1)
        for hits in range(positives + 1)
    ]
    return (bound.score(bound.prepare_many(guesses)) / GRID).reshape(negatives + 1, positives + 1)


def population(name, metric, negatives, positives, f, r):
    hits, predicted = positives * r, positives * r + negatives * f
    if name.startswith("precision"):
        return hits / max(predicted, math.ceil(metric.parameters["floor"] * positives))
    b = metric.parameters.get("beta", 1) ** 2
    return (1 + b) * hits / (predicted + b * positives)


PLAIN = {
    "f1": f1(),
    "fbeta 2": fbeta(beta=2),
    "fbeta half": fbeta(beta=0.5),
    "precision": precision(),
    "precision of floor 1": precision(floor=1),
    "precision of floor 0.2": precision(floor=0.2),
}
SIZES = [(1, 1), (10, 10), (40, 5), (5, 40), (30, 30), (2, 9)]


@pytest.mark.long(*VALIDITY)
@for_each("size", SIZES)
@for_each("name", PLAIN)
def test_beyond_every_distance_the_exact_tails_are_below_the_declared_ones(name, size):
    metric = PLAIN[name]
    bound = metric.bind(np.repeat([0, 1], size))
    values = table(bound, *size)
    order = np.argsort(values, axis=None)
    for f, r, law in laws(*size):
        truth = population(name, metric, *size, f, r)
        sorted_values, chances = values.ravel()[order], law.ravel()[order]
        below, above = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
        declared = np.exp(-2 * np.square(sorted_values - truth) / bound.sum_of_squares)
        counted = declared <= 0.5  # a precision's floor needs it, and confidence bounds ask no more
        low, high = sorted_values < truth - 1e-8, sorted_values > truth + 1e-8
        # values that tie on the grid: the tail from the first of them, up to the last
        first = np.searchsorted(sorted_values, sorted_values - 1e-9, side="left")
        last = np.searchsorted(sorted_values, sorted_values + 1e-9, side="right") - 1
        assert (below[last] <= declared * (1 + 1e-9) + 1e-15)[low & counted].all()
        assert (above[first] <= declared * (1 + 1e-9) + 1e-15)[high & counted].all()


@pytest.mark.long(*VALIDITY)
@for_each("level", [0.5, 0.05, 1e-3, 1e-6])
@for_each("name", [*PLAIN, "recall", "specificity", "f1 macro", "precision macro", "f1 weighted"])
def test_confidence_bounds_miss_the_population_no_more_often_than_their_level(name, level):
    metric = (PLAIN | {"recall": recall(), "specificity": specificity()}).get(name) or AVERAGED[name][0]
    for size in [(12, 12), (25, 6), (6, 25)]:
        bound = metric.bind(np.repeat([0, 1], size))
        values = table(bound, *size)
        limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
        low = limits.lower(values.ravel(), log_level=math.log(level)).reshape(values.shape)
        high = limits.upper(values.ravel() + 1 / GRID, log_level=math.log(level)).reshape(values.shape)
        for f, r, law in laws(*size):
            if name in PLAIN:
                truth = population(name, metric, *size, f, r)
            else:
                truth = {"recall": r, "specificity": 1 - f}.get(name, float((law * values).sum()))
            assert law[low > truth + 1e-9].sum() <= level
            assert law[high < truth - 1e-9].sum() <= level


def test_the_inequality_behind_the_floor_of_a_precision_holds():
    q = np.linspace(1e-4, 1, 100_001)
    assert (2**-q + 2 ** (-1 / q)).max() <= 1


# ---- names and refusals


@for_each(
    ("name", "metric"),
    [
        *((f"f1_{average}", f1(average=average)) for average in AVERAGES),
        *((f"precision_{average}", precision(average=average)) for average in AVERAGES),
        *((f"recall_{average}", recall(average=average)) for average in AVERAGES),
        ("f1", f1()), ("precision", precision()), ("recall", recall()), ("specificity", specificity()),
    ],
)  # fmt: skip
def test_names_are_scikit_learns(name, metric):
    assert resolve_metric(name) == metric
    assert metric.name == name
    if name != "specificity":
        assert name in sklearn.metrics.get_scorer_names()


@for_each(
    "metric",
    [precision(floor=0.2), precision(floor=0.2, average="macro"), *(fbeta(beta=3, average=a) for a in AVERAGES)],
)  # fmt: skip
def test_a_description_with_parameters_is_read_back(metric):
    assert described_metric(metric.describe()) == metric


@for_each("floor", [0, -0.1, 1.01, np.nan, "0.5", None])
def test_a_floor_that_is_no_share_is_refused(floor):
    with pytest.raises(InputError, match=r"floor must be .*; got "):
        precision(floor=floor)


@for_each("beta", [0, 0.09, 11, np.inf, "1", None])
def test_a_beta_out_of_range_is_refused(beta):
    with pytest.raises(InputError, match=r"beta must be .*; got "):
        fbeta(beta=beta)


@for_each("factory", [f1, precision, recall])
def test_an_average_that_does_not_exist_is_refused(factory):
    with pytest.raises(InputError, match=r"average must be one of .*; got 'samples'"):
        factory(average="samples")


@for_each("description", [{}, {"name": "mine"}, f1().describe() | {"upper": 2.0}])
def test_a_description_of_no_metric_of_the_catalogue_is_refused(description):
    with pytest.raises(InputError, match="must be one of the catalogue"):
        described_metric(description)


@for_each("floor", [0.2, 0.5, 1])
@for_each("size", [(2_000, 30), (400, 60), (300, 300)])
def test_the_tails_of_a_precision_are_below_the_declared_ones_where_positives_are_rare(size, floor):
    negatives, positives = size
    spread = precision(floor=floor).bind(np.repeat([0, 1], size)).sum_of_squares
    false, hits = np.arange(negatives + 1)[:, None], np.arange(positives + 1)[None]
    least = math.ceil(floor * positives)
    values = hits / np.maximum(hits + false, least)
    for f, r in itertools.product([0, 0.002, 0.01, 0.05, 0.3], [0.02, 0.1, 0.5, 0.9, 1]):
        law = np.outer(
            scipy.stats.binom.pmf(false[:, 0], negatives, f), scipy.stats.binom.pmf(hits[0], positives, r)
        )
        truth = positives * r / max(positives * r + negatives * f, least)
        for level in (0.5, 0.1, 1e-3, 1e-9):
            width = math.sqrt(-math.log(level) * spread / 2)
            assert law[values > truth + width + 1e-12].sum() <= level
            assert law[values < truth - width - 1e-12].sum() <= level
