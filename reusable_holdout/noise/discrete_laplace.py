"""Discrete Laplace noise on the integers, sampled exactly: the difference of two geometric variables.

The binary digits of a geometric variable with ratio ``q = exp(-1/scale)`` are independent: digit ``k`` is one with
probability ``q**(2**k) / (1 + q**(2**k))``, and the quotient by ``2**m`` is again geometric, with ratio ``q**(2**m)``.
So each digit is the flip of a coin. A batch of draws flips all its coins in one array comparison.

Each flip compares one 16-bit word with the first 16 bits of its probability. On a tie, once in 65,536 words, further
words are compared with further bits, which are computed on demand and proven right. No outcome depends on a
floating-point number (Mironov 2012). So the law is exactly geometric: nothing is truncated, rounded or added to delta.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError

Coin: TypeAlias = Literal["digit", "quotient"]
"""Kind of a coin with exponent ``x``: "digit" has probability ``exp(-x) / (1 + exp(-x))``, "quotient" ``exp(-x)``."""
_WORD_BITS = 16
_WORD_MASK = 0xFFFF
_WORD = np.dtype("<u2")
_SMALLEST_SCALE = Fraction(1, 2**20)
_LARGEST_SCALE = Fraction(2**50)  # beyond it a draw could leave int64 with a probability above exp(-4000)
# If 2**m / scale exceeds this, the quotient's first 16 bits are zero: the fast path never meets a quotient.
_QUOTIENT_EXPONENT = _WORD_BITS * math.log(2.0)


@functools.lru_cache(maxsize=4096)
def leading_bits(exponent: Fraction, coin: Coin, bits: int) -> int:
    """Compute the first binary digits of a coin's probability, which are proven to be right.

    The true probability lies in ``[result, result + 1) / 2**bits``. The decimal precision is raised until both ends of
    the error interval agree; this ends, because ``exp`` of a non-zero rational number is irrational.
    """
    exponent = min(exponent, Fraction(bits))  # for larger exponents all these digits are 0
    precision = bits + 24
    while True:
        low, high = _least_and_most(exponent, coin, bits, precision)
        if low == high:
            return low
        precision *= 2


def _least_and_most(exponent: Fraction, coin: Coin, bits: int, precision: int) -> tuple[int, int]:
    """Bound the first binary digits from below and above, in arithmetic with `precision` decimal digits."""
    # The caller's decimal context may round or trap, so it is not used.
    with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
        power = (-(decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator))).exp()
        value = Fraction(power / (1 + power) if coin == "digit" else power)
    # Each operation errs by half a unit in the last place, and exp multiplies the error of x by x.
    error = (exponent + 4) / Fraction(10) ** (precision - 1)
    return math.floor(value * (1 - error) * (1 << bits)), math.floor(value * (1 + error) * (1 << bits))


def flip(coin: tuple[Fraction, Coin], words: Iterator[int], *, known: int) -> bool:
    """Flip a coin exactly, given that the first `known` 16-bit words were equal to those of its probability.

    The coin is an exponent and a kind. The flip takes as many further uniform words as it needs.
    """
    exponent, kind = coin
    while True:
        known += 1
        bits = leading_bits(exponent, kind, _WORD_BITS * known) & _WORD_MASK
        word = next(words)
        if word < bits:
            return True
        if word > bits:
            return False


def checked_scale(scale: Fraction | float) -> Fraction:
    """Return a scale as an exact fraction: 0, or between 2**-20 and 2**50; a float stands for its exact value."""
    try:
        exact = Fraction(scale)
    except (ValueError, OverflowError):
        raise InputError(f"a noise scale is a finite number of grid units; got {scale}") from None
    if exact == 0 or _SMALLEST_SCALE <= exact <= _LARGEST_SCALE:
        return exact
    told = decimal.Context(prec=6).divide(exact.numerator, exact.denominator)  # it may be beyond all floats
    other = "larger scale, that is a smaller" if exact < 1 else "smaller scale, that is a larger"
    raise InputError(
        f"a noise scale is 0 (no noise) or lies between 2**-20 and 2**50 grid units; got {told}; use a {other} epsilon"
    )


@dataclass(frozen=True, slots=True)
class GeometricRow:
    """A sampler of one or two geometric variables, ``P(X = x)`` proportional to ``exp(-x / scale)`` on 0, 1, 2, ...

    A draw reads 16-bit words; uniform, independent words give exactly this distribution. Of the words of a variable,
    `digits` decide one bit each, and the last decides if the variable has more bits. A second variable reads as many.
    """

    digits: int
    exponents: tuple[Fraction, ...]  # exponents of the coins of one variable; the quotient's coin is the last
    prefixes: npt.NDArray[np.uint16]  # first 16 bits of the probability of each word's coin

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(scale: Fraction, variables: int) -> GeometricRow:
        """Make the sampler of one or two variables with a scale above 0."""
        digits = 0
        while 2**digits <= _QUOTIENT_EXPONENT * scale:
            digits += 1
        exponents = tuple(Fraction(2**digit) / scale for digit in range(digits + 1))
        one = [leading_bits(exponent, "digit", _WORD_BITS) for exponent in exponents[:-1]]
        one.append(leading_bits(exponents[-1], "quotient", _WORD_BITS))
        prefixes = np.array(one * variables, dtype=_WORD)
        return GeometricRow(digits, exponents, prefixes)

    @property
    def stream_bytes(self) -> int:
        """Number of bytes that one draw reads if no tie needs more."""
        return 2 * len(self.prefixes)

    def coin(self, position: int) -> tuple[Fraction, Coin]:
        """Return the coin that the word at a position decides."""
        index = position % (self.digits + 1)
        return self.exponents[index], "quotient" if index == self.digits else "digit"

    def decode_many(
        self, stream: bytes, further: Callable[[int, int], Iterator[int]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Convert a multiple of `stream_bytes` uniform bytes to draws of both variables.

        If there is only one variable, the second is 0. On a tie `further` takes the draw's index and the word's
        position.
        """
        words = np.frombuffer(stream, _WORD)
        prefixes = np.tile(self.prefixes, len(words) // len(self.prefixes))  # one row is compared fastest
        variables = self._as_integers(words < prefixes)
        for draw in set(
            (np.flatnonzero(words == prefixes) // len(self.prefixes)).tolist()
        ):  # a word of it tied
            part = stream[draw * self.stream_bytes : (draw + 1) * self.stream_bytes]
            slowly = self._decode_slowly(part, functools.partial(further, draw))
            variables[0][draw], variables[1][draw] = slowly
        return variables

    def _as_integers(
        self, below: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return both variables as integers, from their digits; the bits of the quotients are 0 unless a word tied."""
        width = self.digits + 1
        draws, variables = len(below) // len(self.prefixes), len(self.prefixes) // width
        # as wide as an integer: all are packed at once
        rows = np.zeros((draws, variables, 64), dtype=np.bool_)
        rows[:, :, :width] = below.reshape(draws, variables, width)
        bits = np.packbits(rows, bitorder="little").view(np.dtype("<i8"))
        packed = np.asarray(bits, dtype=np.int64).reshape(draws, variables).T
        return packed[0], packed[1] if variables == 2 else np.zeros_like(packed[0])

    def _decode_slowly(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> tuple[int, int]:
        """Decode a draw in which a word tied, one coin at a time; the law is the same."""
        values = [0, 0]
        for position, word in enumerate(np.frombuffer(stream, _WORD).tolist()):
            variable, digit = divmod(position, self.digits + 1)
            coin = self.coin(position)
            prefix = int(self.prefixes[position])
            words = further(position) if word == prefix else iter(())
            if word > prefix or (word == prefix and not flip(coin, words, known=1)):
                continue
            values[variable] += 1 << digit
            if coin[1] == "quotient":  # it has no memory: count successes until the first failure
                while flip(coin, words, known=0):
                    values[variable] += 1 << digit
        return values[0], values[1]


@dataclass(frozen=True, init=False)
class GeometricNoise:
    """The base of noise made from one or two geometric variables with the same scale; the sampler is exact.

    A draw is the first variable, minus the second if there is one. Parameters and errors are those of
    `DiscreteLaplace`.
    """

    scale: Fraction
    _variables: ClassVar[int] = 1

    def __init__(self, scale: Fraction | float) -> None:
        object.__setattr__(self, "scale", checked_scale(scale))

    @functools.cached_property
    def _rate(self) -> float:
        return float(1 / self.scale) if self.scale else math.inf

    @functools.cached_property
    def _row(self) -> GeometricRow | None:
        return GeometricRow.of(self.scale, self._variables) if self.scale else None

    @property
    def mean(self) -> float:
        """Mean in grid units; for one variable about ``scale - 1/2``."""
        return 1.0 / math.expm1(self._rate) if self.scale else 0.0

    @property
    def stream_bytes(self) -> int:
        """Number of random bytes that one draw reads if no tie needs more."""
        return 0 if self._row is None else self._row.stream_bytes

    def decode_many(
        self, stream: bytes, further: Callable[[int, int], Iterator[int]]
    ) -> npt.NDArray[np.int64]:
        """Convert uniform bytes to draws; uniform independent bytes give exactly this distribution.

        Parameters
        ----------
        stream : bytes
            A multiple of `stream_bytes` uniform bytes.
        further : Callable[[int, int], Iterator[int]]
            Takes a draw's index and a word's position and returns an endless stream of further 16-bit words.

        Raises
        ------
        InputError
            If the scale is 0: the length of the stream then does not tell the number of draws.

        Examples
        --------
        >>> law = DiscreteLaplace(2)
        >>> law.decode_many(bytes([200]) * law.stream_bytes * 2, lambda draw, position: iter(())).tolist()
        [0, 0]
        """
        if self._row is None:
            raise InputError("a distribution must have a scale above 0 to be drawn from; got 0; use np.zeros")
        first, second = self._row.decode_many(stream, further)
        return first - second


class DiscreteLaplace(GeometricNoise):
    """Discrete Laplace distribution: ``P(X = x)`` proportional to ``exp(-|x| / scale)`` on the integers.

    Added to an integer statistic of sensitivity ``D`` it gives exactly (``D / scale``, 0)-differential
    privacy; the sampler is exact, so nothing is added to delta.

    Parameters
    ----------
    scale : Fraction or float
        Grid units; 0 for no noise at all, otherwise between 2**-20 and 2**50. A float stands for its exact value.

    Raises
    ------
    InputError
        If the scale is negative, not finite or out of range.

    Notes
    -----
    With ``q = exp(-1/scale)``: ``P(X = x) = q**|x| (1-q) / (1+q)`` and ``P(X >= m) = q**m / (1+q)`` for ``m >= 0``.

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".
    .. [2] Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", section 5.

    Examples
    --------
    >>> DiscreteLaplace(3).tail_quantile(-20.0)
    59
    """

    _variables = 2

    @functools.cached_property
    def _log_norm(self) -> float:
        """Log of ``1 + q``, where ``q = exp(-1/scale)``."""
        return math.log1p(math.exp(-self._rate))

    @property
    def mean(self) -> float:
        """Mean in grid units: 0."""
        return 0.0

    def log_pmf(self, x: int) -> float:
        """Return the log probability of one value, exact up to floating-point rounding of the closed form.

        Parameters
        ----------
        x : int
            Grid units.

        Examples
        --------
        >>> round(DiscreteLaplace(1).log_pmf(0), 6)  # log((e-1)/(e+1))
        -0.771937
        """
        if not self.scale:
            return 0.0 if x == 0 else -math.inf
        return -abs(x) * self._rate + math.log(-math.expm1(-self._rate)) - self._log_norm

    def log_tail(self, m: int) -> float:
        """Return the log of ``P(X >= m)``, equally accurate however far in the tail.

        Parameters
        ----------
        m : int
            Grid units.

        Examples
        --------
        >>> round(DiscreteLaplace(1).log_tail(1), 6)  # log(1/(e+1))
        -1.313262
        """
        return math.log1p(-math.exp(self.log_tail(1 - m))) if m <= 0 else -m * self._rate - self._log_norm

    def tail_quantile(self, log_probability: float) -> int:
        """Find the smallest integer ``m`` with ``P(X >= m) <= exp(log_probability)``.

        ``|X| <= m - 1`` holds except with probability ``2 exp(log_probability)``.

        Parameters
        ----------
        log_probability : float
            Log of a probability below one; the result is as accurate for -2000 as for -3.

        Raises
        ------
        InputError
            If `log_probability` is not below zero (every integer would satisfy it) or not finite.

        Examples
        --------
        >>> DiscreteLaplace(0).tail_quantile(-1.0)
        1
        """
        if not (math.isfinite(log_probability) and log_probability < 0.0):
            raise InputError(f"log_probability is finite and below 0; got {log_probability}")
        if not self.scale:
            return 1
        # The tail is geometric from 1 on, and the mirrored tail below.
        least = math.ceil(self.scale * Fraction(-log_probability - self._log_norm))
        if least >= 1:
            return least
        mirrored = -math.log(-math.expm1(log_probability)) - self._log_norm
        return 1 - math.floor(self.scale * Fraction(mirrored))
