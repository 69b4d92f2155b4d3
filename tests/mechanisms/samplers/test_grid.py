"""Sensitivities that a grid is made for, and how it rounds."""

import math
from fractions import Fraction

import numpy as np
from cases import for_each, refuses

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.samplers.grid import Grid


@for_each("sensitivity", [math.nextafter(1e-290, 1), 2.0**-20, 0.3, 1.0, 3.0, math.nextafter(1e290, 0)])
def test_a_step_is_a_power_of_two_between_two_bounds_of_the_sensitivity(sensitivity):
    grid = Grid.of(sensitivity)
    assert math.frexp(grid.step)[0] == 0.5
    assert 2**16 <= Fraction(sensitivity) / Fraction(grid.step) < 2**17
    assert grid.sensitivity == math.ceil(Fraction(sensitivity) / Fraction(grid.step))


@for_each("step", [1.0, 0.25, 2.0**-40, 2.0**40])
def test_a_number_is_rounded_with_halves_upwards_and_one_beyond_the_grid_is_refused(step):
    grid = Grid(step, 1)
    rounded = {-2.5: -2, -2.501: -3, -0.5: 0, 0.0: 0, 0.499: 0, 0.5: 1, 1.5: 2, 7.0: 7}
    assert [grid.steps(value * step) for value in rounded] == list(rounded.values())
    assert grid.steps_many([value * step for value in rounded]).tolist() == list(rounded.values())
    ends = [grid.farthest, -grid.farthest]
    assert [grid.steps(end) for end in ends] == grid.steps_many(ends).tolist() == [2**60, -(2**60)]
    assert grid.steps_many([]).shape == (0,)
    assert grid.real(-3) == -3 * step
    refusal = f"at most {grid.farthest:.17g} from 0, which is 2\\*\\*60 grid steps".replace("+", "\\+")
    beyond = math.nextafter(grid.farthest, math.inf), 2 * grid.farthest, 1e300, math.inf, 10**400, 2**120
    for value in (*beyond, *(-far for far in beyond)):
        refuses(InputError, refusal, grid.steps, value)
        refuses(InputError, refusal, grid.steps_many, [0.0, value])


def test_large_whole_numbers_are_rounded_exactly():
    """As floats the pair would lie further apart, and its steps further than the sensitivity."""
    grid = Grid.of(2.0**17)
    pair = [2**60 + 2**7 + 1, 2**60 + 2**7 + 1 - 2**17]
    assert float(pair[0]) - float(pair[1]) > 2**17
    for steps in ([grid.steps(value) for value in pair], grid.steps_many(np.array(pair))):
        assert abs(int(steps[0]) - int(steps[1])) <= grid.sensitivity
