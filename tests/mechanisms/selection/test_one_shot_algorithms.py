"""One-shot selection among private algorithms: its law over all outcomes and orders, its delta, and where it stops."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import Scripted

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import one_shot_top_k, one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.accounting import not_prior_mean, not_prior_q, target_charging_epsilon_each
from reusable_holdout.mechanisms.selection import top_k

if TYPE_CHECKING:
    from collections.abc import Callable

    from reusable_holdout.mechanisms import TopK

OUTCOMES = [("good", 2.0), ("fair", 1.0), ("other", 1.0), ("none", 0.0)]  # found, score


def pair_of_laws(epsilon: float) -> tuple[list[float], list[float]]:
    """Chances of the outcomes on two neighbours, an epsilon apart at the ends."""
    low = np.array([0.1, 0.2, 0.1, 0.6])
    high = low * [math.exp(epsilon), 1.0, math.exp(-epsilon), 1.0]
    high[3] += 1 - high.sum()
    assert (np.abs(np.log(high / low)) <= epsilon + 1e-12).all()
    return low.tolist(), high.tolist()


def law(patch: pytest.MonkeyPatch, laws: list[list[float]], k: int, **wish: Any) -> dict[Any, float]:
    """Chance of everything that can be published, over all outcomes of the candidates and all orders of ties."""
    result: dict[Any, float] = defaultdict(float)
    for order in itertools.permutations(range(len(laws))):
        patch.setattr(top_k, "RandomWords", lambda seed, order=order: Scripted(order=order))
        for outcomes in itertools.product(range(len(OUTCOMES)), repeat=len(laws)):
            best = one_shot_top_k(
                outcomes, k, algorithm=lambda which, _: OUTCOMES[which], epsilon=1.0, delta=1e-2, **wish
            )
            chance = math.prod(own[which] for own, which in zip(laws, outcomes, strict=True))
            key = (tuple(best.indices.tolist()), tuple(best.scores.tolist()), best.found)
            result[key] += chance / math.factorial(len(laws))
    assert sum(result.values()) == pytest.approx(1)
    return result


def excess(one: dict[Any, float], other: dict[Any, float], epsilon: float) -> float:
    """Delta at an epsilon, the larger of both directions."""
    keys = one.keys() | other.keys()
    return max(
        sum(max(0.0, a.get(key, 0.0) - math.exp(epsilon) * b.get(key, 0.0)) for key in keys)
        for a, b in ((one, other), (other, one))
    )


RULES: dict[str, dict[str, Any]] = {
    "k": {},
    "a gap": {"stop_gap": 1.0},
    "a rule of the scores": {"stop": lambda best: best.scores.sum() >= 3},
    "a rule of what was found": {"stop": lambda best: "fair" in best.found},
    "both": {"stop_gap": 2.0, "stop": lambda best: len(best.indices) == 2},
}


@pytest.mark.long(*MECHANISMS)
@for_each("rule", RULES)
@for_each("k", [1, 2])
def test_what_is_published_keeps_epsilon_and_delta(
    monkeypatch: pytest.MonkeyPatch, rule: str, k: int
) -> None:
    """Each of three candidates an e0 apart, in either direction."""
    each = one_shot_top_k_epsilon_each(k=k, candidates=3, epsilon=1.0, delta=1e-2)
    low, high = pair_of_laws(each)
    monkeypatch.setattr(
        top_k, "one_shot_top_k_epsilon_each", lambda **_: each
    )  # costly, and asked thousands of times
    for moved in itertools.product([False, True], repeat=3):
        here = law(monkeypatch, [high if up else low for up in moved], k, **RULES[rule])
        there = law(monkeypatch, [low if up else high for up in moved], k, **RULES[rule])
        assert excess(here, there, 1.0) <= 1e-2


@for_each("candidates", [40, 5000])
@for_each("moves", ["rise", "fall"])
@for_each("rare", [1.0, 0.1])
def test_the_best_of_many_alike_keeps_epsilon_and_delta(candidates: int, moves: str, rare: float) -> None:
    """The example of Liu and Talwar: a good outcome about once among all candidates, e0 likelier on the neighbour."""
    epsilon, delta = 2.0, 1e-3
    each = one_shot_top_k_epsilon_each(k=1, candidates=candidates, epsilon=epsilon, delta=delta)

    def winner(good: float) -> dict[str, float]:
        some = -math.expm1(candidates * math.log1p(-good))
        return {"good": some, "none": 1 - some}

    good = [rare / candidates, rare / candidates * math.exp(each)]
    here, there = (winner(chance) for chance in (good if moves == "rise" else good[::-1]))
    assert excess(here, there, epsilon) <= delta


def test_every_candidate_is_run_once_with_the_epsilon_of_its_share() -> None:
    ran: list[tuple[str, float]] = []

    def algorithm(candidate: str, epsilon: float) -> tuple[str, float]:
        ran.append((candidate, epsilon))
        return candidate.upper(), float(len(candidate))

    best = one_shot_top_k(["a", "bbb", "cc"], 2, epsilon=1.0, delta=1e-6, algorithm=algorithm)
    each = one_shot_top_k_epsilon_each(k=2, candidates=3, epsilon=1.0, delta=1e-6)
    assert ran == [("a", each), ("bbb", each), ("cc", each)]
    assert best.indices.tolist() == [1, 2]
    assert best.scores.tolist() == [3.0, 2.0]
    assert best.found == ("BBB", "CC")
    many = one_shot_top_k_epsilon_each(k=2, candidates=10**6, epsilon=1.0, delta=1e-6)
    assert (
        many
        == target_charging_epsilon_each(
            epsilon=1.0, delta=1e-6, charges=2, q=not_prior_q, mean=not_prior_mean
        )
        / 2
    )


def test_a_rule_sees_what_is_published_and_nothing_behind_it() -> None:
    seen: list[tuple[list[float], tuple[Any, ...]]] = []

    def stop(best: TopK) -> bool:
        seen.append((best.scores.tolist(), best.found))
        best.scores[:] = -1.0  # its own copy
        return len(best.indices) == 2

    best = one_shot_top_k([3, 1, 2, 0], 4, epsilon=1.0, delta=1e-6, stop=stop, algorithm=lambda c, _: (c, c))
    assert seen == [([3.0], (3,)), ([3.0, 2.0], (3, 2))]
    assert best.scores.tolist() == [3.0, 2.0]
    everything = one_shot_top_k(
        [3, 1], 2, epsilon=1.0, delta=1e-6, stop=lambda _: False, algorithm=lambda c, _: (c, c)
    )
    assert everything.found == (3, 1)


def test_a_rule_stops_noisy_scores_too() -> None:
    best = one_shot_top_k(
        [1e6, 0.0, 5e5], 3, epsilon=1.0, delta=1e-6, stop=lambda best: bool(best.scores[-1] < 6e5)
    )
    assert best.indices.tolist() == [0, 2]
    assert best.found == ()


def test_a_score_that_is_no_number_comes_last() -> None:
    best = one_shot_top_k(
        [math.nan, -5.0, math.nan], 2, epsilon=1.0, delta=1e-6, algorithm=lambda score, _: ("x", score)
    )
    assert best.indices[0] == 1
    assert best.scores[1] == -math.inf


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 4}, {"stop_gap": 0.0}, {"epsilon": 0.0}])
def test_nothing_is_run_where_a_parameter_is_out_of_range(wrong: dict[str, Any]) -> None:
    def algorithm(candidate: object, epsilon: float) -> tuple[object, float]:
        raise AssertionError("was run")

    wish: dict[str, Any] = {"k": 1, "epsilon": 1.0, "delta": 1e-6} | wrong
    with pytest.raises(InputError):
        one_shot_top_k([1, 2, 3], wish.pop("k"), algorithm=algorithm, **wish)


def test_ties_are_ranked_in_a_drawn_order() -> None:
    first: Callable[[int], int] = lambda seed: int(  # noqa: E731 - one choice of a seed
        one_shot_top_k(
            range(4), 1, epsilon=1.0, delta=1e-6, algorithm=lambda c, _: (c, 0.0), seed=seed
        ).indices[0]
    )
    assert {first(seed) for seed in range(60)} == {0, 1, 2, 3}
