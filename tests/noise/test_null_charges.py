"""Charges that chance makes, against closed forms, a plain recursion and a simulation of the algorithm."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from scipy import integrate, stats

from reusable_holdout.errors import InputError
from reusable_holdout.noise import Calibration, expected_charges_of_stages, expected_null_charges

SD, T, QUERIES = 0.01 * math.sqrt(2), 0.04, 10_000


def expected(noise_scale: float, queries: int = QUERIES) -> float:
    return expected_null_charges(threshold=T, deviation_sd=SD, queries=queries, noise_scale=noise_scale)


@for_each(("noise_scale", "charges"), [(0.0, 46.777), (1e-5, 46.780), (0.001, 78.496), (0.01, 1865.887)])
def test_known_numbers_of_charges(noise_scale: float, charges: float) -> None:
    assert expected(noise_scale) == pytest.approx(charges, abs=0.001)


def difference_tail(least: float, first: float, second: float) -> float:
    """Chance that the difference of two Laplace variables of these scales is at least so large."""
    far = abs(least)
    tail = first**2 * math.exp(-far / first) - second**2 * math.exp(-far / second)
    tail /= 2 * (first**2 - second**2)
    return tail if least > 0 else 1 - tail


@for_each("noise_scale", [1e-4, 0.001, 0.01, 0.1])
@for_each("sd", [1e-4, 0.001, SD, 0.1])
def test_one_query_is_an_integral_over_its_deviation(noise_scale: float, sd: float) -> None:
    """Comparison's and threshold's noise are one variable with a closed tail, and this another way to integrate."""

    def density(x: float) -> float:
        falls = math.exp(-((x / sd) ** 2) / 2) * math.sqrt(2 / math.pi) / sd
        return falls * difference_tail(T - x, 4 * noise_scale, 2 * noise_scale)

    ends = sorted({0.0, sd, 4 * sd, 12 * sd, *(x for x in (T - sd, T, T + sd) if 0 < x < 12 * sd)})
    parts = [integrate.quad(density, *pair, epsabs=0, epsrel=1e-12) for pair in itertools.pairwise(ends)]
    found = expected_null_charges(threshold=T, deviation_sd=sd, queries=1, noise_scale=noise_scale)
    assert found == pytest.approx(sum(part for part, _ in parts), rel=1e-8)
    staged = expected_charges_of_stages([T], deviation_sd=sd, queries=1, noise_scale=noise_scale)
    assert staged == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("noise_scale", [0.001, 0.01])
def test_holding_the_threshold_makes_fewer_charges_than_redrawing_it(noise_scale: float) -> None:
    assert expected(noise_scale) < QUERIES * expected(noise_scale, queries=1)


def simulate(noise_scale: float, runs: int) -> np.ndarray:
    """Thresholdout without a budget, `runs` at a time."""
    rng = np.random.default_rng(7)
    threshold = T + rng.laplace(0, 2 * noise_scale, runs)
    charges = np.zeros(runs)
    for _ in range(QUERIES):
        noisy = np.abs(rng.normal(0, SD, runs)) + rng.laplace(0, 4 * noise_scale, runs)
        above = noisy >= threshold
        charges += above
        threshold = np.where(above, T + rng.laplace(0, 2 * noise_scale, runs), threshold)
    return charges


@pytest.mark.parametrize("noise_scale", [0.001, 0.01])
def test_a_simulation_of_the_algorithm_agrees_and_rejects_other_formulas(noise_scale: float) -> None:
    """A count is a sum over many renewals, so Student's t holds; false alarm 1e-9."""
    charges = simulate(noise_scale, runs=400)
    slack = stats.t.isf(0.5e-9, 399) * charges.std(ddof=1) / math.sqrt(400)
    assert abs(charges.mean() - expected(noise_scale)) < slack
    assert abs(charges.mean() - 1.3 * expected(noise_scale)) > slack
    assert abs(charges.mean() - QUERIES * expected(noise_scale, queries=1)) > slack  # redrawn at each query


def test_charges_fall_with_the_threshold_and_rise_with_the_noise() -> None:
    by_noise = [expected(scale) for scale in (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)]
    assert by_noise == sorted(by_noise)
    by_threshold = [
        expected_null_charges(threshold=t, deviation_sd=SD, queries=1000, noise_scale=0.001)
        for t in (0.02, 0.04, 0.08, 0.5)
    ]
    assert by_threshold == sorted(by_threshold, reverse=True)


