"""The confidence interval of the means that the rows' evidence does not exclude; it adapts to the rows' spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.evidence import MANY, EvidenceRows, gains_of_rows, likely_rows, mixed, rounded
from reusable_holdout.certainty.theory import THEORY, Theory


@dataclass(frozen=True)
class EvidenceSet:
    """The interval of a mean of independent terms in [0, 1]; each end misses with probability at most exp(-nats).

    Parameters
    ----------
    nats : float
        > 0.
    rows : int
        Number of rows, which determines the sizes of the bets.
    mean, spread : float
        Guesses of the rows' mean and standard deviation, made before they are read: most of the stake is on the bet
        that suits such rows best. The ends are valid for any guess.
    theory : Theory
        Its `set_bets` give the other bets; the smallest suits a mean of 1/100.

    Notes
    -----
    With b_k in (0, 1) fixed and weights w_k of sum 1, ``E(m) = sum over k of w_k prod_r (1 + (b_k/m) u_r (x_r - m))``
    falls in m, and at the population's mean its expectation is at most 1
    (:class:`~reusable_holdout.certainty.evidence.Null`): so means with E(m) >= exp(nats) form an interval from 0 that
    reaches that mean with probability at most exp(-nats). The interval's upper end is the lower one's mirror image.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSSB 86.
    """

    nats: float
    rows: int
    mean: float = 0.5
    spread: float = 0.5
    theory: Theory = THEORY

    @cached_property
    def _spaced(self) -> NDArray[np.float64]:
        ratio, smallest, largest = self.theory.set_bets
        least = min(smallest * math.sqrt(2.0 * self.nats / self.rows), largest)
        return np.geomspace(least, largest, 1 + math.ceil(math.log(largest / least) / math.log(ratio)))

    def _stakes(self, mean: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bets, and the logarithms of their weights, against means below this guess."""
        bets = np.append(self._spaced, self._suited(mean))
        suited = self.theory.suited_share
        weights = np.full(len(bets), (1.0 - suited) / len(self._spaced))
        weights[-1] = suited
        return bets, np.log(weights)

    def _suited(self, mean: float) -> float:
        """Return the bet that wins most against the largest mean that rows of the guessed spread exclude."""
        rows, largest = likely_rows(mean, self.spread, float(self.rows)), self.theory.set_bets.largest
        if len(rows.values) < 2:
            return largest
        excluded, kept, bet = 0.0, mean, largest
        for _ in range(self.theory.set_halvings):
            middle = (excluded + kept) / 2.0
            if middle <= 0.0:  # `mean` is close to the smallest float
                break
            up, down = rows.values - middle
            bet = min(largest, (mean - middle) / (-up * down) * middle) if down < 0.0 else largest
            won = float(np.log1p(bet / middle * np.array([up, down])) @ rows.counts)
            is_out = won >= self.nats - math.log(self.theory.suited_share)
            excluded, kept = (middle, kept) if is_out else (excluded, middle)
        return bet

    def of_rows(
        self, terms: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> tuple[float, float]:
        """Return the least and the greatest mean that the evidence does not exclude, rounded outwards.

        Parameters
        ----------
        terms : numpy.ndarray of shape (rows,)
            In [0, 1].
        weights : numpy.ndarray of shape (rows,), optional
            In [0, 1]: the mean is the weighted one.
        """
        if weights is None and len(terms) >= MANY:
            return self.of(*rounded(terms))
        if self.theory.odds:
            return self.of(EvidenceRows(terms, np.ones(len(terms))))

        def lowest(values: NDArray[np.float64], guess: float) -> float:
            bets, stakes = self._stakes(guess)
            mean = float(np.average(values, weights=weights))
            return self._lowest(mean, lambda m: gains_of_rows(values, m, bets / m, weights) + stakes)

        return lowest(terms, self.mean), 1.0 - lowest(1.0 - terms, 1.0 - self.mean)

    def of(self, rows: EvidenceRows, above: EvidenceRows | None = None) -> tuple[float, float]:
        """Return the ends, as `of_rows` does, from counted values; the upper end takes `above` if it is given."""

        def lowest(rows: EvidenceRows, guess: float) -> float:
            if self.theory.odds:
                return self._lowest_in_order(rows, guess)
            bets, stakes = self._stakes(guess)
            return self._lowest(
                rows.mean, lambda m: np.log1p(np.outer(bets / m, rows.gains(m))) @ rows.counts + stakes
            )

        mirrored = (rows if above is None else above).mirrored
        return lowest(rows, self.mean), 1.0 - lowest(mirrored, 1.0 - self.mean)

    def _lowest_in_order(self, rows: EvidenceRows, guess: float) -> float:
        """Return the lower end for rows in time order; see :func:`~reusable_holdout.certainty.bound.odds_lower`."""
        sizes, weights = np.array(self.theory.odds).T
        bets = sizes * math.sqrt(2.0 * self.nats / self.rows) / max(self.spread, 1e-9)
        odds = bets / np.maximum(1.0 - bets * guess, 1.0 - self.theory.set_bets.largest)
        won = np.log1p(np.outer(odds, rows.values)) @ rows.counts + np.log(weights)
        return self._lowest(rows.mean, lambda m: won - rows.counts.sum() * np.log1p(odds * m))

    @property
    def likely(self) -> tuple[float, float]:
        """The ends for rows of the guessed mean and spread."""
        return self.of(likely_rows(self.mean, self.spread, self.rows))

    def lowest(self, guess: float, won: Callable[[float, NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Return the largest value that evidence of another form excludes, with all smaller ones; see `excludes`.

        The result may be a little too small.
        """
        bets, stakes = self._stakes(guess)
        return self._lowest(1.0, lambda value: won(value, bets) + stakes)

    def excludes(
        self, value: float, guess: float, won: Callable[[float, NDArray[np.float64]], NDArray[np.float64]]
    ) -> bool:
        """Return True if evidence of another form excludes a value in (0, 1), and so all smaller values.

        Parameters
        ----------
        won : callable
            Function from a value and bets in (0, 1) to the log gain of each bet. The gain is a product over the rows of
            ``1 + bet * gain / worst``; `worst` is the most that a row can lose. It has expectation at most 1 if the
            population's value is at most this value, and it falls as the value grows.
        """
        bets, stakes = self._stakes(guess)
        return self._enough(won(value, bets) + stakes)

    def _enough(self, logs: NDArray[np.float64]) -> bool:
        return mixed(logs) + math.log(len(logs)) >= self.nats

    def _lowest(self, mean: float, won: Callable[[float], NDArray[np.float64]]) -> float:
        """Return the largest mean such that it and all smaller means are excluded, or a little less.

        `won` returns the logarithms of the terms of E.
        """
        excluded, kept = 0.0, mean
        for _ in range(self.theory.set_halvings):
            middle = (excluded + kept) / 2.0
            if middle <= 0.0:
                break
            excluded, kept = (middle, kept) if self._enough(won(middle)) else (excluded, middle)
        return excluded
