"""What does not fit is refused in words that say what to do, and that no private label can change."""

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import for_each, refuses
from metrics.problems import METRICS, OF_TWO_CLASSES, classes_of

from reusable_holdout import metrics
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, mae, mse, resolve_metric

ROWS = 6
TWO = np.array([0, 1, 1, 0, 0, 1])
THREE = np.array([0, 1, 2, 0, 1, 2])
REAL = np.array([0.5, 1.5, 2.5, 0.25, 1.25, 2.25])
TEXT = np.array(["ham", "spam"])[TWO]
GOOD = {"accuracy": TWO, "brier": TWO / 2, "roc_auc": TWO - 0.5, "mae": REAL}  # one metric for each response
LABELS, PROBABILITIES, SCORES, ALL = ["accuracy"], ["brier"], ["roc_auc"], list(GOOD)


def metric_called(name):
    return mae(lower=0, upper=3) if name == "mae" else resolve_metric(name)


def but(values, new, dtype=float):
    """The values with one of them replaced."""
    changed = np.array(values, dtype)
    changed[2] = new
    return changed


class Bad(NamedTuple):
    """Predictions that do not fit some metrics."""

    name: str
    words: str
    metrics: list[str]
    predictions: Any  # or a function of good ones


PREDICTIONS = [
    Bad("NaN", "NaN", ALL, lambda good: but(good, np.nan)),
    Bad("positive infinity", "infinity", ALL, lambda good: but(good, np.inf)),
    Bad("a long double beyond float64", "finite", [*SCORES, "mae"], lambda good: but(good, "1e4000", "g")),
    Bad("None inside", "missing", ALL, lambda good: [None, *good.tolist()[1:]]),
    Bad("pandas NA", "missing", ALL, lambda good: pd.Series([pd.NA, *good.tolist()[1:]])),
    Bad("polars null", "NaN|missing", ALL, lambda good: pl.Series([None, *good.tolist()[1:]])),
    Bad("masked", "masked", ALL, lambda good: np.ma.masked_array(good, np.arange(ROWS) == 2)),
    Bad("too short", r"\(6,\); got \(5,\)", ALL, lambda good: good[:-1]),
    Bad("too long", r"\(6,\); got \(7,\)", ALL, lambda good: np.append(good, 1)),
    Bad("empty", r"\(6,\); got \(0,\)", ALL, []),
    Bad("nothing", "got None", ALL, None),
    Bad("a number", r"got \(\)", ALL, 1),
    Bad("a word", "got text", ALL, "ham"),
    Bad("a dictionary", "got dict", ALL, {"predictions": TWO}),
    Bad("a generator", "got generator", ALL, lambda good: (x for x in good)),
    Bad("three columns", r"\(6,\); got \(6, 3\)", ALL, lambda good: np.stack([good] * 3, axis=1)),
    Bad("two columns", "one (number|label)", [*LABELS, *SCORES, "mae"], lambda good: np.stack([good] * 2, axis=1)),
    Bad("a row", r"got \(1, 6\)", ALL, lambda good: good[None]),
    Bad("three dimensions", r"got \(6, 1, 1\)", ALL, lambda good: good[:, None, None]),
    Bad("ragged", "rectangular", ALL, [[0, 1], [0]] * 3),
    Bad("complex", "complex", ALL, lambda good: good.astype(complex)),
    Bad("complex objects", "real numbers", ALL, lambda good: [1j, *good.tolist()[1:]]),
    Bad("dates", "datetime", ALL, lambda good: good.astype(int).astype("datetime64[s]")),
    Bad("bytes", "bytes|dtype", ALL, lambda good: good.astype("S3")),
    Bad("objects", "all text", ALL, [object()] * ROWS),
    Bad("numbers and text", "all text", ALL, ["1", 0, 1, 0, 0, 1]),
    Bad("text for numbers", "got text", ALL, lambda good: good.astype(str)),
    Bad("huge numbers", "64-bit", ALL, [2**70, 0, 1, 0, 0, 1]),
    Bad("an unknown label", "among the classes 0, 1; got 2;", LABELS, but(TWO, 2, int)),
    Bad("a negative label", "among the classes 0, 1; got -1;", LABELS, but(TWO, -1, int)),
    Bad("a label of 64 bits", "got 9223372036854775808", LABELS, but(TWO, 2**63, "u8")),
    Bad("a large float label", "got 1e", LABELS, but(TWO, 1e300)),
    Bad("a label between", "got 0.5", LABELS, but(TWO, 0.5)),
    Bad("a negative probability", r"\[0, 1\]; got -0.1", PROBABILITIES, but(TWO, -0.1)),
    Bad("a large probability", r"\[0, 1\]; got 1.5", PROBABILITIES, but(TWO, 1.5)),
    Bad("two columns that sum to 2", "sum to 1 within 1e-6; got 2;", PROBABILITIES, np.ones((ROWS, 2))),
    Bad("a matrix with NaN", "finite", PROBABILITIES, np.full((ROWS, 2), np.nan)),
    Bad("a transposed matrix", r"got \(2, 6\)", PROBABILITIES, np.full((2, ROWS), 0.5)),
]  # fmt: skip
CASES = [pytest.param(name, bad, id=f"{name}-{bad.name}") for bad in PREDICTIONS for name in bad.metrics]


