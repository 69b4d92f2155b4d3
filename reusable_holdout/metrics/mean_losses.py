"""Means of losses that are graded, of predicted probabilities and values, and losses with the opposite sign.

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
_SCORERS = {  # where scikit-learn's name is another than "neg_" and ours
    "brier": "neg_brier_score",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
}


def brier() -> Metric:
    """Make the Brier score: the mean squared distance of the predicted probabilities from the truth.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    Binary: (p - y)^2 with p the probability of the last of the sorted classes, in [0, 1]. More classes: half
    of sum_k (p_k - [y = k])^2, in [0, 1] on the simplex and equal to the binary form for K = 2. A mean of n
    terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

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
    """Make the log loss: the mean negative logarithm of the true class's probability, which counts as `clip` at least.

    Replacing one row, label and features, changes it by at most ln(1/clip)/n nats.

    Parameters
    ----------
    clip : float
        Smallest probability that is told apart; in (0, 1). Without it one row could change the mean without limit.

    Raises
    ------
    InputError
        If `clip` is out of range.

    Notes
    -----
    -ln max(p_y, clip) lies in [0, ln(1/clip)]. Normalised by that bound it is a mean of n terms in [0, 1]:
    c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

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
    """Return the probability of the true class; `p` is the last of two classes' or (rows, classes)."""
    if p.ndim == 1:
        return np.where(targets.values == 1, p, 1 - p)
    truth: NDArray[Any] = p[np.arange(targets.rows), targets.values]
    return truth


# ---- errors of predicted real values, for targets of stated bounds


def mae(*, lower: float, upper: float) -> Metric:
    """Make the mean absolute error of targets in [lower, upper].

    Replacing one row changes it by at most (upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes an error larger: of targets that lie outside, an error counts for less than it is.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper.

    Notes
    -----
    |p - y| lies in [0, upper - lower]. Normalised by that bound it is a mean of n terms in [0, 1]: c_r = 1/n,
    sensitivity 1/n, sum of c_r^2 = 1/n.

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

    Replacing one row changes it by at most (upper - lower)^2/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes an error larger: of targets that lie outside, an error counts for less than it is.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper.

    Notes
    -----
    (p - y)^2 lies in [0, (upper - lower)^2]. Normalised by that bound it is a mean of n terms in [0, 1]: c_r
    = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

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

    Replacing one row changes it by at most max(quantile, 1 - quantile)(upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes a loss larger: of targets that lie outside, a loss counts for less than it is.
    quantile : float
        Quantile that the model predicts, in (0, 1); scikit-learn's `alpha`. 0.5 is half the absolute error.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    max(quantile (y - p), (1 - quantile)(p - y)) lies in [0, max(quantile, 1 - quantile)(upper - lower)]. Normalised by
    that bound it is a mean of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

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
    """Return checked bounds of targets as parameters, and their distance."""
    advice = "state what is known about the targets without the holdout"
    least, most = checked_bounds(lower, upper, "the targets' bounds", advice, widest=1e150)
    return {"lower": least, "upper": most}, most - least


def mean_of_values(size: Losses, metric: Definition, targets: Targets) -> MeanLoss:
    """Return the mean over the rows of the sizes of their errors; if a row has several, of their mean."""
    losses = losses_of_values(size, metric, targets)
    if targets.outputs == 1:
        return metric.mean_of(losses, targets.rows)
    return metric.mean_of(lambda query: losses(query).mean(axis=1), targets.rows)


def losses_of_values(size: Losses, metric: Definition, targets: Targets) -> Losses:
    """Return the sizes of errors: of the prediction less the target, both clipped to the targets' bounds."""
    lower, upper, kept = metric.parameters["lower"], metric.parameters["upper"], clipped(metric, targets)
    return lambda p: size(np.clip(p, lower, upper) - kept)


def clipped(metric: Definition, targets: Targets) -> NDArray[np.float64]:
    """Return the targets, clipped to their stated bounds, whatever they are."""
    return targets.values.clip(metric.parameters["lower"], metric.parameters["upper"])


# ---- the opposite sign, as scikit-learn's scorers have it: greater is better


def negated(loss: Metric) -> Metric:
    """Return a loss of the catalogue with the opposite sign, named as scikit-learn's scorer of it.

    Replacing one row changes it as much as the loss.

    Parameters
    ----------
    loss : Metric
        "brier" or "log_loss" by :func:`resolve_metric`, :func:`mae`, ...; no share of rows that are wrong, whose
        opposite is the "accuracy".

    Returns
    -------
    Metric
        Greater is better, from minus the loss's upper bound to minus its lower one: what ``cross_val_score`` gives for
        the same name is its prior, unchanged.

    Raises
    ------
    InputError
        If it is no such loss; when binding, of "brier" if there are more than two classes.

    Notes
    -----
    Normalised, one minus the loss, of the same rows: c_r, the sensitivity, the sum of c_r^2 and the family are the
    loss's. A mean over rows stays one, so that models can be compared row by row.

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
        advice = 'use "accuracy"' if loss.family == "binomial" else "take it as it is"
        own = "negate in its function, and state its bounds with the opposite sign"
        raise InputError(
            f"a negated loss must be a loss of the catalogue, and no share of rows; got {loss.name!r}; "
            f"{own if loss.kernel is None else advice}"
        )
    return Metric(
        name=_SCORERS.get(loss.name, f"neg_{loss.name}"),
        response=loss.response,
        lower=0.0 - loss.upper,
        upper=0.0 - loss.lower,
        greater_is_better=True,
        family=loss.family,
        parameters=loss.parameters,
        kernel=partial(_negative, loss),
    )


def _negative(loss: Metric, metric: Definition, targets: Targets) -> Statistic:
    if loss.name == "brier" and len(targets.counts) > 2:  # scikit-learn's lies in [-2, 0] there
        raise InputError(
            f"for {metric.name} there must be exactly two classes; got {len(targets.counts)}; "
            'use "brier", which is half of what scikit-learn negates'
        )
    statistic = cast("Kernel", loss.kernel)(loss, targets)
    statistic.negated = True
    return statistic
