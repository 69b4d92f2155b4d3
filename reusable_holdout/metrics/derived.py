"""Statistics made of other statistics: of some rows only, the root of a mean, and those with the opposite sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.metrics.samples import Counted, Explained, Likely, Ranked
from reusable_holdout.metrics.scoring import GRID, GRID_BITS, Family, Mean, Statistic

__all__ = ["ExplainedAbout", "Negated", "NegatedMean", "OfRows", "RootMean", "averaged", "negated_statistic"]

_FINE_BITS = 52  # of each row's term: a root would show the rounding to 32 bits


class OfRows(Statistic):
    """A statistic of the rows at the chosen places; the others do not matter.

    Which rows these are, or at least how many, is public. Replacing one of them changes it as it changes the
    statistic, replacing another one changes nothing.
    """

    def __init__(
        self, rows: int, chosen: NDArray[Any], statistic: Statistic, *, family: Family | None = None
    ) -> None:
        self.rows = rows
        self.sensitivity = statistic.sensitivity
        self.sum_of_squares = statistic.sum_of_squares
        self.family = family or statistic.family
        self.effective_rows = statistic.effective_rows
        self.is_ratio, self.only_as_ratio = statistic.is_ratio, statistic.only_as_ratio
        if statistic.part is not None:  # a class's rows, in a slice
            places, statistic = statistic.part
            chosen = chosen[places]
        self.chosen, self.inner = chosen, statistic
        self.part = chosen, statistic

    def units(self, query: NDArray[Any]) -> int:
        """Grid units of the chosen rows."""
        return self.inner.units(query[self.chosen])

    def value(self, query: NDArray[Any]) -> float:
        """Value of the chosen rows."""
        return self.inner.value(query[self.chosen])

    def sample(self, query: NDArray[Any]) -> Counted | Explained | Ranked:
        """Sample of the chosen rows."""
        return self.inner.sample(query[self.chosen])

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """What is likely of the chosen rows."""
        return self.inner.likely(prevalence, mean)


class RootMean(Statistic):
    """Square root of a mean of terms in [0, 1], or a normalised floor in [0, 1) if that is more.

    Each row's term is rounded to 2^-52, and the rest is exact. A normalised root of 1 is `unit` in the metric's units.

    Notes
    -----
    Let x be the mean, m its expectation, s the largest share of a row in the mean (1/n without weights), S the sum of
    the squared shares and g the floor.

    Sensitivity: x changes by at most s, and the root is concave, so the most is at x = g^2: sqrt(g^2 + s) - g. Without
    a floor that is sqrt(s); with one at most s / (2 g).

    Spread: Hoeffding's inequality says that x is at least (at most) a value v on the far side of m with probability at
    most exp(-kl(v, m)/s), and kl(v, m) >= -2 ln(sqrt(v m) + sqrt((1-v)(1-m))) >= (sqrt v - sqrt m)^2: relative entropy
    is at least twice the squared Hellinger distance. So sqrt x lies beyond sqrt m by t with probability at most
    exp(-t^2/s) = exp(-2 t^2 / (2 s)). Also |sqrt max(x, g^2) - sqrt max(m, g^2)| <= |x - m| / (2 g), and x obeys
    exp(-2 d^2 / S). The floor never increases a distance, so 2 s and S / (4 g^2) both hold; the smaller one is taken.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1, inequality (2.1).
    """

    def __init__(self, mean: Mean, *, floor: float, unit: float) -> None:
        self.rows = mean.rows
        root = _root_above(Fraction(floor) ** 2 + mean.sensitivity)
        self.sensitivity = min(root - Fraction(floor), Fraction(1))
        spreads = [2 * float(mean.sensitivity)]
        if floor > 0:
            spreads.append(mean.sum_of_squares / (4 * floor**2))
        self.sum_of_squares = min(spreads)
        self.mean = mean
        self._settings = floor, unit
        self._floor = math.ceil(Fraction(floor) ** 2 * (1 << _FINE_BITS))

    def units(self, query: NDArray[Any]) -> int:
        """Root of the exact mean of rounded terms, floored to the grid."""
        terms = np.rint(self.mean.shares(query) * (1 << _FINE_BITS)).astype(np.int64)
        total, whole = self.mean.total(terms)
        total = max(total, self._floor * whole)
        return min(math.isqrt((total << (2 * GRID_BITS - _FINE_BITS)) // whole), GRID)

    def value(self, query: NDArray[Any]) -> float:
        """Root of the mean in the metric's units."""
        floor, unit = self._settings
        return max(math.sqrt(self.mean.value(query)), floor * unit)

    def of(self, mean: Mean) -> RootMean:
        """Root of another mean, with the same floor and unit."""
        floor, unit = self._settings
        return RootMean(mean, floor=floor, unit=unit)


