"""Conditional release of any algorithm's outcome, and revisions: Algorithm 2 on scripts, its lemmas on exact laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from cases import for_each
from mechanisms.accounting.target_decomposition import largest_q

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import TargetCharging, TargetInteraction, one_shot_top_k
from reusable_holdout.mechanisms.accounting import not_prior_q

RATIOS = [Fraction(11, 10), Fraction(2), Fraction(4)]  # exp(e)


def interaction(charges: int = 2, **more: float) -> TargetInteraction:
    return TargetInteraction(charges=charges, epsilon=1.0, delta=1e-2, **more)  # type: ignore[arg-type]


def indistinguishable(ratio: Fraction) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Pairs of laws on four outcomes that differ by a factor of `ratio` at most, all but one outcome at an extreme."""
    found = []
    for weights in ((1, 1, 1, 1), (1, 2, 5, 9), (60, 1, 1, 1)):
        law = [Fraction(w, sum(weights)) for w in weights]
        for free in range(4):
            for moves in itertools.product((ratio, 1 / ratio, Fraction(1)), repeat=3):
                factors = [*moves[:free], Fraction(0), *moves[free:]]
                other = [p * f for p, f in zip(law, factors, strict=True)]
                other[free] = 1 - sum(other)
                if law[free] / ratio <= other[free] <= law[free] * ratio:
                    found.append((law, other))
    return found


def loss(law: list[Fraction], other: list[Fraction]) -> float:
    return max(abs(math.log(p / q)) for p, q in zip(law, other, strict=True))


def masked(law: list[Fraction], told: set[int]) -> list[Fraction]:
    """Outcomes in `told` and, last, "not released"."""
    return [*(law[place] for place in sorted(told)), 1 - sum(law[place] for place in told)]


def given_not(law: list[Fraction], told: set[int]) -> list[Fraction]:
    """Zero in `told`, conditional elsewhere."""
    rest = 1 - sum(law[place] for place in told)
    return [Fraction(0) if place in told else p / rest for place, p in enumerate(law)]


@for_each("ratio", RATIOS)
def test_a_release_keeps_epsilon_and_is_a_not_prior_target(ratio: Fraction) -> None:
    """Lemmas D.1 and 2.4."""
    epsilon = math.log(ratio)
    for law, other in indistinguishable(ratio):
        for size in (1, 2, 3):
            for told in itertools.combinations(range(4), size):
                p, q = masked(law, set(told)), masked(other, set(told))
                assert loss(p, q) <= epsilon + 1e-12
                target = [True] * size + [False]
                assert largest_q(
                    [float(x) for x in p], [float(x) for x in q], target, epsilon=epsilon
                ) >= not_prior_q(epsilon) * (1 - 1e-9)


@for_each("ratio", RATIOS)
def test_a_revision_keeps_twice_epsilon_and_its_q_given_that_nothing_was_released(ratio: Fraction) -> None:
    """Lemmas D.2 and 2.5: any first target, any extension."""
    epsilon = 2 * math.log(ratio)
    worst = 0.0
    for law, other in indistinguishable(ratio):
        for first, more in itertools.permutations(range(4), 2):
            p, q = (masked(given_not(found, {first}), {more}) for found in (law, other))
            worst = max(worst, loss(p, q))
            assert largest_q(
                [float(x) for x in p], [float(x) for x in q], [True, False], epsilon=epsilon
            ) >= not_prior_q(epsilon) * (1 - 1e-9)
    assert epsilon / 2 < worst <= epsilon + 1e-12


def test_an_outcome_is_released_once_when_a_wider_condition_holds() -> None:
    calls, runs = interaction(), []
    each = calls.epsilon_each / 2

    def algorithm() -> float:
        runs.append(1)
        return 0.6

    assert calls.release_if(algorithm, lambda value: value > 0.9, epsilon=each, name="model") is None
    assert calls.revise_release("model", lambda value: value > 0.8) is None
    assert calls.charges_left == 2
    assert calls.revise_release("model", lambda value: value > 0.5) == 0.6
    assert (calls.charges_left, len(runs)) == (1, 1)  # the outcome is the one that was drawn at first
    with pytest.raises(InputError, match="has been released"):
        calls.revise_release("model", lambda value: True)
    assert calls.charges_left == 1


def test_what_is_released_at_once_is_not_kept_and_what_has_no_name_neither() -> None:
    calls = interaction()
    each = calls.epsilon_each / 2
    assert calls.release_if(lambda: 3, lambda value: True, epsilon=each, name="a") == 3
    assert calls.release_if(lambda: 3, lambda value: False, epsilon=2 * each) is None
    assert calls.charges_left == 1
    with pytest.raises(InputError, match="nothing is kept"):
        calls.revise_release("a", lambda value: True)


