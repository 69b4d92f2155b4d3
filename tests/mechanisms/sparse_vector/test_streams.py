"""Every sparse vector stream on real numbers: its transcript, its thresholds, its accuracy, and its refusals."""

import inspect
import math
import pickle

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses

from reusable_holdout.errors import BudgetError, HandleError, InputError
from reusable_holdout.mechanisms import (
    AboveThreshold,
    ConditionalStream,
    DiscreteExponential,
    NumericSparse,
    Sparse,
    StandardSVT,
)
from reusable_holdout.noise import DiscreteLaplace

PRIVACY = {"charges": 2, "epsilon": 0.5}
KINDS = {
    "AboveThreshold": (AboveThreshold, {"epsilon": 0.5}),
    "Sparse": (Sparse, PRIVACY),
    "Sparse, the threshold's noise the larger": (Sparse, PRIVACY | {"ratio": 9.0}),
    "Sparse, exponential noise, best ratio": (Sparse, PRIVACY | {"ratio": None, "noise": "exponential"}),
    "NumericSparse": (NumericSparse, PRIVACY),
    "NumericSparse, the book": (NumericSparse, PRIVACY | {"delta": 1e-6, "split": "book"}),
    "StandardSVT": (StandardSVT, PRIVACY),
    "StandardSVT, exponential noise": (StandardSVT, PRIVACY | {"charges": 1, "noise": "exponential"}),
    "StandardSVT, values": (StandardSVT, PRIVACY | {"answers": 0.05}),
    "ConditionalStream": (ConditionalStream, PRIVACY | {"delta": 1e-6}),
}
QUIET = {"epsilon": 1.0, "sensitivity": 1e-6}  # noise far below the values


def stream(name, seed=1, threshold=10.0, **more):
    make, how = KINDS[name]
    return make(threshold, seed=seed, **(how | more))


def above(answer):
    """Return True if an answer says that a query was above its threshold."""
    return answer is not None and not math.isnan(answer) if not isinstance(answer, bool) else answer


def tied(one):
    """Return the value that ties with the threshold if it is asked first, both with noise."""
    first = one._core.query_noise([(0).to_bytes(8, "big")])
    return one._grid.real(one._threshold + one._core._offset - int(first[0]))


@for_each("name", KINDS)
@for_each("seed", range(5))
def test_a_tie_is_above_alone_and_in_a_batch(name, seed):
    """The algorithms say "at least": else `ask` and `ask_many` would give one query two answers, and two prices."""
    tie, step = tied(stream(name, seed)), stream(name, seed).step
    for value, expected in ((tie - step, False), (tie, True), (tie + step, True)):
        alone, batch = stream(name, seed), stream(name, seed)
        answer, (of_batch,) = alone.ask(value), batch.ask_many([value])
        assert above(answer) is above(of_batch.item()) is expected
        if isinstance(answer, float):
            assert answer == of_batch
        left = stream(name, seed).charges_left
        assert alone.charges_left == batch.charges_left == left - expected


@for_each("name", KINDS)
@for_each("threshold", [-3.0, 0.0, 512.0])
def test_an_answer_depends_on_the_distance_of_the_value_from_its_own_threshold_alone(name, threshold):
    """Shifted together, value and threshold meet the same noise: a proof for one threshold holds for any."""
    values, shift = np.arange(-40.0, 60.0, 5.0), threshold - 10.0
    for seed in range(5):
        one, other, batch = (stream(name, seed) for _ in range(3))
        answers = [one.ask(value) for value in values if not one.halted]
        shifted = [other.ask(value + shift, threshold=threshold) for value in values if not other.halted]
        if isinstance(one, NumericSparse):  # a released value is not moved by its threshold, but by itself
            shifted = [None if answer is None else answer - shift for answer in shifted]
        assert shifted == answers
        many = batch.ask_many(values + shift, thresholds=np.full(len(values), threshold))
        assert [above(answer) for answer in many.tolist()] == [above(answer) for answer in answers]
        assert batch.charges_left == one.charges_left
        if not one.halted:  # the next query has the next number
            assert one.ask(0.0) == batch.ask(0.0)


@for_each("name", KINDS)
def test_a_stream_halts_after_its_charges(name):
    one = stream(name)
    left = one.charges_left
    answers = [one.ask(value) for value in (-1e6, *[1e6, -1e6] * left) if not one.halted]
    assert [above(answer) for answer in answers] == [False, *[True, False] * left][: 2 * left]
    assert (one.halted, one.charges_left) == (True, 0)
    for ask in (lambda: one.ask(0.0), lambda: one.ask_many([0.0])):
        refuses(BudgetError, "nothing was answered", ask)


# The sensitivity is 1 and the step 2**-16: clipped to the grid's end, values beyond would look equal.
BEYOND = [2.0**44 * (1 + 2.0**-52), -(2.0**45), 1e300, math.inf, -math.inf]


