"""Metrics of predicted labels that are ratios of counts, and not means over rows.

Where the guard's policy allows it, a metric of one class is decided by the evidence of the rows about the ratio (see
:class:`~reusable_holdout.metrics.Ratio`), and class counts do not matter. The sensitivities and sums of squares in
these docstrings are for the other policies, and for averages over classes.

In all of them n is the number of holdout rows and n_k the number of rows of class k. TP is the number of rows of class
k that are predicted k, and PP the number of rows of any class that are predicted k. c_r is the most that replacing row
r, its label kept, can change the statistic after it is normalised to [0, 1]. Class counts are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.confusion import (
    ClassAverage,
    ClassScore,
    FScore,
    JaccardScore,
    PrecisionScore,
    decimal,
)
from reusable_holdout.metrics.definition import Definition, checked_number
from reusable_holdout.metrics.label_metrics import Average, averaged_name
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.samples import Likely, Rates
from reusable_holdout.metrics.scoring import GRID, Agreement, Statistic
from reusable_holdout.metrics.targets import Targets

_CHUNK = 1 << 20


def precision(*, floor: float = 0.5, average: Average = "binary") -> Metric:
    """Make the precision: the share of rows predicted positive that are positive, lowered if a model predicts too few.

    Replacing one row's features, its label kept, changes it by at most 1/m with m = ceil(floor n_1), where n_1 is the
    number of rows of the positive class.

    Parameters
    ----------
    floor : float
        Share of a class's rows, in (0, 1]. A model that predicts the class less than `floor` times as often as it
        occurs is scored as if its missing predictions were wrong. Otherwise this is the plain precision.
    average : {"binary", "macro", "micro", "weighted"}
        "binary": the precision of the positive class, which is the last of the two sorted classes. "macro": the mean
        over all classes that have rows. "micro": the precision of all rows together. "weighted": the mean over classes,
        weighted by their numbers of rows. The names in :func:`resolve_metric` are "precision", "precision_macro",
        "precision_micro" and "precision_weighted".

    Raises
    ------
    InputError
        If an argument is out of range; when binding, if the labels do not have the classes it needs.

    Notes
    -----
    The metric is TP / max(PP, m). Without the floor there could be no guarantee: if a model predicts a single row
    positive, this row alone decides between precision 0 and 1, so the sensitivity of TP/PP is 1 however large the
    holdout is. A model that predicts no row positive scores 0, as in scikit-learn.

    "binary": c_r = 1/m for a positive row and 1/(m + 1) for a negative one, and the sensitivity is 1/m. The sum of
    c_r^2 is replaced by the smaller of 4.6/m and max(n, 2 n_1)/m^2. Each of them bounds the distance from the
    population value n_1 r / max(n_1 r + n_0 f, m), where r and f are the probabilities that a positive and a negative
    row are predicted positive. This bound accounts for bias, too. It is derived in
    :class:`~reusable_holdout.metrics.confusion.PrecisionScore`.

    "macro" and "weighted": sum_k w_k TP_k / max(PP_k, m_k), with w_k = 1/K for the K classes that have rows, or
    w_k = n_k/n. For a row of class k, c_r = w_k/m_k + max over j other than k of w_j/(m_j + 1). The interval is about
    the mean of this statistic over fresh holdouts with the same class counts. scikit-learn also averages over classes
    that are predicted and have no rows. "micro" equals the :func:`~reusable_holdout.metrics.accuracy`, because each row
    gets one label.

    Examples
    --------
    >>> precision().measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.6666666666666666
    >>> precision(floor=1).measure([0, 0, 1, 1], [0, 0, 0, 1])
    0.5
    """
    return _averaged("precision", PrecisionScore, average, floor=_checked_floor(floor))


def f1(*, average: Average = "binary") -> Metric:
    """Make the F1: the harmonic mean of precision and recall of the positive class, or its average over classes.

    Replacing one row's features, its label kept, changes it by at most 2/(n_1 + 1), where n_1 is the number of rows of
    the positive class.

    Parameters
    ----------
    average : {"binary", "macro", "micro", "weighted"}
        "binary": the F1 of the positive class, which is the last of the two sorted classes. "macro": the mean over all
        classes that have rows. "micro": the F1 of all rows together. "weighted": the mean over classes, weighted by
        their numbers of rows. The names in :func:`resolve_metric` are "f1", "f1_macro", "f1_micro" and "f1_weighted".

    Raises
    ------
    InputError
        If there is no such average; when binding, if the labels do not have the classes it needs.

    Notes
    -----
    "binary": 2 TP / (PP + n_1), whose denominator is at least n_1. c_r = 2/(n_1 + 1) for a positive row and
    1/(2 n_1 + 1) for a negative one, and the sensitivity is 2/(n_1 + 1). The sum of c_r^2 is replaced by the largest
    value of (2 - w)^2 (n_1 (2 - w)^2 + n_0 w^2) / (2 n_1)^2 over w in [0, 1], which is 4/n_1 unless positives are rare.
    It bounds the distance from the population value 2 n_1 r / (n_1 r + n_0 f + n_1), where r and f are the
    probabilities that a positive and a negative row are predicted positive. This bound accounts for bias, too. It is
    derived in :class:`~reusable_holdout.metrics.confusion.FScore`.

    "macro" and "weighted": sum_k w_k F_k, where F_k is the F1 of class k, with w_k = 1/K for the K classes that have
    rows, or w_k = n_k/n. For a row of class k, c_r = 2 w_k/(n_k + 1) + max over j other than k of w_j/(2 n_j + 1), and
    less with two classes. The interval is about the mean of this statistic over fresh holdouts with the same class
    counts. scikit-learn also averages over classes that are predicted and have no rows. "micro" equals the
    :func:`~reusable_holdout.metrics.accuracy`, because each row gets one label.

    Examples
    --------
    >>> f1().measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.8
    """
    return _averaged("f1", FScore, average)


def fbeta(*, beta: float, average: Average = "binary") -> Metric:
    """Make the F-beta: the weighted harmonic mean of precision and recall, recall counting `beta` times as much.

    Replacing one row's features, its label kept, changes it by at most (1 + b)/(b n_1 + 1) with b = beta^2, where n_1
    is the number of rows of the positive class, or by what a negative row can change (see Notes) if that is more.

    Parameters
    ----------
    beta : float
        Weight of recall against precision, in [0.1, 10]; 1 gives the F1.
    average : {"binary", "macro", "micro", "weighted"}
        The same averages as for :func:`f1`.

    Raises
    ------
    InputError
        If an argument is out of range; when binding, if the labels do not have the classes it needs.

    Notes
    -----
    With B = 1 + b the metric is B TP / (PP + b n_1). For a positive row c_r = B/(b n_1 + 1). For a negative row c_r is
    the largest value of B TP/((TP + b n_1)(TP + b n_1 + 1)) over TP <= n_1. The sum of c_r^2 is replaced by the largest
    value of (B - w)^2 (n_1 (B - w)^2 + n_0 w^2) / (B b n_1)^2 over w in [0, 1], which bounds the distance from the
    population value as for :func:`f1`. Derivations are in :class:`~reusable_holdout.metrics.confusion.FScore`. Averages
    are computed as for :func:`f1`.

    Examples
    --------
    >>> round(fbeta(beta=2).measure([0, 0, 1, 1], [0, 0, 0, 1]), 4)
    0.5556
    """
    stated = checked_number(
        beta, lambda b: 0.1 <= b <= 10, "beta must be a number in [0.1, 10]", "1 is the usual F1"
    )
    return _averaged("fbeta", FScore, average, beta=stated)


def jaccard() -> Metric:
    """Make Jaccard's index: of the rows that are positive or predicted positive, the share that are both.

    Replacing one row's features, its label kept, changes it by at most 1/n_1, where n_1 is the number of rows of the
    positive class.

    Raises
    ------
    InputError
        When binding, if there are not exactly two classes, both present.

    Notes
    -----
    The metric is TP / (PP + n_1 - TP), whose denominator is at least n_1. c_r = 1/n_1 for a positive row and
    1/(n_1 + 1) for a negative one. It ranks models as :func:`f1` does, because it equals F / (2 - F) for the F1 F.

    Examples
    --------
    >>> jaccard().measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.6666666666666666
    """
    return _averaged("jaccard", JaccardScore, "binary")


def matthews_corrcoef(*, floor: float | None = None) -> Metric:
    """Make Matthews's correlation of predicted and true labels of two classes, in [-1, 1].

    The interval is about a population with the holdout's class shares. Replacing one row can change it by any amount,
    so it takes no noise and no threshold unless a floor is stated.

    Parameters
    ----------
    floor : float, optional
        Share of the rarer class's rows, in (0, 1]. If a model predicts a class less than `floor` times as often as the
        rarer class occurs, the denominator of its score uses the variance of predictions that are exactly that
        frequent. Otherwise this is the plain correlation.

    Raises
    ------
    InputError
        If `floor` is out of range; when binding, if there are not exactly two classes, both present.

    Notes
    -----
    The metric is (n TP - P PP) / sqrt(P N PP (n - PP)), where P and N are the numbers of positive and negative rows. A
    model that predicts one class only scores 0, as in scikit-learn. With a floor PP (n - PP) is at least m (n - m),
    with m = ceil(floor min(P, N)). If no row is predicted positive and then one is, the score moves from 0 by about
    1/sqrt(n), so without a floor the sum of c_r^2 does not decrease with n.

    With a floor c_r is the same for all rows of a class: the largest change that is found by trying every PP. The
    interval is then about the mean of this statistic over fresh holdouts with the same class counts, which differs from
    the correlation on infinitely many rows with these class shares by a multiple of 1/n.

    References
    ----------
    .. [1] Matthews (1975), "Comparison of the predicted and observed secondary structure of T4 phage lysozyme".

    Examples
    --------
    >>> round(matthews_corrcoef().measure([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.5774
    """
    return metric_of(
        "matthews_corrcoef",
        "labels",
        _Matthews,
        bounds=(-1, 1),
        family="bounded-difference",
        parameters={} if floor is None else {"floor": _checked_floor(floor)},
    )


def _checked_floor(floor: float) -> float:
    return checked_number(
        floor,
        lambda share: 0 < share <= 1,
        "floor must be a share of a class's rows in (0, 1]",
        "a model that is worth asking about predicts a class at least half as often as it occurs: 0.5 is usual",
    )


def _averaged(name: str, score: type[ClassScore], average: Average, **parameters: float) -> Metric:
    """Return the metric of this score and average; the "micro" average has no parameters."""
    name = averaged_name(name, average)
    if average == "micro":
        return metric_of(name, "labels", Agreement, family="binomial")
    kernel = partial(ClassAverage, score, average)
    return metric_of(name, "labels", kernel, family="bounded-difference", parameters=parameters)


class _Matthews(Statistic):
    """Correlation of true and predicted labels of two classes, perhaps with a floor under the predictions' variance.

    It is (n TP - P PP) / sqrt(P N Q) with Q = max(PP (n - PP), m (n - m)). P and N are the numbers of positive and
    negative rows, both public, and the floor m lies between 1 and min(P, N). Scores are computed in integers.

    Notes
    -----
    It lies in [-1, 1]: without the floor by the Cauchy-Schwarz inequality, and the floor does not increase its size.

    If the prediction for a positive row becomes positive, (TP, PP) becomes (TP + 1, PP + 1); for a negative row it
    becomes (TP, PP + 1). At a given PP the change is a linear function of TP, so its size is largest at the smallest or
    the largest TP that PP allows. The code tries all PP from 0 to n - 1 with both these values of TP. So the changes
    are exact up to rounding, and a margin is added for the rounding.
    """

    def __init__(self, metric: Definition, targets: Targets) -> None:
        targets.check_two(metric.name)
        self._positive = targets.values == 1
        self.rows = self.effective_rows = targets.rows
        negatives, positives = (int(count) for count in targets.counts)
        self._counts = positives, negatives
        if "floor" not in metric.parameters:
            self.is_ratio = self.only_as_ratio = True
            self.sensitivity, self.sum_of_squares, self._floor = Fraction(1), float(self.rows), 1
            return
        least = math.ceil(decimal(metric.parameters["floor"]) * min(positives, negatives))
        self._floor = least * (self.rows - least)
        own = self._largest_change(hit=1) / 2 * (1 + 1e-12) + 1e-14  # half: [-1, 1] becomes [0, 1]
        other = self._largest_change(hit=0) / 2 * (1 + 1e-12) + 1e-14
        self.sensitivity = min(Fraction(max(own, other)), Fraction(1))
        self.sum_of_squares = positives * own**2 + negatives * other**2

    def _units(self, query: NDArray[Any]) -> int:
        """Return the correlation mapped from [-1, 1] to [0, 1], in grid units, by square roots of integers."""
        upper, square = self._fraction(query)
        scaled = upper**2 * (GRID // 2) ** 2
        if upper >= 0:
            return GRID // 2 + math.isqrt(scaled // square)
        return GRID // 2 - math.isqrt((scaled - 1) // square) - 1

    def _value(self, query: NDArray[Any]) -> float:
        upper, square = self._fraction(query)
        return upper / math.sqrt(square)

    def _sample(self, query: NDArray[Any]) -> Rates:
        """Return the score, and for each class the number of rows predicted right and of all rows."""
        (positives, negatives), right = self._counts, query == self._positive
        hits = int(np.count_nonzero(right[self._positive]))
        return Rates(self._units(query), hits, positives, int(np.count_nonzero(right)) - hits, negatives)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows as uncertain as this metric, if positives are predicted as often as they occur."""
        rest, own = prevalence
        correlation = 2.0 * mean - 1.0
        recall = min(max(own + correlation * rest, 0.0), 1.0)
        specificity = min(max(rest + correlation * own, 0.0), 1.0)
        turned = correlation * (rest - own) / 2.0
        errors = (
            abs(slope) * math.sqrt(rate * (1.0 - rate) / (share * self.rows))
            for slope, rate, share in (
                (1.0 - turned / rest, recall, own),
                (1.0 + turned / own, specificity, rest),
            )
        )
        return Likely.with_error(sum(errors) / 2.0, mean)  # the ends of both intervals are added

    def _fraction(self, query: NDArray[Any]) -> tuple[int, int]:
        """Return the numerator of the correlation, and the square of its denominator."""
        positives, negatives = self._counts
        predicted = int(np.count_nonzero(query))
        hits = int(np.count_nonzero(query[self._positive]))
        spread = max(predicted * (self.rows - predicted), self._floor)
        return self.rows * hits - positives * predicted, positives * negatives * spread

    def _largest_change(self, *, hit: int) -> float:
        """Return the largest change when a positive row (hit=1) or a negative one becomes predicted positive."""
        positives, negatives = map(float, self._counts)
        rows, largest = float(self.rows), 0.0
        for start in range(0, self.rows, _CHUNK):
            predicted = np.arange(start, min(start + _CHUNK, self.rows), dtype=np.float64)
            before, after = (
                1 / np.sqrt(positives * negatives * np.maximum(count * (rows - count), float(self._floor)))
                for count in (predicted, predicted + 1)
            )
            fewest = np.maximum(predicted - (negatives - (1 - hit)), 0)
            most = np.minimum(predicted, positives - hit)
            for hits in (fewest, most):
                first = (rows * hits - positives * predicted) * before
                second = (rows * (hits + hit) - positives * (predicted + 1)) * after
                largest = max(largest, float(np.abs(second - first).max()))
        return largest
