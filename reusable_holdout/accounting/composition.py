"""What several differentially private releases cost together, from the crudest bound to the exact one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.accounting.bisection import largest_between
from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "advanced_composition",
    "basic_composition",
    "optimal_composition",
    "optimal_delta",
    "optimal_epsilon_each",
]

LARGEST_EXPONENT = 700.0  # exp overflows beyond


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
    private, and some are no better (up to floating-point rounding).

    Parameters
    ----------
    epsilon : float
        Privacy parameter of each; finite, at least 0.
    count : int
        Number of releases ``k``; at least 1. Time and memory grow with it.
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
    B_j``, so that the inverse is in closed form, ``E = max_j ln((A_j - delta) / B_j)``: no bisection, and
    exact between the lattice points ``(k-2l) e0`` of the theorem.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorem 3.3.

    Examples
    --------
    >>> round(optimal_composition(epsilon=0.0119, count=400, delta=1e-6), 3)
    1.002
    """
    _check(epsilon=epsilon, count=count, delta=delta)
    if delta == 0:
        return count * epsilon
    # a_l and b_l cross at l = k/2; from there on a larger j only lowers the quotient.
    ahead = np.arange(count, 0, -2, dtype=np.float64)
    l = (count - ahead) / 2  # noqa: E741 - the theorem's letter
    choose = special.gammaln(count + 1) - special.gammaln(l + 1) - special.gammaln(count - l + 1)
    log_a = choose - l * epsilon - count * math.log1p(math.exp(-epsilon))
    log_b = log_a - ahead * epsilon
    log_sum_a, log_sum_b = np.logaddexp.accumulate(log_a), np.logaddexp.accumulate(log_b)
    reached = log_sum_a > math.log(delta)
    if not reached.any():
        return 0.0
    kept = log_sum_a[reached]
    log_excess = kept + np.log(-np.expm1(math.log(delta) - kept))
    return max(0.0, float(np.max(log_excess - log_sum_b[reached])))


@np.errstate(over="ignore")  # what is beyond all floats is infinite
def optimal_delta(*, total: float, epsilon: float, count: int) -> float:
    """Delta of `count` releases at an epsilon, the smallest that is true.

    `count` adaptive `epsilon`-differentially private releases are together (`total`, result)-differentially private,
    and some are no better (up to floating-point rounding).

    Parameters
    ----------
    total : float
        Privacy parameter of all together; finite, at least 0.
    epsilon : float
        Privacy parameter of each; finite, at least 0.
    count : int
        Number of releases; at least 1. Time and memory grow with it.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The sum of the notes of `optimal_composition`, term by term: no term is negative.

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
    ahead = np.arange(count, 0, -2, dtype=np.float64)
    loss = ahead * epsilon
    kept = (count - ahead[loss > total]) / 2  # l of the theorem
    choose = special.gammaln(count + 1) - special.gammaln(kept + 1) - special.gammaln(count - kept + 1)
    log_a = choose - kept * epsilon - count * math.log1p(math.exp(-epsilon))
    return float(np.exp(log_a) @ -np.expm1(total - loss[: len(kept)]))


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
