"""AboveThreshold, Sparse and NumericSparse on real numbers: scales, accuracy, halting."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import BudgetError, HandleError, InputError
from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    GaussianSVT,
    NumericSparse,
    Sparse,
    StandardSVT,
    numeric_sparse_scales,
    sparse_scales,
)
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.sparse_vector.sparse import composed_scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import Split

E = 0.5


def real(stream: AboveThreshold | Sparse | NumericSparse) -> list[float]:
    scales = stream.scales
    return [float(scale) * stream.step for scale in (scales.threshold, scales.query, scales.answer)]


def s(x: float, charges: int, inverse: float) -> float:
    return math.sqrt(32 * charges * math.log(inverse)) / x


BOOK = math.sqrt(512)
TABLE = {
    "AboveThreshold": (AboveThreshold(0.0, epsilon=E), (2 / E, 4 / E, 0)),
    "Sparse": (Sparse(0.0, charges=7, epsilon=E), (14 / E, 28 / E, 0)),
    "Sparse, d > 0": (
        Sparse(0.0, charges=7, epsilon=E, delta=1e-6),
        (s(E, 7, 1e6), 2 * s(E, 7, 1e6), 0),
    ),
    "NumericSparse": (NumericSparse(0.0, charges=7, epsilon=E), (14 / (8 * E / 9), 28 / (8 * E / 9), 63 / E)),
    "NumericSparse, d > 0": (
        NumericSparse(0.0, charges=7, epsilon=E, delta=1e-6),
        (s(8 * E / 9, 7, 2e6), 2 * s(8 * E / 9, 7, 2e6), s(2 * E / 9, 7, 2e6)),
    ),
    "NumericSparse, the book": (
        NumericSparse(0.0, charges=7, epsilon=E, delta=1e-6, split="book"),
        (
            s(BOOK / (BOOK + 1) * E, 7, 2e6),
            2 * s(BOOK / (BOOK + 1) * E, 7, 2e6),
            s(2 * E / (BOOK + 1), 7, 2e6),
        ),
    ),
}


@for_each("name", TABLE)
def test_noise_scales_are_the_formulas(name: str) -> None:
    stream, expected = TABLE[name]
    assert real(stream) == pytest.approx(expected, rel=1e-12)
    assert all(ours >= theirs * (1 - 1e-15) for ours, theirs in zip(real(stream), expected, strict=True))


@for_each("sensitivity", [0.3, 1 / 10_000, 1e-200, 7.0, 1e200])
def test_scales_grow_with_the_sensitivity_and_round_up(sensitivity: float) -> None:
    stream = AboveThreshold(0.0, epsilon=E, sensitivity=sensitivity)
    scale = float(stream.scales.threshold) * stream.step
    assert 2 * sensitivity / E * (1 - 1e-15) <= scale <= 2 * sensitivity / E * (1 + 2**-16)


def test_a_sensitivity_in_grid_units_multiplies_exactly() -> None:
    one, four = (numeric_sparse_scales(charges=3, epsilon=0.7, sensitivity=d) for d in (1, 4))
    assert (four.threshold, four.query, four.answer) == (4 * one.threshold, 4 * one.query, 4 * one.answer)
    assert one.threshold == Fraction(27, 4) / Fraction(0.7)
    assert sparse_scales(charges=3, epsilon=0.7, sensitivity=1).threshold == 6 / Fraction(0.7)


@pytest.mark.parametrize("split", ["lecture", "book"])
def test_both_splits_spend_all_of_epsilon_by_advanced_composition(split: Split) -> None:
    """Comparisons e1 and answers e2/2, each e'/sqrt(8 c ln(1/d')) per round, make up epsilon."""
    charges, delta = 20, 1e-5
    scales = numeric_sparse_scales(charges=charges, epsilon=E, delta=delta, sensitivity=1, split=split)
    root = math.sqrt(8 * charges * math.log(2 / delta))
    comparisons = root * 2 / float(scales.threshold)
    answers = root / float(scales.answer)
    assert comparisons + answers == pytest.approx(E, rel=1e-12)
    assert comparisons + answers <= E


@given(st.integers(1, 300), st.floats(0.01, 3.0), st.floats(1e-12, 0.1))
def test_each_round_composes_to_epsilon_wherever_the_scale_is_granted(
    charges: int, epsilon: float, delta: float
) -> None:
    try:
        scale = composed_scale(charges=charges, epsilon=epsilon, delta=delta)
    except InputError:
        return
    each = 2 / float(scale)
    total = each * math.sqrt(2 * charges * math.log(1 / delta)) + charges * each * math.expm1(each)
    assert total <= epsilon * (1 + 1e-12)


def test_scales_are_granted_in_the_corollarys_whole_range() -> None:
    for charges in (1, 10, 1000):
        assert composed_scale(charges=charges, epsilon=1.0, delta=0.01) > 0
    with pytest.raises(InputError, match="advanced composition"):
        composed_scale(charges=10, epsilon=50.0, delta=0.5)


def test_accuracy_is_the_theorems() -> None:
    k, beta, c = 1000, 0.05, 7
    length = math.log(k) + math.log(4 * c / beta)
    root = math.sqrt(c * math.log(2e6))
    expected = {
        "AboveThreshold": 8 * (math.log(k) + math.log(2 / beta)) / E,
        "Sparse": 8 * c * (math.log(k) + math.log(2 * c / beta)) / E,
        "NumericSparse": 9 * c * length / E,
        "NumericSparse, d > 0": 9 * length * math.sqrt(8) * root / E,
        "NumericSparse, the book": math.sqrt(8)
        * (BOOK + 1)
        * length
        * root
        / E,  # its answers' noise decides
    }
    for name, alpha in expected.items():
        assert TABLE[name][0].accuracy(queries=k, beta=beta) == pytest.approx(alpha, rel=1e-5)
        assert TABLE[name][0].accuracy(queries=k, beta=beta) >= alpha


@for_each(("queries", "beta"), [(0, 0.1), (10, 0.0), (10, 1.0)])
def test_accuracy_refuses_what_is_out_of_range(queries: int, beta: float) -> None:
    with pytest.raises(InputError, match="beta"):
        AboveThreshold(0.0, epsilon=E).accuracy(queries=queries, beta=beta)
    with pytest.raises(InputError, match="beta"):
        StandardSVT(0.0, charges=1, epsilon=E).accuracy(queries=queries, beta=beta)


@for_each("seed", range(20))
def test_all_answers_are_within_the_accuracy_at_a_failure_probability_of_1e_9(seed: int) -> None:
    stream = NumericSparse(0.0, charges=3, epsilon=1.0, seed=seed)
    alpha = stream.accuracy(queries=100, beta=1e-9 / 20)
    assert [stream.ask(-1.001 * alpha) for _ in range(97)] == [None] * 97
    for _ in range(3):
        answer = stream.ask(1.001 * alpha)
        assert answer is not None
        assert abs(answer - 1.001 * alpha) <= alpha


def test_above_threshold_halts_at_the_first_query_above() -> None:
    stream = AboveThreshold(0.5, epsilon=E, sensitivity=1e-6, seed=3)
    assert [stream.ask(value) for value in (0.1, 0.4, 0.6)] == [False, False, True]
    assert (stream.halted, stream.charges_left) == (True, 0)
    with pytest.raises(BudgetError, match="nothing was answered"):
        stream.ask(0.0)


def test_sparse_halts_after_its_charges() -> None:
    stream = Sparse(0.5, charges=3, epsilon=E, sensitivity=1e-6, seed=3)
    assert [stream.ask(value) for value in (0.9, 0.1, 0.8, 0.2)] == [True, False, True, False]
    assert (stream.halted, stream.charges_left) == (False, 1)
    assert stream.ask(0.7)
    with pytest.raises(BudgetError):
        stream.ask(0.7)


def test_numeric_sparse_releases_values_near_the_truth() -> None:
    stream = NumericSparse(0.5, charges=2, epsilon=E, sensitivity=1e-6, seed=3)
    assert stream.ask(0.1) is None
    assert stream.ask(0.9) == pytest.approx(0.9, abs=0.01)
    assert stream.charges_left == 1


Stream = AboveThreshold | Sparse | NumericSparse | StandardSVT | GaussianSVT | ConditionalStream
STREAMS: dict[str, Callable[[int], Stream]] = {
    "AboveThreshold": lambda seed: AboveThreshold(10.0, epsilon=E, seed=seed),
    "Sparse": lambda seed: Sparse(10.0, charges=2, epsilon=E, seed=seed),
    "NumericSparse": lambda seed: NumericSparse(10.0, charges=2, epsilon=E, seed=seed),
    "StandardSVT": lambda seed: StandardSVT(10.0, charges=2, epsilon=E, seed=seed),
    "StandardSVT, exponential noise": lambda seed: StandardSVT(
        10.0, charges=2, epsilon=E, noise="exponential", seed=seed
    ),
    "Sparse, exponential noise, best ratio": lambda seed: Sparse(
        10.0, charges=2, epsilon=E, ratio=None, noise="exponential", seed=seed
    ),
    "GaussianSVT": lambda seed: GaussianSVT(10.0, queries=50, charges=2, epsilon=E, delta=1e-6, seed=seed),
    "ConditionalStream": lambda seed: ConditionalStream(10.0, charges=2, epsilon=E, delta=1e-6, seed=seed),
}


def tied(stream: Stream) -> float:
    """Value that ties with the threshold if it is asked first, both with noise: a whole number of grid steps."""
    first = stream._core.query_noise([(0).to_bytes(8, "big")])
    return stream._grid.real(stream._threshold + stream._core._offset - int(first[0]))


@for_each("name", STREAMS)
@for_each("seed", range(5))
def test_a_tie_is_above_alone_and_in_a_batch(name: str, seed: int) -> None:
    """The algorithms say "at least": `ask` and `ask_many` would else give one query two answers, and two prices."""
    tie, step = tied(STREAMS[name](seed)), STREAMS[name](seed).step
    for value, expected in ((tie - step, False), (tie, True), (tie + step, True)):
        alone, batch = STREAMS[name](seed), STREAMS[name](seed)
        answer, (of_batch,) = alone.ask(value), batch.ask_many([value])
        if isinstance(alone, NumericSparse):  # it answers with a number, or with none
            assert answer == (None if math.isnan(of_batch) else of_batch)
        else:
            assert answer == of_batch
        left = STREAMS[name](seed).charges_left
        assert alone.charges_left == batch.charges_left == left - expected


@for_each("name", STREAMS)
@for_each("threshold", [-3.0, 0.0, 512.0])
def test_an_answer_depends_on_how_far_the_value_is_from_its_own_threshold_alone(
    name: str, threshold: float
) -> None:
    """Shifted together, value and threshold meet the same noise: what proofs say of one threshold holds of any."""
    values, shift = np.arange(-40.0, 60.0, 5.0), threshold - 10.0
    for seed in range(5):
        one, other, batch = (STREAMS[name](seed) for _ in range(3))
        answers = [one.ask(value) for value in values if not one.halted]
        shifted = [other.ask(value + shift, threshold=threshold) for value in values if not other.halted]
        if isinstance(one, NumericSparse):  # a released value is not moved by its threshold, but by itself
            shifted = [None if answer is None else answer - shift for answer in shifted]
        assert shifted == answers
        many = batch.ask_many(values + shift, thresholds=np.full(len(values), threshold))
        assert len(many) == len(answers)
        assert batch.charges_left == one.charges_left


@for_each("name", STREAMS)
def test_each_query_meets_its_own_threshold_and_the_others_the_streams(name: str) -> None:
    stream, batch = STREAMS[name](0), STREAMS[name](0)
    far = [-1e6, 1e6, -1e6, 1e6]
    found = stream.ask_many([0.0, 0.0], thresholds=[1e6, -1e6])
    assert (np.isnan(found) if isinstance(stream, NumericSparse) else ~found).tolist() == [True, False]
    assert not batch.ask(-1e6)
    assert not batch.ask(far[1], threshold=2e6)
    assert batch.ask(far[0], threshold=-2e6)


@for_each("name", STREAMS)
def test_a_threshold_that_is_none_is_refused_and_charges_nothing(name: str) -> None:
    stream = STREAMS[name](0)
    for ask in (
        lambda: stream.ask(1.0, threshold=math.nan),
        lambda: stream.ask(1.0, threshold=math.inf),
        lambda: stream.ask_many([1.0, 2.0], thresholds=[0.0]),
        lambda: stream.ask_many([1.0], thresholds=[math.nan]),
        lambda: stream.ask_many([1.0], thresholds=["one"]),
    ):
        with pytest.raises(InputError):
            ask()
    assert stream.charges_left == STREAMS[name](0).charges_left
    assert stream._asked == 0


def test_a_seed_repeats_the_noise_and_no_seed_does_not() -> None:
    def answers(seed: int | None) -> list[float | None]:
        stream = NumericSparse(0.0, charges=5, epsilon=E, seed=seed)
        return [stream.ask(1e6) for _ in range(5)]

    assert answers(4) == answers(4)
    assert answers(None) != answers(None)
    assert len(set(answers(4))) == 5, "equal values asked again are new questions here"


@for_each("bad", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"epsilon": 1.0, "sensitivity": 0.0}])
def test_above_threshold_refuses_parameters_out_of_range(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        AboveThreshold(0.0, **bad)


def test_out_of_range_parameters_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="charges"):
        Sparse(0.0, charges=0, epsilon=1.0)
    with pytest.raises(InputError, match="delta"):
        Sparse(0.0, charges=1, epsilon=1.0, delta=1.0)
    with pytest.raises(InputError, match="threshold"):
        Sparse(math.nan, charges=1, epsilon=1.0)
    with pytest.raises(InputError, match="split"):
        NumericSparse(0.0, charges=1, epsilon=1.0, split="even")  # type: ignore[arg-type]


def test_a_value_that_is_no_number_is_refused_and_charges_nothing() -> None:
    stream = NumericSparse(0.0, charges=1, epsilon=1.0)
    with pytest.raises(InputError, match="nothing was charged"):
        stream.ask(math.nan)
    assert stream.charges_left == 1


BEYOND = [
    2.0**44 * (1 + 2.0**-52),
    -(2.0**45),
    1e300,
    math.inf,
    -math.inf,
]  # the sensitivity is 1, the step 2**-16


@for_each("name", STREAMS)
def test_a_value_or_threshold_beyond_the_grid_is_refused_and_charges_nothing(name: str) -> None:
    """Clipped to the grid's end, all of them would be told as equal, or as equal to their thresholds."""
    stream = STREAMS[name](0)
    for far in BEYOND:
        for ask in (
            lambda: stream.ask(far),  # noqa: B023 - asked at once
            lambda: stream.ask_many([0.0, far]),  # noqa: B023
            lambda: stream.ask(0.0, threshold=far),  # noqa: B023
            lambda: stream.ask_many([0.0, 0.0], thresholds=[0.0, far]),  # noqa: B023
        ):
            with pytest.raises(InputError, match=r"2\*\*60 grid steps|a threshold is a finite number"):
                ask()
    assert stream.charges_left == STREAMS[name](0).charges_left
    assert stream._asked == 0
    assert stream.ask(2.0**44, threshold=-(2.0**44)) is not None


