"""Precision, F and Jaccard's index of a class, the most that one row can change them, and their averages over classes.

Neighbouring data sets have the same labels, so class counts are public. For class k, n_k is the number of its rows, TP
the number of them that are predicted as k, FP the number of rows of other classes predicted as k, and PP = TP + FP.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.samples import Counted, Likely, Ratio, ratio
from reusable_holdout.metrics.scoring import FINE_SLACK, GRID_BITS, RatioMean
from reusable_holdout.metrics.targets import Targets

_MOST_CLASSES = 8  # with more, the mean of the classes' intervals is wider than the mean's own interval


def decimal(number: float) -> Fraction:
    """Return a float as the fraction that it is written as: 0.1 becomes 1/10, though the float is slightly larger."""
    return Fraction(repr(number))


class ClassScore(ABC):
    """A score in [0, 1] of one class against all others, computed from counts of rows; the class has at least one row.

    Attributes
    ----------
    own : int
        Number of rows of the class; the other rows are `rest`.
    own_change, rest_change : fractions.Fraction
        Largest change of the score when a row of the class is replaced, and when another row is.
    spread : float
        Number s, used as a sum of squares: Pr[score beyond its population value by t] <= exp(-2 t^2 / s) on each side.
    """

    own_change: Fraction
    rest_change: Fraction
    spread: float

    def __init__(self, metric: Definition, own: int, rest: int) -> None:
        self.own, self.rest = own, rest

    @abstractmethod
    def ratio(self, hits: int, predicted: int) -> tuple[int, int]:
        """Return the score's numerator and positive denominator, given TP (`hits`) and PP (`predicted`)."""

    @abstractmethod
    def ratios(self, hits: float, predicted: float) -> tuple[Ratio, ...]:
        """Return ratios of weighted means over rows: the score is the only one, or the smallest of several."""

    def likely_hits(self, mean: float) -> float:
        """Return the TP/n_k at which the score is `mean`, if the class is predicted as often as it occurs."""
        return mean

    def joint_change(self, other: ClassScore, weight: Fraction, other_weight: Fraction) -> Fraction:
        """Return the most that one row of this class can change the weighted sum of the two classes' scores."""
        return weight * self.own_change + other_weight * other.rest_change