@for_each("ratio", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_extreme_ratios_of_noise_to_deviation_stay_probabilities(ratio: float) -> None:
    charges = expected_null_charges(threshold=T, deviation_sd=SD, queries=100, noise_scale=ratio * SD)
    assert 0 <= charges <= 100


def test_no_queries_make_no_charges() -> None:
    assert expected(0.01, queries=0) == 0


@for_each("bad", [{"threshold": 0.0}, {"deviation_sd": 0.0}, {"noise_scale": -1.0}, {"queries": -1}])
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    given = {"threshold": T, "deviation_sd": SD, "queries": 1, "noise_scale": 0.0} | bad
    with pytest.raises(InputError):
        expected_null_charges(**given)  # type: ignore[arg-type]


def test_stages_of_one_threshold_and_a_large_budget_are_the_unlimited_stream():
    settings = {"deviation_sd": 0.01, "queries": 2_000, "noise_scale": 0.0005}
    unlimited = expected_null_charges(threshold=0.035, **settings)
    staged = expected_charges_of_stages([0.035] * 40, **settings)
    assert staged == pytest.approx(unlimited, rel=1e-6)


def test_a_budget_of_one_is_spent_as_often_as_the_first_charge_comes():
    chance = math.erfc(3.0 / math.sqrt(2.0))
    for queries in (1, 10, 4_096, 100_000):
        expected = 1.0 - (1.0 - chance) ** queries
        staged = expected_charges_of_stages([0.03], deviation_sd=0.01, queries=queries, noise_scale=0.0)
        assert staged == pytest.approx(expected, rel=1e-6)


def test_more_stages_and_lower_thresholds_make_more_charges():
    settings = {"deviation_sd": 0.01, "queries": 1_000, "noise_scale": 0.0005}
    counts = [expected_charges_of_stages(stages, **settings) for stages in ([0.03], [0.03] * 2, [0.03, 0.02])]
    assert counts == sorted(counts)
    assert counts[-1] <= 2.0


def test_coarse_time_changes_little():
    settings = {"deviation_sd": 0.01, "noise_scale": 0.0005}
    fine = expected_charges_of_stages([0.034] * 5, queries=4_096, **settings)
    coarse = expected_charges_of_stages([0.034] * 5, queries=4_097, **settings)
    assert coarse == pytest.approx(fine, rel=5e-3)


@pytest.mark.parametrize("mechanism", ["standard-svt", "target-charging"])
def test_a_simulation_of_other_mechanisms_agrees(mechanism):
    """Thresholds that fall, noise as large as a third of the deviations; Student's t, false alarm 1e-9."""
    thresholds, sd, queries, scale, runs = [0.03, 0.028, 0.026], 0.01, 400, 0.001, 4_000
    threshold_scale, query_scale, _ = (b * scale for b in Calibration(mechanism, 3).scales)
    rng = np.random.default_rng(11)
    held = rng.laplace(0, threshold_scale, runs) if threshold_scale else np.zeros(runs)
    charges = np.zeros(runs, dtype=int)
    for _ in range(queries):
        limit = np.append(thresholds, np.inf)[charges] + held
        deviation, noise = rng.normal(0, sd, runs), rng.laplace(0, query_scale, runs)
        noisy = np.abs(deviation + noise) if mechanism == "target-charging" else np.abs(deviation) + noise
        charges += noisy >= limit
    expected = expected_charges_of_stages(
        thresholds, deviation_sd=sd, queries=queries, noise_scale=scale, mechanism=mechanism
    )
    slack = stats.t.isf(0.5e-9, runs - 1) * charges.std(ddof=1) / math.sqrt(runs)
    assert abs(charges.mean() - expected) < slack
    assert slack < 0.15 * expected


def test_without_noise_all_mechanisms_expect_the_same_charges():
    settings = {"deviation_sd": 0.01, "queries": 500, "noise_scale": 0.0}
    counts = [
        expected_charges_of_stages([0.03] * 3, mechanism=name, **settings)
        for name in ("numeric-sparse", "standard-svt", "target-charging", "noiseless")
    ]
    assert len(set(counts)) == 1


@for_each("noise_scale", [0.0005, 0.003])
def test_one_query_whose_noise_is_released_is_charged_by_deviation_and_noise_together(
    noise_scale: float,
) -> None:
    threshold, sd = 0.02, 0.01
    scale = Calibration("target-charging", 1).scales[1] * noise_scale
    x = np.linspace(-12 * sd, 12 * sd, 200_001)
    outside = stats.laplace.sf(threshold - x, scale=scale) + stats.laplace.cdf(-threshold - x, scale=scale)
    expected = float(np.trapezoid(stats.norm.pdf(x, scale=sd) * outside, x))
    settings = {"deviation_sd": sd, "queries": 1, "noise_scale": noise_scale}
    staged = expected_charges_of_stages([threshold], mechanism="target-charging", **settings)
    assert staged == pytest.approx(expected, rel=1e-6)


def test_a_threshold_that_every_query_reaches_is_charged_every_time():
    certain = expected_charges_of_stages([1e-300] * 3, deviation_sd=1.0, queries=10, noise_scale=0.0)
    assert certain == pytest.approx(3.0, abs=1e-9)


def times_of_charges(chances: list[float], queries: int) -> list[float]:
    """Probability that so many charges come within the queries, one by one, each with a chance of its own."""
    charges = [1.0] + [0.0] * len(chances)
    for _ in range(queries):
        for count in range(len(chances), 0, -1):
            charges[count] += charges[count - 1] * chances[count - 1]
            charges[count - 1] *= 1 - chances[count - 1]
    return charges


@for_each("queries", [1, 2, 3, 4, 7, 8, 60])
@for_each("thresholds", [[0.03], [0.03, 0.012], [0.005, 0.02, 0.01, 0.001, 0.002]])
def test_stages_are_charged_as_a_count_query_by_query_says(thresholds: list[float], queries: int) -> None:
    """Of times of which none is left out, the convolution is exact."""
    chances = [math.erfc(t / (0.01 * math.sqrt(2))) for t in thresholds]
    law = times_of_charges(chances, queries)
    expected = sum(count * probability for count, probability in enumerate(law))
    found = expected_charges_of_stages(thresholds, deviation_sd=0.01, queries=queries, noise_scale=0)
    assert found == pytest.approx(expected, rel=1e-12)


@for_each("charges", [1, 2])
@for_each("queries", [5])
@for_each("scale", [0.004])
def test_threshold_noise_that_is_held_is_shared_by_all_stages(
    charges: int, queries: int, scale: float
) -> None:
    """An integral over it of what a count query by query says."""
    nodes, masses = np.polynomial.legendre.leggauss(24)
    threshold, sd = 0.03, 0.01
    held, each = (one * scale for one in Calibration("standard-svt", charges).scales[:2])

    def density(x: float) -> float:
        ends = np.unique(np.clip([0.0, sd, 4 * sd, 12 * sd, threshold + x], 0.0, 12 * sd))
        half = np.diff(ends)[:, None] / 2
        far = ends[:-1, None] + half * (nodes + 1)
        noisy = stats.laplace.sf(threshold + x - far, scale=each) * 2 * stats.norm.pdf(far, scale=sd)
        chance = float((half * masses * noisy).sum())
        law = times_of_charges([chance] * charges, queries)
        return stats.laplace.pdf(x, scale=held) * sum(count * p for count, p in enumerate(law))

    panels = [(a * held, b * held) for a, b in itertools.pairwise((-40, -8, -2, 0, 2, 8, 40))]
    cut = [[(a, -threshold), (-threshold, b)] if a < -threshold < b else [(a, b)] for a, b in panels]
    expected = sum(
        (b - a) / 2 * mass * density((a + b) / 2 + (b - a) / 2 * node)
        for a, b in itertools.chain(*cut)
        for node, mass in zip(nodes, masses, strict=True)
    )
    found = expected_charges_of_stages(
        [threshold] * charges, deviation_sd=sd, queries=queries, noise_scale=scale, mechanism="standard-svt"
    )
    assert found == pytest.approx(expected, rel=1e-7)


@for_each("mechanism", ["numeric-sparse", "standard-svt", "target-charging", "noiseless"])
@for_each("sd", [1.0, 1e-6])
def test_no_more_charges_are_expected_than_there_are(mechanism: str, sd: float) -> None:
    for thresholds in ([1e-9], [1e-9] * 3):
        found = expected_charges_of_stages(
            thresholds, deviation_sd=sd, queries=100, noise_scale=1e-4, mechanism=mechanism
        )
        assert 0.9 * len(thresholds) < found <= len(thresholds)
