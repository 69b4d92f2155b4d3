"""Matthews's correlation, average precision and areas of several classes: values, one row's change, distance."""

import itertools
import math

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
    average_precision,
    described_metric,
    matthews_corrcoef,
    resolve_metric,
    roc_auc,
    roc_auc_ovr,
)


def measured(metric, y, predictions, **settings):
    """By its plain value and by its score."""
    bound = metric.bind(y, **settings)
    units = bound.score(bound.prepare(predictions)[None])[0]
    return metric.measure(y, predictions, **settings), metric.lower + units / GRID * (
        metric.upper - metric.lower
    )


def agrees(metric, y, predictions, expected):
    plain, scored = measured(metric, y, predictions)
    assert plain == pytest.approx(expected, abs=1e-12)
    assert scored == pytest.approx(expected, abs=1.1 / GRID * (metric.upper - metric.lower))


def two_classes(seed, rows=300):
    rng = np.random.default_rng(seed)
    return (np.arange(rows) % 4 == 0).astype(int), rng


# ---- Matthews's correlation


@for_each("seed", range(6))
def test_a_correlation_equals_scikit_learns(seed):
    y, rng = two_classes(seed)
    guesses = np.where(rng.random(len(y)) < rng.choice([0.1, 0.5, 0.9]), y, rng.integers(0, 2, len(y)))
    expected = sklearn.metrics.matthews_corrcoef(y, guesses)
    agrees(matthews_corrcoef(), y, guesses, expected)
    agrees(matthews_corrcoef(), y, 1 - guesses, -expected)


def test_a_perfect_correlation_is_one_and_a_reversed_one_minus_one():
    y = np.repeat([0, 1], [7, 3])
    bound = matthews_corrcoef().bind(y)
    assert bound.score(bound.prepare_many([y, 1 - y])).tolist() == [GRID, 0]


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_prediction_has_no_correlation(constant):
    y = np.repeat([0, 1], [7, 3])
    assert measured(matthews_corrcoef(), y, np.full(10, constant)) == (0, 0)


def test_below_the_floor_the_predictions_are_taken_to_vary_more():
    y = np.repeat([0, 1], [60, 40])
    few = np.arange(100) >= 90
    for floor, least in [(0.1, 10), (0.5, 20), (1, 40)]:
        expected = (100 * 10 - 40 * 10) / math.sqrt(40 * 60 * least * (100 - least))
        agrees(matthews_corrcoef(floor=floor), y, few, expected)


@for_each("counts", [(1, 1), (1, 4), (4, 1), (3, 4), (2, 6), (5, 5)])
@for_each("floor", [0.01, 0.5, 1])
def test_the_declared_change_of_a_correlation_is_the_largest_of_every_small_holdout(counts, floor):
    bound = matthews_corrcoef(floor=floor).bind(np.repeat([0, 1], counts))
    changes = largest_changes(bound, np.array([0, 1]))
    assert changes.max() <= allowed(bound)
    assert changes.max() == pytest.approx(bound.sensitivity * GRID, abs=2)
    assert np.square(changes / GRID).sum() == pytest.approx(bound.sum_of_squares, rel=1e-7)


@for_each("counts", [(20, 20), (70, 10), (10, 70)])
def test_climbing_finds_no_larger_change_of_a_correlation(counts):
    bound = matthews_corrcoef().bind(np.repeat([0, 1], counts))
    found = climbed_change(bound, lambda rng, rows: rng.integers(0, 2, rows), np.random.default_rng(1))
    assert 0.3 * allowed(bound) < found <= allowed(bound)


