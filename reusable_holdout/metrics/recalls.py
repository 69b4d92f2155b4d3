"""Recalls: the share of a class's rows that are predicted right, and their mean over the classes.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics import derived
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.label_metrics import Average, agreement, averaged_name
from reusable_holdout.metrics.metric import Metric, unit_metric
from reusable_holdout.metrics.samples import Counted, Likely, ratio
from reusable_holdout.metrics.scoring import GRID_BITS, Agreement, Statistic
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["BalancedAgreement", "balanced_accuracy", "recall", "specificity"]


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
    return unit_metric("balanced_accuracy", "labels", _class_balanced)


def recall(*, average: Average = "binary") -> Metric:
    """Share of the positive class's rows that are predicted right, or its average over the classes.

    Replacing one row's features, its label kept, changes it by at most 1/n_1, n_1 the rows of the positive class.

    Parameters
    ----------
    average : {"binary", "macro", "micro", "weighted"}
        "binary": of the positive class, the last of the two sorted classes. "macro": the mean of all classes that have
        rows. "micro": of all rows together. "weighted": the mean, weighted by the classes' rows. As names in
        :func:`resolve_metric`: "recall", "recall_macro", "recall_micro", "recall_weighted".

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
        return unit_metric(name, "labels", _RecallOf(1), family="bounded-difference")
    if average == "macro":
        return unit_metric(name, "labels", _class_balanced)
    return unit_metric(name, "labels", agreement, family="binomial")


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
    return unit_metric("specificity", "labels", _RecallOf(0), family="bounded-difference")


# ---- how they are computed, once the labels are known


def _class_balanced(metric: Definition, targets: ClassTargets) -> BalancedAgreement:
    """Mean of the classes' recalls; two classes must be present."""
    targets.check_several(metric.name)
    return BalancedAgreement(targets)


@dataclass(frozen=True)
class _RecallOf:
    """Share of a class's rows that are predicted right: of the first of two, or the last."""

    code: int

    def __call__(self, metric: Definition, targets: ClassTargets) -> derived.OfRows:
        targets.check_two(metric.name)
        rows = np.flatnonzero(targets.codes == self.code)
        return derived.OfRows(targets.rows, rows, Agreement(targets.part(rows)), family="binomial")


class BalancedAgreement(Statistic):
    """Mean over the classes that have rows of the share of these that are predicted right.

    Computed in integers of any size, so it is exact. Class counts are public: neighbours keep every label.

    Notes
    -----
    Given the class counts it is a mean of independent terms with the weights c_r = 1/(K n_k): the confidence bound of
    :class:`~reusable_holdout.metrics.weights.WeightedMean`, of 1/max c_r = K min n_k rows.
    """

    family = "bounded"
    is_ratio = True  # the population's mean of recalls, whatever the class counts

    def __init__(self, targets: ClassTargets) -> None:
        counts = targets.counts[targets.counts > 0].tolist()
        self.rows = targets.rows
        self.effective_rows = len(counts) * min(counts)  # 1/max c_r
        self.sensitivity = Fraction(1, self.effective_rows)
        self.sum_of_squares = float(sum(Fraction(1, count) for count in counts) / len(counts) ** 2)
        self._order = np.argsort(targets.codes, kind="stable")
        self._codes = targets.codes[self._order]
        ends = np.cumsum(counts).tolist()
        self._classes = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        self._counts, self._possible = counts, len(targets.counts)
        common = math.lcm(*counts)
        self._weights = [common // count for count in counts]
        self._whole = common * len(counts)

    def units(self, query: NDArray[Any]) -> int:
        """Weigh each class's hits by an integer, so that all share one denominator."""
        return (self._weighted(self._hits(query)) << GRID_BITS) // self._whole

    def value(self, query: NDArray[Any]) -> float:
        """Mean of the classes' recalls."""
        return self._weighted(self._hits(query)) / self._whole

    def sample(self, query: NDArray[Any]) -> Counted:
        """Hits and misses of each class, with the weight of its rows.

        Given the labels, terms are independent, and the weighted mean of their expectations is the population's value;
        of the recall of a class that may occur and has no rows nothing is known.
        """
        hits, least, missing = self._hits(query), min(self._counts), self._possible - len(self._counts)
        each = [
            ((1.0, least / count, hit), (0.0, least / count, count - hit))
            for count, hit in zip(self._counts, hits, strict=True)
        ]
        each += [((0.0, 0.0, 0), (0.0, 0.0, 0))] * missing  # how many classes have rows shows in no length
        score = (self._weighted(hits) << GRID_BITS) // self._whole
        rows = ratio(*chain.from_iterable(each), factor=1.0 - missing / self._possible)
        return Counted(score, (rows,))

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """What is likely if all recalls are alike."""
        counts = [share * self.rows for share in prevalence]
        each = [
            ((1.0, min(counts) / count, count * mean), (0.0, min(counts) / count, count * (1.0 - mean)))
            for count in counts
        ]
        return Likely.of(ratio(*chain.from_iterable(each)), mean)

    def _hits(self, query: NDArray[Any]) -> list[int]:
        marks = query[self._order] == self._codes
        return [int(np.count_nonzero(marks[rows])) for rows in self._classes]

    def _weighted(self, hits: Sequence[int]) -> int:
        return sum(weight * hit for weight, hit in zip(self._weights, hits, strict=True))
