"""The means that the rows' evidence leaves: a confidence interval as narrow as the rows' own spread allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.validity.evidence import EvidenceRows, gains_of_rows, mixed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["EvidenceSet"]

_RATIO = 1.6  # of one bet to the next
_SMALLEST = 0.1  # of the best bet on 0/1 rows of mean 1/2: those of a mean of 1/100 have theirs there
_LARGEST = 0.95
_BISECTIONS = 40


@dataclass(frozen=True)
class EvidenceSet:
    """Interval of a mean of independent terms in [0, 1]; each end misses with probability at most exp(-nats).

    Parameters
    ----------
    nats : float
        > 0.
    rows : int
        How many there are, which sizes the bets.

    Notes
    -----
    With b_k in (0, 1) fixed, ``E(m) = average over k of prod_r (1 + (b_k/m) u_r (x_r - m))`` falls in m, and at the
    population's mean its expectation is at most 1 (:class:`~reusable_holdout.validity.evidence.Null`): so means
    with E(m) >= exp(nats) form an interval from 0 that reaches that mean with probability at most exp(-nats). The
    interval's upper end is the lower one's mirror image.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSSB 86.
    """

    nats: float
    rows: int

    @cached_property
    def _bets(self) -> NDArray[np.float64]:
        least = min(_SMALLEST * math.sqrt(2.0 * self.nats / self.rows), _LARGEST)
        return np.geomspace(least, _LARGEST, 1 + math.ceil(math.log(_LARGEST / least) / math.log(_RATIO)))

    def of_rows(
        self, terms: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> tuple[float, float]:
        """Lower and upper end, rounded outwards.

        Parameters
        ----------
        terms : numpy.ndarray of shape (rows,)
            In [0, 1].
        weights : numpy.ndarray of shape (rows,), optional
            In [0, 1]: the mean is the weighted one.
        """
        mean = float(np.average(terms, weights=weights))
        low = self._lowest(mean, lambda m: gains_of_rows(terms, m, self._bets / m, weights))
        mirrored = 1.0 - terms
        high = self._lowest(1.0 - mean, lambda m: gains_of_rows(mirrored, m, self._bets / m, weights))
        return low, 1.0 - high

    def of(self, rows: EvidenceRows) -> tuple[float, float]:
        """The same of rows that are known up to their order."""

        def lowest(values: NDArray[np.float64]) -> float:
            mean = float(np.average(values, weights=rows.counts))
            return self._lowest(mean, lambda m: np.log1p(np.outer(self._bets / m, values - m)) @ rows.counts)

        return lowest(rows.values), 1.0 - lowest(1.0 - rows.values)

    def _lowest(self, mean: float, gained: Callable[[float], NDArray[np.float64]]) -> float:
        """Largest mean up to which all are excluded, or a little less; up to the rows' own, where nothing is won."""
        excluded, kept = 0.0, mean
        for _ in range(_BISECTIONS):
            middle = (excluded + kept) / 2.0
            if middle <= 0.0:
                break
            if mixed(gained(middle)) >= self.nats:
                excluded = middle
            else:
                kept = middle
        return excluded