class ExplainedAbout(Statistic):
    """One minus the sum of squared errors over that of the constant `center`, moved to a least value.

    Of targets in [lower, upper]; `errors` gives the squared errors of predictions. One row can make its denominator, so
    it is known as a ratio only.
    """

    is_ratio = only_as_ratio = True

    def __init__(
        self,
        targets: NDArray[np.float64],
        errors: Callable[[NDArray[Any]], NDArray[Any]],
        *,
        lower: float,
        upper: float,
        center: float,
        least: float,
    ) -> None:
        self.rows = len(targets)
        self.sensitivity, self.sum_of_squares = Fraction(1), float(self.rows)
        self._square = (upper - lower) ** 2
        self._totals = np.square(targets - center) / self._square
        self._most = max(upper - center, center - lower) ** 2 / self._square
        self._errors, self._unit = errors, 1.0 - least

    def units(self, query: NDArray[Any]) -> int:
        """Floor the share to the grid."""
        return self.sample(query).score

    def value(self, query: NDArray[Any]) -> float:
        """Share that is explained, at least the least one."""
        return 1.0 - self._unit * (1.0 - self._share(self._of(query)))

    def sample(self, query: NDArray[Any]) -> Explained:
        """Errors of the model and of the constant."""
        errors = self._of(query)
        score = min(int(self._share(errors) * GRID), GRID)
        return Explained(score, errors, self._totals, self._most, self._unit)

    def likely(self, prevalence: Sequence[float], mean: float) -> Likely:
        """What is likely if targets and errors are normal."""
        return Likely(float(self.rows), max(min(2.0 * (1.0 - mean), 0.5), 1e-3))

    def _of(self, query: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self._errors(query) / self._square)

    def _share(self, errors: NDArray[np.float64]) -> float:
        """From 0 to 1; a constant without errors is explained by none with any."""
        total, left = float(self._totals.sum()) * self._unit, float(errors.sum())
        if total <= 0.0:
            return 0.0 if left > 0.0 else 1.0
        return min(max(1.0 - left / total, 0.0), 1.0)


class Negated(Statistic):
    """A statistic with the opposite sign: normalised, one minus it. Changes and distances from the population stay."""

    def __init__(self, statistic: Statistic) -> None:
        self.rows = statistic.rows
        self.sensitivity, self.sum_of_squares = statistic.sensitivity, statistic.sum_of_squares
        self.family = statistic.family
        self.effective_rows = statistic.effective_rows
        self.inner = statistic

    def units(self, query: NDArray[Any]) -> int:
        """What is left of the grid."""
        return GRID - self.inner.units(query)

    def value(self, query: NDArray[Any]) -> float:
        """Value with the opposite sign; zero has none."""
        return 0.0 - self.inner.value(query)


class NegatedMean(Mean):
    """A mean over all rows, without weights, with the opposite sign: each term is one minus what it was."""

    def __init__(self, mean: Mean) -> None:
        self._mean_of_rows(mean.rows)
        self.family = mean.family
        self._mean = mean

    def shares(self, query: NDArray[Any]) -> NDArray[Any]:
        """One minus the normalised term of each row."""
        return np.asarray(1.0 - self._mean.shares(query))

    def row_values(self, query: NDArray[Any]) -> NDArray[Any]:
        """Term of each row with the opposite sign."""
        return np.asarray(0.0 - self._mean.row_values(query))


def negated_statistic(statistic: Statistic) -> Statistic:
    """The statistic with the opposite sign; of a mean over rows, a mean over rows."""
    return NegatedMean(statistic) if isinstance(statistic, Mean) else Negated(statistic)


def averaged(statistic: Statistic, average: Callable[[Mean], Mean]) -> Statistic | None:
    """The statistic with its mean over rows, or that under its root, averaged in another way; None if it has none."""
    if isinstance(statistic, RootMean):
        return statistic.of(average(statistic.mean))
    if isinstance(statistic, Negated):
        inner = averaged(statistic.inner, average)
        return None if inner is None else Negated(inner)
    return average(statistic) if isinstance(statistic, Mean) else None


def _root_above(square: Fraction) -> Fraction:
    """A number above the root, by less than 2^-80."""
    return Fraction(math.isqrt(math.ceil(square * (1 << 160))) + 1, 1 << 80)
