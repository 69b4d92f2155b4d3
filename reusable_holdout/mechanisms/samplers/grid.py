"""Real numbers on an integer grid, so that noise can be integers.

A grid step is a power of two, so that division by it is exact. Rounding two values before noise is added can increase
their difference by up to one step. The sensitivity in steps is rounded up to account for this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError

_STEPS_LOG2 = 16  # a sensitivity is at least 2**16 steps, so rounding it up adds at most 1 part in 65,536
_FARTHEST = 2.0**60  # steps from 0: up to there a value plus its noise fits int64
_LARGEST_EXACT = 2**53  # floats round larger whole numbers, which could move two of them further apart
_NAN = "a query's value is a number; got NaN; nothing was answered and nothing was charged"


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid fine enough for a given sensitivity.

    Two values that differ by at most the real sensitivity are at most `sensitivity` steps apart after rounding. Values
    farther than `farthest` from 0 are refused. The analyst sees the refusal, and no privacy parameter accounts for it.
    So clip queries that may lie farther from 0. Clipping never moves two values further apart.

    Parameters
    ----------
    step : float
        Width of one step, a power of two.
    sensitivity : int
        The sensitivity in steps, rounded up.

    Examples
    --------
    >>> grid = Grid.of(1.0)
    >>> grid.sensitivity, grid.real(grid.steps(0.5))
    (65536, 0.5)
    """

    step: float
    sensitivity: int

    @classmethod
    def of(cls, sensitivity: float) -> Grid:
        """Make a grid whose step is between 2**-17 and 2**-16 of a sensitivity.

        The sensitivity in steps is rounded up, so privacy is never overstated.

        Parameters
        ----------
        sensitivity : float
            Largest change of one query between neighbouring data sets; finite, above 1e-290.

        Raises
        ------
        InputError
            If the sensitivity is out of range.

        Examples
        --------
        >>> Grid.of(0.75).sensitivity
        98304
        """
        if not 1e-290 < sensitivity < 1e290:
            raise InputError(f"a sensitivity is a positive finite number; got {sensitivity}")
        _, exponent = math.frexp(sensitivity)
        step = math.ldexp(1.0, exponent - 1 - _STEPS_LOG2)
        return cls(step, math.ceil(sensitivity / step))

    @property
    def farthest(self) -> float:
        """Largest distance from 0 that the grid holds, 2**60 steps, in real units.

        Examples
        --------
        >>> Grid.of(1.0).farthest == 2.0**44
        True
        """
        return _FARTHEST * self.step

    def steps(self, value: float) -> int:
        """Round a real number to the grid, halves upwards.

        This rounding is monotone and commutes with shifts by whole steps, so it adds less than one step to a
        difference. Rounding halves to even would not do so: 0.5 and 1.5 differ by one, and would be rounded to 0 and 2.

        Parameters
        ----------
        value : float
            Real units; at most `farthest` from 0.

        Raises
        ------
        InputError
            If the value is not a number or lies beyond the grid. The message does not contain the value, which is
            private.

        Examples
        --------
        >>> Grid(step=1.0, sensitivity=1).steps(2.5)
        3
        """
        if not -self.farthest <= value <= self.farthest:
            raise self._beyond() if value < 0 or value > 0 else InputError(_NAN)
        large = isinstance(value, int | np.integer) and abs(value) > _LARGEST_EXACT
        scaled = Fraction(int(value)) / Fraction(self.step) if large else value / self.step
        below = math.floor(scaled)
        return below + (scaled - below >= 0.5)

    def steps_many(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Round many real numbers to the grid, each as `steps` does.

        Parameters
        ----------
        values : array-like, shape (m,)
            Real units.

        Raises
        ------
        InputError
            If `values` is not a row of numbers, or one is NaN or beyond the grid. The message quotes none of them.

        Examples
        --------
        >>> Grid(step=0.5, sensitivity=1).steps_many([1.0, -0.25]).tolist()
        [2, 0]
        """
        try:
            given = np.asarray(values)
            row = given.astype(np.float64) if given.dtype.kind in "biufO" else None
        except OverflowError:
            raise self._beyond() from None
        except (TypeError, ValueError):
            row = None
        if row is None:
            raise InputError("queries' values are a row of numbers; got something else; nothing was answered")
        if row.ndim != 1:
            raise InputError(f"queries' values are one row of numbers; got {row.ndim} dimensions")
        if np.isnan(row).any():
            raise InputError(_NAN)
        if not (np.abs(row) <= self.farthest).all():
            raise self._beyond()
        if given.dtype.kind in "iu" and (np.abs(row) > _LARGEST_EXACT).any():
            return np.array([self.steps(value) for value in given.tolist()], dtype=np.int64)
        scaled = row / self.step
        below = np.floor(scaled)
        return below.astype(np.int64) + (scaled - below >= 0.5)

    def real(self, steps: int) -> float:
        """Return the real number at a grid point.

        This is post-processing and costs no privacy.

        Parameters
        ----------
        steps : int
            Grid units.

        Examples
        --------
        >>> Grid(step=0.25, sensitivity=1).real(3)
        0.75
        """
        return steps * self.step

    def _beyond(self) -> InputError:
        """Return the error for a value beyond the grid."""
        return InputError(
            f"a query's value or threshold is at most {self.farthest:.17g} from 0, which is 2**60 grid steps; one "
            "is farther; nothing was answered and nothing was charged; clip the queries, or use a larger sensitivity"
        )