def test_an_outcome_that_is_none_is_charged_when_it_is_released() -> None:
    calls = interaction()
    assert calls.release_if(lambda: None, lambda value: True, epsilon=calls.epsilon_each) is None
    assert calls.charges_left == 1


def test_every_target_is_hit_by_a_release() -> None:
    calls = TargetInteraction(charges=3, epsilon=1.0, delta=1e-2, targets=2)
    calls.release_if(lambda: 1, lambda value: True, epsilon=calls.epsilon_each)
    calls.release_if(lambda: 1, lambda value: False, epsilon=calls.epsilon_each)
    assert calls.hits == (1, 1)


def test_a_delta_is_spent_when_the_algorithm_runs_and_not_again() -> None:
    calls = interaction(calls_delta=1e-3)
    each = calls.epsilon_each / 2
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, delta=1e-3, name="a")
    assert calls.delta_left == 0
    assert calls.revise_release("a", lambda value: True) == 1
    with pytest.raises(BudgetError, match="calls_delta"):
        calls.release_if(lambda: 1, lambda value: True, epsilon=each, delta=1e-9)


def test_a_condition_that_fails_is_a_hit_and_ends_what_was_kept() -> None:
    calls = interaction(charges=3)
    each = calls.epsilon_each / 2

    def fails(value: object) -> bool:
        raise ValueError("no truth")

    with pytest.raises(ValueError, match="no truth"):
        calls.release_if(lambda: 1, fails, epsilon=each, name="a")
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, name="b")
    with pytest.raises(ValueError, match="no truth"):
        calls.revise_release("b", fails)
    assert calls.charges_left == 1
    for name in "ab":
        with pytest.raises(InputError, match="nothing is kept"):
            calls.revise_release(name, lambda value: True)


def test_after_the_last_charge_nothing_is_released_and_what_is_kept_stays() -> None:
    calls = interaction(charges=1)
    each = calls.epsilon_each / 2
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, name="a")
    calls.release_if(lambda: 1, lambda value: True, epsilon=each)
    for _ in range(2):
        with pytest.raises(BudgetError, match="charges are spent"):
            calls.revise_release("a", lambda value: True)


def test_a_name_is_used_once_and_needs_half_the_epsilon() -> None:
    calls = interaction()
    each = calls.epsilon_each
    ran: list[int] = []
    with pytest.raises(InputError, match="costs twice that"):
        calls.release_if(lambda: ran.append(1), lambda value: False, epsilon=each, name="a")
    calls.release_if(lambda: 1, lambda value: False, epsilon=each / 2, name="a")
    with pytest.raises(InputError, match="used once"):
        calls.release_if(lambda: ran.append(1), lambda value: False, epsilon=each / 2, name="a")
    assert (ran, calls.charges_left) == ([], 2)


def test_target_charging_releases_outcomes_of_ones_own_beside_its_noisy_values() -> None:
    calls = TargetCharging(charges=2, epsilon=1.0, delta=1e-6, seed=1)
    assert calls.release_if(lambda: "model", lambda value: True, epsilon=calls.epsilon_each) == "model"
    assert calls.conditional_release(-9000.0, low=0.0) is None
    assert calls.charges_left == 1


def sweep(scores: list[int], k: int, highest: int) -> tuple[list[int], int]:
    """Algorithm 9, and its top-k form: a threshold falls until k outcomes have been released; what they cost."""
    calls = interaction(charges=k)
    each = calls.epsilon_each / 2
    found: list[int] = []
    for threshold in range(highest, -1, -1):
        for place, score in enumerate(scores):
            if calls.halted:
                return found, k - calls.charges_left
            name, at_least = str(place), (lambda value, least=threshold: value[0] >= least)
            if threshold == highest:
                told = calls.release_if(
                    lambda score=score, place=place: (score, place), at_least, epsilon=each, name=name
                )
            elif place not in found:
                told = calls.revise_release(name, at_least)
            else:
                continue
            if told is not None:
                found.append(told[1])
    return found, k - calls.charges_left


@for_each("k", [1, 2, 3])
def test_a_sweep_of_revisions_selects_what_one_shot_selection_does(k: int) -> None:
    """Lemma 2.6: the same candidates, best first, and as many hits as there are of them."""
    for scores in itertools.permutations([0, 2, 3, 5]):
        found, hits = sweep(list(scores), k, highest=5)
        best = one_shot_top_k(
            list(scores), k, algorithm=lambda score, _: (score, float(score)), epsilon=1.0, delta=1e-2, seed=1
        )
        assert found == best.indices.tolist()
        assert hits == k
