"""Errors of predicted real values, for targets of stated bounds.

Targets and predictions outside the bounds are moved to them, and nothing says that some were: whoever chooses bounds
could read the targets out of refusals. So what is measured is the error of the clipped targets, whatever these are.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import InputError
from reusable_holdout.queries.definition import is_finite
from reusable_holdout.queries.metric import Metric
from reusable_holdout.queries.scoring import MeanLoss

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries import derived
    from reusable_holdout.queries.definition import Definition, Kernel
    from reusable_holdout.queries.targets import RealTargets
else:  # a mean of losses needs none of it
    (derived,) = modules_on_first_use(__package__, "derived")

__all__ = ["mae", "mse", "quantile_loss", "r2", "rmse"]


def mae(*, lower: float, upper: float) -> Metric:
    """Mean absolute error of targets in [lower, upper].

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
    lowest, highest = _bounds(lower, upper)
    return _metric("mae", _absolute_error, (lowest, highest), (0, highest - lowest))


def mse(*, lower: float, upper: float) -> Metric:
    """Mean squared error of targets in [lower, upper].

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
    lowest, highest = _bounds(lower, upper)
    return _metric("mse", _squared_error, (lowest, highest), (0, (highest - lowest) ** 2))


def rmse(*, lower: float, upper: float, floor: float = 0.0) -> Metric:
    """Root mean squared error of targets in [lower, upper], errors below `floor` not told apart.

    Replacing one row changes it by at most sqrt(floor^2 + (upper - lower)^2/n) - floor.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes an error larger: of targets that lie outside, an error counts for less than it is.
    floor : float
        A smaller root mean squared error counts as this; in [0, upper - lower). Without it one row can change an error
        near 0 by (upper - lower)/sqrt(n): intervals do not suffer, privacy does. Known measurement noise is a good one.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    sqrt(max(mean of (p - y)^2, floor^2)), divided by upper - lower. With g = floor/(upper - lower): c_r = sqrt(g^2 +
    1/n) - g, which is the sensitivity. Their squares sum to nearly 1 for g = 0, and nothing could be said; in their
    place stands min(2, 1/(4 g^2))/n, which bounds the distance from the root of the population's mean squared error:
    the relative entropy of Hoeffding's inequality is at least the squared difference of the roots. So the width is at
    most sqrt 2 times that of a bounded mean, anywhere. Derivation in
    :class:`~reusable_holdout.queries.derived.RootMean`.

    Examples
    --------
    >>> rmse(lower=0, upper=10).measure([0, 10, 5, 5], [2, 12, 5, 5])
    1.0
    """
    lowest, highest = _bounds(lower, upper)
    if not (is_finite(floor) and 0 <= floor < highest - lowest):
        raise InputError(
            f"floor must be an error in [0, upper - lower); got {floor!r}; state what no model can fall below"
        )
    return _metric("rmse", _root_squared_error, (lowest, highest), (0, highest - lowest), floor=floor)


def r2(
    *,
    lower: float,
    upper: float,
    variance: float | None = None,
    center: float | None = None,
    least: float | None = None,
) -> Metric:
    """Share of a stated variance, or of that about a stated centre, that is explained, of targets in [lower, upper].

    With a variance, replacing one row changes it by at most (upper - lower)^2/(variance n). With a centre no such bound
    is known, and the rows' evidence decides.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes an error larger: of targets that lie outside, an error counts for less than it is.
    variance : float, optional
        Mean squared error of the model to compare with, known without looking at the holdout: the training targets'
        variance, or what a reference model makes. At most (upper - lower)^2, at least a millionth of it.
    center : float, optional
        In place of it: what a constant model predicts, in the bounds, such as the training targets' mean.
    least : float, optional
        With a centre: values below this count as this, at most 0.9; by default -1.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    The mean of 1 - (p - y)^2/variance, in [1 - (upper - lower)^2/variance, 1]. Normalised by these bounds it is a mean
    of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The textbook's coefficient divides by the
    holdout's own variance, which is private, and which one row can bring near 0: its sensitivity has no bound. With
    `variance` equal to the holdout's the two agree.

    With a centre: 1 - sum (p - y)^2 / sum (y - center)^2, about the population's ratio. It is certified by evidence
    alone: without noise, and not by a ladder.

    Examples
    --------
    >>> r2(lower=0, upper=10, variance=4).measure([0, 10, 5, 5], [2, 12, 5, 5])
    0.75
    >>> r2(lower=0, upper=10, center=5).measure([0, 10], [5, 10])
    0.5
    """
    lowest, highest = _bounds(lower, upper)
    if (variance is None) == (center is None):
        raise InputError(
            "r2 compares with one model: pass variance=, its mean squared error, or center=, what a constant one "
            f"predicts; got {'neither' if variance is None else 'both'}; the training targets have both"
        )
    if variance is None:
        return _about_center(lowest, highest, center, -1.0 if least is None else least)
    if least is not None:
        raise InputError(f"least= goes with center=; got least={least!r} and a variance; leave it out")
    largest = (highest - lowest) ** 2
    if not (is_finite(variance) and 1e-6 * largest <= variance <= largest):
        raise InputError(
            f"variance must lie between a millionth of (upper - lower)^2 and all of it; got {variance!r}; "
            "state the training targets' variance"
        )
    values = (1 - largest / float(variance), 1)
    return _metric("r2", _explained_share, (lowest, highest), values, gain=True, variance=variance)


def _about_center(lower: float, upper: float, center: float | None, least: float) -> Metric:
    if not (is_finite(center) and lower <= cast("float", center) <= upper):
        raise InputError(
            f"center must lie in [{lower:g}, {upper:g}]; got {center!r}; state the training targets' mean"
        )
    if not (is_finite(least) and -1e6 <= least <= 0.9):
        raise InputError(f"least must be a number in [-1e6, 0.9]; got {least!r}; -1 is usual")
    stated = {"center": cast("float", center), "least": least}
    return _metric("r2", _explained_about, (lower, upper), (least, 1), gain=True, **stated)


def quantile_loss(*, lower: float, upper: float, quantile: float = 0.5) -> Metric:
    """Mean pinball loss of predicted quantiles, of targets in [lower, upper].

    Replacing one row changes it by at most max(quantile, 1 - quantile)(upper - lower)/n.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them, which
        never makes a loss larger: of targets that lie outside, a loss counts for less than it is.
    quantile : float
        Which quantile the model predicts, in (0, 1); scikit-learn's `alpha`. 0.5 is half the absolute error.

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
    lowest, highest = _bounds(lower, upper)
    if not (is_finite(quantile) and 0 < quantile < 1):
        raise InputError(f"quantile must lie in (0, 1); got {quantile!r}; 0.5 is the median")
    largest = max(quantile, 1 - quantile) * (highest - lowest)
    return _metric("quantile_loss", _pinball, (lowest, highest), (0, largest), quantile=quantile)


