"""Labels from teachers' votes, the three uses in section 2.7.1 of Cohen and Lyu (2023): laws on all votes of a grid.

A neighbour has one vote for another outcome, one more or one less; probabilities are exact fractions.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q, wrapped

from reusable_holdout.mechanisms import TargetInteraction, exponential_weights, exponential_weights_or_low
from reusable_holdout.mechanisms.accounting import (
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
)
from reusable_holdout.noise import DiscreteLaplace

EPSILONS = [0.05, 0.5, 2.0]
THRESHOLDS = [-1, 0, 2, 4, 6]
CALLS, CHARGES, EPSILON, DELTA = 30, 3, 1.0, 1e-2


def normed(weights):
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]


def or_low(votes, threshold, epsilon):
    return normed(exponential_weights_or_low(votes, threshold=threshold, epsilon=epsilon))


def neighbours(votes):
    for place in range(len(votes)):
        for other in (-1, *range(len(votes))):
            moved = list(votes)
            moved[place] += 1
            if other >= 0:
                moved[other] -= 1
            if other != place and min(moved) >= 0:
                yield moved


def pairs(most=4, outcomes=3):
    for votes in itertools.product(range(most), repeat=outcomes):
        for moved in neighbours(votes):
            yield votes, moved


def half(epsilon):
    """Return the number whose powers all weights are."""
    return Fraction(*exponential_weights([0, 1], epsilon=epsilon))


def worst_ratio(law, other):
    return max(max(p / q, q / p) for p, q in zip(law, other, strict=True))


@for_each("votes", [[0, 0], [5, 1, 3], [9, 9, 0, 2], [1]])
@for_each("threshold", [-3, 0, 4, 9, 12])
@for_each("epsilon", EPSILONS)
def test_the_law_is_a_noisy_comparison_and_then_the_exponential_mechanism(votes, threshold, epsilon):
    """The document's words: "apply AboveThreshold test to the maximum; if above, the exponential mechanism"."""
    noise = DiscreteLaplace(2 / Fraction(epsilon))
    above = math.exp(noise.log_tail(threshold - max(votes)))
    chosen = np.exp(epsilon / 2 * np.array(votes))
    expected = [*(above * chosen / chosen.sum()), -math.expm1(noise.log_tail(threshold - max(votes)))]
    assert [float(p) for p in or_low(votes, threshold, epsilon)] == pytest.approx(expected, rel=1e-9)


@pytest.mark.long(*MECHANISMS)
@for_each("epsilon", EPSILONS)
@for_each("threshold", THRESHOLDS)
def test_one_vote_changes_no_probability_by_more_than_epsilon(epsilon, threshold):
    most = 1 / half(epsilon) ** 2
    with mpmath.workdps(60):
        assert mpmath.log(mpmath.mpf(most.numerator) / most.denominator) <= mpmath.mpf(epsilon)
    for votes, moved in pairs():
        assert worst_ratio(or_low(votes, threshold, epsilon), or_low(moved, threshold, epsilon)) <= most


def test_nearly_all_of_epsilon_is_lost_where_one_outcome_has_nearly_all_votes():
    law, other = or_low([60, 0, 0], 10, 1.0), or_low([59, 1, 0], 10, 1.0)
    assert math.log(worst_ratio(law, other)) > 0.999


def test_a_comparison_with_half_the_noise_is_caught():
    """With the scale 1/e in place of 2/e the whole loses up to 3/2 e."""
    a = half(1.0)

    def law(votes, threshold):
        distance = max(votes) - threshold
        tail = a ** (2 * (distance + 1 if distance >= 0 else -distance)) / (1 + a**2)
        above = 1 - tail if distance >= 0 else tail
        return [*(above * p for p in normed(exponential_weights(votes, epsilon=1.0))), 1 - above]

    worst = max(worst_ratio(law(votes, t), law(moved, t)) for t in (10, 20) for votes, moved in pairs(most=3))
    assert math.log(worst) > 1.2


@pytest.mark.long(*MECHANISMS)
@for_each("epsilon", EPSILONS)
@for_each("threshold", THRESHOLDS)
def test_inside_the_wrapper_it_keeps_the_epsilon_and_the_q_of_the_boundary(epsilon, threshold):
    """Lemmas 2.8 and 2.9 at the epsilon of the mechanism: that of the exponential mechanism alone."""
    call = boundary_epsilon(epsilon)
    for votes, moved in pairs(most=3):
        law, other = (wrapped(or_low(v, threshold, epsilon)) for v in (votes, moved))
        assert math.log(worst_ratio(law, other)) <= call
        p, r = ([float(chance) for chance in found] for found in (law, other))
        target = [False] * (len(p) - 1) + [True]
        assert largest_q(p, r, target, epsilon=call) >= boundary_q(epsilon) * (1 - 1e-9)


# The whole labelling.


def whole_delta(law, other, hits, *, calls):
    """Return delta, at an epsilon, of equal calls that end with the last charge, over counts of outcomes."""
    states = {(0,) * len(law): (1.0, 1.0)}
    lost = 0.0
    here, there = [float(p) for p in law], [float(q) for q in other]

    def over(p, q):
        return max(0.0, p - math.exp(EPSILON) * q)

    for _ in range(calls):
        following = {}
        for counts, (p, q) in states.items():
            for outcome, hit in enumerate(hits):
                grown = (*counts[:outcome], counts[outcome] + 1, *counts[outcome + 1 :])
                step = (p * here[outcome], q * there[outcome])
                if hit and sum(n for n, of_target in zip(grown, hits, strict=True) if of_target) == CHARGES:
                    lost += over(*step)
                else:
                    before = following.get(grown, (0.0, 0.0))
                    following[grown] = (before[0] + step[0], before[1] + step[1])
        states = following
    return lost + sum(over(p, q) for p, q in states.values())


def wrapper_q(each):
    return boundary_q(boundary_wrapped_epsilon(each), each)


def test_a_labelling_with_low_keeps_its_epsilon_and_delta():
    each = TargetInteraction(charges=CHARGES, epsilon=EPSILON, delta=DELTA, q=wrapper_q).epsilon_each
    found = {}
    for factor in (1, 8):
        inside = factor * boundary_wrapped_epsilon(each)
        found[factor] = max(
            whole_delta(
                *(wrapped(or_low(v, threshold, inside)) for v in (votes, moved)),
                [False, False, False, True],
                calls=CALLS,
            )
            for votes, moved, threshold in (
                ([40, 40], [41, 39], 40),
                ([41, 39], [40, 40], 40),
                ([80, 0], [79, 1], 79),
                ([79, 1], [80, 0], 70),
            )
        )
    assert found[1] <= DELTA
    assert found[8] > DELTA  # the same audit rejects calls of eight times the epsilon


def test_a_labelling_by_a_students_predictions_keeps_its_epsilon_and_delta():
    each = TargetInteraction(charges=CHARGES, epsilon=EPSILON, delta=DELTA).epsilon_each
    found = {}
    for factor in (1, 4):
        found[factor] = max(
            whole_delta(
                *(normed(exponential_weights(v, epsilon=factor * each)) for v in votes),
                [label != predicted for label in range(2)],
                calls=4 * CALLS,
            )
            for votes in (([40, 40], [41, 39]), ([80, 0], [79, 1]), ([79, 1], [80, 0]))
            for predicted in range(2)
        )
    assert found[1] <= DELTA
    assert found[4] > DELTA
