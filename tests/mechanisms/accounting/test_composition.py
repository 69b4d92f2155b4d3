"""Composition: two theories must agree, inverses must return, and an independent accountant must concur."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import ACCOUNTING

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    advanced_composition,
    basic_composition,
    bounded_range_epsilon_each,
    optimal_composition,
    optimal_epsilon_each,
)

if TYPE_CHECKING:
    from collections.abc import Callable

epsilons = st.floats(1e-4, 2.0)
counts = st.integers(1, 500)
deltas = st.floats(1e-15, 0.5)


def kov_delta(total: float, epsilon: float, count: int) -> mpmath.mpf:
    """Delta of the theorem, term by term."""
    with mpmath.workdps(60):
        e, t = mpmath.mpf(epsilon), mpmath.mpf(total)
        terms = [
            mpmath.binomial(count, l) * (mpmath.exp((count - l) * e) - mpmath.exp(t + l * e))
            for l in range(count + 1)  # noqa: E741 - the theorem's letter
            if (count - 2 * l) * e > t
        ]
        return mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** count


def test_basic_composition_adds_decimals_exactly() -> None:
    assert basic_composition([0.02] * 50) == 1.0
    assert basic_composition([0.1] * 10) == 1.0
    assert basic_composition([Fraction(1, 3)] * 3) == 1.0
    assert basic_composition([]) == 0.0


@settings(deadline=None)
@given(epsilons, counts, deltas)
def test_optimal_composition_solves_the_theorem(epsilon: float, count: int, delta: float) -> None:
    total = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    if total == 0:
        assert kov_delta(0.0, epsilon, count) <= delta * (1 + 1e-9)
    else:
        assert float(kov_delta(total, epsilon, count)) == pytest.approx(delta, rel=1e-8)


@pytest.mark.long(*ACCOUNTING)
@for_each(
    ("epsilon", "count", "delta"), [(0.1, 10, 1e-6), (0.01, 400, 1e-6), (0.5, 30, 1e-3), (1.0, 5, 1e-9)]
)
def test_optimal_composition_agrees_with_the_privacy_loss_distribution(
    epsilon: float, count: int, delta: float
) -> None:
    """Google's accountant rounds losses up to a grid of 1e-5: it lies above, by at most count steps."""
    from dp_accounting.pld import common, privacy_loss_distribution

    each = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, 0), value_discretization_interval=1e-5
    )
    oracle = each.self_compose(count).get_epsilon_for_delta(delta)
    ours = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    assert ours - 1e-6 <= oracle <= ours + 1e-5 * count + 1e-6


@for_each(("count", "each"), [(10, 0.1001), (50, 0.0344), (100, 0.0240), (400, 0.0119)])
def test_the_known_epsilon_of_each_release(count: int, each: float) -> None:
    assert optimal_epsilon_each(epsilon=1.0, count=count, delta=1e-6) == pytest.approx(each, abs=6e-5)


@settings(deadline=None)
@given(st.floats(0.01, 5.0), counts, deltas)
def test_the_inverse_returns_and_never_exceeds(epsilon: float, count: int, delta: float) -> None:
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    total = optimal_composition(epsilon=each, count=count, delta=delta)
    assert total <= epsilon
    assert total == pytest.approx(epsilon, rel=1e-6)


@given(epsilons, counts, deltas)
def test_optimal_composition_is_never_worse_than_basic_or_advanced(
    epsilon: float, count: int, delta: float
) -> None:
    total = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    assert total <= count * epsilon * (1 + 1e-9)
    assert total <= advanced_composition(epsilon=epsilon, count=count, delta=delta) * (1 + 1e-9)


@given(epsilons, counts, deltas)
def test_optimal_composition_is_monotone(epsilon: float, count: int, delta: float) -> None:
    total = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    slack = 1e-9 * (1 + total)
    assert optimal_composition(epsilon=1.1 * epsilon, count=count, delta=delta) >= total - slack
    assert optimal_composition(epsilon=epsilon, count=count + 1, delta=delta) >= total - slack
    assert optimal_composition(epsilon=epsilon, count=count, delta=1.1 * delta) <= total + slack


def test_without_slack_optimal_composition_is_basic() -> None:
    assert optimal_composition(epsilon=0.25, count=8, delta=0) == 2.0
    assert optimal_epsilon_each(epsilon=2.0, count=8, delta=0) == 0.25
    assert optimal_composition(epsilon=0.25, count=8, delta=1e-300) == pytest.approx(2.0)


@pytest.mark.parametrize("inverse", [optimal_epsilon_each, bounded_range_epsilon_each])
@given(epsilons.filter(bool), counts)
def test_without_slack_the_inverse_is_rounded_down(
    inverse: Callable[..., float], epsilon: float, count: int
) -> None:
    each = inverse(epsilon=epsilon, count=count, delta=0.0)
    assert Fraction(each) * count <= Fraction(epsilon) < Fraction(math.nextafter(each, 9.0)) * count


def test_one_release_is_randomized_response() -> None:
    epsilon, delta = 0.7, 0.01
    total = optimal_composition(epsilon=epsilon, count=1, delta=delta)
    assert total == pytest.approx(math.log(math.exp(epsilon) - delta * (1 + math.exp(epsilon))), rel=1e-12)


def test_advanced_composition_is_the_formula() -> None:
    expected = 0.1 * math.sqrt(2 * 20 * math.log(1e5)) + 20 * 0.1 * (math.exp(0.1) - 1)
    assert advanced_composition(epsilon=0.1, count=20, delta=1e-5) == pytest.approx(expected, rel=1e-14)


def test_no_privacy_lost_is_none_lost_together() -> None:
    assert optimal_composition(epsilon=0.0, count=50, delta=1e-6) == 0.0
    assert advanced_composition(epsilon=0.0, count=50, delta=1e-6) == 0.0


@for_each("bad", [{"epsilon": -1.0}, {"epsilon": math.nan}, {"count": 0}, {"delta": -0.1}, {"delta": 1.0}])
@for_each("theorem", [advanced_composition, optimal_composition, optimal_epsilon_each])
def test_parameters_out_of_range_are_refused(theorem: object, bad: dict[str, float]) -> None:
    given_ = {"epsilon": 1.0, "count": 5, "delta": 1e-6} | bad
    with pytest.raises(InputError):
        theorem(**given_)  # type: ignore[operator]


def test_theorems_say_what_they_need() -> None:
    with pytest.raises(InputError, match="basic_composition"):
        advanced_composition(epsilon=1.0, count=5, delta=0.0)
    with pytest.raises(InputError, match="above 0"):
        optimal_epsilon_each(epsilon=0.0, count=5, delta=0.1)
    with pytest.raises(InputError, match="every epsilon"):
        basic_composition([0.1, -0.1])
