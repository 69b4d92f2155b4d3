"""Which mechanism is tightest, and the guard's mechanisms at equal noise."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q, privacy_loss
from scipy import stats

from reusable_holdout import mechanisms
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import accounting, compare_mechanisms, tightest_stream
from reusable_holdout.mechanisms.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_composition,
    optimal_epsilon_each,
    target_charging,
)
from reusable_holdout.mechanisms.sparse_vector.reach import reach_of, tail_of
from reusable_holdout.noise import Calibration, DiscreteLaplace

if TYPE_CHECKING:
    from types import ModuleType

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


# Streams of a known length ----------------------------------------------------------------------------------

GRID = [
    (charges, queries, delta)
    for charges in (1, 3, 30, 300)
    for queries in (None, 20, 10**5)
    for delta in (0.0, 1e-6)
]


@for_each(
    ("law", "scales"),
    [("laplace", (2.0, 3.0)), ("laplace", (0.0, 3.0)), ("laplace", (3.0, 3.0)), ("laplace", (3.0, 2.0))],
)
def test_the_tail_of_laplace_noises_is_that_of_their_difference(
    law: str, scales: tuple[float, float]
) -> None:
    _check_tail(stats.laplace(0, scales[0] or 1e-9), stats.laplace(0, scales[1]), law, scales)


@for_each("scales", [(2.0, 3.0), (3.0, 3.0), (3.0, 2.0)])
def test_the_tail_of_exponential_noises_is_that_of_their_difference_about_its_mean(
    scales: tuple[float, float],
) -> None:
    held, each = (stats.expon(-scale, scale) for scale in scales)
    _check_tail(held, each, "exponential", scales)


def test_the_tail_of_normal_noises_is_that_of_their_difference() -> None:
    _check_tail(stats.norm(0, 2.0), stats.norm(0, 3.0), "normal", (2.0, 3.0))


def _check_tail(held: Any, each: Any, law: Any, scales: tuple[float, float]) -> None:
    """Beside the convolution as an integral over the threshold's noise."""
    chances = (np.arange(200_000) + 0.5) / 200_000
    noise = held.ppf(chances)
    for distance in (0.5, 1.0, 4.0, 12.0):
        both = each.sf(noise + distance) + each.cdf(noise - distance)
        assert tail_of(law, *scales, distance) == pytest.approx(float(both.mean()), rel=2e-3)
        chance = tail_of(law, *scales, distance)
        assert reach_of(law, *scales, chance) == pytest.approx(distance, rel=1e-9)


@pytest.mark.long(*MECHANISMS)
@for_each(("charges", "queries", "delta"), GRID)
@for_each("monotonic", [False, True])
def test_the_tightest_stream_has_the_noise_of_the_first_row_and_no_row_less(
    charges: int, queries: int | None, delta: float, monotonic: bool
) -> None:
    wish = {"epsilon": 0.7, "delta": delta, "charges": charges, "queries": queries, "monotonic": monotonic}
    best, *others = compare_mechanisms(answers=False, sensitivity=3.0, **wish)  # type: ignore[arg-type]
    for row in others:
        assert best.comparison_sd <= row.comparison_sd if queries is None else best.reach <= row.reach
    stream = tightest_stream(5.0, sensitivity=3.0, seed=1, **wish)  # type: ignore[arg-type]
    assert type(stream).__name__ in best.runs
    assert float(stream.scales.query) * stream.step == pytest.approx(best.query, rel=1e-4)
    assert float(stream.scales.threshold) * stream.step == pytest.approx(best.threshold, rel=1e-4)
    assert stream.charges_left == charges
    assert not stream.ask(-1e9)
    assert stream.ask(0.0, threshold=-1e9)


@pytest.mark.parametrize("room", [mechanisms, accounting], ids=["mechanisms", "accounting"])
def test_what_is_monotonic_must_be_said(room: ModuleType) -> None:
    """Of all that takes it: half the noise is enough then, and too little otherwise."""
    makers = [inspect.unwrap(getattr(room, name)) for name in room.__all__]
    taken = [
        inspect.signature(one).parameters for one in makers if inspect.isroutine(one) or inspect.isclass(one)
    ]
    defaults = [parameters["monotonic"].default for parameters in taken if "monotonic" in parameters]
    assert len(defaults) > 3
    assert not any(defaults)


