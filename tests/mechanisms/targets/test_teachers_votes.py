"""Labels from teachers' votes, the three uses of Cohen and Lyu (2023), section 2.7.1: every law on all votes of a grid.

A neighbour has one vote for another outcome, one more or one less; probabilities are exact fractions.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import TargetInteraction, exponential_weights, exponential_weights_or_low
from reusable_holdout.mechanisms.accounting import (
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    not_prior_q,
    target_charging,
)
from reusable_holdout.noise import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Law = list[Fraction]
EPSILONS = [0.05, 0.5, 2.0]
THRESHOLDS = [-1, 0, 2, 4, 6]


def normed(weights: Sequence[int]) -> Law:
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]


def or_low(votes: Sequence[int], threshold: int, epsilon: float) -> Law:
    return normed(exponential_weights_or_low(votes, threshold=threshold, epsilon=epsilon))


def wrapped(law: Law) -> Law:
    """Algorithm 4; the boundary comes last."""
    pi = min(Fraction(1, 2), 1 - max(law))
    return [*(p / (1 + pi) for p in law), pi / (1 + pi)]


def neighbours(votes: Sequence[int]) -> Iterator[list[int]]:
    for place in range(len(votes)):
        for other in (-1, *range(len(votes))):
            moved = list(votes)
            moved[place] += 1
            if other >= 0:
                moved[other] -= 1
            if other != place and min(moved) >= 0:
                yield moved


def pairs(most: int = 4, outcomes: int = 3) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    for votes in itertools.product(range(most), repeat=outcomes):
        for moved in neighbours(votes):
            yield votes, moved


def half(epsilon: float) -> Fraction:
    """The number whose powers all weights are."""
    return Fraction(*exponential_weights([0, 1], epsilon=epsilon))


def worst_ratio(law: Law, other: Law) -> Fraction:
    return max(max(p / q, q / p) for p, q in zip(law, other, strict=True))


@for_each("votes", [[0, 0], [5, 1, 3], [9, 9, 0, 2], [1]])
@for_each("threshold", [-3, 0, 4, 9, 12])
@for_each("epsilon", EPSILONS)
def test_the_law_is_a_noisy_comparison_and_then_the_exponential_mechanism(
    votes: list[int], threshold: int, epsilon: float
) -> None:
    """The document's words: "apply AboveThreshold test to the maximum; if above, the exponential mechanism"."""
    noise = DiscreteLaplace(2 / Fraction(epsilon))
    above = math.exp(noise.log_tail(threshold - max(votes)))
    chosen = np.exp(epsilon / 2 * np.array(votes))
    expected = [*(above * chosen / chosen.sum()), -math.expm1(noise.log_tail(threshold - max(votes)))]
    assert [float(p) for p in or_low(votes, threshold, epsilon)] == pytest.approx(expected, rel=1e-9)


@pytest.mark.long(*MECHANISMS)
@for_each("epsilon", EPSILONS)
@for_each("threshold", THRESHOLDS)
def test_one_vote_changes_no_probability_by_more_than_epsilon(epsilon: float, threshold: int) -> None:
    most = 1 / half(epsilon) ** 2
    with mpmath.workdps(60):
        assert mpmath.log(mpmath.mpf(most.numerator) / most.denominator) <= mpmath.mpf(epsilon)
    for votes, moved in pairs():
        assert worst_ratio(or_low(votes, threshold, epsilon), or_low(moved, threshold, epsilon)) <= most


def test_nearly_all_of_epsilon_is_lost_where_one_outcome_has_nearly_all_votes() -> None:
    law, other = or_low([60, 0, 0], 10, 1.0), or_low([59, 1, 0], 10, 1.0)
    assert math.log(worst_ratio(law, other)) > 0.999


