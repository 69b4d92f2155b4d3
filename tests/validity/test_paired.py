"""Differences of two models: the rate against brute force, the bound against exact tails, and against two intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from reusable_holdout.errors import InputError
from reusable_holdout.validity import ConfidenceBound, PairedBound, paired_rate

disagreements = st.sampled_from([0.02, 0.1, 0.5, 1.0])


@settings(deadline=None)
@given(disagreements, st.floats(-0.99, 0.99), st.floats(-0.99, 0.99))
def test_the_rate_is_the_legendre_transform(p: float, v: float, m: float) -> None:
    v, m = v * p, m * p

    def negative(scale: float) -> float:
        mgf = 1 - p + (p + m) / 2 * math.exp(scale) + (p - m) / 2 * math.exp(-scale)
        return math.log(mgf) - scale * v

    best = -optimize.minimize_scalar(
        negative, bounds=(-30, 30), method="bounded", options={"xatol": 1e-10}
    ).fun
    assert paired_rate(v, m, disagreement=p) == pytest.approx(best, rel=1e-6, abs=1e-10)


def test_where_all_rows_differ_it_is_the_binomials_kl() -> None:
    pairs, chernoff = PairedBound(rows=1_000, disagreement=1.0), ConfidenceBound("bounded", 1_000, 1e-3)
    for value, level in itertools.product((0.0, 0.3, 0.5, 0.99), (-1.0, -20.0, -500.0)):
        for side in ("lower", "upper"):
            ours, theirs = (getattr(b, side)(value, log_level=level) for b in (pairs, chernoff))
            assert ours == pytest.approx(theirs, abs=1e-8)


def exact_tail(rows: int, up: float, down: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences -rows..rows and their probabilities: a convolution of trinomial rows."""
    law, one = np.ones(1), np.array([down, 1 - up - down, up])
    for _ in range(rows):
        law = np.convolve(law, one)
    return np.arange(-rows, rows + 1), law


@for_each(("up", "down"), [(0.05, 0.05), (0.08, 0.02), (0.1, 0.0), (0.01, 0.03), (0.0, 0.0)])
@for_each("level", [0.025, 1e-4, 1e-12])
def test_both_sides_miss_no_more_often_than_they_say(up: float, down: float, level: float) -> None:
    rows, bound = 60, PairedBound(rows=60, disagreement=0.1)
    counts, law = exact_tail(rows, up, down)
    truth, values = (up - down + 1) / 2, (counts / rows + 1) / 2
    levels = np.full(len(values), math.log(level))
    assert law[bound.lower(values, log_level=levels) > truth].sum() <= level
    assert law[bound.upper(values, log_level=levels) < truth].sum() <= level


def test_where_all_rows_differ_and_all_one_way_the_rate_is_that_of_one_outcome() -> None:
    assert paired_rate(1.0, 0.2, disagreement=1.0) == pytest.approx(-math.log(0.6))
    assert paired_rate(-1.0, 0.2, disagreement=1.0) == pytest.approx(-math.log(0.4))


@settings(deadline=None, max_examples=50)
@given(disagreements, st.floats(0.0, 1.0), st.floats(-300.0, -0.7), st.integers(1, 10**6))
def test_bounds_contain_the_value_and_the_reach_is_their_inverse(
    p: float, value: float, level: float, rows: int
) -> None:
    bound = PairedBound(rows=rows, disagreement=p)
    low, high = bound.lower(value, log_level=level), bound.upper(value, log_level=level)
    clipped = min(max(value, (1 - p) / 2), (1 + p) / 2)
    assert 0 <= low <= clipped + 1e-9
    assert clipped - 1e-9 <= high <= 1
    assert high == pytest.approx(1 - bound.lower(1 - value, log_level=level), abs=1e-12)
    reach = bound.reach_low(low, log_level=level)
    if abs(2 * value - 1) < p - 1e-6:  # at the ends a bound is attained by no value inside
        assert reach <= value + 1e-6 or low == pytest.approx((1 - p) / 2, abs=1e-6)
    if math.isfinite(reach):
        assert bound.lower(reach, log_level=level) >= low - 1e-9


def test_arrays_are_answered_as_their_elements_are() -> None:
    bound, values = PairedBound(rows=500, disagreement=0.2), np.linspace(0, 1, 41)
    for name in ("lower", "upper", "reach_low", "reach_high"):
        row = getattr(bound, name)(values, log_level=-7.0)
        assert row.tolist() == [getattr(bound, name)(float(value), log_level=-7.0) for value in values]


@pytest.mark.parametrize("p", [0.02, 0.1])
def test_rare_disagreement_makes_it_narrower_than_two_intervals(p: float) -> None:
    level = math.log(0.05 / 2)
    paired = PairedBound(rows=10_000, disagreement=p)
    ours = 2 * (paired.upper(0.5, log_level=level) - 0.5)
    one = ConfidenceBound("binomial", 10_000, 1e-4)
    theirs = 2 * (one.upper(0.9, log_level=level - math.log(2)) - 0.9)
    assert ours < theirs
    assert ours < 1.01 * math.sqrt(-2 * level * p / 10_000) + 1e-4


@for_each("bad", [{"rows": 0}, {"disagreement": 0.0}, {"disagreement": 1.1}, {"disagreement": math.nan}])
def test_what_is_out_of_range_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        PairedBound(**({"rows": 10, "disagreement": 0.5} | bad))  # type: ignore[arg-type]
