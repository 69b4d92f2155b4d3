"""Metrics that users define with their own functions, run so that no error reveals anything about the holdout.

If a user's function raises, the text of its error is withheld, because it may quote the holdout.
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


def mean_of_own_losses(metric: Definition, targets: Targets) -> MeanLoss:
    """Return the mean of the user's per-row losses as a statistic.

    Before any question is asked, the loss is tried once on made-up labels and predictions, so that its author learns of
    a wrong definition early. The results of this trial are compared with the metric's bounds only for class labels.
    Made-up real targets have nothing in common with the holdout's, and losses outside the bounds are clipped anyway.
    """
    loss = _Own(metric, targets)
    trial, slack = loss.tried(), 1e-9 * (metric.upper - metric.lower)
    least, most = metric.lower - slack, metric.upper + slack
    bounded = targets.coder is None or np.all((trial >= least) & (trial <= most))
    if trial.shape != (targets.rows,) or not bounded:
        raise InputError(
            f"the loss of metric {metric.name!r} must give for each row a number within "
            f"[{metric.lower:g}, {metric.upper:g}]; in a trial it did not; correct the loss or its bounds"
        )

    def losses(query: NDArray[Any]) -> NDArray[Any]:
        given = loss.of(query)
        if given.shape != (targets.rows,):
            raise loss.failed("one number for each row")
        return given

    return metric.mean_of(losses, targets.rows)


class BoundedDifferences(Statistic):
    """The user's own statistic, for which the user has stated how much each row can change it, in its units.

    It is tried once on made-up labels, as a user's loss is. Values outside the bounds are clipped to them, and NaN
    becomes the worst value.
    """

    def __init__(self, metric: Definition, targets: Targets) -> None:
        self.rows = self.effective_rows = targets.rows
        self._metric = metric
        self._own = _Own(metric, targets)
        if self._own.tried().size != 1:
            raise InputError(
                f"the statistic of metric {metric.name!r} must give one number; in a trial it did not; correct it"
            )
        stated = metric.differences
        counted = targets.coder is not None and targets.outputs == 1  # else no fact about labels is public
        labels = targets.shown() if counted else _made_up(targets)
        differences = as_floats(_withheld(metric, stated, labels) if callable(stated) else stated)
        finite = differences.shape == (self.rows,) and np.isfinite(differences).all()
        if not finite or differences.min() < 0 or differences.max() == 0:
            raise InputError(
                f"differences of metric {metric.name!r} must be {self.rows} finite numbers, not negative and not all "
                "zero; got others; give for each row the most that replacing it can change the statistic"
            )
        self._range = Fraction(metric.upper) - Fraction(metric.lower)
        self.sensitivity = min(Fraction(float(differences.max())) / self._range, Fraction(1))
        self.sum_of_squares = math.fsum(np.square(differences / float(self._range)).tolist())

    def _units(self, query: NDArray[Any]) -> int:
        """Return the normalised value in grid units, computed in fractions: only the user's own function rounds."""
        return math.floor((Fraction(self._value(query)) - Fraction(self._metric.lower)) / self._range * GRID)

    def _value(self, query: NDArray[Any]) -> float:
        """Return the statistic's value, clipped to its bounds."""
        value, metric = self._own.of(query), self._metric
        if value.size != 1:
            raise self._own.failed("one number")
        number = float(value.flat[0])
        if math.isnan(number):
            return metric.lower if metric.greater_is_better else metric.upper
        return min(max(number, metric.lower), metric.upper)


class _Own(HoldsLabels):
    """The user's loss or statistic, with the private labels bound as its first argument."""

    def __init__(self, metric: Definition, targets: Targets) -> None:
        self.rows = targets.rows
        self._what = "statistic" if metric.loss is None else "loss"
        self._metric, self._targets = metric, targets
        self._labels = targets.shown()
        self._classes: NDArray[Any] | None = None if targets.coder is None else targets.coder.classes

    def of(self, query: NDArray[Any]) -> NDArray[Any]:
        """Call the function with the labels and one query, and return its result as floats."""
        coded = self._metric.response == "labels" and self._classes is not None
        return self._called(self._labels, cast("Any", self._classes)[query] if coded else query.view())

    def tried(self) -> NDArray[Any]:
        """Call the function with made-up labels and predictions, which every metric must accept; return its result."""
        labels, wide = _made_up(self._targets), 1 if self._classes is None else len(self._classes)
        predictions = labels
        if self._metric.response == "probabilities":
            predictions = np.full((self.rows, wide) if wide > 2 else self.rows, 1 / wide)
        elif self._metric.response == "scores":
            predictions = np.zeros(self.rows)
        return self._called(labels, predictions)

    def failed(self, what: str) -> ModelError:
        """Return the error for a function that did not return what it must; `what` names the required result."""
        return ModelError(
            f"the {self._what} of metric {self._metric.name!r} must give {what}; it did not; nothing was answered; "
            "correct the metric"
        )

    def _called(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        predictions.flags.writeable = False  # the function must not change them: they are hashed later
        function = getattr(self._metric, self._what)
        return as_floats(_withheld(self._metric, function, labels, predictions))


def _made_up(targets: Targets) -> NDArray[Any]:
    """Return made-up labels of the same shape, which do not depend on the true ones.

    They are all classes in turn, zeros for rows with several labels, or 0.5 for real targets: most functions of real
    targets are defined at 0.5, such as shares and logarithms.
    """
    labels: NDArray[Any]
    if targets.coder is None:
        labels = np.full_like(targets.values, 0.5)
    elif targets.outputs > 1:
        labels = np.zeros_like(targets.shown())
    else:
        classes = cast("NDArray[Any]", targets.coder.classes)
        labels = classes[np.arange(targets.rows) % len(classes)]
    labels.flags.writeable = False
    return labels


def _withheld(metric: Definition, function: Callable[..., Any], *arguments: NDArray[Any]) -> object:
    """Call the user's function; if it raises, raise a ModelError without the text and context of its error."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: S110, anything that a user's function raises, an exit as well
        pass  # the error below is outside of the handler, so that it does not carry this one
    raise ModelError(
        f"a function of metric {metric.name!r} raised an error; its text is withheld, because it may quote the "
        "labels; nothing was answered; try the metric on other data"
    )
