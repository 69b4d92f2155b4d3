"""Which selection is tightest, and the one that is used."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    SelectionNoise,
    compare_selections,
    exponential_top,
    joint_exponential_top,
    noisy_top_k_gaps,
    one_shot_top_k,
    permute_and_flip_top,
    select_then_measure,
    select_top,
)
from reusable_holdout.mechanisms.accounting import (
    bounded_range_epsilon_each,
    one_shot_top_k_epsilon_each,
    optimal_epsilon_each,
)
from reusable_holdout.mechanisms.selection import tightest
from reusable_holdout.mechanisms.selection.comparison import tightest_selection
from reusable_holdout.mechanisms.selection.lead import needed_lead

SD = {"gumbel": math.pi / math.sqrt(6), "laplace": math.sqrt(2), "exponential": 1.0}


def named(
    count: int,
    *,
    delta: float = 1e-6,
    answers: bool = False,
    monotonic: bool = False,
    sensitivity: float = 1.0,
) -> dict[str, SelectionNoise]:
    rows = compare_selections(
        epsilon=1.0,
        delta=delta,
        count=count,
        candidates=1000,
        sensitivity=sensitivity,
        answers=answers,
        monotonic=monotonic,
    )
    return {row.selection: row for row in rows}


def test_rows_are_sorted_have_the_deviation_of_their_noise_and_scale_with_the_sensitivity() -> None:
    one, three = named(8, answers=True), named(8, answers=True, sensitivity=3.0)
    assert list(one) == list(three)
    assert len(one) == 5
    *noisy, last = one.values()
    assert [row.sd for row in noisy] == sorted(row.sd for row in noisy)
    assert last.selection == "joint_exponential_top"
    assert math.isnan(last.sd)
    for name, row in one.items():
        assert row.noise == "joint" or row.sd == pytest.approx(SD[row.noise] * row.scale)
        assert three[name].scale == pytest.approx(3 * row.scale)
        assert three[name].lead == pytest.approx(3 * row.lead)
        assert three[name].answer == pytest.approx(3 * row.answer)


@pytest.mark.long(*MECHANISMS)
@for_each("answers", [False, True])
@for_each("monotonic", [False, True])
@for_each(("count", "delta"), [(1, 0.0), (3, 1e-4), (8, 1e-4)])
def test_every_row_is_the_noise_of_the_selection_that_it_names(
    count: int, delta: float, monotonic: bool, answers: bool
) -> None:
    n, epsilon, sensitivity, beta = 8, 0.7, 3.0, 0.01
    share, factor = (0.5 if answers else 1.0), (1 if monotonic else 2)
    part: dict[str, Any] = {"epsilon": epsilon * share, "count": count, "delta": delta * share}
    shot = 1 / one_shot_top_k_epsilon_each(k=count, candidates=n, epsilon=epsilon, delta=delta)
    wanted = {
        "exponential_top": ("gumbel", factor / bounded_range_epsilon_each(**part)),
        "permute_and_flip_top": ("exponential", factor / optimal_epsilon_each(**part)),
        "noisy_top_k_gaps": ("laplace", factor * count / (epsilon * share)),
        "one_shot_top_k": ("laplace", shot),
        "joint_exponential_top": ("joint", factor * min(count, 2) / (epsilon * share)),
    }
    if count == n:
        del wanted["noisy_top_k_gaps"]
    measured = 1 / optimal_epsilon_each(**part) if answers else 0.0
    rows = compare_selections(
        epsilon=epsilon,
        delta=delta,
        count=count,
        candidates=n,
        sensitivity=sensitivity,
        answers=answers,
        monotonic=monotonic,
        beta=beta,
    )
    assert {row.selection for row in rows} == set(wanted)
    for row in rows:
        noise, scale = wanted[row.selection]
        told = shot * answers if row.selection == "one_shot_top_k" else measured
        lead = needed_lead(noise, count=count, candidates=n, beta=beta)
        exact = [scale, SD.get(noise, math.nan) * scale, lead * scale, told]
        assert row.noise == noise
        assert [row.scale, row.sd, row.lead, row.answer] == pytest.approx(
            [sensitivity * value for value in exact], rel=1e-12, nan_ok=True
        )
    first = tightest_selection(
        epsilon=epsilon, delta=delta, count=count, candidates=n, answers=answers, monotonic=monotonic
    )
    assert first == rows[0].selection


@pytest.mark.long(*MECHANISMS)
def test_the_exponential_mechanism_is_tightest_with_a_delta_from_seven_rounds_on() -> None:
    first = {count: next(iter(named(count))) for count in (1, 5, 6, 7, 8, 300)}
    assert [count for count, name in first.items() if name == "exponential_top"] == [7, 8, 300]
    assert {name for count, name in first.items() if count < 7} == {"permute_and_flip_top"}


@for_each("count", [1, 7, 300])
def test_without_delta_rounds_of_permute_and_flip_are(count: int) -> None:
    rows = named(count, delta=0.0)
    assert next(iter(rows)) == "permute_and_flip_top"
    assert rows["permute_and_flip_top"].scale == pytest.approx(2 * count)
    assert rows["exponential_top"].scale == pytest.approx(2 * count)
    assert rows["noisy_top_k_gaps"].scale == pytest.approx(2 * count)


def test_one_score_is_better_selected_first_than_in_one_shot() -> None:
    rows = named(1, answers=True)
    best = next(iter(rows.values()))
    assert (best.scale, best.answer) == (pytest.approx(4, rel=1e-4), pytest.approx(2, rel=1e-4))
    assert rows["one_shot_top_k"].scale == rows["one_shot_top_k"].answer == pytest.approx(32.1, abs=0.1)


def test_monotonic_scores_halve_all_noises_but_the_one_shots() -> None:
    plain, half = named(9), named(9, monotonic=True)
    for name, row in plain.items():
        factor = 1.0 if name == "one_shot_top_k" else 0.5
        assert half[name].scale == pytest.approx(factor * row.scale)


def test_gaps_need_a_candidate_that_is_left() -> None:
    rows = compare_selections(epsilon=1.0, delta=0.0, count=3, candidates=3)
    assert "noisy_top_k_gaps" not in {row.selection for row in rows}


@for_each(
    "bad",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"delta": math.nan},
        {"count": 0},
        {"count": 6},
        {"sensitivity": 0.0},
        {"sensitivity": math.inf},
        {"beta": 0.0},
        {"beta": 1.0},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        compare_selections(**({"epsilon": 1.0, "delta": 1e-6, "count": 3, "candidates": 5} | bad))  # type: ignore[arg-type]


def test_what_is_named_is_used() -> None:
    scores, budget = np.arange(40.0), {"epsilon": 1.0, "delta": 1e-4, "sensitivity": 2.0, "seed": 3}
    pure = {"epsilon": 1.0, "sensitivity": 2.0, "seed": 3}
    for monotonic in (False, True):
        wanted = {
            "exponential_top": exponential_top(scores, 9, monotonic=monotonic, **budget),
            "permute_and_flip_top": permute_and_flip_top(scores, 9, monotonic=monotonic, **budget),
            "noisy_top_k_gaps": noisy_top_k_gaps(scores, 9, monotonic=monotonic, **pure).indices,
            "one_shot_top_k": one_shot_top_k(scores, 9, **budget).indices,
            "joint_exponential_top": joint_exponential_top(scores, 9, monotonic=monotonic, **pure),
        }
        for name, indices in wanted.items():
            found = select_top(scores, 9, monotonic=monotonic, mechanism=name, **budget)  # type: ignore[arg-type]
            assert found.tolist() == indices.tolist()


@for_each("delta", [0.0, 1e-6])
@for_each("monotonic", [False, True])
def test_the_tightest_is_the_first_of_the_comparison(
    monotonic: bool, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (2, 30):
        best = compare_selections(
            epsilon=1.0, delta=delta, count=count, candidates=50, sensitivity=2.0, monotonic=monotonic
        )[0].selection
        with monkeypatch.context() as patch:
            patch.setattr(tightest, best, lambda *a, **k: np.array([-1]))
            found = select_top(
                np.zeros(50), count, epsilon=1.0, delta=delta, sensitivity=2.0, monotonic=monotonic
            )
        assert found.tolist() == [-1]


def test_the_joint_choice_has_the_smallest_lead_of_pure_selections_of_many_and_is_none_of_the_tightest() -> (
    None
):
    for count, best in [
        (1, "permute_and_flip_top"),
        (30, "joint_exponential_top"),
        (300, "joint_exponential_top"),
    ]:
        rows = named(count, delta=0.0)
        assert min(rows.values(), key=lambda row: row.lead).selection == best
        assert next(iter(rows)) != "joint_exponential_top"
    assert named(30)["joint_exponential_top"].scale == named(30, delta=0.0)["joint_exponential_top"].scale
    one, two = (named(count)["joint_exponential_top"].scale for count in (1, 2))
    assert (one, two) == (2.0, 4.0)


def found(noise: str, lead: float, count: int, candidates: int) -> float:
    """Chance that all of the best are found, by an integral over the deciding noise of one of them."""
    others = candidates - count
    with mpmath.workdps(20):
        if noise == "joint":
            return 1 / (1 + (math.comb(candidates, count) - 1) * math.exp(-lead))
        if noise == "laplace":

            def above(x: float) -> float:
                return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2

            def density(x: float) -> float:
                smallest = count * above(x) ** (count - 1) * mpmath.exp(-abs(x)) / 2
                return smallest * (1 - above(x + lead)) ** others

            return float(mpmath.quad(density, [-60, -20, -10, -lead, -5, -1, 0, 1, 10, 60]))
        total = mpmath.mpf(1)
        for left in range(1, count + 1):
            if noise == "gumbel":
                theta = others * mpmath.exp(-lead)
                total *= mpmath.quad(
                    lambda t, i=left, th=theta: i * mpmath.exp(-(i + th) * t), [0, 1, 10, mpmath.inf]
                )
            else:
                total *= mpmath.quad(
                    lambda x, i=left: i * mpmath.exp(-x) * (1 - mpmath.exp(-x)) ** (i - 1)
                    * (1 - mpmath.exp(-x - lead)) ** others,
                    [0, 1, 3, 10, 40],
                )  # fmt: skip
        return float(total)


@pytest.mark.long(*MECHANISMS)
@for_each("noise", ["gumbel", "exponential", "laplace", "joint"])
@for_each(("count", "candidates", "beta"), [(1, 2, 0.2), (4, 30, 0.05), (9, 1000, 0.01)])
def test_the_lead_is_that_at_which_all_of_the_best_are_found(
    noise: str, count: int, candidates: int, beta: float
) -> None:
    lead = needed_lead(noise, count=count, candidates=candidates, beta=beta)
    assert found(noise, lead, count, candidates) == pytest.approx(1 - beta, abs=2e-4 * beta)
    assert needed_lead(noise, count=count, candidates=count, beta=beta) == 0.0


def test_where_one_shot_is_not_the_tightest_it_says_so() -> None:
    scores = np.arange(1000.0)
    few = one_shot_top_k(scores, 1, epsilon=1.0, delta=1e-6, seed=0)
    many = one_shot_top_k(scores, 60, epsilon=1.0, delta=1e-6, seed=0, stop_gap=1e9)
    for best, count in [(few, 1), (many, 60)]:
        rows = compare_selections(epsilon=1.0, delta=1e-6, count=count, candidates=1000, answers=True)
        assert best.tightest == rows[0].selection
    assert few.tightest == "permute_and_flip_top"
    assert one_shot_top_k([1.0], 1, epsilon=1.0, algorithm=lambda *_: ("", 0.0)).tightest is None


@pytest.mark.long(*MECHANISMS)
@for_each(("count", "delta"), [(1, 0.0), (1, 1e-6), (20, 1e-6)])
def test_selected_first_and_measured_then_scores_have_the_noise_of_the_comparison(
    count: int, delta: float
) -> None:
    """Scores far apart, so that the best are chosen for certain: what is left is the noise of the answers."""
    scores = np.arange(40.0) * 1e6
    row = compare_selections(
        epsilon=1.0, delta=delta, count=count, candidates=40, sensitivity=2.0, answers=True
    )[0]
    noises = []
    for seed in range(300 // count):
        best = select_then_measure(scores, count, epsilon=1.0, delta=delta, sensitivity=2.0, seed=seed)
        assert best.indices.tolist() == list(range(39, 39 - count, -1))
        assert best.tightest == ("one_shot_top_k" if row.selection == "one_shot_top_k" else None)
        noises.extend(best.scores - scores[best.indices])
    standard = np.abs(noises) / row.answer  # exponential of mean 1: the sum is a gamma variable
    low, high = stats.gamma.ppf([1e-9, 1 - 1e-9], len(standard))
    assert low <= standard.sum() <= high
    assert not low <= 1.8 * standard.sum() <= high


def test_one_shot_by_name_measures_what_it_compared() -> None:
    scores, how = np.arange(9.0), {"epsilon": 1.0, "delta": 1e-4, "seed": 5}
    named_, own = (
        select_then_measure(scores, 3, mechanism="one_shot_top_k", **how),
        one_shot_top_k(scores, 3, **how),
    )  # type: ignore[arg-type]
    assert named_.scores.tolist() == own.scores.tolist()
    with pytest.raises(InputError, match="mechanism"):
        select_then_measure(scores, 3, mechanism="best", **how)  # type: ignore[arg-type]
