"""Evidence that the mean of the rows lies within a tolerance of a named value, whatever the spread of the rows.

A bet on the rows is fixed before they are read. If the mean is at most some number, the bet gains nothing on average.
So its gain is evidence against that number; no other property of the rows need be known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty.theory import THEORY, BetSizes

Sides: TypeAlias = Literal["both", "low", "high"]

_BLOCK = 1 << 14  # rows: what a processor's cache holds
_CHUNK = 16  # factors whose product is taken before its logarithm: above 1e-84, and finite up to bets of 1e19
MANY = 1 << 18
"""Least number of rows that are rounded and counted by value; it costs at most 0.5% of their evidence."""

_CELLS = 1 << 16
_LEAST_MEAN = 1e-12  # smaller means get no bets
_NODES = 17  # distances; a search begins at the farthest one with enough evidence
_STEPS = 60  # of that search, at most
_NEAR = 1e-15  # distance at which it ends


class EvidenceRows(NamedTuple):
    """Real or hypothetical rows: their values, and a count for each value, which need not be whole.

    Attributes
    ----------
    values, counts : numpy.ndarray of float64
    weights : numpy.ndarray of float64, optional
        Weight of each value in the mean, in [0, 1].
    """

    values: NDArray[np.float64]
    counts: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @property
    def mirrored(self) -> EvidenceRows:
        """The rows with each value replaced by one minus it."""
        return EvidenceRows(1.0 - self.values, self.counts, self.weights)

    @property
    def mean(self) -> float:
        """The weighted mean of the rows; 0.5 if the weights sum to 0."""
        whole = self.counts if self.weights is None else self.counts * self.weights
        total = float(whole.sum())
        return float(self.values @ whole) / total if total else 0.5

    def gains(self, mean: float) -> NDArray[np.float64]:
        """Return the gain, at each value, of a bet of 1 against a mean."""
        return self.values - mean if self.weights is None else self.weights * (self.values - mean)


def rounded(terms: NDArray[np.float64]) -> tuple[EvidenceRows, EvidenceRows]:
    """Return the rows counted, once rounded down to 2^-16, once up; evidence on the low, or high, side only falls."""
    scaled = terms * _CELLS
    down, up = (np.bincount(places.astype(np.int64)) for places in (scaled, np.ceil(scaled)))
    return _counted(down), _counted(up)


def _counted(counts: NDArray[np.int64]) -> EvidenceRows:
    some = np.flatnonzero(counts)
    return EvidenceRows(some / _CELLS, counts[some].astype(np.float64))


def likely_rows(mean: float, spread: float, count: float) -> EvidenceRows:
    """Return rows of a guessed mean and standard deviation, for a plan that has no rows yet.

    Half of them lie one standard deviation above the mean, half below. If one of these values would lie beyond 0 or 1,
    it is set to 0 or 1; the other value and its share of the rows change so that mean and deviation are kept.

    Parameters
    ----------
    mean : float
        In [0, 1].
    spread : float
        Standard deviation; if it is too large for rows of this mean, the largest possible one is taken.
    count : float
        Number of rows.
    """
    spread = min(spread, math.sqrt(mean * (1.0 - mean)))
    if spread <= 0.0:
        return EvidenceRows(np.array([mean]), np.array([count]))
    if mean + spread > 1.0:
        values, share = (1.0, mean - spread**2 / (1.0 - mean)), spread**2 / (spread**2 + (1.0 - mean) ** 2)
    elif mean - spread < 0.0:
        values, share = (mean + spread**2 / mean, 0.0), mean**2 / (mean**2 + spread**2)
    else:
        values, share = (mean + spread, mean - spread), 0.5
    return EvidenceRows(np.array(values), count * np.array([share, 1.0 - share]))


def worst_rows(mean: float, count: float) -> EvidenceRows:
    """Return rows of 0 and 1 with this mean: among all rows with this mean, they have the least evidence.

    The reason is that a bet's gain is a concave function of the row's value.
    """
    return EvidenceRows(np.array([1.0, 0.0]), count * np.array([mean, 1.0 - mean]))


def gains_of_rows(
    terms: NDArray[np.float64],
    mean: float,
    bets: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the log gain of each bet on all rows: the log of the product of ``1 + bet * weight * (term - mean)``."""
    logs = np.zeros(len(bets))
    for start in range(0, len(terms), _BLOCK):
        rows = slice(start, start + _BLOCK)
        gains = terms[rows] - mean if weights is None else weights[rows] * (terms[rows] - mean)
        padded = np.zeros(-(-len(gains) // _CHUNK) * _CHUNK)
        padded[: len(gains)] = gains
        by_factor = padded.reshape(_CHUNK, len(padded) // _CHUNK)
        logs += [float(np.log(np.multiply.reduce(1.0 + bet * by_factor)).sum()) for bet in bets]
    return logs


def mixed(logs: NDArray[np.float64]) -> float:
    """Return the logarithm of the average of numbers, given their logarithms."""
    most = float(np.maximum.reduce(logs))
    return most + math.log(float(np.add.reduce(np.exp(logs - most))) / len(logs))


@dataclass(frozen=True)
class Null:
    """The hypothesis that a mean of independent terms in [0, 1] is at most a number; bets are made against it.

    There is no evidence against a mean of 1 or more, and none is needed against 0 or less. The tolerance, > 0, is how
    far above the mean the rows are expected to lie; the sizes of the bets follow from it.

    Notes
    -----
    With weights u_r in [0, 1], for bets l_1 .. l_k in (0, 1/m),

        E = average over k of prod_r (1 + l_k u_r (x_r - m))

    has expectation at most 1 if the weighted mean of the terms' expectations is at most m: each factor has expectation
    1 + l_k u_r (mu_r - m), the logarithm is concave, and sum_r u_r (mu_r - m) <= 0. So it exceeds 1/alpha with
    probability at most alpha (Markov). With bets in proportion to 1/m, E falls as m grows, so every excluded mean
    lies below every mean that is not excluded.

    Weights may be random, too: for independent draws (x_r, u_r) from one distribution, each factor has expectation 1
    if m is the ratio E[u x] / E[u], and at most 1 if m is larger.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSSB 86.
    """

    mean: float
    tolerance: float
    sizes: BetSizes = THEORY.check_bets

    @cached_property
    def bets(self) -> NDArray[np.float64]:
        """The bets l, geometrically spaced: the smallest is below the best bet for 0/1 terms, the largest risks most.

        For 0/1 terms the best bet is the distance over m(1 - m); terms of less variance allow larger bets.
        """
        mean = max(self.mean, _LEAST_MEAN)
        most = self.sizes.largest / mean
        least = min(self.sizes.smallest * self.tolerance / (mean * (1.0 - mean)), most)
        count = 1 + math.ceil(math.log(most / least) / math.log(self.sizes.ratio))
        return np.geomspace(least, most, count)

    def log_evidence(self, terms: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
        """Return ln E, in nats, for terms and weights in [0, 1], both of shape (rows,)."""
        return self._mixed(lambda bets: gains_of_rows(terms, self.mean, bets, weights))

    def log_evidence_of(self, rows: EvidenceRows) -> float:
        """Return the logarithm of the evidence of rows whose values are known, but not their order."""
        gains = rows.gains(self.mean)
        return self._mixed(lambda bets: np.log1p(bets[:, np.newaxis] * gains) @ rows.counts)

    def _mixed(self, gained: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        if self.mean <= 0.0 or self.mean >= 1.0:
            return math.inf if self.mean <= 0.0 else 0.0
        return mixed(gained(self.bets))

    @property
    def sensitivity(self) -> float:
        """The largest change of ln E when one row changes; 0 if ln E is fixed."""
        if not 0.0 < self.mean < 1.0:
            return 0.0
        mean, bet = max(self.mean, _LEAST_MEAN), float(self.bets[-1])
        return math.log1p(bet * (1.0 - mean)) - math.log1p(-bet * mean)


@dataclass(frozen=True)
class SuitedNull(Null):
    """A hypothesis tested with a few multiples of one bet, namely the best bet for rows of a guessed spread."""

    best: float = 1.0
    multiples: tuple[float, ...] = (1.0,)

    @cached_property
    def bets(self) -> NDArray[np.float64]:
        """The bets; with the largest allowed one, a row could lose the fraction `sizes.largest` of the stake."""
        most = self.sizes.largest / max(self.mean, _LEAST_MEAN)
        return np.minimum(self.best * np.array(self.multiples), most)

    def of_rows(self, terms: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
        """Return the evidence in nats, for terms and weights in [0, 1], both of shape (rows,)."""
        return self.log_evidence(terms, weights)


@dataclass(frozen=True)
class Evidence:
    """A test that a mean lies within a tolerance of a named value.

    Parameters
    ----------
    named : float
        In [0, 1].
    tolerance : float
        > 0.
    sides : {"both", "low", "high"}
        The tested claim: the mean lies within ``named +- tolerance``, is at least ``named - tolerance``, or is at most
        ``named + tolerance``.
    sizes : BetSizes
        Sizes of the bets.

    Notes
    -----
    If the mean lies outside, the test at a level of `nats` errs with probability at most exp(-nats) on each side; the
    mean can lie outside on one side only.
    """

    named: float
    tolerance: float
    sides: Sides = "both"
    sizes: BetSizes = THEORY.check_bets

    @cached_property
    def _low(self) -> Null | None:
        mean = self.named - self.tolerance
        return None if self.sides == "high" else Null(mean, self.tolerance, self.sizes)

    @cached_property
    def _high(self) -> Null | None:
        mean = 1.0 - self.named - self.tolerance
        return None if self.sides == "low" else Null(mean, self.tolerance, self.sizes)

    def of_rows(self, terms: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> float:
        """Return the nats of the side with less evidence; infinite if both sides lie beyond 0 and 1.

        If there are very many rows without weights, they are rounded, for each side towards less evidence.
        """
        if weights is None and len(terms) >= MANY:
            return self.of(*rounded(terms))
        low = math.inf if self._low is None else self._low.log_evidence(terms, weights)
        return low if self._high is None else min(low, self._high.log_evidence(1.0 - terms, weights))

    def of(self, rows: EvidenceRows, above: EvidenceRows | None = None) -> float:
        """Return the nats, as `of_rows` does, from counted values; the upper side takes `above` if it is given."""
        return min(self._nats(rows, high=False), self._nats(rows if above is None else above, high=True))

    def _nats(self, rows: EvidenceRows, *, high: bool) -> float:
        """Return the nats of one side; infinite if the test does not bound that side."""
        side = self._high if high else self._low
        return math.inf if side is None else side.log_evidence_of(rows.mirrored if high else rows)

    @cached_property
    def sensitivity(self) -> float:
        """The largest change of the evidence, in nats, when one row changes."""
        return max(side.sensitivity for side in (self._low, self._high) if side is not None)

    def reach(self, nats: float, rows: Callable[[float], EvidenceRows], *, above: bool) -> float:
        """Return how far the rows' mean may lie above (or below) the named value and still give evidence of `nats`.

        Parameters
        ----------
        nats : float
            Evidence that is needed.
        rows : callable
            Function from a mean in [0, 1] to rows with that mean.
        above : bool

        Returns
        -------
        float
            Negative if the mean must lie on the other side; -inf if the evidence is too small there, too.
        """
        sign = 1.0 if above else -1.0

        def spare(distance: float) -> float:  # nats; negative where they are too few
            mean = self.named + sign * distance
            if not 0.0 <= mean <= 1.0:
                return -math.inf
            found = rows(mean)  # the other side is not needed if the first has fewer nats
            least = self._nats(found, high=above)
            least = least if least < nats else min(least, self._nats(found, high=not above))
            return 0.0 if least == nats else least - nats  # both may be infinite

        ahead, behind = (1.0 - self.named, self.named) if above else (self.named, 1.0 - self.named)
        far = min(self.tolerance, ahead)
        # beyond the tolerance on the other side, a test of both sides has no evidence; a test of one side may have some
        near = -self.tolerance if self.sides == "both" else -behind
        refused = far, spare(far)
        if refused[1] >= 0.0:
            return self.tolerance
        for distance in np.linspace(far, near, _NODES)[1:].tolist():
            kept = distance, spare(distance)
            if kept[1] >= 0.0:
                return _last_kept(spare, kept, refused)
            refused = kept
        return -math.inf

    def likely_reach(self, nats: float, spread: float, count: float) -> float:
        """Return the farthest distance to either side for rows of a guessed spread: see `reach`."""
        return min(
            self.reach(nats, lambda mean: likely_rows(mean, spread, count), above=up) for up in (True, False)
        )


def _last_kept(
    spare: Callable[[float], float], kept: tuple[float, float], refused: tuple[float, float]
) -> float:
    """Return the point at which a spare amount reaches 0, on its non-negative side.

    Each end is a pair: a point, and the spare amount there.

    The method is regula falsi. If an end stays twice, its spare amount is halved (Illinois); if an amount is infinite,
    the middle is next.
    """
    (inside, much), (outside, little) = kept, refused
    stays = 0
    for _ in range(_STEPS):
        if abs(outside - inside) <= _NEAR:
            break
        middle = (inside + outside) / 2.0
        if math.isfinite(much - little):
            between = (inside * little - outside * much) / (little - much)
            middle = between if min(inside, outside) < between < max(inside, outside) else middle
        value = spare(middle)
        if value >= 0.0:
            inside, much = middle, value
            little, stays = (little / 2.0, 1) if stays > 0 else (little, 1)
        else:
            outside, little = middle, value
            much, stays = (much / 2.0, -1) if stays < 0 else (much, -1)
    return inside
