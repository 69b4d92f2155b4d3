"""What a plan promises, and that it says no where it must."""

import math

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples

from reusable_holdout import InputError, Plan, PlanError
from reusable_holdout.accounting import optimal_composition
from reusable_holdout.validity import PLANNED_NATS_PER_CHARGE


@for_each(
    ("rows", "queries", "charges", "most"),
    [(10_000, 1_000, 0, 0.0128), (10_000, 1_000, 10, 0.0375), (1_000, 100, 5, 0.076)],
)
def test_half_widths_are_those_of_the_theory(rows, queries, charges, most):
    plan = Plan(rows=rows, queries=queries, tolerance=0.25)
    width = plan.half_width(query=queries, charges=charges, estimate=0.9)
    assert 0.95 * most < width <= most


def test_the_story_of_the_readme():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    assert plan.charges == 3
    assert 0.0 < plan.threshold < plan.tolerance
    assert plan.delta == 1e-8
    each = 1.0 / 10_000 / plan.noise_scale
    assert plan.epsilon == min(6 * each, optimal_composition(epsilon=each, count=6, delta=1e-8))
    assert plan.privacy_is_vacuous
    assert not plan.vacuous


wishes = st.fixed_dictionaries(
    {
        "rows": st.integers(200, 200_000),
        "queries": st.integers(1, 20_000),
        "charges": st.integers(1, 12),
        "estimate": st.sampled_from([0.5, 0.7, 0.9, 0.99]),
        "confidence": st.sampled_from([0.9, 0.95, 0.999]),
    }
)


def plan_or_none(**wish):
    try:
        return Plan(**wish)
    except PlanError:
        return None


@settings(max_examples=examples(60), deadline=None)
@given(wishes)
def test_inverse_questions_agree(wish):
    wish["queries"] = max(wish["queries"], wish["charges"])
    plan = plan_or_none(**wish)
    if plan is None:
        return
    known = {name: wish[name] for name in ("estimate", "confidence")}
    rows, queries, charges, tolerance = plan.rows, plan.queries, plan.charges, plan.tolerance
    assert Plan(rows=rows, queries=queries, tolerance=tolerance, **known).charges >= charges
    assert Plan(rows=rows, charges=charges, tolerance=tolerance, **known).queries >= queries
    assert Plan(queries=queries, charges=charges, tolerance=tolerance, **known).rows <= rows
    assert Plan(rows=rows, queries=queries, charges=charges, tolerance=tolerance, **known) == plan


@settings(max_examples=examples(40), deadline=None)
@given(wishes)
def test_solutions_are_best_possible(wish):
    wish["queries"] = max(wish["queries"], wish["charges"])
    plan = plan_or_none(**wish)
    if plan is None:
        return
    known = {name: wish[name] for name in ("estimate", "confidence")}
    least = Plan(queries=plan.queries, charges=plan.charges, tolerance=plan.tolerance, **known).rows
    if least > 1:
        too_few = {
            "rows": least - 1,
            "queries": plan.queries,
            "charges": plan.charges,
            "tolerance": plan.tolerance,
        }
        assert plan_or_none(**too_few, **known) is None
    finer = plan.tolerance * 0.985  # tolerances are rounded up to three digits: by 1% at most
    assert (
        plan_or_none(rows=plan.rows, queries=plan.queries, charges=plan.charges, tolerance=finer, **known)
        is None
    )
    most = Plan(rows=plan.rows, queries=plan.queries, tolerance=plan.tolerance, **known).charges
    if most < plan.queries:
        more = {"rows": plan.rows, "queries": plan.queries, "charges": most + 1, "tolerance": plan.tolerance}
        assert plan_or_none(**more, **known) is None


