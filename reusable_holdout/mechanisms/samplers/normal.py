"""Normal noise, sampled exactly: digit after digit, and rounded to a grid only after it has been added.

A draw is an integer and a uniform number of unlimited digits, chosen by coins that have exactly the probabilities of
the normal law (Karney 2016). 64 binary digits are drawn at once and more on demand, wherever a coin or the rounding of
the sum needs them. What comes out is the sum of a number and a true normal variable, rounded: post-processing of the
Gaussian mechanism over the reals, so that no rounding adds to epsilon or delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.noise.geometric import leading_bits

__all__ = ["Normal", "nearest_with_noise"]

_WORD_BITS = 64
_HALF = Fraction(1, 2)
_DOUBT = 1e-12  # absolute; the floating-point probability below errs by less than a hundredth of it


class Normal:
    """A standard normal variable of which more and more binary digits become known.

    Its law is exactly the normal law, given uniform words.

    Parameters
    ----------
    words : RandomWords
        Source of the bits.

    Notes
    -----
    ``k`` with probability proportional to ``exp(-k**2 / 2)``: geometric, kept with ``exp(-k (k-1) / 2)``. Then ``x``
    uniform in (0, 1), kept with ``exp(-x (2k + x) / 2)``, or all is drawn again. The variable is ``k + x`` with a
    random sign.

    References
    ----------
    .. [1] Karney (2016), "Sampling exactly from the normal distribution", Algorithm N.

    Examples
    --------
    >>> from reusable_holdout.mechanisms import RandomWords
    >>> low, high = Normal(RandomWords(seed=1)).bounds()
    >>> 0 < high - low < 1e-19
    True
    """

    _whole: int
    _digits: int
    _bits: int

    def __init__(self, words: RandomWords) -> None:
        self._words = words
        while not self._drawn():
            pass
        self._sign = 1 if words.share(1, 2) else -1

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Ends of the interval in which it is known to lie."""
        ends = [self._sign * (self._whole + Fraction(self._digits + end, 1 << self._bits)) for end in (0, 1)]
        return min(ends), max(ends)

    def refine(self) -> None:
        """Draw 64 more binary digits."""
        self._digits = self._digits << _WORD_BITS | int(self._words.take(1)[0])
        self._bits += _WORD_BITS

    def _drawn(self) -> bool:
        """Draw all again, and say whether it is kept."""
        self._whole = 0
        while self._words.decay(_HALF):
            self._whole += 1
        if not self._words.decay(Fraction(self._whole * (self._whole - 1), 2)):
            return False
        self._digits, self._bits = int(self._words.take(1)[0]), _WORD_BITS
        return self._kept()

    def _kept(self) -> bool:
        """Flip the coin of probability ``exp(-x (2k + x) / 2)`` of a number known in part."""
        coin, bits = int(self._words.take(1)[0]), _WORD_BITS
        x, k = self._digits * 2.0**-_WORD_BITS, self._whole
        lead = coin * 2.0**-_WORD_BITS - math.exp(-x * (2 * k + x) / 2)
        if lead > _DOUBT:
            return False
        if lead + _DOUBT < 0:
            return True
        while True:
            low, high = (self._exponent(end) for end in (0, 1))
            # Digits of the coin's number against those of the least and of the largest probability, which may be 1.
            if coin < leading_bits(high, "quotient", bits):
                return True
            if low and coin > leading_bits(low, "quotient", bits):
                return False
            self.refine()
            coin, bits = coin << _WORD_BITS | int(self._words.take(1)[0]), bits + _WORD_BITS

    def _exponent(self, end: int) -> Fraction:
        x = Fraction(self._digits + end, 1 << self._bits)
        return x * (2 * self._whole + x) / 2


def nearest_with_noise(value: Fraction, *, deviation: Fraction, step: Fraction, words: RandomWords) -> int:
    """Add normal noise to a number and round the sum to a grid.

    Exactly the law of a normal variable about the number, rounded to the nearest multiple of the step.

    Parameters
    ----------
    value : Fraction
        Real units.
    deviation : Fraction
        Standard deviation of the noise; above 0.
    step : Fraction
        Width of a grid step; above 0.
    words : RandomWords
        Source of the bits.

    Returns
    -------
    int
        Grid units.

    Examples
    --------
    >>> from reusable_holdout.mechanisms import RandomWords
    >>> half = Fraction(1, 2)
    >>> -10 < nearest_with_noise(half, deviation=Fraction(1), step=half, words=RandomWords(seed=1)) < 12
    True
    """
    noise = Normal(words)
    while True:
        # A tie with a rounding point has probability zero, so that further digits decide.
        low, high = (math.floor((value + deviation * end) / step + _HALF) for end in noise.bounds())
        if low == high:
            return low
        noise.refine()
