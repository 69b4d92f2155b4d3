"""Which of two classes a metric counts as positive is said where their names do not say it."""

import pickle
import warnings

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import HoldoutError
from reusable_holdout.metrics import fbeta

WORDS = r"counts 'ok' as the positive class, the last of 'fraud' and 'ok'.*guard y == 'fraud', and ask with"
KINDS = {"prevalence": 0.5, "threshold": None, "noise": None}


@pytest.fixture
def words(labels):
    return np.where(labels == 1, "fraud", "ok")


@for_each(
    "metric", ["f1", "precision", "recall", "specificity", "jaccard", "average_precision", fbeta(beta=2)]
)
def test_a_metric_of_one_class_of_two_says_which_it_counts(make_guard, words, metric):
    with pytest.warns(UserWarning, match=WORDS) as heard:
        make_guard(y=words, metric=metric, **KINDS)
    (warning,) = heard
    assert warning.filename.endswith("made_guards.py")  # where the guard is made
    with pytest.raises(HoldoutError, match=WORDS):  # warnings are errors here
        make_guard(y=words, metric=metric, **KINDS)


def test_the_class_that_is_said_is_the_one_that_is_counted(make_guard, words):
    with pytest.warns(UserWarning, match=WORDS):
        guard = make_guard(y=words, metric="recall", **KINDS)
    catches_ok = np.full(len(words), "ok")
    assert guard.final(catches_ok).value == 1.0
    frauds = make_guard(y=words == "fraud", metric="recall", **KINDS)
    assert frauds.final(catches_ok == "fraud").value == 0.0


@for_each("metric", ["accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "matthews_corrcoef", "log_loss"])
def test_a_metric_of_both_classes_says_nothing(make_guard, words, metric):
    make_guard(y=words, metric=metric, threshold=None, noise=None)


@for_each("metric", ["f1", "recall"])
def test_numbers_and_booleans_say_it_themselves(make_guard, labels, words, metric):
    make_guard(y=labels, metric=metric, **KINDS)
    make_guard(y=words == "fraud", metric=metric, **KINDS)


def test_another_metric_of_the_rows_says_it_when_it_is_first_asked_for(make_guard, ledger, words):
    guard = make_guard(ledger, y=words, threshold=None, noise=None)
    with pytest.warns(UserWarning, match=WORDS) as heard:
        view = guard.on(metric="f1", allow={"vacuous"})
    assert [warning.filename for warning in heard] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert guard.on(metric="f1", allow={"vacuous"}).view == view.view
        with pickle.loads(pickle.dumps(view)) as other:
            assert other.view == view.view
