"""The guard's mechanisms: what each costs with values told besides, and the core that it makes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    basic_composition,
    not_prior_mean,
    not_prior_q,
    optimal_composition,
    target_charging,
)
from reusable_holdout.noise import Calibration, KeyedNoise, NoiseScales, SparseVector, key_from_seed

NOISE = KeyedNoise(key_from_seed(5))


def composed(each: float, parts: int, delta: float) -> float:
    return min(basic_composition([each] * parts), optimal_composition(epsilon=each, count=parts, delta=delta))


@for_each("delta", [0.0, 1e-6, 0.4])
@for_each("each", [0.02, 0.3, 2.0])
@for_each("charges", [1, 6, 600])
@for_each("told", [0, 1, 5])
def test_values_told_besides_cost_as_those_of_charges_do(
    told: int, charges: int, each: float, delta: float
) -> None:
    def cost(mechanism: Any) -> float:
        return Calibration(mechanism, charges).epsilon(each=each, delta=delta, told=told)

    assert cost("numeric-sparse") == composed(each, 2 * charges + told, delta)
    ratio = (2 * charges) ** (2 / 3)
    threshold = math.sqrt(20 / (1 + ratio))
    comparisons = each / threshold * (1 + 2 * charges / math.cbrt(2 * charges))
    wanted = comparisons + composed(each, charges + told, delta)
    assert cost("standard-svt") == pytest.approx(wanted, rel=1e-12)
    call = each / math.sqrt(20)
    if delta == 0:
        assert cost("target-charging") == math.inf
    else:
        calls = target_charging(
            epsilon=call, charges=charges, delta=delta, q=not_prior_q(call), mean=not_prior_mean(call)
        )
        assert cost("target-charging") == pytest.approx(calls.epsilon + told * call, rel=1e-12)


def test_no_value_is_told_besides_unless_it_is_said() -> None:
    for mechanism in ("numeric-sparse", "standard-svt", "target-charging"):
        made = Calibration(mechanism, 3)  # type: ignore[arg-type]
        assert made.epsilon(each=0.2, delta=1e-6) == made.epsilon(each=0.2, delta=1e-6, told=0)


@for_each("count", [3, 500, 501, 5_000])
def test_without_delta_the_parts_are_added_up_exactly(count: int) -> None:
    """0.07 times 6 is 0.42, as it is written, and not the float next to it."""
    assert Calibration("numeric-sparse", count).epsilon(each=0.07, delta=0.0) == float(
        Fraction(7, 100) * 2 * count
    )


def test_an_epsilon_beyond_700_is_not_composed_any_better_than_by_adding() -> None:
    made = Calibration("numeric-sparse", 1)
    for each, least in ((700.0, False), (700.5, True), (1_000.0, True)):
        assert (made.epsilon(each=each, delta=0.5) == 2 * each) is least


def test_more_than_a_million_parts_are_added_up() -> None:
    """What their optimal composition would take grows with them."""
    most = Calibration("numeric-sparse", 500_000)
    assert most.epsilon(each=1e-3, delta=1e-6, told=0) < 10
    assert most.epsilon(each=1e-3, delta=1e-6, told=1) == 1e-3 * 1_000_001


# Cores ------------------------------------------------------------------------------------------------


@for_each("mechanism", ["numeric-sparse", "noiseless"])
def test_a_core_has_the_scales_the_budget_and_the_state_that_it_is_made_with(mechanism: Any) -> None:
    made = Calibration(mechanism, 4)
    threshold, query, answer = (Fraction(each) * 1000 for each in made.scales)
    questions = [number.to_bytes(1, "big") for number in range(9)]
    state: dict[str, Any]
    for state in ({}, {"spent": 2, "last_charged": b"z", "direction": -1}):
        core = made.core(scale=Fraction(1000), noise=NOISE, **state)
        same = SparseVector(scales=NoiseScales(threshold, query, answer), noise=NOISE, charges=4, **state)
        assert type(core) is type(same)
        assert (core.spent, core.last_charged) == (same.spent, same.last_charged)
        assert (core.spent, core.last_charged) == (state.get("spent", 0), state.get("last_charged", b""))
        assert core.query_noise(questions).tolist() == same.query_noise(questions).tolist()
        zeros = np.zeros(1, dtype=np.int64)
        for question in questions[: 4 - core.spent]:
            for score in (*range(-20_000, 20_001, 500), -(10**6), 10**6):
                given = np.array([score]), zeros, zeros + 5_000, [question]
                assert core.first_deviation(*given) == same.first_deviation(*given)
            assert core.charge(77, question) == same.charge(77, question)
        with pytest.raises(InputError):
            made.core(scale=Fraction(1000), noise=NOISE, spent=5)


def test_thresholds_are_drawn_once_unless_a_charge_renews_them() -> None:
    draws = {name: Calibration(name, 7).threshold_draws for name in ("numeric-sparse", "standard-svt")}  # type: ignore[arg-type]
    assert draws == {"numeric-sparse": 8, "standard-svt": 1}
