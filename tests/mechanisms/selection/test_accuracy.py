"""Accuracy of selections: the exact law of the worst scores, the sparse vector technique beside it, and draws."""

import math

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection import selection_laws as laws

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.selection.exponential import selection_rate
from reusable_holdout.noise import DiscreteLaplace

STEP = Grid.of(1.0).step


def steps(distance):
    """Return the grid steps of an accuracy, the step for rounding left out."""
    return round(distance / STEP) - 1


@for_each("n", [2, 5, 60])
@for_each("epsilon", [0.5, 2.0])
@for_each("beta", [0.3, 1e-3])
@for_each("monotonic", [False, True])
def test_the_exponential_mechanism_is_this_accurate_and_no_better(n, epsilon, beta, monotonic):
    """One best and n - 1 that are just so far behind: a wrong choice has chance beta."""
    alpha = mechanisms.exponential_accuracy(candidates=n, epsilon=epsilon, beta=beta, monotonic=monotonic)
    rate = float(selection_rate(epsilon=epsilon, sensitivity=2**16, monotonic=monotonic))
    behind = alpha / STEP - 1
    law = laws.exponential_law([0.0] + [-behind] * (n - 1), rate)
    wrong = float(law[1:].sum())
    assert wrong <= beta * (1 + 1e-9)
    if behind > 0:
        assert wrong == pytest.approx(beta, rel=1e-9)
        section_5 = (1 if monotonic else 2) / epsilon * (math.log(n - 1) + math.log((1 - beta) / beta))
        assert alpha - STEP == pytest.approx(section_5, rel=1e-4)
        book = (1 if monotonic else 2) / epsilon * (math.log(n) + math.log(1 / beta))
        assert alpha <= book + STEP


@given(st.lists(st.integers(-9, 0), min_size=1, max_size=6), st.floats(0.01, 0.5))
def test_a_choice_far_behind_is_rarer_than_beta_for_all_scores(scores, beta):
    bound = mechanisms.exponential_accuracy(candidates=len(scores), epsilon=2.0, beta=beta)
    law = laws.exponential_law(scores, 1.0)
    far = [max(scores) - score >= bound and score != max(scores) for score in scores]
    assert float(law[far].sum()) <= beta


@for_each("count", [1, 2, 3])
@for_each("beta", [0.4, 0.01])
def test_rounds_are_each_this_near_to_the_best_that_is_left(count, beta):
    n, epsilon = 5, 1.0
    alpha = mechanisms.exponential_accuracy(candidates=n, epsilon=epsilon, beta=beta, count=count)
    rate = float(selection_rate(epsilon=epsilon, sensitivity=2**16, monotonic=False)) / count
    behind = steps(alpha)
    for scores in ([0] + [-behind] * (n - 1), [0, 0] + [-behind] * (n - 2), [-behind * i for i in range(n)]):
        wrong = 0.0
        for order, probability in laws.rounds_law(scores, rate, count).items():
            left = [max(scores[i] for i in range(n) if i not in order[:place]) for place in range(count)]
            if any(best - scores[i] >= behind for best, i in zip(left, order, strict=True)):
                wrong += probability
        assert wrong <= beta * (1 + 1e-3)  # rounded to a whole step here


@pytest.mark.long(*MECHANISMS)
@for_each("count", [1, 5, 40])
def test_rounds_with_a_delta_are_as_near_as_rounds_of_the_range_they_have(count):
    rounds = {"candidates": 100, "epsilon": 0.5, "beta": 0.05, "count": count}
    each = bounded_range_epsilon_each(epsilon=0.5, count=count, delta=1e-6)
    alike = mechanisms.exponential_accuracy(**rounds | {"epsilon": each * count})
    assert mechanisms.exponential_accuracy(**rounds, delta=1e-6) == pytest.approx(alike, rel=1e-12)
    assert mechanisms.exponential_accuracy(**rounds, delta=1e-6) <= mechanisms.exponential_accuracy(**rounds)