class FScore(ClassScore):
    """F-beta of one class: B TP / (PP + b n_k), with b = beta^2 > 0 and B = 1 + b.

    Notes
    -----
    `own_change`: TP and PP grow by one. With X = FP + b n_k the change is B X / ((TP + X)(TP + X + 1)). It decreases
    in TP, so it is largest at TP = 0, where it is B / (X + 1), and there at FP = 0: B / (b n_k + 1). This is attained.

    `rest_change`: FP grows by one. With Y = PP + b n_k the change is B TP / (Y (Y + 1)). It decreases in FP, so it is
    largest at FP = 0. In TP it increases while TP^2 < c (c + 1), c = b n_k, and then decreases. So it is largest at one
    of the two whole numbers around sqrt(c (c + 1)), or at n_k. This is attained.

    `spread`: let r and f be the probabilities that a row of the class and another row are predicted k. Let D = n_k r +
    rest f + b n_k, and let u = B n_k r / D be the population value at these counts. For w in [0, 1] let S_w = B TP - w
    (PP + b n_k). This is a sum of independent terms, with ranges B - w for the n_k rows of the class and w for the
    other rows, and its mean is (u - w) D. A score of v means S_v = 0. As PP >= TP, a score of v makes PP + b n_k at
    least g(v) = B b n_k / (B - v), and likewise D >= g(u).
    If the score is v > u, then S_u = (v - u)(PP + b n_k) >= (v - u) g(v) >= (v - u) g(u), and S_u has mean 0.
    If the score is at most v < u, then S_v <= 0, and S_v has mean (u - v) D >= (u - v) g(u) >= (u - v) g(v).
    Hoeffding's inequality gives exp(-2 (u - v)^2 / s(w)), where s(w) = (n_k (B - w)^2 + rest w^2) / g(w)^2 and w is the
    smaller of u and v. The spread is the largest s(w). Up to a factor s(w) is a polynomial of degree 4; its maximum is
    at 0, at 1 or at the larger root of a quadratic equation.
    """

    def __init__(self, metric: Definition, own: int, rest: int) -> None:
        super().__init__(metric, own, rest)
        self._b = b = decimal(metric.parameters.get("beta", 1.0)) ** 2
        c = b * own
        peak = int((float(c) * (float(c) + 1)) ** 0.5)
        nearby = {min(max(hits, 0), own) for hits in range(peak - 2, peak + 4)}
        self.own_change = (1 + b) / (c + 1)
        self.rest_change = max((1 + b) * hits / ((hits + c) * (hits + c + 1)) for hits in nearby)
        self.spread = self._largest_spread(float(own), float(rest), float(b))

    @staticmethod
    def _largest_spread(own: float, rest: float, b: float) -> float:
        """Return the largest s(w) over w in [0, 1]; the notes of the class define s."""
        whole = 1.0 + b
        # s'(w) has the sign of -2 n_k (B - w)^2 - rest w^2 + rest w (B - w)
        square, slope, constant = 2 * (own + rest), (4 * own + rest) * whole, 2 * own * whole**2
        discriminant = slope**2 - 4 * square * constant
        places = [0.0, 1.0]
        if discriminant > 0:
            places.append(min((slope + discriminant**0.5) / (2 * square), 1.0))
        largest = max((own * (whole - w) ** 2 + rest * w**2) * (whole - w) ** 2 for w in places)
        return largest / (whole * b * own) ** 2 * (1 + 1e-12)

    def ratio(self, hits: int, predicted: int) -> tuple[int, int]:
        """Return numerator and denominator of the score, both multiplied by the denominator of b."""
        p, q = self._b.numerator, self._b.denominator
        return (p + q) * hits, q * predicted + p * self.own

    def ratios(self, hits: float, predicted: float) -> tuple[Ratio, ...]:
        """Return B TP / (B TP + FP + b FN) as a ratio.

        A row counted in TP has value 1 and weight 1, one in FP value 0 and weight 1/B, one in FN value 0 and weight
        b/B.
        """
        b = float(self._b)
        missed = (0.0, b / (1.0 + b), self.own - hits)
        return (ratio([(1.0, 1.0, hits), (0.0, 1.0 / (1.0 + b), predicted - hits), missed]),)

    def joint_change(self, other: ClassScore, weight: Fraction, other_weight: Fraction) -> Fraction:
        """Return the most that one row of this class can change the weighted sum of the two classes' scores.

        For beta >= 1: let TP of this class be T before and T + 1 after, so that the other class's FP falls to
        n_k - T - 1. Both changes are largest if all rows of the other class are predicted right, because then FP of
        this class is 0. Both are convex in T, so their sum is largest at T = 0 or T = n_k - 1.
        """
        if self._b < 1:
            return super().joint_change(other, weight, other_weight)
        c, theirs, whole = self._b * self.own, other.own, 1 + self._b

        def change(hits: int) -> Fraction:
            rest = theirs + (self.own - hits - 1) + self._b * theirs
            mine = whole * c / ((hits + c) * (hits + c + 1))
            return weight * mine + other_weight * whole * theirs / (rest * (rest + 1))

        return max(change(0), change(self.own - 1))


