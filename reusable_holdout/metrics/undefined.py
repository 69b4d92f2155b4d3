"""Metrics that are not defined on the labels they are bound to, for whoever may not know that.

That a slice has rows of one class only, or a target beyond some bound, is a fact about the labels. Whoever chooses
slices and bounds could read all labels out of refusals. So such a metric is bound as it would be to other labels, and
fails when it is asked: that is an outcome, and paid for.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.metrics.bound import BoundMetric
from reusable_holdout.metrics.metric import Metric
from reusable_holdout.metrics.scoring import Statistic
from reusable_holdout.metrics.targets import ClassTargets, RealTargets
from reusable_holdout.metrics.weights import Weights

__all__ = ["bound_or_undefined"]


def bound_or_undefined(metric: Metric, y: Any, *, owned: bool = False, **given: Any) -> BoundMetric:
    """Metric bound to labels, or to stand-ins for them if it is not defined on these, and then every score fails.

    It is refused if metric and rows do not fit, whatever the labels are: a function of the user's own is tried on
    stand-ins. Where the rows are `owned` by whoever binds it, real targets must lie within the stated bounds, as labels
    must be among the classes: these are public.
    """
    private = isinstance(given["classes"], str)
    if private or metric.response == "judged" or (owned and metric.response == "values"):
        return metric.bind(y, **given)
    bound = _bound_to_stand_in(metric, y, given) if metric.kernel is None else None
    try:
        return metric.bind(y, **given)
    except (InputError, ModelError):
        pass
    bound = bound or _bound_to_stand_in(metric, y, given)
    _make_fail(bound.statistic)
    return bound


def _bound_to_stand_in(metric: Metric, y: Any, given: dict[str, Any]) -> BoundMetric:
    """Metric bound to labels that say nothing: all classes in turn on the rows that count, or targets within bounds."""
    if metric.response == "values":
        targets = RealTargets(y).values
        least = metric.parameters["lower"] if metric.kernel is not None else 1.0
        return metric.bind(np.full_like(targets, least), **given)
    labels, weights = ClassTargets(y, given["classes"]), given["sample_weight"]
    if labels.outputs > 1:
        return metric.bind(np.zeros_like(labels.codes), **given)
    chosen = slice(None) if weights is None else Weights(weights, labels.rows).chosen
    codes = np.zeros(labels.rows, dtype=np.int64)
    codes[chosen] = np.arange(len(codes[chosen])) % len(labels.counts)
    classes: NDArray[Any] = labels.coder.classes
    return metric.bind(classes[codes], **{**given, "classes": classes})


def _make_fail(statistic: Statistic) -> None:
    """Leave all that is public as it is, whatever that is, and no score."""
    if statistic.part is not None:
        _, statistic = statistic.part
    statistic.__class__ = type("Undefined", (_Fails, type(statistic)), {})


class _Fails:
    """What reads labels, of a statistic that is not defined on them."""

    def units(self, query: NDArray[Any]) -> NoReturn:
        """Fail."""
        raise ModelError("the metric is not defined on these labels; nothing was answered")

    value = sample = shares = row_values = units
