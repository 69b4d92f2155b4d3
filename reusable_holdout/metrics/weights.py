"""Public weights of rows, slices, and groups of rows that belong together.

Neighbours have the same weights, as they have the same labels for class-conditional metrics. Where rows belong
together, such as those of one user, the group is the independent draw and counts once. Neighbours then differ in one
group: possibly in all of its rows, but not in their number.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import column_of, real_array
from reusable_holdout.metrics.scoring import Draws

_MOST = 1 << 30
_PIECE_BITS = 16
_CHUNK = 1 << 16  # the products of this many weights and pieces sum to at most 2**62


class Weights(Draws):
    """Weights of the rows, stored as integers without a common factor; they hold nothing private.

    Integers up to 2^30 are used as they are. Other weights are rounded to multiples of 2^-30 of the largest. So
    proportional weights count as the same, with the same digest, and scores stay exact. If all weights above 0 are
    equal (`alike`), they make a slice of the `chosen` rows.

    Notes
    -----
    In a weighted mean of terms in [0, 1] replacing row r changes the mean by at most c_r = w_r / sum of w. So the
    sensitivity is max c_r. The interval is about the sum of c_r E[term | w_r], the mean of this statistic over fresh
    holdouts with the same weights.

    Two confidence bounds around this expectation are valid, and the narrower is used at each value
    (:class:`~reusable_holdout.certainty.ConfidenceBound`). Hoeffding's bound uses the sum of c_r^2. The kl-Chernoff
    bound uses 1/max c_r rows, rounded down, and is narrower where the mean is near its bounds. Its proof: let a_r = c_r
    / max c_r <= 1, let p_r be the mean of term X_r, and let h be any factor. By convexity E exp(h a_r X_r) <=
    E exp(h a_r B), where B is 1 with probability p_r and else 0. As x -> x^a is concave, E (e^(h B))^a_r <=
    (1 + p_r (e^h - 1))^a_r. The logarithm is concave, too, so the product over the rows is at most
    (1 + p (e^h - 1))^(1 / max c_r), where p is the weighted mean of the p_r. This moment leads to the bound
    exp(-kl(v, p) / max c_r).
    """

    family = "bounded"
    refusal = (
        "sample_weight of metric {!r} must be 0 or one other number, which makes a slice; got several numbers, with "
        "which the most a row can change the metric would depend on the labels; use a mean of losses"
    )

    def __init__(self, sample_weight: object, rows: int) -> None:
        given = column_of(sample_weight, rows, what="sample_weight", advice="give one weight for each row")
        weights = real_array(given, what="sample_weight").astype(np.float64)
        largest = float(weights.max())
        if not (np.isfinite(weights).all() and weights.min() >= 0 and largest > 0):
            raise InputError(
                "sample_weight must be finite, not negative and not all 0; got other numbers; "
                "give 1 to the rows that count and 0 to the others"
            )
        if largest > _MOST or not np.array_equal(weights, np.rint(weights)):
            weights = np.rint(weights / largest * _MOST)
        self._whole = weights.astype(np.int64)
        self._whole //= np.gcd.reduce(self._whole)
        self._sum, most = int(self._whole.sum()), int(self._whole.max())
        self.chosen, self.alike = np.flatnonzero(self._whole), most == 1
        self.digest = hashlib.sha256(b"sample weights" + self._whole.astype("<i8").tobytes()).hexdigest()
        self.count, self.effective_rows = rows, self._sum // most  # 1/max c_r, rounded down
        self.sensitivity = Fraction(most, self._sum)
        self.sum_of_squares = math.fsum(np.square(self._whole / self._sum).tolist())
        self.relative_weights = self._whole / most

    def total(self, terms: NDArray[np.int64]) -> tuple[int, int]:
        """Return the exact weighted sum of the terms, and the sum of the weights; terms are added in 16-bit pieces."""
        starts = np.arange(0, self.count, _CHUNK)
        total, shift = 0, 0
        while terms.any():
            products = (terms & ((1 << _PIECE_BITS) - 1)) * self._whole
            total += sum(np.add.reduceat(products, starts).tolist()) << shift
            terms, shift = terms >> _PIECE_BITS, shift + _PIECE_BITS
        return total, self._sum

    def mean(self, values: NDArray[Any]) -> float:
        """Return the weighted mean of one value per row."""
        return float(np.average(values, weights=self._whole))


class Groups(Draws):
    """Groups of rows that belong together, which are public; they are numbered in the order of their first rows.

    In a mean over groups each group counts once, with the mean of its rows, and the interval is about the population of
    groups. The terms, one for each group, are independent draws in [0, 1]. So the sensitivity is one over the number of
    groups, and the kl-Chernoff bound for that many rows holds. The digest depends on which rows belong together, and
    not on the groups' names.
    """

    family = "bounded"
    refusal = (
        "with groups a metric must be a mean over rows, such as accuracy, brier, log_loss or mae; {!r} is "
        "not: the most a group can change it would depend on the labels of its rows; leave groups= out only if rows "
        "are independent"
    )

    def __init__(self, names: object, rows: int) -> None:
        given = column_of(names, rows, what="groups", advice="name the group of each row")
        try:
            self.codes = pd.factorize(given)[0].astype(np.int64)  # in the order in which they appear
        except TypeError:  # lists, say
            raise InputError("groups must be named by numbers or text; got names that have no hash") from None
        if self.codes.min() < 0:
            raise InputError(
                "groups must name a group for each row; some are missing; give each of these rows its own group"
            )
        self.codes.flags.writeable = False
        self._sizes = np.bincount(self.codes)
        self.digest = hashlib.sha256(b"groups" + self.codes.astype("<i8").tobytes()).hexdigest()
        super().__init__(len(self._sizes))

    def __len__(self) -> int:
        return self.count

    def part(self, chosen: NDArray[Any]) -> Groups:
        """Return the groups of some rows."""
        return Groups(self.codes[chosen], len(chosen))

    def of_rows(self, each: NDArray[Any]) -> NDArray[Any]:
        """Return the mean of each group's rows; it depends on no other row, even in its last bit."""
        return np.asarray(np.bincount(self.codes, weights=each, minlength=self.count) / self._sizes)
