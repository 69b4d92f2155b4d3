"""What a plan promises, and that it says no where it must."""

import json
import math

import pytest
from cases import for_each, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.mechanisms.accounting import optimal_composition


def without_choices(**wish):
    """Plan of charges alone, and none where there is none."""
    return Plan(**wish, reveals=0, choices=())


@for_each(
    ("rows", "queries", "charges", "most"),
    [(10_000, 1_000, 0, 0.0137), (10_000, 1_000, 10, 0.0389), (1_000, 100, 5, 0.083)],
)
def test_half_widths_are_those_of_the_theory(rows, queries, charges, most):
    plan = Plan(rows=rows, queries=queries, charges=11, tolerance=0.25)
    width = plan.half_width(query=queries, charges=charges, estimate=0.9)
    assert 0.95 * most < width <= most


def test_the_story_of_the_readme():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    assert (plan.charges, plan.reveals, plan.choices) == (1, 0, ())
    assert 0.0 < plan.threshold < plan.tolerance
    assert plan.delta == 1e-8
    each = 1.0 / 10_000 / plan.noise
    told = 2 * plan.charges  # each charge is a comparison and a value
    assert plan.epsilon == min(told * each, optimal_composition(epsilon=each, count=told, delta=1e-8))
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
).map(lambda wish: wish | {"queries": max(wish["queries"], wish["charges"])})


def plan_or_none(**wish):
    try:
        return without_choices(**wish)
    except PlanError:
        return None


@settings(max_examples=examples(60), deadline=None)
@given(wishes)
def test_inverse_questions_agree(wish):
    plan = plan_or_none(**wish)
    if plan is None:
        return
    known = {name: wish[name] for name in ("estimate", "confidence")}
    rows, queries, charges, tolerance = plan.rows, plan.queries, plan.charges, plan.tolerance
    assert without_choices(rows=rows, queries=queries, tolerance=tolerance, **known).charges >= charges
    assert without_choices(rows=rows, charges=charges, tolerance=tolerance, **known).queries >= queries
    assert without_choices(queries=queries, charges=charges, tolerance=tolerance, **known).rows <= rows
    assert without_choices(rows=rows, queries=queries, charges=charges, tolerance=tolerance, **known) == plan


@settings(max_examples=examples(40), deadline=None)
@given(wishes)
def test_solutions_are_best_possible(wish):
    plan = plan_or_none(**wish)
    if plan is None:
        return
    known = {name: wish[name] for name in ("estimate", "confidence")}
    stated = {name: getattr(plan, name) for name in ("rows", "queries", "charges", "tolerance")}

    def serves(**changed):
        """Whether such a plan is possible, and keeps an honest search going to its last question."""
        other = plan_or_none(**stated | changed, **known)
        return other is not None and other.honest_search >= 0.95

    assert plan.honest_search >= 0.95
    least = without_choices(**stated | {"rows": None}, **known).rows
    assert least == 1 or not serves(rows=least - 1)
    if not plan.vacuous:  # rounded up to three digits: by 1% at most; a smaller one has smaller thresholds
        smaller = plan_or_none(**stated | {"tolerance": plan.tolerance * 0.985}, **known)
        assert smaller is None or smaller.threshold < plan.threshold
    most = without_choices(**stated | {"charges": None}, **known).charges
    assert serves(charges=most)
    assert most == plan.queries or not serves(charges=most + 1)
    questions = without_choices(**stated | {"queries": None}, **known).queries
    assert not serves(queries=questions + 1)


@settings(max_examples=examples(60), deadline=None)
@given(wishes)
def test_an_agreed_answer_is_within_the_tolerance_to_the_last_charge(wish):
    plan = plan_or_none(**wish)
    if plan is None:
        return
    certificate = plan.scores
    for charges in range(plan.charges):
        nats = certificate.charge_nats * charges
        reach = plan.threshold_at(charges=charges) + certificate.comparison_tail
        low, high = certificate.around(
            plan.estimate - reach,
            plan.estimate + reach,
            length=certificate.length(charges=charges, nats=nats),
            share=certificate.shares.agreed,
        )
        assert plan.estimate - plan.tolerance - 1e-7 <= low <= plan.estimate <= high
        assert high <= plan.estimate + plan.tolerance + 1e-7


@settings(max_examples=30, deadline=None)
@given(wishes, st.floats(0.1, 1_000.0), st.floats(-50.0, 50.0))
def test_a_plan_scales_with_the_metrics_range(wish, span, lower):
    unit = plan_or_none(**wish)
    if unit is None:
        return
    estimate = lower + span * wish.pop("estimate")
    scaled = without_choices(**wish, estimate=min(estimate, lower + span), bounds=(lower, lower + span))
    assert scaled.tolerance == pytest.approx(
        unit.tolerance * span, rel=0.02
    )  # each rounded up to three digits
    assert scaled.noise == pytest.approx(unit.noise * span, rel=0.02)


