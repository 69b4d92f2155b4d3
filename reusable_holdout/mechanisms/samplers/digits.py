"""A uniform number of unlimited binary digits, of which as many are drawn as a decision needs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Digits", "Words"]

_WORD_BITS = 64


class Words(Protocol):
    """Where uniform 64-bit words come from: `RandomWords`, or the further words of a keyed draw."""

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Give the next words."""


class Digits:
    """A uniform number in [0, 1] of which more and more binary digits become known.

    Whatever is decided by it has exactly the probability that was asked for: where the digits known so far do not
    decide, more are drawn.

    Parameters
    ----------
    words : Words
        Source of the bits.
    first : int, optional
        The first 64 digits, where they were drawn already.

    Attributes
    ----------
    known, bits : int
        It lies in ``[known, known + 1] / 2**bits``.

    Examples
    --------
    >>> from reusable_holdout.mechanisms import RandomWords
    >>> number = Digits(RandomWords(seed=1))
    >>> number.refine()
    >>> number.bits
    128
    """

    __slots__ = ("_words", "bits", "known")

    def __init__(self, words: Words, first: int | None = None) -> None:
        self._words = words
        self.known, self.bits = int(words.take(1)[0]) if first is None else first, _WORD_BITS

    def refine(self) -> None:
        """Draw 64 more binary digits."""
        self.known = self.known << _WORD_BITS | int(self._words.take(1)[0])
        self.bits += _WORD_BITS

    def below(self, bounds: Callable[[int], tuple[Fraction, Fraction]]) -> bool:
        """Say whether it lies below a number that is known by ever closer bounds.

        Parameters
        ----------
        bounds : Callable[[int], (Fraction, Fraction)]
            For a number of digits, bounds of the number from below and above, which close in on it as digits grow.
        """
        while True:
            low, high = bounds(self.bits)
            if self.known + 1 <= low * 2**self.bits:
                return True
            if self.known >= high * 2**self.bits:
                return False
            self.refine()