def test_a_comparison_with_half_the_noise_is_caught() -> None:
    """With the scale 1/e in place of 2/e the whole loses up to 3/2 e."""
    a = half(1.0)

    def law(votes: Sequence[int], threshold: int) -> Law:
        distance = max(votes) - threshold
        tail = a ** (2 * (distance + 1 if distance >= 0 else -distance)) / (1 + a**2)
        above = 1 - tail if distance >= 0 else tail
        return [*(above * p for p in normed(exponential_weights(votes, epsilon=1.0))), 1 - above]

    worst = max(worst_ratio(law(votes, t), law(moved, t)) for t in (10, 20) for votes, moved in pairs(most=3))
    assert math.log(worst) > 1.2


@pytest.mark.long(*MECHANISMS)
@for_each("epsilon", EPSILONS)
@for_each("threshold", THRESHOLDS)
def test_inside_the_wrapper_it_keeps_the_epsilon_and_the_q_of_the_boundary(
    epsilon: float, threshold: int
) -> None:
    """Lemmas 2.8 and 2.9 at the epsilon of the mechanism: that of the exponential mechanism alone."""
    call = boundary_epsilon(epsilon)
    for votes, moved in pairs(most=3):
        law, other = (wrapped(or_low(v, threshold, epsilon)) for v in (votes, moved))
        assert math.log(worst_ratio(law, other)) <= call
        p, r = ([float(chance) for chance in found] for found in (law, other))
        target = [False] * (len(p) - 1) + [True]
        assert largest_q(p, r, target, epsilon=call) >= boundary_q(epsilon) * (1 - 1e-9)


def test_charges_are_likely_where_agreement_is_weak_and_there_alone() -> None:
    """ "We only pay privacy for weak agreements": of 100 teachers and 10 classes, at a threshold of 60 votes."""
    epsilon = 1.0
    none, weak, strong = [10] * 10, [60, 40, *[0] * 8], [95, 5, *[0] * 8]
    boundary = {
        name: [
            float(wrapped(law)[-1])
            for law in (normed(exponential_weights(votes, epsilon=epsilon)), or_low(votes, 60, epsilon))
        ]
        for name, votes in (("none", none), ("weak", weak), ("strong", strong))
    }
    assert boundary["none"][0] == pytest.approx(1 / 3)  # (i) pays for queries on which nobody agrees
    assert boundary["none"][1] < 1e-10  # (ii) does not
    assert max(boundary["strong"]) < 1e-7
    assert boundary["weak"][1] > 0.25
    assert or_low(none, 60, epsilon)[-1] > 1 - 1e-10
    assert or_low(strong, 60, epsilon)[0] > 1 - 1e-7


@for_each("epsilon", EPSILONS)
def test_a_label_that_a_student_did_not_predict_is_a_target(epsilon: float) -> None:
    """Use (iii): the exponential mechanism, its outcomes but one, whichever one is predicted."""
    for votes, moved in pairs():
        law, other = (normed(exponential_weights(v, epsilon=epsilon)) for v in (votes, moved))
        assert math.log(worst_ratio(law, other)) <= epsilon
        p, r = ([float(chance) for chance in found] for found in (law, other))
        for predicted in range(len(votes)):
            target = [label != predicted for label in range(len(votes))]
            assert largest_q(p, r, target, epsilon=epsilon) >= not_prior_q(epsilon)


# The whole labelling -----------------------------------------------------------------------------------