def refusal(error, act):
    """The message, which must say what must hold, what came and what to do."""
    caught = refuses(error, "", act)
    assert type(caught) is error
    message = str(caught)
    assert " must " in message
    assert "; got " in message
    assert message.count(";") >= 2, message
    return message


@for_each(("name", "bad"), CASES)
def test_predictions_that_do_not_fit_are_refused_in_words_that_depend_on_no_label(name, bad):
    labels = REAL if name == "mae" else TWO
    messages = set()
    for y in (labels, labels[::-1].copy(), np.roll(labels, 1)):  # the classes and their counts are public
        bound = metric_called(name).bind(y)
        predictions = [
            bad.predictions(GOOD[name]) if callable(bad.predictions) else bad.predictions for _ in range(2)
        ]
        message = refusal(
            InputError, lambda bound=bound, predictions=predictions: bound.prepare(predictions[0])
        )
        batch = refusal(
            InputError,
            lambda bound=bound, predictions=predictions: bound.prepare_many([GOOD[name], predictions[1]]),
        )
        assert batch == f"predictions[1]: {message}"
        messages.add(message)
    assert len(messages) == 1
    assert re.search(bad.words, *messages)


MATRIX = np.full((ROWS, 3), 1 / 3)
MATRICES = {
    "one column": (MATRIX[:, 0], r"\(6, 3\); got \(6,\)"),
    "two columns": (MATRIX[:, :2], r"\(6, 3\); got \(6, 2\)"),
    "four columns": (np.full((ROWS, 4), 1 / 4), r"\(6, 3\); got \(6, 4\)"),
    "a sum below 1": (MATRIX * 0.9, "sum to 1 within 1e-6; got 0.9;"),
    "a sum a little above 1": (MATRIX + 1e-6, "sum to 1 within 1e-6; got 1;|got 1.00000"),
    "negative ones that sum to 1": (np.tile([1.5, -0.5, 0.0], (ROWS, 1)), r"\[0, 1\]; got -0.5"),
    "NaN": (np.full((ROWS, 3), np.nan), "finite"),
    "text": (MATRIX.astype(str), "got text"),
    "transposed": (MATRIX.T, r"got \(3, 6\)"),
    "labels": (THREE, r"\(6, 3\); got \(6,\)"),
}


@for_each("case", MATRICES)
def test_matrices_of_probabilities_that_do_not_fit_are_refused(case):
    predictions, words = MATRICES[case]
    messages = {
        refusal(InputError, lambda y=y: resolve_metric("brier").bind(y).prepare(predictions))
        for y in (THREE, THREE[::-1].copy())
    }
    assert re.search(words, *messages)


BATCHES = {
    "an empty list": ([], "at least one"),
    "an empty array": (np.empty((0, ROWS)), "at least one"),
    "one query": (TWO, r"predictions\[0\]: .* got \(\)"),
    "a transposed batch": (
        list(np.stack([TWO] * 2, axis=1)),
        "one entry for each model: transpose it, or pass",
    ),
    "a transposed list": (
        np.stack([TWO] * 2, axis=1).tolist(),
        "one entry for each model: transpose it, or pass",
    ),
    "one flat list": (TWO.tolist(), r"predictions\[0\]: .* got \(\)"),
    "a wrong length": (np.zeros((3, ROWS + 1)), r"predictions\[0\]: .* got \(7,\)"),
    "too many dimensions": (np.zeros((3, ROWS, 2)), r"predictions\[0\]: .* got \(6, 2\)"),
    "a stranger in an array": (np.stack([TWO, but(TWO, 7, int)]), r"predictions\[1\]: .* got 7;"),
    "a NaN in an array": (np.stack([TWO, TWO, but(TWO, np.nan)]), r"predictions\[2\]: .* NaN"),
    "text in an array": (np.stack([TEXT, TEXT]), r"predictions\[0\]: .* got text"),
    "a mixture in an object array": (np.array([TWO, TEXT], dtype=object), r"predictions\[1\]: .* got text"),
}


