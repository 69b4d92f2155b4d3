"""A holdout without a guard, and a leaderboard that only rounds: what attacks are measured against."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, resolve_metric

__all__ = ["PlainAnswer", "PlainHoldout"]


class PlainAnswer(NamedTuple):
    """A score without an interval.

    Attributes
    ----------
    value : float
        The holdout's score.
    low, high : None
        Nothing is promised.
    charged : bool
        Always False: nothing is paid for.
    """

    value: float
    low: None = None
    high: None = None
    charged: bool = False


class PlainHoldout:
    """A holdout that answers every question with its score, as everybody's does.

    Nothing is guaranteed: this is what attacks succeed against.

    Parameters
    ----------
    y : array-like of shape (rows,)
        The labels.
    metric : str or Metric
        A name of the catalogue, or a metric of your own.
    decimals : int, optional
        Decimals that answers are rounded to, as leaderboards do; by default they are exact.

    Raises
    ------
    InputError
        If the labels do not fit the metric, or `decimals` is no whole number of at least 0.

    Examples
    --------
    >>> holdout = PlainHoldout([0, 1, 1], decimals=2)
    >>> holdout.evaluate([0, 1, 0], prior=0.5).value
    0.67
    """

    def __init__(
        self, y: ArrayLike, metric: str | Metric = "accuracy", *, decimals: int | None = None
    ) -> None:
        if decimals is not None and (not isinstance(decimals, int) or decimals < 0):
            raise InputError(
                f"decimals must be a whole number of at least 0, or None; got {decimals!r}; 2 is usual"
            )
        self.metric = resolve_metric(metric)
        self._bound = self.metric.bind(y)
        self._decimals = decimals

    def evaluate(self, subject: Any, *, prior: Any) -> Any:
        """Score of predictions for the holdout's rows, or of each of a list; the prior is not looked at.

        Raises
        ------
        InputError
            If the predictions do not fit the metric.
        """
        if isinstance(subject, list):
            return [self.evaluate(each, prior=prior) for each in subject]
        value = self._bound.statistic.value(self._bound.prepare(subject))
        return PlainAnswer(value if self._decimals is None else round(value, self._decimals))
