"""Composition of mechanisms of bounded range: closed forms, the literature's lower bound, other theories."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each
from long_tests import ACCOUNTING

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    BoundedRangeEvent,
    PrivacyAccountant,
    bounded_range_composition,
    bounded_range_epsilon_each,
    optimal_composition,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTS = [1, 2, 10, 100]


def one_round(total: NDArray[np.float64] | float, each: float) -> NDArray[np.float64]:
    """Delta of a single mechanism of a range, its worst coin found by setting a derivative to zero."""
    total = np.clip(total, -np.inf, each)
    inside = np.square(np.expm1((total - each) / 2)) / -math.expm1(-each)
    return np.where(total <= -each, -np.expm1(total), inside)


def upper_side(high: NDArray[np.float64] | float, each: float) -> NDArray[np.float64]:
    """Probability of the loss `high` of the coin whose other loss is `high - each`."""
    return np.asarray(-np.expm1(high - each) / -math.expm1(-each))


def two_rounds(total: float, each: float) -> float:
    """Delta of two adaptive mechanisms: the best of 20,001 first coins, the second then chosen for each side."""
    high = np.linspace(0, each, 20_001)
    share = upper_side(high, each)
    return float(
        (share * one_round(total - high, each) + (1 - share) * one_round(total - high + each, each)).max()
    )


def fixed_rounds(total: float, each: float, count: int) -> float:
    """Delta of the worst fixed coin: the optimum of Dong, Durfee and Rogers without adaptivity, a true lower bound."""
    low_sides = np.arange(count + 1)
    choose = np.array([math.comb(count, int(side)) for side in low_sides], dtype=float)
    worst = 0.0
    for high in np.clip((total + (low_sides + 1) * each) / (count + 1), 0.0, each):
        share = float(upper_side(high, each))
        law = choose * share ** (count - low_sides) * (1 - share) ** low_sides
        losses = count * high - low_sides * each
        worst = max(worst, float((law * np.maximum(-np.expm1(total - losses), 0.0)).sum()))
    return worst


@for_each("each", [0.01, 0.3, 2.0])
@for_each("share", [0.3, 0.9, 0.99])
def test_one_round_is_the_worst_coin(each: float, share: float) -> None:
    delta = float(one_round(share * each, each))
    total = bounded_range_composition(epsilon=each, count=1, delta=delta)
    assert share * each - 1e-12 <= total <= share * each + 0.004 * each


@for_each("each", [0.01, 0.3, 2.0])
@for_each("total", [0.2, 0.8, 1.5, 1.95])
def test_two_rounds_are_those_of_an_adversary_that_sees_the_first_outcome(each: float, total: float) -> None:
    delta = two_rounds(total * each, each)
    found = bounded_range_composition(epsilon=each, count=2, delta=delta)
    assert total * each - 1e-9 <= found <= (total + 0.005) * each


@pytest.mark.long(*ACCOUNTING)
@for_each("delta", [1e-3, 1e-8])
@for_each(
    ("count", "epsilon", "slack"), [(10, 1.0, 0.03), (40, 0.1, 0.01), (40, 3.0, 0.01), (120, 1.0, 0.01)]
)
def test_many_rounds_lie_above_the_worst_fixed_coin_and_hardly_above_it(
    count: int, epsilon: float, slack: float, delta: float
) -> None:
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    assert fixed_rounds(epsilon, each, count) <= delta
    assert fixed_rounds(epsilon, (1 + slack) * each, count) > delta


def test_the_fixed_coin_promises_too_little_for_adaptive_rounds() -> None:
    """The published optimum without adaptivity, used for rounds that choose: the adversary's delta is larger."""
    each, excess = 1.0, 0.0
    for total in np.linspace(0.1, 1.9, 19):
        fixed, adaptive = fixed_rounds(total, each, 2), two_rounds(total, each)
        assert fixed <= adaptive * (1 + 1e-6)
        excess = max(excess, adaptive / fixed)
        found = bounded_range_composition(epsilon=each, count=2, delta=fixed)
        assert two_rounds(found, each) <= fixed * (1 + 1e-6)
    assert excess > 1.01


@for_each("delta", [1e-3, 1e-9])
@for_each("each", [0.003, 0.2])
@for_each("count", COUNTS)
def test_never_above_what_is_known_of_private_or_concentrated_releases(
    count: int, each: float, delta: float
) -> None:
    total = bounded_range_composition(epsilon=each, count=count, delta=delta)
    rho = count * each**2 / 8
    assert total <= count * each
    assert total <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
    assert total <= optimal_composition(epsilon=each, count=count, delta=delta) + 0.004 * each


@pytest.mark.long(*ACCOUNTING)
@for_each("delta", [0.0, 1e-9, 0.3])
@for_each("epsilon", [1e-3, 1.0, 20.0])
@for_each("count", [1, 2, 20])
def test_the_inverse_stays_within_the_budget_and_uses_it(count: int, epsilon: float, delta: float) -> None:
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    assert each >= epsilon / count * (1 - 1e-15)
    total = bounded_range_composition(epsilon=each, count=count, delta=delta)
    assert total <= epsilon * (1 + 1e-12)
    more = bounded_range_composition(epsilon=each * 1.01, count=count, delta=delta)
    assert more > epsilon


def test_more_rounds_a_wider_range_and_a_smaller_delta_cost_more() -> None:
    totals = {
        (count, each, delta): bounded_range_composition(epsilon=each, count=count, delta=delta)
        for count, each, delta in itertools.product((2, 9, 60), (0.01, 0.05), (1e-4, 1e-8))
    }
    for (count, each, delta), total in totals.items():
        assert total < totals.get((9 if count == 2 else 60, each, delta), 0.0) or count == 60
        assert total < totals[count, 0.05, delta] or each == 0.05
        assert total < totals[count, each, 1e-8] or delta == 1e-8


def test_beyond_the_lattice_concentrated_privacy_is_used() -> None:
    each = bounded_range_epsilon_each(epsilon=1.0, count=30_000, delta=1e-6)
    rho = 30_000 * each**2 / 8
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(1.0)
    assert bounded_range_composition(epsilon=each, count=30_000, delta=1e-6) == pytest.approx(1.0)


@for_each("bad", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"count": 0}, {"delta": 1.0}, {"delta": -1e-9}])
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    for function in (bounded_range_composition, bounded_range_epsilon_each):
        with pytest.raises(InputError):
            function(**({"epsilon": 1.0, "count": 3, "delta": 1e-6} | bad))  # type: ignore[arg-type]


@for_each(("epsilon", "count", "delta"), [(1e-20, 3, 1e-6), (4e-6, 1, 1.0000000011e-6), (1e-12, 10, 1e-11)])
def test_delta_pays_for_the_total_variation_of_rounds(epsilon: float, count: int, delta: float) -> None:
    assert bounded_range_composition(epsilon=epsilon, count=count, delta=delta) == 0.0


@for_each("epsilon", [1.1e-13, 3e-11, 9.9e-9])
def test_a_round_too_fine_for_a_lattice_costs_what_is_known_without_one(epsilon: float) -> None:
    # One round is a coin: its exact delta is tanh(epsilon / 4) at 0, and falls to 0 at epsilon.
    assert bounded_range_composition(epsilon=epsilon, count=1, delta=epsilon / 4000) == epsilon
    accountant = PrivacyAccountant()
    accountant.add(BoundedRangeEvent(epsilon), count=3)
    assert 0.0 < accountant.epsilon(epsilon / 4000).epsilon <= 3 * epsilon
