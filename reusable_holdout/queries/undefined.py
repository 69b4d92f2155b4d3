"""Metrics that are not defined on the labels they are bound to, for whoever may not know that.

That a slice has rows of one class only, or a target beyond some bound, is a fact about the labels. Whoever chooses
slices and bounds could read all labels out of refusals. So such a metric is bound as it would be to other labels, and
fails when it is asked: that is an outcome, and paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.queries.derived import OfRows
from reusable_holdout.queries.scoring import Mean, Statistic
from reusable_holdout.queries.targets import ClassTargets, RealTargets
from reusable_holdout.queries.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from reusable_holdout.queries.bound import BoundMetric
    from reusable_holdout.queries.metric import Metric
    from reusable_holdout.queries.samples import Counted, Likely, Ranked

__all__ = ["bound_or_undefined"]


def bound_or_undefined(metric: Metric, y: Any, **given: Any) -> BoundMetric:
    """Metric bound to labels, or to stand-ins for them if it is not defined on these, and then every score fails.

    Parameters
    ----------
    metric : Metric
    y : array-like of shape (rows,) or (rows, outputs)
    **given
        Classes, weights and groups, as for :meth:`Metric.bind`.

    Raises
    ------
    InputError
        If metric and rows do not fit, whatever the labels are.
    ModelError
        If a metric of the user's own fails in its trial.
    """
    try:
        return metric.bind(y, **given)
    except InputError:
        if metric.kernel is None or metric.response == "judged":
            raise
    bound = metric.bind(_stand_in(metric, y, given), **given)
    bound.statistic = _failing(bound.statistic)
    return bound


def _stand_in(metric: Metric, y: Any, given: dict[str, Any]) -> NDArray[Any]:
    """Labels that say nothing: all classes in turn on the rows that count, or one target within all bounds."""
    if metric.response == "values":
        return np.full_like(RealTargets(y).values, metric.parameters["lower"])
    targets, weights = ClassTargets(y, given["classes"]), given["sample_weight"]
    if targets.outputs > 1:
        return np.zeros_like(targets.codes)
    chosen = slice(None) if weights is None else Weights(weights, targets.rows).chosen
    codes = np.zeros(targets.rows, dtype=np.int64)
    codes[chosen] = np.arange(len(codes[chosen])) % len(targets.counts)
    labels: NDArray[Any] = targets.coder.classes[codes]
    return labels


def _failing(statistic: Statistic) -> Statistic:
    """The same public numbers, and no score."""
    if isinstance(statistic, OfRows):
        inner = _failing(statistic.inner)
        return OfRows(statistic.rows, statistic.chosen, inner, family=statistic.family)
    return _FailingMean(statistic) if isinstance(statistic, Mean) else _Failing(statistic)


def _fail() -> NoReturn:
    raise ModelError("the metric is not defined on these labels; nothing was answered")


class _Failing(Statistic):
    """A statistic that is not defined on the labels."""

    def __init__(self, like: Statistic) -> None:
        self.rows, self.family = like.rows, like.family
        self.sensitivity, self.sum_of_squares = like.sensitivity, like.sum_of_squares
        self._like = like

    @property
    def effective_rows(self) -> int:
        """As of other labels."""
        return self._like.effective_rows

    @property
    def is_ratio(self) -> bool:
        """As of other labels."""
        return self._like.is_ratio

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """As of other labels."""
        return self._like.likely(prevalence, mean)

    def sample(self, query: NDArray[Any]) -> Counted | Ranked:
        """Fail."""
        _fail()

    def units(self, query: NDArray[Any]) -> int:
        """Fail."""
        _fail()

    def value(self, query: NDArray[Any]) -> float:
        """Fail."""
        _fail()


class _FailingMean(Mean):
    """A mean over the rows that is not defined on the labels."""

    def __init__(self, like: Mean) -> None:
        self.rows, self.family = like.rows, like.family
        self.sensitivity, self.sum_of_squares = like.sensitivity, like.sum_of_squares
        self._like = like

    @property
    def effective_rows(self) -> int:
        """As of other labels."""
        return self._like.effective_rows

    @property
    def largest_share(self) -> Fraction:
        """As of other labels."""
        return self._like.largest_share

    @property
    def relative_weights(self) -> NDArray[np.float64] | None:
        """As of other labels."""
        return self._like.relative_weights

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Fail."""
        _fail()

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Fail."""
        _fail()
