"""Target charging: the privacy cost of an interaction that pays only for the answers that hit a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.composition import optimal_composition, optimal_delta
from reusable_holdout.mechanisms.accounting.passages import first_reached, passage_delta, passage_epsilon
from reusable_holdout.mechanisms.accounting.targets import not_prior_mean, not_prior_q

_ROUND_UP = 1 + 1e-9  # pays for the rounding of a binomial tail and of an optimal composition
_BRACKET = 0.1  # first step towards the log epsilon of one call
_PRECISION = 1e-10  # largest error of this log at the end
_LARGE = 0.05  # epsilon of one call above which counting few calls may be the better bound
_MOST_CALLS = 5000
_AROUND = (
    7  # numbers of calls on both sides of the one where both parts are equal; odd ones are a little worse
)
_BISECTIONS = 40
_FARTHEST = 690.0  # log of an epsilon of one call, and of its inverse, that no interaction needs
_LEAST_EACH = 1e-299  # smallest epsilon that a search starts from
_LEAST_DELTA = 1e-320  # counts in place of a delta that is 0 as a float
_MOST_CHARGES = 10**9
_MOST_MOVES = 10**12  # charges over the mean chance of one; with more, the tail takes too long


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"target charging needs a delta in (0, 1); got {delta}")


def check_charging(*, epsilon: float, charges: int, q: float, mean: float | None) -> None:
    """Refuse the parameters that :func:`target_charging_delta` refuses for every `total`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    _check(epsilon=epsilon, charges=charges, targets=1)
    _mean(q, mean, charges)


def _check(*, epsilon: float, charges: int, targets: int) -> None:
    """Refuse parameters of calls that are out of range."""
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if not 1 <= charges <= _MOST_CHARGES:
        raise InputError(f"charges is at least 1, and at most {_MOST_CHARGES:,}; got {charges}")
    if targets < 1:
        raise InputError(f"targets is at least 1; got {targets}")


@dataclass(frozen=True, slots=True)
class TargetChargingBound:
    """The privacy cost of an interaction with target charging: it is (`epsilon`, `delta`)-differentially private.

    Attributes
    ----------
    epsilon, delta : float
        Privacy parameters of the whole interaction.

    Examples
    --------
    >>> target_charging(epsilon=0.5, charges=1, delta=0.25, q=1.0)
    TargetChargingBound(epsilon=0.0, delta=0.25)
    """

    epsilon: float
    delta: float


def target_charging(
    *, epsilon: float, charges: int, delta: float, q: float, mean: float | None = None, targets: int = 1
) -> TargetChargingBound:
    """Bound the cost of an interaction that stops when targets have been hit `charges` times.

    Any number of adaptively chosen calls, each epsilon-differentially private with a q-target, are together
    (result.epsilon, result.delta)-differentially private. For one NotPrior target, with `not_prior_mean`, there are
    interactions for which no smaller bound is true.

    Parameters
    ----------
    epsilon : float
        Largest privacy parameter of a call; finite, above 0.
    charges : int
        Number of target hits after which no further call is made; at least 1, at most 10**9, and at most 10**12 times
        `mean`. The running time hardly depends on it.
    delta : float
        Delta of the whole interaction, in (0, 1).
    q : float
        Smallest probability of a hit in any call, given that the call reads the data; in (0, 1].
    mean : float, optional
        Smallest mean of this probability over two neighbouring data sets, if it is known to be larger than `q`. It is
        1/2 for a NotPrior target (`not_prior_mean`).
    targets : int
        Number of targets that each call names. The interaction stops when each of them has been hit `charges` times.
        The delta of one target is multiplied by this number.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The epsilon is the smallest one whose `target_charging_delta` is at most `delta`.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma 2.2, Theorem B.4; Lemma 2.7 for several targets.

    Examples
    --------
    >>> round(target_charging(epsilon=0.01, charges=100, delta=1e-6, q=not_prior_q(0.01)).epsilon, 3)
    0.673
    """
    _check(epsilon=epsilon, charges=charges, targets=targets)
    _check_delta(delta)
    least = _mean(q, mean, charges)
    share = delta / targets
    if q == 1:
        composed = optimal_composition(epsilon=epsilon, count=charges, delta=share) * _ROUND_UP
        return TargetChargingBound(min(charges * epsilon, composed), delta)
    total = passage_epsilon(each=epsilon, delta=share, charges=charges, mean=least)
    if _few_calls(epsilon, charges, q, mean):
        low, high = 0.0, total
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            by_calls = _delta_by_calls(total=middle, epsilon=epsilon, charges=charges, q=q)
            low, high = (low, middle) if by_calls <= share else (middle, high)
        total = high
    return TargetChargingBound(total, delta)


