"""The Gaussian mechanism's delta, against sixty digits, and its calibration."""

import math

import mpmath
import numpy as np
import pytest
from cases import for_each
from scipy import special

from reusable_holdout.mechanisms.accounting import gaussian_delta, gaussian_deviation


def exact_delta(epsilon, shift):
    """Compute Balle and Wang's Theorem 8 with sixty digits; beyond them the second law is a share of the first."""
    with mpmath.workdps(60):
        e, h = mpmath.mpf(epsilon), mpmath.mpf(shift)
        first = mpmath.ncdf(h / 2 - e / h)
        if epsilon < 1e9:
            return first - mpmath.exp(e) * mpmath.ncdf(-h / 2 - e / h)
        return first - mpmath.erfc((e / h + h / 2) / mpmath.sqrt(2)) * mpmath.exp(e) / 2


@for_each("epsilon", [0.0, 1e-9, 1e-3, 0.1, 1.0, 5.0, 100.0])
@for_each("shift", [1e-9, 1e-3, 0.3, 0.999, 1.001, 3.0, 30.0])
def test_delta_is_the_theorems_however_small(epsilon, shift):
    exact = exact_delta(epsilon, shift)
    found = gaussian_delta(epsilon=epsilon, deviation=1 / shift)
    if exact > 1e-290:
        assert found == pytest.approx(float(exact), rel=1e-10)
    else:
        assert found < 1e-289


@for_each("shift", [1e-6, 0.1, 0.5, 0.9, 1.0, math.nextafter(1.0, 2), 1.2, 1.5, 4.0])
@for_each("start", [-0.4, -0.1, 0.0, 0.3, 5.0, 30.0])
def test_both_formulas_have_the_theorems_digits(shift, start):
    epsilon = (start + shift / 2) * shift
    if epsilon >= 0:
        found = gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift)
        assert found == pytest.approx(float(exact_delta(epsilon, shift)), rel=3e-12)


@for_each(("epsilon", "shift"), [(0.5, 0.4), (1.0, 1.0), (2.0, 3.0)])
def test_delta_is_the_largest_excess_over_all_events(epsilon, shift):
    """The excess of the density over exp(e) times the shifted one, integrated."""
    x = np.linspace(-20, 20, 400_001)
    density = [np.exp(-((x - at) ** 2) / 2) / math.sqrt(2 * math.pi) for at in (shift, 0.0)]
    excess = np.maximum(density[0] - math.exp(epsilon) * density[1], 0.0).sum() * (x[1] - x[0])
    found = gaussian_delta(epsilon=epsilon, deviation=2.0, sensitivity=2 * shift)
    assert found == pytest.approx(excess, rel=1e-6)


@for_each("epsilon", [1e-6, 1e-3, 0.1, 0.99, 3.0, 50.0])
@for_each("delta", [1.1e-300, 1e-100, 1e-9, 0.01, 0.9])
def test_a_deviation_keeps_delta_and_uses_all_but_a_billionth(epsilon, delta):
    deviation = gaussian_deviation(epsilon=epsilon, delta=delta)
    assert exact_delta(epsilon, 1 / deviation) <= delta
    assert gaussian_delta(epsilon=epsilon, deviation=deviation) <= delta * (1 - 1e-9)
    assert gaussian_delta(epsilon=epsilon, deviation=deviation * (1 - 3e-9)) > delta * (1 - 1e-9)
    assert gaussian_deviation(epsilon=epsilon, delta=delta, sensitivity=2.0) == 2 * deviation
    if epsilon < 1 and delta < 0.1:  # where the textbook's is proved
        assert deviation < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@for_each("start", [-3.0, 0.0, 30.0])
def test_an_epsilon_whose_digits_do_not_suffice_has_no_less_than_delta(start):
    """The second law's share, less than a part in ten thousand, is left out: its difference would be rounded more."""
    for epsilon in (1e12, 1.2e12, 5e19):
        shift = -start + math.sqrt(start * start + 2 * epsilon)
        found = gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift)
        exact = float(exact_delta(epsilon, shift))
        assert found == pytest.approx(exact, rel=1e-8 if epsilon == 1e12 else 1e-4)
        if epsilon > 1e12:
            likely = math.exp(special.log_ndtr(shift / 2 - epsilon / shift))
            assert found == pytest.approx(likely, rel=1e-12)


def test_far_from_any_loss_delta_is_0():
    for epsilon, shift in ((1e9, 1.5), (1e11, 7.0), (2.9e10, 3.25), (91546984001.94, 1.616), (1e300, 1e3)):
        assert gaussian_delta(epsilon=epsilon, deviation=1.0, sensitivity=shift) == 0.0
