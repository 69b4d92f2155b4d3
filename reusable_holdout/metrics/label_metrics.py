"""Means of hits and misses of predicted labels.

In both n is the number of holdout rows, and c_r the most that replacing row r can change the statistic after it is
normalised to [0, 1].
"""

from __future__ import annotations

from typing import Literal, get_args

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.metric import Metric, unit_metric
from reusable_holdout.metrics.scoring import Agreement
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["Average", "accuracy", "agreement", "averaged_name", "zero_one_loss"]

Average = Literal["binary", "macro", "micro", "weighted"]


def accuracy() -> Metric:
    """Share of rows whose label is predicted.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    A mean of n terms in {0, 1} of which one changes: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = n (1/n)^2 =
    1/n. The set of classes is public.

    Examples
    --------
    >>> accuracy().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.75
    """
    return unit_metric("accuracy", "labels", agreement, family="binomial")


def zero_one_loss() -> Metric:
    """Share of rows whose label is not predicted.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    One minus the accuracy: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

    Examples
    --------
    >>> zero_one_loss().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.25
    """
    return unit_metric("zero_one_loss", "labels", _disagreement, family="binomial", greater_is_better=False)


def averaged_name(name: str, average: Average) -> str:
    """What the averaged form of a metric is called, as scikit-learn calls it: "f1" or "f1_macro"."""
    if average not in get_args(Average):
        raise InputError(f"average must be one of {get_args(Average)}; got {average!r}; choose one")
    return name if average == "binary" else f"{name}_{average}"


# ---- how they are computed, once the labels are known


def agreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted right."""
    return Agreement(targets)


def _disagreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted wrong."""
    return Agreement(targets, errors=True)