@for_each("n", [10, 1000, 10**6])
@for_each("beta", [0.1, 0.01])
def test_it_is_less_than_a_quarter_of_what_the_sparse_vector_technique_needs(n, beta):
    """Section 5: SVT's accuracy theorem at c = 1 against the exponential mechanism's, on the same question."""
    svt = mechanisms.AboveThreshold(0.0, epsilon=0.1).accuracy(queries=n, beta=beta)
    assert svt == pytest.approx(8 * (math.log(n) + math.log(2 / beta)) / 0.1, rel=1e-3)
    assert mechanisms.exponential_accuracy(candidates=n, epsilon=0.1, beta=beta) < svt / 4


@for_each("noise", ["laplace", "exponential"])
@for_each("n", [2, 4])
@for_each("beta", [0.2, 0.01])
def test_noisy_max_is_this_accurate(monkeypatch, noise, n, beta):
    """The exact law on a coarse grid, where the worst scores are one best and the rest just so far behind."""
    monkeypatch.setattr(Grid, "of", staticmethod(lambda _: Grid(step=1.0, sensitivity=2)))
    alpha = mechanisms.noisy_max_accuracy(candidates=n, epsilon=1.0, beta=beta, noise=noise)
    law = (DiscreteLaplace if noise == "laplace" else mechanisms.DiscreteExponential)(4)
    behind = round(alpha) - 1
    wrong = [
        1 - laws.noisy_max_law([0] + [-far] * (n - 1), law, "uniform")[0] for far in (behind, behind + 5)
    ]
    assert wrong[0] <= beta
    assert wrong[1] < wrong[0]
    if n == 2:  # a single pair, so that a step nearer, ties counted as lost, is too often overtaken
        assert laws.noisy_max_law([1 - behind, 0], law, "index")[0] > beta


@for_each("n", [2, 5, 9])
@for_each("beta", [0.2, 1e-4])
def test_permute_and_flip_is_this_accurate_and_more_so_than_the_exponential_mechanism(n, beta):
    flip = mechanisms.noisy_max_accuracy(candidates=n, epsilon=1.0, beta=beta, noise="exponential")
    rate = float(selection_rate(epsilon=1.0, sensitivity=2**16, monotonic=False))
    law = laws.permute_and_flip_law([0] + [-steps(flip)] * (n - 1), rate)
    assert 1 - law[0] <= beta * (1 + 1e-9)
    assert flip < mechanisms.exponential_accuracy(candidates=n, epsilon=1.0, beta=beta)
    if beta < 0.01:
        gain = mechanisms.exponential_accuracy(candidates=n, epsilon=1.0, beta=beta) - flip
        assert gain == pytest.approx(2 * math.log(2), rel=1e-2)


def test_the_two_best_of_four_are_this_near(monkeypatch):
    """All noises of four candidates enumerated: two equal best, two just so far behind."""
    monkeypatch.setattr(Grid, "of", staticmethod(lambda _: Grid(step=1.0, sensitivity=1)))
    beta = 0.1
    behind = round(mechanisms.noisy_max_accuracy(candidates=4, k=2, epsilon=2.0, beta=beta)) - 1
    law = DiscreteLaplace(2)
    for scores in ([0, 0, -behind, -behind], [3, 0, -behind, -behind]):
        pmf, below = laws.densities(law, scores)
        # both best stay ahead of both others, ties lost: the worse of the best above the better of the rest
        rest = np.prod(below[2:] + pmf[2:], axis=0)
        better = np.diff(rest, prepend=0.0)
        ahead = np.prod(1 - below[:2] - pmf[:2], axis=0)
        assert 1 - float(better @ ahead) <= beta


def test_a_selection_of_all_candidates_errs_by_nothing_and_one_of_most_by_less_than_a_step():
    assert mechanisms.exponential_accuracy(candidates=1, epsilon=1.0, beta=0.1) == 0.0
    assert mechanisms.noisy_max_accuracy(candidates=3, k=3, epsilon=1.0, beta=0.1) == 0.0
    assert mechanisms.noisy_max_accuracy(candidates=2, epsilon=1.0, beta=0.9, noise="exponential") == STEP
