"""The exact delta of target charging: how far the best adversary's likelihood ratio gets before the last charge."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError
from reusable_holdout.noise.composition import LARGEST_EXPONENT

_ROUND_UP = 1 + 1e-9  # pays for the rounding of incomplete beta functions, some 1e-12, and of their sum
_TERMS = 64  # levels that are summed at a time
_REST = 1e-5  # relative size of the levels that are left out; their largest possible sum is added
_COARSE = 0.01  # relative width of a block of moves, times the log of delta
_BLOCKS = 500  # largest number of blocks
_LEFT_OUT = 1e-4  # relative chance of more moves than any block has
_FARTHEST = 2**50  # steps of evidence; a larger epsilon is no use


def passage_delta(*, each: float, epsilon: float, charges: int, mean: float) -> float:
    """Compute the delta of an interaction with target charging at an epsilon.

    The calls are chosen adaptively. Each is `each`-differentially private, with a target of this mean, and the
    interaction stops at the last of `charges` hits. Together they are (`epsilon`, result)-differentially private.

    Parameters
    ----------
    each : float
        Privacy parameter of one call, the largest of all; finite, > 0.
    epsilon : float
        Privacy parameter of the whole interaction; finite, at least 0.
    charges : int
        Number of hits after which no further call is made; at least 1.
    mean : float
        Smallest mean, over two neighbouring data sets, of the probability of a hit, given that the call reads the data;
        in (0, 1]. A mean above 1/2 gives the same result as 1/2.

    Returns
    -------
    float
        Delta, rounded up, in [0, 1].

    Notes
    -----
    Let ``e`` be `each`, ``m`` the mean, and ``K = exp(k e)`` with ``k = epsilon/e``. Let the evidence be the log of the
    likelihood ratio in units of ``e``. The largest mean of ``max(0, ratio - K)`` under the neighbour is convex in the
    ratio. So the best adversary uses calls that move the evidence by one step up or down, and chooses which moves are
    hits. With ``B0(T)`` and ``B1(T)`` the probabilities of a hit on the two neighbours, ``(B0(T) + B1(T))/2 >= m``. So
    hits cost the adversary least if moves *away* from ``k`` are hits with probability ``2 m``, and moves towards ``k``
    are never hits.

    Dividing by the square root of the ratio makes the walk symmetric with killing, ``s = 1/(2 cosh(e/2))``. The number
    of charges until the walk is one step nearer has the generating function ``f`` with ``f = s (1 + w f**2)``,
    ``w = 1 - 2m + 2m z``. The value of waiting ``j`` steps away has the generating function ``2 sinh(e/2) z/(1-z)
    f**(j+1)/(1 - f**2)``. One more charge is worth at ``j`` as much as at ``j+2``, plus the coefficients of a power of
    ``f``, which are positive. So this adversary is the best one. Expanded, delta is the mean over ``i``, which is
    geometric with ratio ``exp(-e)``, of the probability that the evidence reaches ``k + 1 + 2i`` before the last
    charge. By the reflection principle this probability is a sum of two binomial tails.

    Between multiples of ``e`` delta is convex in ``exp(epsilon)``, so the chord lies above it. If moves away are hits
    with probability below 1, their number before the last charge is negative binomial; its distribution is taken in
    blocks and rounded up.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Definition 2.1 and Theorem B.4, whose bound adds a tail and a composition up.
    .. [2] Feller (1968), "An introduction to probability theory and its applications", volume 1, chapter III.

    Examples
    --------
    >>> passage_delta(each=0.0144, epsilon=1.0, charges=100, mean=0.5) < 1e-6
    True
    """
    steps = math.floor(min(epsilon / each, sys.float_info.max))
    below = _at(steps, each, charges, mean)
    rest = min(max(0.0, epsilon - steps * each), each)
    share = math.expm1(rest) / math.expm1(each) if each < LARGEST_EXPONENT else math.exp(rest - each)
    return below + share * (_at(steps + 1, each, charges, mean) - below)


def passage_epsilon(*, each: float, delta: float, charges: int, mean: float) -> float:
    """Compute the smallest epsilon whose `passage_delta` is at most `delta`, rounded up.

    Raises
    ------
    InputError
        If it is more than 2**50 times `each`.
    """
    steps = first_reached(
        lambda place: _at(place, each, charges, mean) <= delta, _start(each, delta, charges, mean)
    )
    if steps == 0:
        return 0.0
    above, below = _at(steps - 1, each, charges, mean), _at(steps, each, charges, mean)
    share = (above - delta) / (above - below)
    # With an epsilon of a call whose exp overflows, no number of steps is enough.
    part = math.log1p(share * math.expm1(each))
    return ((steps - 1) * each + part) * _ROUND_UP


def _start(each: float, delta: float, charges: int, mean: float) -> int:
    """Return a first guess of the epsilon in steps of `each`, from a normal law with the variance of all calls."""
    start = charges / min(mean, 0.5)  # calls
    start = math.sqrt(-2 * start * math.log(delta)) + start * math.tanh(each / 2)
    return math.ceil(min(_FARTHEST, start))


def first_reached(reached: Callable[[int], bool], guess: int) -> int:
    """Find the smallest whole number, at least 0, from which on a condition holds.

    Parameters
    ----------
    reached : Callable[[int], bool]
        The condition; if it holds at a number, it holds at all larger numbers.
    guess : int
        A first guess, at least 0; a good one saves evaluations.

    Raises
    ------
    InputError
        If the condition holds at no number up to 2**50.
    """
    low = high = guess
    stride = max(1, guess // 16)
    while not reached(high):
        if high >= _FARTHEST:
            raise InputError(
                f"epsilon must be at most {_FARTHEST} times a call's; more is needed; use a smaller one for each call"
            )
        low, high, stride = high, min(high + stride, _FARTHEST), 2 * stride
    while low >= 0 and reached(low):
        low, high, stride = max(low - stride, -1), low, 2 * stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@functools.lru_cache(maxsize=4096)
def _at(steps: int, each: float, charges: int, mean: float) -> float:
    """Compute delta at an epsilon of `steps` times `each`."""
    charged = min(1.0, 2 * mean)
    if charged == 1.0:
        return min(1.0, float(_waiting(steps, each, np.array([charges]))[0]) * _ROUND_UP)
    middle = float(_waiting(steps, each, np.array([math.ceil(charges / charged)]))[0])
    moves, chances, beyond = _moves(charges, charged, max(middle, 1e-300))
    return min(1.0, (float(chances @ _waiting(steps, each, moves)) + beyond) * _ROUND_UP)


def _fewer(moves: npt.NDArray[np.int64], charges: int, charged: float) -> npt.NDArray[np.float64]:
    """Compute the probability that fewer than `charges` of `moves` moves are charged."""
    return np.asarray(special.betainc(moves - charges + 1.0, float(charges), 1 - charged))


def _moves(
    charges: int, charged: float, middle: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]:
    """Return the distribution of the number of moves away from the level until the last charge.

    It comes as the ends of blocks, the blocks' probabilities, and the probability beyond the last block.
    """
    mean = charges / charged
    spread = math.sqrt(mean * (1 - charged)) / charged + 1 / charged
    high = math.ceil(mean + 3 * spread)
    while _fewer(np.array([high]), charges, charged)[0] > _LEFT_OUT * middle:
        high += math.ceil(spread)
    low = max(charges, math.floor(mean - 5 * spread))
    width = max(1, math.floor(_COARSE * mean / max(1.0, -math.log(middle))))
    ends = range(low, high + width, width)
    if len(ends) <= _BLOCKS:
        moves = np.array(ends)
    else:
        moves = np.unique(np.ceil(np.geomspace(low, high, _BLOCKS)).astype(np.int64))
    left = _fewer(moves, charges, charged)
    return moves, -np.diff(left, prepend=1.0), float(left[-1])


def _waiting(steps: int, each: float, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Compute delta for each given number of moves away from the level before the last charge; shape as `moves`."""
    total: npt.NDArray[np.float64] = np.zeros(len(moves))
    first = 0
    while True:
        i = np.arange(first, first + _TERMS, dtype=np.float64)
        levels = _reaches(steps + 1.0 + 2 * i, each, moves[:, None].astype(np.float64))
        total += levels @ (-math.expm1(-each) * np.exp(-each * i))
        first += _TERMS
        rest = levels[:, -1] * math.exp(-each * first)
        if (rest <= _REST * total).all():
            return total + rest


def _reaches(
    level: npt.NDArray[np.float64], each: float, moves: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Compute the probability that the walk reaches a level with fewer than `moves` steps down."""
    down = math.exp(-each) / (1 + math.exp(-each))
    up = 1 / (1 + math.exp(-each))
    straight = special.betainc(moves - 1 + level, moves, up)
    # Paths that got there and came back: their mirror images end below, and weigh exp(e level) times as much.
    fewer = np.maximum(moves - 1, 1)
    mirrored = special.betainc(moves + level, fewer, down)
    weight = np.exp(np.minimum(each * level, LARGEST_EXPONENT))
    most = special.betainc(moves + level, fewer, up) * math.exp(-2 * each)
    back = np.where(mirrored > 1e-280, np.minimum(mirrored * weight, most), most)
    return np.asarray(straight + np.where(moves > 1, back, 0.0))
