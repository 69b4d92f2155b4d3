"""Normal noise, sampled exactly: digit by digit, and rounded to a grid only after it has been added.

A draw is an integer plus a uniform number with as many digits as needed. Coins with exact probabilities decide whether
a draw is kept, so that its law is exactly normal (Karney 2016). 64 binary digits are drawn at once, and more when a
coin or the rounding of the sum needs them. The result is the rounded sum of a number and a true normal variable. This
is post-processing of the Gaussian mechanism over the reals, so rounding adds nothing to epsilon or delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.mechanisms.samplers.random_words import Digits, RandomWords
from reusable_holdout.noise.discrete_laplace import leading_bits

_HALF = Fraction(1, 2)
_DOUBT = 1e-12  # absolute; the floating-point probability below errs by less than a hundredth of it


class Normal:
    """A standard normal variable whose binary digits are drawn on demand.

    Its law is exactly the normal law, given uniform words.

    Parameters
    ----------
    words : RandomWords
        Source of the bits.

    Notes
    -----
    First ``k`` is drawn with probability proportional to ``exp(-k**2 / 2)``: it is geometric, and kept with probability
    ``exp(-k (k-1) / 2)``. Then ``x`` is drawn uniformly in (0, 1), and kept with probability ``exp(-x (2k + x) / 2)``.
    If either is not kept, both are drawn again. The variable is ``k + x`` with a random sign.

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
    _digits: Digits

    def __init__(self, words: RandomWords) -> None:
        self._words = words
        while not self._drawn():
            pass
        self._sign = 1 if words.share(1, 2) else -1

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return the ends of the interval that contains the variable."""
        ends = [self._sign * (self._whole + self._share(end)) for end in (0, 1)]
        return min(ends), max(ends)

    def refine(self) -> None:
        """Draw 64 more binary digits."""
        self._digits.refine()

    def _drawn(self) -> bool:
        """Draw both parts, and return True if they are kept."""
        self._whole = 0
        while self._words.decay(_HALF):
            self._whole += 1
        if not self._words.decay(Fraction(self._whole * (self._whole - 1), 2)):
            return False
        self._digits = Digits(self._words)
        return self._kept()

    def _kept(self) -> bool:
        """Flip the coin of probability ``exp(-x (2k + x) / 2)``, where only the first digits of ``x`` are known."""
        coin = Digits(self._words)
        x, k = self._digits.known * 2.0**-coin.bits, self._whole
        lead = coin.known * 2.0**-coin.bits - math.exp(-x * (2 * k + x) / 2)
        if lead > _DOUBT:
            return False
        if lead + _DOUBT < 0:
            return True
        while True:
            low, high = (self._exponent(end) for end in (0, 1))
            # The coin's digits are compared with the digits of the smallest and of the largest possible probability.
            if coin.known < leading_bits(high, "quotient", coin.bits):
                return True
            if low and coin.known > leading_bits(low, "quotient", coin.bits):
                return False
            self.refine()
            coin.refine()

    def _exponent(self, end: int) -> Fraction:
        x = self._share(end)
        return x * (2 * self._whole + x) / 2

    def _share(self, end: int) -> Fraction:
        """Return the lower (0) or upper (1) end of the interval that contains the fractional part."""
        return Fraction(self._digits.known + end, 1 << self._digits.bits)


def nearest_with_noise(value: Fraction, *, deviation: Fraction, step: Fraction, words: RandomWords) -> int:
    """Add normal noise to a number and round the sum to a grid.

    The result has exactly the law of a normal variable about the number, rounded to the nearest multiple of the step.

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
        # The sum equals a rounding point with probability zero, so enough further digits always decide.
        low, high = (math.floor((value + deviation * end) / step + _HALF) for end in noise.bounds())
        if low == high:
            return low
        noise.refine()