@for_each("name", KINDS)
def test_a_value_or_threshold_that_is_none_is_refused_and_charges_nothing(name):
    one = stream(name)
    asked = [((value,), {}) for value in (*BEYOND, math.nan)]
    asked += [((0.0,), {"threshold": far}) for far in (*BEYOND, math.nan)]
    rows = [([0.0, value], {}) for value in (*BEYOND, math.nan)]
    rows += [([0.0, 0.0], {"thresholds": [0.0, far]}) for far in (*BEYOND, math.nan)]
    rows += [(bad, {}) for bad in ([[1.0]], ["one"], [10**400], [None], 3.0, [1j])]
    rows += [([1.0, 2.0], {"thresholds": [0.0]}), ([1.0], {"thresholds": ["x"]})]
    for value, threshold in asked:
        refuses(InputError, "", one.ask, *value, **threshold)
    for values, thresholds in rows:
        refuses(InputError, "", one.ask_many, values, **thresholds)
    refuses(InputError, "nothing was charged", one.ask, math.nan)
    refuses(InputError, r"2\*\*60 grid steps", one.ask, 2.0**45)
    assert one.charges_left == stream(name).charges_left
    assert one._asked == 0
    assert one.ask_many([]).tolist() == []
    assert one.ask(2.0**44, threshold=-(2.0**44)) is not None


@for_each("name", KINDS)
def test_a_seed_repeats_the_noise_and_a_stream_does_not_leave_its_process(name):
    def answers(seed):
        return [
            stream(name, at if seed else None).ask_many(np.zeros(9), np.zeros(9)).tolist() for at in range(9)
        ]

    assert str(answers(True)) == str(answers(True)) != str(answers(False))
    refuses(HandleError, "", pickle.dumps, stream(name))


@for_each(
    ("make", "said"),
    [
        (AboveThreshold, {"sensitivity": 1.0}),
        (
            Sparse,
            {"delta": 0.0, "composition": "advanced", "ratio": 1.0, "monotonic": False, "noise": "laplace"},
        ),
        (NumericSparse, {"delta": 0.0, "split": "lecture", "composition": "advanced", "sensitivity": 1.0}),
        (StandardSVT, {"answers": 0.0, "ratio": None, "monotonic": False, "noise": "laplace"}),
        (ConditionalStream, {"sensitivity": 1.0, "seed": None}),
    ],
)
def test_options_have_the_defaults_of_the_docstring(make, said):
    options = inspect.signature(make).parameters
    assert {name: options[name].default for name in said} == said


# Gaps and values.


@for_each("noise", ["laplace", "exponential"])
def test_a_query_asked_for_its_gap_or_value_meets_the_noise_that_it_meets_else(noise):
    def fresh():
        return StandardSVT(99.0, charges=1, epsilon=1.0, answers=0.2, noise=noise, seed=3)

    tie = tied(fresh()) - 99.0 - 7.0
    for value, expected in ((tie - fresh().step, False), (tie, True)):
        assert fresh().ask(value, threshold=-7.0) is expected
        assert (fresh().ask_value(value, threshold=-7.0) is not None) is expected
        assert fresh().ask_gap(value, threshold=-7.0) == (0.0 if expected else None)
    stream = StandardSVT(0.5, charges=2, noise=noise, **QUIET)
    assert stream.ask_gap(0.1) is None
    assert stream.ask_gap(0.9) == pytest.approx(0.4, abs=1e-3)
    assert stream.ask_gap(0.9, threshold=0.2) == pytest.approx(0.7, abs=1e-3)
    assert stream.halted


def test_a_gap_is_never_negative_and_a_value_needs_its_part_of_epsilon():
    for seed in range(30):
        stream = StandardSVT(0.0, charges=20, epsilon=1.0, seed=seed)
        gaps = [stream.ask_gap(0.0) for _ in range(10)]
        assert all(gap is None or gap >= 0 for gap in gaps)
    stream = StandardSVT(0.5, charges=2, answers=0.3, **QUIET)
    assert stream.ask_value(0.1) is None
    assert stream.ask_value(0.9) == pytest.approx(0.9, abs=1e-3)
    refuses(InputError, "with answers above 0", StandardSVT(0.5, charges=2, epsilon=1.0).ask_value, 0.9)


def test_a_conditional_stream_tells_the_number_that_it_compared():
    def fresh():
        return ConditionalStream(0.0, charges=1, epsilon=0.5, delta=1e-6, seed=1)

    step = fresh().step
    assert fresh().ask_value(tied(fresh()) - step) is None
    assert fresh().ask_value(tied(fresh()) + 3 * step) == 3 * step


# Accuracy.

_EVENTS = {"AboveThreshold": 2, "Sparse": 4, "NumericSparse": 8}


