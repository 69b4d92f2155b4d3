"""What a plan promises, and that it says no where it must."""

import json
import math
from dataclasses import replace

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples
from scipy import stats

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY, worst_choice_nats
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.mechanisms.accounting import optimal_composition


def without_choices(**wish):
    """Plan of charges alone, and none where there is none."""
    return Plan(**wish, reveals=0, choices=())


@for_each(
    ("rows", "queries", "charges", "most"),
    [(10_000, 1_000, 0, 0.0127), (10_000, 1_000, 10, 0.0385), (1_000, 100, 5, 0.081)],
)
def test_half_widths_are_those_of_the_theory(rows, queries, charges, most):
    plan = Plan(rows=rows, queries=queries, charges=11, tolerance=0.25)
    width = plan.half_width(query=queries, charges=charges, estimate=0.9)
    assert 0.95 * most < width <= most


def test_the_story_of_the_readme():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, confidence=0.95)
    assert (plan.charges, plan.reveals, plan.choices) == (1, 0, (100,))
    assert 0.0 < plan.threshold < plan.tolerance
    assert plan.delta == 1e-8
    each = 1.0 / 10_000 / plan.noise
    told = 2 * plan.charges + 2  # each charge is a comparison and a value, and so is a choice
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
)


def plan_or_none(**wish):
    try:
        return without_choices(**wish)
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
    assert without_choices(rows=rows, queries=queries, tolerance=tolerance, **known).charges >= charges
    assert without_choices(rows=rows, charges=charges, tolerance=tolerance, **known).queries >= queries
    assert without_choices(queries=queries, charges=charges, tolerance=tolerance, **known).rows <= rows
    assert without_choices(rows=rows, queries=queries, charges=charges, tolerance=tolerance, **known) == plan


@settings(max_examples=examples(40), deadline=None)
@given(wishes)
def test_solutions_are_best_possible(wish):
    wish["queries"] = max(wish["queries"], wish["charges"])
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
    assert not serves(tolerance=plan.tolerance * 0.985)  # rounded up to three digits: by 1% at most
    most = without_choices(**stated | {"charges": None}, **known).charges
    assert serves(charges=most)
    assert most == plan.queries or not serves(charges=most + 1)
    questions = without_choices(**stated | {"queries": None}, **known).queries
    assert not serves(queries=questions + 1)


@settings(max_examples=examples(60), deadline=None)
@given(wishes)
def test_an_agreed_answer_is_within_the_tolerance_to_the_last_charge(wish):
    wish["queries"] = max(wish["queries"], wish["charges"])
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
    wish["queries"] = max(wish["queries"], wish["charges"])
    unit = plan_or_none(**wish)
    if unit is None:
        return
    estimate = lower + span * wish.pop("estimate")
    scaled = Plan(**wish, estimate=min(estimate, lower + span), bounds=(lower, lower + span))
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
            {"rows", "tolerance", "charges", "queries"},
        ),
        ({"rows": 10_000, "queries": 2, "tolerance": 0.05, "charges": 5}, {"queries", "charges"}),
        ({"queries": 100, "charges": 5, "tolerance": 0.01, "prior_error": 0.1}, {"tolerance"}),
        ({"rows": 100, "charges": 5, "tolerance": 0.05}, {"rows", "tolerance"}),
    ],
)
def test_an_impossible_wish_names_the_nearest_possible_ones(wish, nearest):
    with pytest.raises(PlanError) as caught:
        Plan(**wish)
    assert set(caught.value.nearest) == nearest
    for name, value in caught.value.nearest.items():
        assert Plan(**{**wish, name: value}).rows
        assert (f"{value:,.0f}" if name != "tolerance" else f"{value:g}") in str(caught.value)


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
            assert Plan(**wish | {name: value}).rows, (wish, name, value)
            less = {"rows": value - 1, "tolerance": 0.95 * value, "charges": value + 1, "queries": value + 1}
            if less[name] > 0 and name != "queries":
                with pytest.raises(PlanError):
                    Plan(**wish | {name: less[name]})
    assert refused >= 5
    assert followed >= refused / 2


