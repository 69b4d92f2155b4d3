"""A problem for each metric of the catalogue: labels or targets, and predictions of middling models."""

import numpy as np

from reusable_holdout import metrics
from reusable_holdout.metrics.catalogue import CATALOGUE

LOW, HIGH = -1.0, 3.0
BOUNDS = {"lower": LOW, "upper": HIGH}
NAMED = {name: entry.metric(**entry.stated) for name, entry in CATALOGUE.items()}
OF_TWO_CLASSES = {name for name, entry in CATALOGUE.items() if entry.two_classes}


def own_loss(y, p):
    return np.abs(np.clip(p, LOW, HIGH) - y) / (HIGH - LOW)


def own_statistic(y, p):
    return float(np.mean(own_loss(y, p)))


def one_over_the_rows(y):
    return np.full(len(y), 1 / len(y))


OWN = {"lower": 0, "upper": 1, "greater_is_better": False}
VARIANTS = {
    "fbeta half": metrics.fbeta(beta=0.5),
    "fbeta_macro half": metrics.fbeta(beta=0.5, average="macro"),
    "precision of floor 1": metrics.precision(floor=1),
    "precision of floor 0.2": metrics.precision(floor=0.2),
    "precision_macro of floor 1": metrics.precision(floor=1, average="macro"),
    "matthews_corrcoef of floor 0.5": metrics.matthews_corrcoef(floor=0.5),
    "matthews_corrcoef of floor 0.1": metrics.matthews_corrcoef(floor=0.1),
    "log_loss of clip 0.3": metrics.log_loss(clip=0.3),
    "neg_log_loss of clip 0.001": metrics.negated(metrics.log_loss(clip=0.001)),
    "quantile_loss 0.9": metrics.quantile_loss(**BOUNDS, quantile=0.9),
    "r2 about a center": metrics.r2(**BOUNDS, center=0.7),
    "score in [1, 5]": metrics.score(lower=1, upper=5),
    "score of politeness": metrics.score(of="politeness"),
    "pass@2": metrics.pass_at(2),
    "pass^3": metrics.pass_hat(3),
}
OWNED = {
    "own": metrics.Metric(name="own", loss=own_loss, **OWN),
    "declared": metrics.Metric(
        name="declared", statistic=own_statistic, differences=one_over_the_rows, **OWN
    ),
}
METRICS = NAMED | VARIANTS | OWNED
MEANS = {name for name, metric in METRICS.items() if metric.family in {"binomial", "bounded"}}
MEANS -= {"balanced_accuracy", "recall_macro", "roc_auc"}  # of classes, or of pairs
ROOTS = {name for name in METRICS if "rmse" in name or "root" in name}


def classes_of(metric):
    """Numbers of classes that a metric is tried with."""
    if metric.response in {"values", "judged"}:
        return (0,)
    return (2,) if metric.name in OF_TWO_CLASSES else (2, 3)


def cases(names=METRICS):
    """Names of metrics, with each number of classes."""
    return [(name, classes) for name in names for classes in classes_of(METRICS[name])]


def problem(metric, classes=2, *, rows=60, models=3, seed=0):
    """Labels, and predictions of several models; the first axis is theirs."""
    rng = np.random.default_rng((seed, classes, rows))
    shape = (models, rows)
    if metric.response == "judged":
        given = rng.uniform(metric.parameters.get("lower", 0), metric.parameters.get("upper", 1), (*shape, 2))
        if metric.name.startswith("pass"):
            given = (rng.random((*shape, 4)) < 0.6).astype(float)
        return [f"q{row}" for row in range(rows)], given
    if metric.response == "values":
        y = rng.uniform(LOW, HIGH, rows)
        return y, np.clip(y + rng.normal(0, 0.7, shape), LOW, HIGH)
    y = rng.permutation(np.resize([*range(classes), *[classes - 1] * classes], rows))
    if metric.response == "labels":
        return y, np.where(rng.random(shape) < 0.6, y, rng.integers(0, classes, shape))
    if metric.response == "scores":
        return y, np.round(y + rng.normal(0, 1, shape), 1)  # with ties
    matrix = np.maximum(rng.dirichlet(np.ones(classes), shape) + np.eye(classes)[y] / 2, 0.05)
    matrix /= matrix.sum(axis=2, keepdims=True)
    return y, matrix if classes > 2 else matrix[:, :, 1]


def scored(bound, predictions):
    """Score of one model, in the metric's units."""
    units = bound.score(bound.prepare(predictions)[None])[0] / (1 << 32)
    return bound.metric.lower + units * (bound.metric.upper - bound.metric.lower)
