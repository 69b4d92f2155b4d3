"""The boundary wrapper's exact law, its privacy on all neighbours of a grid, and the worth of its target."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.target_charging import (
    boundary_epsilon,
    boundary_q,
    differing_runs_q,
)
from reusable_holdout.mechanisms.targets import boundary as module
from reusable_holdout.mechanisms.targets.boundary import (
    boundary_wrapper,
    boundary_wrapper_black_box,
    exponential_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reusable_holdout.mechanisms.samplers.random_words import RandomWords

Law = list[Fraction]
RATIOS = [Fraction(101, 100), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(4)]  # exp(e)


class Coins:
    """Stands in for RandomWords: coins fall as scripted, and heads (if they can) beyond the script."""

    def __init__(self, script: Sequence[int]) -> None:
        self.script = script
        self.fallen: list[int] = []
        self.probability = Fraction(1)
        self.other_paths: list[list[int]] = []

    def share(self, numerator: int, denominator: int) -> bool:
        chance = Fraction(numerator, denominator)
        return bool(self._choose([1 - chance, chance], first=1))

    def below(self, count: int) -> int:
        return self._choose([Fraction(1, count)] * count, first=0)

    def _choose(self, chances: list[Fraction], *, first: int) -> int:
        place = len(self.fallen)
        if place < len(self.script):
            chosen = self.script[place]
        else:
            possible = [side for side, chance in enumerate(chances) if chance]
            chosen = first if first in possible else possible[0]
            self.other_paths += [[*self.fallen, side] for side in possible if side != chosen]
        self.fallen.append(chosen)
        self.probability *= chances[chosen]
        return chosen


def exact_law(run: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> dict[object, Fraction]:
    """Walk every path of a mechanism's coins and add up their probabilities."""
    law: dict[object, Fraction] = {}
    paths: list[list[int]] = [[]]
    while paths:
        coins = Coins(paths.pop())
        monkeypatch.setattr(module, "RandomWords", lambda seed, coins=coins: coins)
        outcome = run()
        law[outcome] = law.get(outcome, Fraction(0)) + coins.probability
        paths += coins.other_paths
    return law


def wrapped(law: Law) -> Law:
    """Algorithm 4's formula; the boundary comes last."""
    pi = min(Fraction(1, 2), 1 - max(law))
    return [*(p / (1 + pi) for p in law), pi / (1 + pi)]


def laws(outcomes: int) -> Iterator[Law]:
    """Distributions on a coarse simplex, and beside each one with some rare outcomes."""
    for counts in itertools.product(range(1, 8), repeat=outcomes):
        total = sum(counts)
        if math.gcd(*counts) == 1 and total <= 7:
            yield [Fraction(c, total) for c in counts]
            for rare in range(1, outcomes):
                weights = [Fraction(c, 10**6) if i < rare else Fraction(c) for i, c in enumerate(counts)]
                yield [w / sum(weights) for w in weights]


def neighbours(law: Law, ratio: Fraction) -> Iterator[Law]:
    """Laws as far as a private algorithm may move: all outcomes but one at an extreme, one makes the sum 1."""
    for free in range(len(law)):
        for moves in itertools.product((ratio, 1 / ratio, Fraction(1)), repeat=len(law) - 1):
            factors = [*moves[:free], Fraction(0), *moves[free:]]
            other = [p * factor for p, factor in zip(law, factors, strict=True)]
            other[free] = 1 - sum(other)
            if law[free] / ratio <= other[free] <= law[free] * ratio:
                yield other


def pairs(outcomes: int, ratio: Fraction) -> Iterator[tuple[Law, Law]]:
    for law in laws(outcomes):
        for other in neighbours(law, ratio):
            yield law, other


def loss(law: Law, other: Law) -> float:
    return max(abs(math.log(p / q)) for p, q in zip(law, other, strict=True))


def largest_q(law: Law, other: Law, target: Sequence[int], *, epsilon: float) -> float:
    """Largest q for which the target is a q-target, as a linear program over the common mass c.

    Maximise q with ``c_r >= 0``, ``(exp(e) - 1) c_r <= exp(e) min_r - max_r`` and ``P_b(T) - c(T) >= q (1 - sum c)``.
    Mass in T only lowers q and mass elsewhere only raises it, so the solution lies on the bounds.
    """
    grown = math.exp(epsilon)
    common = 0.0
    for place, (p, q) in enumerate(zip(law, other, strict=True)):
        bound = (grown * float(min(p, q)) - float(max(p, q))) / (grown - 1)
        assert bound >= -1e-9, "not private at this epsilon"
        common += 0.0 if place in target else max(0.0, bound)
    hit = min(sum(law[place] for place in target), sum(other[place] for place in target))
    return float(hit) / (1 - common)


