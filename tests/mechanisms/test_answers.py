"""Released numbers: privacy loss over all outputs, accuracy from exact tails, and the lecture's theorems."""

import functools
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    NumericSparse,
    answers,
    gaussian_mechanism,
    laplace_accuracy,
    laplace_mechanism,
)
from reusable_holdout.mechanisms.accounting import gaussian_deviation
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1, 1)), min_size=1, max_size=6),
    st.floats(1e-3, 1e3),
)
def test_rounding_never_exceeds_the_sensitivity_that_the_noise_pays_for(pairs, sensitivity):
    """Neighbours an l1 distance of at most D apart, rounded, and their distance in steps."""
    grid, _ = answers.laplace_law(answers=len(pairs), epsilon=1.0, sensitivity=sensitivity)
    total = sum(abs(move) for _, move in pairs) or 1.0
    one = [value for value, _ in pairs]
    other = [value + move / total * sensitivity * (1 - 1e-9) for value, move in pairs]
    real = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True))
    moved = int(np.abs(grid.steps_many(one) - grid.steps_many(other)).sum())
    assert real <= Fraction(sensitivity)
    assert moved <= grid.sensitivity


@for_each("sensitivity", [1, 2, 3])
@for_each("epsilon", [0.5, 2.0])
def test_laplace_noise_loses_epsilon_on_the_farthest_neighbour_and_less_on_all_others(epsilon, sensitivity):
    """Two answers on the integers: the loss at every output around them, for every neighbour."""
    law = DiscreteLaplace(sensitivity / Fraction(epsilon))
    outputs = np.array([[law.log_pmf(x) for x in range(-12, 13)]])

    def joint(first, second):
        shifted = [np.roll(outputs, shift)[0, 6:-6] for shift in (first, second)]
        return shifted[0][:, None] + shifted[1][None, :]

    losses = {}
    for moves in itertools.product(range(-sensitivity, sensitivity + 1), repeat=2):
        if sum(map(abs, moves)) <= sensitivity:
            losses[moves] = float(np.abs(joint(0, 0) - joint(*moves)).max())
    assert max(losses.values()) == pytest.approx(epsilon, rel=1e-12)
    assert max(losses[sensitivity, 0], losses[0, -sensitivity]) == pytest.approx(epsilon, rel=1e-12)


@for_each("k", [1, 2, 7, 1000])
@for_each("sensitivity", [0.3, 1.0, 5.0])
def test_the_laplace_scale_is_the_sensitivity_over_epsilon_and_hardly_more(k, sensitivity):
    grid, law = answers.laplace_law(answers=k, epsilon=0.5, sensitivity=sensitivity)
    scale = law.scale * Fraction(grid.step)
    assert Fraction(sensitivity) / Fraction(0.5) <= scale
    assert float(scale) == pytest.approx(sensitivity / 0.5, rel=2**-15)
    assert law.scale * Fraction(0.5) == grid.sensitivity


def test_the_mechanism_adds_a_draw_of_its_law_to_each_answer(monkeypatch):
    laws = []
    monkeypatch.setattr(answers, "draw_noise", lambda law, count, _: laws.append(law) or np.arange(count))
    grid, law = answers.laplace_law(answers=3, epsilon=0.7, sensitivity=2.0)
    released = laplace_mechanism([5.0, -1.0, 0.0], epsilon=0.7, sensitivity=2.0)
    assert released.tolist() == [5.0, -1.0 + grid.step, 2 * grid.step]
    assert laws == [law]


def test_normal_noise_has_the_deviation_of_its_promise_and_each_answer_its_own(monkeypatch):
    """The noise is exact; accounting/test_gaussian.py shows that this deviation keeps epsilon and delta."""
    asked = []

    def add(value, *, deviation, step, words):
        asked.append((value, deviation))
        return int(value / step) + len(asked)

    monkeypatch.setattr(answers, "nearest_with_noise", add)
    released = gaussian_mechanism([0.1, -3.0], epsilon=0.5, delta=1e-5, sensitivity=2.0)
    deviation = Fraction(gaussian_deviation(epsilon=0.5, delta=1e-5, sensitivity=2.0))
    assert asked == [(Fraction(0.1), deviation), (Fraction(-3), deviation)]
    assert released[1] == -3 + 2 * Grid.of(2.0).step


# Accuracy.


@for_each("k", [1, 3, 100])
@for_each("epsilon", [0.1, 2.0])
@for_each("beta", [0.3, 1e-3, 1e-12])
def test_the_accuracy_is_the_theorems_and_true_of_the_noise(k, epsilon, beta):
    """Theorem 8: ln(k / beta) D / e. The exact chance that one of k draws goes further is at most beta."""
    grid, law = answers.laplace_law(answers=k, epsilon=epsilon, sensitivity=1.5)
    alpha = laplace_accuracy(epsilon=epsilon, beta=beta, answers=k, sensitivity=1.5)
    beyond = math.floor(alpha / grid.step - 0.5) + 1  # first number of steps that would be a larger error

    def failure(least):
        return -math.expm1(k * math.log1p(-2 * math.exp(law.log_tail(least))))

    assert alpha / grid.step % 1 == 0.5  # whole steps of noise, and half a step of rounding
    assert failure(beyond) <= beta * (1 + 1e-9)
    assert failure(beyond - 1) > beta * (1 - 1e-9)  # and no smaller radius is true
    theorem = math.log(k / beta) * 1.5 / epsilon
    assert alpha <= theorem * (1 + 1e-4)
    if beta < 0.01:
        assert alpha == pytest.approx(theorem, rel=1e-3)


