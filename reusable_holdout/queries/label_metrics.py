"""Means of hits and misses of predicted labels.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import InputError
from reusable_holdout.queries.metric import Metric
from reusable_holdout.queries.scoring import Agreement

if TYPE_CHECKING:
    from reusable_holdout.queries import derived, recalls
    from reusable_holdout.queries.definition import Definition, Kernel
    from reusable_holdout.queries.scoring import Family
    from reusable_holdout.queries.targets import ClassTargets
else:  # the accuracy needs neither
    derived, recalls = modules_on_first_use(__package__, "derived", "recalls")

__all__ = [
    "Average",
    "accuracy",
    "agreement",
    "averaged_name",
    "balanced_accuracy",
    "recall",
    "specificity",
    "zero_one_loss",
]

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
    return _share("accuracy", agreement, "binomial")


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
    return _share("zero_one_loss", _disagreement, "binomial", greater_is_better=False)


def balanced_accuracy() -> Metric:
    """Mean over classes of the share of a class's rows that are predicted right.

    Replacing one row's features, its label kept, changes it by at most 1/(K min n_k).

    Notes
    -----
    (1/K) sum_k hits_k / n_k over the K classes present. Class counts are public and equal between neighbours,
    so a row of class k changes hits_k by at most one: c_r = 1/(K n_k). Sensitivity: the largest of them, 1/(K
    min_k n_k). Sum of c_r^2 = sum_k n_k / (K n_k)^2 = (1/K^2) sum_k 1/n_k. Its family is "bounded", with K min_k n_k
    effective rows.

    Decided by the rows' evidence it is about all classes that may occur: of the recall of one without rows nothing is
    known, and the interval is as much wider.

    Examples
    --------
    >>> balanced_accuracy().measure([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.875
    """
    return _share("balanced_accuracy", _class_balanced, "bounded")


def recall(*, average: Average = "binary") -> Metric:
    """Share of the positive class's rows that are predicted right, or its average over the classes.

    Replacing one row's features, its label kept, changes it by at most 1/n_1, n_1 the rows of the positive class.

    Parameters
    ----------
    average : {"binary", "macro", "micro", "weighted"}
        The last of the two sorted classes; the mean over the classes that have rows; over all rows together;
        weighted by the classes' rows. In :func:`resolve_metric` "recall", "recall_macro", ...

    Raises
    ------
    InputError
        If there is no such average; when binding, if the labels do not have the classes it needs.

    Notes
    -----
    "binary": TP/n_1. The class counts are public and equal between neighbours, so it is a mean of n_1 terms in {0, 1}:
    c_r = 1/n_1 for a row of the class and 0 for others, sensitivity 1/n_1, sum of c_r^2 = n_1/n_1^2 = 1/n_1. Bound to
    labels its family is "binomial", with n_1 effective rows.

    "macro" is :func:`balanced_accuracy`. "micro" and "weighted" are the :func:`accuracy`: sum_k (n_k/n)(hits_k/n_k) is
    the share of all hits.

    Examples
    --------
    >>> recall().measure([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    >>> recall(average="macro").measure([0, 1, 2, 2], [0, 2, 2, 2])
    0.6666666666666666
    """
    name = averaged_name("recall", average)
    if average == "binary":
        return _share(name, _RecallOf(1), "bounded-difference")
    if average == "macro":
        return _share(name, _class_balanced, "bounded")
    return _share(name, agreement, "binomial")


def specificity() -> Metric:
    """Share of the negative class's rows that are predicted right.

    Replacing one row's features, its label kept, changes it by at most 1/n_0, n_0 the rows of the negative class.

    Notes
    -----
    The :func:`recall` of the first of the two sorted classes: a mean of n_0 terms in {0, 1}, n_0 public. c_r = 1/n_0
    for its rows and 0 for others, sensitivity 1/n_0, sum of c_r^2 = 1/n_0. Bound to labels its family is "binomial",
    with n_0 effective rows.

    Examples
    --------
    >>> specificity().measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    return _share("specificity", _RecallOf(0), "bounded-difference")


def averaged_name(name: str, average: Average) -> str:
    """What the averaged form of a metric is called, as scikit-learn calls it.

    Raises
    ------
    InputError
        If there is no such average.

    Examples
    --------
    >>> averaged_name("f1", "binary"), averaged_name("f1", "macro")
    ('f1', 'f1_macro')
    """
    if average not in get_args(Average):
        raise InputError(f"average must be one of {get_args(Average)}; got {average!r}; choose one")
    return name if average == "binary" else f"{name}_{average}"


def _share(name: str, kernel: Kernel, family: Family, *, greater_is_better: bool = True) -> Metric:
    return Metric(
        name=name,
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=greater_is_better,
        family=family,
        kernel=kernel,
    )


# ---- how they are computed, once the labels are known


def agreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted right."""
    return Agreement(targets)


def _disagreement(_: Definition, targets: ClassTargets) -> Agreement:
    """Share of rows predicted wrong."""
    return Agreement(targets, errors=True)


def _class_balanced(metric: Definition, targets: ClassTargets) -> recalls.BalancedAgreement:
    """Mean of the classes' recalls; two classes must be present."""
    targets.check_several(metric.name)
    return recalls.BalancedAgreement(targets)


@dataclass(frozen=True)
class _RecallOf:
    """Share of a class's rows that are predicted right: of the first of two, or the last."""

    code: int

    def __call__(self, metric: Definition, targets: ClassTargets) -> derived.OfRows:
        targets.check_two(metric.name)
        rows = np.flatnonzero(targets.codes == self.code)
        return derived.OfRows(targets.rows, rows, Agreement(targets.part(rows)), family="binomial")