def test_the_tightest_stream_has_less_noise_only_if_its_queries_are_said_to_be_monotonic() -> None:
    unsaid, plain, monotonic = (
        tightest_stream(0.0, charges=4, epsilon=1.0, seed=1, **how).scales
        for how in ({}, {"monotonic": False}, {"monotonic": True})
    )
    assert unsaid == plain
    assert monotonic.query < plain.query


def test_normal_noise_is_compared_where_the_length_is_known_and_no_value_is_released() -> None:
    def names(**wish: Any) -> set[str]:
        given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "charges": 3, "answers": False, "queries": 50}
        return {row.mechanism for row in compare_mechanisms(**(given | wish))}

    assert "GaussianSVT" in names()
    for without in ({"queries": None}, {"answers": True}, {"delta": 0.0}):
        assert "GaussianSVT" not in names(**without)


@pytest.mark.long(*MECHANISMS)
def test_normal_noise_has_more_variance_and_reaches_less_far_for_it() -> None:
    """At many charges and queries it reaches less far than Laplace noise of two thirds of its deviation."""
    rows = {
        row.mechanism: row
        for row in compare_mechanisms(epsilon=1.0, delta=1e-6, charges=100, queries=10**6, answers=False)
    }
    normal, restarts = rows["GaussianSVT"], rows[RESTARTS]
    assert normal.comparison_sd > 1.4 * restarts.comparison_sd
    assert normal.reach < 0.9 * restarts.reach


def test_every_row_says_what_runs_with_its_noise() -> None:
    for charges in (1, 4):
        for answers in (True, False):
            rows = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=charges, queries=9, answers=answers)
            names = {name for row in rows for name in row.runs}
            assert all(hasattr(mechanisms, name) for name in names)
            assert {"StandardSVT", "retraversal", "TargetCharging", "IndividualCharging"} <= names
            assert ("AboveThreshold" in names) is (charges == 1 and not answers)
            assert ("NumericSparse" in names) is answers


@for_each("charges", [1, 4, 100])
def test_the_row_of_target_charging_is_the_noise_of_all_that_runs_it(charges: int) -> None:
    wish: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "charges": charges}
    row = next(row for row in compare_mechanisms(**wish) if "TargetCharging" in row.runs)
    each = [
        mechanisms.TargetCharging(**wish, mean=not_prior_mean).epsilon_each,
        mechanisms.IndividualCharging(3, **wish).epsilon_each,
    ]
    assert each == pytest.approx([1 / row.query] * 2, rel=1e-8)
    assert mechanisms.TargetCharging(**wish).epsilon_each < (1 - 1e-3) / row.query  # which knows less


def test_the_reach_is_of_all_queries_together() -> None:
    one, many = (
        compare_mechanisms(epsilon=1.0, delta=0.0, charges=2, queries=queries, beta=beta)
        for queries, beta in ((1, 1e-5), (10_000, 0.1))
    )
    assert [row.reach for row in one] == pytest.approx([row.reach for row in many])
    assert all(math.isnan(row.reach) for row in compare_mechanisms(epsilon=1.0, delta=0.0, charges=2))


@for_each("bad", [{"queries": 0}, {"beta": 0.0}, {"beta": 1.0}])
def test_a_reach_needs_queries_and_a_failure_probability(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="beta"):
        compare_mechanisms(**({"epsilon": 1.0, "delta": 1e-6, "charges": 3, "queries": 5} | bad))  # type: ignore[arg-type]


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
        target_charging(
            epsilon=call, charges=charges, delta=delta, q=not_prior_q(call), mean=not_prior_mean(call)
        ).epsilon
    )
    assert Calibration("target-charging", charges).epsilon(each=each, delta=0.0) == math.inf
    assert Calibration("noiseless", charges).epsilon(each=each, delta=delta) == math.inf


@for_each("each", [1e-9, 1.0, 800.0, 1e300, math.inf])
@for_each("mechanism", ["numeric-sparse", "standard-svt", "target-charging"])
@for_each("delta", [0.0, 1e-6])
@for_each("told", [0, 3])
def test_epsilon_is_a_number_however_little_noise_there_is(
    mechanism: str, each: float, delta: float, told: int
) -> None:
    epsilon = Calibration(mechanism, 5).epsilon(each=each, delta=delta, told=told)  # type: ignore[arg-type]
    assert epsilon >= 0
    assert not math.isnan(epsilon)
    assert epsilon == math.inf or each < math.inf


@pytest.mark.long(*MECHANISMS)
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
