"""What a plan refuses, and what it says: of finals, of what may be told beside the charges, of boards, to a ledger."""

import json
import math

import pytest
from cases import for_each, refuses
from plan.test_plan import SOLVED
from scipy import stats

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY, worst_choice_nats
from reusable_holdout.errors import InputError
from reusable_holdout.plan.shown import _graded

# ---- numbers that are refused

NAN, INF = math.nan, math.inf


OUT_OF_RANGE = {
    "rows": [0, -5, 1.5, "many", True, 10**13],
    "queries": [0, NAN],
    "charges": [-1, 2.0],
    "tolerance": [0.0, -0.1, NAN, INF, "0.05"],
    "threshold": [0.0],
    "noise": [-1.0, INF],
    "prior_error": [0.0, -0.01, INF],
    "reveals": [-1, 0.5],
    "confidence": [0.0, 1.0, 95],
    "estimate": [1.1, NAN],
    "delta": [1.0, -1e-9],
    "bounds": [(1.0, 0.0), (0.0, INF), 1.0],
    "family": ["normal"],
    "influence": [0.0],
    "variation": [-1.0],
}


@for_each(("name", "value"), [(name, value) for name, values in OUT_OF_RANGE.items() for value in values])
def test_numbers_out_of_range_are_refused_by_name(name, value):
    wish = {"rows": 10_000, "queries": 1_000, "tolerance": 0.05}
    refuses(InputError, name, Plan, **wish | {name: value})


@pytest.mark.parametrize("given", [{"rows": 100}, {"rows": 100, "queries": 10}, {"rows": 100, "charges": 2}])
def test_too_few_numbers_are_refused(given):
    refuses(InputError, "give three of", Plan, **given)


@for_each("given", [{}, {"queries": 100}, {"queries": 100, "charges": 3, "noise": 0.0}, {"gates": True}])
def test_a_plan_without_rows_has_numbers_once_a_guard_has_counted_them(given):
    plan = Plan(**given)
    assert {*plan.stated} == {*given, "confidence"} - {"gates"}
    for name in ("rows", "queries", "charges", "tolerance", "scores", "epsilon", "vacuous"):
        refuses(InputError, "a plan has numbers only when three of", getattr, plan, name)
    whole = Plan(**plan.wished() | {"rows": 10_000, "queries": 100, "tolerance": 0.06})
    assert (whole.rows, whole.asks) == (10_000, plan.asks)
    assert whole.charges >= 1


@for_each("wrong", [{"query": 0}, {"query": 1_001}, {"charges": -1}, {"charges": 1_000}, {"estimate": 2}])
def test_a_half_width_outside_the_plan_is_refused(wrong):
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.05)
    refuses(InputError, "", plan.half_width, **{"query": 1_000, "charges": 0, "estimate": 0.9, **wrong})


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
    refuses(InputError, "", Plan(rows=1_000, queries=100, charges=3).final_half_width, **wrong)


# ---- what may be told beside the charges


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
        if asks == "gates":
            return plan._wish.shown(certificate, length) <= 0.08 + 1e-8
        return certificate.agreed_reach(length) <= certificate.tolerance + 1e-8

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
    assert "priors" not in str(Plan(rows=10_000, queries=100, charges=3, gates=True))


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
    refuses(InputError, r"did you mean 0\.95\?$", Plan, rows=10_000, queries=100, charges=8, confidence=0.05)


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
        ({"threshold": 0.01}, "state prior_error="),
        ({"noise": 1e-4}, "claims have no noise"),
        ({"board": "ladder"}, 'board must be "claims"'),
        ({"gates": True}, "answers only claims"),
        ({"family": "ratio"}, "no claims"),
        ({"queries": None}, "state what is missing: queries"),
    ]:
        refuses(InputError, words, Plan, **{**stated, **refused})


# ---- what a gate shows


@for_each("mean", [0.3, 0.5, 0.62])
def test_graded_rows_have_the_first_moments_of_a_normal_distribution(mean):
    rows = _graded(mean, 0.1, 50.0)
    moments = [(rows.values - mean) ** power @ rows.counts / 50.0 for power in range(6)]
    assert moments == pytest.approx([1.0, 0.0, 0.1**2, 0.0, 3 * 0.1**4, 0.0])
