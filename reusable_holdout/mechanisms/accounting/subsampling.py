"""Privacy amplification by subsampling: the cost of a private release that reads only a random sample of the rows."""

from __future__ import annotations

import math

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.noise.composition import LARGEST_EXPONENT

_ROUND_UP = 1 + 2.0**-49  # pays for a few floating-point operations
_FAR_ROUND_UP = 1 + 1e-12  # the same for a small difference of two large numbers


def subsampled_epsilon(epsilon: float, *, rate: float) -> float:
    """Compute the epsilon of an algorithm that runs on a secret random sample of the rows.

    If the algorithm is (epsilon, delta)-differentially private on its sample, then sampling and running it is (result,
    ``rate * delta``)-differentially private on all rows. For some algorithms no smaller epsilon is true.

    Parameters
    ----------
    epsilon : float
        Privacy parameter on the sample; finite, at least 0.
    rate : float
        Probability that a row is in the sample, in [0, 1]. It is ``m/n`` if m of n rows are drawn without replacement;
        neighbours then differ by a row that is replaced. Or it is the probability with which each row is taken,
        independently of the others; neighbours then differ by a row that is added or removed.

    Returns
    -------
    float
        Epsilon on all rows, rounded up, and at most `epsilon`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    With ``p`` the rate and ``e`` epsilon the result is ``ln(1 + p (exp(e) - 1))``, about ``p e`` for small epsilon. The
    sample must stay secret: there is no amplification if the sampled rows become known. If one sample is used for
    several releases, their composition is amplified, and not each release.

    If rows are taken independently and neighbours differ by a replaced row, the result is the same, provided that the
    algorithm is (epsilon, delta)-private both for a replaced row and for an added or removed row.

    References
    ----------
    .. [1] Balle, Barthe and Gaboardi (2018), "Privacy amplification by subsampling: tight analyses via couplings and
       divergences", Theorems 8 and 9.
    .. [2] Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011), "What can we learn privately?".

    Examples
    --------
    >>> round(subsampled_epsilon(1.0, rate=0.01), 5)
    0.01704
    """
    _check(epsilon, rate)
    if rate == 0:
        return 0.0
    if epsilon < LARGEST_EXPONENT:
        return min(epsilon, math.log1p(rate * math.expm1(epsilon)) * _ROUND_UP)
    # Without overflow; there exp(e) - 1 is exp(e).
    return min(epsilon, float(np.logaddexp(0.0, epsilon + math.log(rate))) * _FAR_ROUND_UP)


def epsilon_of_the_sample(epsilon: float, *, rate: float) -> float:
    """Compute the largest epsilon that an algorithm may have on a secret random sample of the rows.

    An algorithm with the result as its privacy parameter, run on the sample, is (epsilon, ``rate *
    delta``)-differentially private on all rows.

    Parameters
    ----------
    epsilon : float
        Privacy parameter on all rows; finite, at least 0.
    rate
        Probability that a row is in the sample, above 0, as in `subsampled_epsilon`, with the same errors.

    Returns
    -------
    float
        Epsilon on the sample, rounded down: its `subsampled_epsilon` is at most the argument `epsilon`.

    Notes
    -----
    With ``p`` the rate and ``e`` epsilon the result is ``ln(1 + (exp(e) - 1) / p)``.

    References
    ----------
    .. [1] Balle, Barthe and Gaboardi (2018), Theorems 8 and 9.

    Examples
    --------
    >>> round(epsilon_of_the_sample(0.1, rate=0.01), 3)
    2.444
    """
    _check(epsilon, rate)
    if rate == 0:
        raise InputError("the rate is above 0, because an empty sample has no largest epsilon; got 0")
    if epsilon < 1 and rate > 1e-300:
        inside = math.log1p(math.expm1(epsilon) / rate)
    else:  # ln((exp(e) - 1 + p) / p), without overflow
        inside = epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)
    while subsampled_epsilon(inside, rate=rate) > epsilon:
        inside /= _ROUND_UP
    return inside


def _check(epsilon: float, rate: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
    if not 0 <= rate <= 1:
        raise InputError(f"a rate lies in [0, 1]; got {rate}")
