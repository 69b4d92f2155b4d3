"""What the proof of target charging rests on (Cohen and Lyu 2023, appendices A and B), on finite laws in full."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from mechanisms.accounting.target_decomposition import largest_q
from scipy import optimize, stats

from reusable_holdout.mechanisms.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_composition,
    target_charging,
)

LAWS = [
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ([0.7, 0.1, 0.2], [0.5, 0.4, 0.1]),
    ([0.9, 0.1, 0.0], [0.6, 0.1, 0.3]),
    ([0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]),
]


def delta_at(first: list[float], second: list[float], epsilon: float) -> float:
    """Least delta at which two laws are (epsilon, delta)-indistinguishable."""
    p, q = np.array(first), np.array(second)
    return max(np.maximum(0, a - math.exp(epsilon) * b).sum() for a, b in ((p, q), (q, p)))


def decomposable(first: list[float], second: list[float], epsilon: float, delta: float) -> bool:
    """Whether each law has a part of mass ``1 - delta``, and these are epsilon-indistinguishable: a linear program."""
    count, growth = len(first), math.exp(epsilon)
    identity = np.eye(count)
    apart = np.vstack([np.hstack([identity, -growth * identity]), np.hstack([-growth * identity, identity])])
    sums = np.kron(np.eye(2), np.ones(count))
    solved = optimize.linprog(
        np.zeros(2 * count),
        A_ub=apart,
        b_ub=np.zeros(2 * count),
        A_eq=sums,
        b_eq=[1 - delta] * 2,
        bounds=[(0, bound) for bound in (*first, *second)],
        method="highs",
    )
    return bool(solved.status == 0)


@for_each("laws", LAWS)
@for_each("epsilon", [0.0, 0.2, 0.7])
def test_indistinguishable_laws_are_mixtures_with_a_pure_part_and_no_others_are(
    laws: tuple[list[float], list[float]], epsilon: float
) -> None:
    """Lemma A.1 and Corollary A.3, in both directions."""
    delta = delta_at(*laws, epsilon)
    assert decomposable(*laws, epsilon, delta + 1e-9)
    if delta > 1e-6:
        assert not decomposable(*laws, epsilon, delta * (1 - 1e-3))


@for_each("epsilon", [0.1, 1.0])
@for_each("delta", [0.01, 0.2])
def test_a_not_prior_target_of_an_approximately_private_algorithm_has_the_same_q(
    epsilon: float, delta: float
) -> None:
    """Lemma C.1: of what is left without the impure part, whichever outcome is the prior."""
    for pure in ((0.3, 0.3 * math.exp(-epsilon)), (0.02, 0.02 * math.exp(epsilon))):
        first, second = ([1 - hit, hit] for hit in pure)
        whole = [[(1 - delta) * p for p in law] for law in (first, second)]
        betrays = [[*whole[0], delta, 0.0], [*whole[1], 0.0, delta]]
        assert delta_at(*betrays, epsilon) <= delta + 1e-12
        for prior in range(2):
            target = [place != prior for place in range(2)]
            assert largest_q(first, second, target, epsilon=epsilon) >= not_prior_q(epsilon) * (1 - 1e-9)


@for_each("laws", LAWS[:2] + LAWS[3:])
def test_all_outcomes_are_a_target_with_q_1_at_the_epsilon_of_the_laws(
    laws: tuple[list[float], list[float]],
) -> None:
    """Lemma B.3: no more is common than what makes the rest epsilon-indistinguishable, and all of it hits."""
    epsilon = float(np.abs(np.log(laws[0]) - np.log(laws[1])).max())
    assert largest_q(*laws, [True] * len(laws[0]), epsilon=epsilon) == pytest.approx(1)


# Algorithm 7 -------------------------------------------------------------------------------------------


def randomized_response(epsilon: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """A private test with target "yes": its common mass, all on "no", and how often the rest says yes on either side.

    The chance of yes is 1/10 and ``growth`` times that; ``P_b = c no + (1 - c) B_b``.
    """
    growth, rare = epsilon, Fraction(1, 10)
    often = growth * rare
    common = (growth * (1 - often) - (1 - rare)) / (
        growth - 1
    )  # as much of "no" as stays epsilon-indistinguishable
    return common, rare / (1 - common), often / (1 - common)


def transcripts(hit: Fraction, calls: int, charges: int) -> dict[tuple[bool, ...], Fraction]:
    """Law of Algorithm 1: tests until they have said yes so often, or there are no more."""
    law: dict[tuple[bool, ...], Fraction] = {}
    open_ = {(): Fraction(1)}
    for _ in range(calls):
        following: dict[tuple[bool, ...], Fraction] = {}
        for told, chance in open_.items():
            for yes, p in ((True, hit), (False, 1 - hit)):
                grown = (*told, yes)
                where = law if sum(grown) == charges else following
                where[grown] = where.get(grown, Fraction(0)) + chance * p
        open_ = following
    return law | open_


@for_each("growth", [Fraction(11, 10), Fraction(2)])
@for_each("charges", [1, 2])
def test_the_simulator_tells_what_the_interaction_does_and_seldom_asks_the_holder_of_the_data(
    growth: Fraction, charges: int
) -> None:
    """Lemma A.5 and Algorithm 7: coin by coin, the holder is asked only where the laws differ."""
    common, *hits = randomized_response(growth)
    assert min(hits) >= not_prior_q(math.log(growth))
    for of_rest in hits:
        law: dict[tuple[bool, ...], Fraction] = {}
        asked: dict[int, Fraction] = {}
        open_ = {((), 0): Fraction(1)}
        for _ in range(5):
            following: dict[tuple[tuple[bool, ...], int], Fraction] = {}
            for (told, calls), chance in open_.items():
                for yes, more, p in (
                    (False, 0, common),
                    (True, 1, (1 - common) * of_rest),
                    (False, 1, (1 - common) * (1 - of_rest)),
                ):
                    grown, counted = (*told, yes), calls + more
                    if sum(grown) == charges:
                        law[grown] = law.get(grown, Fraction(0)) + chance * p
                        asked[counted] = asked.get(counted, Fraction(0)) + chance * p
                    else:
                        key = (grown, counted)
                        following[key] = following.get(key, Fraction(0)) + chance * p
            open_ = following
        for (told, calls), chance in open_.items():
            law[told] = law.get(told, Fraction(0)) + chance
            asked[calls] = asked.get(calls, Fraction(0)) + chance
        assert law == transcripts((1 - common) * of_rest, 5, charges)
        for most in range(6):
            beyond = float(sum(chance for calls, chance in asked.items() if calls > most))
            assert beyond <= stats.binom.cdf(charges - 1, most, not_prior_q(math.log(growth))) + 1e-12


# What is not possible, and what is ---------------------------------------------------------------------


def test_purely_private_tests_cost_all_their_epsilons_however_few_say_yes() -> None:
    """Section 1: of k tests none of which says yes the loss is k e, so only a delta lets them be free."""
    epsilon, calls = 0.3, 25
    no = [math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))]
    assert calls * math.log(no[0] / no[1]) == pytest.approx(calls * epsilon)


@for_each("epsilon", [0.1, 0.3])
@for_each("delta", [1e-3, 1e-6, 1e-12, 1e-24])
def test_one_hit_costs_about_the_logarithm_of_one_over_delta(epsilon: float, delta: float) -> None:
    """Section 1: of the order of e log(1/delta), however many tests there are; the best adversary's, so no less."""
    bound = target_charging(
        epsilon=epsilon, charges=1, delta=delta, q=not_prior_q(epsilon), mean=not_prior_mean(epsilon)
    )
    assert 0.9 < bound.epsilon / (epsilon * math.log(1 / delta)) < 1.8


def test_each_hit_is_two_calls_once_there_are_many() -> None:
    """Lemma 2.2 and Remark B.5: what is lost to the calls' uncertain number falls with the root of the hits."""
    epsilon, delta = 1e-3, 1e-6
    overhead = []
    for charges in (10, 100, 1000, 10_000):
        bound = target_charging(
            epsilon=epsilon,
            charges=charges,
            delta=delta,
            q=not_prior_q(epsilon),
            mean=not_prior_mean(epsilon),
        )
        overhead.append(
            bound.epsilon / optimal_composition(epsilon=epsilon, count=2 * charges, delta=delta) - 1
        )
        log = math.log(1 / delta) / charges
        assert overhead[-1] < log + math.sqrt(
            log**2 + 2 * log
        )  # alpha, the document's share of further calls
    assert overhead == sorted(overhead, reverse=True)
    assert [more / fewer for fewer, more in itertools.pairwise(overhead)] == pytest.approx(
        [10**-0.5] * 3, rel=0.15
    )
    assert overhead[-1] < 0.02
