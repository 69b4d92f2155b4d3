"""The joint cost of several differentially private releases, by basic, advanced and optimal composition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bisection import largest_between
from reusable_holdout.noise.composition import (
    LARGEST_EXPONENT,
    ROUNDING,
    composed_epsilon,
    float_of,
    terms_of,
    whole_epsilon,
)

MOST_RELEASES = 10**9  # up to here about a million terms of the sum matter; beyond, a closed bound is used
_FARTHEST = 800.0  # the terms that are left out of a sum add up to at most exp(-_FARTHEST) on each side


def check_composed(*, epsilon: float, count: int, delta: float) -> None:
    """Refuse parameters of a composition that are out of range."""
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
    if count < 1:
        raise InputError(f"count is at least 1; got {count}")
    if not 0 <= delta < 1:
        raise InputError(f"delta lies in [0, 1); got {delta}")


def even_share(epsilon: float, count: int) -> float:
    """Return the largest float whose exact product with `count` is at most epsilon."""
    share = epsilon / count
    return share if Fraction(share) * count <= Fraction(epsilon) else math.nextafter(share, 0.0)


def basic_composition(epsilons: Iterable[float | Fraction]) -> float:
    """Compute the epsilon of several releases by basic composition: the sum of their epsilons.

    Releases that are each ``e_i``-differentially private are together ``sum e_i``-differentially private, however
    adaptively they were chosen.

    Parameters
    ----------
    epsilons : Iterable[float | Fraction]
        The epsilons, each finite and at least 0. A float stands for its shortest decimal, so that 50 times 0.02 is 1.

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
    """Compute the epsilon of `count` releases by advanced composition.

    `count` adaptive `epsilon`-differentially private releases are together (result, `delta`)-differentially
    private. For few releases the result exceeds `basic_composition`'s; `optimal_composition` is never worse
    than either.

    Parameters
    ----------
    epsilon, count
        As for `optimal_composition`, with the same errors.
    delta : float
        Delta of all releases together, in (0, 1).

    Notes
    -----
    The result is ``e sqrt(2 k ln(1/d)) + k e (exp(e) - 1)``, with ``e`` epsilon and ``d`` delta.

    References
    ----------
    .. [1] Dwork, Rothblum and Vadhan (2010), "Boosting and differential privacy", Theorem III.3.

    Examples
    --------
    >>> round(advanced_composition(epsilon=0.01, count=400, delta=1e-6), 4)
    1.0915
    """
    check_composed(epsilon=epsilon, count=count, delta=delta)
    if delta == 0:
        raise InputError("advanced composition needs delta above 0; got 0; use basic_composition")
    growth = math.expm1(epsilon) if epsilon < LARGEST_EXPONENT else math.inf
    return epsilon * math.sqrt(-2 * count * math.log(delta)) + count * epsilon * growth


@np.errstate(over="ignore")  # a sum beyond all floats is infinite
def optimal_delta(*, total: float, epsilon: float, count: int) -> float:
    """Compute the smallest delta that `count` releases together are guaranteed to have at an epsilon.

    `count` adaptive `epsilon`-differentially private releases are together (`total`, result)-differentially private.
    For some releases no smaller delta is true, up to floating-point rounding. Beyond 10**9 releases the result is a
    closed bound, which is larger.

    Parameters
    ----------
    total : float
        Privacy parameter of all releases together; finite, at least 0.
    epsilon, count
        As for `optimal_composition`, with the same errors.

    Notes
    -----
    The result is the sum ``delta(E)`` in the notes of `optimal_composition`; no term of it is negative. The closed
    bound is Hoeffding's, for privacy losses between ``-e0`` and ``e0`` with mean at most ``e0 tanh(e0/2)``, where
    ``e0`` is the epsilon of each release.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> round(optimal_delta(total=0.5, epsilon=0.5, count=2), 4)
    0.1525
    """
    check_composed(epsilon=epsilon, count=count, delta=0.0)
    if not (math.isfinite(total) and total >= 0):
        raise InputError(f"total is finite and at least 0; got {total}")
    if count > MOST_RELEASES:
        beyond = total / epsilon - count * math.tanh(epsilon / 2) if epsilon else math.inf
        return math.exp(-beyond * (beyond / count) / 2) if beyond > 0 else 1.0
    log_a, loss, _ = terms_of(epsilon, count, _FARTHEST)
    above = loss > total
    return float(np.exp(log_a[above]) @ -np.expm1(total - loss[above]))


def optimal_composition(*, epsilon: float, count: int, delta: float) -> float:
    """Compute the smallest epsilon that `count` releases together are guaranteed to have at a delta.

    `count` adaptive `epsilon`-differentially private releases are together (result, `delta`)-differentially private.
    For some releases no smaller epsilon is true: the result is rounded up by little more than floating-point rounding.
    Beyond 10**9 releases the result is a closed bound, which is larger: by a quarter at an epsilon of 1e-5 each and a
    delta of 1e-6.

    Parameters
    ----------
    epsilon : float
        Privacy parameter ``e0`` of each release; finite, at least 0.
    count : int
        Number of releases ``k``; at least 1. Time and memory grow with its square root up to 10**9, and no further.
    delta : float
        Delta of all releases together, in [0, 1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The closed bound is ``k e0 tanh(e0/2) + e0 sqrt(2 k ln(1/delta))`` of Theorem 3.4, or ``k e0`` if that is less.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy", Theorems 3.3 and 3.4.

    Examples
    --------
    >>> round(optimal_composition(epsilon=0.0119, count=400, delta=1e-6), 3)
    1.002
    """
    check_composed(epsilon=epsilon, count=count, delta=delta)
    if count <= MOST_RELEASES or delta == 0 or epsilon == 0:
        return composed_epsilon(epsilon=epsilon, count=count, delta=delta)
    whole, spread = whole_epsilon(epsilon, count), epsilon * math.sqrt(-2 * count * math.log(delta))
    return min(whole, (whole * math.tanh(epsilon / 2) + spread) * (1 + ROUNDING))


def optimal_epsilon_each(*, epsilon: float, count: int, delta: float) -> float:
    """Compute the largest epsilon that each of `count` releases may have.

    `count` adaptive releases with the result as their privacy parameter are together
    (`epsilon`, `delta`)-differentially private; the result is rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of all releases together; finite, above 0.
    count, delta
        As for `optimal_composition`, with the same errors.

    Notes
    -----
    It is found by bisection on `optimal_composition`, which increases with epsilon.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> round(optimal_epsilon_each(epsilon=1.0, count=100, delta=1e-6), 4)
    0.024
    """
    check_composed(epsilon=epsilon, count=count, delta=delta)
    if epsilon == 0:
        raise InputError("the total epsilon is above 0; got 0")
    low = even_share(epsilon, count)
    if delta == 0:
        return low
    high = max(low, even_share(delta, count), 5e-324)  # above 0 where the share is too small for a float

    def affordable(each: float) -> bool:
        return optimal_composition(epsilon=each, count=count, delta=delta) <= epsilon

    while affordable(high):
        low, high = high, high + high
    return largest_between(affordable, low, high)
