"""Discrete Laplace noise on the integers, sampled exactly from uniform bits.

The difference of two i.i.d. geometric variables with ratio ``q = exp(-1/scale)`` is discrete Laplace. The
binary digits of a geometric variable are independent: digit ``k`` is one with probability ``q**(2**k) / (1 +
q**(2**k))``, and the quotient by ``2**m`` is again geometric, with ratio ``q**(2**m)``. So one draw is a
fixed row of coin flips, which a batch makes in one comparison, and no floating-point number comes between the
bits and the noise (Mironov 2012).

Each flip compares one 16-bit word with the first 16 bits of its probability. On a tie, once in 65,536 words,
it goes on with further words against further bits, computed on demand. The law is therefore the discrete
Laplace law itself: no truncation, no rounding, nothing to add to delta.
"""

from __future__ import annotations

import decimal
import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DiscreteLaplace"]

_Coin: TypeAlias = Literal["digit", "quotient"]

_WORD_BITS = 16
_WORD_MASK = 0xFFFF
_WORD = np.dtype("<u2")
_SMALLEST_SCALE = Fraction(1, 2**20)
_LARGEST_SCALE = Fraction(2**50)  # beyond it a draw could leave int64 with a probability above exp(-4000)
# Once 2**m / scale exceeds this the quotient's first 16 bits are zero: the fast path never meets a quotient.
_QUOTIENT_EXPONENT = _WORD_BITS * math.log(2.0)


