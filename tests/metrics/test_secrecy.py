"""An object that holds labels shows only how many, and stays in its process."""

import copy
import pickle
import traceback

import joblib
import numpy as np
import pytest
from cases import for_each, refuses
from metrics.problems import METRICS

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.metrics import mae, resolve_metric
from reusable_holdout.metrics.targets import HoldsLabels

SECRETS = ("XYZZY", "2.48")
TEXT = ["XYZZY-1", "XYZZY-2", "XYZZY-1", "XYZZY-2"]
REAL = [2.481, 2.482, 2.483, 2.484]
NAMES = [name for name, metric in METRICS.items() if metric.response != "judged"]
BINDINGS = [(name, {}) for name in NAMES]
BINDINGS += [
    (name, {what: given})
    for name in ("accuracy", "mae", "rmse", "neg_root_mean_squared_error", "own")
    for what, given in (
        ("sample_weight", [0, 1, 1, 0]),
        ("sample_weight", [1, 2, 3, 4]),
        ("groups", [1, 1, 2, 2]),
    )
    if not (name == "accuracy" and what == "sample_weight" and max(given) == 1)
]


def labels_for(name):
    return REAL if METRICS[name].response == "values" else TEXT


def holders(bound):
    """The bound metric, and everything inside it that holds labels."""
    inside = [part for part in vars(bound.statistic).values() if isinstance(part, HoldsLabels)]
    return [bound, bound.statistic, *inside]


@for_each(("name", "settings"), BINDINGS)
def test_nothing_bound_shows_its_labels_and_holdouts_of_one_size_look_alike(name, settings):
    metric, y = METRICS[name], labels_for(name)
    bound, other = metric.bind(y, **settings), metric.bind(y[::-1], **settings)
    assert repr(bound) == str(bound) == f"{bound}" == f"<BoundMetric: {metric.name}, 4 rows>"
    for one, alike in zip(holders(bound), holders(other), strict=True):
        assert repr(one) == repr(alike)
        assert one != alike
        assert not any(secret in repr(one) + str(one) for secret in SECRETS)
        assert repr(one).endswith(" rows>")  # inside a recall, the rows of its class: public


@for_each(("name", "settings"), BINDINGS)
@for_each(
    "leave",
    [
        *(lambda held, p=protocol: pickle.dumps(held, p) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy,
        copy.deepcopy,
        joblib.hash,
    ],
)
def test_nothing_bound_can_be_pickled_or_copied(name, settings, leave):
    for holder in holders(METRICS[name].bind(labels_for(name), **settings)):
        caught = refuses(HandleError, r"must stay in its process.*nothing was written", leave, holder)
        assert not any(secret in str(caught) for secret in SECRETS)


def test_what_prepares_predictions_knows_no_label():
    bound, other = (resolve_metric("accuracy").bind(y) for y in (TEXT, TEXT[::-1]))
    assert pickle.dumps(bound.form) == pickle.dumps(other.form)


@for_each("y", [REAL, [10**40, 1]])
def test_an_error_about_the_labels_quotes_none_and_carries_no_other_error(y):
    caught = refuses(InputError, "", resolve_metric("accuracy").bind, y)
    assert (caught.__cause__, caught.__context__) == (None, None)
    printed = "".join(traceback.format_exception(caught))
    assert not any(secret in printed for secret in (*SECRETS, str(10**40)))


def test_labels_cannot_be_written_through_what_is_public():
    bound = resolve_metric("accuracy").bind(TEXT)
    with pytest.raises(ValueError, match="read-only"):
        bound.classes[0] = "other"
    assert mae(lower=0, upper=9).bind(np.array(REAL)).classes is None
