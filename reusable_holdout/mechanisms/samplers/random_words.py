"""A stream of uniform random bits, with exact coins, uniform numbers and permutations made from them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.noise.discrete_laplace import flip
from reusable_holdout.noise.keyed import key_from_seed, new_key

_DOMAIN = b"reusable-holdout/words/1"
_BLOCK = 8192  # words fetched at a time
_WORD_BITS = 64
_DOUBT = 1e-12  # relative; floating-point exp of an exponent below 64 errs by less than 2e-14


class RandomWords:
    """A stream of uniform 64-bit words: SHAKE-256 of a key and a counter.

    Without the key nobody can distinguish the words from fair coin flips. Every choice made from them has exactly its
    stated probability: floating-point numbers decide only the clear cases.

    Parameters
    ----------
    seed : int, optional
        Seed for reproducible choices, which protect nobody. By default the words are unpredictable.

    Examples
    --------
    >>> words = RandomWords(seed=0)
    >>> 0 <= words.below(10) < 10
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self.__key = new_key() if seed is None else key_from_seed(seed)
        self._blocks = itertools.count()
        self._words = np.zeros(0, dtype=np.uint64)

    def __repr__(self) -> str:
        return "RandomWords(key=<hidden>)"

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next words.

        Parameters
        ----------
        count : int
            Number of words.

        Returns
        -------
        ndarray of uint64, shape (count,)

        Examples
        --------
        >>> RandomWords(seed=1).take(3).shape
        (3,)
        """
        missing = count - len(self._words)
        blocks = [self._block() for _ in range(-(-missing // _BLOCK))]
        if blocks:
            self._words = np.concatenate([self._words, *blocks])
        taken, self._words = self._words[:count], self._words[count:]
        return taken

    def _block(self) -> npt.NDArray[np.uint64]:
        counter = next(self._blocks).to_bytes(8, "big")
        stream = hashlib.shake_256(_DOMAIN + self.__key + counter).digest(8 * _BLOCK)
        return np.frombuffer(stream, np.dtype("<u8")).astype(np.uint64)

    def below(self, count: int) -> int:
        """Draw a uniform integer in ``0 .. count-1``.

        Parameters
        ----------
        count : int
            At least 1, at most 2**63.

        Raises
        ------
        InputError
            If `count` is out of range.

        Examples
        --------
        >>> RandomWords(seed=1).below(1)
        0
        """
        if not 1 <= count <= 2**63:
            raise InputError(f"count lies between 1 and 2**63; got {count}")
        largest = 2**64 // count * count - 1  # words above it would favour small remainders
        while (word := int(self.take(1)[0])) > largest:
            pass
        return word % count

    def permutation(self, count: int) -> npt.NDArray[np.int64]:
        """Draw a uniform permutation of ``0 .. count-1``.

        Parameters
        ----------
        count : int
            At least 0.

        Returns
        -------
        ndarray of int64, shape (count,)

        Examples
        --------
        >>> sorted(RandomWords(seed=1).permutation(3).tolist())
        [0, 1, 2]
        """
        while True:
            words = self.take(count)
            order = np.argsort(words)
            if not (np.diff(words[order]) == 0).any():  # distinct words: every order is equally likely
                return order.astype(np.int64)

    def share(self, numerator: int, denominator: int) -> bool:
        """Flip a coin whose probability is a ratio of integers.

        Parameters
        ----------
        numerator, denominator : int
            ``0 <= numerator <= denominator``, and a denominator of at least 1. Both may be of any size.

        Raises
        ------
        InputError
            If the ratio is not a probability.

        Examples
        --------
        >>> RandomWords(seed=1).share(1, 1)
        True
        """
        if not 0 <= numerator <= denominator or denominator < 1:
            raise InputError(f"a probability lies between 0 and 1; got {numerator}/{denominator}")
        remainder = numerator
        while 0 < remainder < denominator:  # digit by digit, 64 binary digits at a time
            digits, remainder = divmod(remainder << 64, denominator)
            word = int(self.take(1)[0])
            if word < digits:
                return True
            if word > digits:
                return False
        return remainder == denominator

    def decay(self, exponent: Fraction) -> bool:
        """Flip a coin of probability ``exp(-exponent)``.

        Parameters
        ----------
        exponent : Fraction
            At least 0.

        Raises
        ------
        InputError
            If the exponent is negative.

        Examples
        --------
        >>> from fractions import Fraction
        >>> RandomWords(seed=1).decay(Fraction(0))
        True
        """
        return self._decay(exponent, int(self.take(1)[0]))

    def first_decay(self, exponents: npt.NDArray[np.float64], exact: Callable[[int], Fraction]) -> int | None:
        """Flip a row of coins and return the index of the first that falls heads; None if none does.

        Coin ``i`` has probability ``exp(-exact(i))``; the coins after the first head are not flipped.

        Parameters
        ----------
        exponents : ndarray of float, shape (m,)
            The exact exponents, each rounded to the nearest double.
        exact : Callable[[int], Fraction]
            Returns the exponent of a coin, at least 0; it is called only for coins that may fall heads.

        Raises
        ------
        InputError
            If the exponent of a coin that has to be decided exactly is negative.

        Examples
        --------
        >>> from fractions import Fraction
        >>> RandomWords(seed=1).first_decay(np.array([9e9, 0.0]), [Fraction(9 * 10**9), Fraction(0)].__getitem__)
        1
        """
        words = self.take(len(exponents))
        uniform = words.astype(np.float64) * 2.0**-64
        probability = np.exp(-exponents)
        # Coins that are clearly tails are skipped; all others are decided exactly.
        likely = np.flatnonzero(uniform <= probability * (1 + _DOUBT))
        for index in likely.tolist():
            if self._decay(exact(index), int(words[index])):
                return int(index)
        return None

    def _decay(self, exponent: Fraction, word: int) -> bool:
        """Flip a coin whose first 64 bits have been drawn."""
        if exponent < 0:
            raise InputError("an exponent is at least 0; got a negative one")
        if exponent == 0:
            return True
        return flip((exponent, "quotient"), itertools.chain(_quarters(word), self.sixteen_bits()), known=0)

    def sixteen_bits(self) -> Iterator[int]:
        """Yield 16-bit words without end; a 64-bit word is taken from the stream for every four of them."""
        while True:
            yield from _quarters(int(self.take(1)[0]))


def _quarters(word: int) -> list[int]:
    """Split a 64-bit word into four 16-bit words, the leading one first."""
    return [word >> shift & 0xFFFF for shift in (48, 32, 16, 0)]


class Digits:
    """A uniform number in [0, 1] whose binary digits are drawn on demand.

    Every decision made with it has exactly its stated probability: if the digits known so far do not decide, more are
    drawn.

    Parameters
    ----------
    words : RandomWords
        Source of the bits.
    first : int, optional
        The first 64 digits, if they were drawn already.

    Attributes
    ----------
    known, bits : int
        The number lies in ``[known, known + 1] / 2**bits``.

    Examples
    --------
    >>> number = Digits(RandomWords(seed=1))
    >>> number.refine()
    >>> number.bits
    128
    """

    __slots__ = ("_words", "bits", "known")

    def __init__(self, words: RandomWords, first: int | None = None) -> None:
        self._words = words
        self.known, self.bits = int(words.take(1)[0]) if first is None else first, _WORD_BITS

    def refine(self) -> None:
        """Draw 64 more binary digits."""
        self.known = self.known << _WORD_BITS | int(self._words.take(1)[0])
        self.bits += _WORD_BITS