def target_charging_delta(
    *, total: float, epsilon: float, charges: int, q: float, mean: float | None = None, targets: int = 1
) -> float:
    """Compute the delta at an epsilon of an interaction that stops when targets have been hit `charges` times.

    An interaction as in `target_charging` is (`total`, result)-differentially private.

    Parameters
    ----------
    total : float
        Privacy parameter of the whole interaction; finite, at least 0.
    epsilon : float
        Privacy parameter of one call; finite, above 0.
    charges, q, mean, targets
        As in `target_charging`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    The result is the best adversary's delta, in closed form; `passage_delta` has the derivation. It depends on the mean
    probability of a hit. If only the smallest probability q is known, the true delta is smaller than the result: at
    delta 1e-6, epsilon 1 and the q of NotPrior by at most 13% for 1 charge, and 3% for 1,000 (docs/accounting.md). For
    several targets the delta of one target is multiplied by their number; this union bound is not tight.

    If epsilon is large and only q is known, a second bound is computed as in the source: the probability that more than
    ``m`` calls read the data before the last charge, plus the delta of ``m`` calls, at the best ``m``. The smaller
    bound is returned.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Theorem B.4.
    .. [2] Kairouz, Oh and Viswanath (2015), Theorem 3.3.

    Examples
    --------
    >>> wish = {"epsilon": 0.0144, "charges": 100, "q": not_prior_q(0.0144), "mean": not_prior_mean(0.0144)}
    >>> target_charging_delta(total=1.0, **wish) < 1e-6
    True
    """
    _check(epsilon=epsilon, charges=charges, targets=targets)
    least = _mean(q, mean, charges)
    if not (math.isfinite(total) and total >= 0):
        raise InputError(f"total is finite and at least 0; got {total}")
    if q == 1:
        one = optimal_delta(total=total, epsilon=epsilon, count=charges) * _ROUND_UP
    else:
        one = passage_delta(each=epsilon, epsilon=total, charges=charges, mean=least)
    if _few_calls(epsilon, charges, q, mean):
        one = min(one, _delta_by_calls(total=total, epsilon=epsilon, charges=charges, q=q))
    return min(1.0, targets * one)


def _mean(q: float, mean: float | None, charges: int) -> float:
    """Return the mean probability of a hit, which is q if only q is known; refuse values that are out of range."""
    if not 0 < q <= 1:
        raise InputError(f"q lies in (0, 1]; got {q}")
    found = q if mean is None else mean
    if not q <= found <= 1:
        raise InputError(f"the mean chance is at least the smallest chance, {q}, and at most 1; got {found}")
    if charges > _MOST_MOVES * found:
        raise InputError(
            f"charges divided by the mean chance {found} is at most {_MOST_MOVES:,}; got {charges} charges"
        )
    return found


def _few_calls(epsilon: float, charges: int, q: float, mean: float | None) -> bool:
    """Return True if the bound by the number of calls may be the smaller one, and is fast to compute."""
    return mean is None and (epsilon > _LARGE or q > 0.5) and charges / q < _MOST_CALLS