def test_noise_alone_is_predicted_to_charge_what_simulation_charges():
    import numpy as np

    plan = Plan(rows=10_000, queries=2_000, charges=8, threshold=0.02, noise=0.0005)
    rng = np.random.default_rng(0)
    runs, scale = 2_000, plan.noise
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
        "naive reuse",
        "halts after",
    ):
        assert words in text


def test_a_record_gives_the_same_plan():
    for wish in ({"tolerance": 0.05}, {"charges": 5, "threshold": 0.04}):
        plan = Plan(rows=10_000, queries=1_000, **wish)
        again = Plan.kept(json.loads(json.dumps(plan.record())))
        assert again == plan
        assert (again.scores, again.pairs) == (plan.scores, plan.pairs)


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
        {"noise": -1.0},
        {"noise": INF},
        {"prior_error": 0.0},
        {"prior_error": -0.01},
        {"prior_error": INF},
        {"reveals": -1},
        {"reveals": 0.5},
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


@pytest.mark.parametrize("given", [{"rows": 100}, {"rows": 100, "queries": 10}, {"rows": 100, "charges": 2}])
def test_too_few_numbers_are_refused(given):
    with pytest.raises(InputError, match="give three of"):
        Plan(**given)


@for_each("given", [{}, {"queries": 100}, {"queries": 100, "charges": 3, "noise": 0.0}, {"gates": True}])
def test_a_plan_without_rows_has_numbers_once_a_guard_has_counted_them(given):
    plan = Plan(**given)
    assert {*plan.stated} == {*given, "confidence"} - {"gates"}
    for name in ("rows", "queries", "charges", "tolerance", "scores"):
        with pytest.raises(InputError, match="a plan has numbers once three of"):
            getattr(plan, name)
    whole = Plan(**plan.wished() | {"rows": 10_000, "queries": 100, "tolerance": 0.06})
    assert (whole.rows, whole.asks) == (10_000, plan.asks)
    assert whole.charges >= 1


@for_each("wrong", [{"query": 0}, {"query": 1_001}, {"charges": -1}, {"charges": 1_000}, {"estimate": 2}])
def test_a_half_width_outside_the_plan_is_refused(wrong):
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05)
    with pytest.raises(InputError):
        plan.half_width(**{"query": 1_000, "charges": 0, "estimate": 0.9, **wrong})


@for_each(("tolerance", "published"), [(0.05, 6_279), (0.01, 156_956)])
def test_a_release_gate_of_32_steps_needs_fewer_rows_than_published(tolerance, published):
    """Renggli et al. (2019), fully adaptive, reliability 0.9999: where scores near .9 are expected, or 8 may pass."""
    histories = (
        2**32 - 1
    )  # of verdicts, each of which leads to a test: their section 3, with Hoeffding's inequality
    assert published == math.ceil(math.log(histories / 0.0001) / (2.0 * tolerance**2))
    wish = {"queries": 32, "confidence": 0.9999, "gates": True, "noise": 0.0}
    assert Plan(**wish, charges=32, tolerance=tolerance, estimate=0.9).rows < 0.65 * published
    assert Plan(**wish, charges=8, tolerance=tolerance).rows < published


def test_a_gate_has_no_threshold():
    plan = Plan(queries=32, charges=4, tolerance=0.05, gates=True)
    assert plan.threshold == 0.0
    assert Plan.kept(plan.record()) == plan
    with pytest.raises(InputError, match="no threshold"):
        Plan(rows=1_000, queries=32, charges=4, gates=True, threshold=0.1)


# ---- inverse questions, whatever the plan is for


