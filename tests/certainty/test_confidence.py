"""Exact comparisons with mpmath, scipy and enumerated binomials, then algebra; nothing is sampled."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_tests import VALIDITY, examples
from scipy import stats

from reusable_holdout.certainty import ConfidenceBound, log_tails
from reusable_holdout.certainty.bound import (
    binomial_lower,
    binomial_reach_low,
    binomial_upper,
    chernoff_lower,
    chernoff_reach_low,
    mcdiarmid_width,
)
from reusable_holdout.certainty.log_tails import excess, tail_in_odds
from reusable_holdout.errors import InputError

LOG_HALF = math.log(0.5)


def binomial_reach_high(target, *, rows, log_level):
    return ConfidenceBound("binomial", rows, 1.0 / rows).reach_high(target, log_level=log_level)


def chernoff_upper(value, *, rows, log_level):
    return ConfidenceBound("bounded", rows, 1.0 / rows).upper(value, log_level=log_level)


def chernoff_reach_high(target, *, rows, log_level):
    return ConfidenceBound("bounded", rows, 1.0 / rows).reach_high(target, log_level=log_level)


def log_binomial_tail(successes, *, rows, probability):
    """Log of P(X >= successes), from the median of the tail outwards."""
    f = np if isinstance(successes, np.ndarray) else math
    failures = rows - successes
    constant = excess(float(rows) + 0.0 * successes) - excess(successes) - excess(failures)
    return tail_in_odds(f.log(probability) - f.log1p(-probability), successes, failures, constant)[0]


LEVELS = (LOG_HALF, math.log(0.05), math.log(0.025), -12.0, -50.0, -400.0, -2000.0, -5000.0)
CALLS = (
    *(binomial_lower, binomial_upper, binomial_reach_low, binomial_reach_high),
    *(chernoff_lower, chernoff_upper, chernoff_reach_low, chernoff_reach_high),
)
FAMILIES = ("binomial", "bounded", "bounded-difference")

log_levels = st.one_of(
    st.floats(-30.0, LOG_HALF), st.floats(-5000.0, LOG_HALF), st.sampled_from((LOG_HALF, -2000.0, -1e9))
)
row_counts = st.sampled_from((1, 2, 3, 7, 30, 1000, 10_000, 10**6, 10**8))
units = st.one_of(
    st.floats(0.0, 1.0), st.floats(0.0, 1e-6), st.floats(1.0 - 1e-6, 1.0), st.sampled_from((0.0, 0.5, 1.0))
)
bounds = st.builds(
    ConfidenceBound, family=st.sampled_from(FAMILIES), rows=row_counts, sum_of_squares=st.floats(1e-9, 1.0)
)


def mp_log_tail(successes, rows, p):
    """Terms of the binomial sum, smallest side first, to 50 digits."""
    with mp.workdps(50):
        p, k = mp.mpf(p), mp.mpf(int(successes))
        if k <= rows * p:
            return mp.log1p(-mp.exp(mp_log_tail(rows - successes + 1, rows, 1 - p)))
        term = mp.exp(mp.loggamma(rows + 1) - mp.loggamma(k + 1) - mp.loggamma(rows - k + 1))
        term = term * p**k * (1 - p) ** (rows - k)
        total = term
        while k < rows and term > total * mp.mpf(10) ** -45:
            term *= (rows - k) / (k + 1) * p / (1 - p)
            total, k = total + term, k + 1
        return mp.log(total)


CASES = [
    (rows, successes, level)
    for rows, counts in {
        1: (1,),
        2: (1, 2),
        9: (1, 4, 9),
        100: (1, 3, 50, 90, 99, 100),
        1000: (1, 17, 500, 900, 1000),
        10_000: (1, 300, 5000, 9000, 9990, 10_000),
        10**6: (2, 900_000, 10**6),
        10**8: (1, 50_000_000, 99_999_990, 10**8),
    }.items()
    for successes, level in itertools.product(counts, LEVELS)
    if rows < 10**6 or level <= math.log(0.025)  # the oracle's sums grow with the square root of rows
]


@for_each(("rows", "successes", "level"), [case for case in CASES if case[0] < 10**6])
def test_binomial_lower_is_within_1e_12_of_the_exact_solution_and_never_above_it(rows, successes, level):
    check_lower(rows, successes, level)


@pytest.mark.long(*VALIDITY)
@for_each(("rows", "successes", "level"), [case for case in CASES if case[0] >= 10**6])
def test_binomial_lower_is_as_near_and_as_safe_for_millions_of_rows(rows, successes, level):
    check_lower(rows, successes, level)


def check_lower(rows, successes, level):
    bound = binomial_lower(successes / rows, rows=rows, log_level=level)
    if bound < 1e-250:
        assert level / successes + math.log(successes) < math.log(1e-240)
        return
    with mp.workdps(50):
        p = mp.mpf(bound)
        gap = mp.mpf(level) - mp_log_tail(successes, rows, p)
        # concave in the log-odds, with slope E[X | X >= successes] - E[X] >= successes - rows p
        shortfall = gap * p * (1 - p) / (successes - rows * p)
        assert 0 <= shortfall < min(mp.mpf("1e-12"), p * mp.mpf("2e-9"))
        upper = binomial_upper(1.0 - successes / rows, rows=rows, log_level=level)
        assert 0 <= mp.mpf(upper) - (1 - p) < 1e-12


@pytest.mark.long(*VALIDITY)
@for_each("level", [0.5, 0.2, 0.05, 1e-4])
@for_each("family", ["binomial", "bounded"])
def test_the_exact_probability_of_missing_is_at_most_the_level(family, level):
    tightest = 0.0
    for rows in range(1, 13):
        x = np.arange(rows + 1)
        bound = ConfidenceBound(family, rows, 1.0 / rows)
        lower = bound.lower(x / rows, log_level=math.log(level))
        upper = bound.upper(x / rows, log_level=math.log(level))
        # the suprema are approached where p crosses a bound
        p = np.concatenate(
            [np.linspace(0, 1, 301), lower * (1 - 1e-12), lower, upper, upper + (1 - upper) * 1e-12]
        )
        for q in p:
            chances = stats.binom.pmf(x, rows, q)
            missed_above, missed_below = chances[lower > q].sum(), chances[upper < q].sum()
            assert missed_above <= level * (1 + 1e-11)
            assert missed_below <= level * (1 + 1e-11)
            tightest = max(tightest, missed_above, missed_below)
    if family == "binomial":
        assert tightest > level * (1 - 1e-9)


@for_each(
    ("rows", "successes", "probability"),
    [
        *((1, 1, 0.3), (7, 7, 1e-300), (100, 60, 0.5), (1000, 990, 0.1), (1000, 999, 1e-3)),
        *((10_000, 9100, 0.9), (10**8, 3, 1e-9), (10**8, 10**8, 0.99)),
    ],
)
def test_log_binomial_tail_agrees_with_fifty_digits(rows, successes, probability):
    check_tail(rows, successes, probability)


@pytest.mark.long(*VALIDITY)
@for_each(
    ("rows", "successes", "probability"),
    [(10**6, 903_000, 0.9), (10**6, 900_000, 0.9), (10**8, 50_040_000, 0.5), (10**8, 50_000_000, 0.5)],
)
def test_log_binomial_tail_agrees_with_fifty_digits_for_millions_of_rows(rows, successes, probability):
    check_tail(rows, successes, probability)


def check_tail(rows, successes, probability):
    exact = mp_log_tail(successes, rows, probability)
    got = log_binomial_tail(float(successes), rows=rows, probability=probability)
    assert abs(got - exact) <= 1e-11 * abs(exact) + 1e-14


def test_log_binomial_tail_of_real_successes_is_the_incomplete_beta_function():
    for rows, x, p in itertools.product((1, 4, 60), (0.01, 0.3, 0.97, 3.5, 41.25), (1e-5, 0.2, 0.5, 0.93)):
        if rows * p <= x <= rows:
            with mp.workdps(50):
                exact = mp.log(mp.betainc(x, rows - mp.mpf(x) + 1, 0, mp.mpf(p), regularized=True))
            assert log_binomial_tail(x, rows=rows, probability=p) == pytest.approx(
                float(exact), rel=1e-11, abs=1e-14
            )


@for_each("level", LEVELS)
@for_each("rows", [1, 10, 1000, 10**6, 10**8])
def test_chernoff_bounds_solve_hoeffdings_equation_from_the_safe_side(rows, level):
    for value in (1e-9, 0.01, 0.5, 0.9, 0.123456, 1 - 1e-9, 1.0):
        bound = chernoff_lower(value, rows=rows, log_level=level)
        if bound < 1e-250:
            assert level / rows / value < -300
            continue
        with mp.workdps(50):
            v = mp.mpf(value)

            def exponent(u, v=v):
                rest = (1 - v) * mp.log((1 - v) / (1 - u)) if v < 1 else 0
                return rows * (v * mp.log(v / u) + rest)

            u = mp.mpf(bound)
            slope = rows * (v - u) / (u * (1 - u))
            excess = (exponent(u) + mp.mpf(level)) / slope  # distance from the solution, to second order
            assert exponent(u) >= -mp.mpf(level)
            assert excess < 1e-12
        # 1 - value is exact only in part: the mirror image is compared at what it is given
        assert chernoff_upper(1.0 - value, rows=rows, log_level=level) == pytest.approx(
            1.0 - chernoff_lower(1.0 - (1.0 - value), rows=rows, log_level=level), abs=1e-15
        )


def test_the_width_of_mcdiarmid_is_hoeffdings_for_means():
    width = mcdiarmid_width(sum_of_squares=1 / 400, log_level=math.log(0.025))
    assert width == pytest.approx(math.sqrt(math.log(40.0) / 800))
    assert mcdiarmid_width(sum_of_squares=0.0, log_level=-3.0) == 0.0
    np.testing.assert_allclose(
        mcdiarmid_width(sum_of_squares=0.02, log_level=np.array([-1.0, -4.0])), [0.1, 0.2]
    )


@given(bound=bounds, first=units, second=units, level=log_levels)
def test_bounds_rise_with_the_value(bound, first, second, level):
    low, high = min(first, second), max(first, second)
    assert bound.lower(low, log_level=level) <= bound.lower(high, log_level=level) + 1e-14
    assert bound.upper(low, log_level=level) <= bound.upper(high, log_level=level) + 1e-14


@given(bound=bounds, value=units, first=log_levels, second=log_levels)
def test_bounds_widen_as_the_level_falls(bound, value, first, second):
    small, large = min(first, second), max(first, second)
    assert bound.lower(value, log_level=small) <= bound.lower(value, log_level=large) + 1e-14
    assert bound.upper(value, log_level=small) >= bound.upper(value, log_level=large) - 1e-14


@given(rows=row_counts, value=units, level=log_levels)
def test_chernoff_is_wider_than_the_exact_binomial_and_hoeffding_wider_still(rows, value, level):
    hoeffding = ConfidenceBound("bounded-difference", rows, 1.0 / rows)
    chernoff = chernoff_lower(value, rows=rows, log_level=level)
    assert hoeffding.lower(value, log_level=level) <= chernoff + 1e-14
    assert chernoff <= binomial_lower(value, rows=rows, log_level=level) + 1e-14
    chernoff = chernoff_upper(value, rows=rows, log_level=level)
    assert hoeffding.upper(value, log_level=level) >= chernoff - 1e-14
    assert chernoff >= binomial_upper(value, rows=rows, log_level=level) - 1e-14


@given(bound=bounds, value=units, level=log_levels)
def test_upper_is_the_mirror_image_of_lower(bound, value, level):
    mirror = 1.0 - bound.lower(1.0 - value, log_level=level)
    assert 0.0 <= bound.upper(value, log_level=level) - mirror <= 1e-15


@settings(max_examples=examples(600))
@given(bound=bounds, target=units, level=log_levels)
def test_the_value_that_reaches_a_target_reaches_it_and_a_smaller_one_does_not(bound, target, level):
    assume(not 0.0 < target < 1e-290)  # of subnormal numbers floats keep too few digits
    value = bound.reach_low(target, log_level=level)
    step = (1.0 / bound.rows if bound.family == "binomial" else 0.0) + 1e-8 * (1.0 + 1.0 / bound.rows)
    if value == math.inf:
        assert target >= 1.0 or bound.lower(1.0, log_level=level) <= target * (1 + 1e-9)
    elif value == -math.inf:
        assert target <= 0.0
    else:
        assert 0.0 <= value <= 1.0
        assert bound.lower(value, log_level=level) >= target
        assert value <= step or bound.lower(value - step, log_level=level) <= max(target, 1e-299)


def test_of_bounded_differences_a_target_that_the_best_value_just_reaches_is_reached():
    bound = ConfidenceBound("bounded-difference", rows=100, sum_of_squares=0.01)
    target = float(bound.lower(1.0, log_level=-3.0))
    found = set()
    for _ in range(40):  # the last targets that can be reached, one after the other
        target = math.nextafter(target, 0.0)
        found.add(bound.reach_low(target, log_level=-3.0))
    assert {1.0, math.inf} <= found
    assert max(value for value in found if value < math.inf) == 1.0


@settings(max_examples=examples(600))
@given(bound=bounds, target=units, level=log_levels)
def test_the_value_that_stays_within_a_target_stays_and_a_larger_one_does_not(bound, target, level):
    value = bound.reach_high(target, log_level=level)
    step = (1.0 / bound.rows if bound.family == "binomial" else 0.0) + 1e-8 * (1.0 + 1.0 / bound.rows)
    if value == -math.inf:
        assert target <= 0.0 or bound.upper(0.0, log_level=level) >= target - 1e-9 * (1.0 - target) - 4e-15
    elif value == math.inf:
        assert target >= 1.0
    else:
        assert 0.0 <= value <= 1.0
        assert bound.upper(value, log_level=level) <= target
        assert value + step >= 1.0 or bound.upper(value + step, log_level=level) >= target - 5e-15


@for_each("level", [LOG_HALF, -20.0, -2000.0])
def test_reaching_solves_the_tail_equation_for_a_real_number_of_successes(level):
    for rows, target in itertools.product((1, 25, 10_000, 10**6), (1e-6, 0.3, 0.5, 0.85, 0.999999)):
        value = binomial_reach_low(target, rows=rows, log_level=level)
        possible = rows * math.log(target) < level  # equality is lost to rounding, on the safe side
        assert (value < math.inf) == possible
        if possible and value < 1.0:
            tail = log_binomial_tail(rows * value, rows=rows, probability=target)
            assert level * (1 + 1e-8) - 1e-6 < tail <= level


@pytest.mark.long(*VALIDITY)
@for_each("call", CALLS)
@for_each("rows", [1, 30, 10_000, 10**8])
def test_an_array_is_answered_as_its_elements_are(call, rows):
    values = np.array([-0.5, 0.0, 1e-9, 0.01, 0.3, 0.5, 0.9, 0.99999, 1.0, 1.5])[:, None]
    levels = np.array([LOG_HALF, -3.0, -20.0, -2000.0, -5000.0, -1e9])
    together = call(values, rows=rows, log_level=levels)
    assert together.shape == (10, 6)
    alone = [[call(float(v), rows=rows, log_level=float(level)) for level in levels] for v in values[:, 0]]
    assert all(type(x) is float for row in alone for x in row)
    np.testing.assert_allclose(together, alone, rtol=1e-10 if rows < 10**8 else 1e-9, atol=1e-13)
    assert call(values[:, 0], rows=rows, log_level=-20.0).shape == (10,)
    assert call(np.empty(0), rows=rows, log_level=-20.0).shape == (0,)
    assert type(call(np.float64(0.5), rows=rows, log_level=np.float64(-3.0))) is float


def test_the_log_tail_of_an_array_is_that_of_its_elements():
    x, p = (
        np.array(cases)
        for cases in zip(
            *((x, p) for x in range(1, 101) for p in (1e-280, 1e-9, 0.3, 0.5, 0.97) if x >= 100 * p),
            strict=True,
        )
    )
    together = log_binomial_tail(x.astype(float), rows=100, probability=p)
    alone = [log_binomial_tail(float(a), rows=100, probability=float(b)) for a, b in zip(x, p, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-14)


def test_a_fraction_that_needs_many_terms_is_not_cut_short_in_an_array():
    successes = np.array([500_000.0, 900_000.0, 10.0, 1.0])
    lower = binomial_lower(successes / 10**6, rows=10**6, log_level=LOG_HALF)
    np.testing.assert_allclose(lower, stats.beta.median(successes, 10**6 - successes + 1), rtol=1e-10)


def test_good_starts_save_looks_at_the_tail(monkeypatch):
    """From a million rows on one look is enough: a start that is worse makes every answer slower, and none wrong."""
    looks = []

    def counted(tail):
        return lambda *given: looks.append(given) or tail(*given)

    for name in ("tail_in_odds", "tail_in_failures"):
        monkeypatch.setattr(log_tails, name, counted(getattr(log_tails, name)))
    counts = {}
    for rows in (5_000.0, 20_000.0, 1e6):
        looks.clear()
        for p, level in itertools.product((0.02, 0.1, 0.5, 0.9, 0.99), (-1.0, -5.0, -20.0, -100.0)):
            successes = round(p * rows)
            log_tails.solve_binomial(successes, rows - successes, level)
            if rows * math.log(p) < level:
                log_tails.solve_binomial_reach(p, rows, level)
        counts[rows] = len(looks)
    assert counts[1e6] == 2 * 20
    assert sum(counts.values()) <= 164  # 159 at the time of writing, for 114 solutions


def test_newtons_method_that_does_not_settle_ends_at_a_vacuous_bound():
    def never(position):
        return position * 0.0, 1.0 + 0.0 * position, 0.0 * position

    assert log_tails.climb(never, 0.0, -1.0) == -math.inf
    assert log_tails.climb(never, 1.0, 1.0, positive=True) == 0.0


@for_each("log_level", [0.0, 0.05, math.nextafter(LOG_HALF, 0.0), math.nan, -math.inf, -1e100])
@for_each("call", [binomial_lower, chernoff_lower, chernoff_upper, binomial_reach_low, chernoff_reach_high])
def test_a_level_that_is_not_the_log_of_one_is_refused(call, log_level):
    for level in (log_level, np.array([-3.0, log_level])):
        with pytest.raises(InputError, match="log_level must be the natural log of a level"):
            call(0.5, rows=10, log_level=level)
    assert (
        chernoff_lower(0.5, rows=5, log_level=LOG_HALF) > chernoff_lower(0.5, rows=5, log_level=-1e99) == 0.0
    )


def differences(**wrong):
    return ConfidenceBound(**{"family": "bounded-difference", "rows": 1, "sum_of_squares": 0.0, **wrong})


REFUSED = [
    (lambda: binomial_lower(0.5, rows=0, log_level=-3.0), "rows must be at least 1; got 0"),
    (lambda: chernoff_lower(0.5, rows=0, log_level=-3.0), "rows must be at least 1; got 0"),
    (lambda: chernoff_upper(np.array([0.5, math.nan]), rows=3, log_level=-3.0), "got NaN"),
    (lambda: binomial_reach_high(math.nan, rows=3, log_level=-3.0), "got NaN"),
    (lambda: mcdiarmid_width(sum_of_squares=-1e-9, log_level=-3.0), "sum_of_squares must be >= 0"),
    (lambda: mcdiarmid_width(sum_of_squares=0.1, log_level=1e-9), "sum_of_squares must be >= 0"),
    (lambda: mcdiarmid_width(sum_of_squares=0.1, log_level=np.array([-1.0, 0.1])), "must be >= 0"),
    (lambda: differences(sum_of_squares=math.nan), "sum_of_squares must be >= 0"),
    (lambda: differences(sum_of_squares=-1e-9), "sum_of_squares must be >= 0"),
    (lambda: differences(family="normal"), "family must be one of"),
    (lambda: differences(rows=0), "rows must be at least 1"),
]


@for_each(("call", "words"), REFUSED)
def test_other_input_no_bound_exists_for_is_refused(call, words):
    refuses(InputError, words, call)
    assert differences().lower(0.5, log_level=-1.0) == 0.5
    assert mcdiarmid_width(sum_of_squares=0.0, log_level=0.0) == 0.0