def _delta_by_calls(*, total: float, epsilon: float, charges: int, q: float) -> float:
    """Compute the delta of ``m`` calls plus the probability of more calls, at the best ``m``."""

    def parts(calls: int) -> tuple[float, float]:
        miss = float(special.betainc(calls - charges + 1, charges, 1 - q))
        return miss, optimal_delta(total=total, epsilon=epsilon, count=calls)

    def enough(calls: int) -> bool:
        miss, delta = parts(calls)
        return miss <= delta

    equal = charges + first_reached(lambda further: enough(charges + further), charges)
    around = range(max(charges, equal - _AROUND), equal + _AROUND)
    return min(sum(parts(calls)) for calls in around) * _ROUND_UP


def target_charging_epsilon_each(
    *,
    epsilon: float,
    delta: float,
    charges: int,
    q: Callable[[float], float],
    mean: Callable[[float], float] | None = None,
    targets: int = 1,
) -> float:
    """Compute the largest epsilon that each call of an interaction with target charging may have.

    Any number of calls with the result as their privacy parameter, stopped after `charges` target hits, are together
    (`epsilon`, `delta`)-differentially private; the result is rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole interaction; epsilon finite and above 0, delta in (0, 1).
    charges : int
        Number of target hits after which no further call is made; at least 1.
    q : Callable[[float], float]
        Takes the epsilon of one call and returns the smallest probability of a hit, e.g. `not_prior_q`.
    mean : Callable[[float], float], optional
        Takes the epsilon of one call and returns the smallest mean of this probability over two neighbouring data sets,
        if it is known to be larger than q, e.g. `not_prior_mean`.
    targets : int
        Number of targets that each call names; at least 1.

    Raises
    ------
    InputError
        If a parameter is out of range, or no epsilon of one call is small enough.

    Notes
    -----
    It is found as a root of `target_charging_delta`, and then checked: its delta is at most `delta`.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Theorem B.4.

    Examples
    --------
    >>> round(target_charging_epsilon_each(epsilon=1.0, delta=1e-6, charges=100, q=not_prior_q), 4)
    0.0144
    """
    _check(epsilon=epsilon, charges=charges, targets=targets)
    _check_delta(delta)

    def excess(log_each: float) -> float:
        if abs(log_each) > _FARTHEST:
            raise InputError(
                f"no epsilon of one call between 1e-300 and 1e300 makes {charges} charges cost epsilon {epsilon} and "
                f"delta {delta}; use fewer charges, or an epsilon and a delta less extreme"
            )
        each = math.exp(log_each)
        chance = q(each)
        if chance == 0:  # as a float: a call of such an epsilon tells everything
            return -math.log(delta)
        found = target_charging_delta(
            total=epsilon,
            epsilon=each,
            charges=charges,
            q=chance,
            mean=None if mean is None else mean(each),
            targets=targets,
        )
        return math.log(max(found, _LEAST_DELTA) / delta)

    low = _start(epsilon, delta, charges)
    step = _BRACKET
    while excess(low) > 0:
        low -= step
        step += step
    step = _BRACKET
    high = low + step
    while excess(high) <= 0:
        step += step
        low, high = high, high + step
    root = float(optimize.brentq(excess, low, high, xtol=_PRECISION, rtol=_PRECISION))
    while excess(root) > 0:
        root -= _PRECISION
    return math.exp(root)


def not_prior_epsilon_each(*, epsilon: float, delta: float, charges: int) -> float:
    """Compute the largest epsilon that each call of an interaction with target charging may have for NotPrior targets.

    Parameters
    ----------
    epsilon, delta, charges
        As in `target_charging_epsilon_each`.
    """
    return target_charging_epsilon_each(
        epsilon=epsilon, delta=delta, charges=charges, q=not_prior_q, mean=not_prior_mean
    )


def _start(epsilon: float, delta: float, charges: int) -> float:
    """Return the log of an epsilon of one call to start a search from, as if losses were normally distributed."""
    log = -math.log(delta)
    deviation = math.sqrt(log + epsilon) - math.sqrt(log) or epsilon / (2 * math.sqrt(log))
    return math.log(max(deviation / math.sqrt(charges), _LEAST_EACH))
