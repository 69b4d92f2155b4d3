"""scikit-learn's names mean here what they mean there; its scorers and functions are told what to pass instead."""

import functools

import numpy as np
import pytest
import sklearn.metrics
from cases import for_each
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from reusable_holdout import metrics
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import (
    GRID,
    Metric,
    brier,
    described_metric,
    f1,
    hamming_loss,
    log_loss,
    mae,
    mse,
    negated,
    quantile_loss,
    resolve_metric,
    rmse,
    zero_one_loss,
)

ROWS = 400
LOW, HIGH = -1.0, 3.0
BY_COUNTS = ("f1", "precision", "recall")
SETS = {"f1_samples", "jaccard_samples", "precision_samples", "recall_samples"}
SERVED = {
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "jaccard",
    "matthews_corrcoef",
    "neg_brier_score",
    "neg_log_loss",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "r2",
    "roc_auc",
    "roc_auc_ovr",
    "roc_auc_ovr_weighted",
    *SETS,
    *(f"{name}{average}" for name in BY_COUNTS for average in ("", "_macro", "_micro", "_weighted")),
}
TWO_CLASSES = {*BY_COUNTS, "average_precision", "jaccard", "matthews_corrcoef", "neg_brier_score", "roc_auc"}
LOSSES = [log_loss(clip=0.1), mae(lower=LOW, upper=HIGH), mse(lower=LOW, upper=HIGH), brier()]
LOSSES += [hamming_loss(), rmse(lower=LOW, upper=HIGH), quantile_loss(lower=LOW, upper=HIGH, quantile=0.9)]


def written(code, **numbers):
    """The metric that an error says to pass, with its dots filled in."""
    for word, number in numbers.items():
        code = code.replace(f"{word}=...", f"{word}={number!r}")
    return eval(code, vars(metrics))


def metric_called(name, y):
    """By the name alone, or as the error about the name says."""
    try:
        return resolve_metric(name)
    except InputError as error:
        code = str(error).split("; pass ")[1].removesuffix(", from reusable_holdout.metrics")
        return written(code, lower=LOW, upper=HIGH, variance=float(np.var(y)))


def problem(metric_is_of_values, classes, *, sets=False):
    """Labels and what a model predicts: labels, probabilities, values; nothing of it is clipped."""
    rng = np.random.default_rng(classes)
    if sets:
        y = (rng.random((ROWS, 5)) < 0.4).astype(int)
        return y, {"labels": np.where(rng.random((ROWS, 5)) < 0.2, 1 - y, y)}
    if metric_is_of_values:
        y = rng.uniform(LOW, HIGH, ROWS)
        return y, {"values": np.clip(y + rng.normal(0, 0.7, ROWS), LOW, HIGH)}
    y = rng.integers(0, classes, ROWS)
    matrix = np.maximum(rng.dirichlet(np.ones(classes), ROWS) + np.eye(classes)[y] / 2, 0.05)
    matrix /= matrix.sum(axis=1, keepdims=True)
    chances = matrix if classes > 2 else matrix[:, 1]
    return y, {"labels": matrix.argmax(axis=1), "probabilities": chances, "scores": chances}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@for_each("name", get_scorer_names())
def test_each_of_scikit_learns_names_is_the_same_number_here_or_is_refused_plainly(name):
    if name not in SERVED:
        with pytest.raises(InputError) as caught:
            resolve_metric(name)
        assert type(caught.value) is InputError
        message = str(caught.value)
        assert message.startswith("a metric must be ")
        assert f"got scikit-learn's {name!r}, " in message
        assert "; use " in message
        return
    scorer = get_scorer(name)
    of_values = name.endswith("_error") or name == "r2"
    for classes in [2] if of_values or name in TWO_CLASSES or name in SETS else [2, 3]:
        y, predictions = problem(of_values, classes, sets=name in SETS)
        metric = metric_called(name, y)
        assert (metric.name, metric.greater_is_better) == (name, True)
        given = predictions[metric.response]
        expected = scorer._sign * scorer._score_func(y, given, **scorer._kwargs)
        assert metric.measure(y, given) == pytest.approx(expected, abs=1e-9)
        bound = metric.bind(y)
        share = bound.score(bound.prepare(given)[None])[0] / GRID
        assert metric.lower + share * (metric.upper - metric.lower) == pytest.approx(expected, abs=1e-8)


