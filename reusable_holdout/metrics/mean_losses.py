"""Means of real-valued losses of predicted probabilities and values, and the same losses with the opposite sign.

In all of them n is the number of holdout rows, and c_r the most that replacing row r can change the statistic after it
is normalised to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition, Kernel, checked_bounds, checked_number
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.scoring import MeanLoss, Statistic
from reusable_holdout.metrics.targets import Targets

Losses = Callable[[NDArray[Any]], NDArray[Any]]
_SCORERS = {  # scikit-learn's names of scorers, where they are not "neg_" followed by our name
    "brier": "neg_brier_score",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
}


def brier() -> Metric:
    """Make the Brier score: the mean squared distance of the predicted probabilities from the truth.

    Replacing one of the n rows, label and features, changes it by at most 1/n.

    Notes
    -----
    With two classes a row's loss is (p - y)^2, where p is the probability of the last of the sorted classes and y is 1
    if the label is that class, else 0. With more classes it is half of sum_k (p_k - [y = k])^2, where p_k is the
    probability of class k. On the simplex this lies in [0, 1], and for two classes it equals the binary form. The
    metric is a mean of n terms in [0, 1]. So replacing row r
    changes it by at most c_r = 1/n; the sum of c_r^2 is 1/n. The set of
    classes is public.

    References
    ----------
    .. [1] Brier (1950), "Verification of forecasts expressed in terms of probability".

    Examples
    --------
    >>> brier().measure([0, 1], [0.0, 0.5])
    0.125
    """
    return metric_of("brier", "probabilities", _squared_distance, greater_is_better=False)


def log_loss(*, clip: float = 0.01) -> Metric:
    """Make the log loss: the mean negative logarithm of the true class's probability, or of `clip` if that is larger.

    Replacing one of the n rows, label and features, changes it by at most ln(1/clip)/n nats.

    Parameters
    ----------
    clip : float
        A smaller probability counts as this; in (0, 1). Without it one row could change the mean without limit.

    Raises
    ------
    InputError
        If `clip` is out of range.

    Notes
    -----
    With p_y the probability of the true class, a row's loss -ln max(p_y, clip) lies in [0, ln(1/clip)]. Normalised by
    that bound the metric is a mean of n terms in [0, 1]. So c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is
    1/n. The set of classes is public.

    Examples
    --------
    >>> round(log_loss().measure([0, 1], [0.5, 0.5]), 4)
    0.6931
    """
    least = checked_number(
        clip, lambda p: 1e-300 < p < 1, "clip must be a probability in (0, 1)", "0.01 is usual"
    )
    bounds = (0, -math.log(least))
    return metric_of(
        "log_loss",
        "probabilities",
        _clipped_logarithm,
        bounds=bounds,
        greater_is_better=False,
        parameters={"clip": least},
    )


def _squared_distance(metric: Definition, targets: Targets) -> MeanLoss:
    if len(targets.counts) == 2:
        truth = targets.values.astype(np.float64)
        return metric.mean_of(lambda p: np.square(p - truth), targets.rows)
    return metric.mean_of(
        lambda p: 0.5 * np.square(p).sum(axis=1) - _of_truth(p, targets) + 0.5, targets.rows
    )


def _clipped_logarithm(metric: Definition, targets: Targets) -> MeanLoss:
    clip = metric.parameters["clip"]
    return metric.mean_of(lambda p: -np.log(np.maximum(_of_truth(p, targets), clip)), targets.rows)


def _of_truth(p: NDArray[Any], targets: Targets) -> NDArray[Any]:
    """Return the probability of the true class; `p` is (rows,), for the last of two classes, or (rows, classes)."""
    if p.ndim == 1:
        return np.where(targets.values == 1, p, 1 - p)
    return np.asarray(p[np.arange(targets.rows), targets.values])


# ---- errors of predicted real values, for targets of stated bounds


def mae(*, lower: float, upper: float) -> Metric:
    """Make the mean absolute error of targets in [lower, upper].

    Replacing one of the n rows changes it by at most (upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them. This
        never makes an error larger; if a target lies outside, its error may be understated.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper.

    Notes
    -----
    With prediction p and target y, both clipped, a row's loss |p - y| lies in [0, upper - lower]. Normalised by that
    bound the metric is a mean of n terms in [0, 1]. So replacing row r
    changes it by at most c_r = 1/n; the sum of c_r^2 is 1/n.

    Examples
    --------
    >>> mae(lower=0, upper=10).measure([0, 10], [1, 12])
    0.5
    """
    stated, span = checked_targets(lower, upper)
    kernel = partial(mean_of_values, np.abs)
    return metric_of("mae", "values", kernel, bounds=(0, span), greater_is_better=False, parameters=stated)


def mse(*, lower: float, upper: float) -> Metric:
    """Make the mean squared error of targets in [lower, upper].

    Replacing one of the n rows changes it by at most (upper - lower)^2/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them. This
        never makes an error larger; if a target lies outside, its error may be understated.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper.

    Notes
    -----
    With prediction p and target y, both clipped, a row's loss (p - y)^2 lies in [0, (upper - lower)^2]. Normalised by
    that bound the metric is a mean of n terms in [0, 1]. So c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is
    1/n.

    Examples
    --------
    >>> mse(lower=0, upper=10).measure([0, 10], [2, 12])
    2.0
    """
    stated, span = checked_targets(lower, upper)
    kernel = partial(mean_of_values, np.square)
    return metric_of("mse", "values", kernel, bounds=(0, span**2), greater_is_better=False, parameters=stated)


def quantile_loss(*, lower: float, upper: float, quantile: float = 0.5) -> Metric:
    """Make the mean pinball loss of predicted quantiles, of targets in [lower, upper].

    Replacing one of the n rows changes it by at most max(quantile, 1 - quantile)(upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them. This
        never makes a loss larger; if a target lies outside, its loss may count for less than it is.
    quantile : float
        Quantile that the model predicts, in (0, 1); scikit-learn's `alpha`. With 0.5 the loss is half the absolute
        error.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    With prediction p and target y, both clipped, a row's loss max(quantile (y - p), (1 - quantile)(p - y)) lies in
    [0, max(quantile, 1 - quantile)(upper - lower)]. Normalised by that bound the metric is a mean of n terms in [0, 1].
    So replacing row r
    changes it by at most c_r = 1/n; the sum of c_r^2 is 1/n.

    Examples
    --------
    >>> quantile_loss(lower=0, upper=10, quantile=0.9).measure([0, 10], [2, 6])
    1.9
    """
    stated, span = checked_targets(lower, upper)
    stated["quantile"] = share = checked_number(
        quantile, lambda q: 0 < q < 1, "quantile must lie in (0, 1)", "0.5 is the median"
    )
    bounds = (0, max(share, 1 - share) * span)
    return metric_of(
        "quantile_loss", "values", _pinball, bounds=bounds, greater_is_better=False, parameters=stated
    )


def _pinball(metric: Definition, targets: Targets) -> MeanLoss:
    quantile = metric.parameters["quantile"]
    return mean_of_values(
        lambda excess: np.maximum(-quantile * excess, (1 - quantile) * excess), metric, targets
    )


def checked_targets(lower: float, upper: float) -> tuple[dict[str, float], float]:
    """Check the bounds of targets, and return them as a metric's parameters, and the distance between them."""
    advice = "state what is known about the targets without the holdout"
    least, most = checked_bounds(lower, upper, "the targets' bounds", advice, widest=1e150)
    return {"lower": least, "upper": most}, most - least


def mean_of_values(size: Losses, metric: Definition, targets: Targets) -> MeanLoss:
    """Return the mean over rows of a row's loss: `size` of its error, averaged over the row's outputs."""
    losses = losses_of_values(size, metric, targets)
    if targets.outputs == 1:
        return metric.mean_of(losses, targets.rows)
    return metric.mean_of(lambda query: losses(query).mean(axis=1), targets.rows)


def losses_of_values(size: Losses, metric: Definition, targets: Targets) -> Losses:
    """Return a function that computes `size` of each error: prediction minus target, both clipped to the bounds."""
    lower, upper, kept = metric.parameters["lower"], metric.parameters["upper"], clipped(metric, targets)
    return lambda p: size(np.clip(p, lower, upper) - kept)


def clipped(metric: Definition, targets: Targets) -> NDArray[np.float64]:
    """Return the targets, clipped to the bounds that the metric states."""
    return targets.values.clip(metric.parameters["lower"], metric.parameters["upper"])


# ---- the opposite sign, as scikit-learn's scorers have it: greater is better


def negated(loss: Metric) -> Metric:
    """Return a loss of the catalogue with the opposite sign, under the name of scikit-learn's scorer for it.

    Replacing one row changes it by as much as it changes the loss.

    Parameters
    ----------
    loss : Metric
        A loss such as ``resolve_metric("brier")``, ``resolve_metric("log_loss")`` or :func:`mae`. The zero-one loss, a
        share of wrong rows, is refused; use the "accuracy" instead.

    Returns
    -------
    Metric
        Greater is better. Its values lie between minus the loss's upper bound and minus its lower bound. The result of
        ``cross_val_score`` for the same name can be passed as the prior, unchanged.

    Raises
    ------
    InputError
        If it is not such a loss; when binding, for "brier" if there are more than two classes.

    Notes
    -----
    After normalisation it is one minus the loss on the same rows. So c_r, the sensitivity, the sum of c_r^2 and the
    family are those of the loss. If the loss is a mean over rows, models can be compared row by row here, too.

    Examples
    --------
    >>> from reusable_holdout.metrics import mae
    >>> error = negated(mae(lower=0, upper=10))
    >>> error.name, error.lower, error.measure([0, 10], [1, 12])
    ('neg_mean_absolute_error', -10.0, -0.5)
    """
    if not isinstance(loss, Metric):
        raise InputError(
            f"negated must be given a Metric; got {type(loss).__name__}; write negated(mae(lower=..., upper=...))"
        )
    if loss.kernel is None or loss.greater_is_better or loss.family == "binomial":
        advice = 'use "accuracy"' if loss.family == "binomial" else "use it without negated"
        own = "negate it in its own function, and state its bounds with the opposite sign"
        raise InputError(
            f"only a loss of the catalogue that is not a share of rows can be negated; got {loss.name!r}; "
            f"{own if loss.kernel is None else advice}"
        )
    name, bounds = _SCORERS.get(loss.name, f"neg_{loss.name}"), (0.0 - loss.upper, 0.0 - loss.lower)
    return metric_of(
        name,
        loss.response,
        partial(_negative, loss),
        bounds=bounds,
        family=loss.family,
        parameters=loss.parameters,
    )


def _negative(loss: Metric, metric: Definition, targets: Targets) -> Statistic:
    if loss.name == "brier" and len(targets.counts) > 2:  # scikit-learn's lies in [-2, 0] there
        raise InputError(
            f"for {metric.name} there must be exactly two classes; got {len(targets.counts)}; "
            'use "brier", which is half of the loss that scikit-learn negates'
        )
    statistic = cast("Kernel", loss.kernel)(loss, targets)
    statistic.negated = True
    return statistic
