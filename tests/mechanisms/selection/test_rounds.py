"""Rounds of selection at an (epsilon, delta) budget: exact delta over all outcomes, and variants that are caught."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    MOVES,
    delta_at,
    permute_and_flip_law,
    rounds_law,
    spread,
    worst_loss,
)
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each, optimal_epsilon_each
from reusable_holdout.mechanisms.selection import exponential, rounds
from reusable_holdout.mechanisms.selection.exponential import exponential_top, selection_rate
from reusable_holdout.mechanisms.selection.rounds import permute_and_flip_top

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Law = dict[tuple[int, ...], float]


def worst_delta(
    law: Callable[[Sequence[int]], Law],
    epsilon: float,
    bases: Sequence[Sequence[int]],
    moves: str,
    sensitivity: int,
) -> float:
    return max(
        delta_at(epsilon, law(base), law([s + sensitivity * m for s, m in zip(base, move, strict=True)]))
        for base in bases
        for move in MOVES[moves](len(base))
    )


def permute_and_flip_rounds(scores: Sequence[int], rate: float, count: int) -> Law:
    """Law of rounds without replacement."""
    law: Law = {(): 1.0}
    for _ in range(count):
        after: Law = {}
        for chosen, probability in law.items():
            left = [i for i in range(len(scores)) if i not in chosen]
            for i, share in zip(left, permute_and_flip_law([scores[i] for i in left], rate), strict=True):
                after[*chosen, i] = probability * float(share)
        law = after
    return law


def group_rounds(members: int, risen: int, lead: float, rate: float, count: int) -> Law:
    """Law of which of two groups each round chooses from: `risen` of `members` items are ahead by `lead`.

    Which member is chosen tells nothing about the lead, so this is all of the privacy loss.
    """
    law: Law = {}
    for outcome in itertools.product((0, 1), repeat=count):
        left, probability = [members - risen, risen], 1.0
        for group in outcome:
            weights = [left[0], left[1] * math.exp(rate * lead)]
            probability *= weights[group] / sum(weights)
            left[group] -= 1
        law[outcome] = probability
    return law


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "monotonic"])
@for_each(("epsilon", "delta", "sensitivity"), [(0.5, 1e-2, 1), (1.0, 1e-3, 3), (2.0, 0.1, 2)])
def test_rounds_stay_within_their_delta_on_small_instances(
    epsilon: float, delta: float, sensitivity: int, moves: str
) -> None:
    each = bounded_range_epsilon_each(epsilon=epsilon, count=3, delta=delta)
    rate = float(selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=moves == "monotonic"))
    bases = spread(4, far=math.ceil(2 / rate), sensitivity=sensitivity)[::2]
    worst = worst_delta(lambda scores: rounds_law(scores, rate, 3), epsilon, bases, moves, sensitivity)
    assert 0.05 * delta <= worst <= delta


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-4), (3.0, 1e-8)])
def test_many_candidates_use_all_of_the_budget(epsilon: float, delta: float) -> None:
    """A million of equal items, some of which rise by one: the share that hurts most."""
    count = 10
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)

    def worst(total: float) -> float:
        laws = (
            (group_rounds(10**6, r, 0, each, count), group_rounds(10**6, r, 1, each, count)) for r in risen
        )
        return max(delta_at(total, *pair) for pair in laws)

    risen = [10**6 * k // 20 for k in range(5, 16)]
    assert worst(epsilon) <= delta
    assert worst(0.95 * epsilon) > delta


def test_a_range_a_tenth_too_wide_is_caught() -> None:
    epsilon, delta, count = 1.0, 1e-4, 10
    each = 1.1 * bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    one, other = (group_rounds(10**6, 10**6 // 2, lead, each, count) for lead in (0, 1))
    assert delta_at(epsilon, one, other) > delta


def test_permute_and_flip_at_the_rate_of_the_exponential_mechanism_is_caught() -> None:
    """As private as a single round, it has twice the range: its losses lie between -e and e."""
    epsilon, delta, count = 1.0, 0.02, 2
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    bases = spread(3, far=math.ceil(3 / each), sensitivity=1)
    law = {
        "flip": lambda scores: permute_and_flip_rounds(scores, each, count),
        "exponential": lambda scores: rounds_law(scores, each, count),
    }
    assert worst_delta(law["exponential"], epsilon, bases, "monotonic", 1) <= delta
    assert worst_delta(law["flip"], epsilon, bases, "monotonic", 1) > delta


@for_each("monotonic", [False, True])
def test_the_clocks_run_at_the_rate_of_the_budget(monotonic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []

    def none(behind: Any, rate: Any, count: int, words: Any) -> Any:
        assert (behind.min(), behind.max()) == (0, 2**16)  # as the race wants it
        rates.append((rate, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(exponential, "first_rings", none)
    for delta in (0.0, 1e-6):
        exponential_top([-2.0, *[0.0] * 8], 5, epsilon=1.0, delta=delta, sensitivity=2.0, monotonic=monotonic)
        each = 0.2 if delta == 0 else bounded_range_epsilon_each(epsilon=1.0, count=5, delta=delta)
        rate, count = rates.pop()
        assert count == 5
        assert float(rate) * 2**16 == pytest.approx(each / (1 if monotonic else 2), rel=1e-12)


def test_without_delta_the_draws_are_those_of_before() -> None:
    scores = np.arange(200.0) * 3
    plain = exponential_top(scores, 20, epsilon=0.5, seed=4)
    assert exponential_top(scores, 20, epsilon=0.5, delta=0.0, seed=4).tolist() == plain.tolist()


@for_each("delta", [-1e-9, 1.0, math.nan])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="delta"):
        exponential_top([1.0, 2.0], 1, epsilon=1.0, delta=delta)


# Rounds of permute-and-flip.


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "monotonic"])
@for_each(("epsilon", "sensitivity"), [(0.5, 1), (3.0, 2)])
def test_rounds_of_permute_and_flip_lose_at_most_epsilon_and_nearly_all_of_it(
    epsilon: float, sensitivity: int, moves: str
) -> None:
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=moves == "monotonic")) / 2
    bases = spread(4, far=math.ceil(20 / rate), sensitivity=sensitivity)[::5]
    loss = worst_loss(
        lambda scores: list(permute_and_flip_rounds(scores, rate, 2).values()), bases, moves, sensitivity
    )
    assert 0.99 * epsilon <= loss <= epsilon + 1e-9


@for_each(("epsilon", "delta"), [(1.0, 0.05), (2.0, 0.2)])
def test_rounds_of_permute_and_flip_stay_within_their_delta(epsilon: float, delta: float) -> None:
    each = optimal_epsilon_each(epsilon=epsilon, count=2, delta=delta)
    assert each > 0.51 * epsilon
    bases = spread(3, far=math.ceil(3 / each), sensitivity=1)
    worst = worst_delta(lambda s: permute_and_flip_rounds(s, each, 2), epsilon, bases, "monotonic", 1)
    assert 0.05 * delta <= worst <= delta


@for_each("delta", [0.0, 1e-6])
@for_each("monotonic", [False, True])
def test_each_round_flips_at_the_rate_of_its_share_among_those_that_are_left(
    monotonic: bool, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def second(steps: Any, rate: Any, words: Any) -> int:
        asked.append(((steps // 2**16).tolist(), float(rate)))
        return 1

    monkeypatch.setattr(rounds, "flip_in_order", second)
    chosen = permute_and_flip_top(
        [9.0, 5.0, 7.0, 6.0], 3, epsilon=1.0, delta=delta, monotonic=monotonic, seed=0
    )
    assert chosen.tolist() == [1, 2, 3]
    assert [left for left, _ in asked] == [[9, 5, 7, 6], [9, 7, 6], [9, 6]]
    each = optimal_epsilon_each(epsilon=1.0, count=3, delta=delta) / (1 if monotonic else 2)
    assert [rate * 2**16 for _, rate in asked] == pytest.approx([each] * 3, rel=1e-12)


@pytest.mark.long(*MECHANISMS)
def test_a_sample_of_rounds_of_permute_and_flip_has_their_law_and_not_that_of_half_the_rate() -> None:
    samples = 3000
    law, half = (permute_and_flip_rounds([0, 1, -1], rate, 2) for rate in (1.0, 0.5))
    counts = dict.fromkeys(law, 0)
    for seed in range(samples):
        counts[tuple(permute_and_flip_top([0.0, 1.0, -1.0], 2, epsilon=4.0, seed=seed).tolist())] += 1
    limit = stats.chi2.isf(1e-9, df=5)

    def distance(expected: Law) -> float:
        return sum((counts[o] - samples * p) ** 2 / (samples * p) for o, p in expected.items())

    assert distance(law) <= limit < distance(half)


def test_without_delta_a_sum_of_scores_is_larger_than_that_of_the_exponential_mechanism() -> None:
    for scores in ([0, 1, 2, 3], [0, 0, 0, 4], [5, -5, 5, -5]):
        sums = [
            math.fsum(p * sum(scores[i] for i in chosen) for chosen, p in law(scores, 0.7, 2).items())
            for law in (permute_and_flip_rounds, rounds_law)
        ]
        assert sums[0] > sums[1]
