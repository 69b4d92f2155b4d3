"""The joint cost of rounds of the exponential mechanism, by composition of mechanisms with bounded range.

For each outcome take the log of the ratio of its probabilities on two neighbouring data sets. A mechanism has range
``e`` if these log-ratios differ by at most ``e`` between any two outcomes. Every such mechanism is
(e, 0)-differentially private. But the two extremes of its privacy loss are ``e`` apart, and not ``2 e``. So many rounds
cost about half as much, and need half the noise.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bisection import smallest_between
from reusable_holdout.mechanisms.accounting.composition import check_composed, even_share
from reusable_holdout.noise.composition import LARGEST_EXPONENT

# lattice points in one range: _FINE over the root of the number of rounds, but at least _COARSEST
_FINE, _COARSEST = 350, 6
_MOST_ROUNDS = 20_000  # rounds; for more, the lattice would be too coarse to be worth its time
_REACH = 3.5  # standard deviations of the loss, beyond what delta needs
_UPWARDS = 1 + 1e-8  # relative; all sums are of positive numbers, so rounding errs by far less
_CLOSE = 3e-4  # relative accuracy of an inverse
_BISECTIONS = 60
_TOO_FINE = 1e-8  # for a smaller range, the rounding of a lattice exceeds the cost of a round


def _check(*, epsilon: float, count: int, delta: float) -> None:
    check_composed(epsilon=epsilon, count=count, delta=delta)
    if epsilon == 0:
        raise InputError("epsilon is finite and above 0; got 0")


@functools.lru_cache(maxsize=256)
def bounded_range_composition(*, epsilon: float, count: int, delta: float) -> float:
    """Compute the epsilon of `count` rounds of the exponential mechanism, or of other mechanisms with bounded range.

    `count` adaptive releases, each of range `epsilon`, are together (result, `delta`)-differentially private; the
    result is rounded up, by less than a hundredth for up to some hundred rounds.

    Parameters
    ----------
    epsilon : float
        Range of each release; for the exponential mechanism it is the privacy parameter. Finite, above 0.
    count : int
        Number of releases ``k``; at least 1. The time grows with it: thousands take seconds.
    delta : float
        Delta of all releases together, in [0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Under the neighbour's data the likelihood ratio is a product of ``k`` factors of mean 1. Each lies in an interval
    ``[a, a exp(e)]`` that the adversary chooses after seeing the previous outcome. So the delta of an epsilon ``E`` is
    at most ``V_k(1)``, where ``V_0(s) = max(0, s - exp(E))`` and ``V_j(s)`` is the largest mean of ``V_(j-1)(s F)``
    over such factors ``F``. As ``V_(j-1)`` is convex, this is the largest value at ``s`` of its chords over
    ``[s a, s a exp(e)]``. A coin whose two factors are the ends of the chord has range ``e``, so the bound is attained.

    The code keeps ``V_j`` on a lattice, with straight lines between the points, which lie above the convex ``V_j``. It
    bounds the chords for every real ``a``. So the result lies above the true value. Where the lattice would leave the
    range of floats, at totals of some hundreds, and for ranges below 1e-8, the result is the smaller one of pure and
    concentrated composition. It is 0 if delta is at least the total variation of all releases, which is at most
    ``k e / 4``.

    References
    ----------
    .. [1] Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms",
       on adaptive rounds.
    .. [2] Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
       composition", on bounded range.

    Examples
    --------
    >>> round(bounded_range_composition(epsilon=0.05, count=100, delta=1e-6), 2)
    1.06
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    if delta == 0:
        return count * epsilon
    if count * epsilon / 4 * (1 + 1e-9) <= delta:  # the total variation of all is less
        return 0.0
    known = min(count * epsilon, _zcdp_epsilon(count * (epsilon * epsilon) / 8, delta))
    if count > _MOST_ROUNDS or epsilon < _TOO_FINE or not _fits(epsilon, count, known, delta):
        return known
    return min(known, _worst(epsilon, count, known).epsilon(delta))


@functools.lru_cache(maxsize=256)
def bounded_range_epsilon_each(*, epsilon: float, count: int, delta: float) -> float:
    """Compute the largest epsilon of each of `count` rounds of the exponential mechanism that share a budget.

    If each of `count` adaptive rounds has the returned epsilon, all of them together are
    (`epsilon`, `delta`)-differentially private. The result is rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of all rounds together; finite, above 0.
    count, delta
        As for `bounded_range_composition`, with the same errors.

    Notes
    -----
    This is the inverse of `bounded_range_composition`, accurate to a relative 3e-4. For more than 20,000 rounds, and
    where it is below 1e-8, it is the largest epsilon that one of three bounds allows: ``k e**2 / 8``-zCDP, pure
    composition, or the total variation of a round, which is at most ``e / 4``.

    References
    ----------
    .. [1] Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms".
    .. [2] Cesar and Rogers (2021), "Bounding, concentrating, and truncating: unifying privacy loss composition for
       data analytics", on zCDP.

    Examples
    --------
    >>> round(bounded_range_epsilon_each(epsilon=1.0, count=100, delta=1e-6), 4)
    0.0473
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    low = even_share(epsilon, count)
    if delta == 0:
        return low
    log = math.log(1 / delta)
    concentrated = math.sqrt(8 / count) * (math.sqrt(log + epsilon) - math.sqrt(log))
    low = max(low, concentrated * (1 - 1e-9), 4 * delta / count * (1 - 1e-9))
    if count > _MOST_ROUNDS or low < _TOO_FINE:
        return low
    return _largest(low, epsilon, count, delta)


def _largest(low: float, epsilon: float, count: int, delta: float) -> float:
    """Find the largest range with which `count` rounds are (epsilon, delta)-private, by the secant method on log delta.

    The search starts at `low`, a range with which the rounds are private.
    """

    def excess(each: float) -> float:
        if not _fits(each, count, epsilon, delta):
            return math.inf
        found = _worst(each, count, epsilon).delta(epsilon)
        return math.log(found / delta) if found > 0 else -math.inf

    high = low
    at_low = at_high = excess(low)  # above 0 where the coarse lattice promises less than is known
    while at_high <= 0:
        low, at_low, high = high, at_high, 1.5 * high
        at_high = excess(high)
    for step in range(_BISECTIONS):
        if high <= low * (1 + _CLOSE):
            break
        known = math.isfinite(at_low) and math.isfinite(at_high)
        share = at_low / (at_low - at_high) if known and step % 3 < 2 else 0.5
        middle = low + (high - low) * min(max(share - 0.1 * _CLOSE, 0.001), 0.999)
        at_middle = excess(middle)
        if at_middle <= 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return low


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """Compute the epsilon of rho-zCDP at a delta, by Bun and Steinke (2016), Proposition 1.3."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


class _Curve(NamedTuple):
    """Bounds of the mean of ``max(0, s L - 1)``, with ``L`` the likelihood ratio, at the points ``s = exp(logs)``."""

    logs: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]

    def delta(self, epsilon: float) -> float:
        """Bound delta at an epsilon within the span of the lattice."""
        place = int(np.searchsorted(self.logs, -epsilon))
        below, above = np.exp(self.logs[place - 1 : place + 1] + epsilon).tolist()
        share = (1 - below) / (above - below)
        mean = (1 - share) * float(self.means[place - 1]) + share * float(self.means[place])
        return float(math.exp(epsilon) * mean * _UPWARDS)

    def epsilon(self, delta: float) -> float:
        """Find the smallest epsilon whose bound is at most delta; it is infinite if the lattice has none."""

        def holds(epsilon: float) -> bool:
            return self.delta(epsilon) <= delta

        if holds(0.0):
            return 0.0
        farthest = -float(self.logs[1])
        return smallest_between(holds, 0.0, farthest) if holds(farthest) else math.inf