def steps_of_accuracy(name, one, queries, beta):
    """Evaluate the formulas of the notes with many digits, in steps."""
    threshold, query, answer = (
        mpmath.mpf(scale.numerator) / scale.denominator
        for scale in (one.scales.threshold, one.scales.query, one.scales.answer)
    )
    k, b = mpmath.mpf(queries), mpmath.mpf(beta)
    family = name.split(",", maxsplit=1)[0]
    if family in _EVENTS:
        failure = max(1, mpmath.log(k) + mpmath.log(_EVENTS[family] / b))
        return int(mpmath.ceil(max(2 * query, 2 * threshold, answer) * failure)) + 3
    if family == "ConditionalStream":
        return int(mpmath.ceil(query * mpmath.log(k / b))) + 3
    parts = 3 if answer else 2
    compared = threshold * max(1, mpmath.log(parts / b)) + query * max(1, mpmath.log(parts * k / b))
    return int(mpmath.ceil(max(compared, answer * mpmath.log(parts * one.charges_left / b)))) + 4


@for_each("name", KINDS)
def test_the_accuracy_is_the_formula_of_the_notes_to_the_step(name):
    one = stream(name, sensitivity=3.0)
    with mpmath.workdps(40):
        for queries in (1, 2, 1_000):
            for beta in (0.999, 0.9, 0.7, 0.05, 1e-9):
                found = one.accuracy(queries=queries, beta=beta)
                assert found / one.step == steps_of_accuracy(name, one, queries, beta), (queries, beta)
    for bad in ({"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"beta": math.nan}):
        with pytest.raises(InputError, match="queries is at least 1 and beta lies in"):
            one.accuracy(**({"queries": 5, "beta": 0.1} | bad))


def test_the_accuracy_of_the_book_is_its_theorems():
    k, beta, c, e = 1000, 0.05, 7, 0.5
    length, root = math.log(k) + math.log(4 * c / beta), math.sqrt(8 * c * math.log(2e6))
    book = {"delta": 1e-6, "split": "book"}
    for make, how, alpha in (
        (AboveThreshold, {}, 8 * (math.log(k) + math.log(2 / beta)) / e),
        (Sparse, {"charges": c}, 8 * c * (math.log(k) + math.log(2 * c / beta)) / e),
        (NumericSparse, {"charges": c}, 9 * c * length / e),
        (NumericSparse, {"charges": c, "delta": 1e-6}, 9 * length * root / e),
        (NumericSparse, {"charges": c} | book, (math.sqrt(512) + 1) * length * root / e),  # by its answers
    ):
        found = make(0.0, epsilon=e, **how).accuracy(queries=k, beta=beta)
        assert alpha <= found == pytest.approx(alpha, rel=1e-5)


@for_each("seed", range(10))
@for_each("name", ["NumericSparse", "StandardSVT, values", "ConditionalStream"])
def test_all_answers_are_within_the_accuracy_at_a_failure_probability_of_1e_9(seed, name):
    one = stream(name, seed, threshold=0.0)
    alpha = one.accuracy(queries=100, beta=1e-9 / 20)
    ask = one.ask if name == "NumericSparse" else one.ask_value
    assert not any(above(answer) for answer in one.ask_many(np.full(97, -1.001 * alpha)).tolist())
    answers = [ask(1.001 * alpha) for _ in range(2)]
    assert all(answer is not None and abs(answer - 1.001 * alpha) <= alpha for answer in answers)


# One noise is so large that it alone decides: how so, the number of draws, and the parts of beta.
DECIDING = {
    "threshold": ({"answers": 1.0, "ratio": 1e9}, 1, 3),
    "query": ({"answers": 1.0, "ratio": 1e-9}, 50, 3),
    "answer": ({"answers": 1e-6}, 4, 3),
    "threshold, no values": ({"ratio": 1e9}, 1, 2),
    "query, no values": ({"ratio": 1e-9}, 50, 2),
}


@for_each("noise", ["laplace", "exponential"])
@for_each("beta", [0.3, 0.05, 1e-6])
@for_each("name", DECIDING)
def test_each_noise_exceeds_the_accuracy_with_its_share_of_beta(name, beta, noise):
    """The exact tails of the noise, in a union over the draws, take one part of beta."""
    wish, draws, parts = DECIDING[name]
    stream = StandardSVT(0.0, charges=4, epsilon=2.0, noise=noise, **wish)
    alpha = round(stream.accuracy(queries=50, beta=beta) / stream.step) - 4  # four steps pay for rounding
    kind = name.split(",", maxsplit=1)[0]
    scale = getattr(stream.scales, kind)
    if noise == "exponential" and kind != "answer":
        exceeds = math.exp(DiscreteExponential(scale).log_tail(alpha))
    else:
        exceeds = 2 * math.exp(DiscreteLaplace(scale).log_tail(alpha))
    assert draws * exceeds <= beta / parts * (1 + 1e-9)
    assert draws * exceeds == pytest.approx(beta / parts, rel=1e-3)
