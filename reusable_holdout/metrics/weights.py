"""Rows that do not count alike: public weights, slices, and groups of rows that belong together.

Neighbours keep every weight, as for class-conditional metrics they keep every label. Of rows that belong together, such
as those of one user, the group is the independent draw. It counts once, or with a largest size that is declared
beforehand each of its rows does. Neighbours differ in one group then: in all of its rows, but not in how many they are.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_array, one_column, real_array
from reusable_holdout.metrics.derived import averaged
from reusable_holdout.metrics.scoring import Mean, Statistic

__all__ = ["GroupMean", "Groups", "RowsOfGroups", "WeightedMean", "Weights", "grouped", "weighted"]

_MOST = 1 << 30
_PIECE_BITS = 16
_CHUNK = 1 << 16  # so many products of a weight and a piece sum to at most 2**62


class Weights:
    """Weights of the rows as whole numbers without a common factor; hold nothing private.

    Whole numbers up to 2^30 are taken as they are, others are rounded to multiples of the largest one's 2^-30. So
    weights that are proportional count as the same, with one digest, and scores stay exact. Where those that are
    not 0, at the chosen places, are alike, they make a slice.
    """

    def __init__(self, sample_weight: object, rows: int) -> None:
        given = one_column(as_array(sample_weight, what="sample_weight"))
        if given.shape != (rows,):
            raise InputError(
                f"sample_weight must have shape ({rows},); got {given.shape}; give one weight for each row"
            )
        weights = real_array(given, what="sample_weight").astype(np.float64)
        largest = float(weights.max())
        if not (np.isfinite(weights).all() and weights.min() >= 0 and largest > 0):
            raise InputError(
                "sample_weight must be finite, not negative and not all 0; got other numbers; "
                "give 1 to the rows that count and 0 to the others"
            )
        if largest > _MOST or not np.array_equal(weights, np.rint(weights)):
            weights = np.rint(weights / largest * _MOST)
        whole = weights.astype(np.int64)
        self.whole = whole // np.gcd.reduce(whole)
        self.whole.flags.writeable = False
        self.total, self.largest = int(self.whole.sum()), int(self.whole.max())
        self.chosen = np.flatnonzero(self.whole)
        self.alike = self.largest == 1
        self.digest = hashlib.sha256(b"sample weights" + self.whole.astype("<i8").tobytes()).hexdigest()


class WeightedMean(Mean):
    """Weighted mean of the terms in [0, 1] of a mean without weights; exact but for the rounding of each term.

    Notes
    -----
    With c_r = w_r / sum of w, replacing row r changes it by at most c_r: sensitivity max c_r, sum of c_r^2. The
    interval is about the sum of c_r E[term | w_r], the mean of this statistic over fresh holdouts of the same
    weights.

    Two confidence bounds around its expectation under these weights are valid, and the narrower is taken at each value
    (:class:`~reusable_holdout.certainty.ConfidenceBound`). Hoeffding's takes the sum of c_r^2. The kl-Chernoff one
    takes 1/max c_r rows, rounded down: with a_r = c_r / max c_r <= 1, p_r the mean of term r and any
    factor h, convexity gives E exp(h a_r X_r) <= E exp(h a_r B) for B = 0 or 1 with chance p_r, and since x -> x^a
    is concave E (e^(h B))^a_r <= (1 + p_r (e^h - 1))^a_r. The logarithm is concave, too, so the product over the
    rows is at most (1 + p (e^h - 1))^(1 / max c_r), p the weighted mean of the p_r: the moment that leads to
    exp(-kl(v, p) / max c_r). It is narrower where the mean is near its bounds.
    """

    family = "bounded"

    def __init__(self, mean: Mean, weights: Weights) -> None:
        self.rows = mean.rows
        self._mean = mean
        self._weights = weights
        self.effective_rows = weights.total // weights.largest  # 1/max c_r, rounded down
        self.sensitivity = Fraction(weights.largest, weights.total)
        self.sum_of_squares = math.fsum(np.square(weights.whole / weights.total).tolist())

    @property
    def relative_weights(self) -> NDArray[np.float64]:
        """Weights over the largest."""
        return np.asarray(self._weights.whole / self._weights.largest)

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Normalised term of each row."""
        return self._mean.shares(query)

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Term of each row in the metric's units."""
        return self._mean.row_values(query)

    def total(self, terms: NDArray[np.int64]) -> tuple[int, int]:
        """Weighted sum of the terms, and of the weights; exact, piece by piece."""
        starts = np.arange(0, self.rows, _CHUNK)
        total, shift = 0, 0
        while terms.any():
            products = (terms & ((1 << _PIECE_BITS) - 1)) * self._weights.whole
            total += sum(np.add.reduceat(products, starts).tolist()) << shift
            terms, shift = terms >> _PIECE_BITS, shift + _PIECE_BITS
        return total, self._weights.total

    def mean_of(self, values: NDArray[Any]) -> float:
        """Weighted mean of one value per row."""
        return float(np.average(values, weights=self._weights.whole))