@for_each("case", BATCHES)
def test_batches_that_do_not_fit_are_refused(case):
    batch, words = BATCHES[case]
    bound = resolve_metric("accuracy").bind(TWO)
    message = refusal(InputError, lambda: bound.prepare_many(batch))
    assert re.search(words, message)


SECRET = 48_151_623
SECRETS = (str(SECRET), "48.15", "XYZZY", "4.8")


OF_CLASSES = [name for name, metric in METRICS.items() if 2 in classes_of(metric)]


class Labels(NamedTuple):
    """Private labels that do not fit, and the metric they do not fit."""

    name: str
    words: str
    metric: str | Metric
    y: Any
    classes: Any = None


TARGETS = [
    Labels("no rows", "at least 1", "accuracy", []),
    Labels("no targets", "at least 1", mae(lower=0, upper=1), []),
    Labels("nothing", "got None", "accuracy", None),
    Labels("a number", "shape", "accuracy", SECRET),
    Labels("two columns", "shape", "accuracy", np.full((3, 2), SECRET)),
    Labels("ragged", "rectangular", "accuracy", [[SECRET], [SECRET, 1]]),
    Labels("NaN", "whole numbers", "accuracy", [SECRET, np.nan, 1]),
    Labels("infinity", "whole numbers", "accuracy", [SECRET, np.inf, 1]),
    Labels("None", "missing", "accuracy", ["XYZZY", None, "b"]),
    Labels("pandas NA", "missing", "accuracy", pd.Series([SECRET, pd.NA, 1], dtype="Int64")),
    Labels("masked", "masked", "accuracy", np.ma.masked_array([SECRET, 1, 2], [False, True, False])),
    Labels("fractions", "whole numbers", "accuracy", [48.1516, 1, 2]),
    Labels("mixed", "all text", "accuracy", ["XYZZY", SECRET]),
    Labels("complex", "complex", "accuracy", [SECRET + 1j, 2]),
    Labels("dates", "datetime", "accuracy", np.array([SECRET, 1], "datetime64[s]")),
    Labels("bytes", "bytes", "accuracy", [b"XYZZY", b"b"]),
    Labels("64 bits without a sign", "64-bit", "accuracy", np.array([2**63 + SECRET, 1], "u8")),
    Labels("huge", "64-bit", "accuracy", [SECRET * 10**30, 1]),
    Labels("huge floats", "64-bit", "accuracy", [4.815e300, 1]),
    *(Labels(f"one class for {name}", "two classes; got [01]", name, [SECRET] * 4) for name in OF_CLASSES),
    *(
        Labels(f"one of two classes for {name}", "two classes; got 1", name, [SECRET] * 4, [1, SECRET])
        for name in OF_CLASSES
        if METRICS[name].family == "bounded-difference" or METRICS[name].name in {"balanced_accuracy", "roc_auc"}
    ),
    *(
        Labels(f"three classes for {name}", "exactly two classes; got 3", name, [SECRET, 1, 2])
        for name in OF_CLASSES
        if METRICS[name].name in OF_TWO_CLASSES
    ),
    Labels("a class that is not named", "every class", "accuracy", [SECRET, 1, 2], [1, 2]),
    Labels("classes of another kind", "like the labels", "accuracy", [SECRET, 1, 2], ["1", "2"]),
    Labels("no classes", "at least two classes; got 0", "accuracy", [SECRET, 1], []),
    Labels("one class named", "at least two classes; got 1", "accuracy", [SECRET, SECRET], [SECRET]),
    Labels("classes for values", "leave it out", mae(lower=0, upper=1), [0.1, 1], [0, 1]),
    Labels("NaN targets", "finite", mae(lower=0, upper=99), [48.15, np.nan]),
    Labels("complex targets", "complex", mse(lower=0, upper=99), [48.15j, 1]),
]  # fmt: skip


@for_each("case", TARGETS, ids=[case.name for case in TARGETS])
def test_private_labels_that_do_not_fit_are_refused_and_not_quoted(case):
    metric = METRICS[case.metric] if isinstance(case.metric, str) else case.metric
    message = refusal(InputError, lambda: metric.bind(case.y, classes=case.classes))
    assert re.search(case.words, message)
    assert not any(secret in message for secret in SECRETS)
    caught = refuses(InputError, "", metric.measure, case.y, [0], classes=case.classes)
    assert caught.__cause__ is None
    assert caught.__context__ is None


