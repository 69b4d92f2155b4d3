"""The root mean squared error, and R2, the share of squared errors that a model explains.

In both n is the number of holdout rows, and c_r the most that replacing row r can change the statistic after it is
normalised to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition, checked_number
from reusable_holdout.metrics.mean_losses import (
    checked_targets,
    clipped,
    losses_of_values,
    mean_of_values,
    mse,
)
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.samples import Explained, Likely
from reusable_holdout.metrics.scoring import GRID, GRID_BITS, Draws, Mean, MeanLoss, Statistic
from reusable_holdout.metrics.targets import Targets

_FINE_BITS = 52  # binary digits of each row's term, because a root would magnify the rounding to 32 digits


def rmse(*, lower: float, upper: float) -> Metric:
    """Make the root mean squared error of targets in [lower, upper].

    Replacing one of the n rows changes it by at most (upper - lower)/sqrt(n).

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them. This
        never makes an error larger; if a target lies outside, its error may count for less than it is.

    Raises
    ------
    InputError
        If the bounds are not finite with lower < upper.

    Notes
    -----
    With prediction p and target y, both clipped, the metric is sqrt(mean of (p - y)^2). It is normalised by
    upper - lower. An error near 0 can change most: c_r = 1/sqrt(n), which is also the sensitivity. The sum of c_r^2
    is 1, from which no useful interval follows. It is replaced by 2/n, which bounds the distance from the root of the
    population's mean squared error, because the relative entropy in Hoeffding's inequality is at least the squared
    difference of the roots. So the interval's width is everywhere at most sqrt(2) times that for a bounded mean. The
    derivation is in :class:`~reusable_holdout.metrics.squared_errors.RootMean`.

    Examples
    --------
    >>> rmse(lower=0, upper=10).measure([0, 10, 5, 5], [2, 12, 5, 5])
    1.0
    """
    stated, span = checked_targets(lower, upper)
    return metric_of(
        "rmse",
        "values",
        _root_of_mean,
        bounds=(0, span),
        family="bounded-difference",
        greater_is_better=False,
        parameters=stated | {"floor": 0.0},  # as ledgers of earlier versions say
    )


def r2(
    *,
    lower: float,
    upper: float,
    variance: float | None = None,
    center: float | None = None,
    least: float | None = None,
) -> Metric:
    """Make R2: the share of a stated variance, or of the errors of a stated constant, that a model explains.

    With `variance`, replacing one of the n rows changes it by at most (upper - lower)^2/(variance n). With `center` no
    such bound is known, and answers rest on the evidence of the rows.

    Parameters
    ----------
    lower, upper : float
        Bounds of the targets, known without looking at the holdout. Targets and predictions are clipped to them. This
        never makes an error larger; if a target lies outside, its error may count for less than it is.
    variance : float, optional
        Mean squared error of the model to compare with, known without looking at the holdout: the variance of the
        training targets, or the mean squared error of a reference model. At most (upper - lower)^2, and at least a
        millionth of it.
    center : float, optional
        Instead of a variance: the constant prediction to compare with, such as the mean of the training targets. It
        lies in the bounds.
    least : float, optional
        Only with `center`: a smaller R2 counts as this; at most 0.9, by default -1.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    With prediction p and target y, both clipped, and with a variance, the metric is the mean of 1 - (p - y)^2/variance,
    in [1 - (upper - lower)^2/variance, 1]. Normalised by these bounds it is a mean of n terms in [0, 1]. So c_r = 1/n,
    the sensitivity is 1/n, and the sum of c_r^2 is 1/n. The textbook's coefficient divides by the holdout's own
    variance instead. That variance is private, and replacing one row can bring it near 0, so the sensitivity of that
    coefficient has no bound. If `variance` equals the holdout's variance, the two agree.

    With a centre, the metric is 1 - sum (p - y)^2 / sum (y - center)^2, and the interval is about the same ratio in the
    population. Only the evidence of the rows certifies it, so a guard takes it only without noise, threshold or board.

    Examples
    --------
    >>> r2(lower=0, upper=10, variance=4).measure([0, 10, 5, 5], [2, 12, 5, 5])
    0.75
    >>> r2(lower=0, upper=10, center=5).measure([0, 10], [5, 10])
    0.5
    """
    stated, span = checked_targets(lower, upper)
    if (variance is None) == (center is None):
        raise InputError(
            "r2 compares with one model: pass variance=, its mean squared error, or center=, the constant it predicts; "
            f"got {'neither' if variance is None else 'both'}; take the training targets' variance or mean"
        )
    if variance is None:
        return _about_center(stated, center, -1.0 if least is None else least)
    if least is not None:
        raise InputError(f"least= goes only with center=; got least={least!r} and a variance; leave it out")
    largest = span**2
    stated["variance"] = checked_number(
        variance,
        lambda error: 1e-6 * largest <= error <= largest,
        "variance must lie between a millionth of (upper - lower)^2 and (upper - lower)^2",
        "state the training targets' variance",
    )
    bounds = (1 - largest / stated["variance"], 1)
    return metric_of("r2", "values", _explained_share, bounds=bounds, parameters=stated)


def _about_center(stated: dict[str, float], center: Any, least: Any) -> Metric:
    lower, upper = stated["lower"], stated["upper"]
    must, advice = f"center must lie in [{lower:g}, {upper:g}]", "state the training targets' mean"
    stated["center"] = checked_number(center, lambda value: lower <= value <= upper, must, advice)
    must = "least must be a number in [-1e6, 0.9]"
    stated["least"] = checked_number(least, lambda value: -1e6 <= value <= 0.9, must, "-1 is usual")
    bounds = (stated["least"], 1)
    return metric_of(
        "r2", "values", ExplainedAbout, bounds=bounds, family="bounded-difference", parameters=stated
    )


# ---- kernels: the statistics, once the targets are known


def _root_of_mean(metric: Definition, targets: Targets) -> RootMean:
    return RootMean(
        mean_of_values(
            np.square, mse(**{name: metric.parameters[name] for name in ("lower", "upper")}), targets
        ),
        metric.upper,
    )


def _explained_share(metric: Definition, targets: Targets) -> MeanLoss:
    variance = metric.parameters["variance"]
    return mean_of_values(lambda excess: 1 - np.square(excess) / variance, metric, targets)


class RootMean(Statistic):
    """The square root of a mean of terms in [0, 1].

    Each row's term is rounded to 2^-52; all further steps are exact. A normalised root of 1 is `unit` in the metric's
    units.

    Notes
    -----
    Let x be the mean, m its expectation, and s the largest weight of a row in the mean (1/n without weights).

    Sensitivity: x changes by at most s. The root is concave, so its change is largest at x = 0, where it is sqrt(s).

    Sum of squares: let v be a value above m (or below m). By Hoeffding's inequality x is at least v (at most v) with
    probability at most exp(-kl(v, m)/s). Relative entropy is at least twice the squared Hellinger distance: kl(v, m) >=
    -2 ln(sqrt(v m) + sqrt((1-v)(1-m))) >= (sqrt v - sqrt m)^2. So sqrt x lies beyond sqrt m by t with probability at
    most exp(-t^2/s) = exp(-2 t^2 / (2 s)), and 2 s is valid in place of the sum of squares.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1, inequality (2.1).
    """

    def __init__(self, mean: Mean, unit: float) -> None:
        self._unit = unit
        self._rest_on(mean)

    def _rest_on(self, mean: Mean) -> None:
        self._mean = mean
        self.rows = self.effective_rows = mean.rows
        root = Fraction(math.isqrt(math.ceil(mean.sensitivity * (1 << 160))) + 1, 1 << 80)  # slightly above
        self.sensitivity, self.sum_of_squares = min(root, Fraction(1)), 2 * float(mean.sensitivity)

    def averaged(self, draws: Draws) -> Self | None:
        """Average the terms under the root with weights or groups, or return None if only some rows were chosen."""
        mean = self._mean.averaged(draws)
        if mean is None:
            return None
        self._rest_on(mean)
        return self

    def _units(self, query: NDArray[Any]) -> int:
        """Return the root of the exact mean of rounded terms in grid units, rounded down; if negated, 2^32 minus it."""
        terms = np.rint(self._mean.shares(query) * (1 << _FINE_BITS)).astype(np.int64)
        total, whole = self._mean.draws.total(terms)
        units = min(math.isqrt((total << (2 * GRID_BITS - _FINE_BITS)) // whole), GRID)
        return GRID - units if self.negated else units

    def _value(self, query: NDArray[Any]) -> float:
        return math.sqrt(self._mean.value(query))


class ExplainedAbout(Statistic):
    """R2 about a constant: one minus the model's sum of squared errors divided by that of the constant `center`.

    Values below the metric's least value are moved to it. Targets lie in [lower, upper]. A single row can make up the
    whole denominator, so only a confidence set of a ratio bounds the population value.
    """

    is_ratio = only_as_ratio = True

    def __init__(self, metric: Definition, targets: Targets) -> None:
        lower, upper, center = (metric.parameters[name] for name in ("lower", "upper", "center"))
        self.rows = self.effective_rows = targets.rows
        self.sensitivity, self.sum_of_squares = Fraction(1), float(self.rows)
        self._errors = losses_of_values(np.square, metric, targets)
        self._square = (upper - lower) ** 2
        self._totals = np.square(clipped(metric, targets) - center) / self._square
        self._most = max(upper - center, center - lower) ** 2 / self._square
        self._unit = 1.0 - metric.parameters["least"]

    def _units(self, query: NDArray[Any]) -> int:
        """Return the normalised value in grid units, rounded down."""
        return self._sample(query).score

    def _value(self, query: NDArray[Any]) -> float:
        return 1.0 - self._unit * (1.0 - self._share(self._of(query)))

    def _sample(self, query: NDArray[Any]) -> Explained:
        """Return the score, and the squared errors of the model and of the constant."""
        errors = self._of(query)
        score = min(int(self._share(errors) * GRID), GRID)
        return Explained(score, errors, self._totals, self._most, self._unit)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows as uncertain as this metric, if targets and errors are normally distributed."""
        return Likely(float(self.rows), max(min(2.0 * (1.0 - mean), 0.5), 1e-3))

    def _of(self, query: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self._errors(query) / self._square)

    def _share(self, errors: NDArray[np.float64]) -> float:
        """Return the value normalised to [0, 1]; if the constant has no errors, 1 if the model has none, else 0."""
        total, left = float(self._totals.sum()) * self._unit, float(errors.sum())
        if total <= 0.0:
            return 0.0 if left > 0.0 else 1.0
        return min(max(1.0 - left / total, 0.0), 1.0)
