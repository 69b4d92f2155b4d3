"""The selection that is tightest, and the one that is run."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms import accounting
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.selection import tightest
from reusable_holdout.noise import DiscreteLaplace

SD = {"gumbel": math.pi / math.sqrt(6), "laplace": math.sqrt(2), "exponential": 1.0}


def rows_of(count, **how):
    rows = mechanisms.compare_selections(
        **({"epsilon": 1.0, "delta": 1e-6, "count": count, "candidates": 1000} | how)
    )
    return {row.selection: row for row in rows}


@pytest.mark.long(*MECHANISMS)
@for_each("answers", [False, True])
@for_each("monotonic", [False, True])
@for_each(("count", "delta"), [(1, 0.0), (3, 1e-4), (8, 1e-4)])
def test_every_row_is_the_noise_of_the_selection_that_it_names(count, delta, monotonic, answers):
    epsilon, sensitivity = 0.7, 3.0
    share, factor = (0.5 if answers else 1.0), (1 if monotonic else 2)
    part = {"epsilon": epsilon * share, "count": count, "delta": delta * share}
    shot = 1 / accounting.one_shot_top_k_epsilon_each(k=count, candidates=8, epsilon=epsilon, delta=delta)
    wanted = {
        "exponential_top": ("gumbel", factor / accounting.bounded_range_epsilon_each(**part)),
        "permute_and_flip_top": ("exponential", factor / accounting.optimal_epsilon_each(**part)),
        "noisy_top_k_gaps": ("laplace", factor * count / (epsilon * share)),
        "one_shot_top_k": ("laplace", shot),
    }
    if count == 8:  # a gap needs a candidate that is left
        del wanted["noisy_top_k_gaps"]
    how = {"epsilon": epsilon, "delta": delta, "answers": answers, "monotonic": monotonic}
    rows = rows_of(count, candidates=8, sensitivity=sensitivity, **how)
    assert rows.keys() == wanted.keys()
    assert [row.sd for row in rows.values()] == sorted(row.sd for row in rows.values())
    measured = 1 / accounting.optimal_epsilon_each(**part) if answers else 0.0
    for name, row in rows.items():
        noise, scale = wanted[name]
        told = shot * answers if name == "one_shot_top_k" else measured
        assert row.noise == noise
        exact = [sensitivity * value for value in (scale, SD[noise] * scale, told)]
        assert [row.scale, row.sd, row.answer] == pytest.approx(exact, rel=1e-12)


@pytest.mark.long(*MECHANISMS)
def test_the_exponential_mechanism_is_tightest_with_a_delta_from_seven_rounds_on():
    first = {count: next(iter(rows_of(count))) for count in (1, 5, 6, 7, 8, 300)}
    assert [count for count, name in first.items() if name == "exponential_top"] == [7, 8, 300]
    assert {name for count, name in first.items() if count < 7} == {"permute_and_flip_top"}
    for count in (1, 7, 300):
        assert next(iter(rows_of(count, delta=0.0))) == "permute_and_flip_top"


def test_one_score_is_better_selected_first_than_in_one_shot():
    rows = rows_of(1, answers=True)
    best = next(iter(rows.values()))
    assert (best.scale, best.answer) == (pytest.approx(4, rel=1e-4), pytest.approx(2, rel=1e-4))
    assert rows["one_shot_top_k"].scale == rows["one_shot_top_k"].answer == pytest.approx(32.1, abs=0.1)


def test_a_named_selection_is_run():
    scores, budget = np.arange(40.0), {"epsilon": 1.0, "delta": 1e-4, "sensitivity": 2.0, "seed": 3}
    pure = {"epsilon": 1.0, "sensitivity": 2.0, "seed": 3}
    for monotonic in (False, True):
        wanted = {
            "exponential_top": mechanisms.exponential_top(scores, 9, monotonic=monotonic, **budget),
            "permute_and_flip_top": mechanisms.permute_and_flip_top(scores, 9, monotonic=monotonic, **budget),
            "noisy_top_k_gaps": mechanisms.noisy_top_k_gaps(scores, 9, monotonic=monotonic, **pure).indices,
            "one_shot_top_k": mechanisms.one_shot_top_k(scores, 9, **budget).indices,
        }
        for name, indices in wanted.items():
            found = mechanisms.select_top(scores, 9, monotonic=monotonic, mechanism=name, **budget)
            assert found.tolist() == indices.tolist()
    shot = [
        mechanisms.select_then_measure(scores, 3, mechanism="one_shot_top_k", **budget),
        mechanisms.one_shot_top_k(scores, 3, **budget),
    ]
    assert shot[0].scores.tolist() == shot[1].scores.tolist()


@for_each("delta", [0.0, 1e-6])
@for_each("monotonic", [False, True])
@for_each("count", [2, 30])
def test_the_tightest_is_the_first_of_the_comparison(monotonic, delta, count, monkeypatch):
    how = {"epsilon": 1.0, "delta": delta, "sensitivity": 2.0, "monotonic": monotonic}
    best = mechanisms.compare_selections(count=count, candidates=50, **how)[0].selection
    monkeypatch.setattr(tightest, best, lambda *a, **k: np.array([-1]))
    assert mechanisms.select_top(np.zeros(50), count, **how).tolist() == [-1]
    measured = mechanisms.compare_selections(count=count, candidates=50, answers=True, **how)[0].selection
    asked = []
    monkeypatch.setattr(
        tightest, "select_top", lambda *_, mechanism, **how: asked.append(mechanism) or np.arange(count)
    )
    mechanisms.select_then_measure(np.zeros(50), count, **how)
    assert asked == ([] if measured == "one_shot_top_k" else [measured])


def test_a_one_shot_selection_names_the_tightest():
    scores = np.arange(1000.0)
    for count, gap in ((1, None), (60, 1e9)):
        best = mechanisms.one_shot_top_k(scores, count, epsilon=1.0, delta=1e-6, seed=0, stop_gap=gap)
        assert best.tightest == next(iter(rows_of(count, answers=True)))


@for_each("monotonic", [False, True])
@for_each(("epsilon", "delta", "sensitivity"), [(1.0, 0.0, 1.0), (3.0, 1e-4, 0.3)])
@for_each("seed", [None, 5])
def test_half_of_the_budget_chooses_and_half_of_it_measures(
    epsilon, delta, sensitivity, monotonic, seed, monkeypatch
):
    asked, laws = [], []

    def choose(scores, count, **how):
        asked.append({"scores": list(scores), "count": count} | how)
        return np.array([2, 0])

    monkeypatch.setattr(tightest, "select_top", choose)
    monkeypatch.setattr(tightest, "draw_noise", lambda law, *_: laws.append(law) or np.array([7, -20]))
    grid = Grid.of(sensitivity)
    wish = {"sensitivity": sensitivity, "monotonic": monotonic, "mechanism": "exponential_top"}
    scores = [3 * grid.step, 4 * grid.step, 900 * grid.step]
    best = mechanisms.select_then_measure(scores, 2, epsilon=epsilon, delta=delta, seed=seed, **wish)
    assert best.indices.tolist() == [2, 0]
    assert best.scores.tolist() == [907 * grid.step, -17 * grid.step]
    assert best.tightest is None
    each = accounting.optimal_epsilon_each(epsilon=epsilon / 2, count=2, delta=delta / 2)
    assert laws == [DiscreteLaplace(grid.sensitivity / Fraction(each))]
    own = (
        None if seed is None else mechanisms.RandomWords(seed).below(2**62)
    )  # the choice has a seed of its own
    halves = {"epsilon": epsilon / 2, "delta": delta / 2, "seed": own}
    assert asked == [{"scores": scores, "count": 2} | wish | halves]
