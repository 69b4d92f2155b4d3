"""Selection: input that is refused, seeds, and numbers at the end of their range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.selection.exponential import exponential_mechanism, exponential_top
from reusable_holdout.mechanisms.selection.noisy_max import (
    permute_and_flip,
    report_noisy_max,
    report_noisy_max_gap,
)
from reusable_holdout.mechanisms.selection.rounds import permute_and_flip_top
from reusable_holdout.mechanisms.selection.tightest import select_top
from reusable_holdout.mechanisms.selection.top_k import (
    noisy_top_k_gaps,
    one_shot_top_k,
    one_shot_top_k_epsilon_each,
)

if TYPE_CHECKING:
    from collections.abc import Callable


EVERY: dict[str, Callable[..., Any]] = {
    "exponential": exponential_mechanism,
    "rounds": lambda scores, **options: exponential_top(scores, 1, **options),
    "noisy max": report_noisy_max,
    "gap": report_noisy_max_gap,
    "permute and flip": permute_and_flip,
    "rounds with a delta": lambda scores, **options: exponential_top(scores, 1, delta=1e-6, **options),
    "rounds of permute and flip": lambda scores, **options: permute_and_flip_top(scores, 1, **options),
    "tightest": lambda scores, **options: select_top(scores, 1, **options),
    "one shot": lambda scores, **options: one_shot_top_k(scores, 1, delta=1e-6, **options),
    "gaps": lambda scores, **options: noisy_top_k_gaps(scores, 1, **options),
}


@for_each("name", EVERY)
@for_each(
    "scores",
    [[], [4711.25, math.nan], ["secret 4711.25", "b"], [[4711.25, 1.0]], 4711.25, None, [4711.25, [1.0]]],
)
def test_scores_that_are_no_row_of_numbers_are_refused_without_telling_them(name: str, scores: Any) -> None:
    with pytest.raises(InputError) as caught:
        EVERY[name](scores, epsilon=1.0)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


@for_each("name", EVERY)
@for_each("far", [2.0**44 * (1 + 2.0**-52), -(2.0**45), 1e300, math.inf, -math.inf])
def test_scores_beyond_the_grid_are_refused_and_those_at_its_end_are_not(name: str, far: float) -> None:
    """Clipped to the grid's end, a winner by far would tie with the runner-up."""
    with pytest.raises(InputError, match=r"at most 17592186044416 from 0, which is 2\*\*60 grid steps"):
        EVERY[name]([4711.25, far], epsilon=1.0)
    EVERY[name]([-(2.0**44), 2.0**44], epsilon=1.0)


@for_each("name", EVERY)
@for_each(
    "options",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"epsilon": 1.0, "sensitivity": 0.0},
        {"epsilon": 1.0, "sensitivity": -1.0},
        {"epsilon": 1.0, "sensitivity": math.inf},
        {"epsilon": 1.0, "sensitivity": math.nan},
        {"epsilon": 1.0, "seed": "x"},
    ],
)
def test_parameters_out_of_range_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        EVERY[name]([4711.25, 1.0], **options)
    assert "4711" not in str(caught.value)


@for_each(
    "call",
    [
        lambda: exponential_top([1.0, 2.0], 3, epsilon=1.0),
        lambda: exponential_top([1.0, 2.0], 0, epsilon=1.0),
        lambda: permute_and_flip_top([1.0, 2.0], 3, epsilon=1.0),
        lambda: permute_and_flip_top([1.0, 2.0], 0, epsilon=1.0),
        lambda: permute_and_flip_top([1.0, 2.0], 1, epsilon=1.0, delta=1.0),
        lambda: select_top([1.0, 2.0], 3, epsilon=1.0),
        lambda: select_top([1.0, 2.0], 1, epsilon=1.0, delta=1.0),
        lambda: select_top([1.0, 2.0], 1, epsilon=1.0, mechanism="best"),  # type: ignore[arg-type]
        lambda: one_shot_top_k([1.0, 2.0], 3, epsilon=1.0, delta=1e-6),
        lambda: one_shot_top_k([1.0, 2.0], 0, epsilon=1.0),
        lambda: one_shot_top_k([1.0, 2.0], 1, epsilon=1.0, delta=1.0),
        lambda: one_shot_top_k([1.0, 2.0], 1, epsilon=1.0, delta=-0.1),
        lambda: one_shot_top_k([1.0, 2.0], 1, epsilon=1.0, stop_gap=0.0),
        lambda: one_shot_top_k([1.0, 2.0], 1, epsilon=1.0, stop_gap=math.nan),
        lambda: noisy_top_k_gaps([1.0, 2.0], 2, epsilon=1.0),
        lambda: report_noisy_max_gap([1.0], epsilon=1.0),
        lambda: report_noisy_max([1.0, 2.0], epsilon=1.0, noise="gauss"),  # type: ignore[arg-type]
        lambda: one_shot_top_k_epsilon_each(k=1, candidates=2, epsilon=math.inf, delta=0.0),
    ],
)
def test_counts_and_choices_out_of_range_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()


def same(one: Any, other: Any) -> bool:
    def flat(result: Any) -> list[Any]:
        fields = [getattr(result, f) for f in getattr(result, "__slots__", ())] or [result]
        return [np.asarray(field).tolist() for field in fields]

    return flat(one) == flat(other)


@for_each("name", EVERY)
def test_the_same_seed_gives_the_same_result(name: str) -> None:
    scores = [0.0] * 1000
    assert same(EVERY[name](scores, epsilon=1.0, seed=5), EVERY[name](scores, epsilon=1.0, seed=5))
    assert not same(EVERY[name](scores, epsilon=1.0, seed=5), EVERY[name](scores, epsilon=1.0, seed=6))


@for_each("name", EVERY)
def test_unpredictable_by_default(name: str) -> None:
    scores = [0.0] * 10_000
    results = [EVERY[name](scores, epsilon=1.0) for _ in range(4)]
    assert not all(same(results[0], other) for other in results[1:])  # agree by chance: 1e-12


@for_each("name", EVERY)
@for_each("big", [1e9, 2.0**40, 2.0**44])
def test_huge_scores_and_epsilons_do_not_overflow(name: str, big: float) -> None:
    result = EVERY[name]([-big, big, 0.0], epsilon=1.0, seed=1)
    index = getattr(result, "index", None) if not isinstance(result, np.ndarray | int) else result
    chosen = result.indices if hasattr(result, "indices") else index
    assert np.asarray(chosen).ravel()[0] == 1


@for_each("epsilon", [1e-300, 1e-9, 1e9, 1e300])
def test_coin_mechanisms_take_any_epsilon(epsilon: float) -> None:
    scores = [2.0**44, -(2.0**44), 0.0, 1e-3, -(2.0**44)]
    order = exponential_top(scores, 5, epsilon=epsilon, seed=0).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert epsilon < 1 or order[:3] == [0, 3, 2]
    assert permute_and_flip(scores, epsilon=epsilon, seed=0) in range(5)


def test_one_candidate_is_chosen() -> None:
    for mechanism in (exponential_mechanism, report_noisy_max, permute_and_flip):
        assert mechanism([-3.0], epsilon=0.1) == 0
    assert one_shot_top_k([-3.0], 1, epsilon=0.1).indices.tolist() == [0]