@for_each("charges", [1, 5])
@for_each("delta", [0.0, 1e-6])
@for_each("epsilon", [0.25, 0.5])
def test_the_lectures_alpha_2_has_its_epsilon_in_the_wrong_place(charges, delta, epsilon):
    """Condition 2 of Theorem 10: Theorem 8 at the answers' epsilon gives alpha_2 with epsilon below the line."""
    beta = 0.05
    if delta:
        root = math.sqrt(8 * charges * math.log(2 / delta))
        each, printed = epsilon / (9 * root), 9 * math.log(2 * charges / beta) * root * epsilon
        right = 9 * math.log(2 * charges / beta) * root / epsilon
    else:
        each, printed = epsilon / (9 * charges), 9 * charges * math.log(2 * charges / beta)
        right = printed / epsilon
    wanted = beta / (2 * charges)
    assert laplace_accuracy(epsilon=each, beta=wanted) == pytest.approx(right, rel=1e-3)
    grid, law = answers.laplace_law(answers=1, epsilon=each, sensitivity=1.0)
    fails = {alpha: 2 * math.exp(law.log_tail(math.ceil(alpha / grid.step))) for alpha in (printed, right)}
    assert fails[right] == pytest.approx(wanted, rel=1e-3)
    assert fails[printed] == pytest.approx(wanted ** (epsilon**2 if delta else epsilon), rel=1e-3)
    assert fails[printed] > wanted
    stream = NumericSparse(0.0, charges=charges, epsilon=epsilon, delta=delta, split="lecture")
    assert stream.accuracy(queries=100, beta=beta) >= right  # Theorem 10 stands


def test_the_lectures_alpha_1_is_not_at_least_its_printed_alpha_2_for_a_large_epsilon():
    epsilon, charges, beta, queries = 20.0, 2, 0.05, 10
    alpha_1 = 9 * charges * (math.log(queries) + math.log(4 * charges / beta)) / epsilon
    printed = 9 * charges * math.log(2 * charges / beta)
    assert alpha_1 < printed
    assert alpha_1 > printed / epsilon


# Input.

HIDDEN = [
    [],
    [1.0, math.nan],
    [0.0, -math.inf],
    [[987654.25]],
    "secret",
    [987654.25, [1.0]],
    [987654 * 10**400],
]


@for_each(
    ("mechanism", "wrong"),
    [
        (laplace_mechanism, {"epsilon": 1e-305}),
        (
            laplace_mechanism,
            {"values": [987654.25e12]},
        ),  # beyond the grid: clipped, another number would be told
        *((laplace_mechanism, {"values": values}) for values in HIDDEN),
        *((functools.partial(gaussian_mechanism, delta=1e-6), {"values": values}) for values in HIDDEN),
    ],
)
def test_a_wrong_call_is_refused_without_telling_an_answer(mechanism, wrong):
    given = {"values": [987654.25], "epsilon": 1.0} | wrong
    caught = refuses(InputError, "", mechanism, given.pop("values"), **given)
    assert "987654" not in str(caught)
    assert "secret" not in str(caught)


def test_a_sensitivity_that_is_none_is_told_as_it_was_given():
    for sensitivity in (1e290, math.inf, 0.0):
        with pytest.raises(InputError, match=re.escape(f"positive finite number; got {sensitivity}")):
            laplace_mechanism([1.0, 2.0], epsilon=1.0, sensitivity=sensitivity)


def test_large_whole_numbers_get_their_noise_before_they_are_rounded_to_floats():
    """As floats, answers that differ by the sensitivity, 1, can lie 256 apart: halfway the noise must decide."""
    answers = [2**60 + 2**7] * 64
    assert float(answers[0]) == 2.0**60
    released = gaussian_mechanism(answers, epsilon=1.0, delta=1e-6, seed=5)
    assert set(released.tolist()) == {2.0**60, 2.0**60 + 2**8}


@for_each("mechanism", [laplace_mechanism, functools.partial(gaussian_mechanism, delta=1e-6)])
def test_a_seed_repeats_the_noise_and_no_seed_does_not(mechanism):
    def drawn(seed, **sensitivity):
        return mechanism([1.0, 1.0], epsilon=1.0, seed=seed, **sensitivity).tolist()

    assert drawn(4) == drawn(4) == drawn(4, sensitivity=1.0)
    assert drawn(4)[0] != drawn(4)[1]
    assert drawn(None) != drawn(None)
