"""Top-k: privacy loss in closed form and by enumeration, what is published, and where it stops."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import (
    Scripted,
    delta_at,
    top_one_tables,
    top_two_gaps_law,
    worst_loss,
)

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import noisy_top_k_gaps, one_shot_top_k
from reusable_holdout.mechanisms.accounting import one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.selection import top_k
from reusable_holdout.mechanisms.selection.exponential import selection_rate
from reusable_holdout.noise import DiscreteLaplace

PUBLISH = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.long(*MECHANISMS)
@for_each("candidates", [2, 40, 2000])
@for_each("moves", [(1, 1), (-1, -1), (1, -1), (-1, 1)])
def test_one_shot_top_one_with_its_score_keeps_epsilon_and_delta(candidates, moves):
    epsilon, delta, sensitivity = 2.0, 1e-3, 2
    each = one_shot_top_k_epsilon_each(k=1, candidates=candidates, epsilon=epsilon, delta=delta)
    law = DiscreteLaplace(sensitivity / Fraction(each))
    for gap in (0, 30):
        moved = gap + sensitivity * moves[0], sensitivity * moves[1]
        here, there = (
            top_one_tables([(1, first), (candidates - 1, rest)], law) for first, rest in ((gap, 0), moved)
        )
        assert sum(m * t.sum() for m, t in here) == pytest.approx(1, abs=1e-9)
        for one, other in ((here, there), (there, here)):
            excess = sum(
                m * np.maximum(a - math.exp(epsilon) * b, 0).sum()
                for (m, a), (_, b) in zip(one, other, strict=True)
            )
            assert excess <= delta


def listed(patch, noises, order):
    """Draw these noises and this order of ties; note the laws that are asked for."""
    laws = []
    patch.setattr(top_k, "RandomWords", lambda seed: Scripted(order=order))
    patch.setattr(top_k, "draw_noise", lambda law, count, words: laws.append(law) or np.array(noises))
    return laws


def test_one_shot_top_k_publishes_the_best_noisy_scores(monkeypatch):
    one = 2**16
    laws = listed(monkeypatch, [0, 5 * one, 0, -one, one // 2], [4, 3, 2, 1, 0])
    best = one_shot_top_k([3.0, 1.0, 3.0, 4.0, 0.0], 4, **PUBLISH)
    assert best.indices.tolist() == [1, 3, 2, 0]  # 3 ties with 0 and 2: the order decides
    assert best.scores.tolist() == [6.0, 3.0, 3.0, 3.0]
    assert best.found == ()
    each = one_shot_top_k_epsilon_each(k=4, candidates=5, **PUBLISH)
    assert laws == [DiscreteLaplace(2**16 / Fraction(each))]


@for_each(
    ("k", "stop_gap", "published"),
    [(4, 2.0, 3), (4, 3.0, 3), (4, 3.0 + 2.0**-16, 4), (4, 3.5, 4), (3, 3.0, 3), (2, 1.0, 1), (5, 9.0, 5)],
)
def test_one_shot_top_k_stops_at_the_first_wide_gap(k, stop_gap, published, monkeypatch):
    listed(monkeypatch, [0] * 5, range(5))
    best = one_shot_top_k([10.0, 9.0, 8.0, 5.0, 4.5], k, stop_gap=stop_gap, **PUBLISH)
    assert best.indices.tolist() == list(range(published))
    assert len(best.scores) == published


@for_each("monotonic", [False, True])
@for_each("k", [1, 2, 3])
def test_gaps_are_those_of_the_scores_and_the_noise_of_so_many_releases(k, monotonic, monkeypatch):
    laws = listed(monkeypatch, [100, -7, 0, 30], [0, 1, 2, 3])
    scores = np.array([1, 90, 60, 20]) / 2**16  # with noise 101, 83, 60 and 50
    best = noisy_top_k_gaps(scores, k, epsilon=0.5, monotonic=monotonic)
    assert best.indices.tolist() == [0, 1, 2][:k]
    assert (best.gaps * 2**16).tolist() == [18, 23, 10][:k]
    assert laws == [DiscreteLaplace(Fraction(2**16 * k * (1 if monotonic else 2)) / Fraction(0.5))]


@for_each("order", list(itertools.permutations(range(3))))
def test_a_gap_is_what_the_winner_could_lose(order, monkeypatch):
    listed(monkeypatch, [7, -2, 1], order)
    found = noisy_top_k_gaps(np.array([0.0, 3.0, 5.0]) / 2**16, 1, epsilon=1.0)  # 7, 1 and 6
    assert found.indices.tolist() == [0]
    assert found.gaps.tolist() == [(1 - (order.index(2) < order.index(0))) / 2**16]


@pytest.mark.long(*MECHANISMS)
@for_each("moves", ["all rise", "all fall", "opposite", "monotonic"])
def test_the_gaps_of_noisy_top_k_are_free(moves):
    epsilon, count = 4.0, 2
    rate = selection_rate(epsilon=epsilon, sensitivity=1, monotonic=moves == "monotonic")
    law = DiscreteLaplace(count / rate)
    loss = worst_loss(lambda scores: top_two_gaps_law(scores, law, 3), [(0, 0, 12, 12)], moves, 1)
    assert loss <= epsilon + 1e-9
    if moves in ("opposite", "monotonic"):
        assert loss >= 0.96 * epsilon


@pytest.mark.long(*MECHANISMS)
def test_noisy_top_k_gaps_follow_their_law_over_all_noises_and_orders(monkeypatch):
    law, scores = DiscreteLaplace(1), [0, 1, -1]
    weights = {x: math.exp(law.log_pmf(x)) for x in range(-6, 7)}
    expected = top_two_gaps_law(scores, law, 3)
    observed = dict.fromkeys(expected, 0.0)
    for order in itertools.permutations(range(3)):
        for noises in itertools.product(weights, repeat=3):
            laws = listed(monkeypatch, noises, order)
            best = noisy_top_k_gaps(np.array(scores) * 2.0**-16, 2, epsilon=2.0**18)
            outcome = (tuple(best.indices.tolist()), tuple(round(gap * 2**16) for gap in best.gaps))
            if outcome in observed:
                observed[outcome] += math.prod(weights[x] for x in noises) / 6
            assert laws == [law]
    assert observed == pytest.approx(expected, abs=3 * math.exp(-6))


# Private algorithms in place of scores.

OUTCOMES = [("good", 2.0), ("fair", 1.0), ("other", 1.0), ("none", 0.0)]  # found, score
RULES = {
    "k": {},
    "a gap": {"stop_gap": 1.0},
    "a rule of the scores": {"stop": lambda best: best.scores.sum() >= 3},
    "a rule of the findings": {"stop": lambda best: "fair" in best.found},
    "both": {"stop_gap": 2.0, "stop": lambda best: len(best.indices) == 2},
}


def published_law(patch, laws, k, **wish):
    """Return the chance of everything that can be published, over all outcomes and all orders of ties."""
    result = defaultdict(float)
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


@pytest.mark.long(*MECHANISMS)
@for_each("rule", RULES)
@for_each("k", [1, 2])
def test_published_runs_keep_epsilon_and_delta(monkeypatch, rule, k):
    """Each of three candidates is at the end of its epsilon, in either direction."""
    each = one_shot_top_k_epsilon_each(k=k, candidates=3, epsilon=1.0, delta=1e-2)
    low = np.array([0.1, 0.2, 0.1, 0.6])
    high = low * [math.exp(each), 1.0, math.exp(-each), 1.0]
    high[3] += 1 - high.sum()
    assert (np.abs(np.log(high / low)) <= each + 1e-12).all()
    monkeypatch.setattr(top_k, "one_shot_top_k_epsilon_each", lambda **_: each)  # asked thousands of times
    for moved in itertools.product([False, True], repeat=3):
        here = published_law(monkeypatch, [high if up else low for up in moved], k, **RULES[rule])
        there = published_law(monkeypatch, [low if up else high for up in moved], k, **RULES[rule])
        assert delta_at(1.0, here, there) <= 1e-2


def test_every_candidate_is_run_once_with_the_epsilon_of_its_share():
    ran = []

    def algorithm(candidate, epsilon):
        ran.append((candidate, epsilon))
        return candidate.upper(), float(len(candidate))

    best = one_shot_top_k(["a", "bbb", "cc"], 2, algorithm=algorithm, **PUBLISH)
    each = one_shot_top_k_epsilon_each(k=2, candidates=3, **PUBLISH)
    assert ran == [("a", each), ("bbb", each), ("cc", each)]
    assert best.indices.tolist() == [1, 2]
    assert best.scores.tolist() == [3.0, 2.0]
    assert best.found == ("BBB", "CC")
    assert best.tightest is None


def test_a_rule_sees_the_published_runs_and_nothing_behind_them():
    seen = []

    def stop(best):
        seen.append((best.scores.tolist(), best.found))
        best.scores[:] = -1.0  # its own copy
        return len(best.indices) == 2

    best = one_shot_top_k([3, 1, 2, 0], 4, stop=stop, algorithm=lambda c, _: (c, c), **PUBLISH)
    assert seen == [([3.0], (3,)), ([3.0, 2.0], (3, 2))]
    assert best.scores.tolist() == [3.0, 2.0]
    noisy = one_shot_top_k([1e6, 0.0, 5e5], 3, stop=lambda best: bool(best.scores[-1] < 6e5), **PUBLISH)
    assert noisy.indices.tolist() == [0, 2]


def test_a_score_that_is_no_number_comes_last_and_ties_are_ranked_in_a_drawn_order():
    best = one_shot_top_k([math.nan, -5.0, math.nan], 2, algorithm=lambda c, _: ("x", c), **PUBLISH)
    assert best.indices[0] == 1
    assert best.scores[1] == -math.inf
    tied = {"algorithm": lambda c, _: (c, 0.0)} | PUBLISH
    first = {int(one_shot_top_k(range(4), 1, seed=seed, **tied).indices[0]) for seed in range(60)}
    assert first == {0, 1, 2, 3}


@for_each("wrong", [{"k": 0}, {"k": 4}, {"stop_gap": 0.0}, {"epsilon": 0.0}])
def test_nothing_is_run_where_a_parameter_is_out_of_range(wrong):
    def algorithm(candidate, epsilon):
        raise AssertionError("was run")

    refuses(InputError, "", one_shot_top_k, [1, 2, 3], algorithm=algorithm, **{"k": 1} | PUBLISH | wrong)
