"""What every stream draws and promises, step by step: its scales, its accuracy, and what is not said."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from mechanisms.refusals import BUDGETS

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    GaussianSVT,
    NumericSparse,
    Sparse,
    StandardSVT,
    numeric_sparse_scales,
    retraversal,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.mechanisms.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_epsilon_each,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.sparse_vector.reach import DEVIATIONS, reach_of, tail_of
from reusable_holdout.mechanisms.sparse_vector.sparse import composed_scale, epsilon_of_a_round

GIVEN: dict[str, Any] = {"epsilon": 0.5, "sensitivity": 3.0, "seed": 1}
STREAMS: dict[str, Any] = {
    "above": lambda: AboveThreshold(0.0, **GIVEN),
    "sparse": lambda: Sparse(0.0, charges=3, **GIVEN),
    "sparse, the threshold's noise the larger": lambda: Sparse(0.0, charges=3, ratio=9.0, **GIVEN),
    "numeric": lambda: NumericSparse(0.0, charges=3, **GIVEN),
    "numeric, the book": lambda: NumericSparse(0.0, charges=3, delta=1e-6, split="book", **GIVEN),
    "standard": lambda: StandardSVT(0.0, charges=3, **GIVEN),
    "standard, one": lambda: StandardSVT(0.0, charges=1, noise="exponential", **GIVEN),
    "standard, values": lambda: StandardSVT(0.0, charges=3, answers=0.05, **GIVEN),
    "conditional": lambda: ConditionalStream(0.0, charges=3, delta=1e-6, **GIVEN),
    "gaussian": lambda: GaussianSVT(0.0, queries=3, charges=2, delta=1e-6, **GIVEN),
}
_EVENTS = {"above": 2, "sparse": 6, "numeric": 12}


def steps_of_accuracy(name: str, stream: Any, queries: int, beta: float) -> int:
    """By the formulas of the notes, with many digits."""
    threshold, query, answer = (
        mpmath.mpf(scale.numerator) / scale.denominator
        for scale in (stream.scales.threshold, stream.scales.query, stream.scales.answer)
    )
    k, b = mpmath.mpf(queries), mpmath.mpf(beta)
    family = name.split(",", maxsplit=1)[0]
    if family in _EVENTS:
        failure = max(1, mpmath.log(k) + mpmath.log(_EVENTS[family] / b))
        return int(mpmath.ceil(max(2 * query, 2 * threshold, answer) * failure)) + 3
    if family == "conditional":
        return int(mpmath.ceil(query * mpmath.log(k / b))) + 3
    if family == "gaussian":
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - b / k)
        return int(mpmath.ceil(mpmath.hypot(threshold, query) * quantile)) + 3
    parts = 3 if answer else 2
    compared = threshold * max(1, mpmath.log(parts / b)) + query * max(1, mpmath.log(parts * k / b))
    return int(mpmath.ceil(max(compared, answer * mpmath.log(parts * stream.charges_left / b)))) + 4


@for_each("name", STREAMS)
def test_the_accuracy_is_the_formula_of_the_notes_to_the_step(name: str) -> None:
    stream = STREAMS[name]()
    with mpmath.workdps(40):
        for queries in (1, 2, 1_000):
            for beta in (0.999, 0.9, 0.7, 0.05, 1e-9):
                found = stream.accuracy(queries=queries, beta=beta)
                wanted = steps_of_accuracy(name, stream, queries, beta)
                assert found / stream.step == wanted, (queries, beta)


@for_each("name", STREAMS)
@for_each("bad", [{"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"beta": math.nan}])
def test_an_accuracy_needs_queries_and_a_failure_probability(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="queries is at least 1 and beta lies in"):
        STREAMS[name]().accuracy(**({"queries": 5, "beta": 0.1} | bad))


@for_each(
    ("make", "said"),
    [
        (lambda **how: AboveThreshold(0.0, epsilon=0.5, **how), {"sensitivity": 1.0}),
        (
            lambda **how: Sparse(0.0, charges=3, epsilon=0.5, **how),
            {"sensitivity": 1.0, "delta": 0.0, "ratio": 1.0, "monotonic": False, "noise": "laplace"},
        ),
        (
            lambda **how: NumericSparse(0.0, charges=3, epsilon=0.5, **how),
            {"sensitivity": 1.0, "delta": 0.0, "split": "lecture", "composition": "advanced"},
        ),
        (
            lambda **how: StandardSVT(0.0, charges=3, epsilon=0.5, **how),
            {"sensitivity": 1.0, "answers": 0.0, "ratio": None, "monotonic": False, "noise": "laplace"},
        ),
        (
            lambda **how: ConditionalStream(0.0, charges=3, epsilon=0.5, delta=1e-6, **how),
            {"sensitivity": 1.0},
        ),
        (
            lambda **how: GaussianSVT(0.0, queries=2, epsilon=0.5, delta=1e-6, **how),
            {"sensitivity": 1.0, "charges": 1, "monotonic": False},
        ),
    ],
)
def test_what_is_not_said_is_what_the_signature_says(make: Any, said: dict[str, Any]) -> None:
    unsaid, spoken = make(), make(**said)
    assert (unsaid.scales, unsaid.step, unsaid.charges_left) == (
        spoken.scales,
        spoken.step,
        spoken.charges_left,
    )


def test_a_conditional_stream_has_noise_on_its_queries_alone() -> None:
    stream = ConditionalStream(0.0, charges=3, delta=1e-6, **GIVEN)
    each = target_charging_epsilon_each(
        epsilon=0.5, delta=1e-6, charges=3, q=not_prior_q, mean=not_prior_mean
    )
    assert (stream.scales.threshold, stream.scales.answer) == (0, 0)
    assert stream.scales.query == math.ceil(3.0 / stream.step) / Fraction(each)


# Scales -----------------------------------------------------------------------------------------------


@for_each(("charges", "delta"), [(1, 1e-6), (7, 1e-6), (100, 1e-3), (3, 0.5)])
def test_a_composed_scale_is_rounded_up_and_by_next_to_nothing(charges: int, delta: float) -> None:
    with mpmath.workdps(50):
        true = mpmath.sqrt(32 * charges * -mpmath.log(mpmath.mpf(delta))) / mpmath.mpf(0.1)
        found = composed_scale(charges=charges, epsilon=0.1, delta=delta)
        over = mpmath.mpf(found.numerator) / found.denominator / true - 1
        assert 2.0**-50 < over < 2.0**-46


@for_each(
    ("charges", "delta", "largest"),
    [
        (1, 1e-6, math.sqrt(8 * 1 * -math.log(1e-6))),  # each round has 1
        (3, 1e-6, math.sqrt(8 * 3 * -math.log(1e-6))),
        (2, 0.1, 5.603781907852259),  # the second term is half of epsilon, as floats are multiplied
        (3, 0.3, 3.4386529724762145),
        (4, 0.01, 11.207563815704518),
    ],
)
def test_a_composed_scale_is_granted_up_to_the_corollarys_last_epsilon(
    charges: int, delta: float, largest: float
) -> None:
    each = largest / math.sqrt(-8 * charges * math.log(delta))
    assert each == 1 or charges * each * math.expm1(each) == largest / 2
    assert composed_scale(charges=charges, epsilon=largest, delta=delta) > 0
    with pytest.raises(InputError, match="smaller epsilon"):
        composed_scale(charges=charges, epsilon=largest * (1 + 1e-9), delta=delta)


def test_the_epsilon_of_a_round_is_rounded_down_and_by_next_to_nothing() -> None:
    each = Fraction(optimal_epsilon_each(epsilon=0.5, count=7, delta=1e-6))
    found = epsilon_of_a_round(charges=7, epsilon=0.5, delta=1e-6)
    assert each * (1 - Fraction(1, 2**28)) < found < each * (1 - Fraction(1, 2**32))
    assert epsilon_of_a_round(charges=7, epsilon=0.5, delta=0.0) == Fraction(1, 14)
    given: dict[str, Any] = {"charges": 7, "epsilon": 0.5, "delta": 1e-6, "sensitivity": 1}
    assert sparse_scales(**given, composition="optimal").threshold == 2 / found
    assert sparse_scales(**given).threshold == composed_scale(charges=7, epsilon=0.5, delta=1e-6)


def test_without_delta_the_book_divides_epsilon_as_the_lecture_does() -> None:
    given: dict[str, Any] = {"charges": 3, "epsilon": 0.5, "sensitivity": 1}
    assert numeric_sparse_scales(**given) == numeric_sparse_scales(**given, split="book")
    given["delta"] = 1e-6
    assert numeric_sparse_scales(**given) != numeric_sparse_scales(**given, split="book")


@for_each("scales", [sparse_scales, numeric_sparse_scales, standard_svt_scales])
@for_each(
    ("bad", "told"),
    [
        *BUDGETS,
        ({"composition": "best"}, "composition is 'advanced' or 'optimal'; got 'best'"),
        ({"composition": "best", "delta": 1e-6}, "composition is 'advanced' or 'optimal'; got 'best'"),
    ],
)
def test_scales_of_what_is_out_of_range_are_refused_by_name(
    scales: Any, bad: dict[str, Any], told: str
) -> None:
    if scales is standard_svt_scales and not {"charges", "epsilon"} & set(bad):
        return  # it takes neither
    with pytest.raises(InputError) as caught:
        scales(**({"charges": 2, "epsilon": 1.0, "sensitivity": 1} | bad))
    assert told in str(caught.value)


# Reach ------------------------------------------------------------------------------------------------


def test_a_laws_deviation_is_that_of_its_variable_at_scale_1() -> None:
    assert {"laplace": math.sqrt(2), "exponential": 1.0, "normal": 1.0} == DEVIATIONS


@for_each(
    "scales",
    [(0.0, 2.0), (1.0, 3.0), (3.0, 1.0), (2.0, 2.0), (2.0, 2.0 + 1e-7), (2.0 - 1e-11, 2.0), (1e-9, 1.0)],
)
@for_each("distance", [0.0, 0.1, 1.0, 7.0, 200.0])
def test_the_tail_of_laplace_noises_is_exact_however_near_their_scales(
    scales: tuple[float, float], distance: float
) -> None:
    with mpmath.workdps(60):
        held, each, t = (mpmath.mpf(number) for number in (*scales, distance))
        if held == each:
            true = (1 + t / (2 * each)) * mpmath.exp(-t / each)
        else:
            first = held**2 * mpmath.exp(-t / held) if held else 0
            true = (each**2 * mpmath.exp(-t / each) - first) / (each**2 - held**2)
        assert tail_of("laplace", *scales, distance) == pytest.approx(float(true), rel=1e-13)


@for_each("distance", [0.0, 0.5, 2.0, 5.0])
def test_the_tail_of_one_exponential_noise_is_its_own_about_its_mean(distance: float) -> None:
    below = -math.expm1(-(2.0 - distance) / 2.0) if distance < 2 else 0.0
    true = math.exp(-(distance + 2.0) / 2.0) + below
    assert tail_of("exponential", 0.0, 2.0, distance) == pytest.approx(true, rel=1e-14)


@for_each("law", DEVIATIONS)
@for_each("scales", [(2.0, 3.0), (3.0, 3.0), (9.0, 0.5), (0.01, 40.0)])
@for_each("probability", [0.9, 0.3, 0.05, 1e-9, 1e-40])
def test_a_reach_is_the_smallest_distance_with_so_small_a_tail(
    law: Any, scales: tuple[float, float], probability: float
) -> None:
    found = reach_of(law, *scales, probability)
    assert tail_of(law, *scales, found) <= probability
    assert tail_of(law, *scales, found * (1 - 1e-13)) > probability * (1 - 1e-14)
    assert tail_of(law, *scales, found) == pytest.approx(probability, rel=1e-11)


def test_a_reach_at_a_tail_that_a_float_attains_is_not_beyond_it() -> None:
    for scale in (1.0, 2.0, 32.0):
        found = reach_of("laplace", 0.0, scale, math.exp(-0.5))
        assert tail_of("laplace", 0.0, scale, found) <= math.exp(-0.5)
        assert tail_of("laplace", 0.0, scale, math.nextafter(found, 0.0)) > math.exp(-0.5)


# Retraversal ------------------------------------------------------------------------------------------


def test_retraversal_goes_round_once_if_told_and_over_nothing_at_all() -> None:
    once = retraversal([-1e9, 1e9, -1e9], 0.0, charges=2, epsilon=1.0, passes=1, seed=1)
    assert once.tolist() == [1]
    none = retraversal([], 0.0, charges=2, epsilon=1.0, passes=3)
    assert (none.shape, none.dtype) == ((0,), np.dtype(np.int64))
    everything = retraversal([1e9, 1e9], 0.0, charges=9, epsilon=1.0, passes=5, seed=1)
    assert everything.tolist() == [0, 1]


@for_each("threshold", ["secret", [], [0.0, 1.0], math.nan, None])
@for_each("values", [[], [1.0]])
def test_retraversal_refuses_thresholds_that_are_none(threshold: Any, values: list[float]) -> None:
    if threshold == [] == values:
        return  # one for each of no queries
    with pytest.raises(InputError, match="thresholds are one finite number"):
        retraversal(values, threshold, charges=1, epsilon=1.0)
    with pytest.raises(InputError, match="passes is at least 1; got 0"):
        retraversal(values, 0.0, charges=1, epsilon=1.0, passes=0)


@for_each("unit", [1e-300, 1e-160, 1e160, 1e300])
@for_each("law", ["laplace", "exponential", "normal"])
@for_each("scales", [(1.0, 1.0), (0.5, 2.0), (0.0, 1.0)])
def test_a_reach_has_the_unit_of_its_scales(law: Any, scales: tuple[float, float], unit: float) -> None:
    once = reach_of(law, *scales, 0.1)
    threshold, query = scales
    assert reach_of(law, threshold * unit, query * unit, 0.1) == pytest.approx(once * unit, rel=1e-12)


def test_noise_too_small_for_a_ratio_adds_nothing() -> None:
    assert reach_of("laplace", 1e-300, 1e100, 0.1) == reach_of("laplace", 0.0, 1e100, 0.1)


def test_the_least_likely_reach_is_finite() -> None:
    assert reach_of("normal", 1.0, 1.0, 1e-310) == pytest.approx(53.28349511409266, rel=1e-12)
