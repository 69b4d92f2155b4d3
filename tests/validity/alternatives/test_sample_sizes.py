"""Sample sizes of release gates: ease.ml/ci's figures, the smaller ones, and that these keep the same promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import VALIDITY
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.validity.alternatives.sample_sizes import (
    bennett_rows,
    difference_rows,
    gate_rows,
    histories,
    hoeffding_rows,
    interval_rows,
    paired_gate_rows,
)

EASE = {"steps": 32, "beta": 1e-4}


# ---- published


def test_ease_mls_sample_sizes_for_one_accuracy():
    rows = {
        (e, p): hoeffding_rows(error=e, passes=p, **EASE)
        for e, p in itertools.product((0.05, 0.01), (1, None))
    }
    assert rows == {(0.05, 1): 2536, (0.05, None): 6279, (0.01, 1): 63_381, (0.01, None): 156_956}


def test_ease_mls_sample_sizes_for_two_models_that_differ_on_a_tenth_of_the_rows():
    rows = [bennett_rows(error=0.01, disagreement=0.1, passes=p, **EASE) for p in (1, None)]
    assert [number // 1000 for number in rows] == [29, 67]  # printed as 29K and 67K


def test_every_developers_history_is_counted():
    for steps, passes in itertools.product(range(1, 9), [None, *range(1, 10)]):
        most = steps if passes is None else passes
        before = [bits for length in range(steps) for bits in itertools.product((0, 1), repeat=length)]
        assert histories(steps=steps, passes=passes) == sum(sum(bits) < most for bits in before)


# ---- ours are smaller, and keep the promise


@pytest.mark.long(*VALIDITY)
@for_each("passes", [1, 3, None])
@for_each("error", [0.05, 0.02, 0.01])
def test_ours_are_smaller_in_every_case(error, passes):
    asked = {"error": error, "passes": passes, **EASE}
    assert interval_rows(**asked) < 0.95 * hoeffding_rows(**asked)
    assert gate_rows(bar=0.5, **asked) <= interval_rows(**asked)
    assert gate_rows(bar=0.9, **asked) < 0.4 * hoeffding_rows(**asked)
    assert gate_rows(bar=0.9, **asked) < gate_rows(bar=0.9, family="bounded", **asked)
    assert gate_rows(bar=0.9, family="bounded", **asked) < 0.4 * hoeffding_rows(**asked)
    pair = {**asked, "disagreement": 0.1}
    assert difference_rows(**{**pair, "beta": EASE["beta"] / 2.0}) < bennett_rows(**pair)
    assert paired_gate_rows(**pair) < 0.9 * bennett_rows(**pair)


def test_the_rows_of_ease_ml_at_a_tenth_disagreement_are_beaten():
    pair = {"error": 0.01, "disagreement": 0.1, **EASE}
    assert paired_gate_rows(passes=1, **pair) < 21_000 < 29_000
    assert paired_gate_rows(passes=None, **pair) < 57_000 < 67_000


@for_each(("error", "steps", "beta"), [(0.2, 3, 0.1), (0.1, 5, 0.01), (0.05, 2, 0.2)])
def test_interval_rows_keep_the_promise_at_every_accuracy_and_one_row_fewer_does_not(error, steps, beta):
    level = beta / histories(steps=steps)

    def worst(rows):
        # the chance of a score that is too high jumps where another count becomes too high: look just there
        counts = np.arange(math.floor(rows * error) + 1, rows + 1)
        return float(np.max(stats.binom.sf(counts - 1, rows, counts / rows - error)))

    rows = interval_rows(error=error, steps=steps, beta=beta)
    assert worst(rows) <= level < worst(rows - 1)
    for accuracy in np.linspace(0.0, 1.0 - error, 400):
        count = math.ceil(rows * (accuracy + error) - 1e-9)
        assert stats.binom.sf(count - 1, rows, accuracy) <= level * (1.0 + 1e-9)


@for_each("bar", [0.2, 0.5, 0.9])
def test_gate_rows_keep_the_promise_with_any_more_rows_and_for_any_worse_model(bar):
    level = 0.01 / histories(steps=4)
    rows = gate_rows(bar=bar, error=0.08, steps=4, beta=0.01)
    for more, worse in itertools.product(range(60), (0.0, 0.01, 0.1)):
        count = math.ceil((rows + more) * (bar + 0.08) - 1e-9)
        assert stats.binom.sf(count - 1, rows + more, bar - worse) <= level
    fewer = round(0.9 * rows)
    assert stats.binom.sf(math.floor(fewer * (bar + 0.08)) - 1, fewer, bar) > level


def test_bounded_gate_rows_are_chernoffs():
    rows = gate_rows(bar=0.7, error=0.1, steps=1, beta=0.05, family="bounded")
    kl = 0.8 * math.log(0.8 / 0.7) + 0.2 * math.log(0.2 / 0.3)
    assert rows == math.ceil(math.log(20.0) / kl)


def trinomial_tail(rows, wins, losses, least):
    """P(wins - losses >= least) of so many rows, by adding up the number of rows that differ."""
    differ = np.arange(rows + 1)
    weight = stats.binom.pmf(differ, rows, wins + losses)
    need = np.ceil((differ + least) / 2.0 - 1e-9)
    return float(np.sum(weight * stats.binom.sf(need - 1, differ, wins / (wins + losses))))


@for_each("disagreement", [0.1, 0.4, 1.0])
def test_difference_rows_keep_the_promise_at_every_mean(disagreement):
    beta, error = 0.05, 0.07
    rows = difference_rows(error=error, disagreement=disagreement, steps=3, beta=beta)
    level = beta / (2.0 * histories(steps=3))
    for share, tilt in itertools.product((0.25, 0.5, 1.0), np.linspace(0.001, 0.999, 25)):
        wins, losses = disagreement * share * tilt, disagreement * share * (1.0 - tilt)
        least = rows * (wins - losses + error)
        assert trinomial_tail(rows, wins, losses, least) <= level


@for_each("disagreement", [0.1, 0.3, 1.0])
def test_paired_gate_rows_are_enough_at_every_smaller_disagreement(disagreement):
    error, beta = 0.06, 0.05
    level = beta / histories(steps=4)
    rows = paired_gate_rows(error=error, disagreement=disagreement, steps=4, beta=beta)
    differ = np.arange(math.ceil(rows * error), math.floor(rows * disagreement) + 1)
    wins = np.ceil((differ + rows * error) / 2.0 - 1e-9)  # the smallest whole lead of at least rows * error
    assert np.all(stats.binom.sf(wins - 1, differ, 0.5) <= level)


def test_no_better_model_passes_the_paired_gate_more_often_than_it_may():
    # the gate itself, exactly: pass if the sign test says so, whatever the disagreement
    rows, level = 60, 0.01
    for disagreement in (0.05, 0.3, 0.8, 1.0):
        differ = np.arange(rows + 1)
        wins = stats.binom.isf(level, differ, 0.5) + 1.0
        wins = np.where(stats.binom.sf(wins - 2.0, differ, 0.5) <= level, wins - 1.0, wins)
        passes = stats.binom.sf(wins - 1.0, differ, 0.5)
        assert float(np.sum(stats.binom.pmf(differ, rows, disagreement) * passes)) <= level


# ---- algebra, limits, refusals

SIZES = [
    hoeffding_rows,
    interval_rows,
    lambda **asked: gate_rows(bar=0.7, **asked),
    lambda **asked: gate_rows(bar=0.7, family="bounded", **asked),
    lambda **asked: bennett_rows(disagreement=0.5, **asked),
    lambda **asked: difference_rows(disagreement=0.5, **asked),
    lambda **asked: paired_gate_rows(disagreement=0.5, **asked),
]


@for_each("size", SIZES)
def test_more_steps_passes_and_reliability_and_smaller_errors_need_more_rows(size):
    usual = {"error": 0.05, "steps": 8, "beta": 0.01}
    for name, easier_first in (
        ("steps", [1, 2, 8, 40]),
        ("passes", [1, 2, 5, None]),
        ("beta", [0.3, 0.01, 1e-6]),
        ("error", [0.25, 0.1, 0.05, 0.02]),
    ):
        rows = [size(**{**usual, name: value}) for value in easier_first]
        assert rows == sorted(rows)
        assert rows[0] < rows[-1]


@given(disagreement=st.floats(0.02, 1.0), error=st.floats(0.005, 0.9), steps=st.integers(1, 50))
def test_the_moment_generating_function_never_loses_to_bennett(disagreement, error, steps):
    asked = {"error": error, "disagreement": disagreement, "steps": steps}
    assert difference_rows(**asked, beta=0.005) <= bennett_rows(**asked, beta=0.01)


def test_less_disagreement_needs_fewer_rows():
    for size in (bennett_rows, difference_rows, paired_gate_rows):
        rows = [size(error=0.01, disagreement=p, steps=5, beta=0.01) for p in (0.02, 0.1, 0.5, 1.0)]
        assert rows == sorted(rows)


@for_each("size", SIZES)
@for_each(
    "wrong",
    [
        {"error": 0.0},
        {"error": 1.0},
        {"beta": 0.0},
        {"beta": 1.0},
        {"steps": 0},
        {"passes": 0},
        {"error": math.nan},
    ],
)
def test_numbers_out_of_range_are_refused(size, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        size(**{"error": 0.05, "steps": 8, "beta": 0.01, **wrong})


def test_impossible_gates_are_refused():
    usual = {"steps": 8, "beta": 0.01}
    for wrong in ({"bar": 0.0}, {"bar": 1.0}, {"bar": 0.95}, {"family": "normal"}):
        with pytest.raises(InputError):
            gate_rows(**{"bar": 0.5, "error": 0.05, **usual, **wrong})
    for size in (bennett_rows, difference_rows, paired_gate_rows):
        for disagreement in (0.0, 1.1, math.nan):
            with pytest.raises(InputError, match="disagreement"):
                size(error=0.05, disagreement=disagreement, **usual)
    with pytest.raises(InputError, match="less than disagreement"):
        paired_gate_rows(error=0.1, disagreement=0.1, **usual)
    with pytest.raises(InputError, match="larger error"):
        gate_rows(bar=0.5, error=1e-6, **usual)