class PrecisionScore(ClassScore):
    """Precision of one class with a floor under its denominator: TP / max(PP, m).

    The floor m is a share, in (0, 1], of the class's rows, rounded up.

    Notes
    -----
    `own_change`: TP and PP grow by one. The score changes by 1/m while PP < m, and otherwise by (PP - TP) /
    (PP (PP + 1)) <= 1 / (m + 1). The value 1/m is attained.

    `rest_change`: PP grows by one. The score does not change while PP < m, and otherwise it changes by TP /
    (PP (PP + 1)) <= 1 / (PP + 1) <= 1 / (m + 1). This is attained at PP = TP = m.

    `spread`: let N be the number of other rows, r and f the probabilities that a row of the class and another row are
    predicted k, D = n_k r + N f, p = n_k r / D, and u = n_k r / max(D, m) the population value at these counts. Two
    spreads hold at every probability up to 1/2, which is all that confidence bounds use: 4.6/m and max(n, 2 n_k)/m^2.
    For a value v let A = TP - v PP and t = |u - v|.

    First spread: sums of independent 0/1 terms have smaller exponential moments than Poisson variables of the same
    means. With the best factors for A and for PP - m these give Pr[A beyond 0, PP >= m] and Pr[TP - v m beyond 0,
    PP < m] <= exp(-m kl(v, p)) <= exp(-2 m (v - p)^2) if v > p. The first of the two also holds if v < p. TP - v m,
    whose mean is at least u m - v m, lies below 0 with probability at most exp(-m t^2/2) if v < u, and above 0 with
    at most the same probability if v > u and D < m.
    So a score of v > u has probability at most 2 exp(-2 m t^2) if D >= m, else exp(-m t^2/2). A score of at most v < u
    has probability at most exp(-2 m t^2) + exp(-m t^2/2). With x = 2 t^2 m/4.6 the largest of these is exp(-4.6 x) +
    exp(-1.15 x), which is at most exp(-x) for x >= ln 2.

    Second spread: for w in [0, 1] the terms of TP - w PP have ranges 1 - w and w, and those of TP - w m have range 1
    for the rows of the class. A score of v > u means that both A >= 0 and TP >= v m. One of them lies t m or more above
    its mean: A if D >= m, else TP. By Hoeffding's inequality Pr <= exp(-2 t^2 m^2 / max(n_k, N)). A score of at most
    v < u means A <= 0 or TP <= v m, and both lie t m or more below their means. So Pr <= exp(-x n / max(n_k, N)) +
    exp(-x n / n_k), with x = 2 t^2 m^2 / n. For n_k <= N this is at most exp(-x) for x >= ln 2: with q = n_k/N this
    claim is exp(-x q) + exp(-x/q) <= 1, and 2^-q + 2^(-1/q) <= 1. For n_k > N the two terms are equal, and 2 exp(-2 y)
    is at most exp(-y) where exp(-y) is at most 1/2.
    """

    def __init__(self, metric: Definition, own: int, rest: int) -> None:
        super().__init__(metric, own, rest)
        self._floor = decimal(metric.parameters["floor"])
        self._least = least = math.ceil(self._floor * own)
        self.own_change, self.rest_change = Fraction(1, least), Fraction(1, least + 1)
        self.spread = min(4.6 / least, max(own + rest, 2 * own) / least**2)

    def ratio(self, hits: int, predicted: int) -> tuple[int, int]:
        """Return numerator and denominator."""
        return hits, max(predicted, self._least)

    def ratios(self, hits: float, predicted: float) -> tuple[Ratio, ...]:
        """Return two ratios, precision and recall divided by the floor; the smaller one is the score."""
        own = ratio([(1.0, 1.0, hits), (0.0, 1.0, self.own - hits)], factor=1.0 / float(self._floor))
        return ratio([(1.0, 1.0, hits), (0.0, 1.0, predicted - hits)]), own

    def joint_change(self, other: ClassScore, weight: Fraction, other_weight: Fraction) -> Fraction:
        """Return the most that one row of this class can change the weighted sum of the two classes' scores.

        If x rows are predicted to be of this class before and x + 1 after, then n - x were predicted to be of the other
        class. This class's score moves by at most 1 / max(m, x + 1). The other class's score moves by at most
        1 / (n - x) if n - x is above its floor m', and otherwise not at all. Between x = m - 1 and x = n - m' - 1 the
        sum is convex, and beyond them it decreases.
        """
        floor, rows = other.rest_change.denominator - 1, self.own + self.rest
        few = weight / self._least + other_weight / (rows - self._least + 1)
        many = weight / (rows - floor) + other_weight / (floor + 1)
        return max(few, many)


class JaccardScore(ClassScore):
    """Jaccard's index TP / (PP + n_k - TP): of the rows in the class or predicted in it, the share that are both.

    Notes
    -----
    `own_change`: TP and PP grow by one, and the score changes by 1 / (n_k + FP) <= 1 / n_k. `rest_change`: FP grows by
    one, and the score changes by TP / ((n_k + FP)(n_k + FP + 1)) <= 1 / (n_k + 1). Both are attained at FP = 0.
    `spread`: the sum of the squares of these changes over all rows.
    """

    def __init__(self, metric: Definition, own: int, rest: int) -> None:
        super().__init__(metric, own, rest)
        self.own_change, self.rest_change = Fraction(1, own), Fraction(1, own + 1)
        self.spread = float(own * self.own_change**2 + rest * self.rest_change**2)

    def ratio(self, hits: int, predicted: int) -> tuple[int, int]:
        """Return numerator and denominator."""
        return hits, predicted + self.own - hits

    def ratios(self, hits: float, predicted: float) -> tuple[Ratio, ...]:
        """Return the share, among rows that are in the class or predicted to be, of the rows that are both."""
        return (ratio([(1.0, 1.0, hits), (0.0, 1.0, predicted + self.own - 2 * hits)]),)

    def likely_hits(self, mean: float) -> float:
        """Return the TP/n_k at which the score is `mean`, if the class is predicted as often as it occurs."""
        return 2.0 * mean / (1.0 + mean)


