"""Charges that chance makes, against closed forms, a plain recursion and a simulation of the algorithm."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from scipy import integrate, stats

from reusable_holdout.noise import expected_charges_of_stages

SD, T = 0.01 * math.sqrt(2), 0.04


def difference_tail(least, first, second):
    """Return the chance that the difference of two Laplace variables of these scales is at least so large."""
    far = abs(least)
    tail = first**2 * math.exp(-far / first) - second**2 * math.exp(-far / second)
    tail /= 2 * (first**2 - second**2)
    return tail if least > 0 else 1 - tail


@for_each("noise_scale", [1e-4, 0.001, 0.01, 0.1])
@for_each("sd", [1e-4, 0.001, SD, 0.1])
def test_one_query_is_an_integral_over_its_deviation(noise_scale, sd):
    """Comparison's and threshold's noise are one variable with a closed tail, and this another way to integrate."""

    def density(x):
        falls = math.exp(-((x / sd) ** 2) / 2) * math.sqrt(2 / math.pi) / sd
        return falls * difference_tail(T - x, 4 * noise_scale, 2 * noise_scale)

    ends = sorted({0.0, sd, 4 * sd, 12 * sd, *(x for x in (T - sd, T, T + sd) if 0 < x < 12 * sd)})
    parts = [integrate.quad(density, *pair, epsabs=0, epsrel=1e-12) for pair in itertools.pairwise(ends)]
    found = expected_charges_of_stages([T], deviation_sd=sd, queries=1, noise_scale=noise_scale)
    assert found == pytest.approx(sum(part for part, _ in parts), rel=1e-8)


def times_of_charges(chances, queries):
    """Return the chances of so many charges within the queries, one by one, each with a chance of its own."""
    charges = [1.0] + [0.0] * len(chances)
    for _ in range(queries):
        for count in range(len(chances), 0, -1):
            charges[count] += charges[count - 1] * chances[count - 1]
            charges[count - 1] *= 1 - chances[count - 1]
    return charges


@for_each("queries", [1, 2, 3, 4, 7, 8, 60])
@for_each("thresholds", [[0.03], [0.03, 0.012], [0.005, 0.02, 0.01, 0.001, 0.002]])
def test_stages_are_charged_as_a_count_query_by_query_says(thresholds, queries):
    """The convolution is exact where no time is left out."""
    chances = [math.erfc(t / (0.01 * math.sqrt(2))) for t in thresholds]
    law = times_of_charges(chances, queries)
    expected = sum(count * probability for count, probability in enumerate(law))
    found = expected_charges_of_stages(thresholds, deviation_sd=0.01, queries=queries, noise_scale=0)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_budget_of_one_is_spent_as_often_as_the_first_charge_comes():
    chance = math.erfc(3.0 / math.sqrt(2.0))
    for queries in (1, 10, 4_096, 100_000):
        expected = 1.0 - (1.0 - chance) ** queries
        staged = expected_charges_of_stages([0.03], deviation_sd=0.01, queries=queries, noise_scale=0.0)
        assert staged == pytest.approx(expected, rel=1e-6)


def simulate(thresholds, queries, noise_scale, runs):
    """Run Thresholdout with stages, all runs at a time; count the charges of each."""
    rng = np.random.default_rng(7)
    ends = np.append(thresholds, np.inf)
    held, charges = rng.laplace(0, 2 * noise_scale, runs), np.zeros(runs, dtype=int)
    for _ in range(queries):
        noisy = np.abs(rng.normal(0, SD, runs)) + rng.laplace(0, 4 * noise_scale, runs)
        above = noisy >= ends[charges] + held
        charges += above
        held = np.where(above, rng.laplace(0, 2 * noise_scale, runs), held)
    return charges


@for_each("noise_scale", [0.001, 0.01])
def test_a_simulation_of_the_algorithm_agrees_and_rejects_other_formulas(noise_scale):
    """Thresholds fall; Student's t holds of the mean, false alarm 1e-9."""
    thresholds, queries, runs = [T, 0.9 * T, 0.8 * T], 400, 4_000
    charges = simulate(thresholds, queries, noise_scale, runs)
    settings = {"deviation_sd": SD, "noise_scale": noise_scale}
    expected = expected_charges_of_stages(thresholds, queries=queries, **settings)
    redrawn = [expected_charges_of_stages([t], queries=1, **settings) for t in thresholds]
    law = times_of_charges(redrawn, queries)  # a threshold drawn anew for each query
    slack = stats.t.isf(0.5e-9, runs - 1) * charges.std(ddof=1) / math.sqrt(runs)
    assert abs(charges.mean() - expected) < slack < 0.15 * expected
    if noise_scale == 0.001:
        wrong = sum(count * probability for count, probability in enumerate(law))
        assert abs(charges.mean() - wrong) > slack


def test_charges_rise_with_the_noise_the_stages_and_lower_thresholds():
    settings = {"deviation_sd": SD, "queries": 1_000}
    scales = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    for counts in (
        [expected_charges_of_stages([T] * 99, noise_scale=scale, **settings) for scale in scales],
        [expected_charges_of_stages(stages, noise_scale=5e-4, **settings)
         for stages in ([0.06], [0.06] * 2, [0.06, 0.04])],
    ):  # fmt: skip
        assert counts == sorted(counts)
        assert counts[0] < counts[-1]


def test_coarse_time_changes_little():
    settings = {"deviation_sd": 0.01, "noise_scale": 0.0005}
    fine = expected_charges_of_stages([0.034] * 5, queries=4_096, **settings)
    coarse = expected_charges_of_stages([0.034] * 5, queries=4_097, **settings)
    assert coarse == pytest.approx(fine, rel=5e-3)


@for_each("ratio", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_no_more_charges_are_expected_than_there_are(ratio):
    """Extreme ratios of noise to deviation stay probabilities; a threshold that all reach is always charged."""
    charges = expected_charges_of_stages([T] * 5, deviation_sd=SD, queries=100, noise_scale=ratio * SD)
    assert 0 <= charges <= 5
    certain = expected_charges_of_stages([1e-300] * 3, deviation_sd=1.0, queries=10, noise_scale=0.0)
    assert certain == pytest.approx(3.0, abs=1e-9)


def test_mechanisms_that_no_guard_runs_on_expect_nothing_but_without_noise_all_expect_the_same():
    settings = {"deviation_sd": 0.01, "queries": 500}
    for name in ("standard-svt", "target-charging", "noiseless"):
        found = [
            expected_charges_of_stages([0.03] * 3, mechanism=mechanism, noise_scale=0.0, **settings)
            for mechanism in (name, "numeric-sparse")
        ]
        assert found[0] == found[1]
    for name in ("standard-svt", "target-charging"):
        assert math.isnan(expected_charges_of_stages([0.03], mechanism=name, noise_scale=1e-3, **settings))
