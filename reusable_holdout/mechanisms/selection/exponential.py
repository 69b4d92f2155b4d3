"""The exponential mechanism: the better a candidate's score, the likelier it is chosen; all rounds in one race.

Give candidate ``i`` a clock that rings after an exponential time of rate ``exp(r s_i)``. The first clock to ring is
``i`` with probability proportional to its rate, and what the others still have to run is as if they had just been
started: the order of the first ``c`` rings is that of ``c`` rounds of the exponential mechanism without replacement.

A clock is a uniform number of unlimited digits, of which 64 bits are drawn at once and more on demand. Floating-point
bounds of each clock sort out the order; where two intervals overlap, exact arithmetic and further digits decide. So no
rounding comes between the bits and the choice, and nothing is added to epsilon or delta.
"""

from __future__ import annotations

import decimal
import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.accounting.bounded_range import bounded_range_epsilon_each
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.random_words import RandomWords

__all__ = [
    "candidates_on_grid",
    "check_rounds",
    "exponential_mechanism",
    "exponential_top",
    "rate_of_rounds",
    "selection_rate",
]

_WORD_BITS = 64
_DOUBT = 1e-12  # relative; the bounds below err by less than a hundredth of it
_FAR = 1e290  # exponents beyond it are known by a lower bound only, so that no bound overflows


def candidates_on_grid(
    scores: npt.ArrayLike, *, epsilon: float, sensitivity: float
) -> tuple[Grid, npt.NDArray[np.int64]]:
    """Check the input of a selection and round its scores to the grid of their sensitivity.

    Neighbouring scores are at most ``grid.sensitivity`` steps apart, and scores that all rise, or all fall, still do:
    rounding is monotone.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Real units, n at least 1.
    epsilon : float
        Finite, > 0.
    sensitivity : float
        Largest change of one score between neighbouring data sets, in the scores' unit.

    Raises
    ------
    InputError
        If something is out of range; the message tells no score.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")
    grid = Grid.of(sensitivity)
    steps = grid.steps_many(scores)
    if not len(steps):
        raise InputError("a selection needs at least one candidate; got none")
    return grid, steps


def selection_rate(*, epsilon: float, sensitivity: int, monotonic: bool) -> Fraction:
    """Give the weight of a step of score in the exponent, ``e/(2D)``, or ``e/D`` for monotonic scores.

    The difference of two scores changes by at most ``2D``, and by at most ``D`` if all scores move the same way.

    Parameters
    ----------
    epsilon : float
        Finite, > 0.
    sensitivity : int
        Grid units.
    monotonic : bool
        Whether between neighbours either no score falls or no score rises.
    """
    return Fraction(epsilon) / (sensitivity if monotonic else 2 * sensitivity)


def exponential_mechanism(
    scores: npt.ArrayLike,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> int:
    """Choose a candidate with probability proportional to the exponential of its score.

    The choice is (epsilon, 0)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    epsilon : float
        Privacy parameter; finite, > 0.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall, as for counts when a row is added
        or removed. It doubles the exponent; if it is broken, the choice is (2 epsilon, 0)-differentially private.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    int
        Index of the chosen candidate.

    Raises
    ------
    InputError
        If a parameter is out of range or a score is NaN; the message tells no score.

    Notes
    -----
    Probability proportional to ``exp(e q / (2D))``, or ``exp(e q / D)`` for monotonic scores. Scores are rounded to a
    grid of ``D / 2**16`` or finer, and ``D`` is rounded up to it.

    References
    ----------
    .. [1] McSherry and Talwar (2007), "Mechanism design via differential privacy", Theorem 6.
    .. [2] Dwork and Roth (2014), Theorem 3.10.

    Examples
    --------
    >>> exponential_mechanism([1.0, 90.0, 3.0], epsilon=1.0, seed=0)
    1
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    rate = selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    return int(_first_rings(steps.max() - steps, rate, 1, RandomWords(seed))[0])


