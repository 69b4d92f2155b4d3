"""Means of hits and misses of predicted labels: accuracies and recalls.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.samples import Counted, Likely, ratio
from reusable_holdout.metrics.scoring import GRID_BITS, Agreement, Disagreement, Mean, RatioMean
from reusable_holdout.metrics.targets import Targets

Average = Literal["binary", "macro", "micro", "weighted"]


def accuracy() -> Metric:
    """Make the accuracy: the share of rows whose label is predicted.

    Replacing one of the n rows, label and features, changes it by at most 1/n.

    Notes
    -----
    The metric is a mean of n terms in {0, 1}, of which a replaced row changes one. So c_r = 1/n, the sensitivity is
    1/n, and the sum of c_r^2 is n (1/n)^2 = 1/n. The set of classes is public.

    Examples
    --------
    >>> accuracy().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.75
    """
    return metric_of("accuracy", "labels", Agreement, family="binomial")


def zero_one_loss() -> Metric:
    """Make the zero-one loss: the share of rows whose label is not predicted.

    Replacing one of the n rows, label and features, changes it by at most 1/n.

    Notes
    -----
    The metric is one minus the accuracy. So c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is 1/n. The set of
    classes is public.

    Examples
    --------
    >>> zero_one_loss().measure([0, 1, 1, 0], [0, 1, 1, 1])
    0.25
    """
    return metric_of("zero_one_loss", "labels", Disagreement, family="binomial", greater_is_better=False)


# ---- several labels for each row: a row with all its labels is one independent draw, and gives one term of the mean


def hamming_loss() -> Metric:
    """Make the Hamming loss: the mean over the rows of the share of a row's labels that are predicted wrong.

    Replacing one of the n rows, labels and features, changes it by at most 1/n.

    Notes
    -----
    The metric is a mean of n terms in [0, 1]. So c_r = 1/n, the sensitivity is 1/n, and the sum of c_r^2 is 1/n. With
    one label for each row it is the :func:`~reusable_holdout.metrics.zero_one_loss`.

    Examples
    --------
    >>> hamming_loss().measure([[0, 1], [1, 1]], [[0, 1], [0, 1]])
    0.25
    """
    return metric_of("hamming_loss", "labels", _share_of_errors, greater_is_better=False)


def _share_of_errors(metric: Definition, targets: Targets) -> Mean:
    if targets.outputs == 1:
        return Disagreement(metric, targets)
    return metric.mean_of(lambda query: (query != targets.values).mean(axis=1), targets.rows)


# ---- recalls: the share of a class's rows that are predicted right


def recall(*, average: Average = "binary") -> Metric:
    """Make the recall: the share of the positive class's rows that are predicted right, or its average over classes.

    Replacing one row's features, its label kept, changes it by at most 1/n_1, where n_1 is the number of rows of the
    positive class.

    Parameters
    ----------
    average : {"binary", "macro", "micro", "weighted"}
        "binary": the recall of the positive class, which is the last of the two sorted classes. "macro": the mean over
        all classes that have rows. "micro": the recall of all rows together. "weighted": the mean over classes,
        weighted by their numbers of rows. The names in :func:`resolve_metric` are "recall", "recall_macro",
        "recall_micro" and "recall_weighted".

    Raises
    ------
    InputError
        If there is no such average; when binding, if the labels do not have the classes it needs.

    Notes
    -----
    "binary": the metric is TP/n_1, with TP the number of positive rows predicted right. The class counts are public and
    equal between neighbours, so it is a mean of n_1 terms in {0, 1}. So c_r = 1/n_1 for a row of the class and 0 for
    others, the sensitivity is 1/n_1, and the sum of c_r^2 is n_1/n_1^2 = 1/n_1. Bound to labels its family is
    "binomial", with n_1 effective rows.

    "macro" equals :func:`balanced_accuracy`. "micro" and "weighted" equal the :func:`accuracy`: with hits_k the rows of
    class k that are predicted right, sum_k (n_k/n)(hits_k/n_k) is the share of all rows predicted right.

    Examples
    --------
    >>> recall().measure([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    >>> recall(average="macro").measure([0, 1, 2, 2], [0, 2, 2, 2])
    0.6666666666666666
    """
    name = averaged_name("recall", average)
    if average == "binary":
        return metric_of(name, "labels", partial(_recall_of, 1), family="bounded-difference")
    if average == "macro":
        return metric_of(name, "labels", _BalancedAgreement)
    return metric_of(name, "labels", Agreement, family="binomial")


def specificity() -> Metric:
    """Make the specificity: the share of the negative class's rows that are predicted right.

    Replacing one row's features, its label kept, changes it by at most 1/n_0, where n_0 is the number of rows of the
    negative class.

    Notes
    -----
    The metric is the :func:`recall` of the first of the two sorted classes: a mean of n_0 terms in {0, 1}, where n_0 is
    public. So c_r = 1/n_0 for rows of this class and 0 for others, the sensitivity is 1/n_0, and the sum of c_r^2 is
    1/n_0. Bound to labels its family is "binomial", with n_0 effective rows.

    Examples
    --------
    >>> specificity().measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    return metric_of("specificity", "labels", partial(_recall_of, 0), family="bounded-difference")


def averaged_name(name: str, average: Average) -> str:
    """Return scikit-learn's name for a metric with this average, such as "f1" or "f1_macro"."""
    if average not in get_args(Average):
        raise InputError(f"average must be one of {get_args(Average)}; got {average!r}; choose one")
    return name if average == "binary" else f"{name}_{average}"


def _recall_of(code: int, metric: Definition, targets: Targets) -> Agreement:
    targets.check_two(metric.name)
    rows = np.flatnonzero(targets.values == code)
    share = Agreement(metric, targets.part(rows)).of_rows(rows)
    share.family = "binomial"
    return share


def balanced_accuracy() -> Metric:
    """Make the balanced accuracy: the mean over classes of the share of a class's rows that are predicted right.

    Replacing one row's features, its label kept, changes it by at most 1/(K min n_k) for K classes with n_k rows.

    Notes
    -----
    The metric is (1/K) sum_k hits_k / n_k over the K classes that have rows, where hits_k is the number of rows of
    class k that are predicted right. Class counts are public and equal between neighbours. So a row of class k changes
    hits_k by at most one, and c_r = 1/(K n_k). The sensitivity is the largest of these, 1/(K min_k n_k). The sum of
    c_r^2 is sum_k n_k / (K n_k)^2 = (1/K^2) sum_k 1/n_k. The family is "bounded", with K min_k n_k effective rows.

    If the interval is computed from the rows' evidence, it is about the mean over all classes that may occur. Nothing
    is known about the recall of a class without rows, and the interval is wider accordingly.

    Examples
    --------
    >>> balanced_accuracy().measure([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.875
    """
    return metric_of("balanced_accuracy", "labels", _BalancedAgreement)


class _BalancedAgreement(RatioMean):
    """The mean over the classes that have rows of the share of a class's rows that are predicted right.

    Class counts are public, because neighbours keep every label.

    Notes
    -----
    Given the class counts it is a mean of independent terms with the weights c_r = 1/(K n_k). So it has the confidence
    bound of :class:`~reusable_holdout.metrics.weights.Weights`, with 1/max c_r = K min n_k effective rows.
    """

    family = "bounded"
    is_ratio = True  # its confidence set, of the population's mean of recalls, needs no class counts

    def __init__(self, metric: Definition, targets: Targets) -> None:
        targets.check_several(metric.name)
        counts = list(targets.present().values())
        self.rows = targets.rows
        self.effective_rows = len(counts) * min(counts)  # 1/max c_r
        self.sensitivity = Fraction(1, self.effective_rows)
        self.sum_of_squares = float(sum(Fraction(1, count) for count in counts) / len(counts) ** 2)
        self._order = np.argsort(targets.values, kind="stable")
        self._codes = targets.values[self._order]
        self._starts = np.cumsum([0, *counts[:-1]])
        self._counts, self._possible = counts, len(targets.counts)
        common = math.lcm(*counts)
        self._weights = [common // count for count in counts]
        self._whole = common * len(counts)

    def _ratios(self, query: NDArray[Any]) -> list[tuple[int, int, int]]:
        """Return the mean as one ratio: integer weights bring the recalls of all classes to one denominator."""
        return [(1, self._weighted(self._hits(query)), self._whole)]

    def _sample(self, query: NDArray[Any]) -> Counted:
        """Return the score, and each class's counts of rows predicted right and wrong, with the weight of its rows.

        Given the labels, the rows' terms are independent, and the weighted mean of their expectations is the population
        value. Nothing is known about the recall of a class that may occur and has no rows.
        """
        hits, missing = self._hits(query), self._possible - len(self._counts)
        misses = [count - hit for count, hit in zip(self._counts, hits, strict=True)]
        rows = list(_hits_and_misses(self._counts, hits, misses))
        rows += [(0.0, 0.0, 0)] * (2 * missing)  # the length must not reveal how many classes have rows
        score = (self._weighted(hits) << GRID_BITS) // self._whole
        return Counted(score, (ratio(rows, factor=1.0 - missing / self._possible),))

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows as uncertain as this metric, assuming that all classes have the same recall."""
        counts = [share * self.rows for share in prevalence]
        hits, misses = ([count * share for count in counts] for share in (mean, 1.0 - mean))
        return Likely.of(ratio(_hits_and_misses(counts, hits, misses)), mean)

    def _hits(self, query: NDArray[Any]) -> list[int]:
        hits: list[int] = np.add.reduceat(
            query[self._order] == self._codes, self._starts, dtype=np.int64
        ).tolist()
        return hits

    def _weighted(self, hits: Sequence[int]) -> int:
        return sum(weight * hit for weight, hit in zip(self._weights, hits, strict=True))


def _hits_and_misses(*classes: Sequence[float]) -> Iterable[tuple[float, float, float]]:
    """Yield (value, weight, count) for the rows of each class that are predicted right, and for those predicted wrong.

    The arguments list for each class the numbers of its rows, of rows predicted right, and of rows predicted wrong.
    """
    for count, hits, misses in zip(*classes, strict=True):
        weight = min(classes[0]) / count
        yield from ((1.0, weight, hits), (0.0, weight, misses))
