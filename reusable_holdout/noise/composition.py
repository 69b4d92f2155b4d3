"""The optimal composition theorem for releases of equal epsilon and delta 0: their exact joint epsilon at a delta."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.noise.half_binomial import log_half_binomial

LARGEST_EXPONENT = 700.0  # exp of a larger number overflows
_NEGLIGIBLE = 60.0  # relative to delta, the terms that are left out add up to at most exp(-_NEGLIGIBLE)
ROUNDING = 2.0**-50  # largest error of a logarithm of magnitude 1, and of each term of a sum


def whole_epsilon(epsilon: float, count: int) -> float:
    """Return the smallest float that is at least the exact product of `count` and epsilon."""
    exact = Fraction(epsilon) * count
    whole = float_of(exact)
    return whole if math.isinf(whole) or whole >= exact else math.nextafter(whole, math.inf)


def float_of(total: Fraction | float) -> float:
    """Return the float nearest to a number; it is infinite if the number is too large for a float."""
    try:
        return float(total)
    except OverflowError:
        return math.inf


@np.errstate(over="ignore")  # a sum beyond all floats is infinite
def composed_epsilon(*, epsilon: float, count: int, delta: float) -> float:
    """Compute the smallest epsilon that `count` releases together are guaranteed to have at a delta.

    `count` adaptive `epsilon`-differentially private releases are together (result, `delta`)-differentially private.
    For some releases no smaller epsilon is true: the result is rounded up by little more than floating-point rounding.

    Parameters
    ----------
    epsilon : float
        Privacy parameter ``e0`` of each release; finite, at least 0.
    count : int
        Number of releases ``k``, from 1 to about 10**9. Time and memory grow with its square root.
    delta : float
        Delta of all releases together, in [0, 1).

    Notes
    -----
    The worst case is ``k``-fold randomized response, for which ``delta(E) = sum_l max(0, a_l - exp(E) b_l)``
    with ``a_l = C(k,l) e^((k-l) e0) / (1+e^e0)^k`` and ``b_l = C(k,l) e^(l e0) / (1+e^e0)^k``. As ``a_l / b_l``
    decreases with ``l``, the sum is the maximum over ``j`` of ``A_j - exp(E) B_j``, where ``A_j`` and ``B_j`` are the
    partial sums. So the inverse has a closed form, ``E = max_j ln(1 + (A_j - B_j - delta) / B_j)``. It needs no
    bisection and is exact also between the lattice points ``(k-2l) e0`` of the theorem. ``A_j - B_j`` is computed as a
    sum of positive terms, so no digits cancel where `epsilon` is small.

    Raises
    ------
    InputError
        If a number is out of range.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorem 3.3.

    Examples
    --------
    >>> round(composed_epsilon(epsilon=0.0119, count=400, delta=1e-6), 3)
    1.002
    """
    if not (
        0.0 <= epsilon < math.inf and count >= 1 and 0.0 <= delta < 1.0
    ):  # a forger may have written them
        raise InputError(
            f"epsilon, count and delta must be at least 0, at least 1 and in [0, 1); got {epsilon}, {count} and {delta}"
        )
    whole = whole_epsilon(epsilon, count)
    if delta == 0 or epsilon == 0:
        return whole
    log_a, loss, error = terms_of(epsilon, count, _NEGLIGIBLE - math.log(delta) - math.log1p(-delta))
    log_sum_b = np.logaddexp.accumulate(log_a - loss) - error
    log_more = np.logaddexp.accumulate(log_a + np.log(-np.expm1(-loss))) + error  # of A_j - B_j
    log_delta = math.log(delta) * (1 + ROUNDING)
    reached = log_more > log_delta
    if not reached.any():
        return 0.0
    kept = log_more[reached]
    log_excess = kept + np.log(-np.expm1(log_delta - kept))
    log_found = float(np.max(log_excess - log_sum_b[reached]))  # of exp(E) - 1
    found = float(np.logaddexp(0.0, log_found)) * (1 + ROUNDING * (1 + max(0.0, -log_found)))
    return min(whole, max(found, 5e-324))


def terms_of(
    epsilon: float, count: int, farthest: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """Return the logs of the relevant ``a_l`` with ``l < k/2``, their privacy losses, and the error of logs of sums.

    `composed_epsilon` defines the ``a_l``; the loss is ``(k - 2l) e0``. By Hoeffding's inequality for ``k - 2l`` the
    terms that are left out add up to at most ``exp(-farthest)`` on each side. The error bounds the rounding in the log
    of a sum of these terms.
    """
    mean, reach = count * math.tanh(epsilon / 2), math.sqrt(2 * count * farthest)
    first = max(0, math.ceil((count - mean - reach) / 2))
    ahead = np.arange(count - 2 * first, max(0.0, mean - reach), -2, dtype=np.float64)
    loss = ahead * epsilon
    if epsilon < 1:
        tilt = loss / 2 - count * math.log1p(2 * math.sinh(epsilon / 4) ** 2)
    else:
        tilt = count * (math.log(2) - math.log1p(math.exp(-epsilon))) - (count - ahead) / 2 * epsilon
    even = log_half_binomial(count, ahead)
    largest = float(np.max(np.abs(even) + np.abs(tilt) + loss))
    return even + tilt, loss, ROUNDING * (8 + largest + len(ahead))
