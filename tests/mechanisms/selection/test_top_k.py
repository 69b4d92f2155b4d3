"""Top-k: privacy loss in closed form, what is published, and where it stops."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    Scripted,
    top_one_tables,
    top_two_gaps_law,
    worst_loss,
)

from reusable_holdout.mechanisms.accounting.target_charging import (
    not_prior_mean,
    not_prior_q,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.selection import top_k
from reusable_holdout.mechanisms.selection.exponential import exponential_top, selection_rate
from reusable_holdout.mechanisms.selection.noisy_max import (
    Ranking,
)
from reusable_holdout.mechanisms.selection.top_k import (
    noisy_top_k_gaps,
    one_shot_top_k,
    one_shot_top_k_epsilon_each,
)
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


@pytest.mark.long(*MECHANISMS)
@for_each("candidates", [2, 40, 2000])
@for_each("moves", [(1, 1), (-1, -1), (1, -1), (-1, 1)])
def test_one_shot_top_one_with_its_score_keeps_epsilon_and_delta(
    candidates: int, moves: tuple[int, int]
) -> None:
    epsilon, delta, sensitivity = 2.0, 1e-3, 2
    each = one_shot_top_k_epsilon_each(k=1, candidates=candidates, epsilon=epsilon, delta=delta)
    law = DiscreteLaplace(sensitivity / Fraction(each))
    for gap in (0, 30):
        sizes = (1, candidates - 1)
        here = top_one_tables([(sizes[0], gap), (sizes[1], 0)], law)
        there = top_one_tables(
            [(sizes[0], gap + sensitivity * moves[0]), (sizes[1], sensitivity * moves[1])], law
        )
        assert sum(m * t.sum() for m, t in here) == pytest.approx(1, abs=1e-9)
        for one, other in ((here, there), (there, here)):
            excess = sum(
                m * np.maximum(a - math.exp(epsilon) * b, 0).sum()
                for (m, a), (_, b) in zip(one, other, strict=True)
            )
            assert excess <= delta


def test_the_noise_of_one_shot_top_k_is_the_smaller_of_two() -> None:
    few = one_shot_top_k_epsilon_each(k=1, candidates=10, epsilon=1.0, delta=1e-6)
    many = one_shot_top_k_epsilon_each(k=1, candidates=10**5, epsilon=1.0, delta=1e-6)
    more = one_shot_top_k_epsilon_each(k=1, candidates=10**6, epsilon=1.0, delta=1e-6)
    assert few == pytest.approx(0.1, rel=1e-3)  # all ten composed
    assert many == more  # no dependence on the candidates
    assert (
        many
        == target_charging_epsilon_each(
            epsilon=1.0, delta=1e-6, charges=1, q=not_prior_q, mean=not_prior_mean
        )
        / 2
    )


@given(st.integers(1, 1000), st.floats(1e-3, 10))
def test_without_delta_the_candidates_of_one_shot_top_k_share_epsilon_exactly(n: int, epsilon: float) -> None:
    each = one_shot_top_k_epsilon_each(k=1, candidates=n, epsilon=epsilon, delta=0.0)
    assert Fraction(each) * n <= Fraction(epsilon)
    assert each == pytest.approx(epsilon / n, rel=1e-12)


def scripted_top_k(patch: pytest.MonkeyPatch, noises: Sequence[int], order: Sequence[int]) -> list[Fraction]:
    scales: list[Fraction] = []

    def draw(law: DiscreteLaplace, count: int, words: object) -> npt.NDArray[np.int64]:
        scales.append(law.scale)
        return np.array(noises)

    patch.setattr(top_k, "RandomWords", lambda seed: Scripted(order=order))
    patch.setattr(top_k, "draw_noise", draw)
    return scales


def test_one_shot_top_k_publishes_the_best_noisy_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    one = 2**16
    scales = scripted_top_k(monkeypatch, [0, 5 * one, 0, -one, one // 2], [4, 3, 2, 1, 0])
    best = one_shot_top_k([3.0, 1.0, 3.0, 4.0, 0.0], 4, epsilon=1.0, delta=1e-6)
    assert best.indices.tolist() == [1, 3, 2, 0]  # 3 ties with 0 and 2: the order decides
    assert best.scores.tolist() == [6.0, 3.0, 3.0, 3.0]
    each = one_shot_top_k_epsilon_each(k=4, candidates=5, epsilon=1.0, delta=1e-6)
    assert scales == [2**16 / Fraction(each)]


@pytest.mark.parametrize(
    ("k", "stop_gap", "published"),
    [(4, 2.0, 3), (4, 3.0, 3), (4, 3.0 + 2.0**-16, 4), (4, 3.5, 4), (3, 3.0, 3), (2, 1.0, 1), (5, 9.0, 5)],
)
def test_one_shot_top_k_stops_at_the_first_wide_gap(
    monkeypatch: pytest.MonkeyPatch, k: int, stop_gap: float, published: int
) -> None:
    scripted_top_k(monkeypatch, [0] * 5, range(5))
    best = one_shot_top_k([10.0, 9.0, 8.0, 5.0, 4.5], k, epsilon=1.0, delta=1e-6, stop_gap=stop_gap)
    assert best.indices.tolist() == list(range(published))
    assert len(best.scores) == published


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["all rise", "all fall", "opposite", "monotonic"])
def test_the_gaps_of_noisy_top_k_are_free(moves: str) -> None:
    epsilon, count = 4.0, 2
    rate = selection_rate(epsilon=epsilon, sensitivity=1, monotonic=moves == "monotonic")
    law = DiscreteLaplace(count / rate)
    loss = worst_loss(
        lambda scores: list(top_two_gaps_law(scores, law, 3).values()), [(0, 0, 12, 12)], moves, 1
    )
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "monotonic"):
        assert loss >= 0.96 * epsilon


@pytest.mark.long(*MECHANISMS)
def test_noisy_top_k_gaps_follow_their_law_over_all_noises_and_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law, scores = DiscreteLaplace(1), [0, 1, -1]
    weights = {x: math.exp(law.log_pmf(x)) for x in range(-6, 7)}
    expected = top_two_gaps_law(scores, law, 3)
    observed = dict.fromkeys(expected, 0.0)
    for order in itertools.permutations(range(3)):
        for noises in itertools.product(weights, repeat=3):
            scales = scripted_top_k(monkeypatch, noises, order)
            best = noisy_top_k_gaps(np.array(scores) * 2.0**-16, 2, epsilon=2.0**18)
            outcome = (tuple(best.indices.tolist()), tuple(round(gap * 2**16) for gap in best.gaps))
            if outcome in observed:
                observed[outcome] += math.prod(weights[x] for x in noises) / 6
            assert scales == [1]
    assert observed == pytest.approx(expected, abs=3 * math.exp(-6))


CLEAR: dict[str, Callable[[npt.NDArray[np.float64], int, int], Any]] = {
    "rounds": lambda s, k, seed: exponential_top(s, k, epsilon=1.0, seed=seed),
    "gaps": lambda s, k, seed: noisy_top_k_gaps(s, k, epsilon=1.0, seed=seed).indices,
    "one shot": lambda s, k, seed: one_shot_top_k(s, k, epsilon=1.0, delta=1e-6, seed=seed).indices,
}


@for_each("name", CLEAR)
def test_top_k_of_scores_far_apart_is_the_true_top_k(name: str) -> None:
    """Distances of 100 scales or more: an error has probability below exp(-80)."""
    scores = np.random.default_rng(0).permutation(50) * 5000.0
    assert CLEAR[name](scores, 10, 1).tolist() == np.argsort(-scores)[:10].tolist()


def test_three_hundred_rounds_of_ten_thousand_zipf_scores_find_more_than_chance() -> None:
    scores = 1e6 / np.arange(1, 10_001) / 9.79
    found = exponential_top(scores, 300, epsilon=10.0, seed=0)
    assert len(set(found.tolist())) == 300
    assert (found < 300).sum() >= 30  # chance finds 9


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=7), st.data())
def test_a_ranking_falls_and_its_gaps_are_what_the_winner_can_lose(
    noisy: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(noisy))))
    row = np.array(noisy, dtype=np.int64)
    ranking = Ranking(row, Scripted(order=order))  # type: ignore[arg-type]
    assert ranking.noisy.tolist() == sorted(noisy, reverse=True)
    assert ranking.noisy.tolist() == row[ranking.order].tolist()
    winner, gap = int(ranking.order[0]), int(ranking.gaps[0])
    for loss, wins in ((gap, True), (gap + 1, False)):
        row[winner] -= loss
        assert (int(Ranking(row, Scripted(order=order)).order[0]) == winner) is wins  # type: ignore[arg-type]
        row[winner] += loss
