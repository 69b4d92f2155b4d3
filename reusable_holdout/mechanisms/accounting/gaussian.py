"""The Gaussian mechanism: its exact delta at an epsilon, and the noise that it needs for an epsilon and a delta."""

from __future__ import annotations

import math

import numpy as np

from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError

_NODES = 24  # of a quadrature; the integrand is smooth over a length of 1
_ROUND_UP = 1 + 1e-9  # pays for the rounding of delta and of the root
_SMALL_SHIFT = 1.0  # for shifts up to this, a quadrature keeps the digits that a difference loses
_ROUNDED = 1e12  # a larger epsilon is rounded by more than the number that it is compared with
_ROOT_TWO = math.sqrt(2.0)


def gaussian_delta(*, epsilon: float, deviation: float, sensitivity: float = 1.0) -> float:
    """Compute the smallest delta of the Gaussian mechanism at an epsilon.

    Adding normal noise of this standard deviation is (epsilon, result)-differentially private. No smaller delta is
    true, up to floating-point rounding.

    Parameters
    ----------
    epsilon : float
        Privacy parameter; finite, at least 0.
    deviation : float
        Standard deviation of the noise of each answer, in the answers' unit; finite, > 0.
    sensitivity : float
        Largest Euclidean (l2) distance of the answers of neighbouring data sets, in the answers' unit; finite, > 0.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``D`` be the sensitivity, ``s`` the deviation, ``e`` epsilon and ``h = D / s``. Let ``Phi`` and ``phi`` be the
    distribution function and the density of the standard normal law. Delta is ``Phi(h/2 - e/h) - exp(e) Phi(-h/2 -
    e/h)``. This difference loses all its digits where ``h`` is small. With Mills' ratio ``m`` and ``t = e/h - h/2`` it
    equals ``phi(t) (m(t) - m(t+h))``, and ``m(t) - m(t+h)`` is the integral over ``[t, t+h]`` of ``1 - x m(x)``, which
    is positive everywhere.

    References
    ----------
    .. [1] Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising", Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(epsilon=1.0, deviation=4.0), 8)
    2.92e-06
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
    if not (0 < deviation < math.inf and 0 < sensitivity < math.inf):
        raise InputError(
            f"a deviation and a sensitivity are finite and above 0; got {deviation} and {sensitivity}"
        )
    return _delta(epsilon, sensitivity / deviation)


def gaussian_deviation(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Compute the smallest standard deviation with which the Gaussian mechanism is (epsilon, delta)-private.

    Adding normal noise of this standard deviation is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters; epsilon finite and above 0, delta in (0, 1).
    sensitivity : float
        Largest Euclidean (l2) distance of the answers of neighbouring data sets, in the answers' unit; finite, > 0.

    Returns
    -------
    float
        Standard deviation, rounded up: `gaussian_delta` at it is at most `delta`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It is the deviation at which `gaussian_delta` equals delta. The textbook's ``sqrt(2 ln(1.25/d)) D / e`` is larger,
    and proved for ``e < 1`` only.

    References
    ----------
    .. [1] Balle and Wang (2018), Algorithm 1.
    .. [2] Dwork and Roth (2014), Theorem A.1, for the textbook.

    Examples
    --------
    >>> round(gaussian_deviation(epsilon=1.0, delta=1e-6), 4)
    4.2247
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 1e-300 < delta < 1:
        raise InputError(f"the Gaussian mechanism needs a delta in (0, 1); got {delta}")
    if not 0 < sensitivity < math.inf:
        raise InputError(f"a sensitivity is finite and above 0; got {sensitivity}")

    def excess(log_deviation: float) -> float:
        return math.log(max(_delta(epsilon, math.exp(-log_deviation)), 5e-324) / delta)

    low = high = 0.0
    while excess(low) <= 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    root = float(optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-13))
    deviation = math.exp(root)
    while _delta(epsilon, 1 / deviation) > delta * (1 - 1e-9):
        deviation *= _ROUND_UP
    return deviation * sensitivity


def _delta(epsilon: float, shift: float) -> float:
    """Compute delta for a shift of `shift` standard deviations."""
    lowest = epsilon / shift - shift / 2
    if shift > _SMALL_SHIFT:
        first, second = float(special.log_ndtr(-lowest)), float(special.log_ndtr(-lowest - shift))
        likely = math.exp(first)
        if epsilon > _ROUNDED or not likely:
            return likely  # no less than delta, and hardly more
        return likely * -math.expm1(epsilon + second - first)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = lowest + shift * (nodes + 1) / 2
    slope = 1 - x * math.sqrt(math.pi / 2) * special.erfcx(x / _ROOT_TWO)
    return math.exp(-lowest * lowest / 2) / math.sqrt(2 * math.pi) * float(weights @ slope) * shift / 2
