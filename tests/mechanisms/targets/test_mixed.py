"""Calls of different epsilons and q (Remark B.6): a supermartingale, the exact delta of the whole, what is refused."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from scipy import stats

from reusable_holdout.errors import BudgetError, HandleError, InputError
from reusable_holdout.mechanisms import MixedInteraction
from reusable_holdout.mechanisms.accounting import (
    mixed_charging_epsilon,
    mixed_charging_weight,
    not_prior_q,
    target_charging,
)
from reusable_holdout.mechanisms.accounting.mixed_charging import _pace

if TYPE_CHECKING:
    from collections.abc import Callable

State = tuple[int, int, int, int]  # hits and misses of the first kind of call, and of the second


@given(st.floats(1e-3, 3), st.floats(0.01, 1), st.floats(1e-3, 1), st.floats(0, 1), st.floats(1e-4, 20))
def test_no_call_makes_the_supermartingale_grow(
    largest: float, smallest: float, part: float, more: float, t: float
) -> None:
    """exp(l e) (1 - q + q exp(-t e / q)) is at most 1 for every call that is admitted."""
    t, epsilon, q = t * smallest / largest, largest * part, smallest + (1 - smallest) * more
    with mpmath.workdps(40):
        grown = mpmath.exp(mpmath.mpf(_pace(t, largest, smallest)) * epsilon) * (
            1 - mpmath.mpf(q) + mpmath.mpf(q) * mpmath.exp(-mpmath.mpf(t) * epsilon / q)
        )
        assert grown <= 1 + 1e-12 + 1e-6 * math.exp(
            t * largest / smallest - 20
        )  # digits lost to a log of nearly 0


def exact_delta(
    interaction: MixedInteraction,
    kinds: list[tuple[float, float, float]],
    choose: Callable[[State], int],
    *,
    calls: int,
    epsilon: float,
) -> float:
    """Delta of an adaptive sequence of calls: (epsilon, chance of a hit here, and there) of two kinds, chosen by state.

    Every transcript with the same counts has the same likelihood ratio, so that states suffice. Calls that the
    interaction would not admit are not made; where the wished one is too heavy, the other is tried.
    """
    weights = [Fraction(each) / Fraction(not_prior_q(each)) for each, _, _ in kinds]
    states: dict[State, list[float]] = {(0, 0, 0, 0): [1.0, 1.0]}
    ended: dict[State, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for _ in range(calls):
        following: dict[State, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for state, mass in states.items():
            spent = state[0] * weights[0] + state[2] * weights[1]
            wish = choose(state)
            kind = next(
                (k for k in (wish, 1 - wish) if spent + weights[k] <= Fraction(interaction.weight)), None
            )
            if kind is None:
                for side in (0, 1):
                    ended[state][side] += mass[side]
                continue
            for missed in (0, 1):
                after = list(state)
                after[2 * kind + missed] += 1
                for side in (0, 1):
                    chance = kinds[kind][1 + side]
                    following[tuple(after)][side] += mass[side] * (1 - chance if missed else chance)  # type: ignore[index]
        states = following
    for state, mass in states.items():
        for side in (0, 1):
            ended[state][side] += mass[side]
    assert sum(mass[0] for mass in ended.values()) == pytest.approx(1.0, abs=1e-9)
    return sum(max(0.0, mass[0] - math.exp(epsilon) * mass[1]) for mass in ended.values())


CHOICES: dict[str, Callable[[State], int]] = {
    "the heavy kind only": lambda state: 0,
    "the light kind only": lambda state: 1,
    "by turns": lambda state: sum(state) % 2,
    "light after a hit": lambda state: int(state[0] > state[2]),
    "heavy once the data look likelier": lambda state: int(3 * (state[0] + state[2]) < state[1] + state[3]),
}


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta"), [(8.0, 5e-2), (12.0, 1e-3)])
@for_each(("heavy", "light"), [(0.4, 0.1), (0.5, 0.02)])
@for_each("name", CHOICES)
def test_the_whole_keeps_its_delta_whatever_is_chosen(
    name: str, heavy: float, light: float, epsilon: float, delta: float
) -> None:
    """Randomized response, whose NotPrior target has the least q, and calls that hit rarely."""
    interaction = MixedInteraction(epsilon=epsilon, delta=delta, largest_epsilon=heavy)
    worst = 0.0
    for least in (1.0, 0.2):
        pairs = []
        for each in (heavy, light):
            low = not_prior_q(each) * least
            pairs.append((each, low * math.exp(each), low))
        for flipped in (False, True):
            kinds = [(each, b, a) if flipped else (each, a, b) for each, a, b in pairs]
            worst = max(worst, exact_delta(interaction, kinds, CHOICES[name], calls=36, epsilon=epsilon))
    assert 0 <= worst <= delta


def test_the_same_audit_rejects_eight_times_the_weight() -> None:
    epsilon, delta, each = 3.0, 0.3, 0.2
    interaction = MixedInteraction(epsilon=epsilon, delta=delta, largest_epsilon=each)
    low = not_prior_q(each)
    kinds = [(each, low * math.exp(each), low)] * 2
    assert exact_delta(interaction, kinds, lambda _: 0, calls=300, epsilon=epsilon) <= delta
    interaction._weight *= 8
    assert exact_delta(interaction, kinds, lambda _: 0, calls=300, epsilon=epsilon) > delta


@for_each("charges", [1, 10, 100])
@for_each("each", [0.005, 0.02])
def test_calls_that_are_alike_cost_no_more_than_thrice_what_the_best_adversary_attains(
    charges: int, each: float
) -> None:
    q = not_prior_q(each)
    mixed = mixed_charging_epsilon(weight=charges * each / q, delta=1e-6, largest_epsilon=each, smallest_q=q)
    exact = target_charging(epsilon=each, charges=charges, delta=1e-6, q=q).epsilon
    assert exact <= mixed <= 3 * exact


@for_each("charges", [1, 10, 100])
def test_the_calls_that_read_the_data_are_bounded_as_the_binomial_tail_allows(charges: int) -> None:
    """Alike calls: so many reads with no more than these hits have a probability of at most delta."""
    each, q, delta = 1e-9, 0.4, 1e-6  # so small that basic composition is never the better
    t_best = min(
        (math.log(1 / delta) + t * charges * each / q) / _pace(t, each, q)
        for t in (10**k * q / each for k in [x / 50 for x in range(-150, 50)])
    )
    reads = math.floor(t_best / each) + 1
    assert stats.binom.cdf(charges, reads, q) <= delta


@given(st.floats(0.1, 20), st.floats(1e-9, 0.1), st.floats(1e-4, 0.05), st.floats(0.1, 1))
def test_the_weight_returns(epsilon: float, delta: float, largest: float, smallest: float) -> None:
    wish: dict[str, float] = {"delta": delta, "largest_epsilon": largest, "smallest_q": smallest}
    weight = mixed_charging_weight(epsilon=epsilon, **wish)
    if weight > largest / smallest:
        assert mixed_charging_epsilon(weight=weight, **wish) == pytest.approx(epsilon, rel=1e-5)
        assert mixed_charging_epsilon(weight=weight * 1.01, **wish) > epsilon


def mixed(**wish: float) -> MixedInteraction:
    return MixedInteraction(**({"epsilon": 12.0, "delta": 1e-2, "largest_epsilon": 0.4} | wish))  # type: ignore[arg-type]


def call(interaction: MixedInteraction, each: float, *, hit: bool = True, **wish: float) -> Any:
    return interaction.run(
        lambda: "outcome",
        hit=lambda _: hit,
        **({"epsilon": each, "q": not_prior_q(each)} | wish),  # type: ignore[arg-type]
    )


def test_hits_are_charged_by_their_weight_and_a_lighter_call_goes_on() -> None:
    interaction, spent = mixed(), Fraction(0)
    heavy, light = (Fraction(each) / Fraction(not_prior_q(each)) for each in (0.4, 0.01))
    assert call(interaction, 0.4, hit=False) == "outcome"
    assert interaction.weight_left == interaction.weight
    while spent + heavy <= Fraction(interaction.weight):
        call(interaction, 0.4)
        spent += heavy
    with pytest.raises(BudgetError, match="nothing was run"):
        call(interaction, 0.4)
    assert Fraction(interaction.weight) - spent == pytest.approx(interaction.weight_left)
    if spent + light <= Fraction(interaction.weight):
        assert call(interaction, 0.01) == "outcome"


def test_deltas_add_up_and_are_spent_without_a_hit() -> None:
    interaction = mixed(delta=0.01, calls_delta=0.005)
    assert interaction.weight < mixed(delta=0.01).weight
    call(interaction, 0.1, hit=False, delta=0.004)
    with pytest.raises(BudgetError, match="calls_delta"):
        call(interaction, 0.1, hit=False, delta=0.002)
    call(interaction, 0.1, hit=False, delta=0.0005)


def test_an_error_is_a_hit_and_calls_are_not_nested() -> None:
    interaction = mixed()

    def inner() -> None:
        call(interaction, 0.1)

    with pytest.raises(BudgetError, match="one call at a time"):
        interaction.run(inner, hit=lambda _: False, epsilon=0.1, q=not_prior_q(0.1))
    assert interaction.weight - interaction.weight_left == pytest.approx(0.1 / not_prior_q(0.1))


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.5}, {"epsilon": 0.0}, {"q": 0.1}, {"q": 1.1}, {"delta": -0.1}, {"delta": 1.0}]
)
def test_a_call_out_of_range_is_refused_and_free(wrong: dict[str, float]) -> None:
    interaction = mixed()
    with pytest.raises(InputError, match="nothing was run"):
        call(interaction, 0.1, **wrong)
    assert interaction.weight_left == interaction.weight


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"largest_epsilon": 0.0},
        {"largest_epsilon": 11.9},
        {"smallest_q": 0.0},
        {"smallest_q": 1.5},
        {"calls_delta": 0.01},
        {"calls_delta": -0.1},
    ],
)
def test_an_interaction_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        mixed(**wrong)


@pytest.mark.parametrize("weight", [0.0, math.inf])
def test_the_epsilon_of_an_impossible_weight_is_refused(weight: float) -> None:
    with pytest.raises(InputError, match="weight"):
        mixed_charging_epsilon(weight=weight, delta=0.1, largest_epsilon=0.1, smallest_q=0.4)


def test_an_interaction_is_not_copied() -> None:
    with pytest.raises(HandleError):
        copy.copy(mixed())
    assert "weight_left" in repr(mixed())