def test_a_correlation_needs_its_floor():
    """A single row predicted positive moves it by about 1/sqrt(n): the squares do not sum to less for more rows."""
    for rows in (100, 1_000, 10_000):
        y = np.repeat([0, 1], [rows // 2, rows // 2])
        assert matthews_corrcoef(floor=1e-9).bind(y).sum_of_squares > 0.2
        assert matthews_corrcoef().bind(y).sum_of_squares < 2.5 / rows
        assert matthews_corrcoef().bind(y).sensitivity * 2 < 3.1 / rows


# ---- average precision


@for_each("digits", [0, 1, 2, 15])
@for_each("seed", range(3))
def test_an_average_precision_equals_scikit_learns_with_ties(seed, digits):
    y, rng = two_classes(seed)
    scores = np.round(y + rng.normal(0, 1, len(y)), digits)
    agrees(average_precision(), y, scores, sklearn.metrics.average_precision_score(y, scores))


def test_an_average_precision_of_constant_scores_is_the_share_of_positives():
    y, _ = two_classes(0)
    agrees(average_precision(), y, np.zeros(len(y)), y.mean())


def check_all_orders(counts):
    """One level more than rows: enough for every weak order of the others, with the row above or below all of them."""
    y = np.repeat([0, 1], counts)
    rows = len(y)
    bound = average_precision().bind(y)
    changes = largest_changes(bound, np.arange(rows + 1).astype(float))
    assert changes.max() <= allowed(bound)
    assert np.square(changes / GRID).sum() <= bound.sum_of_squares * (1 + 1e-9)
    assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, abs=3)


@for_each("counts", [(1, 1), (4, 1), (1, 4), (2, 2)])
def test_the_declared_change_of_an_average_precision_is_the_largest_of_every_order_with_ties(counts):
    check_all_orders(counts)


@pytest.mark.long(*QUERIES)
@for_each("counts", [(3, 2), (2, 3), (3, 3), (1, 5), (5, 1)])
def test_the_declared_change_of_an_average_precision_is_the_largest_of_every_order_of_more_rows(counts):
    check_all_orders(counts)


@for_each("counts", [(1, 1), (40, 40), (300, 7), (7, 300), (1, 50), (50, 1), (2_000, 1_500)])
def test_the_declared_changes_of_an_average_precision_are_attained(counts):
    negatives, positives = counts
    y = np.repeat([0, 1], counts)
    bound = average_precision().bind(y)
    # a negative passes all positives, which outrank all other negatives
    below = np.concatenate([np.zeros(negatives), np.ones(positives)])
    above = below.copy()
    above[0] = 2
    # a positive passes all others, which take turns with the negatives as long as there are any
    bottom = np.concatenate([-1.0 - np.arange(negatives), -1.5 - np.arange(positives)])
    bottom[-1] = -1e6
    top = bottom.copy()
    top[-1] = 0
    ranked = np.concatenate([below[:negatives], 1 + np.arange(positives)])  # without ties
    over = ranked.copy()
    over[0] = 1e6
    scores = bound.score(bound.prepare_many([below, above, bottom, top, ranked, over])) / GRID
    largest = max(abs(scores[2] - scores[3]), abs(scores[4] - scores[5]))
    assert abs(scores[0] - scores[1]) <= largest + 1e-9
    assert largest == pytest.approx(float(bound.sensitivity), rel=1e-8)
    squares = positives * (scores[3] - scores[2]) ** 2 + negatives * (scores[4] - scores[5]) ** 2
    assert squares == pytest.approx(bound.sum_of_squares, rel=1e-6)


@pytest.mark.long(*QUERIES)
@for_each("counts", [(20, 20), (35, 5), (5, 35)])
def test_climbing_finds_no_larger_change_of_an_average_precision(counts):
    bound = average_precision().bind(np.repeat([0, 1], counts))
    found = climbed_change(bound, lambda rng, rows: rng.integers(0, 50, rows) / 2, np.random.default_rng(2))
    assert 0.2 * allowed(bound) < found <= allowed(bound)


# ---- areas of several classes


def matrices(seed, classes, rows=240):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.resize(np.arange(classes), rows))
    matrix = rng.dirichlet(np.ones(classes), rows) + 0.3 * np.eye(classes)[y]
    return y, matrix / matrix.sum(axis=1, keepdims=True)


