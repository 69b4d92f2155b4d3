"""Exact coins, and geometric variables from uniform bits: every draw is a fixed row of coin flips.

The binary digits of a geometric variable with ratio ``q = exp(-1/scale)`` are independent: digit ``k`` is one with
probability ``q**(2**k) / (1 + q**(2**k))``, and the quotient by ``2**m`` is again geometric, with ratio ``q**(2**m)``.
A batch makes all its flips in one comparison.

Each flip compares one 16-bit word with the first 16 bits of its probability. On a tie, once in 65,536 words, further
words are compared with further bits, which are computed on demand and certified. No outcome depends on a floating-point
number (Mironov 2012). So the law is exactly the geometric law: nothing is truncated or rounded, or added to delta.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError

__all__ = ["Coin", "GeometricRow", "checked_scale", "flip", "leading_bits"]

Coin: TypeAlias = Literal["digit", "quotient"]
"""Probability ``exp(-x) / (1 + exp(-x))``, or ``exp(-x)``."""

_WORD_BITS = 16
_WORD_MASK = 0xFFFF
_WORD = np.dtype("<u2")
_SMALLEST_SCALE = Fraction(1, 2**20)
_LARGEST_SCALE = Fraction(
    2**50
)  # with a larger one a draw could leave int64 with a probability above exp(-4000)
# If 2**m / scale exceeds this, the quotient's first 16 bits are zero: the fast path never meets a quotient.
_QUOTIENT_EXPONENT = _WORD_BITS * math.log(2.0)


@functools.lru_cache(maxsize=4096)
def leading_bits(exponent: Fraction, coin: Coin, bits: int) -> int:
    """Compute the first binary digits of a coin's probability, certified.

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
    """Bound the first binary digits from below and above, with so many decimals."""
    # The caller's decimal context may round or trap, so it is not used.
    with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
        power = (-(decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator))).exp()
        value = Fraction(power / (1 + power) if coin == "digit" else power)
    # Each operation errs by half a unit in the last place, and exp multiplies the error of x by x.
    error = (exponent + 4) / Fraction(10) ** (precision - 1)
    return math.floor(value * (1 - error) * (1 << bits)), math.floor(value * (1 + error) * (1 << bits))


def flip(coin: tuple[Fraction, Coin], words: Iterator[int], *, known: int) -> bool:
    """Flip a coin of an exponent and kind exactly, given that its first `known` words tied with its probability.

    It takes as many uniform 16-bit words as it needs.
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
    if exact != 0 and exact < _SMALLEST_SCALE:
        raise _out_of_range(exact, "larger scale, that is a smaller epsilon")
    if exact > _LARGEST_SCALE:
        raise _out_of_range(exact, "smaller scale, that is a larger epsilon")
    return exact


def _out_of_range(scale: Fraction, other: str) -> InputError:
    told = decimal.Context(prec=6).divide(scale.numerator, scale.denominator)  # it may be beyond all floats
    return InputError(
        f"a noise scale is 0 (no noise) or lies between 2**-20 and 2**50 grid units; got {told}; use a {other}"
    )


@dataclass(frozen=True, slots=True)
class GeometricRow:
    """One or two independent geometric variables, ``P(X = x)`` proportional to ``exp(-x / scale)`` on 0, 1, 2, ...

    Uniform independent words give exactly this law. Words ``0 .. digits-1`` of a draw decide the binary digits of one
    variable, word ``digits`` decides if its quotient is above zero, and as many words follow for a second variable.
    """

    digits: int
    exponents: tuple[Fraction, ...]  # of the coins of one variable, the quotient's last
    prefixes: npt.NDArray[np.uint16]  # first bits of the probability of each word's coin
    prefix_pair: npt.NDArray[np.uint16]  # these, and plus one: their comparisons differ exactly on a tie

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(scale: Fraction, variables: int) -> GeometricRow:
        """Make a row of one or two variables of a scale above 0."""
        digits = 0
        while 2**digits <= _QUOTIENT_EXPONENT * scale:
            digits += 1
        exponents = tuple(Fraction(2**digit) / scale for digit in range(digits + 1))
        one = [leading_bits(exponent, "digit", _WORD_BITS) for exponent in exponents[:-1]]
        one.append(leading_bits(exponents[-1], "quotient", _WORD_BITS))
        prefixes = np.array(one * variables, dtype=_WORD)
        return GeometricRow(digits, exponents, prefixes, np.stack([prefixes, prefixes + np.uint16(1)]))

    @property
    def words(self) -> int:
        """Number of 16-bit words of one draw, without ties."""
        return len(self.prefixes)

    @property
    def stream_bytes(self) -> int:
        """Number of bytes of one draw, without ties."""
        return 2 * len(self.prefixes)

    def coin(self, position: int) -> tuple[Fraction, Coin]:
        """Return the coin that a word decides."""
        index = position % (self.digits + 1)
        return self.exponents[index], "quotient" if index == self.digits else "digit"

    def decode(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> tuple[int, int]:
        """Turn `stream_bytes` uniform bytes into one draw; the second number is 0 if there is one variable.

        On a tie `further` takes the word's position and returns an endless stream of further 16-bit words.
        """
        below = np.frombuffer(stream, _WORD) < self.prefix_pair
        packed = int.from_bytes(np.packbits(below, None, "little").tobytes(), "little")
        words = len(self.prefixes)
        ones = packed & ((1 << words) - 1)
        if packed >> words != ones:
            return self._decode_slowly(stream, further)
        # Without a tie the quotients are zero, and so are their bits: only the digits are left.
        half = self.digits + 1
        return ones & ((1 << half) - 1), ones >> half

    def decode_many(
        self, stream: bytes, further: Callable[[int, int], Iterator[int]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Turn a multiple of `stream_bytes` into draws, each the same as `decode` gives for its part.

        `further` takes the draw's index and the word's position.
        """
        words = np.frombuffer(stream, _WORD)
        prefixes = np.tile(self.prefixes, len(words) // self.words)  # one row is compared fastest
        variables = self._as_integers(words < prefixes)
        ties = [divmod(hit, self.words) for hit in np.flatnonzero(words == prefixes).tolist()]
        # A word that ties with a quotient may need more coins; one that ties with a digit decides that digit alone.
        slow = {draw for draw, position in ties if self.coin(position)[1] == "quotient"}
        for draw in slow:
            part = stream[draw * self.stream_bytes : (draw + 1) * self.stream_bytes]
            slowly = self._decode_slowly(part, functools.partial(further, draw))
            variables[0][draw], variables[1][draw] = slowly
        for draw, position in ties:
            if draw not in slow and flip(self.coin(position), further(draw, position), known=1):
                variable, digit = divmod(position, self.digits + 1)
                variables[variable][draw] += 1 << digit
        return variables

    def _as_integers(
        self, below: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the digits of both variables; the quotients' bits are zero unless a word tied."""
        width = self.digits + 1
        draws, variables = len(below) // self.words, self.words // width
        rows = np.zeros(
            (draws, variables, 64), dtype=np.bool_
        )  # as wide as an integer, so that all are packed at once
        rows[:, :, :width] = below.reshape(draws, variables, width)
        bits = np.packbits(rows, bitorder="little").view(np.dtype("<i8"))
        packed = np.asarray(bits, dtype=np.int64).reshape(draws, variables).T
        return packed[0], packed[1] if variables == 2 else np.zeros_like(packed[0])

    def _decode_slowly(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> tuple[int, int]:
        """Decode a draw in which a word tied: the same law, one coin at a time."""
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
