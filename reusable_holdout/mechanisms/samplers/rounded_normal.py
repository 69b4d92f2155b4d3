"""Normal noise rounded to integers, keyed like the guard's: one uniform number, turned by the normal law's quantiles.

A uniform number of unlimited digits lies between two values of the normal distribution function at half-integers, and
says which integer is drawn. Its first 64 digits decide nearly always, in floating point with a margin for the rounding;
where they do not, further digits and the distribution function to as many digits as are needed do. So the law is a true
normal variable's, rounded: post-processing of the Gaussian mechanism over the reals, with nothing to add to delta.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.digits import Digits
from reusable_holdout.noise.geometric import checked_scale

__all__ = ["RoundedNormal", "normal_cdf_digits"]

_HALF = Fraction(1, 2)
_DIGITS = 64
# Of a quantile y, times 1 + |y|; floating point errs by less than a hundredth of it. Beyond 2**52, where floating point
# does not know every integer, it is hundreds of integers wide.
_DOUBT = 2.0**-43
_TAIL_FROM = 2


@dataclass(frozen=True, init=False)
class RoundedNormal:
    """Normal variable about 0, rounded to the nearest integer.

    Added to an integer statistic of sensitivity ``D`` it gives what normal noise of this deviation gives, ``(D /
    deviation)**2 / 2``-zCDP, for rounding to the grid comes last; the sampler is exact.

    Parameters
    ----------
    scale : Fraction or float
        Standard deviation before rounding, grid units; 0 for no noise at all, otherwise between 2**-20 and 2**50. A
        float stands for its exact value.

    Raises
    ------
    InputError
        If the scale is negative, not finite or out of range.

    Notes
    -----
    ``P(X >= m) = Phi(-(m - 1/2) / s)``. A draw is the integer ``m`` for which a uniform number lies between
    ``Phi((m - 1/2) / s)`` and ``Phi((m + 1/2) / s)``.

    References
    ----------
    .. [1] Bun and Steinke (2016), "Concentrated differential privacy", Proposition 1.6.

    Examples
    --------
    >>> RoundedNormal(1000).tail_quantile(-20.0)
    5880
    """

    scale: Fraction

    def __init__(self, scale: Fraction | float) -> None:
        object.__setattr__(self, "scale", checked_scale(scale))

    @functools.cached_property
    def _deviation(self) -> float:
        return float(self.scale)

    @property
    def mean(self) -> float:
        """Mean, grid units: 0."""
        return 0.0

    def log_pmf(self, x: int) -> float:
        """Log probability of one value.

        Up to floating-point rounding, which grows with the scale: neighbouring values of the distribution function
        are subtracted.

        Parameters
        ----------
        x : int
            Grid units.

        Examples
        --------
        >>> round(RoundedNormal(1).log_pmf(0), 6)  # log(Phi(1/2) - Phi(-1/2))
        -0.959916
        """
        if not self.scale:
            return 0.0 if x == 0 else -math.inf
        upper, lower = self.log_tail(abs(x)), self.log_tail(abs(x) + 1)
        return upper + math.log(-math.expm1(lower - upper))

    def log_tail(self, m: int) -> float:
        """Log of ``P(X >= m)``, however far in the tail.

        Parameters
        ----------
        m : int
            Grid units.

        Examples
        --------
        >>> round(RoundedNormal(2).log_tail(1), 6)  # log Phi(-1/4)
        -0.913062
        """
        if not self.scale:
            return 0.0 if m <= 0 else -math.inf
        return float(special.log_ndtr((0.5 - m) / self._deviation))

    def tail_quantile(self, log_probability: float) -> int:
        """Smallest integer ``m`` with ``P(X >= m) <= exp(log_probability)``.

        So ``|X| <= m - 1`` except with probability ``2 exp(log_probability)``.

        Parameters
        ----------
        log_probability : float
            Log of a probability below one; values like -2000 are as good as -3.

        Raises
        ------
        InputError
            If `log_probability` is not below zero or not finite.

        Examples
        --------
        >>> RoundedNormal(0).tail_quantile(-1.0)
        1
        """
        if not (math.isfinite(log_probability) and log_probability < 0.0):
            raise InputError(f"log_probability is finite and below 0; got {log_probability}")
        if not self.scale:
            return 1
        first = math.ceil(0.5 - self._deviation * float(special.ndtri_exp(log_probability))) - 1
        return next(m for m in itertools.count(first) if self.log_tail(m) <= log_probability)

    @property
    def stream_bytes(self) -> int:
        """Bytes of random stream that one draw reads, except where they do not decide."""
        return _DIGITS // 8 if self.scale else 0

    def decode(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> int:
        """Turn uniform bytes into one draw.

        Uniform independent words give exactly this distribution.

        Parameters
        ----------
        stream : bytes
            `stream_bytes` uniform bytes.
        further : Callable[[int], Iterator[int]]
            For position 0, an endless stream of further 16-bit words; called only where the stream does not decide.

        Examples
        --------
        >>> RoundedNormal(1).decode(b"0123456z", lambda position: iter(()))
        0
        """
        if not self.scale:
            return 0
        word = int.from_bytes(stream, "little")
        upper = word >> _DIGITS - 1
        tail = ~word % 2**_DIGITS if upper else word  # the law is symmetric: exact in both tails
        low, high = (float(special.ndtri((tail + end) * 2.0**-_DIGITS)) for end in (0, 1))
        least = (low - _DOUBT * (1 - low)) * self._deviation + 0.5
        most = (high + _DOUBT * (1 - high)) * self._deviation + 0.5
        if tail and math.floor(least) == math.floor(most):
            return -math.floor(most) if upper else math.floor(most)
        return self._exactly(word, further(0))

    def decode_many(
        self, stream: bytes, further: Callable[[int, int], Iterator[int]]
    ) -> npt.NDArray[np.int64]:
        """Turn uniform bytes into many draws, each the same as `decode` gives for its part of the stream.

        Uniform independent words give independent draws of exactly this distribution.

        Parameters
        ----------
        stream : bytes
            A multiple of `stream_bytes` uniform bytes.
        further : Callable[[int, int], Iterator[int]]
            For a draw's index and position 0, an endless stream of further 16-bit words.

        Raises
        ------
        InputError
            If the scale is 0: then no stream says how many draws are wanted.

        Examples
        --------
        >>> RoundedNormal(1).decode_many(b"0123456z" * 2, lambda draw, position: iter(())).tolist()
        [0, 0]
        """
        if not self.scale:
            raise InputError("a distribution of scale 0 reads no stream; use np.zeros")
        words = np.frombuffer(stream, np.dtype("<u8"))
        drawn, doubtful = self._by_quantiles(words)
        for draw in np.flatnonzero(doubtful).tolist():
            drawn[draw] = self._exactly(int(words[draw]), further(draw, 0))
        return drawn

    def _by_quantiles(
        self, words: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Draws of uniform numbers of which 64 digits are known, and where these digits may not decide."""
        upper = (words >> np.uint64(63)).astype(np.bool_)
        tail = np.where(upper, ~words, words).astype(np.float64)  # the law is symmetric: exact in both tails
        with np.errstate(divide="ignore"):
            low, high = special.ndtri(np.stack([tail, tail + 1]) * 2.0**-_DIGITS)
        ends = np.stack([low - _DOUBT * (1 - low), high + _DOUBT * (1 - high)])
        low, high = np.floor(ends * self._deviation + 0.5)
        drawn = high.astype(np.int64)
        return np.where(upper, -drawn, drawn), low != high

    def _exactly(self, word: int, further: Iterator[int]) -> int:
        """Draw of a uniform number whose first 64 digits are a word, the others in 16-bit words."""
        number = Digits(_Further(further), word)

        def above(m: int) -> bool:  # so that the draw is at most m
            return number.below(functools.partial(_normal_cdf, (m + _HALF) / self.scale))

        reach = math.ceil(self.scale)
        while above(-reach) or not above(reach):
            reach += reach
        low, high = -reach, reach
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if above(middle) else (middle, high)
        return high


