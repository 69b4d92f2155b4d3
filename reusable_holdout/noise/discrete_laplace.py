"""Discrete Laplace noise on the integers, sampled exactly: the difference of two geometric variables."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.noise.geometric import GeometricRow, checked_scale

__all__ = ["DiscreteLaplace", "GeometricNoise"]


@dataclass(frozen=True, init=False)
class GeometricNoise:
    """Noise made of one or two geometric variables of a scale; the sampler is exact.

    A draw is the first variable less the second, if there is one.

    Parameters
    ----------
    scale : Fraction or float
        Grid units; 0 for no noise at all, otherwise between 2**-20 and 2**50. A float stands for its exact
        value.

    Raises
    ------
    InputError
        If the scale is negative, not finite or out of range.
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
    def stream_bytes(self) -> int:
        """Number of random bytes that one draw reads, without ties."""
        return 0 if self._row is None else self._row.stream_bytes

    def decode(self, stream: bytes, further: Callable[[int], Iterator[int]]) -> int:
        """Turn uniform bytes into one draw.

        Uniform independent words give exactly this distribution.

        Parameters
        ----------
        stream : bytes
            `stream_bytes` uniform bytes.
        further : Callable[[int], Iterator[int]]
            Takes a word's position and returns an endless stream of further 16-bit words; called only on a tie.

        Examples
        --------
        >>> DiscreteLaplace(0).decode(b"", lambda position: iter(()))
        0
        """
        if self._row is None:
            return 0
        first, second = self._row.decode(stream, further)
        return first - second

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
            raise InputError("a distribution of scale 0 reads no stream; use np.zeros")
        first, second = self._row.decode_many(stream, further)
        return first - second


class DiscreteLaplace(GeometricNoise):
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

    _variables = 2

    @functools.cached_property
    def _log_norm(self) -> float:
        """Log of ``1 + q``."""
        return math.log1p(math.exp(-self._rate))

    @property
    def mean(self) -> float:
        """Mean in grid units: 0."""
        return 0.0

    def log_pmf(self, x: int) -> float:
        """Return the log probability of one value.

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
        """Return the log of ``P(X >= m)``.

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
        """Find the smallest integer ``m`` with ``P(X >= m) <= exp(log_probability)``.

        ``|X| <= m - 1`` holds except with probability ``2 exp(log_probability)``.

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
        # The tail is geometric from 1 on, and the mirrored tail below.
        least = math.ceil(self.scale * Fraction(-log_probability - self._log_norm))
        if least >= 1:
            return least
        mirrored = -math.log(-math.expm1(log_probability)) - self._log_norm
        return 1 - math.floor(self.scale * Fraction(mirrored))