def test_a_mechanism_does_not_leave_its_process() -> None:
    with pytest.raises(HandleError):
        pickle.dumps(AboveThreshold(0.0, epsilon=1.0))


# The grid ------------------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6), st.floats(-1.0, 1.0), st.floats(1e-3, 1e3))
def test_rounding_never_exceeds_the_sensitivity_in_steps(
    value: float, share: float, sensitivity: float
) -> None:
    grid = Grid.of(sensitivity)
    neighbour = value + share * sensitivity
    if abs(Fraction(neighbour) - Fraction(value)) <= Fraction(sensitivity):  # the addition above rounds too
        assert abs(grid.steps(neighbour) - grid.steps(value)) <= grid.sensitivity


def test_halves_are_rounded_upwards_so_that_shifts_stay_shifts() -> None:
    grid = Grid(step=1.0, sensitivity=1)
    assert [grid.steps(value) for value in (-1.5, -0.5, 0.5, 1.5, 2.5)] == [-1, 0, 1, 2, 3]


@given(st.floats(1e-300, 1e300).filter(lambda x: 1e-290 < x < 1e290))
def test_a_step_is_a_power_of_two_far_below_the_sensitivity(sensitivity: float) -> None:
    grid = Grid.of(sensitivity)
    assert math.frexp(grid.step)[0] == 0.5
    assert 2**16 <= grid.sensitivity <= 2**17
    assert Fraction(sensitivity) <= grid.sensitivity * Fraction(grid.step)


@given(st.lists(st.floats(-1, 1) | st.floats(-1e-9, 1e-9), max_size=20), st.floats(1e-3, 1e3))
def test_many_values_are_rounded_as_one_is(shares: list[float], sensitivity: float) -> None:
    grid = Grid.of(sensitivity)
    values = [share * grid.farthest for share in shares]
    assert grid.steps_many(values).tolist() == [grid.steps(value) for value in values]


@for_each("values", [[10**400], ["1"], [[1.0]], [None], [1.0, math.nan], 3.0, [1j]])
def test_what_is_no_row_of_numbers_is_refused(values: object) -> None:
    with pytest.raises(InputError, match=r"nothing was answered|one dimension"):
        Grid.of(1.0).steps_many(values)  # type: ignore[arg-type]