class _Further:
    """Further 16-bit words of a draw, four at a time."""

    def __init__(self, words: Iterator[int]) -> None:
        self._words = words

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Give the next 64-bit words, leading quarters first."""
        quarters = np.array([next(self._words) for _ in range(4 * count)], dtype=np.uint64).reshape(count, 4)
        shifts = np.array([48, 32, 16, 0], dtype=np.uint64)
        return np.asarray((quarters << shifts).sum(axis=1), dtype=np.uint64)


@functools.lru_cache(maxsize=1024)
def normal_cdf_digits(y: Fraction, bits: int) -> tuple[int, int]:
    """Bracket of the normal distribution function, in units of ``2**-bits``, certified.

    Parameters
    ----------
    y : Fraction
        Where.
    bits : int
        Binary digits.

    Returns
    -------
    (int, int)
        ``low <= Phi(y) 2**bits <= high``, at most two apart.

    Notes
    -----
    For ``y > 0``, ``Phi(y) = 1/2 + phi(y) (y + y^3/3 + y^5/(3 5) + ...)``, all of it positive: no digit cancels.

    Examples
    --------
    >>> normal_cdf_digits(Fraction(0), 10), normal_cdf_digits(Fraction(-1), 10)  # 0.158655 * 1024 = 162.46
    ((512, 512), (162, 163))
    """
    if y < 0:
        low, high = normal_cdf_digits(-y, bits)
        return (1 << bits) - high, (1 << bits) - low
    if y == 0:
        return 1 << bits - 1, 1 << bits - 1
    if y * y > _TAIL_FROM * bits:  # what lies above is less than exp(-y^2/2)
        return (1 << bits) - 1, 1 << bits
    return _series(y, bits, precision=bits + 24)


def _series(y: Fraction, bits: int, *, precision: int) -> tuple[int, int]:
    """Bracket of the distribution function at ``y > 0`` from so many decimals; few of them leave it wide."""
    with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
        at = decimal.Decimal(y.numerator) / decimal.Decimal(y.denominator)
        square = at * at
        term, total, count = at, at, 0
        before = decimal.Decimal(0)
        while total != before:
            before = total
            count += 1
            term = term * square / (2 * count + 1)
            total += term
        value = Fraction((-square / 2).exp() / (2 * _pi()).sqrt() * total)
    # Each operation errs by half a unit in the last place, a term by as many as it has factors, exp by its exponent
    # times that, which is less than the terms' number; what is left out of the sum is less than a few of its last term.
    error = value * count / Fraction(10) ** (precision - 2)
    return (
        math.floor((_HALF + value - error) * (1 << bits)),
        math.ceil((_HALF + value + error) * (1 << bits)),
    )


def _normal_cdf(y: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    low, high = normal_cdf_digits(y, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


def _pi() -> decimal.Decimal:
    """Circle's constant in the precision of the context, by Machin's formula."""
    digits = decimal.getcontext().prec + 10
    unit = 10**digits

    def inverse_tangent(inverse: int) -> int:
        power: int = unit // inverse
        total = power
        odd = 1
        while power:
            power //= -(inverse * inverse)
            odd += 2
            total += power // odd
        return total

    return decimal.Decimal(16 * inverse_tangent(5) - 4 * inverse_tangent(239)).scaleb(-digits)
