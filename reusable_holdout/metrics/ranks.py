"""Metrics of the order in which a model's scores rank the rows: areas under ROC curves, and average precision.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that replacing row
r, its label kept, can change the statistic after it is normalised to [0, 1]. Class counts are public, because
neighbours keep every label.
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
from reusable_holdout.metrics.samples import Likely, Ordered, Ranked
from reusable_holdout.metrics.scoring import FINE_SLACK, GRID, RatioMean, Statistic
from reusable_holdout.metrics.targets import Targets

_BANDS = 8.0  # so many positive rows tell as much about an average precision as one row about a mean
_FLOAT_SLACK = Fraction(1, 1 << 50)  # more than rounding can add to a change of an average precision


def roc_auc() -> Metric:
    """Make the area under the receiver operating characteristic (ROC) of two classes.

    Replacing one row's features, its label kept, changes it by at most 1/min(n_0, n_1), where n_0 and n_1 are the
    numbers of negative and of positive rows.

    Notes
    -----
    The metric is U/(n_0 n_1), where U is the number of pairs of a positive and a negative row in which the positive has
    the larger score; ties count one half. The positive class is the last of the sorted classes. Class counts are public
    and equal between neighbours. A positive row is in n_0 of the pairs, so c_r = n_0/(n_0 n_1) = 1/n_1. For a negative
    row c_r = 1/n_0. The sensitivity is the larger one, 1/min(n_0, n_1). The sum of c_r^2 is n_1/n_1^2 + n_0/n_0^2 =
    1/n_0 + 1/n_1. The family is "bounded", with min(n_0, n_1) effective rows; see
    :class:`~reusable_holdout.metrics.ranks.PairOrder`.

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

    Replacing the features of a row of class k, its label kept, changes it by at most w_k/n_k + sum over j other than k
    of w_j/(n - n_j), where w_j is the weight of class j and n_j its number of rows.

    Parameters
    ----------
    weighted : bool
        If True, a class is weighted by its number of rows, w_k = n_k/n. Otherwise all K classes that have rows have the
        same weight, w_k = 1/K. The names in :func:`resolve_metric` are "roc_auc_ovr_weighted" and "roc_auc_ovr".

    Raises
    ------
    InputError
        When binding, if fewer than two classes have rows.

    Notes
    -----
    Class counts are public and equal between neighbours. The area of class k is the share of the n_k (n - n_k) pairs of
    one of its rows and another row that the probability of k puts in order; ties count one half. A row of class k is in
    n - n_k of these pairs, and in n_j of the n_j (n - n_j) pairs of class j. So its change c_r is the one stated above.
    The sensitivity is the largest c_r; the sum of c_r^2 is the sum over classes of n_k times the square of its c_r.
    Given the labels an area is unbiased, so the interval is about the population's area at these class shares. With two
    classes this is :func:`roc_auc`.

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

    Replacing one row's features, its label kept, changes it by at most about ln(n_1)/n_1, where n_1 is the number of
    rows of the positive class.

    Notes
    -----
    This is scikit-learn's definition: 1/P times the sum over the positive rows of t/(t + f), where t positives and f
    negatives are scored at least as high as the row. The positive class is the last of the sorted classes. P and N are
    the numbers of positive and negative rows, public and equal between neighbours. H denotes the harmonic numbers.

    - For a negative row c_r = (H(P + 1) - 1)/P. It changes the metric by so much if it moves above all positives and no
      other negative is there.
    - For a positive row c_r = (N/n + sum over t < P of F/((t + F)(t + F + 1)))/P with F = min(t, N), which is about
      (ln P)/(4 P). It changes the metric by so much if it moves from the bottom to the top of a ranking in which the
      classes alternate, so that it raises the precision at every other positive.

    Both changes are attained; :class:`~reusable_holdout.metrics.ranks.AveragePrecision` has the derivations. The
    sensitivity is the larger one. The sum of c_r^2 is P and N times the squares of the second and of the first c_r,
    about (ln P)^2 (1/(16 P) + N/P^2). So intervals are several times as wide as those of :func:`roc_auc`, and say
    nothing if positives are rare. They are about the metric's mean over fresh holdouts with the same class counts.

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
    """The share of pairs of a positive and a negative row that scores put in the right order; ties count one half.

    Twice the number of pairs in order is an integer, counted exactly in O(n log n) time. Both classes must be present.

    Notes
    -----
    Given the class counts it is an average over all ways to pair m = min(n_0, n_1) positives with m negatives.
    For each way it takes the mean of m independent terms in {0, 1/2, 1}. The exponential function is convex, so the
    exponential moments of the average are at most those of a mean of m such terms. Therefore ``Pr[value >= v] <=
    exp(-m kl(v, population value))`` [1]_, the bound for a mean of m losses.

    References
    ----------
    .. [1] Hoeffding (1963), "Probability inequalities for sums of bounded random variables", section 5.
    """

    family = "bounded"
    is_ratio = True  # the evidence of many such pairings does not need class counts

    def __init__(self, metric: Definition, targets: Targets) -> None:
        targets.check_two(metric.name)
        self._negative = np.flatnonzero(targets.values == 0)
        self._positive = np.flatnonzero(targets.values == 1)
        negatives, positives = len(self._negative), len(self._positive)
        self.rows = targets.rows
        self.effective_rows = min(negatives, positives)
        self.sensitivity = Fraction(1, self.effective_rows)
        self.sum_of_squares = 1 / negatives + 1 / positives

    def shuffle(self, secret: bytes) -> None:
        """Shuffle the rows of each class by a secret: in a file sorted by a feature, adjacent rows are alike."""
        order = np.random.default_rng(list(secret))
        for rows in (self._negative, self._positive):
            rows.sort()
            order.shuffle(rows)

    def _ratios(self, query: NDArray[Any]) -> list[tuple[int, int, int]]:
        ordered = _twice_ordered(query[self._negative], query[self._positive])
        return [(1, ordered, 2 * len(self._negative) * len(self._positive))]

    def _sample(self, query: NDArray[Any]) -> Ordered:
        """Return the score, and both classes' scores."""
        return Ordered(self._units(query), query[self._positive], query[self._negative])

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return the number of the rarer class's rows, and the standard deviation of such a row's share of pairs won.

        The pairs are those of one matching. The chance that a row wins two pairs is that of exponential scores [1]_.

        References
        ----------
        .. [1] Hanley and McNeil (1982), "The meaning and use of the area under a ROC curve", Radiology 143.
        """
        area = max(mean, 1.0 - mean)
        twice = area / (2.0 - area) if prevalence[1] <= 0.5 else 2.0 * area**2 / (1.0 + area)
        few, own = min(prevalence), max(twice - area**2, 0.0)
        alone = max(area * (1.0 - area) - own, 0.0)
        return Likely(few * self.rows, math.sqrt(own + alone * few / (1.0 - few)))


class OneVersusRest(RatioMean):
    """The weighted mean over classes of the area under each class's ROC curve against all other rows.

    `weights` maps the codes of all classes that have rows to weights above 0. At least two classes have rows, and at
    least three may occur.

    Notes
    -----
    A row of class k is in n - n_k of the n_k (n - n_k) pairs of its own class's area, and in n_j of the pairs of class
    j's area. So c_r = w_k/n_k + sum over j other than k of w_j/(n - n_j). This is attained if the row's probability of
    its own class changes from 1 to 0, and the probabilities of all other rows lie between.
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
    """The mean over the positive rows of the precision among all rows that score at least as high.

    The sum is exact, so the order of adding does not matter. The sensitivity includes a margin for the rounding of each
    precision. Both classes must be present.

    Notes
    -----
    Let P and N be the numbers of positive and negative rows. At the score of a positive row let t positives and f
    negatives score at least as high, so that the precision is t/(t + f). If the positives are ranked from the highest
    score down, ties in any order, the t of a positive is at least its rank.

    A negative row that moves up raises f by one for the positives it passes. Each of these loses t/((t + f)(t + f +
    1)), which is largest for f = 0, where it is 1/(t + 1). All P of them together lose at most 1/2 + 1/3 + ... +
    1/(P + 1). This is attained when the row passes all positives and no other negative is above any of them:
    c = (H(P + 1) - 1)/P, where H denotes the harmonic numbers.

    A positive row that moves up from rank j raises t by one for the other positives it passes, at most j - 1. Each of
    these gains f/((t + f)(t + f + 1)), which increases in f up to f = t and decreases in t. So at rank t it gains at
    most h(t) = F/((t + F)(t + F + 1)) with F = min(t, N). The row itself gains at most 1 - j/(j + N). The sum N/(j + N)
    + h(1) + ... + h(j - 1) increases in j, because h(j) >= N/((j + N)(j + N + 1)). So it is largest at j = P:
    c = (N/n + h(1) + ... + h(P - 1))/P, where h(t) = 1/(4 t + 2) for t <= N. This is attained when the row moves from
    below all others to the top, past positives and negatives that alternate.
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
        """Return the value in grid units, rounded down."""
        return self._on_grid(*self._above(query))

    def _sample(self, query: NDArray[Any]) -> Ranked:
        """Return the score, and for each positive the number of negatives that score at least as high."""
        positive, above = self._above(query)
        return Ranked(self._on_grid(positive, above), above, self.rows - self._positives)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows about as uncertain as this metric, as measured at prevalences from 0.1 to 0.5."""
        return Likely(max(prevalence[1] * self.rows / _BANDS, 1.0), math.sqrt(mean * (1.0 - mean)))

    def _value(self, query: NDArray[Any]) -> float:
        """Return the mean precision over the positives."""
        return self._mean(*self._above(query))

    def _above(self, query: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the positives' scores, highest first, and for each the number of negatives at or above it."""
        positive, negative = np.sort(query[self._positive])[::-1], np.sort(query[~self._positive])
        return positive, len(negative) - np.searchsorted(negative, positive, side="left")

    def _on_grid(self, positive: NDArray[Any], above: NDArray[np.int64]) -> int:
        return min(int(self._mean(positive, above) * GRID), GRID)  # times a power of two is exact

    def _mean(self, positive: NDArray[Any], above: NDArray[np.int64]) -> float:
        last = np.flatnonzero(np.append(positive[1:] != positive[:-1], True))  # last place of each tie
        hits = last + 1
        precisions = hits / (hits + above[last])
        return math.fsum((np.diff(hits, prepend=0) * precisions).tolist()) / self._positives


def _twice_ordered(negative: NDArray[Any], positive: NDArray[Any]) -> int:
    """Return twice the number of pairs in order, where ties count one half, by binary search in sorted negatives."""
    negative = np.sort(negative)
    positive = np.sort(positive)  # sorted searches stay in cache
    below = np.searchsorted(negative, positive, side="left").sum(dtype=np.int64)
    not_above = np.searchsorted(negative, positive, side="right").sum(dtype=np.int64)
    return int(below) + int(not_above)


def _harmonic(terms: int) -> float:
    """Return 1 + 1/2 + ... + 1/terms, accurate to 1e-14."""
    if terms < 1_000:
        return math.fsum(1 / term for term in range(1, terms + 1))
    euler = 0.5772156649015329
    return math.log(terms) + euler + 1 / (2 * terms) - 1 / (12 * terms**2)  # the next term is below 1e-14


def _odd_harmonic(terms: int) -> float:
    """Return 1/3 + 1/5 + ... + 1/(2 terms + 1)."""
    return _harmonic(2 * terms + 1) - _harmonic(terms) / 2 - 1