@settings(max_examples=examples(60), deadline=None)
@given(wishes)
def test_an_agreed_answer_is_within_the_tolerance_to_the_last_charge(wish):
    wish["queries"] = max(wish["queries"], wish["charges"])
    plan = plan_or_none(**wish)
    if plan is None:
        return
    certificate = plan.certificate()
    for charges in range(plan.charges):
        nats = PLANNED_NATS_PER_CHARGE * charges
        threshold = plan.threshold_at(charges=charges)
        length = certificate.last_length(charges=charges, nats=nats)
        low, high = certificate.agreed(plan.estimate, threshold, length)
        assert plan.estimate - plan.tolerance - 1e-7 <= low <= plan.estimate <= high
        assert high <= plan.estimate + plan.tolerance + 1e-7


@settings(max_examples=30, deadline=None)
@given(wishes, st.floats(0.1, 1_000.0), st.floats(-50.0, 50.0))
def test_a_plan_scales_with_the_metrics_range(wish, span, lower):
    wish["queries"] = max(wish["queries"], wish["charges"])
    unit = plan_or_none(**wish)
    if unit is None:
        return
    estimate = lower + span * wish.pop("estimate")
    scaled = Plan(**wish, estimate=min(estimate, lower + span), bounds=(lower, lower + span))
    assert scaled.tolerance == pytest.approx(
        unit.tolerance * span, rel=0.02
    )  # each rounded up to three digits
    assert scaled.noise_scale == pytest.approx(unit.noise_scale * span, rel=0.02)


def test_a_stated_threshold_stays_and_the_tolerance_follows():
    plan = Plan(rows=10_000, queries=10_000, charges=50, threshold=0.05, noise_scale=0.001, resolution=0.002)
    assert plan.threshold_at(charges=0) == plan.threshold_at(charges=49) == 0.05
    assert plan.noise_scale == 0.001
    assert plan.tolerance > plan.threshold
    again = Plan(
        rows=10_000,
        queries=10_000,
        tolerance=plan.tolerance,
        threshold=0.05,
        noise_scale=0.001,
        resolution=0.002,
    )
    assert again.charges >= 50


@for_each(
    ("wish", "nearest"),
    [
        ({"rows": 1_000, "queries": 1_000, "tolerance": 0.05}, {"rows", "tolerance"}),
        ({"rows": 1_000, "queries": 1_000, "tolerance": 0.05, "charges": 5}, {"rows", "tolerance"}),
        (
            {"rows": 10_000, "queries": 1_000, "tolerance": 0.05, "charges": 5},
            {"rows", "tolerance", "charges"},
        ),
        ({"rows": 10_000, "queries": 2, "tolerance": 0.05, "charges": 5}, {"queries"}),
    ],
)
def test_an_impossible_wish_names_the_nearest_possible_ones(wish, nearest):
    with pytest.raises(PlanError) as caught:
        Plan(**wish)
    assert set(caught.value.nearest) == nearest
    for name, value in caught.value.nearest.items():
        assert Plan(**{**wish, name: value}).rows
        if name != "queries":
            assert (f"{value:,.0f}" if name != "tolerance" else f"{value:g}") in str(caught.value)


def test_noise_alone_is_predicted_to_charge_what_simulation_charges():
    import numpy as np

    plan = Plan(rows=10_000, queries=2_000, charges=8, threshold=0.02, noise_scale=0.0005, resolution=0.005)
    rng = np.random.default_rng(0)
    runs, scale = 2_000, plan.noise_scale
    counts = np.empty(runs)
    for run in range(runs):
        above = np.abs(rng.normal(0.0, plan.deviation_sd, 2_000)) + rng.laplace(0.0, 4 * scale, 2_000)
        charged, start = 0, 0
        while charged < plan.charges:
            hits = np.flatnonzero(above[start:] >= plan.threshold + rng.laplace(0.0, 2 * scale))
            if not len(hits):
                break
            charged, start = charged + 1, start + int(hits[0]) + 1
        counts[run] = charged
    error = 6.2 * counts.std() / math.sqrt(runs)  # false alarm below 1e-9
    assert abs(counts.mean() - plan.expected_null_charges) < error + 0.01 * plan.expected_null_charges
    assert abs(counts.mean() - 1.3 * plan.expected_null_charges) > error


def test_a_vacuous_promise_says_so():
    plan = Plan(rows=10, queries=1_000, charges=3)
    assert plan.vacuous
    assert "VACUOUS" in str(plan)
    assert "VACUOUS" not in str(Plan(rows=10_000, queries=1_000, tolerance=0.05))


