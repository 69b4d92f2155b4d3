"""Statistics of how scores rank the rows; class counts are public: neighbours keep every label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.samples import Likely, Ranked
from reusable_holdout.metrics.scoring import FINE_BITS, FINE_SLACK, GRID, GRID_BITS, Statistic
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["AveragePrecision", "OneVersusRest", "PairOrder"]

_BANDS = 8.0  # positive rows that say as much of an average precision as one row of a mean does of that
_FLOAT_SLACK = Fraction(1, 1 << 50)  # above what floats can add to a change of an average precision


class PairOrder(Statistic):
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

    def __init__(self, targets: ClassTargets) -> None:
        self._negative = np.flatnonzero(targets.codes == 0)
        self._positive = np.flatnonzero(targets.codes == 1)
        negatives, positives = len(self._negative), len(self._positive)
        self.rows = targets.rows
        self.effective_rows = min(negatives, positives)
        self.sensitivity = Fraction(1, self.effective_rows)
        self.sum_of_squares = 1 / negatives + 1 / positives
        self._twice_pairs = 2 * negatives * positives

    def units(self, query: NDArray[Any]) -> int:
        """Shift twice the pairs in order left and divide by twice all pairs, in integers."""
        return (self._twice_ordered(query) << GRID_BITS) // self._twice_pairs

    def value(self, query: NDArray[Any]) -> float:
        """Area under the receiver operating characteristic."""
        return self._twice_ordered(query) / self._twice_pairs

    def _twice_ordered(self, query: NDArray[Any]) -> int:
        return _twice_ordered(query[self._negative], query[self._positive])


class OneVersusRest(Statistic):
    """Weighted mean over the classes of the area of each class's probability against all other rows.

    Each area is an exact fraction; they are floored at 2^-96, and the room for that is in the sensitivity. Weights > 0
    are those of the codes of all classes that have rows: two at least, of three at least that may occur.

    Notes
    -----
    A row of class k is in n - n_k of the n_k (n - n_k) pairs of its own class's area, and in n_j of those of class j's:
    c_r = w_k/n_k + sum over j other than k of w_j/(n - n_j). Attained by a row whose probabilities turn from all on
    its class to none on it, while those of the others lie between.
    """

    def __init__(self, targets: ClassTargets, weights: Mapping[int, int]) -> None:
        self.rows = targets.rows
        self._total = sum(weights.values())
        self._parts = [
            (weight, code, np.flatnonzero(targets.codes == code), np.flatnonzero(targets.codes != code))
            for code, weight in weights.items()
        ]
        counts = {code: len(own) for _, code, own, _ in self._parts}
        shares = {code: Fraction(weights[code], self._total) for code in counts}
        of_rest = {code: shares[code] / (self.rows - own) for code, own in counts.items()}
        every = sum(of_rest.values(), Fraction(0))
        changes = {code: shares[code] / own + every - of_rest[code] for code, own in counts.items()}
        self.sensitivity = min(max(changes.values()) + FINE_SLACK, Fraction(1))
        self.sum_of_squares = float(sum(counts[code] * change**2 for code, change in changes.items()))

    def units(self, query: NDArray[Any]) -> int:
        """Floor each area, then the mean, then to the grid."""
        weighted = 0
        for weight, code, own, rest in self._parts:
            ordered = _twice_ordered(query[rest, code], query[own, code])
            weighted += weight * ((ordered << FINE_BITS) // (2 * len(own) * len(rest)))
        return (weighted // self._total) >> (FINE_BITS - GRID_BITS)

    def value(self, query: NDArray[Any]) -> float:
        """Weighted mean of the areas."""
        areas = (
            weight * _twice_ordered(query[rest, code], query[own, code]) / (2 * len(own) * len(rest))
            for weight, code, own, rest in self._parts
        )
        return sum(areas) / self._total


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

    def __init__(self, targets: ClassTargets) -> None:
        self._positive = targets.codes == 1
        positives, negatives = int(targets.counts[1]), int(targets.counts[0])
        self.rows = targets.rows
        self._positives = positives
        alternating = min(positives - 1, negatives)
        rise = negatives / self.rows + _odd_harmonic(alternating) / 2
        if positives - 1 > negatives:  # h(t) = N/(t + N) - N/(t + N + 1) from here on
            rise += negatives / (2 * negatives + 1) - negatives / self.rows
        own = rise / positives * (1 + 1e-12)
        other = (_harmonic(positives + 1) - 1) / positives * (1 + 1e-12)
        self.sensitivity = min(Fraction(max(own, other)) + _FLOAT_SLACK, Fraction(1))
        self.sum_of_squares = positives * own**2 + negatives * other**2

    def units(self, query: NDArray[Any]) -> int:
        """Floor the value to the grid."""
        return self._units(*self._above(query))

    def sample(self, query: NDArray[Any]) -> Ranked:
        """Negatives above each positive."""
        positive, above = self._above(query)
        return Ranked(self._units(positive, above), above, self.rows - self._positives)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """About as wide as the bands say; measured at prevalences from .1 to .5."""
        return Likely(max(prevalence[1] * self.rows / _BANDS, 1.0), math.sqrt(mean * (1.0 - mean)))

    def value(self, query: NDArray[Any]) -> float:
        """Sum the precisions at each distinct score, times its positives."""
        return self._mean(*self._above(query))

    def _above(self, query: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Scores of the positives from the highest down, and how many negatives score at least as high as each."""
        positive, negative = np.sort(query[self._positive])[::-1], np.sort(query[~self._positive])
        return positive, len(negative) - np.searchsorted(negative, positive, side="left")

    def _units(self, positive: NDArray[Any], above: NDArray[np.int64]) -> int:
        return min(int(self._mean(positive, above) * GRID), GRID)  # times a power of two is exact

    def _mean(self, positive: NDArray[Any], above: NDArray[np.int64]) -> float:
        last = np.flatnonzero(np.append(positive[1:] != positive[:-1], True))  # of the positives that tie
        hits = last + 1
        precisions = hits / (hits + above[last])
        return math.fsum((np.diff(hits, prepend=0) * precisions).tolist()) / self._positives


def _twice_ordered(negative: NDArray[Any], positive: NDArray[Any]) -> int:
    """Twice the pairs in order, ties counting one half, by binary search among the sorted negatives."""
    negative = np.sort(negative)
    positive = np.sort(positive)  # sorted searches stay in cache
    below = np.searchsorted(negative, positive, side="left").sum(dtype=np.int64)
    not_above = np.searchsorted(negative, positive, side="right").sum(dtype=np.int64)
    return int(below) + int(not_above)


def _harmonic(terms: int) -> float:
    """1 + 1/2 + ... + 1/terms, to 1e-14."""
    if terms < 1_000:
        return math.fsum(1 / term for term in range(1, terms + 1))
    euler = 0.5772156649015329
    return math.log(terms) + euler + 1 / (2 * terms) - 1 / (12 * terms**2)  # the next term is below 1e-14


def _odd_harmonic(terms: int) -> float:
    """1/3 + 1/5 + ... + 1/(2 terms + 1)."""
    return _harmonic(2 * terms + 1) - _harmonic(terms) / 2 - 1
