"""Every row of the comparison, beside the formula of its theorem, and the stream that is made of the first row."""

from __future__ import annotations

import math
from typing import Any

import pytest
from cases import for_each
from mechanisms.refusals import BUDGETS

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import compare_mechanisms, tightest_stream
from reusable_holdout.mechanisms.accounting import (
    not_prior_mean,
    not_prior_q,
    optimal_epsilon_each,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.gaussian_sparse_vector import gaussian_sparse_vector_deviations
from reusable_holdout.mechanisms.sparse_vector.reach import tail_of

Scales = tuple[float, float, float]


def standard(epsilon: float, charges: int, answers: float, *, monotonic: bool) -> Scales:
    """One threshold, and the best division of what the answers leave."""
    compared, moved = epsilon - answers, charges if monotonic else 2 * charges
    ratio = moved ** (2 / 3)
    answer = charges / answers if answers else 0.0
    return (1 + ratio) / compared, moved * (1 + ratio) / (ratio * compared), answer


def expected(
    epsilon: float, delta: float, charges: int, *, answers: bool, monotonic: bool
) -> dict[str, Scales]:
    name, part = ("NumericSparse", 8 / 9) if answers else ("Sparse", 1.0)
    share = epsilon / 9 if answers else 0.0

    def sparse(threshold: float, answer: float) -> Scales:
        return threshold, 2 * threshold, answer if answers else 0.0

    basic = 2 * charges / (part * epsilon)
    whole = standard(epsilon, charges, share, monotonic=monotonic)
    rows = {f"{name}, basic composition": sparse(basic, 9 * charges / epsilon)}
    if delta > 0:
        root = math.sqrt(32 * charges * math.log((2 if answers else 1) / delta))
        rows[f"{name}, advanced composition"] = sparse(root / (part * epsilon), 9 * root / (2 * epsilon))
        each = optimal_epsilon_each(epsilon=epsilon, count=charges, delta=delta)
        rows[f"{name}, optimal composition"] = sparse(2 / (part * each), 9 / each)
        restarted = standard(each, 1, each / 9 if answers else 0.0, monotonic=monotonic)
        rows["StandardSVT of one charge, restarted, optimal composition"] = restarted
        rows["StandardSVT of one charge, restarted, exponential noise"] = restarted
        call = target_charging_epsilon_each(
            epsilon=epsilon, delta=delta, charges=charges, q=not_prior_q, mean=not_prior_mean
        )
        rows["target charging"] = 0.0, 1 / call, 1 / call
        if answers:
            released = optimal_epsilon_each(epsilon=share, count=charges, delta=delta)
            whole = (*whole[:2], min(whole[2], 1 / released))
    return rows | {"StandardSVT": whole, "StandardSVT, exponential noise": whole}


@for_each("charges", [1, 3, 40])
@for_each("delta", [0.0, 1e-6])
@for_each("answers", [True, False])
@for_each("monotonic", [True, False])
@for_each("sensitivity", [1.0, 2.5])
def test_every_row_has_the_scales_of_its_theorem(
    charges: int, delta: float, answers: bool, monotonic: bool, sensitivity: float
) -> None:
    rows = compare_mechanisms(
        epsilon=0.4,
        delta=delta,
        charges=charges,
        answers=answers,
        monotonic=monotonic,
        sensitivity=sensitivity,
    )
    wanted = expected(0.4, delta, charges, answers=answers, monotonic=monotonic)
    assert {row.mechanism for row in rows} == set(wanted)
    for row in rows:
        scales = [sensitivity * scale for scale in wanted[row.mechanism]]
        assert [row.threshold, row.query, row.answer] == pytest.approx(scales, rel=1e-8)


@for_each("monotonic", [True, False])
def test_normal_noise_has_the_deviations_of_its_accounting(monotonic: bool) -> None:
    given: dict[str, Any] = {"epsilon": 0.4, "delta": 1e-6, "charges": 3, "queries": 3}
    held, each = gaussian_sparse_vector_deviations(**given, monotonic=monotonic)
    rows = compare_mechanisms(**given, monotonic=monotonic, answers=False, sensitivity=2.5)
    row = next(row for row in rows if row.mechanism == "GaussianSVT")
    assert (row.threshold, row.query, row.answer) == (2.5 * held, 2.5 * each, 0.0)
    assert row.comparison_sd == pytest.approx(2.5 * math.hypot(held, each), rel=1e-14)


def test_a_reach_fails_with_probability_beta_over_all_queries() -> None:
    given: dict[str, Any] = {"epsilon": 0.4, "delta": 1e-6, "charges": 3, "queries": 50, "answers": False}
    rows = compare_mechanisms(**given, beta=0.2)
    for row in rows:
        law: Any = "normal" if row.mechanism == "GaussianSVT" else "laplace"
        law = "exponential" if "exponential" in row.mechanism else law
        assert 50 * tail_of(law, row.threshold, row.query, row.reach) == pytest.approx(0.2, rel=1e-9)
    assert compare_mechanisms(**given) == compare_mechanisms(**given, beta=0.05)
    assert [row.reach for row in rows] == sorted(row.reach for row in rows)


@for_each(
    ("bad", "told"),
    [
        *BUDGETS,
        ({"delta": -0.1}, "delta lies in [0, 1); got -0.1"),
        ({"delta": math.nan}, "delta lies in [0, 1); got nan"),
        ({"sensitivity": 0.0}, "a sensitivity is a positive finite number; got 0.0"),
        ({"sensitivity": math.inf}, "a sensitivity is a positive finite number; got inf"),
        ({"queries": 0}, "queries is at least 1 and beta lies in (0, 1); got queries 0, beta 0.05"),
        ({"beta": 1.0, "queries": None}, "beta 1.0"),
        # What is asked first is told first.
        ({"epsilon": 0.0, "sensitivity": 0.0}, "epsilon"),
        ({"sensitivity": 0.0, "beta": 0.0}, "sensitivity"),
    ],
)
@for_each("answers", [True, False])
def test_what_is_out_of_range_is_refused_in_its_own_terms(
    bad: dict[str, Any], told: str, answers: bool
) -> None:
    given = {"epsilon": 1.0, "delta": 1e-6, "charges": 3, "queries": 5, "answers": answers} | bad
    with pytest.raises(InputError) as caught:
        compare_mechanisms(**given)
    assert told in str(caught.value)


def test_one_query_is_enough() -> None:
    rows = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=1, queries=1, answers=False)
    assert all(row.reach > 0 for row in rows)


