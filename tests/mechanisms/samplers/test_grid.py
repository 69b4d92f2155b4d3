"""Which sensitivities a grid is made for, and how fine it is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid


@for_each("sensitivity", [math.nextafter(1e-290, 1), 2.0**-20, 0.3, 1.0, 3.0, math.nextafter(1e290, 0)])
def test_a_step_is_a_power_of_two_between_two_bounds_of_the_sensitivity(sensitivity: float) -> None:
    grid = Grid.of(sensitivity)
    assert math.frexp(grid.step)[0] == 0.5
    assert 2**16 <= Fraction(sensitivity) / Fraction(grid.step) < 2**17
    assert grid.sensitivity == math.ceil(Fraction(sensitivity) / Fraction(grid.step))


@for_each("sensitivity", [1e-290, 1e290, 1.2e290, 0.0, -1.0, math.inf, math.nan])
def test_a_sensitivity_at_or_beyond_the_limits_is_refused(sensitivity: float) -> None:
    with pytest.raises(InputError, match="a sensitivity is a positive finite number"):
        Grid.of(sensitivity)


@for_each("step", [1.0, 0.25, 2.0**-40])
def test_a_number_is_rounded_with_halves_upwards_alone_and_in_a_row(step: float) -> None:
    grid = Grid(step, 1)
    rounded = {-2.5: -2, -2.501: -3, -0.5: 0, 0.0: 0, 0.499: 0, 0.5: 1, 1.5: 2, 7.0: 7}
    assert [grid.steps(value * step) for value in rounded] == list(rounded.values())
    assert grid.steps_many([value * step for value in rounded]).tolist() == list(rounded.values())
    for far in (2.0**60, 2.0**61, 1e300, math.inf):
        assert [grid.steps(side * far * step) for side in (1, -1)] == [2**60, -(2**60)]
        assert grid.steps_many(np.array([far, -far]) * step).tolist() == [2**60, -(2**60)]
    assert grid.steps_many([]).shape == (0,)
    assert grid.real(-3) == -3 * step
