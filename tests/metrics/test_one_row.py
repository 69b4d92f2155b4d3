"""What one row can change: never more than declared, and for some holdout as much as declared."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import QUERIES, examples
from metrics.one_row import allowed, climbed_change, largest_changes
from metrics.problems import HIGH, LOW, MEANS, METRICS, ROOTS, cases, problem

from reusable_holdout.metrics import GRID, Metric, accuracy, f1, fbeta, matthews_corrcoef, precision, recall

MICRO = [name for name in METRICS if name.endswith("micro")]
OF_RATIOS = {"f1", "fbeta", "fbeta half", "precision", "precision of floor 1", "precision of floor 0.2"}
PAIRED = sorted((MEANS | ROOTS) - {"recall_weighted", *MICRO})  # neighbours may differ in the label, too
PAIRED = [name for name in PAIRED if METRICS[name].response != "judged"]
# their bound is far from any change that climbing finds; without a floor it is the whole range, and is not used
LOOSE = {"precision of floor 0.2", "matthews_corrcoef"}
KEPT = [name for name in METRICS if name not in {*PAIRED, *MICRO} and METRICS[name].response != "judged"]
KEPT = [name for name in KEPT if METRICS[name].kernel is not None and METRICS[name].response != "values"]
CORNERS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.4, 0.3, 0.3]])


def choices(metric, classes, rows=2):
    """Labels that a row may have, and predictions for it."""
    if metric.response == "values":
        return np.linspace(LOW, HIGH, 3), np.linspace(LOW, HIGH, 5)
    if metric.response == "scores":  # enough for every weak order, with one row above or below all others
        return np.arange(classes), np.arange(rows + 1.0)
    if metric.response == "probabilities":
        return np.arange(classes), np.array([0, 0.5, 1]) if classes == 2 else CORNERS
    return np.arange(classes), np.arange(classes)


@for_each(("name", "classes"), cases(PAIRED))
def test_no_row_with_its_label_changes_a_mean_by_more_than_declared_and_some_row_does_as_much(name, classes):
    """Every holdout of two or three rows."""
    metric, rows = METRICS[name], 2 if METRICS[name].response == "probabilities" else 3
    labels, predictions = choices(metric, classes)
    known = {} if metric.response == "values" else {"classes": labels}
    every = predictions[np.array(list(itertools.product(range(len(predictions)), repeat=rows)))]
    scores = []
    for places in itertools.product(range(len(labels)), repeat=rows):
        bound = metric.bind(labels[list(places)], **known)
        scores.append(bound.score(bound.prepare_many(every)))
    table = np.array(scores).reshape((len(labels),) * rows + (len(predictions),) * rows)
    both = [(row, rows + row) for row in range(rows)]
    changes = np.array([(table.max(axis=axes) - table.min(axis=axes)).max() for axes in both])
    assert 0 <= table.min() <= table.max() <= GRID
    assert changes.max() <= allowed(bound)
    assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, abs=4)
    if name in MEANS:
        assert bound.sum_of_squares == pytest.approx(1 / rows)


SMALL = {2: [(1, 1), (1, 4), (4, 1), (3, 4), (2, 6), (6, 2)], 3: [(1, 2, 3), (2, 2, 2), (4, 1, 1)]}
SMALL_RANKS = {2: [(1, 1), (4, 1), (1, 4), (2, 2)], 3: [(1, 1, 1), (2, 1, 1)]}
ATTAINED = {"average_precision", "balanced_accuracy", "f1", "fbeta", "fbeta half", "jaccard", "precision"}
ATTAINED |= {
    "recall",
    "specificity",
    "roc_auc",
    "matthews_corrcoef of floor 0.5",
    "matthews_corrcoef of floor 0.1",
}


def check_every_prediction(name, counts):
    metric = METRICS[name]
    bound = metric.bind(np.repeat(np.arange(len(counts)), counts))
    changes = largest_changes(bound, choices(metric, len(counts), bound.rows)[1])
    assert changes.max() <= allowed(bound)
    if name not in OF_RATIOS:  # McDiarmid's condition itself; of a ratio stands another number
        assert np.square(changes / GRID).sum() <= bound.sum_of_squares * (1 + 1e-7)
    if name in ATTAINED:
        assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, abs=3)


@for_each(
    ("name", "counts"),
    [
        (name, counts)
        for name, classes in cases(KEPT)
        for counts in (SMALL if METRICS[name].response == "labels" else SMALL_RANKS)[classes]
    ],
)
def test_no_row_under_its_label_changes_a_score_by_more_than_declared(name, counts):
    check_every_prediction(name, counts)


@pytest.mark.long(*QUERIES)
@for_each(
    ("name", "counts"),
    [
        *(("average_precision", counts) for counts in [(3, 2), (2, 3), (3, 3), (1, 5), (5, 1)]),
        ("roc_auc", (3, 2)),
        *((f"roc_auc_ovr{ending}", (1, 2, 2)) for ending in ("", "_weighted")),
    ],
)
def test_no_row_of_more_rows_changes_their_order_by_more_than_declared(name, counts):
    check_every_prediction(name, counts)


def test_the_declared_changes_of_averages_are_attained_with_three_classes():
    for metric, counts, close in ((f1, [3, 2, 2], 1e-9), (precision, [2, 2, 2], 0.03)):
        stated = {"average": "macro"} | ({"floor": 1} if metric is precision else {})
        bound = metric(**stated).bind(np.repeat([0, 1, 2], counts))
        largest = largest_changes(bound, np.arange(3)).max()
        assert largest == pytest.approx(float(bound.sensitivity) * GRID, rel=close)


@for_each("counts", [(1, 1), (40, 40), (300, 7), (7, 300), (1, 50), (50, 1), (2_000, 1_500)])
def test_the_declared_changes_of_an_average_precision_are_attained(counts):
    negatives, positives = counts
    bound = METRICS["average_precision"].bind(np.repeat([0, 1], counts))
    # a positive passes all others, which take turns with the negatives as long as there are any
    bottom = np.concatenate([-1.0 - np.arange(negatives), -1.5 - np.arange(positives)])
    bottom[-1] = -1e6
    top = bottom.copy()
    top[-1] = 0
    # a negative passes all positives, which outrank all other negatives
    ranked = np.concatenate([np.zeros(negatives), 1 + np.arange(positives)])
    over = ranked.copy()
    over[0] = 1e6
    scores = bound.score(bound.prepare_many([bottom, top, ranked, over])) / GRID
    own, other = scores[1] - scores[0], scores[2] - scores[3]
    assert max(own, other) == pytest.approx(float(bound.sensitivity), rel=1e-8)
    assert positives * own**2 + negatives * other**2 == pytest.approx(bound.sum_of_squares, rel=1e-6)


@pytest.mark.parametrize("name", ["roc_auc_ovr", "roc_auc_ovr_weighted"])
def test_the_declared_changes_of_a_mean_area_are_attained(name):
    counts = np.array([3, 5, 9])
    y = np.repeat([0, 1, 2], counts)
    bound, changes = METRICS[name].bind(y), []
    for code in range(3):
        matrices = np.full((2, 17, 3), 1 / 3)
        row = int(np.flatnonzero(y == code)[0])
        matrices[0, row], matrices[1, row] = np.eye(3)[code], (1 - np.eye(3)[code]) / 2
        up, down = bound.score(bound.prepare_many(matrices)) / GRID
        changes.append(up - down)
    assert max(changes) == pytest.approx(float(bound.sensitivity), abs=1e-8)
    assert counts @ np.square(changes) == pytest.approx(bound.sum_of_squares, abs=1e-7)


# ---- larger holdouts


@pytest.mark.long(*QUERIES)
@for_each("sliced", [False, True])
@for_each(("name", "classes"), [one for one in cases(KEPT) if one[0] not in LOOSE])
def test_climbing_finds_no_larger_change(name, classes, sliced):
    metric = METRICS[name]
    y, batch = problem(metric, classes, rows=40)
    weights = {"sample_weight": np.arange(40) % 3 > 0} if sliced else {}
    bound, seen = metric.bind(y, **weights), np.concatenate(batch)
    draws = seen if metric.response == "scores" else choices(metric, classes, 40)[1]
    rng = np.random.default_rng(classes)
    found = climbed_change(
        bound, lambda rng, rows: draws[rng.integers(0, len(draws), rows)], rng, starts=3, steps=100
    )
    assert 0.1 * allowed(bound) < found <= allowed(bound)


@for_each("counts", [(5_000, 5_000), (9_500, 500), (500, 9_500)])
def test_the_declared_changes_are_those_derived(counts):
    y, (negatives, positives) = np.repeat([0, 1], counts), counts
    rarer = min(counts)
    derived = {
        "balanced_accuracy": Fraction(1, 2 * rarer),
        "f1": Fraction(2, positives + 1),
        "fbeta": Fraction(5, 4 * positives + 1),
        "jaccard": Fraction(1, positives),
        "precision": Fraction(2, positives),
        "precision of floor 0.2": Fraction(5, positives),
        "recall": Fraction(1, positives),
        "roc_auc": Fraction(1, rarer),
        "specificity": Fraction(1, negatives),
    }
    assert {name: METRICS[name].bind(y).sensitivity for name in derived} == derived
    squares = {"roc_auc": 1 / negatives + 1 / positives, "recall": 1 / positives}
    squares["balanced_accuracy"] = squares["roc_auc"] / 4
    for name, expected in squares.items():
        assert METRICS[name].bind(y).sum_of_squares == pytest.approx(expected)


@for_each("rows", [1, 10, 4_099])
@for_each("name", PAIRED)
def test_a_mean_moves_by_one_over_the_rows_and_a_root_by_its_root(name, rows):
    metric = METRICS[name]
    known = {} if metric.response == "values" else {"classes": [0, 1]}
    bound = metric.bind(np.zeros(rows, int), **known)
    if name in MEANS:
        assert (bound.sensitivity, bound.effective_rows) == (Fraction(1, rows), rows)
        assert bound.sum_of_squares == pytest.approx(1 / rows)
    else:
        assert bound.sensitivity == 1 or bound.sensitivity**2 >= Fraction(1, rows)
        assert float(bound.sensitivity) == pytest.approx(1 / math.sqrt(rows))
        assert bound.sum_of_squares == pytest.approx(2 / rows)


def test_a_metric_of_one_class_counts_its_rows():
    y = np.repeat([0, 1], [70, 30])
    expected = {
        "recall": ("binomial", 30),
        "specificity": ("binomial", 70),
        "f1": ("bounded-difference", 100),
    }
    expected |= {"roc_auc": ("bounded", 30), "balanced_accuracy": ("bounded", 60)}
    for name, found in expected.items():
        bound = METRICS[name].bind(y)
        assert (bound.family, bound.effective_rows, bound.rows) == (*found, 100)
    sliced = recall().bind(y, sample_weight=np.arange(100) >= 60)
    assert (sliced.family, sliced.effective_rows, sliced.counted_rows) == ("binomial", 30, 40)


def test_a_correlation_needs_its_floor():
    """A single row predicted positive moves it by about 1/sqrt(n): the squares do not sum to less for more rows."""
    for rows in (100, 1_000, 10_000):
        y = np.repeat([0, 1], [rows // 2, rows // 2])
        assert matthews_corrcoef(floor=1e-9).bind(y).sum_of_squares > 0.2
        assert matthews_corrcoef(floor=0.5).bind(y).sum_of_squares < 2.5 / rows
        assert matthews_corrcoef(floor=0.5).bind(y).sensitivity * 2 < 3.1 / rows


def test_a_small_root_is_not_lost_to_rounding():
    for error in (1e-3, 1e-5, 1e-7):
        bound = METRICS["rmse"].bind(np.full(100, 0.5))
        units = bound.score(bound.prepare(np.full(100, 0.5 + error))[None])[0]
        assert units / GRID * (HIGH - LOW) == pytest.approx(error, abs=1e-9 + 8e-8)


def test_by_rows_says_which_metrics_are_means_over_rows():
    for name, classes in cases():
        y, _ = problem(METRICS[name], classes)
        is_mean = name in MEANS | {"recall", "specificity"}
        assert METRICS[name].bind(y).by_rows == is_mean
    for weights in (np.arange(60) % 2, 1 + np.arange(60) % 2, 1 + np.arange(60)):
        assert accuracy().bind(np.arange(60) % 2, sample_weight=weights).by_rows


@settings(max_examples=examples(60), deadline=None)
@given(
    y=st.lists(st.floats(-5, 5), min_size=2, max_size=9),
    replacement=st.tuples(st.floats(-5, 5), st.floats(-10, 10)),
    data=st.data(),
)
def test_a_loss_of_ones_own_moves_no_further_however_it_breaks_its_bounds(y, replacement, data):
    def loss(targets, predictions):
        error = np.clip(np.abs(targets - predictions), 0, 2)  # the trial on the targets themselves is fine
        return np.where(predictions > 5, np.nan, error * np.where(predictions < -5, 1e300, 1))

    first = np.array([y, data.draw(st.lists(st.floats(-10, 10), min_size=len(y), max_size=len(y)))])
    second, row = first.copy(), data.draw(st.integers(0, len(y) - 1))
    second[:, row] = replacement
    for gain in (False, True):
        metric = Metric(name="own", lower=0, upper=2, greater_is_better=gain, loss=loss)
        bounds = [metric.bind(targets) for targets, _ in (first, second)]
        before, after = (
            int(bound.score(bound.prepare(given)[None])[0])
            for bound, (_, given) in zip(bounds, (first, second), strict=True)
        )
        assert abs(after - before) <= allowed(bounds[0])
        assert 0 <= after <= GRID


def test_the_smallest_beta_moves_most_by_a_negative_row():
    bound = fbeta(beta=0.1).bind(np.repeat([0, 1], [6, 2]))
    assert largest_changes(bound, np.array([0, 1])).max() <= allowed(bound)
