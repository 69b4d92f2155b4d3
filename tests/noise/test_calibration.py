"""The guard's mechanisms: the scales of each, and its cost with values told besides."""

import math
from fractions import Fraction

import pytest
from cases import for_each, refuses

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import basic_composition, optimal_composition
from reusable_holdout.noise import Calibration


@for_each("delta", [0.0, 1e-6, 0.4])
@for_each("each", [0.02, 0.3, 2.0])
@for_each("charges", [1, 6, 600])
@for_each("told", [0, 1, 5])
def test_values_told_besides_cost_as_those_of_charges_do(told, charges, each, delta):
    parts = 2 * charges + told
    wanted = min(
        basic_composition([each] * parts), optimal_composition(epsilon=each, count=parts, delta=delta)
    )
    made = Calibration("numeric-sparse", charges)
    assert made.epsilon(each=each, delta=delta, told=told) == wanted
    if told == 0:
        assert made.epsilon(each=each, delta=delta) == wanted


def test_mechanisms_that_no_guard_runs_on_have_their_scales_and_no_more():
    """Ledgers of earlier versions are verified by the scales; noiseless guards have no epsilon either."""
    for charges in (1, 3, 50):
        root = (20 / (1 + (2 * charges) ** (2 / 3))) ** 0.5  # the variance of numeric-sparse: 2**2 + 4**2
        by_ratio = root, root * (2 * charges) ** (1 / 3), 1.0
        for mechanism, scales in {
            "standard-svt": by_ratio,
            "target-charging": (0.0, 20**0.5, 20**0.5),
            "numeric-sparse": (2.0, 4.0, 1.0),
            "noiseless": (0.0, 0.0, 0.0),
        }.items():
            assert Calibration(mechanism, charges).scales == pytest.approx(scales, rel=1e-12, abs=0.0)
    for mechanism in ("standard-svt", "target-charging", "noiseless"):
        assert Calibration(mechanism, 6).epsilon(each=0.05, delta=1e-6) == math.inf
    assert Calibration("target-charging", 6).releases_the_comparison
    assert not Calibration("numeric-sparse", 6).releases_the_comparison
    refuses(InputError, "mechanism is one of", Calibration, "sparse", 1)


@for_each("count", [3, 500, 501, 5_000])
def test_without_delta_the_parts_are_added_up_exactly(count):
    """0.07 times 6 is 0.42, as it is written, and not the float next to it."""
    wanted = float(Fraction(7, 100) * 2 * count)
    assert Calibration("numeric-sparse", count).epsilon(each=0.07, delta=0.0) == wanted


def test_an_epsilon_beyond_700_is_not_composed_any_better_than_by_adding():
    made = Calibration("numeric-sparse", 1)
    for each, least in ((700.0, False), (700.5, True), (1_000.0, True)):
        assert (made.epsilon(each=each, delta=0.5) == 2 * each) is least


def test_more_than_a_million_parts_are_added_up():
    """The time of their optimal composition would grow with them."""
    most = Calibration("numeric-sparse", 500_000)
    assert most.epsilon(each=1e-3, delta=1e-6, told=0) < 10
    assert most.epsilon(each=1e-3, delta=1e-6, told=1) == 1e-3 * 1_000_001


def test_thresholds_are_drawn_once_unless_a_charge_renews_them():
    draws = {name: Calibration(name, 7).threshold_draws for name in ("numeric-sparse", "standard-svt")}
    assert draws == {"numeric-sparse": 8, "standard-svt": 1}