@for_each(
    ("name", "wish"),
    [
        ("StandardSVT", {"charges": 1}),
        ("StandardSVT", {"charges": 2, "delta": 1e-6, "queries": 9}),
        ("ConditionalStream", {"charges": 300, "delta": 1e-6}),
        ("GaussianSVT", {"charges": 30, "delta": 1e-6, "queries": 3}),
        ("Sparse", {"charges": 1, "delta": 1e-6, "monotonic": True}),
    ],
)
def test_the_tightest_stream_is_the_first_row(name: str, wish: dict[str, Any]) -> None:
    given = {"epsilon": 0.7, "delta": 0.0} | wish
    best, *others = compare_mechanisms(**given, answers=False, sensitivity=3.0)
    stream = tightest_stream(5.0, **given, sensitivity=3.0, seed=1)
    assert type(stream).__name__ == name in best.runs
    assert others
    scales = stream.scales
    noise = [float(scale) * stream.step for scale in (scales.threshold, scales.query)]
    assert noise == pytest.approx([best.threshold, best.query], rel=1e-4)
    assert stream.charges_left == given["charges"]


def test_a_stream_of_what_is_not_said_has_unit_sensitivity_and_fails_once_in_twenty() -> None:
    """The stream is another one at these parameters if it may fail half as often again."""
    given: dict[str, Any] = {"charges": 15, "epsilon": 0.7, "delta": 1e-6, "queries": 3, "seed": 1}
    unsaid, said, other = (
        tightest_stream(0.0, **given, **how)
        for how in ({}, {"sensitivity": 1.0, "beta": 0.05}, {"beta": 0.075})
    )
    assert type(unsaid) is type(said) is not type(other)
    assert (unsaid.scales, unsaid.step) == (said.scales, said.step)
