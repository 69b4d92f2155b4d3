"""Normal noise where one formula takes over from another, and at the limits of its parameters."""

from __future__ import annotations

import math

import mpmath
import pytest
from cases import for_each
from scipy import special

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import gaussian_delta, gaussian_deviation


@for_each("shift", [1e-6, 0.1, 0.5, 0.9, 1.0, math.nextafter(1.0, 2), 1.2, 1.5, 4.0])
@for_each("start", [-0.4, -0.1, 0.0, 0.3, 5.0, 30.0])
def test_either_formula_has_the_theorems_digits(shift: float, start: float) -> None:
    epsilon = (start + shift / 2) * shift
    if epsilon < 0:
        return
    with mpmath.workdps(60):
        e, h = mpmath.mpf(epsilon), mpmath.mpf(shift)
        exact = mpmath.ncdf(h / 2 - e / h) - mpmath.exp(e) * mpmath.ncdf(-h / 2 - e / h)
    found = gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift)
    assert found == pytest.approx(float(exact), rel=3e-12)


@for_each("epsilon", [1e-3, 0.1, 1.0, 3.0, 20.0])
@for_each("delta", [1.1e-300, 1e-100, 1e-9, 0.01, 0.9])
def test_a_deviation_is_rounded_up_by_a_billionth_of_delta(epsilon: float, delta: float) -> None:
    deviation = gaussian_deviation(epsilon=epsilon, delta=delta)
    found = gaussian_delta(epsilon=epsilon, deviation=deviation)
    assert found <= delta * (1 - 1e-9)
    assert gaussian_delta(epsilon=epsilon, deviation=deviation * (1 - 3e-9)) > delta * (1 - 1e-9)
    assert gaussian_deviation(epsilon=epsilon, delta=delta, sensitivity=2.0) == 2 * deviation


@for_each("bad", [-1e-9, math.inf, math.nan])
def test_an_epsilon_is_finite_and_not_negative(bad: float) -> None:
    with pytest.raises(InputError, match="epsilon is finite"):
        gaussian_delta(epsilon=bad, deviation=1.0)
    with pytest.raises(InputError, match="epsilon is finite"):
        gaussian_deviation(epsilon=bad, delta=0.1)


@for_each("bad", [0.0, -1.0, math.inf, math.nan])
def test_deviations_and_sensitivities_are_finite_and_above_0(bad: float) -> None:
    with pytest.raises(InputError, match="are finite and above 0"):
        gaussian_delta(epsilon=1.0, deviation=bad)
    with pytest.raises(InputError, match="are finite and above 0"):
        gaussian_delta(epsilon=1.0, deviation=1.0, sensitivity=bad)
    with pytest.raises(InputError, match="a sensitivity is finite"):
        gaussian_deviation(epsilon=1.0, delta=0.1, sensitivity=bad)


@for_each("bad", [0.0, 1e-300, 1.0, 1.5, math.nan])
def test_a_delta_is_within_range(bad: float) -> None:
    with pytest.raises(InputError, match="needs a delta"):
        gaussian_deviation(epsilon=1.0, delta=bad)


@for_each(("epsilon", "deviation"), [(91546984001.94, 0.6187397), (2.9e10, 1 / 3.25), (1e300, 1e-3)])
def test_an_epsilon_beyond_all_noise_leaves_no_delta(epsilon: float, deviation: float) -> None:
    assert gaussian_delta(epsilon=epsilon, deviation=deviation) == 0.0


@for_each("start", [-3.0, 0.0, 30.0])
def test_an_epsilon_whose_digits_do_not_reach_has_no_less_than_delta(start: float) -> None:
    """What is left out is less than a part in ten thousand, where a difference would be rounded by more."""
    for epsilon in (1e12, 1.2e12, 5e19):
        shift = -start + math.sqrt(start * start + 2 * epsilon)
        with mpmath.workdps(60):
            e, h = mpmath.mpf(epsilon), mpmath.mpf(shift)
            exact = mpmath.ncdf(h / 2 - e / h)
            exact *= 1 - mpmath.erfc((e / h + h / 2) / mpmath.sqrt(2)) * mpmath.exp(e) / (2 * exact)
        found = gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift)
        assert found == pytest.approx(float(exact), rel=1e-8 if epsilon == 1e12 else 1e-4)
        if epsilon > 1e12:
            likely = math.exp(special.log_ndtr(shift / 2 - epsilon / shift))
            assert found == pytest.approx(likely, rel=1e-12)


def test_far_from_any_loss_delta_is_0() -> None:
    for epsilon, shift in ((1e10, 1.5), (1e10, 2.0), (1e11, 7.0), (1e9, 1.5), (1e300, 2.0)):
        assert gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift) == 0.0
