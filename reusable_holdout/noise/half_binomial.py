"""Log probabilities of the binomial distribution of a fair coin, accurate for a billion throws."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special

_FEW = 16.0  # Stirling's series errs by less than 2e-14 from here on


def log_half_binomial(count: int, ahead: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the log probability that the number of heads minus the number of tails equals `ahead`.

    Parameters
    ----------
    count : int
        Number ``k`` of throws of a fair coin; at least 1.
    ahead : ndarray of float, shape (m,)
        Heads minus tails: between 0 and `count`, and of the same parity as `count`.

    Notes
    -----
    With ``l`` tails and ``u = 1 - 2l/k`` the result is ``-k/2 ((1-u) ln(1-u) + (1+u) ln(1+u))``, minus half the log of
    ``2 pi l (k-l) / k``, plus the errors of Stirling's formula for the three factorials. This form never subtracts two
    large numbers.

    References
    ----------
    .. [1] Loader (2000), "Fast and accurate computation of binomial probabilities".
    """
    tails = np.maximum((count - ahead) / 2, 0.5)  # the case of no tails follows below
    heads, share = count - tails, ahead / count
    with np.errstate(divide="ignore", invalid="ignore"):  # at a share of 1
        near = 2 * share * np.arctanh(share) + np.log1p(-share * share)
    far = (2 * tails / count) * np.log(2 * tails / count) + (2 * heads / count) * np.log(2 * heads / count)
    distance = np.where(share < 0.5, near, far) * (count / 2)
    errors = _stirling(np.array([float(count)])) - _stirling(tails) - _stirling(heads)
    found = errors - distance - np.log(2 * math.pi * tails * heads / count) / 2
    return np.where(ahead < count, found, -count * math.log(2.0))


def _stirling(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the error of Stirling's formula: the log of n! minus the formula's value."""
    inverse = 1 / np.maximum(n, _FEW)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    few = np.minimum(n, _FEW)
    exact = special.gammaln(few + 1) - ((few + 0.5) * np.log(few) - few + 0.5 * math.log(2 * math.pi))
    return np.where(n < _FEW, exact, series)
