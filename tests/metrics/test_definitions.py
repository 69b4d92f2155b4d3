"""What the catalogue holds, and what a metric tells about itself."""

import json
import math

import numpy as np
import pytest
from cases import for_each

import reusable_holdout
from reusable_holdout import metrics
from reusable_holdout.metrics import GRID, GRID_BITS, BoundMetric, Metric, log_loss, mae, mse, resolve_metric

CATALOGUE = {  # response, bounds, direction, family
    "accuracy": ("labels", 0, 1, True, "binomial"),
    "zero_one_loss": ("labels", 0, 1, False, "binomial"),
    "balanced_accuracy": ("labels", 0, 1, True, "bounded"),
    "brier": ("probabilities", 0, 1, False, "bounded"),
    "log_loss": ("probabilities", 0, math.log(100), False, "bounded"),
    "roc_auc": ("scores", 0, 1, True, "bounded"),
    "average_precision": ("scores", 0, 1, True, "bounded-difference"),
    "f1": ("labels", 0, 1, True, "bounded-difference"),
    "matthews_corrcoef": ("labels", -1, 1, True, "bounded-difference"),
    "precision": ("labels", 0, 1, True, "bounded-difference"),
    "recall": ("labels", 0, 1, True, "bounded-difference"),
    "roc_auc_ovr": ("probabilities", 0, 1, True, "bounded-difference"),
    "score": ("judged", 0, 1, True, "bounded"),
    "specificity": ("labels", 0, 1, True, "bounded-difference"),
}


def test_the_grid_has_32_bits():
    assert (GRID_BITS, GRID) == (32, 1 << 32)


@for_each("name", CATALOGUE)
def test_a_metric_of_the_catalogue_is_what_its_name_says(name):
    metric = resolve_metric(name)
    response, lower, upper, greater_is_better, family = CATALOGUE[name]
    assert metric.upper == pytest.approx(upper)
    assert (metric.name, metric.response, metric.lower) == (name, response, lower)
    assert (metric.greater_is_better, metric.family) == (greater_is_better, family)


@for_each("name", CATALOGUE)
def test_a_name_and_its_factory_give_equal_metrics(name):
    assert resolve_metric(name) == getattr(metrics, name)()
    assert hash(resolve_metric(name)) == hash(getattr(metrics, name)())


def test_a_metric_resolves_to_itself():
    metric = mae(lower=0, upper=2)
    assert resolve_metric(metric) is metric


@for_each(
    "metric",
    [
        *(resolve_metric(name) for name in CATALOGUE),
        log_loss(clip=0.1),
        mae(lower=-1, upper=3),
        mse(lower=-1, upper=3),
    ],
    ids=lambda metric: f"{metric.name} {metric.upper:.2f}",
)
def test_a_description_is_json_and_tells_metrics_apart(metric):
    described = metric.describe()
    assert list(described) == [
        "name",
        "response",
        "lower",
        "upper",
        "greater_is_better",
        "family",
        "parameters",
    ]
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    others = [resolve_metric(name) for name in CATALOGUE] + [
        log_loss(clip=0.2),
        mae(lower=0, upper=4),
        mse(lower=0, upper=4),
    ]
    assert [other.describe() == described for other in others] == [other == metric for other in others]


def test_bounds_follow_from_the_clip_and_from_the_targets_bounds():
    assert log_loss(clip=0.5).upper == pytest.approx(math.log(2))
    assert log_loss(clip=0.5).parameters == {"clip": 0.5}
    assert (mae(lower=-1, upper=3).upper, mse(lower=-1, upper=3).upper) == (4, 16)
    assert mse(lower=-1, upper=3).parameters == {"lower": -1, "upper": 3}


def test_numbers_of_numpy_are_numbers():
    assert mae(lower=np.int64(-1), upper=np.float32(3)) == mae(lower=-1, upper=3)
    assert log_loss(clip=np.float32(0.5)) == log_loss(clip=0.5)
    assert mse(lower=np.float32(-3e38), upper=np.float32(3e38)).upper > 1e76


def test_a_metric_cannot_be_changed():
    with pytest.raises(AttributeError):
        resolve_metric("accuracy").upper = 2


def test_a_bound_metric_says_what_is_public():
    bound = resolve_metric("balanced_accuracy").bind(["no", "yes", "no"], classes=["yes", "no", "maybe"])
    assert isinstance(bound, BoundMetric)
    assert bound.rows == 3
    assert bound.classes.tolist() == ["maybe", "no", "yes"]
    assert mae(lower=0, upper=1).bind([0.5]).classes is None


def test_the_last_of_the_sorted_classes_is_the_positive_one():
    assert resolve_metric("brier").measure(["no", "yes"], [0.0, 1.0]) == 0
    assert resolve_metric("roc_auc").measure([1, -1], [0.9, 0.1]) == 1
    assert resolve_metric("log_loss").measure([True, False], [1.0, 0.0]) == 0


def test_classes_that_do_not_occur_widen_probabilities_and_not_the_balanced_mean():
    assert resolve_metric("brier").measure([0, 1], np.eye(3)[:2], classes=[0, 1, 2]) == 0
    assert resolve_metric("balanced_accuracy").measure([0, 1], [0, 2], classes=[0, 1, 2]) == 0.5


def test_each_public_name_is_listed_once_and_exists():
    assert len(metrics.__all__) == len(set(metrics.__all__))
    assert all(hasattr(metrics, name) for name in metrics.__all__)
    assert reusable_holdout.Metric is Metric
