"""Real numbers on an integer grid, so that noise can be integers.

A grid step is a power of two, so that dividing by it is exact. Rounding before the noise costs privacy up to
one step: the sensitivity in steps is rounded up to pay for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError

__all__ = ["Grid"]

_STEPS_LOG2 = 16  # a sensitivity is at least 2**16 steps, so rounding it up adds at most 1 part in 65,536
_CLIP = 2.0**60  # values are clipped here, which moves none further apart; noise then still fits int64
_NAN = "a query's value is a number; got NaN; nothing was answered and nothing was charged"


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid fine enough for a given sensitivity.

    Two values that differ by at most the real sensitivity are at most `sensitivity` steps apart after
    rounding.

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
        """Grid whose step is between 2**-17 and 2**-16 of a sensitivity.

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

    def steps(self, value: float) -> int:
        """Round a real number to the grid, halves upwards.

        Shift-equivariant and monotone, so rounding adds less than one step to a difference; rounding halves
        to even would not be (0.5 and 1.5 are one apart, their even neighbours two).

        Parameters
        ----------
        value : float
            Real units; beyond 2**60 steps it is clipped.

        Raises
        ------
        InputError
            If the value is not a number. The message does not tell more, for the value belongs to the
            holdout.

        Examples
        --------
        >>> Grid(step=1.0, sensitivity=1).steps(2.5)
        3
        """
        if math.isnan(value):
            raise InputError(_NAN)
        scaled = min(max(value / self.step, -_CLIP), _CLIP)
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
            If they are not a row of numbers, or one is NaN; the message tells none of them.

        Examples
        --------
        >>> Grid(step=0.5, sensitivity=1).steps_many([1.0, -0.25]).tolist()
        [2, 0]
        """
        try:
            given = np.asarray(values)
            row = given.astype(np.float64) if given.dtype.kind in "biufO" else None
        except (TypeError, ValueError, OverflowError):
            row = None
        if row is None:
            raise InputError("queries' values are a row of numbers; got something else; nothing was answered")
        if row.ndim != 1:
            raise InputError(f"queries' values are a row of numbers, of one dimension; got {row.ndim}")
        if np.isnan(row).any():
            raise InputError(_NAN)
        with np.errstate(over="ignore"):
            scaled = np.clip(row / self.step, -_CLIP, _CLIP)
        below = np.floor(scaled)
        return below.astype(np.int64) + (scaled - below >= 0.5)

    def real(self, steps: int) -> float:
        """Real number at a grid point.

        Post-processing: it costs no privacy.

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
