"""The metrics that come with the library, their sensitivities derived.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING

from reusable_holdout.errors import InputError
from reusable_holdout.queries import kernels
from reusable_holdout.queries.metric import Metric, is_finite

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.queries.metric import Kernel

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "brier",
    "log_loss",
    "mae",
    "mse",
    "resolve_metric",
    "roc_auc",
    "zero_one_loss",
]


def accuracy() -> Metric:
    """Share of rows whose label is predicted.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    A mean of n terms in {0, 1} of which one changes: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = n (1/n)^2 =
    1/n. The set of classes is public.

    Examples
    --------
    >>> accuracy().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.75
    """
    return Metric(
        name="accuracy",
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="binomial",
        kernel=kernels.agreement,
    )


def zero_one_loss() -> Metric:
    """Share of rows whose label is not predicted.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    One minus the accuracy: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

    Examples
    --------
    >>> zero_one_loss().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.25
    """
    return Metric(
        name="zero_one_loss",
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=False,
        family="binomial",
        kernel=kernels.disagreement,
    )


def balanced_accuracy() -> Metric:
    """Mean over classes of the share of a class's rows that are predicted right.

    Replacing one row's features, its label kept, changes it by at most 1/(K min n_k).

    Notes
    -----
    (1/K) sum_k hits_k / n_k over the K classes present. Class counts are public and equal between neighbours,
    so a row of class k changes hits_k by at most one: c_r = 1/(K n_k). Sensitivity: the largest of them, 1/(K
    min_k n_k). Sum of c_r^2 = sum_k n_k / (K n_k)^2 = (1/K^2) sum_k 1/n_k.

    Examples
    --------
    >>> balanced_accuracy().measure([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.875
    """
    return Metric(
        name="balanced_accuracy",
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="bounded-difference",
        kernel=kernels.class_balanced,
    )


def brier() -> Metric:
    """Mean squared distance of the predicted probabilities from the truth.

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
    return Metric(
        name="brier",
        response="probabilities",
        lower=0,
        upper=1,
        greater_is_better=False,
        kernel=kernels.squared_distance,
    )


def log_loss(*, clip: float = 0.01) -> Metric:
    """Mean negative logarithm of the true class's probability, probabilities below `clip` raised to it.

    Replacing one row, label and features, changes it by at most ln(1/clip)/n nats.

    Parameters
    ----------
    clip : float
        Smallest probability that is told apart; in (0, 1). Without it one row could change the mean without
        limit.

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
    if not (is_finite(clip) and 1e-300 < clip < 1):
        raise InputError(f"clip must be a probability in (0, 1); got {clip!r}; 0.01 is usual")
    return Metric(
        name="log_loss",
        response="probabilities",
        lower=0,
        upper=-math.log(clip),
        greater_is_better=False,
        parameters={"clip": float(clip)},
        kernel=kernels.clipped_logarithm,
    )


def roc_auc() -> Metric:
    """Area under the receiver operating characteristic of two classes.

    Replacing one row's features, its label kept, changes it by at most 1/min(n_0, n_1).

    Notes
    -----
    U/(n_0 n_1), U the number of pairs (positive, negative) in which the positive has the larger score, ties
    counting one half; the positive class is the last of the sorted ones. Class counts are public and equal
    between neighbours. A positive is in n_0 of the pairs, so c_r = n_0/(n_0 n_1) = 1/n_1; a negative's is
    1/n_0. Sensitivity: the larger, 1/min(n_0, n_1). Sum of c_r^2 = n_1/n_1^2 + n_0/n_0^2 = 1/n_0 + 1/n_1.

    References
    ----------
    .. [1] Agarwal, Graepel, Herbrich, Har-Peled, Roth (2005), "Generalization bounds for the area under
       the ROC curve", JMLR 6, Theorem 2.

    Examples
    --------
    >>> roc_auc().measure([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return Metric(
        name="roc_auc",
        response="scores",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="bounded-difference",
        kernel=kernels.pair_order,
    )


def mae(*, lower: float, upper: float) -> Metric:
    """Mean absolute error of targets in [lower, upper].

    Replacing one row changes it by at most (upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Predictions are clipped to them, which
        never makes an error larger.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper; when binding, if a target lies outside.

    Notes
    -----
    |p - y| lies in [0, upper - lower]. Normalised by that bound it is a mean of n terms in [0, 1]: c_r = 1/n,
    sensitivity 1/n, sum of c_r^2 = 1/n.

    Examples
    --------
    >>> mae(lower=0, upper=10).measure([0, 10], [1, 12])
    0.5
    """
    return _regression("mae", lower, upper, power=1, kernel=kernels.absolute_error)


def mse(*, lower: float, upper: float) -> Metric:
    """Mean squared error of targets in [lower, upper].

    Replacing one row changes it by at most (upper - lower)^2/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Predictions are clipped to them, which
        never makes an error larger.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper; when binding, if a target lies outside.

    Notes
    -----
    (p - y)^2 lies in [0, (upper - lower)^2]. Normalised by that bound it is a mean of n terms in [0, 1]: c_r
    = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

    Examples
    --------
    >>> mse(lower=0, upper=10).measure([0, 10], [2, 12])
    2.0
    """
    return _regression("mse", lower, upper, power=2, kernel=kernels.squared_error)


_CATALOGUE: dict[str, Callable[[], Metric]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "brier": brier,
    "log_loss": log_loss,
    "roc_auc": roc_auc,
    "zero_one_loss": zero_one_loss,
}


def resolve_metric(metric: str | Metric) -> Metric:
    """Metric of the catalogue by its name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : str or Metric
        "accuracy", "balanced_accuracy", "brier", "log_loss", "roc_auc", "zero_one_loss", or a metric.

    Raises
    ------
    InputError
        If there is no such metric, or it needs bounds.

    Examples
    --------
    >>> resolve_metric("brier").greater_is_better
    False
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise InputError(
            f"a metric must be a name or a Metric; got {type(metric).__name__}; pass one of these"
        )
    if metric in {"mae", "mse"}:
        raise InputError(
            f"the bounds of the targets must be stated for {metric!r}; got the name alone; "
            f"pass {metric}(lower=..., upper=...)"
        )
    if metric not in _CATALOGUE:
        names = [*_CATALOGUE, "mae", "mse"]
        close = difflib.get_close_matches(metric.lower(), names, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else "pass a Metric for one of your own"
        raise InputError(f"a metric's name must be one of {', '.join(sorted(names))}; got {metric!r}; {hint}")
    return _CATALOGUE[metric]()


def _regression(name: str, lower: float, upper: float, *, power: int, kernel: Kernel) -> Metric:
    if not (is_finite(lower) and is_finite(upper) and 0 < float(upper) - float(lower) < 1e150):
        raise InputError(
            f"the targets' bounds must be finite with lower < upper, not 1e150 apart; got {lower!r} and {upper!r}; "
            "state what is known about the targets without the holdout"
        )
    return Metric(
        name=name,
        response="values",
        lower=0,
        upper=(float(upper) - float(lower)) ** power,
        greater_is_better=False,
        parameters={"lower": lower, "upper": upper},
        kernel=kernel,
    )