def _room(each: float, count: int) -> float:
    """Return how far the lattice extends beyond the point at which its result is needed."""
    return _REACH * (0.5 * each * math.sqrt(count))


def _fits(each: float, count: int, epsilon: float, delta: float) -> bool:
    """Return True if floats hold all of the lattice: its ends, a range beyond them, and delta at the lower end."""
    return epsilon + _room(each, count) + each - math.log(delta) < LARGEST_EXPONENT


def _worst(each: float, count: int, epsilon: float) -> _Curve:
    """Run the adversary's rounds on a lattice that holds ``s = exp(-epsilon)`` with room on both sides."""
    fine = max(_COARSEST, round(_FINE / math.sqrt(count) + _FINE / count))
    step = each / fine
    widest, room = count * fine, _room(each, count)
    below = min(widest, math.ceil((epsilon + room) / step)) + 1
    above = min(widest, math.ceil(room / step)) + 1
    logs = np.arange(-below, above + 1, dtype=np.float64) * step
    means: npt.NDArray[np.float64] = np.maximum(np.expm1(logs), 0.0)
    # Right of the lattice max(0, sL - 1) - (s - 1) falls with s.
    beyond = np.expm1(logs[-1] + np.arange(1, fine + 1, dtype=np.float64) * step) - math.expm1(logs[-1])
    for _ in range(count):
        means = _round(np.concatenate([means[:1].repeat(fine), means, means[-1] + beyond]), step, fine)
    return _Curve(logs, means)


def _round(means: npt.NDArray[np.float64], step: float, fine: int) -> npt.NDArray[np.float64]:
    """Compute one round of the adversary: bound the largest chord at each lattice point but the outermost ones.

    Let a chord's left end lie at ``s x``, between two lattice points whose line has intercept ``f``. Let its right end
    lie at ``s x E``, ``E = exp(e)``, at the same place between two points whose line has intercept ``g``. At ``s`` the
    chord has the value ``A/x + B + C x`` with ``A = (g - f)/(E - 1)``. Between two points at distance ``w`` it exceeds
    the larger of its values at these points by at most ``w**2/8`` times its curvature, ``2 |A| / x**3``.
    """
    size, cell, growth = len(means) - 2 * fine, math.expm1(step), math.expm1(fine * step)
    intercepts = means[:-1] - np.diff(means) / cell
    # convex means have falling intercepts: only rounding is mended
    left = np.maximum.accumulate(intercepts[::-1])[::-1]
    right = np.minimum.accumulate(intercepts)
    best, last, excess = np.zeros(size), np.zeros(size), np.zeros(size)
    for place in range(fine + 1):
        left_end = math.exp((place - fine) * step)
        # of the right end; 0 at the last place
        share = -math.expm1((place - fine) * step) / (left_end * growth)
        chord = (1 - share) * means[place : place + size] + share * means[place + fine : place + fine + size]
        if place:
            np.maximum(best, np.maximum(last, chord) + excess, out=best)
        if place < fine:
            bend = left[place : place + size] - right[place + fine : place + fine + size]
            excess = bend * (cell**2 / (4 * left_end * growth))
        last = chord
    return best
