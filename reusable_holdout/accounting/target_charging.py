"""Target charging: what an interaction costs that pays only for the answers that hit a target."""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from reusable_holdout.accounting.composition import optimal_composition
from reusable_holdout.accounting.targets import (
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_q,
)
from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Composition",
    "TargetChargingBound",
    "between_thresholds_q",
    "boundary_epsilon",
    "boundary_q",
    "boundary_wrapped_epsilon",
    "differing_runs_q",
    "not_prior_q",
    "target_charging",
    "target_charging_epsilon_each",
]

Composition: TypeAlias = Literal["basic", "optimal"]

_ROUND_UP = 1 + 1e-9  # pays for the rounding of a binomial tail and of an optimal composition
_MOST_CALLS = 2**20  # time and memory of the optimal composition grow with the calls
_SCANNED = 20  # numbers of calls that are all tried in the end
_BRACKET = 0.4  # first steps towards the epsilon of one call, and
_PRECISION = 1e-10  # how far from the largest it may end, both in log epsilon


def _check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")


@dataclass(frozen=True, slots=True)
class TargetChargingBound:
    """What an interaction with target charging costs.

    The interaction is (`epsilon`, `delta`)-differentially private.

    Attributes
    ----------
    epsilon, delta : float
        Privacy parameters of the whole interaction.
    calls : int
        Largest number ``m`` of calls that read the data, except with probability `failure`.
    failure : float
        Chance, rounded up, that ``m`` such calls hit the target fewer than `charges` times; part of `delta`.

    Examples
    --------
    >>> bound = target_charging(epsilon=0.01, charges=1, delta=0.1, q=0.5, composition="basic")
    >>> bound.calls, bound.failure <= bound.delta
    (4, True)
    """

    epsilon: float
    delta: float
    calls: int
    failure: float


def _miss(calls: int, charges: int, q: float) -> float:
    """Bound from above the chance that `calls` trials of probability `q` succeed fewer than `charges` times."""
    return min(1.0, float(special.bdtr(charges - 1, calls, q)) * _ROUND_UP)


def _fewest_calls(*, charges: int, q: float, failure: float) -> int:
    """Smallest number of calls whose miss is at most `failure`."""
    asked = range(charges, _MOST_CALLS)
    found = bisect.bisect_left(asked, -failure, key=lambda calls: -_miss(calls, charges, q))
    if found == len(asked):
        raise InputError(
            f"an interaction has less than {_MOST_CALLS} calls that read the data; {charges} charges with q {q} may "
            f"take more; use fewer charges, a target with a larger q, or a larger delta"
        )
    return asked[found]


def _composed(*, epsilon: float, calls: int, slack: float) -> float:
    """Epsilon of `calls` calls at `slack`, never more than their sum."""
    return min(calls * epsilon, optimal_composition(epsilon=epsilon, count=calls, delta=slack) * _ROUND_UP)


def _best_calls(*, epsilon: float, charges: int, share: float, q: float) -> int:
    """Number of calls at which the total is smallest; `share` of delta pays for miss and composition together."""

    @functools.cache
    def total(calls: int) -> float:
        slack = share - _miss(calls, charges, q)
        return _composed(epsilon=epsilon, calls=calls, slack=slack) if slack >= 0 else math.inf

    low = _fewest_calls(charges=charges, q=q, failure=share)
    high = _fewest_calls(charges=charges, q=q, failure=share * 1e-4)
    while high - low > _SCANNED:  # the total falls while the miss is most of delta, then rises with the calls
        first = low + (high - low) * 2 // 5
        second = first + (high - low) // 10 * 2  # equal parity: odd numbers of calls compose a little worse
        low, high = (low, second) if total(first) <= total(second) else (first, high)
    return min(range(low, high + 1), key=total)


def _check_interaction(*, charges: int, delta: float, targets: int, composition: Composition) -> None:
    if charges < 1:
        raise InputError(f"charges is at least 1; got {charges}")
    if not 0 < delta < 1:
        raise InputError(f"target charging needs a delta in (0, 1); got {delta}")
    if targets < 1:
        raise InputError(f"targets is at least 1; got {targets}")
    if composition not in ("basic", "optimal"):
        raise InputError(f"composition is 'basic' or 'optimal'; got {composition!r}")


