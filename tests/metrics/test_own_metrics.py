"""Metrics of the user's own: a mean of losses, or a statistic with declared differences."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics import GRID, Metric

SECRET = 48.151623
Y = np.array([1.0, 2.0, SECRET, 4.0])


def own(**changes):
    return Metric(**{"name": "own", "lower": 0, "upper": 1, "greater_is_better": True} | changes)


def score(bound, predictions):
    return bound.score(bound.prepare(predictions)[None])[0] / GRID


def test_bounds_normalise_the_loss():
    metric = own(lower=-2, upper=6, loss=lambda y, p: np.clip(p - y, -2, 6))
    assert metric.measure(Y, Y + 2) == 2
    assert score(metric.bind(Y), Y + 2) == 0.5


def test_a_loss_of_labels_sees_the_labels_themselves():
    seen = []
    metric = own(response="labels", family="binomial", loss=lambda y, p: seen.append((y, p)) or y == p)
    y = np.array(["no", "yes", "yes"])
    assert score(metric.bind(y), ["no", "no", "yes"]) == pytest.approx(2 / 3)
    assert [list(each) for each in seen[-1]] == [["no", "yes", "yes"], ["no", "no", "yes"]]
    assert metric.family == "binomial"


def test_a_loss_of_probabilities_sees_a_matrix_or_the_last_column():
    shapes = []
    metric = own(response="probabilities", loss=lambda y, p: shapes.append(p.shape) or np.zeros(len(y)))
    bound = metric.bind([0, 1, 1])
    bound.score(bound.prepare_many([[0.5] * 3]))
    bound = metric.bind([0, 1, 2])
    bound.score(bound.prepare(np.full((3, 3), 1 / 3))[None])
    assert shapes == [(3,), (3,), (3, 3), (3, 3)]


def test_what_a_loss_is_shown_cannot_be_written_to():
    def loss(y, p):
        assert not y.flags.writeable
        assert not p.flags.writeable
        return np.zeros(len(y))

    for response, y in [("values", Y), ("labels", [0, 1, 1, 0]), ("scores", [0, 1, 1, 0])]:
        bound = own(response=response, loss=loss).bind(y)
        prepared = bound.prepare([0, 1, 1, 0])
        bound.score(prepared[None])
        assert prepared.flags.writeable


@for_each(
    ("gain", "given", "kept"),
    [(True, np.nan, 0), (False, np.nan, 1), (True, 1e300, 1), (True, -np.inf, 0), (False, np.inf, 1)],
)
def test_a_loss_out_of_bounds_is_moved_to_them_and_one_that_is_no_number_is_the_worst(gain, given, kept):
    metric = own(greater_is_better=gain, loss=lambda y, p: np.where(p == y, 0.5, given))
    assert score(metric.bind(Y), np.add(Y, [0, 0, 0, 1])) == (0.5 * 3 + kept) / 4
    assert metric.measure(Y, np.add(Y, [0, 0, 0, 1])) == (0.5 * 3 + kept) / 4


def test_a_binomial_loss_that_lies_between_goes_to_the_nearer_bound():
    metric = own(family="binomial", loss=lambda y, p: np.clip(p - y, 0, 1))
    assert score(metric.bind(Y), np.add(Y, [0.25, 0.5, 0.75, 1])) == 0.75


def test_a_loss_may_give_booleans_a_list_or_a_series():
    for convert in (list, pd.Series, lambda losses: losses.astype(object), lambda losses: losses):
        metric = own(family="binomial", loss=lambda y, p, convert=convert: convert(np.asarray(y == p)))
        assert metric.measure(Y, [1, 2, 3, 4]) == 0.75


def test_a_statistic_has_the_sensitivity_its_differences_declare():
    metric = own(
        upper=4, statistic=lambda y, p: float(np.clip(np.median(p), 0, 4)), differences=[1, 2, 0, 0.5]
    )
    bound = metric.bind(Y)
    assert metric.family == "bounded-difference"
    assert bound.sensitivity == Fraction(1, 2)
    assert bound.sum_of_squares == pytest.approx((1 + 4 + 0.25) / 16)
    assert score(bound, [1, 1, 1, 3]) == 0.25
    assert metric.measure(Y, [1, 1, 1, 3]) == 1


def test_differences_beyond_the_range_count_as_the_range():
    assert own(statistic=lambda y, p: 0.5, differences=[9, 9, 9, 9]).bind(Y).sensitivity == 1


@for_each(
    ("gain", "given", "kept"),
    [(True, np.nan, 0), (False, np.nan, 1), (True, 7, 1), (True, -np.inf, 0), (True, 1 / 3, 1 / 3)],
)
def test_a_statistic_out_of_bounds_is_moved_to_them_and_floored_on_the_grid(gain, given, kept):
    metric = own(greater_is_better=gain, statistic=lambda y, p: given, differences=[1] * 4)
    assert score(metric.bind(Y), Y) == math.floor(kept * GRID) / GRID
    assert metric.measure(Y, Y) == kept


def failing(y, p):
    """Fine in the trial, where predictions are the labels; later it quotes a label."""
    if not np.array_equal(y, p):
        raise KeyError(f"row 2 is {y[2]}")
    return np.zeros(len(y))


def of_the_wrong_shape(y, p):
    return np.zeros(len(y)) if np.array_equal(y, p) else y[:2]


class Rude:
    """Refuses to become an array, in words that quote the holdout."""

    def __array__(self, *_, **__):
        raise RuntimeError(str(SECRET))


BROKEN = {
    "raises": failing,
    "gives the wrong shape": of_the_wrong_shape,
    "gives text": lambda y, p: np.zeros(4) if np.array_equal(y, p) else [str(y[2])] * 4,
    "gives None": lambda y, p: np.zeros(4) if np.array_equal(y, p) else None,
    "gives ragged lists": lambda y, p: np.zeros(4) if np.array_equal(y, p) else [[1], [1, 2], [], []],
    "gives complex numbers": lambda y, p: np.zeros(4) if np.array_equal(y, p) else y * 1j,
    "gives huge numbers": lambda y, p: np.zeros(4) if np.array_equal(y, p) else [10**400] * 4,
    "gives a rude object": lambda y, p: np.zeros(4) if np.array_equal(y, p) else Rude(),
}


def in_one_number(function):
    """The same fault in a statistic."""

    def statistic(y, p):
        given = function(y, p)
        return 0.0 if isinstance(given, np.ndarray) and np.array_equal(given, np.zeros(4)) else given

    return statistic


def assert_withheld(error):
    assert type(error) in {InputError, ModelError}
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not any(secret in str(error) for secret in (str(SECRET), "48", "row 2"))
    assert str(error).count(";") >= 2


@for_each("fault", BROKEN)
@for_each("kind", ["loss", "statistic"])
def test_what_a_function_says_on_the_holdout_is_withheld(fault, kind):
    function = {"loss": BROKEN[fault]} if kind == "loss" else {
        "statistic": in_one_number(BROKEN[fault]), "differences": [1] * 4
    }  # fmt: skip
    metric = own(**function)
    bound = metric.bind(Y)
    for ask in (
        lambda: bound.score(bound.prepare([9, 9, 9, 9])[None]),
        lambda: metric.measure(Y, [9, 9, 9, 9]),
    ):
        caught = refuses(ModelError, "", ask)
        assert_withheld(caught)


def quoting(y, *_):
    raise ValueError(f"row 2 is {y[2]}")


@for_each(
    "functions",
    [
        {"loss": quoting},
        {"statistic": quoting, "differences": [1] * 4},
        {"statistic": lambda y, p: 0.5, "differences": quoting},
        {"statistic": lambda y, p: 0.5, "differences": lambda y: y[:2]},
        {"statistic": lambda y, p: 0.5, "differences": lambda y: -y},
        {"statistic": lambda y, p: 0.5, "differences": lambda y: y * np.nan},
        {"statistic": lambda y, p: 0.5, "differences": lambda y: 0 * y},
        {"statistic": lambda y, p: 0.5, "differences": lambda y: [str(y[2])] * 4},
        {"statistic": lambda y, p: 0.5, "differences": [1, 2, 3]},
        {"statistic": lambda y, p: 0.5, "differences": ["a", "b", "c", "d"]},
        {"statistic": lambda y, p: 0.5, "differences": 1.0},
        {"statistic": lambda y, p: y, "differences": [1] * 4},
        {"statistic": lambda y, p: None, "differences": [1] * 4},
        {"loss": lambda y, p: np.zeros(3)},
        {"loss": lambda y, p: 0.5},
        {"loss": lambda y, p: [str(y[2])] * 4},
        {"loss": lambda y, p: Rude()},
        {"loss": lambda y: y},
    ],
)
def test_a_function_that_cannot_be_right_is_found_when_binding_and_withheld(functions):
    caught = refuses((InputError, ModelError), "", own(**functions).bind, Y)
    assert_withheld(caught)


@for_each(
    "loss", [lambda y, p: np.full(4, np.nan), lambda y, p: (y == p) * 1.5, lambda y, p: -1.0 * (y == p)]
)
def test_a_loss_of_classes_must_keep_to_its_bounds_on_made_up_labels(loss):
    with pytest.raises(InputError, match=r"within \[0, 1\]; in a trial it did not"):
        own(response="labels", loss=loss).bind([0, 1, 1, 0])
    own(loss=loss).bind(Y)  # real targets that are made up say nothing of what it gives on the true ones


@for_each("y", [Y, np.stack([Y, Y], axis=1), [0, 1, 1, 0], ["a", "b", "b", "a"], np.eye(4, dtype=int)])
def test_functions_are_tried_on_made_up_labels_and_see_the_true_ones_when_they_are_asked(y):
    """What they printed, warned of or raised on the true ones would be said before anything was paid for."""
    seen = []

    def loss(labels, told):
        seen.append(np.array(labels))
        return np.zeros(len(labels))

    y = np.asarray(y)
    response = "values" if y.dtype.kind == "f" else "labels"
    bound, other = (own(response=response, loss=loss).bind(one) for one in (y, y[::-1]))
    assert np.array_equal(seen[0], seen[1])
    assert seen[0].shape == y.shape
    bound.score(bound.prepare(y)[None])
    assert np.array_equal(seen[2], y)
    other.score(other.prepare(y)[None])
    assert np.array_equal(seen[3], y[::-1])


@for_each("y", [Y, np.stack([Y, Y], axis=1), np.eye(4, dtype=int)])
def test_differences_are_given_made_up_labels_where_nothing_is_public_of_the_true_ones(y):
    """Else a plan would print the largest target."""
    response = "values" if y.dtype.kind == "f" else "labels"
    metric = own(
        response=response,
        upper=1e6,
        statistic=lambda y, p: 0.0,
        differences=lambda y: 1.0 + y.reshape(4, -1).max(axis=1),
    )
    assert metric.bind(y).numbers == metric.bind(np.flip(y) * 0).numbers


def test_an_exit_of_a_function_is_withheld_like_an_error_and_an_interrupt_is_the_users():
    def leaving(error):
        def loss(y, p):
            raise error

        return own(loss=loss)

    caught = refuses(ModelError, "", leaving(SystemExit(str(SECRET))).bind, Y)
    assert_withheld(caught)
    refuses(KeyboardInterrupt, "", leaving(KeyboardInterrupt()).bind, Y)


def test_a_loss_with_labels_of_another_kind_raises_no_words_of_numpys():
    caught = refuses(ModelError, "", own(response="labels", loss=lambda y, p: y - p).bind, ["a", "b"])
    assert_withheld(caught)
