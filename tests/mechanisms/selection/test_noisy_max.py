"""Report noisy max on listed noise: which law is asked for, who wins, and by how much."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from mechanisms.selection.selection_laws import Scripted

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
    report_noisy_max_gap,
)
from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection import noisy_max
from reusable_holdout.mechanisms.selection.noisy_max import Ranking, flip_in_order
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Sequence

STEP = 2.0**-16  # of a sensitivity of 1
NOISES = {"laplace": DiscreteLaplace, "exponential": DiscreteExponential}


def listed(patch: pytest.MonkeyPatch, noise: Sequence[int], *, order: Sequence[int] = ()) -> list[Any]:
    """Let this noise be drawn; the laws that were asked for are noted."""
    laws: list[Any] = []

    def draw(law: Any, count: int, words: object) -> Any:
        assert count == len(noise)
        laws.append(law)
        return np.array(noise)

    patch.setattr(noisy_max, "draw_noise", draw)
    patch.setattr(noisy_max, "RandomWords", lambda seed: Scripted(order=order))
    return laws


@for_each("noise", NOISES)
@for_each("monotonic", [False, True])
@for_each(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 3.0), (8.0, 0.75)])
def test_the_largest_noisy_score_of_the_noise_that_epsilon_asks_for_wins(
    noise: Any, monotonic: bool, epsilon: float, sensitivity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    laws = listed(monkeypatch, [5, 0, 70, 4])
    found = report_noisy_max(
        [0.0] * 4, epsilon=epsilon, sensitivity=sensitivity, monotonic=monotonic, noise=noise
    )
    assert found == 2
    rows = Grid.of(sensitivity).sensitivity
    assert laws == [NOISES[noise](Fraction(rows * (1 if monotonic else 2)) / Fraction(epsilon))]


def test_noise_is_added_to_the_score_of_its_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise, winner in [([9, 0, 0], 0), ([0, 9, 0], 1), ([0, 0, 9], 2), ([-9, -9, -30], 1)]:
        listed(monkeypatch, noise, order=[0, 1, 2])
        scores = np.array([0.0, 3.0, 5.0]) * STEP
        assert report_noisy_max(scores, epsilon=1.0) == winner
        assert report_noisy_max(scores, epsilon=1.0, noise="exponential") == winner
        assert report_noisy_max_gap(scores, epsilon=1.0).index == winner


@for_each("order", list(itertools.permutations(range(3))))
def test_a_gap_is_what_the_winner_could_lose(order: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    listed(monkeypatch, [7, -2, 1], order=order)
    found = report_noisy_max_gap(np.array([0.0, 3.0, 5.0]) * STEP, epsilon=1.0)  # 7, 1 and 6
    assert found.index == 0
    assert found.gap == (1 - (order.index(2) < order.index(0))) * STEP


@for_each("noisy", [[5, 5], [3, 9, 9, 1], [0, 0, 0, 0], [4, 1, 2, 2, 7]])
def test_every_gap_is_the_most_its_candidate_can_fall_before_the_next_is_ahead(noisy: list[int]) -> None:
    """Tried for all orders of ties: one step more, and those that follow come first."""
    for order in itertools.permutations(range(len(noisy))):
        row = np.array(noisy, dtype=np.int64)
        ranking = Ranking(row, Scripted(order=order))  # type: ignore[arg-type]
        assert len(ranking.gaps) == len(noisy) - 1
        for place, gap in enumerate(ranking.gaps.tolist()):
            assert gap >= 0
            rest = ranking.order[place:].tolist()
            for loss, stays in ((gap, True), (gap + 1, False)):
                fallen = row.copy()
                fallen[rest[0]] -= loss
                after = Ranking(fallen, Scripted(order=order)).order.tolist()  # type: ignore[arg-type]
                assert (min(rest, key=after.index) == rest[0]) is stays


def test_a_gap_needs_two_candidates_and_no_more() -> None:
    with pytest.raises(InputError, match="a gap needs at least two candidates"):
        report_noisy_max_gap([1.0], epsilon=1.0)
    assert report_noisy_max_gap([1e9, 2e9], epsilon=1.0).index == 1


def test_the_foremost_is_taken_where_all_others_are_hopeless() -> None:
    steps = np.array([-(2**50), 0, -(2**59)], dtype=np.int64)
    for seed in range(20):
        assert flip_in_order(steps, Fraction(1), RandomWords(seed)) == 1
    assert flip_in_order(np.array([7], dtype=np.int64), Fraction(1, 2**70), RandomWords(0)) == 0


def test_choices_without_options_are_those_of_sensitivity_1_and_scores_of_any_kind() -> None:
    scores = np.random.default_rng(1).uniform(0, 300, 200).tolist()
    for choose in (exponential_mechanism, permute_and_flip, report_noisy_max):

        def drawn(choose: Any = choose, **options: Any) -> list[int]:
            return [choose(scores, epsilon=1.0, seed=seed, **options) for seed in range(12)]

        assert drawn() == drawn(sensitivity=1.0, monotonic=False)
        assert drawn() != drawn(sensitivity=3.0)
        assert drawn() != drawn(monotonic=True)


def test_noise_that_is_not_named_is_laplace() -> None:
    def drawn(**options: Any) -> list[int]:
        return [report_noisy_max([0.0] * 50, epsilon=1.0, seed=seed, **options) for seed in range(6)]

    assert drawn() == drawn(noise="laplace")
    assert drawn() != drawn(noise="exponential")
    assert drawn(noise="gumbel") == [exponential_mechanism([0.0] * 50, epsilon=1.0, seed=s) for s in range(6)]
