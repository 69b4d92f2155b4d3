"""Bounds, tails and their starts against fifty digits, on a table that walks every branch; quick."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import ConfidenceBound, log_tails
from reusable_holdout.certainty import bound as bound_module
from reusable_holdout.certainty.bound import (
    binomial_lower,
    binomial_reach_low,
    chernoff_lower,
    chernoff_reach_low,
)

LOG_HALF = math.log(0.5)
LEVELS = (LOG_HALF, -3.0, -40.0, -700.0)
GRID = [
    (rows, count, level)
    for rows, counts in {1: (1,), 2: (1, 2), 30: (1, 15, 29, 30), 500: (1, 250, 480, 500)}.items()
    for count, level in itertools.product(counts, LEVELS)
]


def exact_tail(x, rows, p):
    """Log of I_p(x, rows - x + 1), for real x above rows p."""
    with mp.workdps(40):
        return mp.log(mp.betainc(x, rows - mp.mpf(x) + 1, 0, mp.mpf(p), regularized=True))


def exact_chernoff(value, rows, p):
    with mp.workdps(40):
        v, p = mp.mpf(value), mp.mpf(p)
        rest = (1 - v) * mp.log((1 - v) / (1 - p)) if v < 1 else 0
        return -rows * (v * mp.log(v / p) + rest)


@for_each(("rows", "count", "level"), GRID)
def test_a_lower_bound_is_at_its_level_and_never_above(rows, count, level):
    for lower, exact in ((binomial_lower, exact_tail), (chernoff_lower, exact_chernoff)):
        p = lower(count / rows, rows=rows, log_level=level)
        if p < 1e-250:
            assert level / count < -300
            continue
        value = count if lower is binomial_lower else count / rows
        gap = float(mp.mpf(level) - exact(value, rows, p))
        assert 0.0 <= gap < 2e-13 * (30 - level + math.sqrt(-rows * level))


@for_each("reach", [binomial_reach_low, chernoff_reach_low])
def test_targets_beyond_all_values_are_never_reached_and_those_of_zero_always(reach):
    assert reach(0.0, rows=9, log_level=-3.0) == reach(-0.5, rows=9, log_level=-3.0) == -math.inf
    for never in (1.0, 1.2, math.inf, 0.72, 0.9):  # exp(-3 / 9) = 0.7165
        assert reach(never, rows=9, log_level=-3.0) == math.inf
    assert 0.9 < reach(0.716, rows=9, log_level=-3.0) <= 1.0
    assert 0.0 <= reach(1e-305, rows=9, log_level=-3.0) <= 1e-6 + 1 / 9
    targets = np.array([-0.5, 0.0, 1e-305, 0.3, 0.716, 0.72, 1.0, math.inf])
    alone = [reach(float(target), rows=9, log_level=-3.0) for target in targets]
    np.testing.assert_allclose(reach(targets, rows=9, log_level=-3.0), alone, rtol=1e-12)


def test_values_are_counted_with_a_slack_for_rounding():
    for rows in (10, 10_000, 10**8):
        slack = 1e-9 + 2.0**-51 * rows
        count = 7 * rows // 10
        at = binomial_lower(count / rows, rows=rows, log_level=-3.0)
        assert binomial_lower((count + 0.5 * slack) / rows, rows=rows, log_level=-3.0) == at
        assert binomial_lower((count + 3.0 * slack) / rows, rows=rows, log_level=-3.0) > at
        assert binomial_lower((count - 0.9) / rows, rows=rows, log_level=-3.0) == at


@for_each("rows", [30, 500])
@for_each("level", [LOG_HALF, -3.0])
def test_reaching_ends_below_the_level_before_its_slack_is_added(rows, level):
    for target in (0.2, 0.5, 0.8):
        found = binomial_reach_low(target, rows=rows, log_level=level)
        x = rows * found - 2 * (1e-9 + 2.0**-51 * rows)
        assert -1e-8 < exact_tail(x, rows, target) - level <= 0


def test_many_values_of_one_level_are_solved_once_for_each_count(monkeypatch):
    solved, solve = [], bound_module._lower_of_count
    monkeypatch.setattr(
        bound_module, "_lower_of_count", lambda x, *rest: solved.append(len(x)) or solve(x, *rest)
    )
    values = np.tile([0.1, 0.5, 0.9], 50)
    found = binomial_lower(values, rows=20, log_level=-3.0)
    assert (solved, len(set(found.tolist()))) == ([3], 3)
    one = binomial_lower(np.array([0.5]), rows=20, log_level=-3.0)
    assert one.tolist() == [pytest.approx(binomial_lower(0.5, rows=20, log_level=-3.0), rel=1e-13)]


# ---- bounded differences


@for_each("squares", [0.01, 0.3, 0.0007])
def test_a_bound_by_differences_is_its_width_below_and_never_above_it(squares):
    bound = ConfidenceBound("bounded-difference", rows=3, sum_of_squares=squares)
    for level in np.linspace(-0.7, -2.0 / squares, 200).tolist():
        with mp.workdps(40):
            width = mp.sqrt(-mp.mpf(level) * mp.mpf(squares) / 2)
            for value in (float(width) * 1.5, float(width) * 1.01):  # of like numbers the difference is exact
                if value > 1.0:
                    continue
                found = mp.mpf(bound.lower(value, log_level=level))
                if found > 0:
                    assert value - width - 1e-14 < found <= value - width
    for target in np.linspace(1e-3, 0.99, 50).tolist():
        found = bound.reach_low(target, log_level=-3.0)
        needed = target + math.sqrt(1.5 * squares)
        if needed > 1.0:
            assert found == math.inf
        else:
            assert needed < found < needed + 1e-14
            assert bound.lower(found, log_level=-3.0) >= target


@for_each("family", ["binomial", "bounded", "bounded-difference"])
def test_targets_at_the_bounds_and_values_beyond_them(family):
    bound = ConfidenceBound(family, rows=50, sum_of_squares=0.001)
    assert bound.reach_low(0.0, log_level=-3.0) == bound.reach_low(-1.0, log_level=-3.0) == -math.inf
    assert bound.reach_high(1.0, log_level=-3.0) == bound.reach_high(2.0, log_level=-3.0) == math.inf
    assert bound.reach_low(1.0, log_level=-3.0) == bound.reach_low(1.2, log_level=-3.0) == math.inf
    assert bound.reach_high(0.0, log_level=-3.0) == -math.inf
    assert bound.lower(1.4, log_level=-3.0) == bound.lower(1.0, log_level=-3.0) < 1.0
    assert bound.lower(-0.4, log_level=-3.0) == bound.lower(0.0, log_level=-3.0) == 0.0
    assert bound.upper(-0.4, log_level=-3.0) == bound.upper(0.0, log_level=-3.0) > 0.0
    assert bound.upper(1.4, log_level=-3.0) == bound.upper(1.0, log_level=-3.0) == 1.0


def test_the_narrower_of_two_bounds_holds_and_of_means_that_is_chernoffs():
    values = np.linspace(0.0, 1.0, 101)
    for rows in (1, 40, 10**8):
        mean = ConfidenceBound("bounded", rows=rows, sum_of_squares=1 / rows)
        for level in LEVELS:
            chernoff = chernoff_lower(values, rows=rows, log_level=level)
            assert mean.lower(values, log_level=level).tolist() == chernoff.tolist()
            reached = chernoff_reach_low(values, rows=rows, log_level=level)
            assert mean.reach_low(values, log_level=level).tolist() == reached.tolist()
    steady = ConfidenceBound("bounded", rows=40, sum_of_squares=0.1 / 40)
    alike = ConfidenceBound("bounded-difference", rows=40, sum_of_squares=0.1 / 40)
    chernoff = chernoff_lower(values, rows=40, log_level=-3.0)
    both = np.maximum(chernoff, alike.lower(values, log_level=-3.0))
    assert steady.lower(values, log_level=-3.0).tolist() == both.tolist()
    assert (both > chernoff).any()
    reached = chernoff_reach_low(values, rows=40, log_level=-3.0)
    both = np.minimum(reached, alike.reach_low(values, log_level=-3.0))
    assert steady.reach_low(values, log_level=-3.0).tolist() == both.tolist()
    assert (both < reached).any()
    assert steady.of_rows(10) == ConfidenceBound("bounded", rows=10, sum_of_squares=0.01)


# ---- rounding


@for_each("value", [0.0, 1e-300, 1e-9, 0.3, 0.5, 0.97, 1.0 - 1e-12, 1.0])
def test_mirrors_and_inflation_err_outwards_and_little(value):
    with mp.workdps(40):
        assert 0 <= mp.mpf(log_tails.mirrored(value)) - (1 - mp.mpf(value)) < 1e-15 or value == 0.0
        assert log_tails.mirrored(0.0) == 1.0
        inside = log_tails.mirrored_target(value)
        if value == 1.0:
            assert inside == 0.0
        else:
            assert log_tails.mirrored(inside) <= value
            assert 2e-16 < mp.mpf(inside) - (1 - mp.mpf(value)) < 2e-15
    if value > 0.0:
        log_odds = math.log(value) - (math.log1p(-value) if value < 1.0 else -40.0)
        held = log_tails._deflated(log_odds)
        assert value * (1 - 1e-12) < held < value
        assert value < log_tails.inflated(value) < value * (1 + 1e-12)


def test_of_far_log_odds_no_probability_is_above_its_own():
    for log_odds in (-700.0, -100.0, -3.0, -1e-9, 0.0, 0.5, 30.0, 700.0):
        with mp.workdps(40):
            exact = 1 / (1 + mp.exp(-mp.mpf(log_odds)))
            assert -1e-12 < (mp.mpf(log_tails._deflated(log_odds)) - exact) / exact < 0


# ---- tails


@for_each("x", [0.0, 0.01, 0.5, 1.0, 3.7, 15.99, 16.0, 17.5, 300.0, 1e6])
def test_the_excess_of_a_factorial_agrees_with_fifty_digits(x):
    with mp.workdps(50):
        exact = mp.loggamma(mp.mpf(x) + 1) - (mp.mpf(x) * mp.log(x) if x else 0) + mp.mpf(x)
    assert log_tails.excess(x) == pytest.approx(float(exact), rel=1e-14, abs=1e-15)
    assert log_tails.excess(np.array([x, 5.0]))[0] == pytest.approx(float(exact), rel=1e-14, abs=2e-15)


TAILS = [
    *((1.0, 0.0, 0.3), (3.0, 4.0, 0.2), (90.0, 10.0, 0.8), (30.0, 970.0, 1e-3), (2.5, 7.25, 0.01)),
    (5.0, 5.0, 0.5),
]


@for_each(("x", "y", "p"), TAILS)
def test_tails_and_their_derivatives_agree_with_fifty_digits(x, y, p):
    rows, log_odds = x + y, math.log(p) - math.log1p(-p)
    constant = log_tails.excess(rows) - log_tails.excess(x) - log_tails.excess(y)

    def at(kind):
        return lambda t: kind(x, y, 1 / (1 + mp.exp(-t)))

    def tail(x, y, p):
        return mp.log(mp.betainc(x, y + 1, 0, p, regularized=True))

    def chernoff(x, y, p):
        rest = y * mp.log(y / (x + y) / (1 - p)) if y else 0
        return -x * mp.log(x / (x + y) / p) - rest

    with mp.workdps(50):
        for kind, found in (
            (tail, log_tails.tail_in_odds(log_odds, x, y, constant)),
            (chernoff, log_tails.chernoff_in_odds(log_odds, x, y)),
        ):
            exact = [float(mp.diff(at(kind), mp.mpf(log_odds), order)) for order in range(3)]
            assert found == pytest.approx(exact, rel=2e-11, abs=1e-13)
        value, slope, curvature = log_tails.tail_in_failures(y + 0.25, rows + 0.5, p, 1 - p)
        exact = [
            float(mp.diff(lambda z: tail(rows + mp.mpf("0.5") - z, z, mp.mpf(p)), y + 0.25, order))
            for order in (0, 1)
        ]
        assert value == pytest.approx(exact[0], rel=1e-11)
        assert slope == pytest.approx(exact[1], rel=5e-3)
        assert curvature == 0.0
        value, slope, curvature = log_tails.chernoff_in_failures(y + 0.25, rows + 0.5, p, 1 - p)
        exact = [
            float(mp.diff(lambda z: chernoff(rows + mp.mpf("0.5") - z, z, mp.mpf(p)), y + 0.25, order))
            for order in (0, 1)
        ]
        assert (value, slope, curvature) == (*(pytest.approx(one, rel=1e-11) for one in exact), 0.0)


def test_beyond_what_a_float_holds_a_tail_is_a_line():
    for kind, extra in ((log_tails.tail_in_odds, (0.3,)), (log_tails.chernoff_in_odds, ())):
        at, beyond = kind(-600.0, 3.0, 4.0, *extra), kind(-1650.0, 3.0, 4.0, *extra)
        assert beyond[0] == pytest.approx(at[0] - 3150.0, rel=1e-14)
        assert beyond[1:] == at[1:]
        assert kind(600.0, 3.0, 4.0)[0] < -2000.0 if not extra else True


def test_a_tail_of_next_to_no_successes_has_a_slope():
    value, slope, _ = log_tails.tail_in_failures(3.0 - 5e-4, 3.0, 0.3, 0.7)
    x, h = mp.mpf(3.0) - mp.mpf(3.0 - 5e-4), mp.mpf(1e-8)
    assert value == pytest.approx(float(exact_tail(x, 3, 0.3)), rel=1e-9)
    with mp.workdps(40):
        exact = (exact_tail(x - h, 3, 0.3) - exact_tail(x + h, 3, 0.3)) / (2 * h)
    assert slope == pytest.approx(float(exact), rel=5e-2)
