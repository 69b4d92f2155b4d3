"""Confidence bound of the difference of two models on the same rows: rows on which they agree do not count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.validity.certificate import Numbers

__all__ = ["PairedBound", "paired_rate"]

_BISECTIONS = 54
_OUTWARDS = 1e-12  # the rounding of a rate, in units of the difference


def paired_rate(observed: Numbers, mean: Numbers, *, disagreement: float) -> Numbers:
    """Exponent of the chance that a mean of differences is as large as observed: at most ``exp(-rows * rate)``.

    Valid for independent differences in [-1, 1] of the given mean whose absolute values have a mean of at most
    `disagreement`, on either side of the mean.

    Parameters
    ----------
    observed, mean : float or array
        In [-disagreement, disagreement]; the rate is 0 where they are equal.
    disagreement : float
        Bound ``p`` on the probability that a row's losses differ, in (0, 1].

    Notes
    -----
    ``exp(l d) <= 1 - |d| + (|d| + d)/2 exp(l) + (|d| - d)/2 exp(-l)`` for d in [-1, 1], so the moment generating
    function is at most ``1 - p + (p + m)/2 exp(l) + (p - m)/2 exp(-l)``, that of a difference in {-1, 0, 1}, and the
    rate is its Legendre transform; ``x = exp(l)`` solves ``(p + m)/2 (1 - v) x^2 - v (1 - p) x - (p - m)/2 (1 + v) =
    0``. At p = 1 it is the binomial's kl.

    References
    ----------
    .. [1] Hoeffding (1963), "Probability inequalities for sums of bounded random variables", section 5.

    Examples
    --------
    >>> round(float(paired_rate(0.02, 0.0, disagreement=0.1)), 6)
    0.001995
    """
    v, m = np.asarray(observed, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    up, down = (disagreement + m) / 2.0, (disagreement - m) / 2.0
    rest = 1.0 - disagreement
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a, b, c = up * (1.0 - v), -v * rest, -down * (1.0 + v)
        root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
        # the stable form of the positive root, whatever the sign of b
        x = np.where(b < 0, (-b + root) / (2.0 * a), -2.0 * c / (b + root))
        rate = v * np.log(x) - np.log(rest + up * x + down / x)
        rate = np.where(v >= 1.0, -np.log(up), np.where(v <= -1.0, -np.log(down), rate))
    rate = np.where(np.isfinite(rate), np.maximum(rate, 0.0), np.where(v == m, 0.0, np.inf))
    return rate if rate.ndim else float(rate)


@dataclass(frozen=True, slots=True)
class PairedBound:
    """Confidence bound of a mean difference, normalised from [-1, 1] to [0, 1].

    Each side misses the population value with probability at most ``exp(log_level)``.

    Parameters
    ----------
    rows : int
        Number of holdout rows, >= 1.
    disagreement : float
        Bound on the probability that the two models' losses differ on a row, in (0, 1]; it is declared, for instance
        from unlabelled rows, and not read off the holdout.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> import math
    >>> bound = PairedBound(rows=10_000, disagreement=0.1)
    >>> width = bound.upper(0.5, log_level=math.log(0.025)) - 0.5
    >>> round(2 * width, 4)  # as a difference; models that always differ: 0.0272
    0.0086
    """

    rows: int
    disagreement: float

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError(f"rows is at least 1; got {self.rows}")
        if not 0.0 < self.disagreement <= 1.0:
            raise InputError(f"disagreement is a probability in (0, 1]; got {self.disagreement}")

    def lower(self, value: Numbers, *, log_level: Numbers) -> Numbers:
        """Lower bound for the population value, in [0, 1], when the observed one is at least this."""
        v = self._difference(value)
        needed = -np.asarray(log_level, dtype=np.float64) / self.rows
        v, needed = np.broadcast_arrays(v, needed)
        low, high = (
            np.full(v.shape, -self.disagreement),
            v.copy(),
        )  # rate is infinite or large at low, 0 at high
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            excluded = np.asarray(paired_rate(v, middle, disagreement=self.disagreement)) > needed
            low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)
        return self._unit(low - _OUTWARDS, value, log_level)

    def upper(self, value: Numbers, *, log_level: Numbers) -> Numbers:
        """Upper bound for the population value, in [0, 1], when the observed one is at most this."""
        return 1.0 - self.lower(1.0 - value, log_level=log_level)

    def of_rows(self, rows: int) -> PairedBound:
        """Bound of as many rows of the same kind."""
        return PairedBound(rows, self.disagreement)

    def reach_low(self, target: Numbers, *, log_level: Numbers) -> Numbers:
        """Observed value from which on ``lower`` reaches the target; -inf: always, +inf: never."""
        mean = 2.0 * np.asarray(target, dtype=np.float64) - 1.0 + _OUTWARDS
        needed = -np.asarray(log_level, dtype=np.float64) / self.rows
        mean, needed = np.broadcast_arrays(mean, needed)
        inside = np.clip(mean, -self.disagreement, self.disagreement)
        low, high = inside.copy(), np.full(inside.shape, self.disagreement)
        possible = np.asarray(paired_rate(high, inside, disagreement=self.disagreement)) >= needed
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            reached = np.asarray(paired_rate(middle, inside, disagreement=self.disagreement)) >= needed
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        found = np.where(possible, (high + _OUTWARDS + 1.0) / 2.0, np.inf)
        found = np.where(
            mean <= -self.disagreement, -np.inf, np.where(mean > self.disagreement, np.inf, found)
        )
        scalar = not (isinstance(target, np.ndarray) or isinstance(log_level, np.ndarray))
        return float(found) if scalar else found

    def reach_high(self, target: Numbers, *, log_level: Numbers) -> Numbers:
        """Observed value up to which ``upper`` stays within the target; +inf: always, -inf: never."""
        return 1.0 - self.reach_low(1.0 - target, log_level=log_level)

    def _difference(self, value: Numbers) -> NDArray[np.float64]:
        """Differences that the declared disagreement allows; one beyond has come by chance."""
        return np.clip(2.0 * np.asarray(value, dtype=np.float64) - 1.0, -self.disagreement, self.disagreement)

    def _unit(self, difference: NDArray[np.float64], *given: Numbers) -> Numbers:
        units = np.clip((difference + 1.0) / 2.0, 0.0, 1.0)
        return units if any(isinstance(one, np.ndarray) for one in given) else float(units)