def test_every_name_that_is_served_is_one_of_scikit_learns():
    assert set(get_scorer_names()) >= SERVED


def test_what_a_refusal_says_to_use_is_there():
    for name in set(get_scorer_names()) - SERVED:
        with pytest.raises(InputError) as caught:
            resolve_metric(name)
        nearest = str(caught.value).split("; use ")[1]
        quoted = [word for word in nearest.split('"')[1::2] if word != "probabilities" and word != "binomial"]
        assert all(resolve_metric(word) for word in quoted)
        assert quoted or hasattr(metrics, nearest.split()[0])


# ---- losses with the opposite sign


@for_each("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_negated_loss_is_as_private_and_as_certain_as_the_loss(loss):
    y, predictions = problem(loss.response == "values", 2)
    given = predictions[loss.response]
    metric = negated(loss)
    assert (metric.lower, metric.upper, metric.greater_is_better) == (-loss.upper, -loss.lower, True)
    assert str(metric.upper) == "0.0"
    groups = np.arange(ROWS) // 4
    for settings in (
        {},
        {"sample_weight": groups % 3 == 0},
        {"sample_weight": 1.0 + groups % 3},
        {"groups": groups},
    ):
        bound, plain = metric.bind(y, **settings), loss.bind(y, **settings)
        for name in ("sensitivity", "sum_of_squares", "family", "effective_rows", "by_rows", "rows"):
            assert getattr(bound, name) == getattr(plain, name), name
        ours, theirs = (one.score(one.prepare(given)[None])[0] for one in (bound, plain))
        assert ours == pytest.approx(GRID - theirs, abs=1)
        assert bound.statistic.value(given) == -plain.statistic.value(given)


@for_each("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_negated_loss_is_read_back_from_its_description(loss):
    metric = negated(loss)
    assert described_metric(metric.describe()) == metric
    assert metric.describe() != loss.describe()
    assert hash(metric) == hash(negated(loss))


def test_no_loss_at_all_has_no_sign():
    assert str(resolve_metric("neg_brier_score").measure([0, 1], [0.0, 1.0])) == "0.0"
    assert str(negated(rmse(lower=0, upper=1)).measure([0, 1], [0.0, 1.0])) == "0.0"


def test_a_brier_score_of_three_classes_is_not_what_scikit_learn_negates():
    with pytest.raises(
        InputError, match='neg_brier_score there must be exactly two classes; got 3; use "brier"'
    ):
        resolve_metric("neg_brier_score").bind([0, 1, 2])


@for_each(
    ("loss", "words"),
    [
        ("log_loss", r"must be given a Metric; got str; write negated\("),
        (f1(), "must be a loss of the catalogue.*got 'f1'; take it as it is"),
        (negated(brier()), "got 'neg_brier_score'; take it as it is"),
        (zero_one_loss(), "got 'zero_one_loss'; use \"accuracy\""),
        (
            Metric(name="own", lower=0, upper=1, greater_is_better=False, loss=lambda y, p: abs(y - p)),
            "got 'own'; negate in its function",
        ),
    ],
)
def test_what_is_no_loss_of_the_catalogue_is_not_negated(loss, words):
    with pytest.raises(InputError, match=words):
        negated(loss)


# ---- scorers and functions


@for_each("name", sorted(SERVED))
def test_a_scorer_that_is_known_is_told_the_same_name(name):
    with pytest.raises(InputError, match="a metric must be a name or a Metric; got _Scorer; pass ") as caught:
        resolve_metric(get_scorer(name))
    code = str(caught.value).split("; pass ")[1].removesuffix(" from reusable_holdout.metrics")
    told = written(code, lower=LOW, upper=HIGH, variance=1.0)
    assert (resolve_metric(told) if isinstance(told, str) else told).name == name


@for_each("name", sorted(set(get_scorer_names()) - SERVED))
def test_a_scorer_that_cannot_be_certified_is_told_why(name):
    with pytest.raises(InputError, match=r"got _Scorer; it is '.*', .*; use .*"):
        resolve_metric(get_scorer(name))


OWN = r"pass Metric\(name=..., lower=..., upper=..., greater_is_better=..., loss=...\)"
OBJECTS = {
    "a function": (sklearn.metrics.f1_score, 'got function; pass "f1"$'),
    "a loss": (sklearn.metrics.log_loss, 'pass "log_loss"$'),
    "a loss that needs bounds": (
        sklearn.metrics.mean_squared_error,
        r"pass mse\(lower=..., upper=...\) from reusable_holdout.metrics$",
    ),
    "an F-beta": (make_scorer(sklearn.metrics.fbeta_score, beta=2), r"pass fbeta\(beta=2\) from"),
    "an averaged F-beta": (
        functools.partial(sklearn.metrics.fbeta_score, beta=0.5, average="macro"),
        r'pass fbeta\(beta=0.5, average="macro"\) from',
    ),
    "an average": (make_scorer(sklearn.metrics.recall_score, average="macro"), 'pass "recall_macro"$'),
    "a positive class": (
        make_scorer(sklearn.metrics.f1_score, pos_label="yes", zero_division=0),
        'pass "f1"; its positive class is the last sorted one',
    ),
    "areas": (
        make_scorer(sklearn.metrics.roc_auc_score, multi_class="ovr", average="weighted"),
        'pass "roc_auc_ovr_weighted"$',
    ),
    "pairs": (
        make_scorer(sklearn.metrics.roc_auc_score, multi_class="ovo"),
        "it is 'roc_auc_ovo', .*; use \"roc_auc_ovr\"",
    ),
    "quantiles": (
        make_scorer(sklearn.metrics.mean_pinball_loss, alpha=0.1, greater_is_better=False),
        r"pass negated\(quantile_loss\(lower=..., upper=..., quantile=0.1\)\) from",
    ),
    "misses": (
        make_scorer(sklearn.metrics.zero_one_loss, greater_is_better=False),
        'pass "accuracy", which is 1',
    ),
    "sets": (make_scorer(sklearn.metrics.jaccard_score, average="samples"), 'pass "jaccard_samples"$'),
    "sets of an F-beta": (
        make_scorer(sklearn.metrics.fbeta_score, beta=2, average="samples"),
        "with these arg",
    ),
    "no sets": (
        make_scorer(sklearn.metrics.jaccard_score, average="macro"),
        "it is 'jaccard_macro', .*; use \"f1\"",
    ),
    "labels amiss": (
        make_scorer(sklearn.metrics.hamming_loss, greater_is_better=False),
        'pass "neg_hamming_loss"$',
    ),
    "a wrong direction": (make_scorer(sklearn.metrics.f1_score, greater_is_better=False), OWN),
    "some classes": (
        make_scorer(sklearn.metrics.f1_score, labels=np.array([0, 1]), average="macro"),
        f"f1_score with these arguments is none of ours; {OWN}",
    ),
    "no average": (make_scorer(sklearn.metrics.f1_score, average=None), "with these arguments"),
    "a count": (functools.partial(sklearn.metrics.accuracy_score, normalize=False), "with these arguments"),
    "a function of scikit-learn that is no scorer": (sklearn.metrics.hinge_loss, OWN),
    "a scorer of one's own": (make_scorer(lambda y, p: 0.5), OWN),
    "a lambda": (lambda y, p: 0.5, OWN),
    "a builtin": (len, OWN),
    "the factory": (mae, "did you mean 'mae'"),
    "a number": (3, "got int; pass a Metric"),
    "a class": (dict, "got type; "),
}


@for_each("case", OBJECTS)
def test_a_scorer_or_a_function_is_told_what_to_pass_instead(case):
    given, words = OBJECTS[case]
    with pytest.raises(InputError, match="a metric must be a name or a Metric; got ") as caught:
        resolve_metric(given)
    with pytest.raises(InputError, match=words):
        raise caught.value


@for_each(
    ("name", "words"),
    [
        ("f1_score", 'pass "f1"'),
        ("mean_absolute_error", r"pass mae\(lower=..., upper=...\)"),
        ("median_absolute_error", "a median.*use mae"),
        ("negative_log_loss", "did you mean 'neg_log_loss'"),
    ],
)
def test_names_of_functions_and_slips_are_told_what_to_pass(name, words):
    with pytest.raises(InputError, match=words):
        resolve_metric(name)
