"""Discrete Laplace noise on the integers, sampled exactly: the difference of two geometric variables."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.noise.geometric import GeometricRow, checked_scale

__all__ = ["DiscreteLaplace"]


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

    def __init__(self, scale: Fraction | float) -> None:
        object.__setattr__(self, "scale", checked_scale(scale))

    @functools.cached_property
    def _rate(self) -> float:
        return float(1 / self.scale) if self.scale else math.inf

    @functools.cached_property
    def _log_norm(self) -> float:
        """Log of ``1 + q``."""
        return math.log1p(math.exp(-self._rate))

    @functools.cached_property
    def _row(self) -> GeometricRow | None:
        return GeometricRow.of(self.scale, 2) if self.scale else None

    @property
    def mean(self) -> float:
        """Mean, grid units: 0."""
        return 0.0

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
        # From 1 on the tail is geometric, below it the mirrored tail is.
        least = math.ceil(self.scale * Fraction(-log_probability - self._log_norm))
        if least >= 1:
            return least
        mirrored = -math.log(-math.expm1(log_probability)) - self._log_norm
        return 1 - math.floor(self.scale * Fraction(mirrored))

    @property
    def stream_bytes(self) -> int:
        """Bytes of random stream that one draw reads, ties excepted."""
        return 0 if self._row is None else self._row.stream_bytes

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
        if self._row is None:
            return 0
        up, down = self._row.decode(stream, further)
        return up - down

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
        if self._row is None:
            raise InputError("a distribution of scale 0 reads no stream; use np.zeros")
        up, down = self._row.decode_many(stream, further)
        return up - down