def whole_delta(
    law: Law, other: Law, hits: Sequence[bool], *, calls: int, charges: int, epsilon: float
) -> float:
    """Delta, at an epsilon, of calls that are all alike and end with the last charge, over numbers of outcomes."""
    states: dict[tuple[int, ...], tuple[float, float]] = {(0,) * len(law): (1.0, 1.0)}
    lost = 0.0
    here, there = [float(p) for p in law], [float(q) for q in other]

    def over(p: float, q: float) -> float:
        return max(0.0, p - math.exp(epsilon) * q)

    for _ in range(calls):
        following: dict[tuple[int, ...], tuple[float, float]] = {}
        for counts, (p, q) in states.items():
            for outcome, hit in enumerate(hits):
                grown = (*counts[:outcome], counts[outcome] + 1, *counts[outcome + 1 :])
                step = (p * here[outcome], q * there[outcome])
                if hit and sum(n for n, of_target in zip(grown, hits, strict=True) if of_target) == charges:
                    lost += over(*step)
                else:
                    before = following.get(grown, (0.0, 0.0))
                    following[grown] = (before[0] + step[0], before[1] + step[1])
        states = following
    return lost + sum(over(p, q) for p, q in states.values())


CALLS, CHARGES, EPSILON, DELTA = 30, 3, 1.0, 1e-2


def wrapper_q(each: float) -> float:
    return boundary_q(boundary_wrapped_epsilon(each), each)


def test_a_labelling_with_low_keeps_its_epsilon_and_delta() -> None:
    each = TargetInteraction(charges=CHARGES, epsilon=EPSILON, delta=DELTA, q=wrapper_q).epsilon_each
    found = {}
    for factor in (1, 8):
        inside = factor * boundary_wrapped_epsilon(each)
        found[factor] = max(
            whole_delta(
                wrapped(or_low(votes, threshold, inside)),
                wrapped(or_low(moved, threshold, inside)),
                [False, False, False, True],
                calls=CALLS,
                charges=CHARGES,
                epsilon=EPSILON,
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


def test_a_labelling_by_a_students_predictions_keeps_its_epsilon_and_delta() -> None:
    each = TargetInteraction(charges=CHARGES, epsilon=EPSILON, delta=DELTA).epsilon_each
    found = {}
    for factor in (1, 4):
        found[factor] = max(
            whole_delta(
                *(normed(exponential_weights(v, epsilon=factor * each)) for v in votes),
                [label != predicted for label in range(2)],
                calls=4 * CALLS,
                charges=CHARGES,
                epsilon=EPSILON,
            )
            for votes in (([40, 40], [41, 39]), ([80, 0], [79, 1]), ([79, 1], [80, 0]))
            for predicted in range(2)
        )
    assert found[1] <= DELTA
    assert found[4] > DELTA


@pytest.mark.long(*MECHANISMS)
def test_a_students_predictions_afford_calls_of_a_larger_epsilon_than_the_boundary_does() -> None:
    """Two calls a hit in place of 14/3 in units of the mechanism's own epsilon."""
    wrapper = target_charging(epsilon=0.04, charges=100, delta=1e-6, q=wrapper_q(0.04))
    student = target_charging(epsilon=0.03, charges=100, delta=1e-6, q=not_prior_q(0.03))
    assert boundary_wrapped_epsilon(0.04) == pytest.approx(0.03, rel=0.02)
    assert student.epsilon < 0.65 * wrapper.epsilon


# Input -------------------------------------------------------------------------------------------------


@for_each(
    ("wrong", "message"),
    [
        ({"votes": []}, "scores are integers"),
        ({"votes": [0.5, 1.0]}, "scores are integers"),
        ({"threshold": 1.5}, "whole number of votes"),
        ({"threshold": math.nan}, "whole number of votes"),
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.inf}, "epsilon is finite"),
    ],
)
def test_a_wrong_call_is_refused(wrong: dict[str, object], message: str) -> None:
    given = {"votes": [1, 2], "threshold": 1, "epsilon": 1.0} | wrong
    with pytest.raises(InputError, match=message):
        exponential_weights_or_low(given.pop("votes"), **given)  # type: ignore[arg-type]


def test_numpy_votes_are_votes() -> None:
    votes = np.array([3, 1], dtype=np.int64)
    assert exponential_weights_or_low(votes, threshold=np.int64(2), epsilon=1.0) == (
        exponential_weights_or_low([3, 1], threshold=2, epsilon=1.0)
    )
