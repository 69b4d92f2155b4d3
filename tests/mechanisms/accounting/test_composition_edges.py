"""Composition at its limits: all outcomes, the largest that is still affordable, what is refused next to it."""

from __future__ import annotations

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import mpmath
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import (
    advanced_composition,
    basic_composition,
    optimal_composition,
    optimal_delta,
    optimal_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.composition import even_share


def delta_of_outcomes(total: float, epsilon: float, count: int) -> float:
    """Of so many randomized responses, outcome by outcome."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    found = 0.0
    for told in itertools.product([True, False], repeat=count):
        first = math.prod(yes if each else no for each in told)
        second = math.prod(no if each else yes for each in told)
        found += max(0.0, first - math.exp(total) * second)
    return found


@for_each("count", range(1, 9))
@for_each("epsilon", [0.1, 0.5, 2.0])
def test_delta_is_that_of_all_outcomes_and_epsilon_returns_it(count: int, epsilon: float) -> None:
    for share in (0.0, 0.3, 0.5, 0.95):
        total = share * count * epsilon
        exact = delta_of_outcomes(total, epsilon, count)
        assert optimal_delta(total=total, epsilon=epsilon, count=count) == pytest.approx(exact, rel=1e-12)
        back = optimal_composition(epsilon=epsilon, count=count, delta=exact)
        assert back == pytest.approx(total, rel=1e-10, abs=1e-10)
    assert optimal_delta(total=count * epsilon, epsilon=epsilon, count=count) == 0.0
    assert optimal_delta(total=9e5, epsilon=epsilon, count=count) == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optimal_composition(epsilon=epsilon, count=count, delta=0.999) == 0.0


def test_a_delta_that_a_partial_sum_attains_costs_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optimal_composition(epsilon=0.0, count=1, delta=0.5) == 0.0


@for_each("count", [1, 2, 7, 40])
@for_each("delta", [1e-9, 0.01])
def test_what_attains_the_budget_exactly_is_affordable_and_its_neighbour_not(
    count: int, delta: float
) -> None:
    for each in (0.01, 0.1, 0.3, 0.7, 1.1, 1.3):
        whole = optimal_composition(epsilon=each, count=count, delta=delta)
        if whole == 0:
            continue
        found = optimal_epsilon_each(epsilon=whole, count=count, delta=delta)
        assert found == pytest.approx(each, rel=1e-12)
        assert optimal_composition(epsilon=found, count=count, delta=delta) <= whole
        more = math.nextafter(found, 9.0)
        assert optimal_composition(epsilon=more, count=count, delta=delta) > whole


@for_each("count", [1, 3, 7, 10, 49])
@for_each("epsilon", [0.1, 0.3, 1.0, 2.9])
def test_an_even_share_is_the_largest_that_fits(epsilon: float, count: int) -> None:
    share = even_share(epsilon, count)
    assert Fraction(share) * count <= Fraction(epsilon)
    assert Fraction(math.nextafter(share, 9.0)) * count > Fraction(epsilon)


@for_each("bad", [-1e-9, math.inf, math.nan])
def test_numbers_out_of_range_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="every epsilon"):
        basic_composition([0.1, bad])
    with pytest.raises(InputError, match="total is finite"):
        optimal_delta(total=bad, epsilon=0.1, count=3)
    with pytest.raises(InputError, match="epsilon is finite"):
        optimal_delta(total=0.1, epsilon=bad, count=3)


@for_each("count", [0, -1])
def test_no_releases_are_refused(count: int) -> None:
    for theorem in (advanced_composition, optimal_composition, optimal_epsilon_each):
        with pytest.raises(InputError, match="count is at least 1"):
            theorem(epsilon=0.1, count=count, delta=0.1)
    with pytest.raises(InputError, match="count is at least 1"):
        optimal_delta(total=0.1, epsilon=0.1, count=count)


def test_what_is_just_within_range_is_taken() -> None:
    assert basic_composition([0.0, 0.1]) == 0.1
    assert optimal_delta(total=0.0, epsilon=0.0, count=1) == 0.0
    assert optimal_composition(epsilon=0.3, count=1, delta=0.0) == 0.3
    assert advanced_composition(epsilon=0.0, count=1, delta=0.9) == 0.0
    assert optimal_epsilon_each(epsilon=0.3, count=1, delta=0.0) == 0.3


@for_each("count", [1, 2, 100, 10**4])
@for_each("epsilon", [5e-324, 1e-310, 1e-200])
def test_of_nearly_no_epsilon_the_total_variation_is_left(epsilon: float, count: int) -> None:
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=1e-6)
    assert optimal_delta(total=0.0, epsilon=each, count=count) == pytest.approx(1e-6, rel=1e-6)


def test_where_the_share_of_epsilon_and_of_delta_are_too_small_for_a_float_another_is_found() -> None:
    each = optimal_epsilon_each(epsilon=5e-324, count=7, delta=5e-324)
    assert 0 < each < 1e-15


def test_sums_beyond_all_floats_are_infinite() -> None:
    assert basic_composition([1e308] * 10) == basic_composition([Fraction(10) ** 400]) == math.inf
    assert basic_composition([1e308]) == 1e308
    for delta in (0.0, 1e-6, 0.5):
        assert optimal_composition(epsilon=1e308, count=10, delta=delta) == math.inf
    assert optimal_delta(total=1e308, epsilon=1e308, count=10) == 1.0
    for epsilon in (701.0, 1e308):
        assert advanced_composition(epsilon=epsilon, count=10, delta=1e-6) == math.inf
    assert math.isfinite(advanced_composition(epsilon=699.0, count=10, delta=1e-6))
    with pytest.raises(InputError, match="every epsilon"):
        basic_composition([0.1, Fraction(-1)])


def test_advanced_composition_is_infinite_from_where_an_exponential_may_be() -> None:
    assert advanced_composition(epsilon=700.0, count=1, delta=0.1) == math.inf
    assert advanced_composition(epsilon=math.nextafter(700.0, 0.0), count=1, delta=0.1) < math.inf


def smallest_epsilon(epsilon: float, count: int, delta: float) -> mpmath.mpf:
    """Return the theorem's epsilon, with digits enough that nothing cancels."""
    e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
    a = (1 / (1 + mpmath.exp(-e))) ** count
    b, up = mpmath.exp(-count * e) * a, mpmath.exp(e)
    first, second, best = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
    for l in range((count + 1) // 2):  # noqa: E741 - the theorem's letter
        first, second = first + a, second + b
        if first > d:
            best = max(best, (first - d) / second)
        ways = mpmath.mpf(count - l) / (l + 1)
        a, b = a * ways / up, b * ways * up
    return mpmath.log(best)


@for_each("epsilon", [1e-1, 1e-3, 1e-7, 1e-8, 1e-10, 1e-16, 1e-17, 1e-50, 1e-300])
@for_each("count", [1, 2, 7, 100])
def test_optimal_composition_is_never_below_the_truth_however_small_epsilon(
    epsilon: float, count: int
) -> None:
    """As a quotient of two sums it lost all digits of a small epsilon: a tenth of it at 1e-16."""
    spread = epsilon * math.sqrt(count)
    with mpmath.workdps(700):
        for delta in (1e-280, spread * 1e-4, spread * 0.03, spread * 0.2, 1e-6, 0.1, 0.9):
            if not 0 < delta < 1:
                continue
            truth = smallest_epsilon(epsilon, count, delta)
            found = optimal_composition(epsilon=epsilon, count=count, delta=delta)
            assert truth <= found <= truth * (1 + 1e-9) + mpmath.mpf(1e-10) * count * epsilon


def test_a_billion_releases_take_little_memory_and_more_a_closed_bound() -> None:
    tracemalloc.start()
    try:
        exact = optimal_composition(epsilon=1e-5, count=10**9, delta=1e-6)
        beyond = optimal_composition(epsilon=1e-5, count=10**9 + 1, delta=1e-6)
        assert optimal_delta(total=exact, epsilon=1e-5, count=10**9) == pytest.approx(1e-6, rel=1e-6)
        assert 1e-6 <= optimal_delta(total=exact, epsilon=1e-5, count=10**9 + 1) < 1e-3
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
    assert exact < beyond < 1.3 * exact