def weighted(statistic: Statistic, weights: Weights, *, name: str) -> Statistic:
    """The statistic with weights that are not alike; an error for what is no mean over all rows."""
    found = averaged(statistic, lambda mean: WeightedMean(mean, weights))
    if found is not None:
        return found
    raise InputError(
        f"sample_weight of metric {name!r} must be 0 or one other number, which makes a slice; got several numbers: "
        "how far a row moves it would depend on which rows belong to a class; use a mean of losses"
    )


# ---- groups


class Groups:
    """Which rows belong together, public: numbers of the groups, in the order of their first rows.

    All rows are kept, or of each group the `largest` whose lots are the lowest, and `sizes` counts these. The lots are
    a fixed shuffle of the rows' numbers, the same everywhere and always: which rows of a group are kept depends neither
    on what is in them nor on the order of the file. The digest tells partitions apart; names do not matter.
    """

    def __init__(self, names: object, rows: int, largest: int | None = None) -> None:
        given = one_column(as_array(names, what="groups"))
        if given.shape != (rows,):
            raise InputError(
                f"groups must have shape ({rows},); got {given.shape}; name the group of each row"
            )
        if any(name is None or (isinstance(name, float) and math.isnan(name)) for name in given.tolist()):
            raise InputError(
                "groups must name a group for each row; some are missing; give rows without a group one of their own"
            )
        try:
            codes = np.unique(given, return_inverse=True)[1]
        except TypeError:
            raise InputError(
                "groups must be numbers or text that can be sorted; got a mixture; make them text"
            ) from None
        self.largest = _checked_largest(largest)
        self._lots: NDArray[np.uint64] = np.random.PCG64([rows, 1]).random_raw(rows if largest else 0)
        self._take(codes)

    def _take(self, codes: NDArray[Any]) -> None:
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        self.codes = np.argsort(np.argsort(first, kind="stable"), kind="stable")[codes].astype(np.int64)
        self.codes.flags.writeable = False
        self.kept: NDArray[np.int64] | slice = slice(None)
        self.sizes = np.bincount(self.codes)
        self.digest = hashlib.sha256(b"groups" + self.codes.astype("<i8").tobytes()).hexdigest()
        if self.largest is not None:
            self.kept = self._lowest(self.largest)
            self.sizes = np.minimum(self.sizes, self.largest)

    def _lowest(self, largest: int) -> NDArray[np.int64]:
        """Places of the rows whose lots are the lowest of their group."""
        order = np.lexsort((self._lots, self.codes))
        starts = np.cumsum(self.sizes) - self.sizes
        ranks = np.arange(len(order)) - starts[self.codes[order]]
        return np.sort(order[ranks < largest])

    def __len__(self) -> int:
        return len(self.sizes)

    def part(self, chosen: NDArray[Any]) -> Self:
        """Groups of some rows."""
        part = object.__new__(type(self))
        part.largest, part._lots = self.largest, self._lots[chosen] if self.largest else self._lots
        part._take(self.codes[chosen])
        return part


def _checked_largest(largest: object) -> int | None:
    if largest is None:
        return None
    if isinstance(largest, bool) or not isinstance(largest, Integral) or largest < 1:
        raise InputError(
            f"largest_group must be a whole number of rows, 1 or more, that is named before they are looked at; got "
            f"{largest!r}; leave it out, and each group counts once"
        )
    return int(largest)