class ClassAverage(RatioMean):
    """The score of the positive class, or the weighted mean of the scores of all classes that have rows.

    Let w_k be the weight of class k. If the prediction for a row of class k moves from class j to k, the score of k
    rises and that of j can rise. Every other move changes less, or two scores in opposite directions. So c_r = w_k
    own_change_k + max over j other than k of w_j rest_change_j, and less if there are only two classes.
    """

    def __init__(
        self,
        score: Callable[[Definition, int, int], ClassScore],
        average: str,
        metric: Definition,
        targets: Targets,
    ) -> None:
        check = targets.check_two if average == "binary" else targets.check_several
        check(metric.name)
        self.rows = self.effective_rows = targets.rows
        self._codes, self._classes = targets.values, len(targets.counts)
        self._score, counts = partial(score, metric), targets.present()
        self._scores = {code: self._score(own, self.rows - own) for code, own in counts.items()}
        every = {"binary": {1: 1}, "macro": dict.fromkeys(counts, 1), "weighted": counts}
        self._weights = every[average]
        changes = self._changes()
        is_one = average == "binary"
        self.is_ratio = self._classes <= _MOST_CLASSES
        self.sensitivity = min(max(changes.values()) + (0 if is_one else FINE_SLACK), Fraction(1))
        squares = sum(counts[code] * change**2 for code, change in changes.items())
        self.sum_of_squares = self._scores[1].spread if is_one else float(squares)
        self._average = average

    def _changes(self) -> dict[int, Fraction]:
        """Return, for each class, the most that replacing one of its rows can change the weighted mean."""
        scores, total = self._scores, sum(self._weights.values())
        shares = {code: Fraction(self._weights.get(code, 0), total) for code in scores}
        if self._classes == 2 and all(shares.values()):
            return {
                code: scores[code].joint_change(scores[1 - code], shares[code], shares[1 - code])
                for code in scores
            }
        of_rest = {code: shares[code] * score.rest_change for code, score in scores.items()}
        return {
            code: shares[code] * score.own_change + max(of_rest[other] for other in scores if other != code)
            for code, score in scores.items()
        }

    def _sample(self, query: NDArray[Any]) -> Counted:
        """Return the grid score, and each averaged class's ratios, with counts of 0 for a class without rows."""
        hits, predicted = self._counts(query)
        if self._average == "binary":
            numerator, denominator = self._scores[1].ratio(hits[1], predicted[1])
            return Counted(
                (numerator << GRID_BITS) // denominator, self._scores[1].ratios(hits[1], predicted[1])
            )
        found = {code: one.ratios(hits[code], predicted[code]) for code, one in self._scores.items()}
        none = tuple(one._replace(counts=0.0 * one.counts) for one in next(iter(found.values())))
        codes = range(self._classes)
        return Counted(
            self._units(query),
            tuple(one for code in codes for one in found.get(code, none)),
            tuple(self._share(code) for code in codes),
        )

    def _share(self, code: int) -> float:
        """Return the weight of a class in the population's mean: equal for all classes, or its share of the rows."""
        return self._weights.get(code, 0) / self.rows if self._average == "weighted" else 1.0 / self._classes

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """Return a mean over rows as uncertain as this metric, if classes are predicted as often as they occur."""
        if self._average == "binary":
            return self._likely_of(prevalence[1], mean)
        each = [self._likely_of(share, mean) for share in prevalence]
        shares = prevalence if self._average == "weighted" else [1.0 / len(each)] * len(each)
        errors = (share * one.spread / one.rows**0.5 for share, one in zip(shares, each, strict=True))
        return Likely.with_error(sum(errors), mean)  # the ends of all intervals are added

    def _likely_of(self, share: float, mean: float) -> Likely:
        own = max(round(share * self.rows), 1)
        at = self._score(own, self.rows)
        return Likely.of(at.ratios(at.likely_hits(mean) * own, own)[0], mean)

    def _ratios(self, query: NDArray[Any]) -> list[tuple[int, int, int]]:
        hits, predicted = self._counts(query)
        return [
            (weight, *self._scores[code].ratio(hits[code], predicted[code]))
            for code, weight in self._weights.items()
        ]

    def _counts(self, query: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return, for each class, the number of its rows predicted right, and of all rows predicted to be of it."""
        hits = np.bincount(self._codes[query == self._codes], minlength=self._classes)
        return hits.tolist(), np.bincount(query, minlength=self._classes).tolist()