@for_each("y", [[48.15, 0.5], [-48.15, 0.5]])
@for_each("factory", [mae, mse])
def test_only_rows_that_are_no_secret_are_told_that_targets_lie_outside(factory, y):
    metric = factory(lower=0, upper=1)
    message = refusal(InputError, lambda: metric.measure(y, [0, 0]))
    assert "must lie in [0, 1]; got targets outside" in message
    assert not any(secret in message for secret in SECRETS)
    metric.bind(y)


def test_more_rows_than_integers_can_sum_are_refused():
    message = refusal(
        InputError, lambda: resolve_metric("accuracy").bind(np.broadcast_to(np.uint8(0), 1 << 31))
    )
    assert "2**31" in message


NOT_BOUNDS = [(1, 1), (2, 1), (np.nan, 1), (0, np.inf), ("0", "1"), (None, 1), (0, 10**400), (-1e300, 1e300)]
NOT_BOUNDS += [(0j, 1), ([0], 1)]
NEED_BOUNDS = [
    mae, mse, metrics.rmse, metrics.r2, metrics.quantile_loss, metrics.score,
]  # fmt: skip
NOT_SHARES = [0, -0.1, 1.01, np.nan, np.inf, "0.5", None, 1j, 10**400]
NUMBERS = {  # of which argument, what it is called with besides, and what it may not be
    "clip": (metrics.log_loss, {}, [*NOT_SHARES, 1, True]),
    "beta": (metrics.fbeta, {}, [0, 0.09, 11, np.inf, "1", None]),
    "quantile": (metrics.quantile_loss, {"lower": 0, "upper": 1}, [*NOT_SHARES, 1]),
    "variance": (metrics.r2, {"lower": 0, "upper": 1}, [0, -1, 1e-7, 1.1, np.inf, "1"]),
    "center": (metrics.r2, {"lower": 0, "upper": 1}, [-0.1, 1.1, np.nan, "1"]),
    "least": (metrics.r2, {"lower": 0, "upper": 1, "center": 0.5}, [0.91, -1e7, np.nan, "1"]),
    "average": (metrics.f1, {}, ["samples", None]),
}


@for_each("argument", NUMBERS)
def test_numbers_out_of_range_are_refused(argument):
    factory, others, wrong = NUMBERS[argument]
    for value in wrong:
        message = refusal(InputError, lambda value=value: factory(**{argument: value}, **others))
        assert message.startswith(f"{argument} ")


def test_floors_that_are_none_are_refused():
    for factory in (metrics.precision, metrics.matthews_corrcoef):
        for floor in (one for one in NOT_SHARES if one is not None or factory is metrics.precision):
            assert "floor must" in refusal(InputError, lambda one=floor, make=factory: make(floor=one))


@for_each("factory", NEED_BOUNDS)
@for_each("bounds", NOT_BOUNDS)
def test_bounds_that_bound_nothing_are_refused(factory, bounds):
    more = {"variance": 1} if factory is metrics.r2 else {}
    assert "finite" in refusal(InputError, lambda: factory(lower=bounds[0], upper=bounds[1], **more))


def test_a_comparison_with_two_models_or_none_is_refused():
    for given in ({}, {"variance": 1, "center": 0.5}, {"variance": 1, "least": 0}):
        refuses(InputError, r"variance", metrics.r2, lower=0, upper=1, **given)


def zeros(y, _):
    return np.zeros(len(y))


DEFINITIONS = {
    "no name": {"name": ""},
    "an unknown response": {"response": "logits"},
    "an unknown family": {"family": "normal"},
    "a word for a direction": {"greater_is_better": "yes"},
    "equal bounds": {"lower": 1, "upper": 1},
    "bounds too far apart": {"lower": -1e308, "upper": 1e308},
    "a list of parameters": {"parameters": [1]},
    "a text parameter": {"parameters": {"a": "1"}},
    "an infinite parameter": {"parameters": {"a": np.inf}},
    "a numbered parameter": {"parameters": {1: 1.0}},
    "binomial with other bounds": {"family": "binomial", "upper": 2},
    "no function": {"loss": None},
    "two functions": {"statistic": zeros, "differences": [1]},
    "no callable": {"loss": 3},
    "a statistic without differences": {"loss": None, "statistic": zeros},
    "a loss with differences": {"differences": [1]},
    "a loss with declared differences": {"family": "bounded-difference"},
    "a statistic as a mean": {"loss": None, "statistic": zeros, "differences": [1], "family": "binomial"},
}


@for_each("case", DEFINITIONS)
def test_definitions_that_are_not_sound_are_refused(case):
    sound = {"name": "own", "lower": 0, "upper": 1, "greater_is_better": True, "loss": zeros}
    Metric(**sound)
    refusal(InputError, lambda: Metric(**(sound | DEFINITIONS[case])))
