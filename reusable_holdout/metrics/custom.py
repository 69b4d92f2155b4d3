"""Metrics of the user's own, run on the holdout without revealing anything through their errors.

The words of an error that a user's function raises are withheld, because they may quote the holdout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics.containers import as_floats
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.scoring import GRID, MeanLoss, Statistic
from reusable_holdout.metrics.targets import HoldsLabels, Targets

__all__ = ["BoundedDifferences", "mean_of_own_losses"]


def mean_of_own_losses(metric: Definition, targets: Targets) -> MeanLoss:
    """Return the mean of the user's per-row losses.

    The loss is tried once on harmless predictions before any question is asked, so that its author finds a wrong
    definition.
    """
    call = _Caller(metric, targets)

    def losses(query: NDArray[Any]) -> NDArray[Any]:
        given = as_floats(call(query))
        if given.shape != (targets.rows,):
            raise ModelError(
                f"the loss of metric {metric.name!r} must give one number for each row; it did not; "
                "nothing was answered; mend the metric"
            )
        return given

    trial = as_floats(call.trial())
    slack = 1e-9 * (metric.upper - metric.lower)
    least, most = metric.lower - slack, metric.upper + slack
    if trial.shape != (targets.rows,) or not np.all((trial >= least) & (trial <= most)):
        raise InputError(
            f"the loss of metric {metric.name!r} must give for each row a number within "
            f"[{metric.lower:g}, {metric.upper:g}]; in a trial it did not; mend the loss or its bounds"
        )
    return metric.mean_of(losses, targets.rows)


class BoundedDifferences(Statistic):
    """The user's statistic, with the user's statement of how much each row can move it, in the statistic's units.

    It is tried once, too. Values outside the bounds are moved to them, and one that is not a number becomes the worst.
    """

    def __init__(self, metric: Definition, targets: Targets) -> None:
        self.rows = self.effective_rows = targets.rows
        self._metric = metric
        self._call = _Caller(metric, targets)
        if as_floats(self._call.trial()).size != 1:
            raise InputError(
                f"the statistic of metric {metric.name!r} must give one number; in a trial it did not; mend it"
            )
        own = metric.differences
        differences = as_floats(_withheld(metric, own, targets.shown()) if callable(own) else own)
        if differences.shape != (self.rows,):
            raise InputError(
                f"differences of metric {metric.name!r} must have shape ({self.rows},); got "
                f"{differences.shape}; give one for each holdout row"
            )
        if not (np.isfinite(differences).all() and differences.min() >= 0 and differences.max() > 0):
            raise InputError(
                f"differences of metric {metric.name!r} must be finite, not negative and not all zero; "
                "got others; give for each row the most that replacing it can change the statistic"
            )
        self._range = Fraction(metric.upper) - Fraction(metric.lower)
        self.sensitivity = min(Fraction(float(differences.max())) / self._range, Fraction(1))
        self.sum_of_squares = math.fsum(np.square(differences / float(self._range)).tolist())

    def _units(self, query: NDArray[Any]) -> int:
        """Normalise the value in fractions, so that only the user's own function rounds."""
        return math.floor((Fraction(self._value(query)) - Fraction(self._metric.lower)) / self._range * GRID)

    def _value(self, query: NDArray[Any]) -> float:
        """Return the value of the statistic within its bounds."""
        metric = self._metric
        value = as_floats(self._call(query))
        if value.size != 1:
            raise ModelError(
                f"the statistic of metric {metric.name!r} must give one number; it did not; "
                "nothing was answered; mend the metric"
            )
        number = float(value.flat[0])
        if math.isnan(number):
            return metric.lower if metric.greater_is_better else metric.upper
        return min(max(number, metric.lower), metric.upper)


class _Caller(HoldsLabels):
    """The metric's loss or statistic, with the labels as its first argument."""

    def __init__(self, metric: Definition, targets: Targets) -> None:
        self.rows = targets.rows
        self._function = cast("Callable[..., Any]", metric.statistic if metric.loss is None else metric.loss)
        self._metric = metric
        self._labels = targets.shown()
        self._classes: NDArray[Any] | None = None if targets.coder is None else targets.coder.classes

    def __call__(self, query: NDArray[Any]) -> object:
        coded = self._metric.response == "labels"
        shown = self._classes[query] if coded and self._classes is not None else query.view()
        shown.flags.writeable = False  # the prepared question will still be hashed
        return _withheld(self._metric, self._function, self._labels, shown)

    def trial(self) -> object:
        """Call on predictions that every metric must accept."""
        predictions = self._labels
        if self._metric.response == "probabilities" and self._classes is not None:
            wide = len(self._classes)
            predictions = np.full((self.rows, wide) if wide > 2 else self.rows, 1 / wide)
        elif self._metric.response == "scores":
            predictions = np.zeros(self.rows)
        predictions.flags.writeable = False
        return _withheld(self._metric, self._function, self._labels, predictions)


def _withheld(metric: Definition, function: Callable[..., Any], *arguments: NDArray[Any]) -> object:
    """Call the user's function; if it raises, raise an error without its words and without its context."""
    failed = False
    try:
        result = function(*arguments)
    except Exception:  # anything that a user's function may raise
        failed = True
    if failed:  # outside the handler, so that the error does not carry the function's own one
        raise ModelError(
            f"a function of metric {metric.name!r} raised; its words are withheld, for they may quote the "
            "labels; nothing was answered; try the metric on other data"
        )
    return result