def exponential_top(
    scores: npt.ArrayLike,
    count: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> npt.NDArray[np.int64]:
    """Choose several candidates by rounds of the exponential mechanism without replacement.

    All choices together, and their order, are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of the candidates, on the private data; larger is better.
    count : int
        Rounds ``c``; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of all rounds together; epsilon finite and above 0, delta in [0, 1). A
        delta of 1e-6 halves the noise of 15 rounds at epsilon 1, and leaves a fifth of that of 100 rounds at 0.1.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit.
    monotonic : bool
        Promise that a change of one row never lets one score rise and another fall.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices of the chosen candidates, in the order of the rounds.

    Raises
    ------
    InputError
        If a parameter is out of range or a score is NaN; the message tells no score.

    Notes
    -----
    Each round has range ``e0``: probability proportional to ``exp(e0 q / (2D))``, or ``exp(e0 q / D)`` for monotonic
    scores, among the candidates that are left. With delta 0 ``e0`` is ``e/c``; else it is what
    `bounded_range_epsilon_each` gives, the most that rounds of this range may have which see the rounds before them.
    The rounds are run as one race of exponential clocks, which has the same law (adding Gumbel noise to all scores and
    sorting is another name for it).

    All of the best ``c`` are chosen with probability at least ``1 - b`` if each of them is ahead of every other
    candidate by more than ``ln(c (n - c) / b)`` over the exponent's factor of ``q``.

    References
    ----------
    .. [1] Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy", section 5.
    .. [2] Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get
       composition", on Gumbel noise and peeling.
    .. [3] Dong, Durfee and Rogers (2020), "Optimal differential privacy composition for exponential mechanisms".

    Examples
    --------
    >>> exponential_top([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0).tolist()
    [1, 3]
    >>> exponential_top([1.0, 90.0, 3.0, 60.0, 0.0, 80.0], 3, epsilon=1.0, delta=1e-6, seed=0).tolist()
    [1, 5, 3]
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    check_rounds(count, len(steps))
    rate = rate_of_rounds(
        count, epsilon=epsilon, delta=delta, sensitivity=grid.sensitivity, monotonic=monotonic
    )
    return _first_rings(steps.max() - steps, rate, count, RandomWords(seed))


def check_rounds(count: int, candidates: int) -> None:
    """Refuse more rounds than there are candidates, or none."""
    if not 1 <= count <= candidates:
        raise InputError(f"count lies between 1 and the number of candidates, {candidates}; got {count}")


def rate_of_rounds(
    count: int, *, epsilon: float, delta: float, sensitivity: int, monotonic: bool
) -> Fraction:
    """Factor of the scores in the exponent, in grid steps, of each round of the exponential mechanism."""
    if delta == 0:
        return selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic) / count
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    return selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=monotonic)


def _first_rings(
    behind: npt.NDArray[np.int64], rate: Fraction, count: int, words: RandomWords
) -> npt.NDArray[np.int64]:
    """Run clocks of rates ``exp(-rate * behind)`` and give the first `count` to ring, in order."""
    first = words.take(len(behind))
    low, high = _log_ring_bounds(first, behind, float(rate))
    order = np.argsort(low)
    following = order[1 : count + 1]
    if (high[order[: len(following)]] < low[following]).all():
        return order[:count].astype(np.int64)
    # In doubt: exact clocks for all that may be among the first. The rest ring after `count` others for certain.
    contenders = np.flatnonzero(low <= np.partition(high, count - 1)[count - 1])
    clocks = [_Clock(index, int(first[index]), int(behind[index])) for index in contenders.tolist()]
    compare = functools.partial(_compare, rate=rate, words=words)
    clocks.sort(key=functools.cmp_to_key(compare))
    return np.array([clock.index for clock in clocks[:count]], dtype=np.int64)


def _log_ring_bounds(
    first: npt.NDArray[np.uint64], behind: npt.NDArray[np.int64], rate: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bounds of the log of each clock's time, ``ln(-ln(1-V)) + rate * behind``, given the first 64 bits of ``V``.

    Over an interval of ``2**-64`` the first term moves by less than ``4 / first`` in the lower half of [0, 1] and by
    less than ``4 / (2**64 - 1 - first)`` in the upper half: its derivative is ``1 / ((1-V) (-ln(1-V)))``.
    """
    below, above = first.astype(np.float64), (~first).astype(np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        exponent = np.minimum(behind.astype(np.float64) * rate, _FAR)
        unit = 2.0**-_WORD_BITS
        lower_half = -np.log1p(-np.minimum(below + 0.5, 2.0**63) * unit)
        time = np.where(first < np.uint64(2**63), lower_half, -np.log((above + 0.5) * unit))
        middle = np.log(time) + exponent
        doubt = 4 / below + 4 / above + _DOUBT * (64 + exponent)
    return middle - doubt, np.where(exponent < _FAR, middle + doubt, np.inf)


class _Clock:
    """A clock whose uniform number gets further binary digits when they are needed."""

    __slots__ = ("_bounds", "behind", "bits", "digits", "index")

    def __init__(self, index: int, word: int, behind: int) -> None:
        self.index, self.behind = index, behind
        self.digits, self.bits = word, _WORD_BITS
        self._bounds: tuple[Fraction, Fraction] | None = None

    def refine(self, words: RandomWords) -> None:
        """Draw 64 more binary digits."""
        self.digits = self.digits << _WORD_BITS | int(words.take(1)[0])
        self.bits += _WORD_BITS
        self._bounds = None

    def bounds(self, words: RandomWords) -> tuple[Fraction, Fraction]:
        """Rational bounds of ``ln(-ln(1-V))``."""
        while self.digits in (0, 2**self.bits - 1):  # the bounds would be infinite
            self.refine(words)
        if self._bounds is None:
            self._bounds = self._log_time(self.digits, -1), self._log_time(self.digits + 1, 1)
        return self._bounds

    def _log_time(self, numerator: int, outwards: int) -> Fraction:
        """``ln(-ln(1 - numerator / 2**bits))``, moved outwards by more than it can err.

        The argument is exact in `bits` decimal digits, and Python's ``ln`` is correctly rounded, so the error is below
        ``(1 + bits) 10**-(bits + 29)``.
        """
        precision = self.bits + 30
        with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
            rest = decimal.Decimal(2**self.bits - numerator) / decimal.Decimal(2**self.bits)
            value = Fraction((-rest.ln()).ln())
        return value + Fraction(outwards, 10 ** (self.bits + 20))


def _compare(one: _Clock, other: _Clock, *, rate: Fraction, words: RandomWords) -> int:
    """Say which clock rings first: negative for `one`. Ends with probability one, for clocks are continuous."""
    lead = rate * (other.behind - one.behind)
    while True:
        (one_low, one_high), (other_low, other_high) = one.bounds(words), other.bounds(words)
        if one_high - other_low < lead:
            return -1
        if one_low - other_high > lead:
            return 1
        one.refine(words)
        other.refine(words)
