"""Coins whose probability is a function of exp(-x), flipped exactly.

A flip compares uniform bits with the binary digits of the probability; digits that are needed are computed on demand
and certified, so that no floating-point number comes between the bits and the outcome (Mironov 2012).
"""

from __future__ import annotations

import decimal
import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WORD_BITS", "Coin", "flip", "leading_bits"]

Coin: TypeAlias = Literal["digit", "quotient"]

WORD_BITS = 16
_WORD_MASK = 0xFFFF


@functools.lru_cache(maxsize=4096)
def leading_bits(exponent: Fraction, coin: Coin, bits: int) -> int:
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
    exponent = min(exponent, Fraction(bits))  # from there on all these digits are 0
    precision = bits + 24
    while True:
        low, high = _least_and_most(exponent, coin, bits, precision)
        if low == high:
            return low
        precision *= 2


def _least_and_most(exponent: Fraction, coin: Coin, bits: int, precision: int) -> tuple[int, int]:
    """Ends of what so many decimals leave open: the first binary digits lie between them, both included."""
    # A context of our own: the caller's may round or trap otherwise.
    with decimal.localcontext(decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)):
        power = (-(decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator))).exp()
        value = Fraction(power / (1 + power) if coin == "digit" else power)
    # Each operation errs by half a unit in the last place, and exp multiplies the error of x by x.
    error = (exponent + 4) / Fraction(10) ** (precision - 1)
    return math.floor(value * (1 - error) * (1 << bits)), math.floor(value * (1 + error) * (1 << bits))


def flip(coin: tuple[Fraction, Coin], words: Iterator[int], *, known: int) -> bool:
    """Flip a coin exactly, given that the first `known` words tied with its probability.

    Parameters
    ----------
    coin : (Fraction, Coin)
        Exponent and kind.
    words : Iterator[int]
        Uniform 16-bit words; as many are taken as it needs.
    known : int
        Words that were compared already, all ties.
    """
    exponent, kind = coin
    while True:
        known += 1
        bits = leading_bits(exponent, kind, WORD_BITS * known) & _WORD_MASK
        word = next(words)
        if word < bits:
            return True
        if word > bits:
            return False
