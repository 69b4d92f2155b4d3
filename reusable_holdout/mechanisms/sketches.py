"""A sketch that counts distinct items, and whose own randomness makes the count private."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.mechanisms.accounting.bisection import largest_between
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.noise.keyed import key_from_seed, new_key

_MOST_REGISTERS = 2**16
_MOST_PHANTOMS = 2**24  # in all registers together; each needs a random draw
_LARGEST_RANK = 65  # the rank of 64 bits that are all zero
_ROUND_UP = 1 + 2.0**-40  # pays for a few floating-point operations


class DistinctSketch:
    """A private count of distinct items (Flajolet-Martin sketch), which keeps only a small number in each register.

    The estimate is epsilon-differentially private. Neighbouring data sets differ by one item that occurs, however
    often, in only one of them: by one visitor, not by one visit. If neighbours differ by a replaced item, the estimate
    is (2 epsilon)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter; finite, > 0.
    registers : int
        Number ``m`` of registers, a power of two up to 2**16. The relative error falls with the square root of m, but
        each register starts with about ``1/epsilon`` made-up (phantom) items.
    seed : int, optional
        Seed for a reproducible sketch, which protects nobody. By default the sketch is unpredictable.

    Raises
    ------
    InputError
        If a parameter is out of range, or there would be more than 2**24 phantoms.

    Notes
    -----
    A hash function with a secret key assigns each item a register and a rank, with ``P(rank <= v) = F(v) = 1 - 2**-v``.
    A register keeps the largest rank. It starts with the ranks of ``k = ceil(1 / (exp(e) - 1))`` phantom items, where
    ``e`` is epsilon, and is never below the smallest ``v`` with ``F(v) >= exp(-e)``. If a register has n items,
    phantoms included, its rank is ``v`` with probability ``F(v)**n - F(v - 1)**n``. One item more changes this
    probability by a factor between ``F(v)`` and ``(n + 1) / n``, that is between ``exp(-e)`` and ``exp(e)``. The other
    registers do not change. Nothing is rounded, because ranks are read off random bits.

    The estimate is the maximum likelihood estimate for registers with Poisson numbers of items. With ``n`` items its
    standard error is about ``1.04 (n + m k) / sqrt(m)``. Laplace noise on an exact count has a much smaller error, but
    an exact count needs a list of all items.

    One sketch releases one number: a second estimate after more items would release the same ranks twice.

    References
    ----------
    .. [1] Smith, Song and Thakurta (2020), "The Flajolet-Martin sketch itself preserves differential privacy: private
       counting with minimal space", Algorithm 1.
    .. [2] Flajolet, Fusy, Gandouet and Meunier (2007), "HyperLogLog".
    .. [3] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       section 2.2, use (iv).

    Examples
    --------
    >>> sketch = DistinctSketch(epsilon=0.5, registers=256, seed=1)
    >>> sketch.add(visitor % 20_000 for visitor in range(60_000))
    >>> 15_000 < sketch.estimate() < 25_000
    True
    """

    def __init__(self, *, epsilon: float, registers: int = 64, seed: int | None = None) -> None:
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InputError(f"epsilon is finite and above 0; got {epsilon}")
        if not (1 <= registers <= _MOST_REGISTERS and registers & (registers - 1) == 0):
            raise InputError(f"registers is a power of two up to {_MOST_REGISTERS}; got {registers}")
        self._phantoms = max(1, math.ceil(_inverse_growth(epsilon) * _ROUND_UP))
        if registers * self._phantoms > _MOST_PHANTOMS:
            raise InputError(
                f"registers / epsilon is at most {_MOST_PHANTOMS}, to limit the sketch's size; got {registers} and "
                f"{epsilon}; use fewer registers"
            )
        self._least = max(1, math.ceil(-math.log2(-math.expm1(-epsilon) / _ROUND_UP)))
        self._key = new_key() if seed is None else key_from_seed(seed)
        words = RandomWords(seed).take(registers * self._phantoms).reshape(registers, self._phantoms)
        self._ranks = [
            max(self._least, _LARGEST_RANK - smallest.bit_length()) for smallest in words.min(axis=1).tolist()
        ]
        self._told: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(registers={len(self._ranks)})"

    def __reduce__(self) -> NoReturn:
        raise HandleError("a sketch cannot be pickled or copied: two copies would use the same noise")

    @property
    def phantoms(self) -> int:
        """Number of made-up items in each register, which hide the real ones."""
        return self._phantoms

    @property
    def least(self) -> int:
        """Lowest rank of a register."""
        return self._least

    def add(self, items: Iterable[str | bytes | int]) -> None:
        """Count items; an item that was counted before changes nothing.

        Parameters
        ----------
        items : Iterable[str or bytes or int]
            The items. A number and a text with the same digits are different items.

        Raises
        ------
        InputError
            If an item has another type; the items before it are counted.
        HandleError
            If the estimate has been released.
        """
        if self._told is not None:
            raise HandleError(
                "the estimate of this sketch was released; nothing was counted; make another sketch"
            )
        for item in items:
            register, rank = self._place(item)
            self._ranks[register] = max(self._ranks[register], rank)

    def estimate(self) -> float:
        """Return an estimate of the number of distinct items; afterwards the sketch accepts no more items.

        Returns
        -------
        float
            At least 0.
        """
        if self._told is None:
            self._told = len(self._ranks) * likeliest_rate(
                self._ranks, phantoms=self._phantoms, least=self._least
            )
        return self._told

    def _place(self, item: str | bytes | int) -> tuple[int, int]:
        """Return the register and the rank of an item."""
        if isinstance(item, str):
            kind, data = b"s", item.encode(errors="surrogatepass")
        elif isinstance(item, bytes):
            kind, data = b"b", item
        elif isinstance(item, int | np.integer):
            kind, data = b"i", str(int(item)).encode()
        else:
            raise InputError("an item is a text, bytes or a whole number; got something else")
        digest = hashlib.blake2b(data, key=self._key, person=kind, digest_size=16).digest()
        bits = int.from_bytes(digest, "little")  # 64 for the register, 64 for the rank
        return bits % len(self._ranks), _LARGEST_RANK - (bits >> 64).bit_length()


def likeliest_rate(ranks: Iterable[int], *, phantoms: int, least: int) -> float:
    """Compute the maximum likelihood estimate of the mean number of items in a register, given all ranks.

    Parameters
    ----------
    ranks : Iterable[int]
        Ranks of the registers.
    phantoms : int
        Number of made-up items in each register, which hide the real ones.
    least : int
        Lowest rank of a register.

    Notes
    -----
    With ``k`` phantoms, ``r`` items on average and ``F(v) = 1 - 2**-v``, a rank is at most ``v`` with probability
    ``F(v)**k exp(-r 2**-v)``. The log-likelihood is concave in ``r``; bisection finds where its slope is 0.
    """
    found = Counter(ranks)
    # P(all phantoms below the rank) / P(none above it), in logs; a register at `least` has nothing below it
    shares = {
        rank: phantoms * (math.log1p(-(2.0 ** (1 - rank))) - math.log1p(-(2.0**-rank)))
        for rank in found
        if rank > least
    }

    def slope(rate: float) -> float:
        total = 0.0
        for rank, count in found.items():
            width = 2.0**-rank
            below = 0.0
            if rank > least:
                log_share = shares[rank] - rate * width
                below = math.exp(log_share) / -math.expm1(log_share)
            total += count * width * (below - 1)
        return total

    return largest_between(lambda rate: slope(rate) > 0, 0.0, 2.0**_LARGEST_RANK)


def _inverse_growth(epsilon: float) -> float:
    """Compute ``1 / (exp(epsilon) - 1)``; it is 0 if it is too small for a float."""
    return math.exp(-epsilon) / -math.expm1(-epsilon)
