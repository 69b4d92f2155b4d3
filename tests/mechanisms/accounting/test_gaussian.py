"""The Gaussian mechanism's delta, against sixty digits, and its calibration."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import gaussian_delta, gaussian_deviation


def exact_delta(epsilon: float, shift: float) -> mpmath.mpf:
    """Balle and Wang (2018), Theorem 8, at sixty digits."""
    with mpmath.workdps(60):
        e, h = mpmath.mpf(epsilon), mpmath.mpf(shift)
        return mpmath.ncdf(h / 2 - e / h) - mpmath.exp(e) * mpmath.ncdf(-h / 2 - e / h)


@for_each("epsilon", [0.0, 1e-9, 1e-3, 0.1, 1.0, 5.0, 100.0])
@for_each("shift", [1e-9, 1e-3, 0.3, 0.999, 1.001, 3.0, 30.0])
def test_delta_is_the_theorems_however_small(epsilon: float, shift: float) -> None:
    exact = exact_delta(epsilon, shift)
    found = gaussian_delta(epsilon=epsilon, deviation=1 / shift)
    if exact > 1e-290:
        assert found == pytest.approx(float(exact), rel=1e-10)
    else:
        assert found < 1e-289


@for_each(("epsilon", "shift"), [(0.5, 0.4), (1.0, 1.0), (2.0, 3.0)])
def test_delta_is_the_largest_excess_over_all_events(epsilon: float, shift: float) -> None:
    """The excess of the density over exp(e) times the shifted one, integrated."""
    x = np.linspace(-20, 20, 400_001)
    density = [np.exp(-((x - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (shift, 0.0)]
    excess = np.maximum(density[0] - math.exp(epsilon) * density[1], 0.0).sum() * (x[1] - x[0])
    assert gaussian_delta(epsilon=epsilon, deviation=2.0, sensitivity=2 * shift) == pytest.approx(
        excess, rel=1e-6
    )


@for_each("epsilon", [1e-6, 0.01, 1.0, 10.0, 50.0])
@for_each("delta", [1e-250, 1e-12, 1e-6, 0.01, 0.9])
def test_the_deviation_keeps_delta_and_uses_it_up(epsilon: float, delta: float) -> None:
    deviation = gaussian_deviation(epsilon=epsilon, delta=delta, sensitivity=3.0)
    assert exact_delta(epsilon, 3.0 / deviation) <= delta
    assert exact_delta(epsilon, 3.0 / deviation * (1 + 1e-7)) > delta


@for_each("epsilon", [0.1, 0.5, 0.99])
@for_each("delta", [1e-9, 1e-5])
def test_the_textbooks_deviation_is_larger(epsilon: float, delta: float) -> None:
    assert gaussian_deviation(epsilon=epsilon, delta=delta) < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 0.0}, {"delta": 1.0}, {"sensitivity": 0.0}]
)
def test_what_cannot_be_kept_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        gaussian_deviation(**({"epsilon": 1.0, "delta": 1e-6} | wrong))


@pytest.mark.parametrize("wrong", [{"epsilon": -1.0}, {"deviation": 0.0}, {"sensitivity": math.nan}])
def test_the_delta_of_impossible_noise_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        gaussian_delta(**({"epsilon": 1.0, "deviation": 1.0} | wrong))
