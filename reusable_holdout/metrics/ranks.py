"""Metrics of the order in which scores put the rows: areas under curves, and average precision.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that replacing row
r, its label kept, can change the statistic after it is normalised to [0, 1]. Class counts are public: neighbours keep
every label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.metric import Metric, metric_of
from reusable_holdout.metrics.scoring import FINE_SLACK, GRID, Likely, Ranked, RatioMean, Statistic
from reusable_holdout.metrics.targets import Targets

_BANDS = 8.0  # positive rows that say as much of an average precision as one row of a mean does of that
_FLOAT_SLACK = Fraction(1, 1 << 50)  # above what floats can add to a change of an average precision


def roc_auc() -> Metric:
    """Make the area under the receiver operating characteristic (ROC) of two classes.

    Replacing one row's features, its label kept, changes it by at most 1/min(n_0, n_1).

    Notes
    -----
    U/(n_0 n_1), U the number of pairs (positive, negative) in which the positive has the larger score, ties
    counting one half; the positive class is the last of the sorted ones. Class counts are public and equal
    between neighbours. A positive is in n_0 of the pairs, so c_r = n_0/(n_0 n_1) = 1/n_1; a negative's is
    1/n_0. Sensitivity: the larger, 1/min(n_0, n_1). Sum of c_r^2 = n_1/n_1^2 + n_0/n_0^2 = 1/n_0 + 1/n_1. Its family is
    "bounded", with min(n_0, n_1) effective rows: see :class:`~reusable_holdout.metrics.ranks.PairOrder`.

    References
    ----------
    .. [1] Agarwal, Graepel, Herbrich, Har-Peled, Roth (2005), "Generalization bounds for the area under
       the ROC curve", JMLR 6, Theorem 2.

    Examples
    --------
    >>> roc_auc().measure([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return metric_of("roc_auc", "scores", PairOrder)


def roc_auc_ovr(*, weighted: bool = False) -> Metric:
    """Make the mean over the classes of the area under each class's ROC curve against all others.

    Replacing one row's features, its label kept, changes it by at most w_k/n_k + sum over j other than k of
    w_j/(n - n_j), k the row's class.

    Parameters
    ----------
    weighted : bool
        If True a class counts by its rows, w_k = n_k/n, else like every other, w_k = 1/K over the K that have rows. In
        :func:`resolve_metric` "roc_auc_ovr_weighted" and "roc_auc_ovr".

    Raises
    ------
    InputError
        When binding, if fewer than two classes have rows.

    Notes
    -----
    Class counts are public and equal between neighbours. Class k's area orders the n_k (n - n_k) pairs of one of its
    rows and another row by the probability of k, ties counting one half. A row of class k is in n - n_k of these pairs,
    and in n_j of class j's n_j (n - n_j): c_r as above. Sensitivity: the largest. Sum of c_r^2: over the classes n_k
    times the square. Given the labels an area is unbiased, so the interval is about the population's at these shares.
    With two classes this is :func:`roc_auc`.

    References
    ----------
    .. [1] Provost and Domingos (2000), "Well-trained PETs: Improving probability estimation trees", section 6.2.

    Examples
    --------
    >>> ranked = [[0.6, 0.2, 0.2], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.1, 0.5, 0.4]]
    >>> round(roc_auc_ovr().measure([0, 1, 2, 2], ranked), 4)
    0.9444
    """
    name = "roc_auc_ovr_weighted" if weighted else "roc_auc_ovr"
    return metric_of(name, "probabilities", partial(_one_versus_rest, weighted), family="bounded-difference")


def average_precision() -> Metric:
    """Make the average precision: the mean over positives of the precision among all rows scored at least as high.

    Replacing one row's features, its label kept, changes it by at most about ln(n_1)/n_1, n_1 the rows of the positive
    class.

    Notes
    -----
    (1/P) times the sum over positives of t/(t + f), with t positives and f negatives scored at least as high; the
    positive class is the last of the sorted ones; scikit-learn's definition. With P and N rows of the classes, public
    and equal between neighbours, and H the harmonic numbers:

    - a negative row: c_r = (H(P + 1) - 1)/P, when it passes all positives and was the only negative to do so;
    - a positive row: c_r = (N/n + sum over t < P of F/((t + F)(t + F + 1)))/P, F = min(t, N), about (ln P)/(4 P): it
      passes all rows, in which the classes take turns, and lifts the precision at every other positive.

    Both are attained; derivations in :class:`~reusable_holdout.metrics.ranks.AveragePrecision`. Sensitivity: the
    larger. Sum of c_r^2: P and N times the squares, about (ln P)^2 (1/(16 P) + N/P^2): intervals are several times as
    wide as a :func:`roc_auc`'s, and say nothing where positives are rare. They are about the mean of this statistic
    over fresh holdouts of the same class counts.

    Examples
    --------
    >>> round(average_precision().measure([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return metric_of("average_precision", "scores", AveragePrecision, family="bounded-difference")


def _one_versus_rest(weighted: bool, metric: Definition, targets: Targets) -> OneVersusRest | PairOrder:
    targets.check_several(metric.name)
    if len(targets.counts) == 2:
        return PairOrder(metric, targets)
    counts = targets.present()
    return OneVersusRest(targets, counts if weighted else dict.fromkeys(counts, 1))


class PairOrder(RatioMean):
    """Share of (positive, negative) pairs of rows that scores put in order, ties counting one half.

    Twice the number of pairs in order is an integer, counted exactly in n log n. Both classes are present.

    Notes
    -----
    Given the class counts it is the mean, over all ways to pair m = min(n_0, n_1) positives with as many negatives, of
    the mean of m independent terms in {0, 1/2, 1}. Exponential moments are convex, so its own are at most those of m
    such terms, and ``Pr[value >= v] <= exp(-m kl(v, population value))`` [1]_: the bound of a mean of m losses.

    References
    ----------
    .. [1] Hoeffding (1963), "Probability inequalities for sums of bounded random variables", section 5.
    """

    family = "bounded"

    def __init__(self, metric: Definition, targets: Targets) -> None:
        targets.check_two(metric.name)
        self._negative = np.flatnonzero(targets.values == 0)
        self._positive = np.flatnonzero(targets.values == 1)
        negatives, positives = len(self._negative), len(self._positive)
        self.rows = targets.rows
        self.effective_rows = min(negatives, positives)
        self.sensitivity = Fraction(1, self.effective_rows)
        self.sum_of_squares = 1 / negatives + 1 / positives

    def _ratios(self, query: NDArray[Any]) -> list[tuple[int, int, int]]:
        ordered = _twice_ordered(query[self._negative], query[self._positive])
        return [(1, ordered, 2 * len(self._negative) * len(self._positive))]


class OneVersusRest(RatioMean):
    """Weighted mean over the classes of the area of each class's probability against all other rows.

    Weights > 0 are given for the codes of all classes that have rows: two at least, of three at least that may occur.

    Notes
    -----
    A row of class k is in n - n_k of the n_k (n - n_k) pairs of its own class's area, and in n_j of those of class j's:
    c_r = w_k/n_k + sum over j other than k of w_j/(n - n_j). Attained by a row whose probabilities turn from all on
    its class to none on it, while those of the others lie between.
    """

    def __init__(self, targets: Targets, weights: Mapping[int, int]) -> None:
        self.rows = self.effective_rows = targets.rows
        self._parts = [
            (weight, code, np.flatnonzero(targets.values == code), np.flatnonzero(targets.values != code))
            for code, weight in weights.items()
        ]
        counts = {code: len(own) for _, code, own, _ in self._parts}
        shares = {code: Fraction(weights[code], sum(weights.values())) for code in counts}
        of_rest = {code: shares[code] / (self.rows - own) for code, own in counts.items()}
        every = sum(of_rest.values(), Fraction(0))
        changes = {code: shares[code] / own + every - of_rest[code] for code, own in counts.items()}
        self.sensitivity = min(max(changes.values()) + FINE_SLACK, Fraction(1))
        self.sum_of_squares = float(sum(counts[code] * change**2 for code, change in changes.items()))

    def _ratios(self, query: NDArray[Any]) -> list[tuple[int, int, int]]:
        return [
            (weight, _twice_ordered(query[rest, code], query[own, code]), 2 * len(own) * len(rest))
            for weight, code, own, rest in self._parts
        ]


class AveragePrecision(Statistic):
    """Mean over the positive rows of the precision among all rows that score at least as high.

    Summed so that no order of adding matters; the room for the rounding of each precision is in the sensitivity. Both
    classes are present.

    Notes
    -----
    Let P and N be the rows of the two classes. At the score of a positive row let t and f be the positives and the
    negatives that score at least as high, so its precision is t/(t + f). The t-th of the positives from above, ties in
    any order, has a t that is at least its rank.

    A negative row that moves up raises f by one for the positives it passes: each loses t/((t + f)(t + f + 1)), which
    is largest for f = 0: 1/(t + 1). All P of them together lose at most 1/2 + 1/3 + ... + 1/(P + 1). Attained when the
    row passes all positives, no other negative being among them: c = (H(P + 1) - 1)/P, H the harmonic numbers.

    A positive row that moves up from rank j raises t by one for the other positives it passes, j - 1 at most: each
    gains f/((t + f)(t + f + 1)), which grows in f up to f = t and falls in t, so at most h(t) = F/((t + F)(t + F +
    1)), F = min(t, N), at the rank t. The row itself gains at most 1 - j/(j + N). The sum, N/(j + N) + h(1) + ... +
    h(j - 1), grows in j, for h(j) >= N/((j + N)(j + N + 1)). With j = P, and as h(t) = 1/(4 t + 2) for t <= N: c =
    (N/n + h(1) + ... + h(P - 1))/P. Attained from below all, past positives and negatives that take turns, to the
    top.
    """

    is_ratio = True  # an average of ratios

    def __init__(self, metric: Definition, targets: Targets) -> None:
        targets.check_two(metric.name)
        self._positive = targets.values == 1
        positives, negatives = int(targets.counts[1]), int(targets.counts[0])
        self.rows = self.effective_rows = targets.rows
        self._positives = positives
        alternating = min(positives - 1, negatives)
        rise = negatives / self.rows + _odd_harmonic(alternating) / 2
        if positives - 1 > negatives:  # h(t) = N/(t + N) - N/(t + N + 1) from here on
            rise += negatives / (2 * negatives + 1) - negatives / self.rows
        own = rise / positives * (1 + 1e-12)
        other = (_harmonic(positives + 1) - 1) / positives * (1 + 1e-12)
        self.sensitivity = min(Fraction(max(own, other)) + _FLOAT_SLACK, Fraction(1))
        self.sum_of_squares = positives * own**2 + negatives * other**2

    def _units(self, query: NDArray[Any]) -> int:
        """Floor the value to the grid."""
        return self._on_grid(*self._above(query))

    def _sample(self, query: NDArray[Any]) -> Ranked:
        """Return the number of negatives above each positive."""
        positive, above = self._above(query)
        return Ranked(self._on_grid(positive, above), above, self.rows - self._positives)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return rows that are about as uncertain as the bands say; measured at prevalences from .1 to .5."""
        return Likely(max(prevalence[1] * self.rows / _BANDS, 1.0), math.sqrt(mean * (1.0 - mean)))

    def _value(self, query: NDArray[Any]) -> float:
        """Sum the precisions at each distinct score, times its positives."""
        return self._mean(*self._above(query))

    def _above(self, query: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the scores of the positives from the highest down, and the number of negatives at or above each."""
        positive, negative = np.sort(query[self._positive])[::-1], np.sort(query[~self._positive])
        return positive, len(negative) - np.searchsorted(negative, positive, side="left")

    def _on_grid(self, positive: NDArray[Any], above: NDArray[np.int64]) -> int:
        return min(int(self._mean(positive, above) * GRID), GRID)  # times a power of two is exact

    def _mean(self, positive: NDArray[Any], above: NDArray[np.int64]) -> float:
        last = np.flatnonzero(np.append(positive[1:] != positive[:-1], True))  # of the positives that tie
        hits = last + 1
        precisions = hits / (hits + above[last])
        return math.fsum((np.diff(hits, prepend=0) * precisions).tolist()) / self._positives


def _twice_ordered(negative: NDArray[Any], positive: NDArray[Any]) -> int:
    """Return twice the pairs in order, ties counting one half, by binary search among the sorted negatives."""
    negative = np.sort(negative)
    positive = np.sort(positive)  # sorted searches stay in cache
    below = np.searchsorted(negative, positive, side="left").sum(dtype=np.int64)
    not_above = np.searchsorted(negative, positive, side="right").sum(dtype=np.int64)
    return int(below) + int(not_above)


def _harmonic(terms: int) -> float:
    """Return 1 + 1/2 + ... + 1/terms, to 1e-14."""
    if terms < 1_000:
        return math.fsum(1 / term for term in range(1, terms + 1))
    euler = 0.5772156649015329
    return math.log(terms) + euler + 1 / (2 * terms) - 1 / (12 * terms**2)  # the next term is below 1e-14


def _odd_harmonic(terms: int) -> float:
    """Return 1/3 + 1/5 + ... + 1/(2 terms + 1)."""
    return _harmonic(2 * terms + 1) - _harmonic(terms) / 2 - 1
