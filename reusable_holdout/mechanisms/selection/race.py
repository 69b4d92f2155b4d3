"""A race of exponential clocks, which runs all rounds of the exponential mechanism at once.

Give candidate ``i`` a clock that rings after an exponential time of rate ``exp(r s_i)``. The first clock to ring is
``i`` with probability proportional to its rate. The other clocks then go on as if they had just started, so the order
of the first ``c`` rings has the law of ``c`` rounds of the exponential mechanism without replacement.

Here ``s_i`` is the score and ``r`` a factor. A clock is a uniform number drawn digit by digit: 64 bits at once, and
more on demand. Floating-point bounds of the ringing times give the order. Where two intervals overlap, exact arithmetic
and further digits decide. So the choice is exact, and nothing is added to epsilon or delta.
"""

from __future__ import annotations

import decimal
import functools
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.samplers.random_words import Digits, RandomWords

_WORD_BITS = 64
_DOUBT = 1e-12  # relative; the bounds below err by less than a hundredth of it
_INTERVAL_SLACK = 4.0  # follows from the derivative in `_log_ring_bounds`
_NATS_SLACK = 64.0  # ln(-ln(1-V)) is nearer to 0 for every V of 64 bits
_FAR = 1e290  # larger exponents have only a lower bound, so that no bound overflows


def first_rings(
    behind: npt.NDArray[np.int64], rate: Fraction, count: int, words: RandomWords
) -> npt.NDArray[np.int64]:
    """Run clocks of rates ``exp(-rate * behind)`` and return the first to ring, in order.

    Parameters
    ----------
    behind : ndarray of int64, shape (n,)
        Distance of each score below the best, in grid steps; at least 0.
    rate : Fraction
        Factor of a grid step in the exponent.
    count : int
        Number of clocks to return; at least 1, at most n.
    words : RandomWords
        Source of the bits.

    Returns
    -------
    ndarray of int64, shape (count,)
        Indices, in the order of the rings.
    """
    first = words.take(len(behind))
    low, high = _log_ring_bounds(first, behind, float(rate))
    order = np.argsort(low)
    following = order[1:][:count]
    if (high[order[: len(following)]] < low[following]).all():
        return order[:count].astype(np.int64)
    # Exact clocks decide among all that may be among the first. The others surely ring after `count` clocks.
    contenders = np.flatnonzero(low <= np.sort(high)[:count].max())
    clocks = [
        _Clock(index, Digits(words, int(first[index])), int(behind[index])) for index in contenders.tolist()
    ]
    compare = functools.partial(_compare, rate=rate)
    clocks.sort(key=functools.cmp_to_key(compare))
    return np.array([clock.index for clock in clocks[:count]], dtype=np.int64)


def _log_ring_bounds(
    first: npt.NDArray[np.uint64], behind: npt.NDArray[np.int64], rate: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bound the log of each clock's time, ``ln(-ln(1-V)) + rate * behind``, given the first 64 bits of ``V``.

    Over an interval of ``2**-64`` the first term moves by less than ``4 / first`` in the lower half of [0, 1] and by
    less than ``4 / (2**64 - 1 - first)`` in the upper half: its derivative is ``1 / ((1-V) (-ln(1-V)))``.
    """
    below, above = first.astype(np.float64), (~first).astype(np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        exponent = np.minimum(behind.astype(np.float64) * rate, _FAR)
        unit = 2.0**-_WORD_BITS  # also added to each number, so that no log is infinite
        lower_half, upper_half = -np.log1p(-(below + unit) * unit), -np.log((above + unit) * unit)
        in_upper_half = first.view(np.int64) < 0  # by its leading bit
        middle = np.log(np.where(in_upper_half, upper_half, lower_half)) + exponent
        doubt = _INTERVAL_SLACK / below + _INTERVAL_SLACK / above + _DOUBT * (_NATS_SLACK + exponent)
    return middle - doubt, np.where(exponent < _FAR, middle + doubt, np.inf)


class _Clock:
    """A clock whose uniform number ``V`` gets further binary digits when they are needed."""

    __slots__ = ("_bounds", "_digits", "behind", "index")

    def __init__(self, index: int, digits: Digits, behind: int) -> None:
        self.index, self.behind = index, behind
        self._digits = digits
        self._bounds: tuple[Fraction, Fraction] | None = None

    def refine(self) -> None:
        """Draw 64 more binary digits."""
        self._digits.refine()
        self._bounds = None

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return rational bounds of ``ln(-ln(1-V))``."""
        digits = self._digits
        while digits.known in (0, 2**digits.bits - 1):  # the bounds would be infinite
            self.refine()
        if self._bounds is None:
            self._bounds = (
                _log_time(digits.known, digits.bits, -1),
                _log_time(digits.known + 1, digits.bits, 1),
            )
        return self._bounds


def _log_time(numerator: int, bits: int, outwards: int) -> Fraction:
    """Compute ``ln(-ln(1 - numerator / 2**bits))``, moved down (-1) or up (1) by more than its error.

    The argument is exact in `bits` decimal digits, and Python's ``ln`` is correctly rounded, so the error is below
    ``(1 + bits) 10**-(bits + 29)``.
    """
    precision = bits + 30
    with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
        rest = decimal.Decimal(2**bits - numerator) / decimal.Decimal(2**bits)
        value = Fraction((-rest.ln()).ln())
    return value + Fraction(outwards, 10 ** (bits + 20))


def _compare(one: _Clock, other: _Clock, *, rate: Fraction) -> int:
    """Return -1 if `one` rings first, otherwise 1; this ends with probability one, because times are continuous."""
    lead = rate * (other.behind - one.behind)
    while True:
        (one_low, one_high), (other_low, other_high) = one.bounds(), other.bounds()
        if one_high - other_low < lead:
            return -1
        if one_low - other_high > lead:
            return 1
        one.refine()
        other.refine()
