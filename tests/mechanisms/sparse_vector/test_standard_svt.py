"""StandardSVT and retraversal: scales, gaps, values, streams of many; their privacy is in test_exact_audit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.sparse_vector.audit import Queries, log_sum, sparse_vector_law

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import (
    DiscreteExponential,
    NumericSparse,
    Sparse,
    StandardSVT,
    numeric_sparse_scales,
    retraversal,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.noise import DiscreteLaplace, optimal_ratio

if TYPE_CHECKING:
    from reusable_holdout.mechanisms.sparse_vector.real_stream import Comparison

QUIET = {"epsilon": 1.0, "sensitivity": 1e-6}  # noise far below what is asked


@for_each("monotonic", [False, True])
@for_each("charges", [1, 2, 7, 50])
def test_the_default_ratio_minimises_the_variance_of_the_comparison(charges: int, monotonic: bool) -> None:
    def variance(ratio: float) -> float:
        scales = standard_svt_scales(
            charges=charges, epsilon=1.0, ratio=ratio, monotonic=monotonic, sensitivity=1
        )
        return float(scales.threshold**2 + scales.query**2)

    best = optimal_ratio(charges=charges, monotonic=monotonic)
    assert best == pytest.approx((charges if monotonic else 2 * charges) ** (2 / 3))
    assert all(variance(best) <= variance(best * factor) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


@given(
    st.integers(1, 500),
    st.floats(0.01, 10.0),
    st.floats(0.0, 0.9),
    st.floats(0.01, 100.0),
    st.booleans(),
    st.integers(1, 10**6),
)
def test_the_three_parts_spend_exactly_epsilon(
    charges: int, epsilon: float, share: float, ratio: float, monotonic: bool, sensitivity: int
) -> None:
    answers = share * epsilon
    scales = standard_svt_scales(
        charges=charges,
        epsilon=epsilon,
        answers=answers,
        ratio=ratio,
        monotonic=monotonic,
        sensitivity=sensitivity,
    )
    spent = sensitivity / scales.threshold
    spent += sensitivity * (charges if monotonic else 2 * charges) / scales.query
    spent += sensitivity * charges / scales.answer if scales.answer else 0
    assert spent == Fraction(epsilon)


@for_each("charges", [1, 2, 10, 100])
def test_less_noise_than_the_book_at_the_same_guarantee(charges: int) -> None:
    ours = standard_svt_scales(charges=charges, epsilon=1.0, sensitivity=1)
    book = sparse_scales(charges=charges, epsilon=1.0, sensitivity=1)
    assert ours.threshold**2 + ours.query**2 < book.threshold**2 + book.query**2


@for_each("charges", [50, 100, 400])
def test_the_books_constants_waste_what_its_docstring_says(charges: int) -> None:
    given_ = {"charges": charges, "epsilon": 1.0, "delta": 1e-6, "sensitivity": 1}
    best = numeric_sparse_scales(**given_, composition="optimal")
    lecture, book = numeric_sparse_scales(**given_), numeric_sparse_scales(**given_, split="book")
    assert 2.5 < lecture.query / best.query < 2.7
    assert lecture.answer / best.answer == pytest.approx(float(lecture.query / best.query))
    assert 2.3 < book.query / best.query < 2.5
    assert 6.7 < book.answer / best.answer < 6.9


def test_optimal_composition_without_slack_is_basic() -> None:
    for maker in (sparse_scales, numeric_sparse_scales):
        optimal = maker(charges=7, epsilon=0.5, composition="optimal", sensitivity=3)
        assert optimal == maker(charges=7, epsilon=0.5, sensitivity=3)


def test_a_stream_under_optimal_composition_finds_what_is_above() -> None:
    stream = NumericSparse(0.5, charges=2, delta=1e-6, composition="optimal", **QUIET)
    answers = stream.ask_many([0.1, 0.9, 0.2, 0.8, 0.7])
    assert answers == pytest.approx([math.nan, 0.9, math.nan, 0.8], abs=1e-3, nan_ok=True)
    assert Sparse(0.5, charges=1, delta=1e-6, composition="optimal", **QUIET).ask(0.9)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_it_halts_after_its_charges(noise: Comparison) -> None:
    stream = StandardSVT(0.5, charges=2, noise=noise, **QUIET)
    assert [stream.ask(value) for value in (0.9, 0.1, 0.8)] == [True, False, True]
    assert (stream.halted, stream.charges_left) == (True, 0)
    with pytest.raises(BudgetError, match="nothing was answered"):
        stream.ask(0.9)
    with pytest.raises(BudgetError, match="nothing was answered"):
        stream.ask_many([0.9])


def test_a_query_may_have_a_threshold_of_its_own() -> None:
    stream = StandardSVT(0.5, charges=5, **QUIET)
    assert [stream.ask(0.7, threshold=limit) for limit in (0.6, 0.8)] == [True, False]
    assert stream.ask_many([0.7, 0.7], thresholds=[0.6, 0.8]).tolist() == [True, False]


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_a_tie_with_a_threshold_of_its_own_is_above_alone_and_in_a_batch(noise: Comparison) -> None:
    """However it is asked: whether, how far, for the value, or in a batch."""

    def stream() -> StandardSVT:
        return StandardSVT(99.0, charges=1, epsilon=1.0, answers=0.2, noise=noise, seed=3)

    core, step = stream()._core, stream().step
    drawn = core._offset - int(core.query_noise([(0).to_bytes(8, "big")])[0])
    tie = -7.0 + drawn * step
    for value, expected in ((tie - step, False), (tie, True)):
        assert stream().ask(value, threshold=-7.0) is expected
        assert stream().ask_many([value], thresholds=[-7.0]).tolist() == [expected]
        assert (stream().ask_value(value, threshold=-7.0) is not None) is expected
        assert stream().ask_gap(value, threshold=-7.0) == (0.0 if expected else None)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_the_gap_is_how_far_above(noise: Comparison) -> None:
    stream = StandardSVT(0.5, charges=2, noise=noise, **QUIET)
    assert stream.ask_gap(0.1) is None
    assert stream.ask_gap(0.9) == pytest.approx(0.4, abs=1e-3)
    assert stream.ask_gap(0.9, threshold=0.2) == pytest.approx(0.7, abs=1e-3)
    assert stream.halted


@for_each("seed", range(30))
def test_a_gap_is_never_negative(seed: int) -> None:
    stream = StandardSVT(0.0, charges=20, epsilon=1.0, seed=seed)
    gaps = [stream.ask_gap(0.0) for _ in range(10)]
    assert all(gap is None or gap >= 0 for gap in gaps)


def test_a_value_is_near_and_needs_its_part_of_epsilon() -> None:
    stream = StandardSVT(0.5, charges=2, answers=0.3, **QUIET)
    assert stream.ask_value(0.1) is None
    assert stream.ask_value(0.9) == pytest.approx(0.9, abs=1e-3)
    with pytest.raises(InputError, match="answers is above 0"):
        StandardSVT(0.5, charges=2, epsilon=1.0).ask_value(0.9)


@given(st.lists(st.floats(-30, 30), max_size=30), st.integers(1, 5), st.integers(0, 100))
def test_many_at_once_are_answered_as_one_by_one(values: list[float], charges: int, seed: int) -> None:
    one, many = (StandardSVT(0.0, charges=charges, epsilon=2.0, seed=seed) for _ in range(2))
    singly = []
    for value in values:
        if one.halted:
            break
        singly.append(one.ask(value))
    assert many.ask_many(values).tolist() == singly
    assert (many.charges_left, many.halted) == (one.charges_left, one.halted)
    if not one.halted:
        assert one.ask(0.0) == many.ask(0.0)


@for_each("noise", ["laplace", "exponential"])
@for_each("seed", range(10))
def test_all_answers_are_within_the_accuracy(seed: int, noise: Comparison) -> None:
    stream = StandardSVT(0.0, charges=3, epsilon=1.0, answers=0.2, noise=noise, seed=seed)
    alpha = stream.accuracy(queries=100, beta=1e-9 / 20)
    assert not stream.ask_many(np.full(97, -1.001 * alpha)).any()
    answers = [stream.ask_value(1.001 * alpha) for _ in range(3)]
    assert all(answer is not None and abs(answer - 1.001 * alpha) <= alpha for answer in answers)


def test_accuracy_is_the_union_bound() -> None:
    stream = StandardSVT(0.0, charges=4, epsilon=5.0)
    expected = 1 * math.log(2 / 0.05) + 2 * math.log(2 * 100 / 0.05)
    assert stream.accuracy(queries=100, beta=0.05) == pytest.approx(expected, rel=1e-4)
    assert stream.accuracy(queries=1, beta=0.05) == pytest.approx(3 * math.log(2 / 0.05), rel=1e-4)


def test_accuracy_with_values_is_the_union_bound_in_thirds() -> None:
    """Threshold, queries and values may each fail with a third of beta: in halves they would spend one and a half."""
    k, beta, charges = 100, 0.05, 4
    wish = {"charges": charges, "sensitivity": 1}
    for answers in (0.01, 2.5):  # the values' noise decides, or that of the comparison
        scales = standard_svt_scales(epsilon=5.0, answers=answers, **wish)  # type: ignore[arg-type]
        comparison = float(scales.threshold) * math.log(3 / beta)
        comparison += float(scales.query) * math.log(3 * k / beta)
        value = float(scales.answer) * math.log(3 * charges / beta)
        assert (value > comparison) is (answers < 1)
        stream = StandardSVT(0.0, charges=charges, epsilon=5.0, answers=answers)
        assert stream.accuracy(queries=k, beta=beta) == pytest.approx(max(comparison, value), rel=1e-4)


# One noise is so large that it alone decides: how so, how often it is drawn, and into how many parts beta goes.
DECIDING: dict[str, tuple[dict[str, float], int, int]] = {
    "threshold": ({"answers": 1.0, "ratio": 1e9}, 1, 3),
    "query": ({"answers": 1.0, "ratio": 1e-9}, 50, 3),
    "answer": ({"answers": 1e-6}, 4, 3),
    "threshold, no values": ({"ratio": 1e9}, 1, 2),
    "query, no values": ({"ratio": 1e-9}, 50, 2),
}


@for_each("noise", ["laplace", "exponential"])
@for_each("beta", [0.3, 0.05, 1e-6])
@for_each("name", DECIDING)
def test_each_noise_exceeds_the_accuracy_with_its_share_of_beta(
    name: str, beta: float, noise: Comparison
) -> None:
    """Exact tails of the noise as it is drawn, in a union over the draws: what is left of beta is for the others."""
    wish, draws, parts = DECIDING[name]
    stream = StandardSVT(0.0, charges=4, epsilon=2.0, noise=noise, **wish)  # type: ignore[arg-type]
    alpha = round(stream.accuracy(queries=50, beta=beta) / stream.step) - 4  # four steps pay for rounding
    kind = name.split(",", maxsplit=1)[0]
    scale = getattr(stream.scales, kind)
    if noise == "exponential" and kind != "answer":
        exceeds = math.exp(DiscreteExponential(scale).log_tail(alpha))
    else:
        exceeds = 2 * math.exp(DiscreteLaplace(scale).log_tail(alpha))
    assert draws * exceeds <= beta / parts * (1 + 1e-9)
    assert draws * exceeds == pytest.approx(beta / parts, rel=1e-3)


@for_each("charges", [1, 10])
@for_each("distance", [1, 2, 4])
def test_exponential_noise_makes_fewer_mistakes_than_laplace_noise(charges: int, distance: int) -> None:
    """Exact probabilities of "above" for a query some query scales below its threshold, and of "below" above it."""
    scales = standard_svt_scales(charges=charges, epsilon=0.2, sensitivity=1)
    far = math.ceil(distance * scales.query)
    below, above = 1, 4  # unshifted values of the two bases

    def mistakes(comparison: Comparison) -> tuple[float, float]:
        law = sparse_vector_law(scales, Queries((-far, far), 1), comparison=comparison)
        return (
            float(log_sum(law.weights + law.above[0, below])),
            float(log_sum(law.weights + law.below[above])),
        )

    for ours, theirs in zip(mistakes("exponential"), mistakes("laplace"), strict=True):
        assert ours < theirs


@for_each(
    "bad",
    [
        {"charges": 0},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"answers": 1.0},
        {"answers": -0.1},
        {"answers": math.nan},
        {"ratio": 0.0},
        {"ratio": math.inf},
        {"noise": "gaussian"},
        {"sensitivity": 0.0},
        {"threshold": math.nan},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, object]) -> None:
    given_ = {"threshold": 0.0, "charges": 3, "epsilon": 1.0} | bad
    with pytest.raises(InputError):
        StandardSVT(**given_)  # type: ignore[arg-type]


def test_a_question_that_makes_no_sense_is_refused_and_charges_nothing() -> None:
    stream = StandardSVT(0.0, charges=1, **QUIET)
    for ask in (
        lambda: stream.ask(math.nan),
        lambda: stream.ask(1.0, threshold=math.nan),
        lambda: stream.ask_many([1.0, math.nan]),
        lambda: stream.ask_many([[1.0]]),
        lambda: stream.ask_many(["one"]),
        lambda: stream.ask_many([1.0, 2.0], thresholds=[0.0]),
        lambda: stream.ask_many([1.0], thresholds=[math.nan]),
    ):
        with pytest.raises(InputError):
            ask()
    assert stream.charges_left == 1
    assert stream.ask_many([]).tolist() == []


# Retraversal ----------------------------------------------------------------------------------------------


def test_retraversal_selects_the_highest() -> None:
    values = np.random.default_rng(0).permutation(100) / 100
    chosen = retraversal(values, 0.895, charges=10, raised_by=3.0, **QUIET)
    assert sorted(values[chosen]) == pytest.approx(np.arange(90, 100) / 100)


def test_retraversal_goes_round_until_enough_are_selected() -> None:
    """Raised by 5 deviations few pass in the first round, yet all five are selected in the end."""
    values = np.zeros(5)
    chosen = retraversal(values, 0.0, charges=5, epsilon=1.0, raised_by=3.0, passes=10_000, seed=1)
    assert sorted(chosen) == [0, 1, 2, 3, 4]


def test_retraversal_gives_up_after_its_passes() -> None:
    assert retraversal([0.0, 0.0], 1.0, charges=2, passes=3, **QUIET).tolist() == []
    assert retraversal([], 1.0, charges=2, **QUIET).tolist() == []


def test_retraversal_compares_each_query_with_its_own_threshold() -> None:
    chosen = retraversal([1.0, 5.0, 3.0], [0.5, 9.0, 2.0], charges=3, passes=3, **QUIET)
    assert sorted(chosen) == [0, 2]
    noisy = {"charges": 3, "epsilon": 1.0, "seed": 4}
    values, limits = np.linspace(-20, 20, 50), np.linspace(5, 40, 50)
    own = retraversal(values, limits, **noisy)  # type: ignore[arg-type]
    assert own.tolist() == retraversal(values - limits, 0.0, **noisy).tolist()  # type: ignore[arg-type]
    for bad in ([0.0], [0.0, math.nan, 1.0], "high", [[0.0] * 3], math.inf):
        with pytest.raises(InputError, match="one for each of 3 queries"):
            retraversal([1.0, 5.0, 3.0], bad, **noisy)  # type: ignore[arg-type]


@for_each("bad", [{"raised_by": math.nan}, {"passes": 0}, {"charges": 0}])
def test_retraversal_refuses_what_is_out_of_range(bad: dict[str, float]) -> None:
    given_ = {"charges": 2, "epsilon": 1.0} | bad
    with pytest.raises(InputError):
        retraversal([0.0, 1.0], 0.5, **given_)  # type: ignore[arg-type]


def test_retraversal_raises_by_one_deviation_and_goes_round_a_hundred_times_unless_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[float]] = []

    def nothing_is_above(self: StandardSVT, values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        asked.append(thresholds.tolist())
        return np.zeros(len(values), dtype=bool)

    monkeypatch.setattr(StandardSVT, "ask_many", nothing_is_above)
    for noise, sd in (("laplace", math.sqrt(2.0)), ("exponential", 1.0)):
        asked.clear()
        retraversal([0.0, 0.0], 7.0, charges=2, epsilon=0.5, noise=noise)  # type: ignore[arg-type]
        deviation = sd * float(standard_svt_scales(charges=2, epsilon=0.5, sensitivity=1).query)
        assert asked == 100 * [2 * [pytest.approx(7.0 + deviation, rel=1e-6)]]
