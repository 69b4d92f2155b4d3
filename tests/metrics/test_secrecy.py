"""What holds labels shows only how many, and stays in its process."""

import copy
import pickle
import traceback

import joblib
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.metrics import Metric, mae, resolve_metric, rmse
from reusable_holdout.metrics.targets import HoldsLabels

SECRETS = ("XYZZY", "48.15")
TEXT = ["XYZZY-1", "XYZZY-2", "XYZZY-1", "XYZZY-2"]
REAL = [48.151, 48.152, 48.153, 48.154]


def zeros(y, _):
    return np.zeros(len(y))


def total(y, _):
    return 0.0


OWN = Metric(name="own", lower=0, upper=1, greater_is_better=True, loss=zeros)
DECLARED = Metric(
    name="declared", lower=0, upper=1, greater_is_better=True, statistic=total, differences=[0.25] * 4
)
CATALOGUE = [
    *(
        "accuracy",
        "zero_one_loss",
        "balanced_accuracy",
        "brier",
        "log_loss",
        "roc_auc",
        "recall",
        "specificity",
    ),
    *("precision", "f1", "f1_macro", "matthews_corrcoef", "average_precision", "roc_auc_ovr"),
]
METRICS = {
    **{name: (resolve_metric(name), TEXT) for name in CATALOGUE},
    "rmse": (rmse(lower=0, upper=99), REAL),
    "mae": (mae(lower=0, upper=99), REAL),
    "own": (OWN, REAL),
    "declared": (DECLARED, REAL),
}


def holders(bound):
    """The bound metric, and everything inside it that holds labels."""
    inside = [part for part in vars(bound.statistic).values() if isinstance(part, HoldsLabels)]
    return [bound, bound.statistic, *inside]


@for_each("name", METRICS)
def test_nothing_bound_shows_its_labels(name):
    metric, y = METRICS[name]
    bound = metric.bind(y)
    assert repr(bound) == str(bound) == f"{bound}" == f"<BoundMetric: {name}, 4 rows>"
    for holder in holders(bound):
        assert not any(secret in repr(holder) + str(holder) for secret in SECRETS)
        assert repr(holder).endswith(" rows>")  # of a recall's inside, its class's: public


@for_each("name", ["accuracy", "mae", "rmse", "own"])
@for_each("weights", [[0, 1, 1, 0], [1, 2, 3, 4]])
def test_nothing_bound_with_weights_shows_its_labels_or_can_leave(name, weights):
    metric, y = METRICS[name]
    bound = metric.bind(y, sample_weight=weights)
    for holder in holders(bound):
        assert not any(secret in repr(holder) + str(holder) for secret in SECRETS)
        with pytest.raises(HandleError):
            pickle.dumps(holder)


@for_each("name", METRICS)
def test_two_holdouts_of_one_size_look_alike(name):
    metric, y = METRICS[name]
    for one, other in zip(holders(metric.bind(y)), holders(metric.bind(y[::-1])), strict=True):
        assert repr(one) == repr(other)
        assert one != other


@for_each("name", METRICS)
@for_each(
    "leave",
    [
        *(lambda held, p=protocol: pickle.dumps(held, p) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy,
        copy.deepcopy,
        joblib.hash,
    ],
    ids=[
        *(f"pickle {protocol}" for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        "copy",
        "deepcopy",
        "joblib",
    ],
)
def test_nothing_bound_can_be_pickled_or_copied(name, leave):
    metric, y = METRICS[name]
    for holder in holders(metric.bind(y)):
        with pytest.raises(HandleError, match=r"must stay in its process.*nothing was written") as caught:
            leave(holder)
        assert not any(secret in str(caught.value) for secret in SECRETS)


@for_each("name", METRICS)
def test_the_metric_itself_can_be_pickled_and_bound_again(name):
    metric, y = METRICS[name]
    again = pickle.loads(pickle.dumps(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert again.describe() == metric.describe()
    bound, other = metric.bind(y), again.bind(y)
    assert (bound.sensitivity, bound.sum_of_squares) == (other.sensitivity, other.sum_of_squares)


def test_what_prepares_predictions_knows_no_label():
    bound, other = (resolve_metric("accuracy").bind(y) for y in (TEXT, TEXT[::-1]))
    assert pickle.dumps(bound.form) == pickle.dumps(other.form)


def test_a_traceback_of_an_error_on_the_labels_does_not_quote_them():
    with pytest.raises(InputError) as caught:
        resolve_metric("accuracy").bind(REAL)
    printed = "".join(traceback.format_exception(caught.value))
    assert not any(secret in printed for secret in SECRETS)


def test_a_label_beyond_64_bits_leaves_no_trace_in_the_error():
    with pytest.raises(InputError) as caught:
        resolve_metric("accuracy").bind([10**40, 1])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_labels_cannot_be_written_through_the_classes():
    bound = resolve_metric("accuracy").bind(TEXT)
    with pytest.raises(ValueError, match="read-only"):
        bound.classes[0] = "other"
