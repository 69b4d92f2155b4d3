"""What selections in several steps hand on: shares of the budget, seeds, and the noise of what is measured."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from cases import for_each
from mechanisms.selection.selection_laws import Scripted

from reusable_holdout.mechanisms import noisy_top_k_gaps, select_then_measure, select_top
from reusable_holdout.mechanisms.accounting import optimal_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection import tightest, top_k
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    import pytest


@for_each("monotonic", [False, True])
@for_each(("epsilon", "delta", "sensitivity"), [(1.0, 0.0, 1.0), (3.0, 1e-4, 0.3)])
@for_each("mechanism", ["exponential_top", "noisy_top_k_gaps"])
def test_half_of_the_budget_chooses_and_half_of_it_measures(
    mechanism: Any,
    epsilon: float,
    delta: float,
    sensitivity: float,
    monotonic: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    laws: list[DiscreteLaplace] = []

    def choose(scores: Any, count: int, **how: Any) -> Any:
        asked.append({"scores": list(scores), "count": count} | how)
        return np.array([2, 0])

    def draw(law: DiscreteLaplace, count: int, words: object) -> Any:
        laws.append(law)
        return np.array([7, -20][:count])

    monkeypatch.setattr(tightest, "select_top", choose)
    monkeypatch.setattr(tightest, "draw_noise", draw)
    grid = Grid.of(sensitivity)
    wish: dict[str, Any] = {"epsilon": epsilon, "sensitivity": sensitivity, "monotonic": monotonic}
    best = select_then_measure(np.array([3, 4, 900]) * grid.step, 2, delta=delta, mechanism=mechanism, **wish)
    assert best.indices.tolist() == [2, 0]
    assert best.scores.tolist() == [907 * grid.step, -17 * grid.step]
    each = optimal_epsilon_each(epsilon=epsilon / 2, count=2, delta=delta / 2)
    assert laws == [DiscreteLaplace(grid.sensitivity / Fraction(each))]
    scores = [3 * grid.step, 4 * grid.step, 900 * grid.step]
    halves = {"epsilon": epsilon / 2, "delta": delta / 2, "seed": None, "mechanism": mechanism}
    assert asked == [{"scores": scores, "count": 2} | wish | halves]


def test_the_tightest_is_asked_for_with_answers_where_scores_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(tightest, "tightest_selection", lambda **how: asked.append(how) or "exponential_top")
    wish: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-3, "monotonic": True}
    select_then_measure([1.0, 2.0, 3.0], 2, **wish)
    select_top([1.0, 2.0, 3.0], 1, **wish)
    assert asked == [
        {"count": 2, "candidates": 3, "answers": True} | wish,
        {"count": 1, "candidates": 3} | wish,
    ]


@for_each("name", ["exponential_top", "permute_and_flip_top"])
def test_the_rounds_that_are_named_are_run(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("exponential_top", "permute_and_flip_top"):
        monkeypatch.setattr(tightest, other, lambda *_, other=other, **how: (other, how))
    how = {"epsilon": 1.0, "delta": 1e-3, "sensitivity": 2.0, "monotonic": True, "seed": 7}
    assert select_top([1.0, 2.0], 1, mechanism=name, **how) == (name, how)  # type: ignore[arg-type]


def test_a_seed_gives_the_choice_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int | None] = []

    def choose(scores: Any, count: int, *, seed: int | None, **_: Any) -> Any:
        seeds.append(seed)
        return np.arange(count)

    monkeypatch.setattr(tightest, "select_top", choose)
    for seed in range(8):
        select_then_measure([1.0, 2.0], 1, epsilon=1.0, mechanism="exponential_top", seed=seed)
    assert seeds == [RandomWords(seed).below(2**62) for seed in range(8)]


@for_each("monotonic", [False, True])
@for_each("k", [1, 2, 3])
def test_gaps_are_those_of_the_scores_and_the_noise_of_so_many_releases(
    k: int, monotonic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws: list[DiscreteLaplace] = []

    def draw(law: DiscreteLaplace, count: int, words: object) -> Any:
        laws.append(law)
        return np.array([100, -7, 0, 30])

    monkeypatch.setattr(top_k, "draw_noise", draw)
    monkeypatch.setattr(top_k, "RandomWords", lambda seed: Scripted(order=[0, 1, 2, 3]))
    scores = np.array([1, 90, 60, 20]) / 2**16  # with noise 101, 83, 60 and 50
    best = noisy_top_k_gaps(scores, k, epsilon=0.5, monotonic=monotonic)
    assert best.indices.tolist() == [0, 1, 2][:k]
    assert (best.gaps * 2**16).tolist() == [18, 23, 10][:k]
    assert laws == [DiscreteLaplace(Fraction(2**16 * k * (1 if monotonic else 2)) / Fraction(0.5))]