@for_each("asks", SOLVED)
@for_each("wish", [{}, {"estimate": 0.9}, {"noise": 0.0, "confidence": 0.99}])
def test_a_derived_tolerance_is_accepted_and_a_smaller_one_serves_nobody(asks, wish):
    stated = {"rows": 10_000, "queries": 100, "charges": 3, **SOLVED[asks], **wish}
    plan = Plan(**stated)
    assert Plan(**stated, tolerance=plan.tolerance) == plan
    if asks == "everything":
        try:  # the numbers may hold, but not for an honest search
            assert Plan(**stated, tolerance=0.97 * plan.tolerance).honest_search < 0.95 <= plan.honest_search
        except PlanError as refused:
            assert refused.nearest["tolerance"] == pytest.approx(plan.tolerance)  # noqa: PT017 - either will do
    else:
        with pytest.raises(PlanError) as caught:
            Plan(**stated, tolerance=0.97 * plan.tolerance)
        assert caught.value.nearest["tolerance"] == pytest.approx(plan.tolerance)


@for_each("asks", SOLVED)
def test_all_four_numbers_are_derived_consistently(asks):
    stated = {"rows": 5_000, "queries": 200, "charges": 2, "estimate": 0.8, "reveals": 0, **SOLVED[asks]}
    tolerance = Plan(**stated).tolerance
    for name in ("rows", "queries", "charges"):
        found = getattr(Plan(**stated | {name: None}, tolerance=tolerance), name)
        assert found <= stated[name] if name == "rows" else found >= stated[name]


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
    with pytest.raises(PlanError, match="at most") as caught:
        Plan(**wish)
    most = int(caught.value.nearest["charges"])
    assert Plan(**wish | {"charges": most}).charges == most
    with pytest.raises(PlanError):
        Plan(**wish | {"charges": most + 1})


# ---- what a final will certify


@for_each("rows", [1_000, 5_000, 20_000])
def test_a_final_is_hardly_wider_than_one_look(rows):
    plan = Plan(rows=rows, queries=100, charges=5, estimate=0.87)
    assert plan.final_half_width() <= 1.45 * plan.one_look
    assert plan.final_half_width(charges=1) <= 2.5 * plan.one_look
    widths = [plan.final_half_width(charges=charges) for charges in range(6)]
    assert widths == sorted(widths)
    assert plan.final_half_width(nats=4.0) > plan.final_half_width(answers=3) > plan.final_half_width()


def test_one_look_is_an_exact_interval_of_one_question():
    plan = Plan(rows=1_000, queries=100, charges=2, estimate=0.87, bounds=(-1.0, 1.0), family="binomial")
    unit = (0.87 + 1.0) / 2.0
    low = stats.beta.ppf(0.025, unit * 1_000, 1_000 - unit * 1_000 + 1)
    high = stats.beta.isf(0.025, unit * 1_000 + 1, 1_000 - unit * 1_000)
    assert plan.one_look == pytest.approx(high - low, rel=1e-6)  # half of it, twice the range


@for_each("wrong", [{"charges": -1}, {"charges": 4}, {"estimate": 1.5}])
def test_a_final_outside_the_plan_is_refused(wrong):
    with pytest.raises(InputError):
        Plan(rows=1_000, queries=100, charges=3).final_half_width(**wrong)


# ---- what may be told beside the charges


def test_a_choice_is_set_aside_where_nothing_was_said_and_a_charge_is_left():
    wish = {"rows": 10_000, "queries": 1_000, "tolerance": 0.06, "estimate": 0.9}
    plan = Plan(**wish)
    assert (plan.reveals, plan.choices) == (0, (100,))
    assert plan.scores.reserved_nats >= worst_choice_nats(100) + THEORY.reveal.worst
    assert Plan(**wish | {"queries": 30}).choices == (30,)
    for stated in ({"reveals": 0}, {"choices": ()}, {"charges": plan.charges}, {"gates": True}):
        assert Plan(**wish, **stated).choices == ()
    assert without_choices(**wish).charges >= plan.charges
    # where the tolerance leaves no charge beside a choice, the charge goes first
    tight = {"rows": 10_000, "queries": 1_000, "tolerance": 0.034}
    assert (Plan(**tight).charges, Plan(**tight).choices) == (1, ())


