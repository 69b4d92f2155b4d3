"""Newton's steps one by one, the numbers of a series, what rounding is allowed, and how soon arrays are cut down."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import log_tails
from reusable_holdout.certainty.bound import (
    binomial_lower,
    binomial_reach_low,
    chernoff_lower,
    chernoff_reach_low,
)

EPS = 2.0**-52

# ---- Newton's steps


class Looks:
    """A function to climb that says the same at every position, and notes the positions."""

    def __init__(self, value, slope=1.0, curvature=0.0):
        self.said, self.at = (value, slope, curvature), []

    def __call__(self, position):
        self.at.append(position.copy() if isinstance(position, np.ndarray) else position)
        return tuple(number + 0.0 * position for number in self.said)


@for_each(
    ("value", "slope", "curvature", "second"),
    [
        (-6.0, 2.0, 0.0, 3.0),  # Newton's
        (-6.0, 2.0, 0.5, 3.0 / 1.375),  # shortened by its curvature
        (-6.0, 2.0, -0.4, 3.0 / 0.7),  # lengthened
        (-6.0, 2.0, -2.0, 6.0),  # by a factor of two at most
        (6.0, 2.0, -0.4, -3.0 / 1.3),
    ],
)
def test_a_step_is_newtons_with_its_curvature_and_at_most_doubled(value, slope, curvature, second):
    looks = Looks(value, slope, curvature)
    assert log_tails.climb(looks, 0.0, 0.0) == -math.inf  # it never settles
    assert looks.at[:2] == [0.0, pytest.approx(second, rel=1e-14)]
    several = Looks(value, slope, curvature)
    found = log_tails.climb(several, np.zeros(3), np.zeros(3))
    assert found.tolist() == [-math.inf] * 3
    assert several.at[1].tolist() == [looks.at[1]] * 3


@for_each(("value", "positions"), [(5.0, [8.0, 3.0, 0.375]), (100.0, [8.0, 1.0, 0.125])])
def test_a_step_towards_zero_goes_at_most_seven_eighths_of_the_way(value, positions):
    looks = Looks(value)
    assert log_tails.climb(looks, 8.0, 0.0, positive=True) == 0.0
    assert looks.at[:3] == positions
    # a step that was cut short has not come to where it is exact, however small the gap
    looks = Looks(value)
    log_tails.climb(looks, 8.0, 0.0, positive=True, tolerance=1e9)
    assert len(looks.at) == (1 if value == 5.0 else 100)


@for_each(
    ("gap", "tolerance", "enough"),
    [
        (1e-5, {}, True),
        (1.01e-5, {}, False),
        (0.5, {"tolerance": 0.5}, True),
        (math.nextafter(0.5, 1.0), {"tolerance": 0.5}, False),
        (-0.5, {"tolerance": 0.5}, True),
    ],
)
def test_a_gap_of_the_tolerance_needs_no_second_look(gap, tolerance, enough):
    looks = Looks(-gap)
    log_tails.climb(looks, 3.0, 0.0, **tolerance)
    assert (len(looks.at) == 1) == enough


def test_a_step_of_four_roundings_needs_no_second_look():
    for roundings, enough in ((4, True), (4.5, False)):
        looks = Looks(-2.0 * roundings * EPS)
        log_tails.climb(looks, 2.0 - 2.0 * roundings * EPS, 0.0, tolerance=0.0)  # it steps to 2
        assert looks.at[0] + 2.0 * roundings * EPS == 2.0
        assert (len(looks.at) == 1) == enough


@for_each(("settling", "sizes"), [(2, [6, 6]), (3, [6, 6]), (4, [6, 2]), (6, [6])])
def test_an_array_is_cut_down_once_more_than_half_of_it_has_settled(settling, sizes):
    seen = []

    def evaluate(position, gaps):
        seen.append(len(position))
        return -gaps / 10.0 ** (2 * len(seen)), 1.0 + 0.0 * position, 0.0 * position

    gaps = np.array([1e-9] * settling + [1.0] * (6 - settling))
    found = log_tails.climb(evaluate, np.zeros(6), np.zeros(6), gaps)
    assert seen[:2] == sizes
    assert np.isfinite(found).all()


# ---- a series, and next to no successes


def test_stirlings_series_has_bernoullis_numbers():
    exact = [abs(mp.bernoulli(2 * k)) / (2 * k * (2 * k - 1)) for k in range(1, 6)]
    assert pytest.approx([float(number) for number in exact], rel=1e-15) == log_tails._STIRLING_SERIES
    points = np.linspace(16.0, 17.0, 101)
    with mp.workdps(40):
        exact = [float(mp.loggamma(x + 1) - x * mp.log(x) + x) for x in map(mp.mpf, points.tolist())]
    errors = log_tails.excess(points) - exact
    assert abs(errors).max() < 1e-15
    assert abs(errors.mean()) < 2e-16


@for_each("x", [0.0, 1e-300, 1e-30])
def test_the_divergence_of_next_to_no_successes_is_that_of_none(x):
    expected = -5.0 * math.log(0.7)
    assert log_tails._divergence(x, 5.0, 0.3, 0.7) == pytest.approx(expected, rel=1e-14)
    found = log_tails._divergence(*(np.array([number]) for number in (x, 5.0, 0.3, 0.7)))
    assert found == pytest.approx([expected], rel=1e-14)


def test_log_odds_are_held_at_both_ends_of_what_a_float_has_room_for():
    for log_odds in (601.0, 1650.0):
        at, beyond = (log_tails.chernoff_in_odds(t, 3.0, 4.0) for t in (600.0, log_odds))
        assert beyond[0] - at[0] == pytest.approx(3.0 * (log_odds - 600.0), rel=1e-12)
        assert beyond[1:] == at[1:]


# ---- rounding


@for_each("rows", [10**6, 10**10])
@for_each("level", [-3.0, -100.0, -5000.0])
def test_what_is_kept_for_rounding_grows_with_the_deviations_of_a_tail(rows, level):
    """Solved for a level that is lower by at least 2e-15 of what its two terms cancel from."""
    for value in np.linspace(0.05, 0.95, 7).tolist():
        p = chernoff_lower(value, rows=rows, log_level=level)
        with mp.workdps(40):
            v, p = mp.mpf(value), mp.mpf(p)
            exact = -rows * (v * mp.log(v / p) + (1 - v) * mp.log((1 - v) / (1 - p)))
            kept = float(level - exact)
        assert 1.0 < kept / (2e-15 * math.sqrt(-rows * level)) < 10.0


@for_each(("lower", "reach"), [(binomial_lower, binomial_reach_low), (chernoff_lower, chernoff_reach_low)])
@for_each(("rows", "level"), [(1, -0.7), (9, -3.0), (1000, -40.0), (10**8, -3.0)])
def test_the_last_target_that_is_reached_is_reached_at_one(lower, reach, rows, level):
    target, beyond = 0.9 * math.exp(level / rows), 1.0
    while (middle := (target + beyond) / 2.0) not in {target, beyond}:
        reached = reach(middle, rows=rows, log_level=level) < math.inf
        target, beyond = (middle, beyond) if reached else (target, middle)
    assert reach(target, rows=rows, log_level=level) == 1.0
    assert reach(np.array([target]), rows=rows, log_level=level).tolist() == [1.0]
    assert target <= lower(1.0, rows=rows, log_level=level) < target + 5e-9


@for_each("log_odds", [-600.0, -100.0, -3.0, 0.0, 3.0, 30.0])
def test_inflation_gives_more_than_deflation_takes_however_small_the_probability(log_odds):
    with mp.workdps(40):
        exact = 1 / (1 + mp.exp(-mp.mpf(log_odds)))
        held = log_tails._deflated(log_odds)
        assert held < exact < log_tails.inflated(held)


def test_what_is_kept_for_rounding_is_that_of_all_rows(monkeypatch):
    rows, margin = [], log_tails.margin
    monkeypatch.setattr(log_tails, "margin", lambda n, level: (rows.append(n), margin(n, level))[1])
    for solve in (log_tails.solve_binomial, log_tails.solve_chernoff):
        solve(900.0, 100.0, -3.0)
        solve(100.0, 900.0, -3.0)
    assert rows == [1000.0] * 4


def test_of_so_many_rows_that_a_start_is_one_there_is_a_bound_below_it():
    assert 36.0 < log_tails._score_log_odds(1e20, 0.0, 0.5) < 38.0
    assert 1.0 - 1e-12 < chernoff_lower(1.0, rows=10**20, log_level=-1.0) < 1.0


# ---- how many looks at a tail


def looks_of_reaches(monkeypatch):
    """Numbers of failures at which a tail will be computed."""
    looks, look = [], log_tails.tail_in_failures

    def noted(y, *rest):
        looks.append(y)
        return look(y, *rest)

    monkeypatch.setattr(log_tails, "tail_in_failures", noted)
    return looks


def test_targets_that_all_but_the_best_values_miss_are_begun_where_there_are_failures(monkeypatch):
    """A start that is worse gives the same answer later."""
    looks = looks_of_reaches(monkeypatch)
    for level, further in itertools.product((-100.0, -700.0, -5000.0), (1.02, 1.1, 1.3)):
        log_tails.solve_binomial_reach(math.exp(level * further / 30.0), 30.0, level)
    assert len(looks) <= 24  # 22 at the time of writing


def test_a_reach_from_within_a_millionth_of_its_level_is_found_at_one_look(monkeypatch):
    p, rows, level = 0.7, 500.0, -5.0
    root = log_tails.solve_binomial_reach(p, rows, level)
    slope = log_tails.tail_in_failures(root, rows, p, 1.0 - p)[1]
    looks = looks_of_reaches(monkeypatch)
    for gap, count in ((0.9e-6, 1), (1.1e-6, 2), (-0.9e-6, 1), (-1.1e-6, 2)):
        monkeypatch.setattr(log_tails, "_near_failures", lambda *_, gap=gap: root + gap / slope)
        looks.clear()
        assert log_tails.solve_binomial_reach(p, rows, level) == pytest.approx(root, rel=1e-11)
        assert len(looks) == count
