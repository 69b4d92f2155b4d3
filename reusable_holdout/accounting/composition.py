"""What several differentially private releases cost together, from the crudest bound to the exact one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.accounting.bisection import largest_between
from reusable_holdout.accounting.half_binomial import log_half_binomial
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

__all__ = [
    "advanced_composition",
    "basic_composition",
    "optimal_composition",
    "optimal_delta",
    "optimal_epsilon_each",
]

LARGEST_EXPONENT = 700.0  # exp overflows beyond
MOST_RELEASES = 10**9  # whose composition is exact; a million terms of its sum matter
_FARTHEST = 800.0  # minus log of what all terms together are that are left out of a sum
_NEGLIGIBLE = 60.0  # the same over a delta
_ROUNDING = 2.0**-50  # of a logarithm of magnitude 1, and of each term of a sum, at most


def _check(*, epsilon: float, count: int, delta: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
    if count < 1:
        raise InputError(f"count is at least 1; got {count}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")


def even_share(epsilon: float, count: int) -> float:
    """Largest float that, `count` times, is at most epsilon: exactly, not as floats multiply."""
    share = epsilon / count
    return share if Fraction(share) * count <= Fraction(epsilon) else math.nextafter(share, 0.0)


def _whole(epsilon: float, count: int) -> float:
    """Least float that is at least `count` times epsilon: exactly, not as floats multiply."""
    exact = Fraction(epsilon) * count
    whole = float_of(exact)
    return whole if math.isinf(whole) or whole >= exact else math.nextafter(whole, math.inf)


def float_of(total: Fraction | float) -> float:
    """Nearest float; infinite if the sum is beyond all of them."""
    try:
        return float(total)
    except OverflowError:
        return math.inf


def basic_composition(epsilons: Iterable[float | Fraction]) -> float:
    """Add epsilons up.

    Releases that are each ``e_i``-differentially private are together ``sum e_i``-differentially private,
    however adaptively they were chosen.

    Parameters
    ----------
    epsilons : Iterable[float | Fraction]
        Each finite and at least 0. A float stands for its shortest decimal, so that 50 times 0.02 is 1.

    Returns
    -------
    float
        The exact sum, rounded once; infinite if it is beyond all floats.

    Raises
    ------
    InputError
        If an epsilon is negative or not finite.

    References
    ----------
    .. [1] Dwork and Roth (2014), Theorem 3.14.

    Examples
    --------
    >>> basic_composition([0.02] * 50)
    1.0
    """
    total = Fraction(0)
    for epsilon in epsilons:
        if not 0 <= epsilon < math.inf:
            raise InputError(f"every epsilon is finite and at least 0; got {epsilon}")
        total += epsilon if isinstance(epsilon, Fraction) else Fraction(repr(float(epsilon)))
    return float_of(total)


def advanced_composition(*, epsilon: float, count: int, delta: float) -> float:
    """Epsilon of `count` releases by advanced composition.

    `count` adaptive `epsilon`-differentially private releases are together (result, `delta`)-differentially
    private. For few releases the result exceeds `basic_composition`'s; `optimal_composition` is never worse
    than either.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of each; finite, at least 0.
    count : int
        Number of releases ``k``; at least 1.
    delta : float
        Slack, in (0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    ``e sqrt(2 k ln(1/d)) + k e (exp(e) - 1)``.

    References
    ----------
    .. [1] Dwork, Rothblum and Vadhan (2010), "Boosting and differential privacy", Theorem III.3.

    Examples
    --------
    >>> round(advanced_composition(epsilon=0.01, count=400, delta=1e-6), 4)
    1.0915
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    if delta == 0:
        raise InputError("advanced composition needs delta above 0; got 0; use basic_composition")
    growth = math.expm1(epsilon) if epsilon < LARGEST_EXPONENT else math.inf
    return epsilon * math.sqrt(-2 * count * math.log(delta)) + count * epsilon * growth


@np.errstate(over="ignore")  # what is beyond all floats is infinite
def optimal_composition(*, epsilon: float, count: int, delta: float) -> float:
    """Epsilon of `count` releases, the smallest that is true.

    `count` adaptive `epsilon`-differentially private releases are together (result, `delta`)-differentially
    private, and some are no better: the result is rounded up by little more than floating-point rounding. Beyond 10**9
    releases it is a closed bound, which is larger: by a quarter at an epsilon of 1e-5 each and a delta of 1e-6.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of each; finite, at least 0.
    count : int
        Number of releases ``k``; at least 1. Time and memory grow with its root up to 10**9, and no further.
    delta : float
        Slack, in [0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The worst case is ``k``-fold randomized response, for which ``delta(E) = sum_l max(0, a_l - exp(E) b_l)``
    with ``a_l = C(k,l) e^((k-l) e0) / (1+e^e0)^k`` and ``b_l = C(k,l) e^(l e0) / (1+e^e0)^k``. As ``a_l /
    b_l`` falls with ``l``, the sum is the maximum over ``j`` of ``A_j - exp(E) B_j`` with partial sums ``A_j,
    B_j``, so that the inverse is in closed form, ``E = max_j ln(1 + (A_j - B_j - delta) / B_j)``: no bisection, and
    exact between the lattice points ``(k-2l) e0`` of the theorem. ``A_j - B_j`` is a sum of positive terms, so that
    nothing cancels where `epsilon` is small.

    The closed bound is ``k e0 tanh(e0/2) + e0 sqrt(2 k ln(1/delta))`` of Theorem 3.4, or ``k e0`` if that is less.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorems 3.3 and 3.4.

    Examples
    --------
    >>> round(optimal_composition(epsilon=0.0119, count=400, delta=1e-6), 3)
    1.002
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    whole = _whole(epsilon, count)
    if delta == 0 or epsilon == 0:
        return whole
    if count > MOST_RELEASES:
        spread = epsilon * math.sqrt(-2 * count * math.log(delta))
        return min(whole, (whole * math.tanh(epsilon / 2) + spread) * (1 + _ROUNDING))
    log_a, loss, error = _terms(epsilon, count, _NEGLIGIBLE - math.log(delta) - math.log1p(-delta))
    log_sum_b = np.logaddexp.accumulate(log_a - loss) - error
    log_more = np.logaddexp.accumulate(log_a + np.log(-np.expm1(-loss))) + error  # of A_j - B_j
    log_delta = math.log(delta) * (1 + _ROUNDING)
    reached = log_more > log_delta
    if not reached.any():
        return 0.0
    kept = log_more[reached]
    log_excess = kept + np.log(-np.expm1(log_delta - kept))
    log_found = float(np.max(log_excess - log_sum_b[reached]))  # of exp(E) - 1
    found = float(np.logaddexp(0.0, log_found)) * (1 + _ROUNDING * (1 + max(0.0, -log_found)))
    return min(whole, max(found, 5e-324))


@np.errstate(over="ignore")  # what is beyond all floats is infinite
def optimal_delta(*, total: float, epsilon: float, count: int) -> float:
    """Delta of `count` releases at an epsilon, the smallest that is true.

    `count` adaptive `epsilon`-differentially private releases are together (`total`, result)-differentially private,
    and some are no better (up to floating-point rounding). Beyond 10**9 releases it is a closed bound.

    Parameters
    ----------
    total : float
        Privacy parameter of all together; finite, at least 0.
    epsilon : float
        Privacy parameter of each; finite, at least 0.
    count : int
        Number of releases; at least 1. Time and memory grow with its root up to 10**9, and no further.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The sum of the notes of `optimal_composition`, term by term: no term is negative. The closed bound is Hoeffding's,
    for losses between ``-e0`` and ``e0`` of mean at most ``e0 tanh(e0/2)``.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> round(optimal_delta(total=0.5, epsilon=0.5, count=2), 4)
    0.1525
    """
    _check(epsilon=epsilon, count=count, delta=0.0)
    if not (math.isfinite(total) and total >= 0):
        raise InputError(f"total is finite and at least 0; got {total}")
    if count > MOST_RELEASES:
        beyond = total / epsilon - count * math.tanh(epsilon / 2) if epsilon else math.inf
        return math.exp(-beyond * (beyond / count) / 2) if beyond > 0 else 1.0
    log_a, loss, _ = _terms(epsilon, count, _FARTHEST)
    above = loss > total
    return float(np.exp(log_a[above]) @ -np.expm1(total - loss[above]))


def _terms(
    epsilon: float, count: int, farthest: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """Logs of the ``a_l`` with ``l < k/2`` that matter, their losses, and how far off logs of their sums may be.

    Those left out sum to at most ``exp(-farthest)`` on each side, by Hoeffding's inequality for ``k - 2l``.
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
    return even + tilt, loss, _ROUNDING * (8 + largest + len(ahead))


def optimal_epsilon_each(*, epsilon: float, count: int, delta: float) -> float:
    """Largest epsilon that each of `count` releases may have.

    `count` adaptive releases with the result as their privacy parameter are together
    (`epsilon`, `delta`)-differentially private; the result is rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of all together; finite, above 0.
    count : int
        Number of releases; at least 1.
    delta : float
        Slack, in [0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Bisection on `optimal_composition`, which increases with epsilon.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> round(optimal_epsilon_each(epsilon=1.0, count=100, delta=1e-6), 4)
    0.024
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    if epsilon == 0:
        raise InputError("epsilon of all together is above 0; got 0")
    low = even_share(epsilon, count)
    if delta == 0:
        return low
    high = max(low, even_share(delta, count), 5e-324)  # above 0 where the share is too small for a float

    def affordable(each: float) -> bool:
        return optimal_composition(epsilon=each, count=count, delta=delta) <= epsilon

    while affordable(high):
        low, high = high, high + high
    return largest_between(affordable, low, high)