def test_reveals_and_choices_that_are_set_aside_cost_charges_or_tolerance():
    wish = {"rows": 10_000, "queries": 1_000, "estimate": 0.9}
    assert Plan(**wish, tolerance=0.06, reveals=5).charges < Plan(**wish, tolerance=0.06, reveals=0).charges
    plan = Plan(**wish, charges=3, reveals=2, choices=(10, 20))
    assert plan.tolerance > Plan(**wish, charges=3).tolerance
    reserved = 4 * THEORY.reveal.worst + worst_choice_nats(10) + worst_choice_nats(20)
    certificate = plan.scores
    assert certificate.reserved_nats == pytest.approx(reserved + plan.spare_nats)
    assert certificate.room(charges=0, nats=0.0) >= reserved


@for_each("charges", [1, 3, 8])
@for_each("asks", SOLVED)
def test_spare_nats_are_as_many_as_the_promises_leave(charges, asks):
    wish = {"rows": 10_000, "queries": 500, "charges": charges, "tolerance": 0.08, **SOLVED[asks]}
    plan = Plan(**wish)
    certificate = plan.scores
    state = {"charges": charges - 1, "nats": certificate.charge_nats * (charges - 1)}

    def tolerance_kept(nats):
        spent = state["nats"] + nats
        length = max(
            certificate.length(charges=made, nats=certificate.charge_nats * made + nats)
            for made in range(charges)
        )
        assert length >= certificate.length(charges=charges - 1, nats=spent)
        least = 0.0 if asks == "gates" else plan.deviation_sd
        exact = replace(certificate, fixed_threshold=None).threshold_of_length(0.5, length, least=-math.inf)
        return exact >= least

    assert plan.spare_nats > 0.0
    assert tolerance_kept(plan.spare_nats)
    assert not tolerance_kept(plan.spare_nats + 0.05)


def test_a_plan_is_the_same_from_its_record_whatever_is_set_aside():
    for wish in ({"reveals": 3}, {"choices": (5, 7)}, {"prior_error": 0.01}, {}):
        plan = Plan(rows=10_000, queries=1_000, tolerance=0.07, estimate=0.9, **wish)
        again = Plan.kept(json.loads(json.dumps(plan.record())))
        assert again == plan
        assert (again.reveals, again.choices, again.charges) == (plan.reveals, plan.choices, plan.charges)
        assert (again.scores, again.pairs) == (plan.scores, plan.pairs)


# ---- what it says


def test_a_plan_says_how_far_an_honest_search_gets_and_what_finals_will_certify():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.06, estimate=0.9)
    text = " ".join(str(plan).split())
    assert f"the guard halts after {plan.charges} charges, whatever was told at each" in text
    assert f"an honest search (priors off by {plan.prior_error:.2g}) is answered to the last query" in text
    assert f"with probability {plan.honest_search:.3f}" in text
    assert f"a final after 0 charges within {plan.final_half_width():.4f}" in text
    assert f"(one look fixed in advance: {plan.one_look:.4f})" in text
    assert f"a final after 1 charge within {plan.final_half_width(charges=1):.4f}" in text
    assert f"a final after 5 charges within {plan.final_half_width(charges=5):.4f}" in text
    assert f"({plan.epsilon:.3g}, 1e-08); without finals and comparisons" in text


def test_where_charges_are_not_deviations_an_honest_search_is_no_matter_of_priors():
    assert 'makes a charge of each "yes"' in str(Plan(rows=10_000, queries=100, charges=3, gates=True))


def test_no_charge_of_a_plan_costs_more_than_it_was_planned_for():
    assert Plan(rows=10_000, queries=100, charges=3).scores.charge_nats == THEORY.charge.worst