def target_charging(
    *,
    epsilon: float,
    charges: int,
    delta: float,
    q: float,
    targets: int = 1,
    composition: Composition = "optimal",
) -> TargetChargingBound:
    """Bound the cost of an interaction that stops when targets have been hit `charges` times.

    Any number of adaptively chosen calls, each epsilon-differentially private with a q-target, are together
    (result's epsilon, result's delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of one call, the largest of all; finite, above 0.
    charges : int
        Target hits ``tau`` after which nothing more is called; at least 1.
    delta : float
        Slack for the whole interaction, in (0, 1).
    q : float
        Least chance of a hit once the data have been read, the smallest of all calls; in (0, 1].
    targets : int
        Number ``k`` of targets that each call names. The interaction stops when the least hit of them has been hit
        `charges` times; delta multiplies by it.
    composition : {"basic", "optimal"}
        How the calls that read the data compose.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    ``m`` calls of which fewer than ``tau`` hit have probability at most ``delta* = Pr[Binomial(m, q) < tau]``; unless
    that happens the interaction is a composition of ``m`` calls. So delta is ``k (delta* + delta of the
    composition)``, with ``m`` chosen so that epsilon is smallest. The source's ``m`` is ``floor((1+alpha) tau / q)``
    and its ``delta*`` the Chernoff bound ``exp(-alpha^2 tau / (2 (1+alpha)))``; the exact tail is never larger.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma 2.2, Theorem B.4; Lemma 2.7 for several targets.
    .. [2] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> bound = target_charging(epsilon=0.01, charges=100, delta=1e-6, q=not_prior_q(0.01))
    >>> bound.calls, round(bound.epsilon, 3)
    (288, 0.699)
    """
    _check_epsilon(epsilon)
    _check_interaction(charges=charges, delta=delta, targets=targets, composition=composition)
    if not 0 < q <= 1:
        raise InputError(f"q lies in (0, 1]; got {q}")
    share = delta / targets
    if composition == "basic":
        calls = _fewest_calls(charges=charges, q=q, failure=share)
        failure = _miss(calls, charges, q)
        return TargetChargingBound(calls * epsilon, targets * failure, calls, failure)
    calls = _best_calls(epsilon=epsilon, charges=charges, share=share, q=q)
    failure = _miss(calls, charges, q)
    return TargetChargingBound(
        _composed(epsilon=epsilon, calls=calls, slack=share - failure), delta, calls, failure
    )


def target_charging_epsilon_each(
    *,
    epsilon: float,
    delta: float,
    charges: int,
    q: Callable[[float], float],
    targets: int = 1,
    composition: Composition = "optimal",
) -> float:
    """Largest epsilon that each call of an interaction with target charging may have.

    Any number of calls with the result as their privacy parameter, stopped after `charges` target hits, are together
    (`epsilon`, `delta`)-differentially private; the result is rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole interaction; epsilon finite and above 0, delta in (0, 1).
    charges : int
        Target hits after which nothing more is called; at least 1.
    q : Callable[[float], float]
        Least chance of a hit, given the epsilon of one call, e.g. `not_prior_q`.
    targets : int
        Number of targets that each call names; at least 1.
    composition : {"basic", "optimal"}
        How the calls that read the data compose.

    Raises
    ------
    InputError
        If a parameter is out of range, or no epsilon of one call is small enough.

    Notes
    -----
    A root of `target_charging`. What is returned has been checked: its total is at most `epsilon`.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Theorem B.4.

    Examples
    --------
    >>> round(target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=100, q=not_prior_q), 4)
    0.0139
    """
    _check_epsilon(epsilon)
    _check_interaction(charges=charges, delta=delta, targets=targets, composition=composition)

    def excess(log_each: float) -> float:
        each = math.exp(log_each)
        bound = target_charging(
            epsilon=each, charges=charges, delta=delta, q=q(each), targets=targets, composition=composition
        )
        return bound.epsilon / epsilon - 1

    start = math.log(min(1.0, epsilon / (4 * charges)))
    low = start
    while excess(low) > 0:
        low -= _BRACKET
    high = low + _BRACKET
    while excess(high) <= 0:
        low, high = high, high + _BRACKET
    root = float(optimize.brentq(excess, low, high, xtol=_PRECISION, rtol=_PRECISION))
    while excess(root) > 0:  # the total jumps where the number of calls does
        root -= _PRECISION
    return math.exp(root)