@for_each("classes", [3, 5])
@for_each("weighted", [False, True])
def test_areas_of_several_classes_equal_scikit_learns(classes, weighted):
    y, matrix = matrices(classes, classes)
    y[:60] = 0  # so that weights matter
    average = "weighted" if weighted else "macro"
    expected = sklearn.metrics.roc_auc_score(y, matrix, multi_class="ovr", average=average)
    agrees(roc_auc_ovr(weighted=weighted), y, matrix, expected)
    hard = np.eye(classes)[matrix.argmax(axis=1)]  # nearly all ties
    expected = sklearn.metrics.roc_auc_score(y, hard, multi_class="ovr", average=average)
    agrees(roc_auc_ovr(weighted=weighted), y, hard, expected)


def test_of_two_classes_the_mean_area_is_the_area():
    y, rng = two_classes(1)
    p = rng.random(len(y))
    for predictions in (p, np.stack([1 - p, p], axis=1)):
        assert measured(roc_auc_ovr(), y, predictions) == measured(roc_auc(), y, p)


def test_a_class_without_rows_is_left_out_of_the_mean_area():
    y, matrix = matrices(1, 3)
    y[y == 2] = 0
    expected = np.mean([sklearn.metrics.roc_auc_score(y == code, matrix[:, code]) for code in (0, 1)])
    assert roc_auc_ovr().measure(y, matrix, classes=[0, 1, 2]) == pytest.approx(expected)


CORNERS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.4, 0.3, 0.3]])


