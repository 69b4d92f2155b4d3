"""Share of the variation about a stated centre that a model explains: a ratio of two means."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.queries.samples import Explained, Likely
from reusable_holdout.queries.scoring import GRID, Statistic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["ExplainedAbout"]


class ExplainedAbout(Statistic):
    """One minus the sum of squared errors over that of a constant, moved to a least value.

    Parameters
    ----------
    targets : numpy.ndarray of float64 of shape (rows,)
        Private.
    errors : callable
        From predictions to squared errors.
    lower, upper : float
        Bounds of the targets.
    center : float
        The constant.
    least : float
        Smallest value that is told apart.
    """

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

    @property
    def is_ratio(self) -> bool:
        """Always."""
        return True

    @property
    def only_as_ratio(self) -> bool:
        """Always: one row can make its denominator."""
        return True

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
        errors: NDArray[np.float64] = self._errors(query) / self._square
        return errors

    def _share(self, errors: NDArray[np.float64]) -> float:
        """From 0 to 1; a constant without errors is explained by none with any."""
        total, left = float(self._totals.sum()) * self._unit, float(errors.sum())
        if total <= 0.0:
            return 0.0 if left > 0.0 else 1.0
        return min(max(1.0 - left / total, 0.0), 1.0)
