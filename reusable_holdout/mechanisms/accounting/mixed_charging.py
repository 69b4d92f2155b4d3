"""Target charging for calls with different epsilons and targets: a hit weighs its call's epsilon divided by its q."""

from __future__ import annotations

import math
from collections.abc import Callable

from reusable_holdout.deferred import optimize
from reusable_holdout.errors import InputError

_ROUND_UP = 1 + 1e-9  # pays for a few floating-point operations
_FARTHEST = 40  # in log t, below the inverse of the largest weight: the bound still falls there
_LEAST, _LARGEST = 1e-100, 1e100  # weights and epsilons whose products and quotients are numbers
_LEAST_Q, _LEAST_DELTA = 1e-100, 1e-300


def mixed_charging_epsilon(
    *, weight: float, delta: float, largest_epsilon: float, smallest_q: float
) -> float:
    """Compute the epsilon of an interaction whose target hits together weigh at most a given weight.

    Let call i be ``e_i``-differentially private with a ``q_i``-target, and let a hit of it weigh ``e_i / q_i``. Calls
    are chosen adaptively, and no call is run whose hit could bring the total weight of hits above `weight`. Then all
    calls together are (result, delta)-differentially private.

    Parameters
    ----------
    weight : float
        Bound ``W`` of the sum of ``e_i / q_i`` over all hits; finite, > 0.
    delta : float
        Delta of the whole interaction, in (0, 1).
    largest_epsilon : float
        No call has a larger ``e_i``; finite, > 0.
    smallest_q : float
        No call has a smaller ``q_i``; in (0, 1].

    Returns
    -------
    float
        The epsilon, rounded up.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``e`` be the largest epsilon, ``q`` the smallest q, ``w = e/q`` the largest weight of one hit, and for any
    ``t > 0`` let ``l = -ln(1 - q (1 - exp(-t w))) / (q w)``. For every call that reads the data, ``exp(l e_i) (1 - q_i
    + q_i exp(-t e_i/q_i)) <= 1``, because ``-ln(1 - q (1 - exp(-x)))`` is concave in x and 0 at 0, and divided by q it
    increases with q. Let ``A`` be the sum of ``e_i`` over the calls that read the data, and ``B`` the sum of
    ``e_i/q_i`` over the hits. Then ``exp(l A - t B)`` is a supermartingale. As ``B <= W`` at all times, Ville's
    inequality says that ``A`` ever exceeds ``E = (ln(1/d) + t W) / l`` with probability at most d. Otherwise the
    interaction is an adaptive composition of calls whose epsilons add up to at most E. Basic composition with
    ``d = delta`` gives the epsilon E. Alternatively ``d = delta/2``: the calls are ``e_i**2 / 2``-zero-concentrated,
    together at most ``r = E largest_epsilon / 2``, which gives the epsilon ``r + 2 sqrt(r ln(2/delta))``. The result is
    the smaller of the two, each at the best t.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Remark B.6 and the proof of Theorem B.4.
    .. [2] Bun and Steinke (2016), "Concentrated differential privacy", Propositions 1.3 and 1.4.
    .. [3] Feldman and Zrnic (2021), "Individual privacy accounting via a Renyi filter", Theorem 4.3.

    Examples
    --------
    >>> round(mixed_charging_epsilon(weight=4.0, delta=1e-6, largest_epsilon=0.02, smallest_q=0.49), 3)
    1.903
    """
    _check(delta=delta, largest_epsilon=largest_epsilon, smallest_q=smallest_q)
    if not _LEAST <= weight <= _LARGEST:
        raise InputError(f"a weight is finite and above 0, from {_LEAST:g} to {_LARGEST:g}; got {weight}")

    def most(slack: float) -> float:
        """Bound the sum of the epsilons of calls that read the data; it fails with probability exp(-`slack`)."""

        def bound(log_t: float) -> float:
            t = math.exp(log_t)
            return (slack + t * weight) / _pace(t, largest_epsilon, smallest_q)

        return _least(bound, largest_epsilon / smallest_q)

    concentrated = most(math.log(2 / delta)) * largest_epsilon / 2
    both = concentrated + 2 * math.sqrt(concentrated * math.log(2 / delta))
    return min(most(-math.log(delta)), both) * _ROUND_UP


def mixed_charging_weight(
    *, epsilon: float, delta: float, largest_epsilon: float, smallest_q: float
) -> float:
    """Compute the largest total weight that the target hits of an interaction may have.

    An interaction as in `mixed_charging_epsilon` with the result as its weight is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole interaction; epsilon finite and above 0, delta in (0, 1).
    largest_epsilon, smallest_q
        As for `mixed_charging_epsilon`, with the same errors.

    Returns
    -------
    float
        The weight, rounded down; at most 0 if the budget is too small for any call.

    Notes
    -----
    It is the formula of `mixed_charging_epsilon`, solved for the weight.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Remark B.6.

    Examples
    --------
    >>> round(mixed_charging_weight(epsilon=1.0, delta=1e-6, largest_epsilon=0.02, smallest_q=0.49), 3)
    0.697
    """
    _check(delta=delta, largest_epsilon=largest_epsilon, smallest_q=smallest_q)
    if not _LEAST <= epsilon <= _LARGEST:
        raise InputError(f"epsilon is finite and above 0, from {_LEAST:g} to {_LARGEST:g}; got {epsilon}")

    def affordable(total: float, slack: float) -> float:
        def bound(log_t: float) -> float:
            t = math.exp(log_t)
            return -(_pace(t, largest_epsilon, smallest_q) * total - slack) / t

        return -_least(bound, largest_epsilon / smallest_q)

    log_half = math.log(2 / delta)
    # r + 2 sqrt(r ln(2/delta)) = epsilon, written so that a small epsilon cancels nothing
    concentrated = (epsilon / (math.sqrt(log_half + epsilon) + math.sqrt(log_half))) ** 2
    both = affordable(2 * concentrated / largest_epsilon, log_half)
    return max(affordable(epsilon, -math.log(delta)), both) / _ROUND_UP


def _pace(t: float, largest_epsilon: float, smallest_q: float) -> float:
    """Compute ``l``, as defined in the notes of `mixed_charging_epsilon`, at one ``t``."""
    return -math.log1p(smallest_q * math.expm1(-t * largest_epsilon / smallest_q)) / largest_epsilon


def _least(bound: Callable[[float], float], heaviest: float) -> float:
    """Return the smallest value of a bound over log t; the bound is valid at every t."""
    scale = -math.log(heaviest)
    bounds = (scale - _FARTHEST, scale + 3)  # the bound falls before the first and rises after the second
    found = optimize.minimize_scalar(bound, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return float(found.fun)


def _check(*, delta: float, largest_epsilon: float, smallest_q: float) -> None:
    if not _LEAST_DELTA <= delta < 1:
        raise InputError(
            f"target charging needs a delta in (0, 1), of at least {_LEAST_DELTA:g}; got {delta}"
        )
    if not _LEAST <= largest_epsilon <= _LARGEST:
        raise InputError(
            f"the largest epsilon is finite and above 0, from {_LEAST:g} to {_LARGEST:g}; got {largest_epsilon}"
        )
    if not _LEAST_Q <= smallest_q <= 1:
        raise InputError(f"q lies in (0, 1], and is at least {_LEAST_Q:g}; got {smallest_q}")
