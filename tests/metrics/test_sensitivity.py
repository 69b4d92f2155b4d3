"""What one row can change: never more than declared, and for some holdout as much as declared."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples

from reusable_holdout.metrics import GRID, Metric, log_loss, mae, mse, resolve_metric

LABEL_FREE = {  # neighbours may differ in the label, too
    "accuracy": (resolve_metric("accuracy"), "labels"),
    "zero_one_loss": (resolve_metric("zero_one_loss"), "labels"),
    "brier": (resolve_metric("brier"), "probabilities"),
    "log_loss": (resolve_metric("log_loss"), "probabilities"),
    "log_loss with another clip": (log_loss(clip=0.3), "probabilities"),
    "mae": (mae(lower=-1, upper=3), "values"),
    "mse": (mse(lower=-1, upper=3), "values"),
}
LABEL_KEPT = {
    "balanced_accuracy": (resolve_metric("balanced_accuracy"), "labels"),
    "roc_auc": (resolve_metric("roc_auc"), "scores"),
}


@st.composite
def probabilities(draw, rows, classes):
    """Rows of the simplex, corners among them; for two classes the last column."""
    weights = draw(
        st.lists(
            st.lists(st.integers(0, 3), min_size=classes, max_size=classes), min_size=rows, max_size=rows
        )
    )
    matrix = np.array([weight if any(weight) else [1] * classes for weight in weights], float)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix[:, 1] if classes == 2 else matrix


@st.composite
def neighbours(draw, response, *, keep_label):
    """Labels, predictions and classes, twice; the two differ in one row."""
    rows = draw(st.integers(4, 12))
    classes = 2 if response == "scores" else draw(st.integers(2, 4))
    if response == "values":
        y = np.array(draw(st.lists(st.floats(-1, 3), min_size=rows, max_size=rows)))
    else:  # every class twice, so that class-conditional metrics are defined
        extra = draw(st.lists(st.integers(0, classes - 1), max_size=rows))
        y = np.array([*range(classes), *range(classes), *extra])
        rows = len(y)
    numbers = {
        "labels": st.integers(0, classes - 1),
        "scores": st.integers(-2, 2).map(float) | st.floats(-1e300, 1e300),
        "values": st.floats(-5, 5),
    }
    if response == "probabilities":
        both = [draw(probabilities(rows, classes)) for _ in range(2)]
    else:
        both = [np.array(draw(st.lists(numbers[response], min_size=rows, max_size=rows))) for _ in range(2)]
    row = draw(st.integers(0, rows - 1))
    predictions, replaced = both[0], both[0].copy()
    replaced[row] = both[1][row]
    other = y.copy()
    if not keep_label:
        other[row] = draw(st.floats(-1, 3)) if response == "values" else draw(st.integers(0, classes - 1))
    return (y, predictions), (other, replaced), row, None if response == "values" else range(classes)


def units(metric, y, predictions, classes):
    bound = metric.bind(y, classes=classes)
    return bound, int(bound.score(bound.prepare(predictions)[None])[0])


@pytest.mark.parametrize("name", LABEL_FREE)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_replacing_a_row_with_its_label_moves_the_score_by_at_most_the_sensitivity(name, data):
    metric, response = LABEL_FREE[name]
    first, second, _, classes = data.draw(neighbours(response, keep_label=False))
    bound, before = units(metric, *first, classes)
    _, after = units(metric, *second, classes)
    assert abs(after - before) <= math.ceil(bound.sensitivity * GRID)
    assert 0 <= after <= GRID


@pytest.mark.parametrize("name", LABEL_KEPT)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_replacing_a_row_under_its_label_moves_the_score_by_at_most_the_sensitivity(name, data):
    metric, response = LABEL_KEPT[name]
    first, second, row, classes = data.draw(neighbours(response, keep_label=True))
    bound, before = units(metric, *first, classes)
    _, after = units(metric, *second, classes)
    y = first[0]
    own = Fraction(1, int(np.sum(y == y[row])) * (len(classes) if name == "balanced_accuracy" else 1))
    assert own <= bound.sensitivity
    assert abs(after - before) <= math.ceil(own * GRID)
    assert 0 <= after <= GRID


LABELS = np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1])  # 3 and 8 rows: the classes' own changes differ
THREE = np.array([0, 1, 2, 2, 1, 2, 2, 0, 2, 2, 2])
REAL = np.where(LABELS == 1, 3.0, -1.0)
CORNERS = np.eye(3)
EXTREMES = {  # targets, the best predictions, and what is worst for each row
    "accuracy": (resolve_metric("accuracy"), LABELS, LABELS, 1 - LABELS),
    "zero_one_loss": (resolve_metric("zero_one_loss"), LABELS, LABELS, 1 - LABELS),
    "balanced_accuracy": (resolve_metric("balanced_accuracy"), LABELS, LABELS, 1 - LABELS),
    "balanced_accuracy of three": (resolve_metric("balanced_accuracy"), THREE, THREE, (THREE + 1) % 3),
    "brier": (resolve_metric("brier"), LABELS, LABELS, 1 - LABELS),
    "brier of three": (resolve_metric("brier"), THREE, CORNERS[THREE], CORNERS[(THREE + 1) % 3]),
    "log_loss": (log_loss(), LABELS, LABELS, 1 - LABELS),
    "log_loss of three": (log_loss(clip=0.2), THREE, CORNERS[THREE], CORNERS[(THREE + 1) % 3]),
    "roc_auc": (resolve_metric("roc_auc"), LABELS, LABELS, 2 - 3 * LABELS),
    "mae": (mae(lower=-1, upper=3), REAL, REAL, 2 - REAL),
    "mse": (mse(lower=-1, upper=3), REAL, REAL, 2 - REAL),
}


@for_each("name", EXTREMES)
def test_the_declared_changes_are_attained(name):
    metric, y, best, worst = EXTREMES[name]
    bound = metric.bind(y)
    spoiled = np.stack([np.where(np.arange(len(y)) == row, worst.T, best.T).T for row in range(len(y))])
    reference = bound.score(bound.prepare(best)[None])[0]
    changes = np.abs(bound.score(bound.prepare_many(spoiled)) - reference) / GRID
    assert reference == (GRID if metric.greater_is_better else 0)
    assert changes.max() == pytest.approx(float(bound.sensitivity), abs=2 / GRID)
    assert np.square(changes).sum() == pytest.approx(bound.sum_of_squares, abs=len(y) * 4 / GRID)


def test_a_balanced_accuracy_moves_more_by_a_row_of_the_rarer_class():
    bound = resolve_metric("balanced_accuracy").bind([0] * 3 + [1] * 8)
    assert bound.sensitivity == Fraction(1, 2 * 3)
    assert bound.sum_of_squares == pytest.approx((1 / 3 + 1 / 8) / 4)


def test_an_area_moves_more_by_a_row_of_the_rarer_class():
    bound = resolve_metric("roc_auc").bind([0] * 3 + [1] * 8)
    assert bound.sensitivity == Fraction(1, 3)
    assert bound.sum_of_squares == pytest.approx(1 / 3 + 1 / 8)


@for_each("name", LABEL_FREE)
@for_each("rows", [1, 2, 3, 10, 4_099])
def test_a_mean_moves_by_one_over_the_rows(name, rows):
    metric, _ = LABEL_FREE[name]
    bound = metric.bind(np.zeros(rows, int), classes=None if metric.response == "values" else [0, 1])
    assert bound.sensitivity == Fraction(1, rows)
    assert bound.sum_of_squares == pytest.approx(1 / rows)


@settings(max_examples=examples(60), deadline=None)
@given(
    y=st.lists(st.floats(-10, 10), min_size=2, max_size=9),
    replacement=st.tuples(st.floats(-10, 10), st.floats(-10, 10)),
    data=st.data(),
)
def test_a_loss_of_ones_own_moves_no_further_however_it_breaks_its_bounds(y, replacement, data):
    def loss(targets, predictions):
        error = np.clip(np.abs(targets - predictions), 0, 2)  # the trial on the targets themselves is fine
        return np.where(predictions > 5, np.nan, error * np.where(predictions < -5, 1e300, 1))

    metric = Metric(name="own", lower=0, upper=2, greater_is_better=False, loss=loss)
    small = Metric(name="own", lower=0, upper=2, greater_is_better=True, loss=loss)
    y = np.clip(np.array(y), -5, 5)
    predictions = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=len(y), max_size=len(y))))
    other_y, other = y.copy(), predictions.copy()
    row = data.draw(st.integers(0, len(y) - 1))
    other_y[row], other[row] = np.clip(replacement[0], -5, 5), replacement[1]
    for one in (metric, small):
        bound, before = units(one, y, predictions, None)
        _, after = units(one, other_y, other, None)
        assert abs(after - before) <= math.ceil(bound.sensitivity * GRID)
        assert 0 <= after <= GRID