def test_a_stated_threshold_stays_and_the_tolerance_follows():
    plan = Plan(rows=10_000, queries=10_000, charges=50, threshold=0.05, noise=0.001)
    assert plan.threshold_at(charges=0) == plan.threshold_at(charges=49) == 0.05
    assert plan.noise == 0.001
    assert plan.tolerance > plan.threshold
    again = Plan(
        rows=10_000,
        queries=10_000,
        tolerance=plan.tolerance,
        threshold=0.05,
        noise=0.001,
        reveals=0,
    )
    assert again.charges >= 50


@for_each(
    ("wish", "nearest"),
    [
        ({"rows": 1_000, "queries": 1_000, "tolerance": 0.05}, {"rows", "tolerance"}),
        ({"rows": 1_000, "queries": 1_000, "tolerance": 0.05, "charges": 5}, {"rows", "tolerance"}),
        (
            {"rows": 10_000, "queries": 1_000, "tolerance": 0.05, "charges": 5},
            {"rows", "tolerance", "estimate", "charges", "queries"},
        ),
        ({"rows": 10_000, "queries": 2, "tolerance": 0.05, "charges": 5}, {"queries", "charges"}),
        ({"queries": 100, "charges": 5, "tolerance": 0.01, "prior_error": 0.1}, {"tolerance"}),
        ({"rows": 100, "charges": 5, "tolerance": 0.05}, {"rows", "tolerance"}),
    ],
)
def test_an_impossible_wish_names_the_nearest_possible_ones(wish, nearest):
    caught = refuses(PlanError, "", Plan, **wish)
    assert set(caught.nearest) == nearest
    for name, value in caught.nearest.items():
        assert Plan(**{**wish, name: value}).rows
        assert (f"{value:g}" if name in {"tolerance", "estimate"} else f"{value:,.0f}") in str(caught)


SOLVED = {"everything": {}, "gates": {"gates": True}}  # whose fourth number follows from three

NUMBERS = [
    {"rows": rows, "queries": queries, "charges": charges, "tolerance": tolerance}
    for rows in (None, 100, 20_000)
    for queries in (None, 4, 300)
    for charges in (None, 6)
    for tolerance in (None, 0.05)
    if (rows, queries, charges, tolerance).count(None) <= 1
]
MANNERS = [
    {},
    {"estimate": 0.97, "confidence": 0.8},
    {"prior_error": 0.1},
    {"reveals": 3, "choices": [4]},
    {"noise": 0.004},
    {"threshold": 0.02},
    {"noise": 0.0},
    {"bounds": (-1.0, 6.0), "family": "bounded", "estimate": 0.0},
    {"family": "bounded-difference", "variation": 4.0, "influence": 2.5},
    {"family": "ratio", "spread": 0.3, "estimate": 0.6},
    {"family": "mean", "bounds": (0.0, 2.0), "spread": 0.3},
    {"gates": True},
    {"bounds": (0.0, 2.0), "greater_is_better": False, "estimate": 0.4},
]


@pytest.mark.long("reusable_holdout/plan", "reusable_holdout/certainty")
@for_each("manner", MANNERS)
def test_whatever_a_refusal_suggests_is_accepted_and_little_less_is_not(manner):
    refused = followed = 0
    for numbers in NUMBERS:
        wish = {**numbers, **manner}
        try:
            Plan(**wish)
        except PlanError as error:
            refused += 1
            nearest = error.nearest
        else:
            continue
        for name, value in nearest.items():
            followed += 1
            if name == "choices":
                assert Plan(**wish | {"reveals": 0, "choices": []}).rows
                continue
            assert Plan(**wish | {name: value}).rows, (wish, name, value)
            less = {"rows": value - 1, "tolerance": 0.95 * value, "charges": value + 1}
            if less.get(name, 0) > 0:
                refuses(PlanError, "", Plan, **wish | {name: less[name]})
    assert refused >= 5
    assert followed >= refused / 2


def test_a_private_plan_is_not_called_vacuous():
    plan = Plan(rows=1_000_000, queries=100, charges=2, threshold=0.05, noise=0.0005)
    assert plan.epsilon < 0.01
    assert "vacuous" not in str(plan)


def test_no_noise_is_no_privacy_and_still_a_plan():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, noise=0.0)
    assert plan.epsilon == math.inf
    assert "vacuous" in str(plan)


def test_a_plan_prints_what_holds_and_what_else_the_rows_would_give():
    text = str(Plan(rows=10_000, queries=1_000, tolerance=0.05))
    for words in (
        "transcript code",
        "0.05",
        "fixed queries",
        "halts after",
    ):
        assert words in text


def test_a_record_gives_the_same_plan():
    for wish in ({"tolerance": 0.05}, {"charges": 5, "threshold": 0.04}):
        plan = Plan(rows=10_000, queries=1_000, **wish)
        again = Plan.kept(json.loads(json.dumps(plan.record())))
        assert again == plan
        assert (again.scores, again.pairs) == (plan.scores, plan.pairs)