@pytest.mark.parametrize(
    "weights",
    [[1], [1, 1], [0, 5, 0], [1, 2, 4], [3, 1, 1, 1, 1], [Fraction(1, 3), Fraction(2, 3)], [2**200, 1, 7]],
)
def test_the_law_is_that_of_algorithm_4(
    weights: list[int | Fraction], monkeypatch: pytest.MonkeyPatch
) -> None:
    law = exact_law(lambda: boundary_wrapper(weights), monkeypatch)
    expected = wrapped([Fraction(w) / sum(Fraction(v) for v in weights) for w in weights])
    *outcomes, boundary = expected
    assert law.get(None, 0) == boundary
    assert [law.get(place, 0) for place in range(len(weights))] == outcomes


def test_a_dominant_outcome_is_reported_with_probability_p_over_2_minus_p(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = exact_law(lambda: boundary_wrapper([90, 6, 4]), monkeypatch)
    p = Fraction(9, 10)
    assert law[0] == p / (2 - p)


def test_the_boundary_has_at_most_probability_one_third(monkeypatch: pytest.MonkeyPatch) -> None:
    law = exact_law(lambda: boundary_wrapper([1] * 9), monkeypatch)
    assert law[None] == Fraction(1, 3)


@pytest.mark.long(*MECHANISMS)
@for_each("ratio", RATIOS)
@for_each("outcomes", [2, 3, 4])
def test_the_wrapper_loses_no_more_than_boundary_epsilon(outcomes: int, ratio: Fraction) -> None:
    epsilon = math.log(ratio)
    worst = max(loss(wrapped(law), wrapped(other)) for law, other in pairs(outcomes, ratio))
    assert worst <= boundary_epsilon(epsilon) <= 4 * epsilon / 3 + 1e-12
    assert worst >= epsilon


@for_each("ratio", RATIOS)
def test_boundary_epsilon_is_reached_with_a_rare_third_outcome(ratio: Fraction) -> None:
    rare = Fraction(1, 10**9)
    pi = 1 / (2 * ratio)
    law = [1 - pi, rare, pi - rare]
    other = [Fraction(0), rare / ratio, ratio * (pi - rare)]
    other[0] = 1 - sum(other)
    assert loss(law, other) == pytest.approx(math.log(ratio), rel=1e-12)
    assert loss(wrapped(law), wrapped(other)) == pytest.approx(boundary_epsilon(math.log(ratio)), rel=1e-6)


@pytest.mark.long(*MECHANISMS)
@for_each("ratio", RATIOS)
@for_each("outcomes", [2, 3, 4])
@for_each("extra", [1.0, 1.2])
def test_the_boundary_is_a_q_target(outcomes: int, ratio: Fraction, extra: float) -> None:
    epsilon = math.log(ratio)
    call = boundary_epsilon(epsilon) * extra
    found = min(
        largest_q(wrapped(law), wrapped(other), [outcomes], epsilon=call)
        for law, other in pairs(outcomes, ratio)
    )
    assert found >= boundary_q(epsilon, call)


@for_each("ratio", RATIOS)
def test_the_least_q_is_within_a_tenth_of_the_lemma(ratio: Fraction) -> None:
    """As pi goes to 0 it tends to ``2(E-1) / ((E-1)(1+x) + 3(E+1)(x-1))``, ``E = exp(t)``, ``x = exp(e)``."""
    epsilon = math.log(ratio)
    call = boundary_epsilon(epsilon)
    pi = Fraction(1, 10**9)
    law, other = wrapped([1 - pi, pi]), wrapped([1 - ratio * pi, ratio * pi])
    x, grown = float(ratio), math.exp(call)
    limit = 2 * (grown - 1) / ((grown - 1) * (1 + x) + 3 * (grown + 1) * (x - 1))
    assert largest_q(law, other, [2], epsilon=call) == pytest.approx(limit, rel=1e-5)
    assert boundary_q(epsilon) <= limit <= 1.1 * boundary_q(epsilon)


def test_the_black_box_publishes_two_independent_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    law = [Fraction(1, 6), Fraction(2, 6), Fraction(3, 6)]

    def algorithm(words: RandomWords) -> int:
        return [0, 1, 1, 2, 2, 2][words.below(6)]

    found = exact_law(lambda: boundary_wrapper_black_box(algorithm), monkeypatch)
    assert found == {(i, j): law[i] * law[j] for i in range(3) for j in range(3)}


@pytest.mark.parametrize(("first", "second", "boundary"), [(1, 1, False), (1, 2, True)])
def test_the_black_box_calls_different_outcomes_the_boundary(first: int, second: int, boundary: bool) -> None:
    answers = iter([first, second])
    runs = boundary_wrapper_black_box(lambda words: next(answers))
    assert (runs.first, runs.second, runs.boundary) == (first, second, boundary)


def test_the_two_runs_of_a_seeded_black_box_differ() -> None:
    assert boundary_wrapper_black_box(lambda words: words.below(2**60), seed=1).boundary
    once, again = (boundary_wrapper_black_box(lambda words: words.below(2**60), seed=1) for _ in range(2))
    assert once == again


@pytest.mark.long(*MECHANISMS)
@for_each("ratio", RATIOS)
@for_each("outcomes", [2, 3])
def test_differing_runs_are_a_q_target(outcomes: int, ratio: Fraction) -> None:
    epsilon = math.log(ratio)
    differ = [i * outcomes + j for i in range(outcomes) for j in range(outcomes) if i != j]
    found = min(
        largest_q(
            [p * q for p in law for q in law],
            [p * q for p in other for q in other],
            differ,
            epsilon=2 * epsilon,
        )
        for law, other in pairs(outcomes, ratio)
    )
    assert found >= differing_runs_q(epsilon)


@for_each("epsilon", [0.001, 0.1, 1.0, 3.0])
def test_exponential_weights_are_private_on_all_neighbouring_votes(epsilon: float) -> None:
    """Exact: log-ratios of integer weights, for one vote moved."""
    for votes in itertools.product(range(5), repeat=3):
        for taken, given in itertools.permutations(range(3), 2):
            if votes[taken]:
                moved = list(votes)
                moved[taken] -= 1
                moved[given] += 1
                law, other = (
                    [Fraction(w, sum(weights)) for w in weights]
                    for weights in (exponential_weights(v, epsilon=epsilon) for v in (votes, moved))
                )
                assert loss(law, other) <= epsilon * (1 + 1e-12)


def test_exponential_weights_are_the_exponential_mechanism() -> None:
    weights = exponential_weights([10, 7, 2], epsilon=0.4, sensitivity=2)
    assert [w / weights[0] for w in weights] == pytest.approx([1, math.exp(-0.3), math.exp(-0.8)], rel=1e-12)


def test_the_ratio_of_exponential_weights_is_rounded_towards_privacy() -> None:
    low, high = exponential_weights([0, 1], epsilon=0.25)
    assert Fraction(low, high) > Fraction(math.exp(-0.125)) - Fraction(1, 2**53)
    assert Fraction(low, high) * 2**64 % 1 == 0
    assert math.log(Fraction(high, low)) <= 0.125


def test_a_wrapped_exponential_mechanism_of_many_votes_runs() -> None:
    votes = np.array([240, 3, 2, 0, 0, 1, 0, 0, 3, 1])
    chosen = {boundary_wrapper(exponential_weights(votes.tolist(), epsilon=0.5), seed=s) for s in range(50)}
    assert chosen == {0}  # any other has probability exp(-59)


@for_each(
    ("weights", "message"),
    [
        ([], "at least one weight"),
        ([0.5, 0.5], "a rounded probability is not private"),
        ([1, math.nan], "integers or Fractions"),
        ([1, -1], "at least 0"),
        ([0, 0], "not all 0"),
    ],
)
def test_bad_weights_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        boundary_wrapper(weights)  # type: ignore[arg-type]


@for_each(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is finite"),
        ({"epsilon": math.nan}, "epsilon is finite"),
        ({"epsilon": math.inf}, "epsilon is finite"),
        ({"epsilon": 1.0, "sensitivity": 0}, "sensitivity is at least 1"),
    ],
)
def test_bad_privacy_parameters_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        exponential_weights([1, 2], **arguments)  # type: ignore[arg-type]


@for_each("scores", [[], [0.5, 1.0], [math.nan]])
def test_bad_scores_are_refused(scores: list[float]) -> None:
    with pytest.raises(InputError, match="scores are integers"):
        exponential_weights(scores, epsilon=1.0)  # type: ignore[arg-type]
