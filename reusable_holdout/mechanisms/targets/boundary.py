"""The boundary wrapper: a private choice that is free as long as one outcome dominates, and otherwise may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.noise.discrete_laplace import leading_bits

_DIGITS = 64  # binary digits of the exponential mechanism's weight ratio


def boundary_wrapper(weights: Sequence[int | Fraction], *, seed: int | None = None) -> int | None:
    """Draw from a private algorithm's outcome distribution, or return None for "no outcome dominates".

    If the algorithm is e-differentially private, the call is t-differentially private with ``t = e + ln(3 / (2 +
    exp(-e))) <= 4e/3`` (`boundary_epsilon`). For target charging None is a q-target with ``q = (exp(t) - 1) /
    (2 (exp(e + t) - 1))`` (`boundary_q`). So in an interaction that stops after a number of Nones, only the calls that
    return None are charged.

    Parameters
    ----------
    weights : Sequence[int or Fraction], shape (outcomes,)
        The algorithm's outcome distribution on the private data, up to a positive factor. Floats are refused, because
        they are rounded. `exponential_weights` gives the weights of the exponential mechanism.
    seed : int, optional
        Seed for a reproducible choice, which protects nobody. By default the choice is unpredictable. Give every call
        of a sequence a seed of its own.

    Returns
    -------
    int or None
        Position of the outcome, or None for the boundary.

    Raises
    ------
    InputError
        If there is no weight, one is negative or not exact, or all are 0.

    Notes
    -----
    With ``pi = min(1/2, 1 - largest probability)``, None has probability ``pi / (1 + pi)``, which is at most 1/3. An
    outcome of probability ``p`` gets ``p / (1 + pi)``, which is ``p / (2 - p)`` for a dominant outcome. With integer
    weights ``w`` of sum ``W`` and maximum ``M`` this is one exact draw, with weight ``min(2 (W - M), W)`` for None and
    ``2 w`` for the outcomes.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithm 4, Lemmas 2.8 and 2.9.

    Examples
    --------
    >>> boundary_wrapper([0, 7, 0])
    1
    >>> [boundary_wrapper([1, 1], seed=seed) for seed in range(6)]
    [None, 0, None, None, None, 1]
    """
    whole = _integers(weights)
    total = sum(whole)
    boundary = min(2 * (total - max(whole)), total)
    chosen = _draw([boundary, *(2 * weight for weight in whole)], RandomWords(seed))
    return None if chosen == 0 else chosen - 1


def exponential_weights(scores: Sequence[int], *, epsilon: float, sensitivity: int = 1) -> list[int]:
    """Return the exponential mechanism's weights of outcomes, as exact integers.

    A draw with these weights is epsilon-differentially private: they are powers of one rational number that is at least
    ``exp(-epsilon / (2 sensitivity))``.

    Parameters
    ----------
    scores : Sequence[int], shape (outcomes,)
        Score of each outcome on the private data, such as votes.
    epsilon : float
        Privacy parameter of one draw; finite, > 0.
    sensitivity : int
        Largest change of one score when one row is replaced; at least 1.

    Returns
    -------
    list of int
        Weights, each of at most ``64 (max score - min score) + 1`` binary digits.

    Raises
    ------
    InputError
        If a parameter is out of range or a score is not an integer.

    Notes
    -----
    Outcome ``r`` has weight ``a**(max score - score_r)`` times a common power of two, where ``a`` is ``exp(-e /
    (2 D))`` rounded up at the 64th binary digit: the mechanism is that of a marginally smaller epsilon.

    References
    ----------
    .. [1] McSherry and Talwar (2007), "Mechanism design via differential privacy", Theorem 6.
    .. [2] Ilvento (2020), "Implementing the exponential mechanism with base-2 differential privacy".

    Examples
    --------
    >>> low, high = exponential_weights([3, 4], epsilon=1.0)
    >>> round(high / low, 6)
    1.648721
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    if sensitivity < 1:
        raise InputError(f"sensitivity is at least 1; got {sensitivity}")
    if not len(scores) or not all(isinstance(score, int | np.integer) for score in scores):
        raise InputError("scores are integers, at least one; got none or something else; round them first")
    ratio = _ratio(Fraction(epsilon) / (2 * sensitivity))
    below = [int(max(scores)) - int(score) for score in scores]
    return [ratio**steps << _DIGITS * (max(below) - steps) for steps in below]


