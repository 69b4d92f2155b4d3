"""Composition of private releases: the theorem term by term, its inverse, and the limits of floats."""

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import mpmath
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from reusable_holdout.mechanisms.accounting import (
    advanced_composition,
    basic_composition,
    bounded_range_epsilon_each,
    optimal_composition,
    optimal_delta,
    optimal_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.composition import even_share

epsilons = st.floats(1e-4, 2.0)
counts = st.integers(1, 500)
deltas = st.floats(1e-15, 0.5)


def theorem_delta(total, epsilon, count):
    """Sum the terms of Kairouz, Oh and Viswanath's Theorem 3.3."""
    with mpmath.workdps(60):
        e, t = mpmath.mpf(epsilon), mpmath.mpf(total)
        terms = [
            mpmath.binomial(count, below) * (mpmath.exp((count - below) * e) - mpmath.exp(t + below * e))
            for below in range(count + 1)
            if (count - 2 * below) * e > t
        ]
        return mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** count


def outcome_delta(total, epsilon, count):
    """Add up the excess of every outcome of so many randomized responses."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    found = 0.0
    for told in itertools.product([True, False], repeat=count):
        first = math.prod(yes if each else no for each in told)
        second = math.prod(no if each else yes for each in told)
        found += max(0.0, first - math.exp(total) * second)
    return found


def test_basic_composition_adds_decimals_exactly():
    assert basic_composition([0.02] * 50) == 1.0
    assert basic_composition([0.1] * 10) == 1.0
    assert basic_composition([Fraction(1, 3)] * 3) == 1.0
    assert basic_composition([]) == 0.0


@settings(deadline=None)
@given(epsilons, counts, deltas)
def test_optimal_composition_solves_the_theorem(epsilon, count, delta):
    total = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    if total == 0:
        assert theorem_delta(0.0, epsilon, count) <= delta * (1 + 1e-9)
    else:
        assert float(theorem_delta(total, epsilon, count)) == pytest.approx(delta, rel=1e-8)


@settings(deadline=None)
@given(st.floats(0.01, 5.0), counts, deltas)
def test_the_inverse_returns_and_never_exceeds(epsilon, count, delta):
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    total = optimal_composition(epsilon=each, count=count, delta=delta)
    assert total <= epsilon
    assert total == pytest.approx(epsilon, rel=1e-6)
    assert optimal_composition(epsilon=math.nextafter(each, 9.0), count=count, delta=delta) > epsilon


@given(epsilons, counts, deltas)
def test_optimal_composition_is_monotone_and_never_worse_than_basic_or_advanced(epsilon, count, delta):
    total = optimal_composition(epsilon=epsilon, count=count, delta=delta)
    slack = 1e-9 * (1 + total)
    assert total <= count * epsilon + slack
    assert total <= advanced_composition(epsilon=epsilon, count=count, delta=delta) + slack
    assert optimal_composition(epsilon=1.1 * epsilon, count=count, delta=delta) >= total - slack
    assert optimal_composition(epsilon=epsilon, count=count + 1, delta=delta) >= total - slack
    assert optimal_composition(epsilon=epsilon, count=count, delta=1.1 * delta) <= total + slack


def test_without_slack_optimal_composition_is_basic():
    assert optimal_composition(epsilon=0.25, count=8, delta=0) == 2.0
    assert optimal_composition(epsilon=0.25, count=8, delta=1e-300) == pytest.approx(2.0)
    assert optimal_composition(epsilon=0.3, count=1, delta=0.0) == 0.3


@pytest.mark.parametrize("inverse", [optimal_epsilon_each, bounded_range_epsilon_each])
@given(epsilons.filter(bool), counts)
def test_without_slack_the_inverse_is_rounded_down(inverse, epsilon, count):
    each = inverse(epsilon=epsilon, count=count, delta=0.0)
    assert each == even_share(epsilon, count)
    assert Fraction(each) * count <= Fraction(epsilon) < Fraction(math.nextafter(each, 9.0)) * count


def test_advanced_composition_is_the_formula_until_its_exponential_overflows():
    expected = 0.1 * math.sqrt(2 * 20 * math.log(1e5)) + 20 * 0.1 * (math.exp(0.1) - 1)
    assert advanced_composition(epsilon=0.1, count=20, delta=1e-5) == pytest.approx(expected, rel=1e-14)
    assert advanced_composition(epsilon=0.0, count=50, delta=1e-6) == 0.0
    for epsilon in (700.0, 1e308):
        assert advanced_composition(epsilon=epsilon, count=1, delta=0.1) == math.inf
    assert advanced_composition(epsilon=math.nextafter(700.0, 0.0), count=1, delta=0.1) < math.inf


@for_each("count", range(1, 9))
@for_each("epsilon", [0.1, 0.5, 2.0])
def test_delta_is_that_of_all_outcomes_and_epsilon_returns_it(count, epsilon):
    for share in (0.0, 0.3, 0.5, 0.95):
        total = share * count * epsilon
        exact = outcome_delta(total, epsilon, count)
        assert optimal_delta(total=total, epsilon=epsilon, count=count) == pytest.approx(exact, rel=1e-12)
        back = optimal_composition(epsilon=epsilon, count=count, delta=exact)
        assert back == pytest.approx(total, rel=1e-10, abs=1e-10)
    assert optimal_delta(total=count * epsilon, epsilon=epsilon, count=count) == 0.0
    assert optimal_delta(total=9e5, epsilon=epsilon, count=count) == 0.0


def test_a_delta_that_the_sums_attain_costs_nothing_and_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optimal_composition(epsilon=0.0, count=1, delta=0.5) == 0.0
        assert optimal_composition(epsilon=0.5, count=3, delta=0.999) == 0.0


@for_each("count", [1, 2, 100, 10**4])
@for_each("epsilon", [5e-324, 1e-310, 1e-200])
def test_an_epsilon_near_zero_leaves_the_total_variation(epsilon, count):
    each = optimal_epsilon_each(epsilon=epsilon, count=count, delta=1e-6)
    assert optimal_delta(total=0.0, epsilon=each, count=count) == pytest.approx(1e-6, rel=1e-6)
    assert 0 < optimal_epsilon_each(epsilon=5e-324, count=7, delta=5e-324) < 1e-15


def test_sums_beyond_all_floats_are_infinite():
    assert basic_composition([1e308] * 10) == basic_composition([Fraction(10) ** 400]) == math.inf
    assert basic_composition([1e308]) == 1e308
    for delta in (0.0, 1e-6, 0.5):
        assert optimal_composition(epsilon=1e308, count=10, delta=delta) == math.inf
    assert optimal_delta(total=1e308, epsilon=1e308, count=10) == 1.0


def theorem_epsilon(epsilon, count, delta):
    """Return the theorem's epsilon, with so many digits that nothing cancels."""
    e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
    a = (1 / (1 + mpmath.exp(-e))) ** count
    b, up = mpmath.exp(-count * e) * a, mpmath.exp(e)
    first, second, best = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
    for below in range((count + 1) // 2):
        first, second = first + a, second + b
        if first > d:
            best = max(best, (first - d) / second)
        ways = mpmath.mpf(count - below) / (below + 1)
        a, b = a * ways / up, b * ways * up
    return mpmath.log(best)


@for_each("epsilon", [1e-1, 1e-3, 1e-7, 1e-8, 1e-10, 1e-16, 1e-17, 1e-50, 1e-300])
@for_each("count", [1, 2, 7, 100])
def test_optimal_composition_is_never_below_the_truth_however_small_epsilon(epsilon, count):
    """A quotient of two sums would lose all digits of a small epsilon."""
    spread = epsilon * math.sqrt(count)
    with mpmath.workdps(700):
        for delta in (1e-280, spread * 1e-4, spread * 0.03, spread * 0.2, 1e-6, 0.1, 0.9):
            if not 0 < delta < 1:
                continue
            truth = theorem_epsilon(epsilon, count, delta)
            found = optimal_composition(epsilon=epsilon, count=count, delta=delta)
            assert truth <= found <= truth * (1 + 1e-9) + mpmath.mpf(1e-10) * count * epsilon


def test_a_billion_releases_take_little_memory_and_more_have_a_closed_bound():
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
