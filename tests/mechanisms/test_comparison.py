"""Which mechanism is tightest, and the guard's mechanisms at equal noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.target_decomposition import largest_q, privacy_loss
from cases import for_each

from reusable_holdout.accounting import (
    not_prior_q,
    optimal_composition,
    optimal_epsilon_each,
    target_charging,
)
from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import (
    Calibration,
    ConditionalRelease,
    DiscreteLaplace,
    KeyedNoise,
    compare_mechanisms,
    key_from_seed,
)

ONE_STREAM, RESTARTS = "StandardSVT", "StandardSVT of one charge, restarted, optimal composition"


def noise(charges: int, *, monotonic: bool = False, answers: bool = False) -> dict[str, float]:
    rows = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=charges, answers=answers, monotonic=monotonic)
    return {row.mechanism: row.comparison_sd for row in rows}


def test_one_stream_beats_restarts_up_to_about_65_charges() -> None:
    ratios = {charges: noise(charges) for charges in (10, 64, 67, 400)}
    assert [row[ONE_STREAM] < row[RESTARTS] for row in ratios.values()] == [True, True, False, False]
    assert ratios[400][RESTARTS] < 0.5 * ratios[400][ONE_STREAM]


def test_for_monotonic_queries_one_stream_beats_restarts_past_100_charges() -> None:
    assert [
        row[ONE_STREAM] < row[RESTARTS] for row in (noise(c, monotonic=True) for c in (100, 115, 140))
    ] == [True, True, False]


def test_restarts_have_the_noise_of_the_best_allocation_of_one_round() -> None:
    each = optimal_epsilon_each(epsilon=1.0, count=100, delta=1e-6)
    assert noise(100)[RESTARTS] == pytest.approx(math.sqrt(2) * 4.162 / each, rel=1e-3)


@for_each("charges", [30, 50, 400])
def test_target_charging_is_tightest_from_about_thirty_charges_on(charges: int) -> None:
    assert next(iter(noise(charges, answers=True))) == "target charging"
    assert next(iter(noise(1, answers=True))) != "target charging"


def test_rows_are_sorted_and_scale_with_the_sensitivity() -> None:
    one, three = (compare_mechanisms(epsilon=0.5, delta=1e-6, charges=7, sensitivity=d) for d in (1.0, 3.0))
    assert [row.comparison_sd for row in one] == sorted(row.comparison_sd for row in one)
    for first, second in zip(one, three, strict=True):
        assert second.mechanism == first.mechanism
        assert second.query == pytest.approx(3 * first.query)
        assert second.answer_sd == pytest.approx(3 * first.answer_sd)


@for_each("answers", [True, False])
def test_a_comparison_has_the_standard_deviation_of_both_its_noises(answers: bool) -> None:
    """A Laplace variable's is sqrt(2) scales, an exponential's one: mixed up, the order of the table is wrong."""
    rows = compare_mechanisms(epsilon=0.7, delta=1e-6, charges=7, sensitivity=3.0, answers=answers)
    assert len(rows) >= 7
    for row in rows:
        sd = 1.0 if "exponential" in row.mechanism else math.sqrt(2.0)
        assert row.comparison_sd == pytest.approx(sd * math.hypot(row.threshold, row.query))
        assert row.answer_sd == pytest.approx(math.sqrt(2.0) * row.answer)


def test_without_delta_only_pure_mechanisms_are_compared() -> None:
    names = {row.mechanism for row in compare_mechanisms(epsilon=1.0, delta=0.0, charges=5)}
    assert names == {"NumericSparse, basic composition", "StandardSVT", "StandardSVT, exponential noise"}


def test_values_cost_nothing_more_under_target_charging() -> None:
    with_values, without = noise(20, answers=True), noise(20, answers=False)
    assert with_values["target charging"] == without["target charging"]
    assert with_values[ONE_STREAM] > without[ONE_STREAM]


@for_each(
    "bad", [{"epsilon": 0.0}, {"delta": 1.0}, {"charges": 0}, {"sensitivity": 0.0}, {"sensitivity": math.nan}]
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        compare_mechanisms(**({"epsilon": 1.0, "delta": 1e-6, "charges": 3} | bad))  # type: ignore[arg-type]


# The guard's mechanisms -----------------------------------------------------------------------------------


@for_each("charges", [1, 3, 50])
@for_each("mechanism", ["numeric-sparse", "standard-svt", "target-charging"])
def test_at_equal_scale_the_comparison_has_equal_variance(mechanism: str, charges: int) -> None:
    threshold, query, _ = Calibration(mechanism, charges).scales  # type: ignore[arg-type]
    assert threshold**2 + query**2 == pytest.approx(20.0)


def test_epsilons_are_the_theorems() -> None:
    each, charges, delta = 0.05, 6, 1e-6
    assert Calibration("numeric-sparse", charges).epsilon(each=each, delta=delta) == pytest.approx(
        min(0.6, optimal_composition(epsilon=each, count=12, delta=delta))
    )
    threshold, query, answer = Calibration("standard-svt", charges).scales
    assert Calibration("standard-svt", charges).epsilon(each=each, delta=0.0) == pytest.approx(
        each / threshold + 2 * charges * each / query + charges * each / answer
    )
    call = each / math.sqrt(20.0)
    assert Calibration("target-charging", charges).epsilon(each=each, delta=delta) == pytest.approx(
        target_charging(epsilon=call, charges=charges, delta=delta, q=not_prior_q(call), mean=0.5).epsilon
    )
    assert Calibration("target-charging", charges).epsilon(each=each, delta=0.0) == math.inf
    assert Calibration("noiseless", charges).epsilon(each=each, delta=delta) == math.inf


@for_each("each", [1e-9, 1.0, 800.0, 1e300, math.inf])
@for_each("mechanism", ["numeric-sparse", "standard-svt", "target-charging"])
def test_epsilon_is_a_number_however_little_noise_there_is(mechanism: str, each: float) -> None:
    epsilon = Calibration(mechanism, 5).epsilon(each=each, delta=1e-6)  # type: ignore[arg-type]
    assert epsilon >= 0
    assert not math.isnan(epsilon)


@for_each("epsilon", [0.01, 0.1, 0.5, 1.0])
@for_each("sensitivity", [1, 3])
@for_each("threshold", [0, 5, 12])
def test_one_question_of_conditional_release_is_private_and_has_its_target(
    epsilon: float, sensitivity: int, threshold: int
) -> None:
    """The exact law of what is said: the noisy score, or nothing. A score may move either way, across the prior too."""
    law = DiscreteLaplace(sensitivity / Fraction(epsilon))
    reach = math.ceil(45 * law.scale)
    for score in (-sensitivity, 0, threshold, threshold + 2 * sensitivity):
        for neighbour in (score - sensitivity, score + sensitivity):
            values = np.arange(-reach, reach + 1)
            laws = []
            for centre in (score, neighbour):
                mass = np.exp([law.log_pmf(int(value) - centre) for value in values])
                kept = np.abs(values) < threshold
                laws.append(np.append(mass[~kept], mass[kept].sum()) if threshold else mass)
            assert privacy_loss(*laws) <= epsilon + 1e-9
            target = np.ones(len(laws[0]), dtype=bool)
            if threshold:
                target[-1] = False
            assert largest_q(*laws, target, epsilon=epsilon) >= not_prior_q(epsilon) - 1e-9


def test_conditional_release_publishes_the_number_it_compared() -> None:
    core = ConditionalRelease(scale=Fraction(1000), noise=KeyedNoise(key_from_seed(2)), charges=2)
    scores, priors = np.array([0, 90_000, -80_000]), np.zeros(3, dtype=np.int64)
    limits, questions = np.full(3, 50_000), [b"a", b"b", b"c"]
    noise_ = core.query_noise(questions)
    assert core.first_deviation(scores, priors, limits, questions) == 1
    assert core.charge(90_000, b"b") == 90_000 + noise_[1]
    assert core.deviates(-80_000, 0, 50_000, b"c")
    assert core.charge(-80_000, b"c") == -80_000 + noise_[2]
    assert (core.spent, core.halted) == (2, True)
    for ask in (
        lambda: core.deviates(0, 0, 1, b"d"),
        lambda: core.charge(0, b"d"),
        lambda: core.first_deviation(scores, priors, limits, questions),
    ):
        with pytest.raises(BudgetError, match="nothing was answered"):
            ask()


def test_a_core_cannot_have_spent_more_than_it_had() -> None:
    with pytest.raises(InputError):
        ConditionalRelease(scale=Fraction(1), noise=KeyedNoise(key_from_seed(2)), charges=1, spent=2)
