"""Discrete exponential noise on the integers: one-sided, half the variance of discrete Laplace noise of its scale."""

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

__all__ = ["DiscreteExponential"]


@dataclass(frozen=True, init=False)
class DiscreteExponential:
    """Discrete exponential (geometric) distribution: ``P(X = x)`` proportional to ``exp(-x / scale)`` on 0, 1, 2, ...

    Its probabilities fall by at most ``exp(-D / scale)`` when the argument grows by ``D``, which is all that the sparse
    vector technique asks of a noise; alone, added to a number that is released, it gives no privacy. The sampler is
    exact.

    Parameters
    ----------
    scale : Fraction or float
        Grid units; 0 for no noise at all, otherwise between 2**-20 and 2**50. A float stands for its exact value.

    Raises
    ------
    InputError
        If the scale is negative, not finite or out of range.

    Notes
    -----
    With ``q = exp(-1/scale)``: ``P(X = x) = q**x (1-q)``, ``P(X >= m) = q**m`` for ``m >= 0``, mean ``q / (1-q)``.

    References
    ----------
    .. [1] Liu, Wang, Liu, Li, Chen (2025), "Accuracy-enhanced sparse vector technique with exponential noise and
       optimal threshold correction", PVLDB 18(2).

    Examples
    --------
    >>> DiscreteExponential(3).tail_quantile(-20.0)
    60
    """

    scale: Fraction

    def __init__(self, scale: Fraction | float) -> None:
        object.__setattr__(self, "scale", checked_scale(scale))

    @functools.cached_property
    def _rate(self) -> float:
        return float(1 / self.scale) if self.scale else math.inf

    @functools.cached_property
    def _row(self) -> GeometricRow | None:
        return GeometricRow.of(self.scale, 1) if self.scale else None

    @property
    def mean(self) -> float:
        """Mean, grid units; about ``scale - 1/2``.

        Examples
        --------
        >>> round(DiscreteExponential(10).mean, 4)
        9.5083
        """
        return 1.0 / math.expm1(self._rate) if self.scale else 0.0

    def log_pmf(self, x: int) -> float:
        """Log probability of one value.

        Exact up to floating-point rounding of the closed form.

        Parameters
        ----------
        x : int
            Grid units.

        Examples
        --------
        >>> DiscreteExponential(1).log_pmf(-1)
        -inf
        """
        if x < 0:
            return -math.inf
        if not self.scale:
            return 0.0 if x == 0 else -math.inf
        return -x * self._rate + math.log(-math.expm1(-self._rate))

    def log_tail(self, m: int) -> float:
        """Log of ``P(X >= m)``.

        Exact up to floating-point rounding of the closed form, however far in the tail.

        Parameters
        ----------
        m : int
            Grid units.

        Examples
        --------
        >>> DiscreteExponential(2).log_tail(10)
        -5.0
        """
        return -m * self._rate if m > 0 else 0.0

    def tail_quantile(self, log_probability: float) -> int:
        """Smallest integer ``m`` with ``P(X >= m) <= exp(log_probability)``.

        So ``X <= m - 1`` except with this probability.

        Parameters
        ----------
        log_probability : float
            Log of a probability below one; values like -2000 are as good as -3.

        Raises
        ------
        InputError
            If `log_probability` is not below zero or not finite.

        Examples
        --------
        >>> DiscreteExponential(0).tail_quantile(-1.0)
        1
        """
        if not (math.isfinite(log_probability) and log_probability < 0.0):
            raise InputError(f"log_probability is finite and below 0; got {log_probability}")
        return max(1, math.ceil(self.scale * Fraction(-log_probability)))

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
        >>> DiscreteExponential(0).decode(b"", lambda position: iter(()))
        0
        """
        return 0 if self._row is None else self._row.decode(stream, further)[0]

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
        >>> law = DiscreteExponential(2)
        >>> law.decode_many(bytes([200]) * law.stream_bytes * 2, lambda draw, position: iter(())).tolist()
        [0, 0]
        """
        if self._row is None:
            raise InputError("a distribution of scale 0 reads no stream; use np.zeros")
        return self._row.decode_many(stream, further)[0]