def test_a_plan_without_noise_has_none_in_comparisons_either():
    plan = Plan(rows=2_000, queries=50, charges=3, noise=0.0)
    assert (plan.noise, plan.comparison_noise) == (0.0, 0.0)
    assert (plan.scores.mechanism, plan.scores.noise_scale, plan.pairs.noise_scale) == ("noiseless", 0.0, 0.0)


def test_a_plan_says_that_its_privacy_leaves_out_comparisons_that_have_less_noise():
    numbers = {"rows": 5_000, "queries": 100, "charges": 4}
    own, as_much = Plan(**numbers), Plan(**numbers, noise=1e-4)
    assert own.comparison_noise < 2.0 * own.noise
    assert "; without finals and comparisons\n" in str(own)
    assert as_much.comparison_noise == 2.0 * as_much.noise
    assert "; without finals\n" in str(as_much)
    assert "; without finals\n" in str(Plan(rows=20_000, queries=100, board="claims"))


def test_comparisons_draw_the_noise_of_scores_or_none():
    """Two laws from the same random words would have no proof."""
    stated = Plan(rows=2_000, queries=50, charges=3, noise=1e-4)
    assert stated.comparison_noise == 2e-4
    assert Plan(rows=2_000, queries=50, charges=3).comparison_noise == 0.0
    mean = Plan(rows=2_000, queries=50, charges=3, family="mean", spread=0.2)
    assert mean.comparison_noise == 2.0 * mean.noise > 0.0
    for plan in (stated, mean):
        again = Plan.kept(plan.record())
        assert (again, again.comparison_noise) == (plan, plan.comparison_noise)
        assert plan.pairs.noise_scale == plan.scores.noise_scale  # of differences that are halved


# ---- claims


@for_each("changes", [{}, {"noise": 1e-4}, {"gates": True}, {"threshold": 0.06}])
def test_a_plan_that_a_ledger_keeps_prints_as_the_plan_did(changes):
    plan = Plan(rows=10_000, queries=100, charges=8, estimate=0.85, choices=[30], **changes)
    kept = Plan.kept(plan.record())
    assert kept.epsilon == pytest.approx(plan.epsilon, rel=1e-9)
    assert str(kept) == str(plan)


def test_a_plan_that_a_ledger_keeps_may_promise_less_than_a_half():
    record = Plan(rows=10_000, queries=100, charges=8, confidence=0.5).record()
    assert Plan.kept(record | {"confidence": 0.05, "tolerance": 1.0}).confidence == 0.05
    with pytest.raises(InputError, match=r"did you mean 0\.95\?$"):
        Plan(rows=10_000, queries=100, charges=8, confidence=0.05)


def test_a_board_of_claims_says_what_honest_ones_keep_and_takes_no_tolerance():
    stated = {"rows": 100_000, "queries": 10_000, "board": "claims", "prior_error": 0.003}
    plan = Plan(**stated, estimate=0.75)
    assert (plan.charges, plan.scores.mechanism, plan.spare_nats) == (2, "noiseless", 0.0)
    assert plan.threshold == pytest.approx(4.0 * math.hypot(0.003, math.sqrt(0.75 * 0.25 / 100_000)))
    assert Plan(**stated, estimate=0.75, tolerance=plan.tolerance) == plan == Plan.kept(plan.record())
    assert plan.tolerance < Plan(**stated).tolerance < Plan(**{**stated, "prior_error": 0.006}).tolerance
    assert "each series has" in str(plan)
    assert "halts" not in str(plan)
    for refused, words in [
        ({"tolerance": 0.01}, "claims have no tolerance"),
        ({"threshold": 0.01}, "name prior_error="),
        ({"noise": 1e-4}, "claims have no noise"),
        ({"board": "ladder"}, 'board must be "claims"'),
        ({"family": "ratio"}, "not by claims"),
        ({"queries": None}, "queries is missing"),
    ]:
        with pytest.raises(InputError, match=words):
            Plan(**{**stated, **refused})