@pytest.mark.long(*QUERIES)
@for_each("counts", [(1, 1, 1), (2, 1, 1), (1, 2, 2)])
@for_each("weighted", [False, True])
def test_no_row_changes_a_mean_area_by_more_than_declared(counts, weighted):
    bound = roc_auc_ovr(weighted=weighted).bind(np.repeat([0, 1, 2], counts))
    changes = largest_changes(bound, CORNERS)
    assert changes.max() <= allowed(bound)
    assert np.square(changes / GRID).sum() <= bound.sum_of_squares * (1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_declared_changes_of_a_mean_area_are_attained(weighted):
    counts = np.array([3, 5, 9])
    y = np.repeat([0, 1, 2], counts)
    bound = roc_auc_ovr(weighted=weighted).bind(y)
    squares, largest = 0.0, 0.0
    for code in range(3):
        matrix = np.full((17, 3), 1 / 3)
        row = int(np.flatnonzero(y == code)[0])
        scores = []
        for turned in (np.eye(3)[code], (1 - np.eye(3)[code]) / 2):
            matrix[row] = turned
            scores.append(bound.score(bound.prepare(matrix)[None])[0] / GRID)
        squares += counts[code] * (scores[0] - scores[1]) ** 2
        largest = max(largest, scores[0] - scores[1])
    assert largest == pytest.approx(float(bound.sensitivity), abs=1e-8)
    assert squares == pytest.approx(bound.sum_of_squares, abs=1e-7)


@pytest.mark.long(*QUERIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_climbing_finds_no_larger_change_of_a_mean_area(weighted):
    bound = roc_auc_ovr(weighted=weighted).bind(np.resize([0, 1, 2, 2], 20))
    found = climbed_change(
        bound, lambda rng, rows: CORNERS[rng.integers(0, 6, rows)], np.random.default_rng(3)
    )
    assert 0.3 * allowed(bound) < found <= allowed(bound)


# ---- how far they stray


@for_each("size", [(12, 12), (25, 5), (5, 25)])
@for_each("level", [0.5, 0.05, 1e-4])
def test_confidence_bounds_of_a_correlation_miss_its_mean_no_more_often_than_their_level(size, level):
    """Exact, over all counts."""
    negatives, positives = size
    bound = matthews_corrcoef().bind(np.repeat([0, 1], size))
    guesses = [
        np.concatenate([np.arange(negatives) < false, np.arange(positives) < hits])
        for false, hits in itertools.product(range(negatives + 1), range(positives + 1))
    ]
    values = bound.score(bound.prepare_many(guesses)) / GRID
    limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    low = limits.lower(values, log_level=math.log(level))
    high = limits.upper(values, log_level=math.log(level))
    for f, r in itertools.product([0.0, 0.03, 0.2, 0.5, 0.9, 1.0], repeat=2):
        law = np.outer(
            scipy.stats.binom.pmf(np.arange(negatives + 1), negatives, f),
            scipy.stats.binom.pmf(np.arange(positives + 1), positives, r),
        ).ravel()
        mean = law @ values
        assert law[low > mean + 1e-8].sum() <= level
        assert law[high < mean - 1e-8].sum() <= level


RUNS = 4_000


def sampled(name):
    """Bound metric, and many batches of predictions of one law for its rows."""
    rng = np.random.default_rng(11)
    if name.startswith("roc_auc_ovr"):
        y = np.resize([0, 1, 2, 2], 40)
        matrix = rng.dirichlet([0.3] * 3, (RUNS, 40)) + 0.2 * np.eye(3)[y]
        return resolve_metric(name).bind(y), matrix / matrix.sum(axis=2, keepdims=True)
    y = np.repeat([0, 1], [15, 25])
    return resolve_metric(name).bind(y), y * 0.8 + rng.normal(0, 1, (RUNS, 40))


@pytest.mark.long(*VALIDITY)
@for_each("name", ["average_precision", "roc_auc", "roc_auc_ovr", "roc_auc_ovr_weighted"])
def test_confidence_bounds_of_ranks_miss_the_mean_no_more_often_than_their_level(name):
    """Sampled: false alarm 1e-9. The mean is that of other samples, known to five standard errors."""
    bound, queries = sampled(name)
    scores = bound.score(bound.prepare_many(queries)) / GRID
    half = RUNS // 2
    mean, error = scores[:half].mean(), 6 * scores[:half].std() / math.sqrt(half)
    limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    for level in (0.5, 0.2, 0.05):
        misses = scipy.stats.binom.isf(1e-9, half, level)
        assert (limits.lower(scores[half:], log_level=math.log(level)) > mean + error).sum() <= misses
        assert (limits.upper(scores[half:], log_level=math.log(level)) < mean - error).sum() <= misses


# ---- definitions and refusals


@for_each("name", ["matthews_corrcoef", "average_precision", "roc_auc_ovr", "roc_auc_ovr_weighted"])
def test_names_are_scikit_learns_and_descriptions_are_read_back(name):
    assert name in sklearn.metrics.get_scorer_names()
    assert described_metric(resolve_metric(name).describe()) == resolve_metric(name)
    assert resolve_metric("mcc") == matthews_corrcoef()
    assert described_metric(matthews_corrcoef(floor=0.1).describe()) == matthews_corrcoef(floor=0.1)


@for_each("floor", [0, -1, 1.5, np.nan, "1", None])
def test_a_floor_that_is_no_share_is_refused(floor):
    with pytest.raises(InputError, match=r"floor must be .*; got "):
        matthews_corrcoef(floor=floor)


@for_each("metric", [matthews_corrcoef(), average_precision(), roc_auc_ovr()], ids=lambda m: m.name)
@for_each(
    ("y", "classes"),
    [([48151623] * 4, None), ([48151623] * 4, [1, 48151623]), ([48151623, np.nan], None), ([], None)],
)
def test_labels_that_do_not_fit_are_refused_and_not_quoted(metric, y, classes):
    with pytest.raises(InputError) as caught:
        metric.bind(y, classes=classes)
    assert "48" not in str(caught.value)
    assert str(caught.value).count(";") >= 2


@pytest.mark.parametrize("metric", [matthews_corrcoef(), average_precision()], ids=lambda m: m.name)
def test_three_classes_are_refused_where_one_must_be_positive(metric):
    with pytest.raises(InputError, match="exactly two classes; got 3"):
        metric.bind([0, 1, 2])
