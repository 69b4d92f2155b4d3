"""The boundary wrapper's exact law, its privacy on all neighbours of a grid, and the q of its target."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_q, neighbours, privacy_loss, wrapped

from reusable_holdout.mechanisms import boundary_wrapper, exponential_weights
from reusable_holdout.mechanisms.accounting import boundary_epsilon, boundary_q
from reusable_holdout.mechanisms.targets import boundary as module

RATIOS = [Fraction(101, 100), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(4)]  # exp(e)


class Coins:
    """Coins in place of RandomWords: they fall as scripted, and heads (if they can) beyond the script."""

    def __init__(self, script):
        self.script, self.fallen, self.probability, self.other_paths = script, [], Fraction(1), []

    def share(self, numerator, denominator):
        chances = [1 - Fraction(numerator, denominator), Fraction(numerator, denominator)]
        place = len(self.fallen)
        if place < len(self.script):
            chosen = self.script[place]
        else:
            possible = [side for side, chance in enumerate(chances) if chance]
            chosen = possible[-1]
            self.other_paths += [[*self.fallen, side] for side in possible if side != chosen]
        self.fallen.append(chosen)
        self.probability *= chances[chosen]
        return bool(chosen)


def exact_law(run, monkeypatch):
    """Walk every path of a mechanism's coins and add up their probabilities."""
    law, paths = {}, [[]]
    while paths:
        coins = Coins(paths.pop())
        monkeypatch.setattr(module, "RandomWords", lambda seed, coins=coins: coins)
        outcome = run()
        law[outcome] = law.get(outcome, Fraction(0)) + coins.probability
        paths += coins.other_paths
    return law


def laws(outcomes):
    """Give distributions on a coarse simplex, and beside each one with some rare outcomes."""
    for counts in itertools.product(range(1, 8), repeat=outcomes):
        total = sum(counts)
        if math.gcd(*counts) == 1 and total <= 7:
            yield [Fraction(c, total) for c in counts]
            for rare in range(1, outcomes):
                weights = [Fraction(c, 10**6) if i < rare else Fraction(c) for i, c in enumerate(counts)]
                yield [w / sum(weights) for w in weights]


def pairs(outcomes, ratio):
    for law in laws(outcomes):
        for other in neighbours(law, ratio):
            yield law, other


@for_each(
    "weights",
    [[1], [1, 1], [0, 5, 0], [1, 2, 4], [3, 1, 1, 1, 1], [Fraction(1, 3), Fraction(2, 3)], [2**200, 1, 7]],
)
def test_the_law_is_that_of_algorithm_4(weights, monkeypatch):
    law = exact_law(lambda: boundary_wrapper(weights), monkeypatch)
    *outcomes, boundary = wrapped([Fraction(w) / sum(Fraction(v) for v in weights) for w in weights])
    assert law.get(None, 0) == boundary <= Fraction(1, 3)
    assert [law.get(place, 0) for place in range(len(weights))] == outcomes


@pytest.mark.long(*MECHANISMS)
@for_each("ratio", RATIOS)
@for_each("outcomes", [2, 3, 4])
def test_the_wrapper_loses_no_more_than_boundary_epsilon_and_the_boundary_is_a_q_target(outcomes, ratio):
    epsilon, worst = math.log(ratio), 0.0
    call = boundary_epsilon(epsilon)
    target = [False] * outcomes + [True]
    for law, other in pairs(outcomes, ratio):
        p, r = ([float(chance) for chance in wrapped(each)] for each in (law, other))
        worst = max(worst, privacy_loss(p, r))
        for extra in (1.0, 1.2):
            least = largest_q(p, r, target, epsilon=extra * call)
            assert least >= boundary_q(epsilon, extra * call) * (1 - 1e-9)
    assert epsilon <= worst <= call + 1e-12 <= 4 * epsilon / 3 + 2e-12


@for_each("ratio", RATIOS)
def test_the_least_q_is_within_a_tenth_of_the_lemma(ratio):
    """As pi goes to 0 it tends to ``2(E-1) / ((E-1)(1+x) + 3(E+1)(x-1))``, ``E = exp(t)``, ``x = exp(e)``."""
    epsilon = math.log(ratio)
    call = boundary_epsilon(epsilon)
    pi = Fraction(1, 10**9)
    laws = wrapped([1 - pi, pi]), wrapped([1 - ratio * pi, ratio * pi])
    law, other = ([float(chance) for chance in each] for each in laws)
    x, grown = float(ratio), math.exp(call)
    limit = 2 * (grown - 1) / ((grown - 1) * (1 + x) + 3 * (grown + 1) * (x - 1))
    assert largest_q(law, other, [False, False, True], epsilon=call) == pytest.approx(limit, rel=1e-5)
    assert boundary_q(epsilon) <= limit <= 1.1 * boundary_q(epsilon)


@for_each("epsilon", [0.001, 0.1, 1.0, 3.0])
def test_exponential_weights_are_private_on_all_neighbouring_votes(epsilon):
    """Exact: log-ratios of integer weights, for one vote moved."""
    for votes in itertools.product(range(5), repeat=3):
        for taken, given in itertools.permutations(range(3), 2):
            if votes[taken]:
                moved = list(votes)
                moved[taken] -= 1
                moved[given] += 1
                law, other = (exponential_weights(v, epsilon=epsilon) for v in (votes, moved))
                ratios = [Fraction(p * sum(other), q * sum(law)) for p, q in zip(law, other, strict=True)]
                assert max(abs(math.log(ratio)) for ratio in ratios) <= epsilon * (1 + 1e-12)


def test_exponential_weights_are_the_exponential_mechanism():
    weights = exponential_weights([10, 7, 2], epsilon=0.4, sensitivity=2)
    assert [w / weights[0] for w in weights] == pytest.approx([1, math.exp(-0.3), math.exp(-0.8)], rel=1e-12)


@for_each("epsilon", [0.05, 0.25, 1.0, 3.0])
def test_the_ratio_of_weights_is_the_next_of_64_digits(epsilon):
    low, high = exponential_weights([0, 1], epsilon=epsilon)
    with mpmath.workdps(60):
        below = int(mpmath.floor(mpmath.exp(-mpmath.mpf(epsilon) / 2) * 2**64))
    assert Fraction(low, high) * 2**64 == below + 1