def exponential_weights_or_low(votes: Sequence[int], *, threshold: int, epsilon: float) -> list[int]:
    """Return the exponential mechanism's weights of outcomes, and of one more, "low": no outcome has enough votes.

    A draw with these weights is epsilon-differentially private if neighbouring data sets differ by one vote, which
    moves to another outcome, is added or removed. "Low" is almost certain if all outcomes have far fewer votes than the
    threshold. So inside `boundary_wrapper` such a call is free, as is a call on which nearly all voters agree.

    Parameters
    ----------
    votes : Sequence[int], shape (outcomes,)
        Votes for each outcome on the private data.
    threshold : int
        Number of votes. If the outcome with the most votes has at least this number, "low" is less likely than not.
    epsilon : float
        Privacy parameter of one draw; finite, > 0.

    Returns
    -------
    list of int, length outcomes + 1
        Weights of the outcomes and, at the end, of "low". Each has about 64 binary digits for every vote between the
        largest number of votes and the smallest, and between the largest and the threshold.

    Raises
    ------
    InputError
        If a parameter is out of range or a number of votes is not an integer.

    Notes
    -----
    One draw does two private steps, with ``e`` epsilon. First, the largest number of votes, with discrete Laplace noise
    of scale ``2/e``, is compared with the threshold. If it is not below, an outcome ``r`` is chosen by the exponential
    mechanism, with weights ``a**(max votes - votes_r)``. Both steps use the number ``a``, which is ``exp(-e/2)``
    rounded up at the 64th binary digit. So "not below" has the rational probability ``1 - a**(d + 1) / (1 + a)`` if
    the maximum is ``d >= 0`` votes above the threshold, and ``a**d / (1 + a)`` if it is ``d > 0`` votes below.

    The comparison costs nothing more. By composition it would cost ``e/2``. But a vote that raises the maximum goes to
    the foremost outcome. The weight of this outcome then grows by the factor ``1/a``, and the sum of weights does not
    fall. So its probability grows by a factor of at most ``1/a**2`` in all, that of any other outcome by at most
    ``1/a``, and none falls by more than ``1/a**2``. If the maximum stays the same, only the exponential mechanism
    counts.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", section 2.7.1, use (ii).

    Examples
    --------
    >>> weights = exponential_weights_or_low([25, 24, 26, 25], threshold=60, epsilon=1.0)
    >>> boundary_wrapper(weights, seed=1)  # the fifth: low
    4
    >>> boundary_wrapper(exponential_weights_or_low([1, 2, 97, 0], threshold=60, epsilon=1.0), seed=1)
    2
    """
    if not isinstance(threshold, int | np.integer):
        raise InputError(f"a threshold is a whole number of votes; got {threshold}")
    outcomes = exponential_weights(votes, epsilon=epsilon)
    ratio = _ratio(Fraction(epsilon) / 2)
    above = int(max(votes)) - int(threshold)
    steps = above + 1 if above >= 0 else -above
    far = ratio**steps  # a**steps; `rest` is 1 + a - a**steps; both are in units of 2**(-64 steps)
    rest = (1 << _DIGITS * steps) + (ratio << _DIGITS * (steps - 1)) - far
    low, high = (far, rest) if above >= 0 else (rest, far)
    return [*(high * weight for weight in outcomes), low * sum(outcomes)]


def _ratio(exponent: Fraction) -> int:
    """Return ``exp(-exponent)`` in units of ``2**-64``, rounded up, which makes epsilon slightly smaller."""
    return leading_bits(exponent, "quotient", _DIGITS) + 1


def _integers(weights: Sequence[int | Fraction]) -> list[int]:
    """Bring exact weights to a common denominator."""
    if not len(weights):
        raise InputError("there is at least one weight; got none; nothing was drawn")
    if not all(isinstance(weight, int | np.integer | Fraction) for weight in weights):
        raise InputError(
            "weights are integers or Fractions, because a rounded probability is not private; got another type; "
            "nothing was drawn"
        )
    exact = [weight if isinstance(weight, Fraction) else Fraction(int(weight)) for weight in weights]
    if min(exact) < 0 or max(exact) == 0:
        raise InputError("weights are at least 0 and not all 0; got others; nothing was drawn")
    common = math.lcm(*(weight.denominator for weight in exact))
    return [int(weight * common) for weight in exact]


def _draw(weights: list[int], words: RandomWords) -> int:
    """Draw a position with probability proportional to its weight, by exact halving."""
    below = [0, *accumulate(weights)]
    low, high = 0, len(weights)
    while high - low > 1:
        middle = (low + high) // 2
        if words.share(below[middle] - below[low], below[high] - below[low]):
            high = middle
        else:
            low = middle
    return low
