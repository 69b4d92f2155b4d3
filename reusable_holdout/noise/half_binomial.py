"""The binomial law of a fair coin, in logs that stay accurate for a billion throws."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special

__all__ = ["log_half_binomial"]

_FEW = 16.0  # Stirling's series errs by less than 2e-14 from here on


def log_half_binomial(count: int, ahead: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the log of the chance that heads are so many ahead of tails.

    Parameters
    ----------
    count : int
        Number ``k`` of throws of a fair coin; at least 1.
    ahead : ndarray of float, shape (m,)
        Heads less tails: between 0 and `count`, and of the same parity.

    Notes
    -----
    With ``l`` tails and ``u = 1 - 2l/k`` it is ``-k/2 ((1-u) ln(1-u) + (1+u) ln(1+u))``, less half the log of
    ``2 pi l (k-l) / k``, and Stirling's errors of the three factorials: no large number is subtracted from another.

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
    """Compute the log of n! less Stirling's formula for it."""
    inverse = 1 / np.maximum(n, _FEW)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    few = np.minimum(n, _FEW)
    exact = special.gammaln(few + 1) - ((few + 0.5) * np.log(few) - few + 0.5 * math.log(2 * math.pi))
    return np.where(n < _FEW, exact, series)