@for_each(("tolerance", "published"), [(0.05, 6_279), (0.01, 156_956)])
def test_a_release_gate_of_32_steps_needs_fewer_rows_than_published(tolerance, published):
    """Renggli et al. (2019), fully adaptive, reliability 0.9999: where scores near .9 are expected, or 8 may pass."""
    histories = (
        2**32 - 1
    )  # of verdicts, each of which leads to a test: their section 3, with Hoeffding's inequality
    assert published == math.ceil(math.log(histories / 0.0001) / (2.0 * tolerance**2))
    wish = {"queries": 32, "confidence": 0.9999, "gates": True}
    for rows, charges, estimate in ((round(0.65 * published), 32, 0.9), (published, 8, 0.5)):
        certificate = Plan(rows, **wish, charges=charges, estimate=estimate).scores
        length = certificate.length(
            charges=charges - 1, nats=(charges - 1) * THEORY.gate.nats[0]
        )  # all passed
        low, _ = certificate.around(estimate, estimate, length=length, share=1.0)
        assert estimate - low < tolerance


def test_a_gate_has_no_threshold():
    plan = Plan(queries=32, charges=4, tolerance=0.05, gates=True)
    assert plan.threshold == 0.0
    assert Plan.kept(plan.record()) == plan
    refuses(InputError, "no threshold", Plan, rows=1_000, queries=32, charges=4, gates=True, threshold=0.1)


# ---- inverse questions, whatever the plan is for


@for_each("asks", SOLVED)
@for_each("wish", [{}, {"estimate": 0.9}, {"noise": 0.0, "confidence": 0.99}])
def test_a_derived_tolerance_is_accepted_and_a_smaller_one_serves_fewer(asks, wish):
    stated = {"rows": 10_000, "queries": 100, "charges": 3, "reveals": 0, **SOLVED[asks], **wish}
    plan = Plan(**stated)
    assert Plan(**stated, tolerance=plan.tolerance) == plan
    if asks == "everything":
        smaller = Plan(**stated, tolerance=0.97 * plan.tolerance)
        assert smaller.threshold < plan.threshold
        assert smaller.honest_search < plan.honest_search
        assert plan.honest_search >= 0.95
    else:
        caught = refuses(PlanError, "", Plan, **stated, tolerance=0.97 * plan.tolerance)
        assert caught.nearest["tolerance"] == pytest.approx(plan.tolerance)


@for_each(
    "numbers",
    [{"rows": 1_000}, {"rows": 20_000, "estimate": 0.9}, {"rows": 5_000, "family": "mean"}],
)
def test_a_derived_tolerance_leaves_room_for_a_reveal_or_class_counts_and_for_little_more(numbers):
    plan = Plan(queries=100, charges=3, **numbers)
    reveal = THEORY.reveal.worst + THEORY.widths.worst * (plan.family == "mean")
    room = max(reveal, THEORY.counts.worst)
    assert plan.leaves_room
    assert plan.scores.room(charges=0, nats=0.0) >= room
    narrower = Plan(queries=100, charges=3, **numbers, tolerance=0.97 * plan.tolerance)
    assert narrower.told_nats < room
    assert Plan(queries=100, charges=3, **numbers, reveals=0).told_nats < room


@for_each("asks", SOLVED)
def test_all_four_numbers_are_derived_consistently(asks):
    stated = {"rows": 5_000, "queries": 200, "charges": 2, "estimate": 0.8, "reveals": 0, **SOLVED[asks]}
    tolerance = Plan(**stated).tolerance
    for name in ("rows", "queries", "charges"):
        found = getattr(Plan(**stated | {name: None}, tolerance=tolerance), name)
        if name == "rows":  # sums of a binomial step by whole rows: the fewest are found up to a percent
            assert found <= 1.01 * stated[name]
        else:
            assert found >= stated[name]


@for_each(
    "wish",
    [
        {"rows": 10_000, "queries": 1_000, "tolerance": 0.05, "charges": 9},
        {
            "rows": 2_000,
            "queries": 100,
            "tolerance": 0.07,
            "charges": 5,
            "estimate": 0.87,
            "prior_error": 0.02,
        },
    ],
)
def test_a_refused_number_of_charges_names_the_largest_that_is_accepted(wish):
    caught = refuses(PlanError, "at most", Plan, **wish)
    most = int(caught.nearest["charges"])
    assert Plan(**wish | {"charges": most}).charges == most
    refuses(PlanError, "", Plan, **wish | {"charges": most + 1})


@for_each("prior", [0.6, 0.87, 0.97])
def test_a_stated_prior_error_is_the_same_at_every_prior(prior):
    plan = Plan(5_000, queries=100, charges=3, estimate=0.87, prior_error=0.02, noise=0.0)
    honest = math.hypot(math.sqrt(prior * (1.0 - prior) / 5_000), 0.02)
    scores, pairs = plan.scores, plan.pairs
    assert scores.constant_threshold(prior) == pytest.approx(scores.threshold_sds * honest, rel=2e-3)
    assert pairs.constant_threshold(0.5) == pytest.approx(pairs.threshold_sds * pairs.least_threshold)
