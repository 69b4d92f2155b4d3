"""What a score is really worth: the truth that reported answers are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric, resolve_metric

__all__ = ["Truth", "as_truth", "coin_truth", "whole"]

Truth = Callable[[Any], float]

_HALF = {
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "roc_auc",
    "zero_one_loss",
}  # of coins, whatever is predicted


def coin_truth(rows: int, metric: str | Metric = "accuracy") -> Truth:
    """Population score of predictions when every label is the flip of a fair coin.

    Exact for means of per-row losses, for balanced accuracy, average precision and the area under the ROC curve.

    Parameters
    ----------
    rows : int
        Rows of the holdout; at least 2.
    metric : str or Metric
        A metric of two classes.

    Raises
    ------
    InputError
        If there are fewer than two rows, or the metric has no classes.

    Notes
    -----
    The mean of the scores under any labels and under their reverse: in one of the two a row's label is 0, in the other
    it is 1, so each row contributes both its losses, at half the weight.

    Examples
    --------
    >>> coin_truth(4)([1, 1, 1, 0]), coin_truth(4, "brier")([0.5, 0.5, 0.5, 0.5])
    (0.5, 0.25)
    """
    rows = whole("rows", rows, least=2)
    resolved = resolve_metric(metric)
    if resolved.response in {"values", "judged"}:
        raise InputError(
            f"coins have two classes; got metric {resolved.name!r}, of real values or judged ones; take one of classes"
        )
    if resolved.kernel is not None and resolved.name in _HALF:
        return lambda _: 0.5
    labels = np.arange(rows) % 2
    one, other = as_truth(labels, resolved), as_truth(1 - labels, resolved)

    def truth(predictions: Any) -> float:
        return (one(predictions) + other(predictions)) / 2.0

    return truth


def as_truth(truth: Truth | ArrayLike, metric: str | Metric, *, rows: int | None = None) -> Truth:
    """Give a truth function as it is; fresh labels become the function that scores predictions on them.

    Raises
    ------
    InputError
        If labels do not fit the metric, or are not as many as `rows`.

    Examples
    --------
    >>> as_truth([0, 1, 1, 1], "accuracy")([1, 1, 1, 1])
    0.75
    """
    if callable(truth):
        return truth
    bound = resolve_metric(metric).bind(truth)
    if rows is not None and bound.rows != rows:
        raise InputError(
            f"fresh labels must be as many as the holdout's rows, {rows}; got {bound.rows}; nothing was asked"
        )
    statistic = bound.statistic
    return lambda predictions: statistic.value(bound.prepare(predictions))


def whole(name: str, value: object, *, least: int) -> int:
    """Give back a whole number that is large enough.

    Raises
    ------
    InputError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}; got {value!r}; nothing was asked"
        )
    return int(value)
