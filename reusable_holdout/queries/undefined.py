"""Metrics that are not defined on the labels they are bound to, for whoever may not know that.

That a slice has rows of one class only is a fact about the labels. Whoever chooses slices could read all labels out of
refusals. So such a metric is bound as it would be to other labels, and fails when it is asked: that is an outcome, and
paid for. Metrics of real targets are defined on all that are finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.queries.targets import ClassTargets
from reusable_holdout.queries.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.bound import BoundMetric
    from reusable_holdout.queries.metric import Metric
    from reusable_holdout.queries.scoring import Statistic

__all__ = ["bound_or_undefined"]


def bound_or_undefined(metric: Metric, y: Any, **given: Any) -> BoundMetric:
    """Metric bound to labels, or to stand-ins for them if it is not defined on these, and then every score fails.

    It is refused if metric and rows do not fit, whatever the labels are, but for missing values and labels that are
    none of the classes: these are public.
    """
    if isinstance(given["classes"], str) or metric.response in {"judged", "values"}:
        return metric.bind(y, **given)
    try:
        return metric.bind(y, **given)
    except (InputError, ModelError):
        pass
    bound = _bound_to_stand_in(metric, y, given)
    _make_fail(bound.statistic)
    return bound


def _bound_to_stand_in(metric: Metric, y: Any, given: dict[str, Any]) -> BoundMetric:
    """Metric bound to labels that say nothing: all classes in turn on the rows that count."""
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
