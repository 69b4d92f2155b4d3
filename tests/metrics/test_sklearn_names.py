"""scikit-learn's names mean here what they mean there; its scorers and functions are told what to pass instead."""

import functools

import numpy as np
import pytest
import sklearn.metrics
from cases import for_each, refuses
from metrics.problems import METRICS, NAMED, problem
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from reusable_holdout import metrics
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import GRID, brier, f1, mae, negated, resolve_metric, rmse, zero_one_loss
from reusable_holdout.metrics.catalogue import CATALOGUE

SERVED = NAMED.keys() & set(get_scorer_names())
REFUSED = sorted(set(get_scorer_names()) - SERVED)


def test_most_of_scikit_learns_names_are_served():
    assert len(SERVED) >= 25


@for_each("name", REFUSED)
def test_a_name_or_scorer_that_cannot_be_certified_is_told_why_and_what_to_use(name):
    for given, words in ((name, f"got scikit-learn's {name!r}, "), (get_scorer(name), "got _Scorer; ")):
        caught = refuses(InputError, r"^a metric must be ", resolve_metric, given)
        message = str(caught)
        assert words in message
        if "; use " not in message:  # another metric has the same function
            assert "if it has the same arguments" in message
            continue
        nearest = message.split("; use ")[1]
        quoted = [word for word in nearest.split('"')[1::2] if word not in {"probabilities", "binomial"}]
        assert all(resolve_metric(word) for word in quoted)
        assert quoted or hasattr(metrics, nearest.split()[0])


@for_each("name", sorted(SERVED))
def test_a_scorer_that_is_served_is_told_its_name(name):
    with pytest.raises(InputError, match="a metric must be a name or a Metric; got _Scorer; pass ") as caught:
        resolve_metric(get_scorer(name))
    assert CATALOGUE[name].spelled() in str(caught.value)


OWN = r"pass Metric\(name=..., lower=..., upper=..., greater_is_better=..., loss=...\)"
OBJECTS = {
    "a function": (
        sklearn.metrics.accuracy_score,
        'got function; pass "accuracy", if it has the same arguments$',
    ),
    "a function with an average": (
        sklearn.metrics.f1_score,
        'one of "f1", "f1_macro", .*, if it has the same',
    ),
    "a loss": (sklearn.metrics.log_loss, 'pass one of "log_loss", "neg_log_loss", if'),
    "a loss that needs bounds": (
        sklearn.metrics.mean_squared_error,
        r"mse\(lower=..., upper=...\), negated\(",
    ),
    "an F-beta": (make_scorer(sklearn.metrics.fbeta_score, beta=2), r"fbeta\(beta=...\), .* from reusable_h"),
    "quantiles": (functools.partial(sklearn.metrics.mean_pinball_loss, alpha=0.1), r"quantile=...\)"),
    "a recall": (make_scorer(sklearn.metrics.recall_score, pos_label=0), '"specificity"'),
    "a function of scikit-learn that is no scorer": (
        sklearn.metrics.hinge_loss,
        f"not in the catalogue; {OWN}",
    ),
    "a function of a median": (
        sklearn.metrics.median_absolute_error,
        "which few rows decide, .*; use mae with bounds",
    ),
    "a scorer of one's own": (make_scorer(lambda y, p: 0.5), OWN),
    "a lambda": (lambda y, p: 0.5, OWN),
    "a builtin": (len, OWN),
    "the factory": (mae, "did you mean 'mae'"),
    "a number": (3, "got int; pass a Metric"),
    "a class": (dict, "got type; "),
}


@for_each("case", OBJECTS)
def test_an_object_that_is_no_metric_is_told_what_to_pass_instead(case):
    given, words = OBJECTS[case]
    refuses(InputError, f"a metric must be a name or a Metric; .*{words}", resolve_metric, given)


NAMES = {
    "mean_absolute_error": r"mae\(lower=..., upper=...\)",
    "median_absolute_error": "which few rows decide.*use mae",
    "negative_log_loss": "did you mean 'neg_log_loss'",
    "acuracy": "did you mean 'accuracy'",
    "Balanced Accuracy": "did you mean 'balanced_accuracy'",
    "": "must be one of accuracy, ",
    "xyzzy": "pass a Metric",
}


@for_each("name", NAMES)
def test_names_of_functions_and_slips_are_told_what_to_pass(name):
    refuses(InputError, NAMES[name], resolve_metric, name)


# ---- losses with the opposite sign


@for_each("name", [name for name, metric in METRICS.items() if metric.name.startswith("neg_")])
def test_a_negated_loss_is_as_private_and_as_certain_as_the_loss(name):
    metric, groups = METRICS[name], np.arange(60) // 4
    loss = CATALOGUE[name].factory(**CATALOGUE[name].stated) if name in CATALOGUE else metric.kernel.args[0]
    y, (given, *_) = problem(metric, 2)
    assert (metric.lower, metric.upper) == (-loss.upper, -loss.lower)
    assert str(metric.upper) == "0.0"
    for settings in (
        {},
        {"sample_weight": groups % 3 == 0},
        {"sample_weight": 1.0 + groups % 3},
        {"groups": groups},
    ):
        bound, plain = metric.bind(y, **settings), loss.bind(y, **settings)
        for what in ("numbers", "family", "by_rows", "rows"):
            assert getattr(bound, what) == getattr(plain, what), what
        ours, theirs = (one.score(one.prepare(given)[None])[0] for one in (bound, plain))
        assert ours == pytest.approx(GRID - theirs, abs=1)
        assert bound.statistic.value(given) == -plain.statistic.value(given)


def test_no_loss_at_all_has_no_sign():
    assert str(resolve_metric("neg_brier_score").measure([0, 1], [0.0, 1.0])) == "0.0"
    assert str(negated(rmse(lower=0, upper=1)).measure([0, 1], [0.0, 1.0])) == "0.0"


def test_a_brier_score_of_three_classes_is_not_what_scikit_learn_negates():
    with pytest.raises(InputError, match=r'neg_brier_score there must be .*; got 3; use "brier"'):
        resolve_metric("neg_brier_score").bind([0, 1, 2])


@for_each(
    ("loss", "words"),
    [
        ("log_loss", r"must be given a Metric; got str; write negated\("),
        (f1(), "only a loss of the catalogue.*got 'f1'; use it without negated"),
        (negated(brier()), "got 'neg_brier_score'; use it without negated"),
        (zero_one_loss(), "got 'zero_one_loss'; use \"accuracy\""),
        (METRICS["own"], "got 'own'; negate it in its own function"),
    ],
)
def test_what_is_no_loss_of_the_catalogue_is_not_negated(loss, words):
    refuses(InputError, words, negated, loss)
