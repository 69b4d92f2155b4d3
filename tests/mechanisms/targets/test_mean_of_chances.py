"""Interactions that know the mean chance of a hit: the best adversary attains their delta, and no call exceeds it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.charging_adversary import Call, calls_with_q, found_delta, not_prior_calls
from mechanisms.accounting.target_decomposition import largest_mean

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import TargetCharging, TargetInteraction
from reusable_holdout.mechanisms.accounting import not_prior_mean, not_prior_q

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = [TargetInteraction, TargetCharging]
BUDGETS = [(1.0, 1e-2, 1), (1.0, 1e-2, 10), (5.0, 1e-2, 3), (1.0, 1e-4, 3)]


def run_not_prior(calls: TargetInteraction, epsilon: float, told: str = "prior") -> None:
    q, mean = not_prior_q(epsilon), not_prior_mean(epsilon)
    calls.run(lambda: told, hit=lambda answer: answer != "prior", epsilon=epsilon, q=q, mean=mean)


def attained(each: float, epsilon: float, charges: int, calls: list[Call]) -> float:
    reach = max(90, math.ceil(8 / each))
    return found_delta(each=each, epsilon=epsilon, charges=charges, calls=calls, reach=reach)


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta", "charges"), BUDGETS)
def test_the_best_adversary_attains_the_delta_of_an_interaction_that_knows_the_mean(
    epsilon: float, delta: float, charges: int
) -> None:
    wish: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "charges": charges}
    exact, by_q = (TargetInteraction(**wish, mean=mean).epsilon_each for mean in (not_prior_mean, None))
    assert exact > by_q
    assert 0.9999 * delta < attained(exact, epsilon, charges, not_prior_calls(exact)) <= delta
    assert attained(by_q, epsilon, charges, not_prior_calls(by_q)) < 0.91 * delta
    assert TargetCharging(**wish, mean=not_prior_mean).epsilon_each == pytest.approx(exact, rel=1e-9)


@for_each(("epsilon", "delta", "charges"), BUDGETS[1:3])
def test_calls_of_which_only_q_is_known_would_exceed_that_delta_and_are_refused(
    epsilon: float, delta: float, charges: int
) -> None:
    calls = TargetInteraction(epsilon=epsilon, delta=delta, charges=charges, mean=not_prior_mean)
    each = calls.epsilon_each
    q = not_prior_q(each)
    assert attained(each, epsilon, charges, calls_with_q(each, q)) > delta
    with pytest.raises(InputError, match=r"a mean of at least 0\.5 here"):
        calls.run(lambda: 1 / 0, hit=bool, epsilon=each, q=q)
    with pytest.raises(InputError, match=r"a mean of at least 0\.5 here"):
        calls.twice(lambda: 1 / 0, epsilon=each / 2)
    assert calls.charges_left == charges
    run_not_prior(calls, each, "other")
    assert calls.charges_left == charges - 1


def test_without_a_mean_a_call_may_state_one_and_is_admitted_by_its_q() -> None:
    calls = TargetInteraction(charges=2, epsilon=1.0, delta=1e-2)
    run_not_prior(calls, calls.epsilon_each)
    with pytest.raises(InputError, match="a q of at least"):
        calls.run(lambda: 1 / 0, hit=bool, epsilon=calls.epsilon_each, q=0.4, mean=0.6)
    assert calls.hits == (0,)


@for_each(("q", "mean"), [(0.5, 0.49), (0.5, 1.01), (0.5, math.nan), (0.0, 0.5), (math.nan, 0.5)])
def test_a_mean_is_at_least_q_and_at_most_one(q: float, mean: float) -> None:
    calls = TargetInteraction(charges=1, epsilon=1.0, delta=1e-2)
    with pytest.raises(InputError, match="its mean between q and 1"):
        calls.run(lambda: 1 / 0, hit=bool, epsilon=calls.epsilon_each, q=q, mean=mean)
    assert calls.hits == (0,)


@for_each("kind", KINDS)
def test_releases_and_their_revisions_have_the_mean(kind: type[TargetInteraction]) -> None:
    calls = kind(charges=2, epsilon=1.0, delta=1e-2, mean=not_prior_mean)
    each = calls.epsilon_each
    assert calls.release_if(lambda: 0.4, lambda value: value > 0.9, epsilon=each / 2, name="kept") is None
    assert calls.revise_release("kept", lambda value: value > 0.3) == 0.4
    assert calls.release_if(lambda: 7, lambda _: True, epsilon=each) == 7
    assert calls.halted


METHODS: dict[str, Callable[[TargetCharging], Any]] = {
    "not_prior": lambda it: it.not_prior(0.0, 0.0, tolerance=1e6),
    "above": lambda it: it.above(0.0, 1e6),
    "conditional_release": lambda it: it.conditional_release(0.0, low=1e6, name="kept"),
    "revise": lambda it: it.revise("kept", low=1e5),
}


def test_noisy_answers_have_the_mean_and_those_between_thresholds_do_not() -> None:
    calls = TargetCharging(charges=1, epsilon=1.0, delta=1e-2, mean=not_prior_mean, gap=100.0, seed=1)
    for method in METHODS.values():
        method(calls)
    with pytest.raises(InputError, match="a mean of at least"):
        calls.between(0.0, 0.0, 1000.0)
    assert calls.hits == (0,)


@for_each("value", [-9, -1, 0, 3, 12])
@for_each("epsilon", [0.05, 0.5, 2.0])
def test_a_noisy_number_in_a_region_has_the_mean_whatever_the_region(value: int, epsilon: float) -> None:
    """Discrete Laplace noise on numbers that are one step apart; each target is "not in the region"."""
    at = np.arange(-4000, 4001)
    first, second = (np.exp(-epsilon * np.abs(at - moved)) for moved in (value, value + 1))
    for low, high in ((-math.inf, 0), (0, 0), (-2, 5), (4, math.inf)):
        free = (at >= low) & (at <= high)
        p, r = (np.append(law[~free], law[free].sum()) / law.sum() for law in (first, second))
        target = np.arange(len(p)) < len(p) - 1
        assert largest_mean(p, r, target, epsilon=epsilon) >= not_prior_mean(epsilon) * (1 - 1e-6)