class GroupMean(Mean):
    """Mean over the groups of the mean of each one's rows that count, of a mean of all rows without weights.

    It is about the population of groups: each counts once, however many rows it has. Terms are those of the groups, one
    independent draw each, and lie in [0, 1]: sensitivity 1/groups, and the kl-Chernoff bound of so many rows.
    """

    family = "bounded"

    def __init__(self, mean: Mean, groups: Groups) -> None:
        self._mean_of_rows(len(groups))
        self._mean, self._groups = mean, groups

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """Normalised mean of each group; no other group's rows enter it, to the last bit."""
        return self._means(self._mean.shares(query)).clip(0.0, 1.0)

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Mean of each group in the metric's units."""
        return self._means(self._mean.row_values(query))

    def _means(self, each: NDArray[Any]) -> NDArray[Any]:
        codes, kept = self._groups.codes, self._groups.kept
        sums = np.bincount(codes[kept], weights=each[kept], minlength=len(self._groups))
        return np.asarray(sums / self._groups.sizes)


class RowsOfGroups(WeightedMean):
    """Mean over the rows of all groups, of each at most as many as the largest size that is declared.

    It is about the population's mean over rows, of larger groups so many each: with N the sum of a group's terms and D
    its rows, about ``E[N] / E[D]``. Who knows the holdout's rows, and how many each group has, asks about the mean over
    the rows of such groups.

    Notes
    -----
    Let S be the largest size, u = D/S, x = N/D and W the sum of u over the groups; theta = E[N]/E[D], so that
    E[u (x - theta)] = 0. The pairs (x, u) are independent draws of one law, or independent with that weighted mean.

    Evidence by bets on them is valid (:class:`~reusable_holdout.certainty.evidence.Null`): u is at most 1 whatever the
    sizes are. In units of the largest size *seen* it would not be, for that depends on all groups.

    The kl-Chernoff bound of W rows is valid given that W is at least a number named beforehand. For any h >= 0 and
    f = ln(1 - theta + theta e^h), convexity gives e^(u (h x - f)) <= 1 - u + u e^(h x - f) and e^(h x) <= 1 - x +
    x e^h. So its expectation is at most 1 - E u + E u (1 - theta + theta e^h) e^-f = 1, and so is that of the product
    over groups, e^(W (h R - f)), R being the mean over all rows. With the h that makes h v - f largest, R >= v and
    W >= w have probability at most exp(-w kl(v, theta)). That is why W is told, rounded down, and paid for. Replacing a
    group changes R by at most 1/W.
    """

    def __init__(self, mean: Mean, groups: Groups) -> None:
        super().__init__(GroupMean(mean, groups), Weights(groups.sizes, len(groups)))
        self._sizes, self._largest = groups.sizes, groups.largest or 1
        self.sensitivity = Fraction(self._largest, int(self._sizes.sum()))  # 1/W
        self.effective_rows = int(1 / self.sensitivity)
        self.sum_of_squares = float(self.sensitivity)

    @property
    def relative_weights(self) -> NDArray[np.float64]:
        """Rows of each group over the largest size that is declared."""
        return np.asarray(self._sizes / self._largest)


def grouped(statistic: Statistic, groups: Groups, *, name: str) -> Statistic:
    """The statistic with each group counting once, or each of its rows; an error for what is no mean over all rows."""
    if groups.largest is None:
        found = averaged(statistic, lambda mean: GroupMean(mean, groups))
        if found is not None:
            return found
        raise InputError(
            f"with groups a metric must be a mean over rows, such as accuracy, brier, log_loss or mae; {name!r} is "
            "none: how far a group moves it would depend on which classes its rows have; leave groups= out only where "
            "rows are independent"
        )
    if not isinstance(statistic, Mean):
        raise InputError(
            f"with largest_group a metric must be a plain mean over rows, such as accuracy, brier, log_loss or mae; "
            f"{name!r} is none; take one of these, or leave largest_group out where each group may count once"
        )
    if statistic.rows < groups.largest:
        raise InputError(
            f"there must be at least largest_group rows; got {statistic.rows:,} rows and largest_group="
            f"{groups.largest:,}; name a smaller one"
        )
    return RowsOfGroups(statistic, groups)
