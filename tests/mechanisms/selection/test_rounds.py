"""Rounds of selection at an (epsilon, delta) budget: exact delta over all outcomes, and variants that are caught."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    MOVES,
    delta_at,
    is_rejected,
    permute_and_flip_law,
    rounds_law,
    spread,
    worst_loss,
)

from reusable_holdout.mechanisms import RandomWords, exponential_top, permute_and_flip_top
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each, optimal_epsilon_each
from reusable_holdout.mechanisms.selection import exponential
from reusable_holdout.mechanisms.selection import permute_and_flip as flip_module
from reusable_holdout.mechanisms.selection.exponential import selection_rate


def worst_delta(law, epsilon, bases, moves, sensitivity):
    return max(
        delta_at(epsilon, law(base), law([s + sensitivity * m for s, m in zip(base, move, strict=True)]))
        for base in bases
        for move in MOVES[moves](len(base))
    )


def permute_and_flip_rounds(scores, rate, count):
    """Return the law of rounds without replacement."""
    law = {(): 1.0}
    for _ in range(count):
        after = {}
        for chosen, probability in law.items():
            left = [i for i in range(len(scores)) if i not in chosen]
            for i, share in zip(left, permute_and_flip_law([scores[i] for i in left], rate), strict=True):
                after[*chosen, i] = probability * float(share)
        law = after
    return law


def group_rounds(members, risen, lead, rate, count):
    """Return the law of the group that each round chooses from: `risen` of `members` items are ahead by `lead`.

    The member that is chosen tells nothing about the lead, so this is all of the privacy loss.
    """
    law = {}
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
def test_rounds_stay_within_their_delta_on_small_instances(epsilon, delta, sensitivity, moves):
    each = bounded_range_epsilon_each(epsilon=epsilon, count=3, delta=delta)
    rate = float(selection_rate(epsilon=each, sensitivity=sensitivity, monotonic=moves == "monotonic"))
    bases = spread(4, far=math.ceil(2 / rate), sensitivity=sensitivity)[::2]
    worst = worst_delta(lambda scores: rounds_law(scores, rate, 3), epsilon, bases, moves, sensitivity)
    assert 0.05 * delta <= worst <= delta


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-4), (3.0, 1e-8)])
def test_many_candidates_use_all_of_the_budget_and_a_range_a_tenth_too_wide_is_caught(epsilon, delta):
    """The worst share of a million equal items rises by one."""
    count = 10
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)

    def worst(total, each):
        return max(
            delta_at(total, *(group_rounds(10**6, risen, lead, each, count) for lead in (0, 1)))
            for risen in range(10**6 // 4, 8 * 10**5, 10**6 // 20)
        )

    assert worst(epsilon, each) <= delta
    assert worst(0.95 * epsilon, each) > delta
    assert worst(epsilon, 1.1 * each) > delta


def test_permute_and_flip_at_the_rate_of_the_exponential_mechanism_is_caught():
    """A single round is as private, but has twice the range: its losses lie between -e and e."""
    epsilon, delta, count = 1.0, 0.02, 2
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta)
    bases = spread(3, far=math.ceil(3 / each), sensitivity=1)
    for law, caught in ((permute_and_flip_rounds, True), (rounds_law, False)):
        found = worst_delta(lambda s, law=law: law(s, each, count), epsilon, bases, "monotonic", 1)
        assert (found > delta) is caught


@for_each("monotonic", [False, True])
@for_each("delta", [0.0, 1e-6])
def test_the_clocks_run_at_the_rate_of_the_budget(monotonic, delta, monkeypatch):
    rates = []

    def none(behind, rate, count, words):
        assert (behind.min(), behind.max()) == (0, 2**16)  # the race wants it so
        rates.append((float(rate) * 2**16, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(exponential, "first_rings", none)
    exponential_top([-2.0, *[0.0] * 8], 5, epsilon=1.0, delta=delta, sensitivity=2.0, monotonic=monotonic)
    each = bounded_range_epsilon_each(epsilon=1.0, count=5, delta=delta)
    assert rates == [(pytest.approx(each / (1 if monotonic else 2), rel=1e-12), 5)]


# Rounds of permute-and-flip.


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["opposite", "monotonic"])
@for_each(("epsilon", "sensitivity"), [(0.5, 1), (3.0, 2)])
def test_rounds_of_permute_and_flip_lose_at_most_epsilon_and_nearly_all_of_it(epsilon, sensitivity, moves):
    rate = float(selection_rate(epsilon=epsilon, sensitivity=sensitivity, monotonic=moves == "monotonic")) / 2
    bases = spread(4, far=math.ceil(20 / rate), sensitivity=sensitivity)[::5]
    loss = worst_loss(
        lambda scores: list(permute_and_flip_rounds(scores, rate, 2).values()), bases, moves, sensitivity
    )
    assert 0.99 * epsilon <= loss <= epsilon + 1e-9


@for_each(("epsilon", "delta"), [(1.0, 0.05), (2.0, 0.2)])
def test_rounds_of_permute_and_flip_stay_within_their_delta(epsilon, delta):
    each = optimal_epsilon_each(epsilon=epsilon, count=2, delta=delta)
    assert each > 0.51 * epsilon
    bases = spread(3, far=math.ceil(3 / each), sensitivity=1)
    worst = worst_delta(lambda s: permute_and_flip_rounds(s, each, 2), epsilon, bases, "monotonic", 1)
    assert 0.05 * delta <= worst <= delta


@for_each("delta", [0.0, 1e-6])
@for_each("monotonic", [False, True])
def test_each_round_flips_at_the_rate_of_its_share_among_the_candidates_left(monotonic, delta, monkeypatch):
    asked = []

    def second(steps, rate, words):
        asked.append(((steps // 2**16).tolist(), float(rate)))
        return 1

    monkeypatch.setattr(flip_module, "flip_in_order", second)
    how = {"epsilon": 1.0, "delta": delta, "monotonic": monotonic, "seed": 0}
    assert permute_and_flip_top([9.0, 5.0, 7.0, 6.0], 3, **how).tolist() == [1, 2, 3]
    assert [left for left, _ in asked] == [[9, 5, 7, 6], [9, 7, 6], [9, 6]]
    each = optimal_epsilon_each(epsilon=1.0, count=3, delta=delta) / (1 if monotonic else 2)
    assert [rate * 2**16 for _, rate in asked] == pytest.approx([each] * 3, rel=1e-12)


def test_the_foremost_is_taken_where_all_others_are_hopeless():
    steps = np.array([-(2**50), 0, -(2**59)], dtype=np.int64)
    assert {flip_module.flip_in_order(steps, 1, RandomWords(seed)) for seed in range(20)} == {1}


@pytest.mark.long(*MECHANISMS)
def test_a_sample_of_rounds_of_permute_and_flip_has_their_law_and_not_that_of_half_the_rate():
    drawn = (permute_and_flip_top([0.0, 1.0, -1.0], 2, epsilon=4.0, seed=seed) for seed in range(3000))
    counts = Counter(tuple(each.tolist()) for each in drawn)
    assert not is_rejected(counts, permute_and_flip_rounds([0, 1, -1], 1.0, 2))
    assert is_rejected(counts, permute_and_flip_rounds([0, 1, -1], 0.5, 2))
