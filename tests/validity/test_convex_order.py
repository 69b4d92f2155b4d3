"""The tail of a mean of losses by convex order, against exact laws, fifty digits, and the bounds around it."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import for_each
from scipy import stats

from reusable_holdout.validity import ConfidenceBound
from reusable_holdout.validity.confidence import binomial_lower, chernoff_lower
from reusable_holdout.validity.convex_order import convex_lower, convex_reach_low, log_convex_tail

LEVELS = [-math.log(2), -3.0, -10.0, -50.0, -500.0]
LAWS = {
    "0 or 1": ([0.0, 1.0], [0.3, 0.7]),
    "a half in between": ([0.0, 0.5, 1.0], [0.2, 0.3, 0.5]),
    "rarely all": ([0.0, 0.1, 1.0], [0.5, 0.49, 0.01]),
    "never nothing": ([0.6, 0.7, 1.0], [0.4, 0.2, 0.4]),
}


def law_of_sum(values, chances, rows):
    """Values and probabilities of a sum of independent losses, exact."""
    found = {0.0: 1.0}
    for _ in range(rows):
        after = {}
        for (total, chance), (value, other) in itertools.product(
            found.items(), zip(values, chances, strict=True)
        ):
            key = round(total + value, 9)
            after[key] = after.get(key, 0.0) + chance * other
        found = after
    return found


@for_each("law", list(LAWS))
@for_each("rows", [1, 2, 3, 7, 20])
def test_no_sum_of_losses_is_beyond_more_often(law, rows):
    values, chances = LAWS[law]
    mean = float(np.dot(values, chances))
    found = law_of_sum(values, chances, rows)
    for total in found:
        if total > rows * mean * (1 + 1e-9):
            beyond = math.fsum(chance for other, chance in found.items() if other >= total)
            tail = log_convex_tail(np.array([total]), rows=rows, probability=np.array([mean]))
            assert beyond <= math.exp(float(tail[0])) * (1 + 1e-9)


@for_each("law", list(LAWS))
@for_each("rows", [1, 3, 7, 20])
def test_the_lower_bound_is_above_the_mean_at_most_as_often_as_it_may(law, rows):
    values, chances = LAWS[law]
    mean = float(np.dot(values, chances))
    for level in (-math.log(2), -3.0, -8.0):
        missed = math.fsum(
            chance
            for total, chance in law_of_sum(values, chances, rows).items()
            if convex_lower(min(total / rows, 1.0), rows=rows, log_level=level) > mean
        )
        assert missed <= math.exp(level) * (1 + 1e-9)


def test_losses_of_different_means_are_beyond_no_more_often():
    for means in ([0.1, 0.9], [0.0, 0.5, 1.0], [0.2, 0.2, 0.2, 0.9, 0.9]):
        rows, law = len(means), np.array([1.0])
        for mean in means:
            law = np.convolve(law, [1.0 - mean, mean])
        for right in range(rows + 1):
            if right > sum(means) + 1e-9:
                tail = log_convex_tail(
                    np.array([float(right)]), rows=rows, probability=np.array([np.mean(means)])
                )
                assert law[right:].sum() <= math.exp(float(tail[0])) * (1 + 1e-9)


@for_each("rows", [1, 2, 10, 1_000, 100_000])
def test_it_is_never_wider_than_chernoffs_and_never_narrower_than_the_binomial_bound(rows):
    values = np.unique(np.round(np.array([0.001, 0.1, 0.5, 0.87, 0.999, 1.0]) * rows) / rows)
    for level in LEVELS:
        ours = convex_lower(values, rows=rows, log_level=level)
        assert np.all(ours >= chernoff_lower(values, rows=rows, log_level=level))
        assert np.all(ours <= binomial_lower(values, rows=rows, log_level=level) + 1e-9)


def test_it_is_a_tenth_narrower_than_chernoffs_at_the_levels_of_a_guard():
    at = {"rows": 5_000, "log_level": -8.0}
    ours, chernoff, exact = (bound(0.87, **at) for bound in (convex_lower, chernoff_lower, binomial_lower))
    assert 0.87 - ours < 0.92 * (0.87 - chernoff)
    assert 0.87 - ours < 1.075 * (0.87 - exact)


@for_each("rows", [5, 100, 10_000])
def test_it_is_within_a_factor_of_e_of_the_binomial_tail(rows):
    for probability in (0.05, 0.5, 0.9):
        for deviations in (1.0, 2.0, 4.0, 6.0):
            place = math.ceil(
                rows * probability + deviations * math.sqrt(rows * probability * (1 - probability))
            )
            if place <= rows:
                tail = log_convex_tail(
                    np.array([float(place)]), rows=rows, probability=np.array([probability])
                )
                exact = stats.binom.logsf(place - 1, rows, probability)
                assert exact - 1e-9 <= tail[0] <= exact + 1.0


@for_each(
    ("rows", "place", "probability"),
    [(1, 0, 0.3), (50, 30, 0.5), (1_000, 900, 0.87), (100_000, 88_000, 0.87)],
)
def test_the_mean_excess_agrees_with_fifty_digits(rows, place, probability):
    with mpmath.workdps(50):
        p = mpmath.mpf(probability)
        mass = mpmath.binomial(rows, place) * p**place * (1 - p) ** (rows - place)
        exact, k = mpmath.mpf(0), place
        while k < rows:
            mass = mass * (rows - k) / (k + 1) * p / (1 - p)
            k += 1
            exact += (k - place) * mass
            if mass < exact * mpmath.mpf(10) ** -40:
                break
        successes = place + 1.0
        wanted = float(mpmath.log(exact / (successes - place)))
    best = log_convex_tail(np.array([successes]), rows=rows, probability=np.array([probability]))
    assert best[0] <= wanted + 1e-7  # the best place is no worse than this one


@for_each("rows", [1, 7, 400, 30_000])
def test_what_reaches_a_target_does_and_hardly_less_would(rows):
    for level in LEVELS:
        targets = np.array([1e-3, 0.2, 0.5, 0.9, 0.999])
        reach = convex_reach_low(targets, rows=rows, log_level=level)
        for target, value in zip(targets.tolist(), reach.tolist(), strict=True):
            if math.isinf(value):
                assert convex_lower(1.0, rows=rows, log_level=level) <= target * (1 + 1e-9)
                continue
            assert convex_lower(value, rows=rows, log_level=level) >= target
            less = value - 1e-6 * (1.0 + 1.0 / rows)
            assert less <= 0.0 or convex_lower(less, rows=rows, log_level=level) <= target


def test_an_array_is_answered_as_its_elements_are():
    values = np.linspace(0.0, 1.0, 41)
    for call in (convex_lower, convex_reach_low):
        whole = call(values, rows=300, log_level=-7.0)
        alone = [call(float(value), rows=300, log_level=-7.0) for value in values]
        assert whole.tolist() == pytest.approx(alone, abs=1e-11)


def test_nothing_and_everything_are_answered():
    assert convex_lower(0.0, rows=100, log_level=-3.0) == 0.0
    assert convex_lower(1.0, rows=100, log_level=-3.0) == pytest.approx(math.exp(-0.03), rel=1e-9)
    assert convex_reach_low(0.0, rows=100, log_level=-3.0) == -math.inf
    assert convex_reach_low(1.0, rows=100, log_level=-3.0) == math.inf


@for_each(("rows", "level"), [(10**7 + 1, -10.0), (1_000, -700.0)])
def test_beyond_what_floats_can_tell_it_is_chernoffs(rows, level):
    assert convex_lower(0.9, rows=rows, log_level=level) == chernoff_lower(0.9, rows=rows, log_level=level)


def test_means_of_losses_have_it_and_weighted_means_have_not():
    mean = ConfidenceBound("bounded", rows=500, sum_of_squares=1 / 500)
    assert mean.lower(0.8, log_level=-6.0) == convex_lower(0.8, rows=500, log_level=-6.0)
    weighted = ConfidenceBound("bounded", rows=500, sum_of_squares=0.9 / 500)
    assert weighted.lower(0.8, log_level=-6.0) == chernoff_lower(0.8, rows=500, log_level=-6.0)
