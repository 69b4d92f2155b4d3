"""Metrics of the user's own, run on the holdout without letting them say anything.

Whatever a user's function raises is withheld, because its words may quote the holdout.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.queries.containers import as_floats
from reusable_holdout.queries.scoring import GRID, Statistic
from reusable_holdout.queries.targets import ClassTargets, HoldsLabels, RealTargets

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from reusable_holdout.queries.definition import Definition
    from reusable_holdout.queries.scoring import MeanLoss

__all__ = ["BoundedDifferences", "mean_of_own_losses"]


def mean_of_own_losses(metric: Definition, targets: ClassTargets | RealTargets) -> MeanLoss:
    """Mean of the user's per-row losses.

    The loss is tried once on made-up labels and innocent predictions, before any question is asked, so that a wrong
    definition is found by the one who made it. Real targets are made up from nothing, so its numbers are not compared
    with the bounds then: what lies outside is moved to them anyway.
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

    trial = as_floats(call.trial(_made_up(targets)))
    slack = 1e-9 * (metric.upper - metric.lower)
    least, most = metric.lower - slack, metric.upper + slack
    bounded = isinstance(targets, RealTargets) or np.all((trial >= least) & (trial <= most))
    if trial.shape != (targets.rows,) or not bounded:
        raise InputError(
            f"the loss of metric {metric.name!r} must give for each row a number within "
            f"[{metric.lower:g}, {metric.upper:g}]; in a trial it did not; mend the loss or its bounds"
        )
    return metric.mean_of(losses, targets.rows)


class BoundedDifferences(Statistic):
    """The user's statistic with the user's word for how much each row can move it, in the statistic's units.

    It is tried once, too. Values outside the bounds are moved to them, and one that is not a number becomes the worst.
    """

    def __init__(self, metric: Definition, targets: ClassTargets | RealTargets) -> None:
        self.rows = targets.rows
        self._metric = metric
        self._call = _Caller(metric, targets)
        if as_floats(self._call.trial(_made_up(targets))).size != 1:
            raise InputError(
                f"the statistic of metric {metric.name!r} must give one number; in a trial it did not; mend it"
            )
        own = metric.differences
        counted = (
            isinstance(targets, ClassTargets) and targets.outputs == 1
        )  # else nothing is public about them
        labels = targets.shown() if counted else _made_up(targets)
        differences = as_floats(_withheld(metric, own, labels) if callable(own) else own)
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

    def units(self, query: NDArray[Any]) -> int:
        """Normalise the value in fractions, so that only the user's own function rounds."""
        return math.floor((Fraction(self.value(query)) - Fraction(self._metric.lower)) / self._range * GRID)

    def value(self, query: NDArray[Any]) -> float:
        """Value of the statistic within its bounds."""
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

    def __init__(self, metric: Definition, targets: ClassTargets | RealTargets) -> None:
        self.rows = targets.rows
        self._function = cast("Callable[..., Any]", metric.statistic if metric.loss is None else metric.loss)
        self._metric = metric
        self._labels = targets.shown()
        self._classes = targets.coder.classes if isinstance(targets, ClassTargets) else None

    def __call__(self, query: NDArray[Any]) -> object:
        coded = self._metric.response == "labels"
        shown = self._classes[query] if coded and self._classes is not None else query.view()
        shown.flags.writeable = False  # the prepared question will still be hashed
        return _withheld(self._metric, self._function, self._labels, shown)

    def trial(self, labels: NDArray[Any]) -> object:
        """Call on labels that are made up, and on predictions that every metric must bear."""
        predictions = labels
        if self._metric.response == "probabilities" and self._classes is not None:
            wide = len(self._classes)
            predictions = np.full((self.rows, wide) if wide > 2 else self.rows, 1 / wide)
        elif self._metric.response == "scores":
            predictions = np.zeros(self.rows)
        predictions.flags.writeable = False
        return _withheld(self._metric, self._function, labels, predictions)


def _made_up(targets: ClassTargets | RealTargets) -> NDArray[Any]:
    """Labels of the same shape that say nothing of these: all classes in turn, zeros where rows have several, or 0.5.

    Most functions of real targets are defined there: shares, logarithms and their like.
    """
    labels: NDArray[Any]
    if isinstance(targets, RealTargets):
        labels = np.full_like(targets.values, 0.5)
    elif targets.outputs > 1:
        labels = np.zeros_like(targets.shown())
    else:
        labels = targets.coder.classes[np.arange(targets.rows) % len(targets.counts)]
    labels.flags.writeable = False
    return labels


def _withheld(metric: Definition, function: Callable[..., Any], *arguments: NDArray[Any]) -> object:
    """Call the user's function; if it raises, an error without its words and without its context."""
    failed = False
    try:
        result = function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:  # anything a user's function may raise, an exit as well
        failed = True
    if failed:  # outside the handler, so that the error does not carry the function's own one
        raise ModelError(
            f"a function of metric {metric.name!r} raised; its words are withheld, for they may quote the "
            "labels; nothing was answered; try the metric on other data"
        )
    return result
