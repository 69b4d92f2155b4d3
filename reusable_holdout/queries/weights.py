"""Public weights of the rows: slices, and weighted means.

Neighbours keep every weight, as for class-conditional metrics they keep every label.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import as_array, one_column, real_array
from reusable_holdout.queries.derived import averaged
from reusable_holdout.queries.scoring import Mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries.scoring import Statistic

__all__ = ["WeightedMean", "Weights", "weighted"]

_MOST = 1 << 30
_PIECE_BITS = 16
_CHUNK = 1 << 16  # so many products of a weight and a piece sum to at most 2**62


class Weights:
    """Weights of the rows as whole numbers without a common factor; hold nothing private.

    Whole numbers up to 2^30 are taken as they are, others are rounded to multiples of the largest one's 2^-30. So
    weights that are proportional count as the same, and scores stay exact.

    Parameters
    ----------
    sample_weight : array-like of shape (rows,)
        Finite numbers >= 0, or booleans; not all 0.
    rows : int
        Rows of the holdout.

    Attributes
    ----------
    whole : numpy.ndarray of int64 of shape (rows,)
    total, largest : int
        Their sum and their largest.
    alike : bool
        Whether those that are not 0 are equal: a slice.
    chosen : numpy.ndarray of int
        Places of those that are not 0.
    digest : str
        SHA-256 in hexadecimal, which tells weights apart.

    Raises
    ------
    InputError
        If the weights are not such.

    Examples
    --------
    >>> Weights([0.5, 0, 1, 0.5], rows=4).whole
    array([1, 0, 2, 1])
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
    """Weighted mean of terms in [0, 1], one per row; exact but for the rounding of each term.

    Parameters
    ----------
    mean : Mean
        Of all rows, without weights.
    weights : Weights

    Notes
    -----
    With c_r = w_r / sum of w, replacing row r changes it by at most c_r: sensitivity max c_r, sum of c_r^2. The
    interval is about the sum of c_r E[term | w_r], the mean of this statistic over fresh holdouts of the same
    weights.

    Two confidence bounds around its expectation under these weights are valid, and the narrower is taken at each value
    (:class:`~reusable_holdout.validity.ConfidenceBound`). Hoeffding's takes the sum of c_r^2. The kl-Chernoff one takes
    1/max c_r rows, rounded down: with a_r = c_r / max c_r <= 1, p_r the mean of term r and any
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
        self.sensitivity = self.largest_share
        self.sum_of_squares = math.fsum(np.square(weights.whole / weights.total).tolist())

    @property
    def effective_rows(self) -> int:
        """1/max c_r, rounded down."""
        return self._weights.total // self._weights.largest

    @property
    def largest_share(self) -> Fraction:
        """Largest c_r."""
        return Fraction(self._weights.largest, self._weights.total)

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