@functools.lru_cache(maxsize=4096)
def _leading_bits(exponent: Fraction, coin: _Coin, bits: int) -> int:
    """First binary digits of a coin's probability, certified.

    The true probability lies in ``[result, result + 1) / 2**bits``: the decimal precision is raised until
    both ends of the error interval agree, which ends because ``exp`` of a non-zero rational is irrational.

    Parameters
    ----------
    exponent : Fraction
        ``x > 0``, the coin is a function of ``exp(-x)``.
    coin : {"digit", "quotient"}
        Probability ``exp(-x) / (1 + exp(-x))``, or ``exp(-x)``.
    bits : int
        Number of digits.
    """
    if exponent > bits:  # exp(-x) < 2**-bits
        return 0
    precision = bits // 3 + 24
    while True:
        # A context of our own: the caller's may round or trap otherwise.
        with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
            power = (-(decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator))).exp()
            value = Fraction(power / (1 + power) if coin == "digit" else power)
        # Each operation errs by half a unit in the last place, and exp multiplies the error of x by x.
        error = (exponent + 4) / Fraction(10) ** (precision - 1)
        low = math.floor(value * (1 - error) * (1 << bits))
        if low == math.floor(value * (1 + error) * (1 << bits)):
            return low
        precision *= 2


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which word of a draw decides which coin.

    Words ``0 .. digits-1`` are the digits of the positive geometric, word ``digits`` asks whether its
    quotient is above zero, and the same number of words follows for the negative geometric.
    """

    digits: int
    exponents: tuple[Fraction, ...]  # of the coins of one geometric, the quotient's last
    prefixes: npt.NDArray[np.uint16]
    prefix_pair: npt.NDArray[
        np.uint16
    ]  # prefixes and prefixes + 1: their comparisons differ exactly on a tie

    @property
    def words(self) -> int:
        return len(self.prefixes)

    def coin(self, position: int) -> tuple[Fraction, _Coin]:
        index = position % (self.digits + 1)
        return self.exponents[index], "quotient" if index == self.digits else "digit"


@functools.lru_cache(maxsize=256)
def _layout(scale: Fraction) -> _Layout:
    digits = 0
    while 2**digits <= _QUOTIENT_EXPONENT * scale:
        digits += 1
    exponents = tuple(Fraction(2**digit) / scale for digit in range(digits + 1))
    one = [_leading_bits(exponent, "digit", _WORD_BITS) for exponent in exponents[:-1]]
    one.append(_leading_bits(exponents[-1], "quotient", _WORD_BITS))
    prefixes = np.array(one + one, dtype=_WORD)
    return _Layout(digits, exponents, prefixes, np.stack([prefixes, prefixes + np.uint16(1)]))


def _flip(coin: tuple[Fraction, _Coin], words: Iterator[int], *, known: int) -> bool:
    """Flip a coin exactly, given that the first `known` words tied with its probability."""
    exponent, kind = coin
    while True:
        known += 1
        bits = _leading_bits(exponent, kind, _WORD_BITS * known) & _WORD_MASK
        word = next(words)
        if word != bits:
            return word < bits


def _exact_fraction(scale: Fraction | float) -> Fraction:
    if isinstance(scale, float) and not math.isfinite(scale):
        raise InputError(f"a noise scale is a finite number of grid units; got {scale}")
    exact = Fraction(scale)
    if exact != 0 and not _SMALLEST_SCALE <= exact <= _LARGEST_SCALE:
        raise InputError(
            f"a noise scale is 0 (no noise) or lies between 2**-20 and 2**50 grid units; "
            f"got {float(exact):.6g}; change epsilon, or the grid step"
        )
    return exact


@dataclass(frozen=True, init=False)
class DiscreteLaplace:
    """Discrete Laplace distribution: ``P(X = x)`` proportional to ``exp(-|x| / scale)`` on the integers.

    Added to an integer statistic of sensitivity ``D`` it gives exactly (``D / scale``, 0)-differential
    privacy; the sampler is exact, so nothing is added to delta.

    Parameters
    ----------
    scale : Fraction or float
        Grid units; 0 for no noise at all, otherwise between 2**-20 and 2**50. A float stands for its exact
        value.

    Raises
    ------
    InputError
        If the scale is negative, not finite or out of range.

    Notes
    -----
    With ``q = exp(-1/scale)``: ``P(X = x) = q**|x| (1-q) / (1+q)`` and ``P(X >= m) = q**m / (1+q)`` for ``m
    >= 0``.

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms".
    .. [2] Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", section 5.

    Examples
    --------
    >>> DiscreteLaplace(3).tail_quantile(-20.0)
    59
    """

    scale: Fraction
    _rate: float = field(init=False, repr=False, compare=False)  # 1/scale
    _log_norm: float = field(init=False, repr=False, compare=False)  # log(1 + q)
    _layout: _Layout | None = field(init=False, repr=False, compare=False)

    def __init__(self, scale: Fraction | float) -> None:
        exact = _exact_fraction(scale)
        rate = float(1 / exact) if exact else math.inf
        for name, value in (
            ("scale", exact),
            ("_rate", rate),
            ("_log_norm", math.log1p(math.exp(-rate))),
            ("_layout", _layout(exact) if exact else None),
        ):
            object.__setattr__(self, name, value)

    def log_pmf(self, x: int) -> float:
        """Log probability of one value.

        Exact up to floating-point rounding of the closed form.

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
        """Log of ``P(X >= m)``.

        Exact up to floating-point rounding of the closed form, however far in the tail.

        Parameters
        ----------
        m : int
            Grid units.

        Examples
        --------
        >>> round(DiscreteLaplace(1).log_tail(1), 6)  # log(1/(e+1))
        -1.313262
        """
        if m <= 0:
            return math.log1p(-math.exp(self.log_tail(1 - m)))
        return -m * self._rate - self._log_norm

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
            If `log_probability` is not below zero (every integer would do) or not finite.

        Examples
        --------
        >>> DiscreteLaplace(0).tail_quantile(-1.0)
        1
        """
        if not (math.isfinite(log_probability) and log_probability < 0.0):
            raise InputError(f"log_probability is finite and below 0; got {log_probability}")
        if not self.scale:
            return 1
        # log P(X >= 1) = -(rate + log_norm); below it the tail is geometric, above it the mirrored tail is.
        if log_probability <= self.log_tail(1):
            return max(1, math.ceil(self.scale * Fraction(-log_probability - self._log_norm)))
        mirrored = -math.log(-math.expm1(log_probability)) - self._log_norm
        return 1 - math.floor(self.scale * Fraction(max(mirrored, 0.0)))

    @property
    def stream_bytes(self) -> int:
        """Bytes of random stream that one draw reads, ties excepted."""
        return 0 if self._layout is None else 2 * self._layout.words

    def decode(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> int:
        """Turn uniform bytes into one draw.

        Uniform independent words give exactly this distribution.

        Parameters
        ----------
        stream : bytes
            `stream_bytes` uniform bytes.
        further : Callable[[int], Iterator[int]]
            For a word's position, an endless stream of further 16-bit words; called only on a tie.

        Examples
        --------
        >>> DiscreteLaplace(0).decode(b"", lambda position: iter(()))
        0
        """
        layout = self._layout
        if layout is None:
            return 0
        below = np.frombuffer(stream, _WORD) < layout.prefix_pair
        packed = int.from_bytes(np.packbits(below, None, "little").tobytes(), "little")
        ones = packed & ((1 << layout.words) - 1)
        if packed >> layout.words != ones:
            return _decode_slowly(layout, stream, further)
        # No tie, so both quotients are zero and their bits too: what is left are the digits.
        half = layout.digits + 1
        return (ones & ((1 << half) - 1)) - (ones >> half)

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
            For a draw's index and a word's position, an endless stream of further 16-bit words.

        Raises
        ------
        InputError
            If the scale is 0: then no stream says how many draws are wanted.

        Examples
        --------
        >>> law = DiscreteLaplace(2)
        >>> law.decode_many(bytes([200]) * law.stream_bytes * 2, lambda draw, position: iter(())).tolist()
        [0, 0]
        """
        layout = self._layout
        if layout is None:
            raise InputError("a distribution of scale 0 reads no stream; use np.zeros")
        words = np.frombuffer(stream, _WORD).reshape(-1, layout.words)
        below = words < layout.prefixes
        half = layout.digits + 1
        draws = _as_integers(below[:, : half - 1]) - _as_integers(below[:, half:-1])
        size = self.stream_bytes
        for draw in sorted({int(hit) // layout.words for hit in np.flatnonzero(words == layout.prefixes)}):
            part = stream[draw * size : (draw + 1) * size]
            draws[draw] = _decode_slowly(layout, part, functools.partial(further, draw))
        return draws


def _as_integers(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded = np.zeros((len(bits), 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.dtype("<i8")).ravel().astype(np.int64)


def _decode_slowly(layout: _Layout, stream: bytes, further: Callable[[int], Iterator[int]]) -> int:
    """Decode a draw in which a word tied: the same law, one coin at a time."""
    halves = [0, 0]
    for position, word in enumerate(np.frombuffer(stream, _WORD).tolist()):
        geometric, digit = divmod(position, layout.digits + 1)
        coin = layout.coin(position)
        prefix = int(layout.prefixes[position])
        words = further(position) if word == prefix else iter(())
        if not (_flip(coin, words, known=1) if word == prefix else word < prefix):
            continue
        halves[geometric] += 1 << digit
        if coin[1] == "quotient":  # memoryless: count successes until the first failure
            while _flip(coin, words, known=0):
                halves[geometric] += 1 << digit
    return halves[0] - halves[1]
