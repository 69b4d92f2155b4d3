"""Discrete exponential noise on the integers: one-sided, with half the variance of discrete Laplace noise."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.errors import InputError
from reusable_holdout.noise.discrete_laplace import GeometricNoise


class DiscreteExponential(GeometricNoise):
    """Discrete exponential (geometric) distribution: ``P(X = x)`` proportional to ``exp(-x / scale)`` on 0, 1, 2, ...

    If the argument grows by ``D``, the probability falls by the factor ``exp(-D / scale)`` and no more. This is enough
    for the sparse vector technique. But a number that is released with this noise is not private. The sampler is exact.

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

    def log_pmf(self, x: int) -> float:
        """Return the log probability of one value.

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
        """Return the log of ``P(X >= m)``.

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
        """Find the smallest integer ``m`` with ``P(X >= m) <= exp(log_probability)``.

        So ``X <= m - 1`` holds with a probability of at least ``1 - exp(log_probability)``.

        Parameters
        ----------
        log_probability : float
            Log of a probability below one; the result is as accurate for -2000 as for -3.

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