def test_a_private_plan_is_not_called_vacuous():
    plan = Plan(rows=1_000_000, queries=100, charges=2, threshold=0.05, noise_scale=0.0005)
    assert plan.epsilon < 0.01
    assert "vacuous" not in str(plan)


def test_no_noise_is_no_privacy_and_still_a_plan():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, noise_scale=0.0)
    assert plan.epsilon == math.inf
    assert "vacuous" in str(plan)


def test_a_plan_prints_what_holds_and_what_else_the_rows_would_give():
    text = str(Plan(rows=10_000, queries=1_000, tolerance=0.05))
    for words in (
        "transcript code",
        "0.05",
        "fixed queries",
        "a fresh share per query",
        "naive reuse",
        "halts after",
    ):
        assert words in text


def test_a_record_gives_the_same_plan():
    import json

    for wish in ({"tolerance": 0.05}, {"charges": 5, "threshold": 0.04}):
        plan = Plan(rows=10_000, queries=1_000, **wish)
        again = Plan.from_record(json.loads(json.dumps(plan.record())))
        assert again == plan
        assert again.certificate() == plan.certificate()


NAN, INF = math.nan, math.inf


@for_each(
    "wrong",
    [
        {"rows": 0},
        {"rows": -5},
        {"rows": 1.5},
        {"rows": "many"},
        {"rows": True},
        {"rows": 10**13},
        {"queries": 0},
        {"queries": NAN},
        {"charges": -1},
        {"charges": 2.0},
        {"tolerance": 0.0},
        {"tolerance": -0.1},
        {"tolerance": NAN},
        {"tolerance": INF},
        {"tolerance": "0.05"},
        {"threshold": 0.0},
        {"noise_scale": -1.0},
        {"noise_scale": INF},
        {"resolution": 0.0},
        {"confidence": 0.0},
        {"confidence": 1.0},
        {"confidence": 95},
        {"estimate": 1.1},
        {"estimate": NAN},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"bounds": (1.0, 0.0)},
        {"bounds": (0.0, INF)},
        {"bounds": 1.0},
        {"family": "normal"},
        {"influence": 0.0},
        {"variation": -1.0},
    ],
    ids=str,
)
def test_numbers_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Plan(**{"rows": 10_000, "queries": 1_000, "tolerance": 0.05, **wrong})


@pytest.mark.parametrize("given", [{}, {"rows": 100}, {"rows": 100, "queries": 10}])
def test_too_few_numbers_are_refused(given):
    with pytest.raises(InputError, match="give three of"):
        Plan(**given)


@for_each("wrong", [{"query": 0}, {"query": 1_001}, {"charges": -1}, {"charges": 1_000}, {"estimate": 2}])
def test_a_half_width_outside_the_plan_is_refused(wrong):
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05)
    with pytest.raises(InputError):
        plan.half_width(**{"query": 1_000, "charges": 0, "estimate": 0.9, **wrong})


@pytest.mark.parametrize(("tolerance", "published"), [(0.05, 6_279), (0.01, 156_956)])
def test_a_release_gate_of_32_steps_needs_fewer_rows_than_published(tolerance, published):
    """Renggli et al. (2019), fully adaptive, reliability 0.9999; all 32 answers may be "yes"."""
    wish = {"queries": 32, "charges": 32, "confidence": 0.9999, "policy": "gate", "mechanism": "noiseless"}
    assert Plan(**wish, tolerance=tolerance).rows < published
    expected = Plan(**wish, tolerance=tolerance, estimate=0.9).rows
    assert expected < 0.5 * published


def test_a_gate_has_no_threshold():
    plan = Plan(queries=32, charges=4, tolerance=0.05, policy="gate")
    assert plan.threshold == 0.0
    assert Plan.from_record(plan.record()) == plan
    with pytest.raises(InputError, match="no threshold"):
        Plan(rows=1_000, queries=32, charges=4, policy="gate", threshold=0.1)