def _bounds(lower: float, upper: float) -> tuple[float, float]:
    if not (is_finite(lower) and is_finite(upper) and 0 < float(upper) - float(lower) < 1e150):
        raise InputError(
            f"the targets' bounds must be finite with lower < upper, not 1e150 apart; got {lower!r} and {upper!r}; "
            "state what is known about the targets without the holdout"
        )
    return float(lower), float(upper)


def _metric(
    name: str,
    kernel: Kernel,
    targets: tuple[float, float],
    values: tuple[float, float],
    *,
    gain: bool = False,
    **parameters: float,
) -> Metric:
    """Metric with values in these bounds, of targets in those."""
    return Metric(
        name=name,
        response="values",
        lower=values[0],
        upper=values[1],
        greater_is_better=gain,
        family="bounded-difference" if kernel in {_root_squared_error, _explained_about} else "bounded",
        parameters={"lower": targets[0], "upper": targets[1], **parameters},
        kernel=kernel,
    )


# ---- how they are computed, once the labels are known


def _absolute_error(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Absolute error of predictions clipped to the targets' bounds."""
    return _mean_of_excess(metric, targets, np.abs)


def _squared_error(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Squared error of predictions clipped to the targets' bounds."""
    return _mean_of_excess(metric, targets, np.square)


def _root_squared_error(metric: Definition, targets: RealTargets) -> derived.RootMean:
    """Root of the mean squared error, the parameter `floor` at least."""
    span = metric.upper - metric.lower
    losses = _of_excess(metric, targets, np.square)
    mean = MeanLoss(targets.rows, losses, (0.0, span**2), greater_is_better=False)
    return derived.RootMean(mean, floor=metric.parameters["floor"] / span, unit=span)


def _explained_share(metric: Definition, targets: RealTargets) -> MeanLoss:
    """One minus the squared error in units of the parameter `variance`."""
    variance = metric.parameters["variance"]
    return _mean_of_excess(metric, targets, lambda excess: 1 - np.square(excess) / variance)


def _explained_about(metric: Definition, targets: RealTargets) -> derived.ExplainedAbout:
    """One minus the squared errors over those of the parameter `center`."""
    errors = _of_excess(metric, targets, np.square)
    return derived.ExplainedAbout(_clipped(metric, targets), errors, **metric.parameters)


def _pinball(metric: Definition, targets: RealTargets) -> MeanLoss:
    """Shortfall times the parameter `quantile`, excess times the rest."""
    quantile = metric.parameters["quantile"]
    return _mean_of_excess(
        metric, targets, lambda excess: np.maximum(-quantile * excess, (1 - quantile) * excess)
    )


def _mean_of_excess(
    metric: Definition, targets: RealTargets, size: Callable[[NDArray[Any]], NDArray[Any]]
) -> MeanLoss:
    """Mean over the rows of such losses; where a row has several, of their mean."""
    losses = _of_excess(metric, targets, size)
    return metric.mean_of(
        losses if targets.outputs == 1 else lambda query: losses(query).mean(axis=1), targets.rows
    )


def _of_excess(
    metric: Definition, targets: RealTargets, size: Callable[[NDArray[Any]], NDArray[Any]]
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Losses that depend on the prediction less the target, both clipped to the targets' bounds."""
    lower, upper, kept = metric.parameters["lower"], metric.parameters["upper"], _clipped(metric, targets)
    return lambda p: size(np.clip(p, lower, upper) - kept)


def _clipped(metric: Definition, targets: RealTargets) -> NDArray[np.float64]:
    """Targets within their stated bounds, whatever they are."""
    return targets.values.clip(metric.parameters["lower"], metric.parameters["upper"])
