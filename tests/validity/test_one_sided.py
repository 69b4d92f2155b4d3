"""Certificates of the Ladders and the gate for every score, noise and rounding within reach; nothing is sampled."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import VALIDITY, examples

from reusable_holdout.mechanisms.calibration import GuardMechanism
from reusable_holdout.plan import Plan
from reusable_holdout.validity import (
    FAILURE_NATS,
    Certificate,
    ConfidenceBound,
    GateCertificate,
    LadderCertificate,
    certificate_of,
)
from reusable_holdout.validity.one_sided import ParameterFreeLadderCertificate, parameter_free_step

FAMILIES = ("binomial", "bounded", "bounded-difference")
MECHANISMS = get_args(GuardMechanism)
ONE_SIDED = ("ladder", "gate", "parameter-free-ladder")
POLICIES = (*ONE_SIDED, "guess-and-check", "thresholdout")


def plan_certificate(*, rows=1_000, family="binomial", **changes):
    standard = Certificate(
        bound=ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows),
        queries=300,
        charges=8,
        beta=0.05,
        noise_scale=1e-3,
        resolution=None,
        lower=0.0,
        upper=1.0,
        tolerance=0.15,
        fixed_threshold=None,
        least_threshold=0.01,
    )
    changed = replace(standard, **changes)
    return replace(changed, noise_scale=0.0) if changed.mechanism == "noiseless" else changed


certificates = st.builds(
    plan_certificate,
    rows=st.sampled_from((50, 1_000, 10**6)),
    family=st.sampled_from(FAMILIES),
    mechanism=st.sampled_from(MECHANISMS),
    greater_is_better=st.booleans(),
    noise_scale=st.sampled_from((0.0, 1e-4, 3e-3)),
    resolution=st.sampled_from((None, 0.002, 0.05, 1.0)),
    lower=st.sampled_from((0.0, -2.0)),
    upper=st.sampled_from((1.0, 3.0)),
)
units = st.floats(0.0, 1.0)
sides = st.floats(-1.0, 1.0)


# ---- coverage, for every score and every noise within its reach


def decided(certificate, score, prior, threshold, comparison_noise, answer_noise):
    """What the guard would answer: (value or None if not charged); scores, priors and noise are real numbers."""
    sign = certificate.direction
    compared = score + comparison_noise
    deviation = sign * (compared - prior) if sign else abs(score - prior) + comparison_noise
    if certificate.tails.mechanism == "target-charging":
        deviation = sign * (compared - prior) if sign else abs(compared - prior)
        answer_noise = comparison_noise
    if deviation < threshold:
        return None
    noisy = min(max(score + answer_noise, certificate.lower), certificate.upper)
    return certificate.rounded(noisy, prior, threshold)


@settings(max_examples=examples(400))
@given(
    plan=certificates,
    policy=st.sampled_from(POLICIES),
    score=units,
    prior=units,
    near=st.booleans(),
    threshold=st.floats(0.004, 0.3),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    plan, policy, score, prior, near, threshold, noise, length
):
    """The confidence set around the true holdout value lies in the interval, on the sides the policy promises."""
    guard = certificate_of(policy, plan)
    threshold = 0.0 if policy == "gate" else threshold * guard.span
    prior = guard.lower + prior * guard.span
    score = guard.lower + score * guard.span
    if near:  # where decisions are made
        score = min(max(prior + noise[0] * 1.2 * threshold, guard.lower), guard.upper)
    comparison = noise[0] * guard.tails.comparison * guard.noise_scale
    answer = noise[1] * guard.tails.answer * guard.noise_scale
    value = decided(guard, score, prior, threshold, comparison, answer)
    agreed = value is None
    low, high = guard.agreed(prior, threshold, length) if agreed else guard.charged(value, threshold, length)
    assert guard.lower <= low <= (prior if agreed else value) <= high <= guard.upper
    unit = (score - guard.lower) / guard.span
    level = (guard.agreed_level if agreed else guard.charged_level)(length)
    least = guard.lower + guard.bound.lower(unit, log_level=level) * guard.span
    most = guard.lower + guard.bound.upper(unit, log_level=level) * guard.span
    assert low <= least + 1e-9
    assert high >= most - 1e-9


@pytest.mark.long(*VALIDITY)
@for_each(("policy", "family", "greater"), list(product(ONE_SIDED, FAMILIES, (True, False))))
def test_every_score_of_a_small_holdout_is_covered_at_every_best(policy, family, greater):
    """All 61 x 61 pairs of score and best, the noise at both ends of its reach and at none."""
    plan = plan_certificate(rows=60, family=family, greater_is_better=greater, noise_scale=2e-3)
    guard, threshold = certificate_of(policy, plan), 0.0 if policy == "gate" else 0.07
    level = guard.log_level(9.0)
    scores = np.arange(61) / 60
    least, most = (bound(scores, log_level=level) for bound in (guard.bound.lower, guard.bound.upper))
    reach = guard.tails.comparison * guard.noise_scale
    answer_reach = guard.tails.answer * guard.noise_scale
    for prior, comparison, answer in product(
        scores.tolist(), (-reach, 0.0, reach), (-answer_reach, answer_reach)
    ):
        for i, score in enumerate(scores.tolist()):
            value = decided(guard, score, prior, threshold, comparison, answer)
            interval = (
                guard.agreed(prior, threshold, 9.0) if value is None else guard.charged(value, threshold, 9.0)
            )
            assert interval.low <= least[i] + 1e-9
            assert interval.high >= most[i] - 1e-9


@given(plan=certificates, policy=st.sampled_from(ONE_SIDED), unit=units, length=st.floats(0.0, 500.0))
def test_what_is_not_told_leaves_the_interval_open(plan, policy, unit, length):
    guard = certificate_of(policy, plan)
    prior = guard.lower + unit * guard.span
    worst = guard.lower if guard.greater_is_better else guard.upper
    best = guard.upper if guard.greater_is_better else guard.lower
    assert worst in guard.agreed(prior, 0.05, length)
    if policy == "gate":
        assert best in guard.charged(prior, 0.0, length)


@given(plan=certificates, policy=st.sampled_from(ONE_SIDED), length=st.floats(0.0, 500.0))
def test_arrays_and_single_numbers_give_the_same_intervals(plan, policy, length):
    guard = certificate_of(policy, plan)
    centres = guard.lower + np.linspace(0.0, 1.0, 9) * guard.span
    thresholds = np.full(9, 0.0 if policy == "gate" else 0.05)
    for interval in (guard.agreed, guard.charged):
        lows, highs = interval(centres, thresholds, np.full(9, length))
        for i, centre in enumerate(centres.tolist()):
            low, high = interval(centre, float(thresholds[i]), length)
            assert lows[i] == pytest.approx(low, abs=1e-9)
            assert highs[i] == pytest.approx(high, abs=1e-9)


# ---- the parameter-free ladder: any step up to the public one


def parameter_free(rows, **changes):
    return certificate_of("parameter-free-ladder", plan_certificate(rows=rows, **changes))


def stepped(guard, score, prior, step):
    """What the parameter-free ladder answers if the standard error were this: None for no new best."""
    value = guard.rounded(score, prior, guard.fixed_threshold)
    gain = guard.direction * (score - prior)
    is_better = guard.direction * (value - prior) > 0.5 * guard.resolution
    return value if is_better and gain > step else None


@pytest.mark.long(*VALIDITY)
@for_each("greater", [True, False])
@for_each("family", ["binomial", "bounded"])
def test_whatever_the_standard_error_is_the_parameter_free_interval_holds(family, greater):
    """All bests and, of a bounded loss, scores between the places too; all steps from none to 1/sqrt(rows)."""
    guard = parameter_free(40, family=family, greater_is_better=greater)
    places = 1 if family == "binomial" else 6
    scores, level = np.arange(40 * places + 1) / (40 * places), guard.log_level(9.0)
    least, most = (bound(scores, log_level=level) for bound in (guard.bound.lower, guard.bound.upper))
    told = 0
    for prior, share in product((np.arange(41) / 40).tolist(), (0.0, 0.3, 1.0)):
        for i, score in enumerate(scores.tolist()):
            value = stepped(guard, score, prior, share * parameter_free_step(40))
            told += value is not None
            if value is None:
                low, high = guard.agreed(prior, guard.fixed_threshold, 9.0)
            else:
                low, high = guard.charged(value, guard.fixed_threshold, 9.0)
            assert low <= least[i] + 1e-9
            assert high >= most[i] - 1e-9
    assert 0 < told < 3 * 41 * len(scores)


@pytest.mark.parametrize("greater", [True, False])
def test_a_step_beyond_the_public_one_would_not_be_certified(greater):
    """The twin: a standard error that is a third larger."""
    guard = parameter_free(400, greater_is_better=greater)
    step, level = parameter_free_step(400), guard.log_level(9.0)
    score = 0.5 + guard.direction * 1.3 * step
    assert stepped(guard, score, 0.5, 1.35 * step) is None
    low, high = guard.agreed(0.5, guard.fixed_threshold, 9.0)
    if greater:
        assert high < guard.bound.upper(score, log_level=level)
    else:
        assert low > guard.bound.lower(score, log_level=level)


@for_each("changes", [{}, {"family": "bounded", "lower": -1.0, "upper": 3.0}])
@for_each("greater", [True, False])
def test_the_weights_of_all_parameter_free_bests_and_of_a_failure_sum_to_at_most_one(changes, greater):
    guard = parameter_free(60, greater_is_better=greater, **changes)
    for place in range(61):
        prior = guard.rounded(guard.lower + guard.span * place / 60, guard.start, guard.fixed_threshold)
        ends = np.linspace(guard.lower, guard.upper, 601).tolist()
        bests = {stepped(guard, score, prior, 0.0) for score in ends} - {None}
        assert len(bests) == (60 - place if greater else place)
        nats = [guard.value_nats(value, prior=prior, threshold=guard.fixed_threshold) for value in bests]
        assert all(guard.is_answer(value, prior=prior, threshold=guard.fixed_threshold) for value in bests)
        assert FAILURE_NATS not in nats
        assert math.fsum(math.exp(-each) for each in [*nats, FAILURE_NATS]) <= 1.0 + 1e-9


def test_a_pair_flip_costs_two_places():
    guard = parameter_free(1_000, greater_is_better=False)
    cost = guard.value_nats(0.498, prior=0.5, threshold=guard.fixed_threshold)
    assert cost == pytest.approx(math.log(6.0) - math.log1p(-math.exp(-FAILURE_NATS)))
    assert cost < guard.planned_nats


def test_the_parameter_free_certificate_has_no_noise_and_the_step_and_places_of_its_rows():
    guard = parameter_free(625, family="bounded", lower=-2.0, upper=3.0, fixed_threshold=0.3, resolution=0.1)
    assert (guard.fixed_threshold, guard.resolution) == (5 / 25, 5 / 625)
    assert (guard.noise_scale, guard.mechanism) == (0.0, "noiseless")
    assert guard.threshold(0.1, charges=5, nats=100.0) == guard.fixed_threshold


# ---- the values that can be told


@given(
    plan=certificates,
    prior=units,
    noisy=units,
    threshold=st.floats(0.004, 0.3),
)
def test_a_new_best_is_a_whole_number_of_steps_better_or_the_best_there_is(plan, prior, noisy, threshold):
    guard = certificate_of("ladder", plan)
    threshold *= guard.span
    prior, noisy = (guard.lower + unit * guard.span for unit in (prior, noisy))
    value = guard.rounded(noisy, prior, threshold)
    best = guard.upper if guard.greater_is_better else guard.lower
    gain = guard.direction * (value - prior)
    assert guard.lower <= value <= guard.upper
    assert gain >= 0.0
    assert value == best or gain >= guard.resolution_at(threshold) * (1.0 - 1e-6)
    assert guard.is_answer(value, prior=prior, threshold=threshold)
    assert guard.value_nats(value, prior=prior, threshold=threshold) > 0.0


@pytest.mark.parametrize("greater", [True, False])
def test_a_best_at_the_bound_stays_there(greater):
    guard = certificate_of("ladder", plan_certificate(greater_is_better=greater))
    best = 1.0 if greater else 0.0
    for noisy in (0.0, 0.5, 1.0):
        assert guard.rounded(noisy, best, 0.05) == best
    assert guard.is_answer(best, prior=best, threshold=0.05)
    low, high = guard.charged(best, 0.05, 5.0)
    assert low <= best <= high
    assert guard.value_nats(best, prior=best, threshold=0.05) < FAILURE_NATS


@pytest.mark.parametrize("greater", [True, False])
def test_no_value_beside_the_grid_or_on_the_wrong_side_is_an_answer(greater):
    guard = certificate_of("ladder", plan_certificate(greater_is_better=greater))
    sign = 1 if greater else -1
    for steps in (-3, -1, 0, 0.5, 1.5, 2.25, 7.999):
        assert not guard.is_answer(0.5 + sign * steps * 0.05, prior=0.5, threshold=0.05)
    for steps in (1, 2, 3, 9):
        assert guard.is_answer(0.5 + sign * steps * 0.05, prior=0.5, threshold=0.05)


def test_a_gate_answers_with_what_was_named():
    guard = certificate_of("gate", plan_certificate())
    assert guard.rounded(0.9, 0.31, 0.0) == 0.31
    assert guard.is_answer(0.31, prior=0.31, threshold=0.0)
    assert not guard.is_answer(0.32, prior=0.31, threshold=0.0)
    assert guard.threshold(0.31, charges=3, nats=1.0) == 0.0


@for_each("resolution", [None, 0.004, 0.03, 0.5])
def test_a_step_is_never_longer_than_the_threshold(resolution):
    guard = certificate_of("ladder", plan_certificate(resolution=resolution))
    for threshold in (0.01, 0.05, 0.2):
        assert guard.resolution_at(threshold) == min(threshold, resolution or threshold)


# ---- the code


@settings(max_examples=examples(200))
@given(plan=certificates, prior=units, threshold=st.floats(0.002, 0.3))
def test_the_weights_of_all_new_bests_and_of_a_failure_sum_to_at_most_one(plan, prior, threshold):
    """Kraft: every value that `rounded` can give, whatever the score and the noise, and the failure."""
    guard = certificate_of("ladder", plan)
    threshold *= guard.span
    prior = guard.lower + prior * guard.span
    noisy = np.linspace(guard.lower, guard.upper, 4_001)
    values = {guard.rounded(float(each), prior, threshold) for each in noisy}
    weights = [math.exp(-guard.value_nats(value, prior=prior, threshold=threshold)) for value in values]
    assert math.fsum([*weights, math.exp(-FAILURE_NATS)]) <= 1.0 + 1e-9


def test_the_weights_of_all_steps_sum_to_one_exactly():
    guard = certificate_of("ladder", plan_certificate())
    count = 5_000
    wide = replace(guard, upper=float(count + 1))
    total = math.fsum(
        math.exp(-wide.value_nats(float(k), prior=0.0, threshold=1.0)) for k in range(1, count + 1)
    )
    told = 1.0 - math.exp(-FAILURE_NATS)
    assert total == pytest.approx(told * float(1 - Fraction(1, count + 1)), rel=1e-9)


def test_a_gate_has_two_charged_outcomes_whose_weights_sum_to_one():
    guard = certificate_of("gate", plan_certificate())
    yes = guard.value_nats(0.4, prior=0.4, threshold=0.0)
    assert math.exp(-yes) + math.exp(-FAILURE_NATS) == pytest.approx(1.0, abs=1e-12)
    assert guard.planned_nats == yes


@for_each("steps", range(1, 40))
def test_no_new_best_costs_exactly_what_a_failure_costs(steps):
    """A row is taken for a failure by its cost."""
    guard = certificate_of("ladder", plan_certificate())
    assert guard.value_nats(0.3 + 0.01 * steps, prior=0.3, threshold=0.01) != FAILURE_NATS
    assert guard.value_nats(0.3, prior=0.0, threshold=1 / steps) != FAILURE_NATS


def test_the_planned_nats_are_those_of_two_or_three_steps():
    guard = certificate_of("ladder", plan_certificate())
    two, three = (guard.value_nats(0.3 + 0.1 * k, prior=0.3, threshold=0.1) for k in (2, 3))
    assert two < guard.planned_nats < three


def test_up_to_the_last_charge_the_good_end_of_a_ladder_keeps_the_tolerance_of_the_plan():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.06, policy="ladder")
    guard = plan.certificate()
    charges = guard.charges - 1
    nats = guard.planned(charges)
    assert guard.charges_left(charges=charges, nats=nats) == 1
    threshold = guard.threshold(0.5, charges=charges, nats=nats)
    _, high = guard.agreed(0.5, threshold, guard.last_length(charges=charges, nats=nats))
    assert high - 0.5 <= plan.tolerance + 1e-9


@for_each("parts", [2, 5, 20])
def test_planned_nats_pay_for_a_best_that_is_two_thresholds_better(parts):
    guard = certificate_of("ladder", plan_certificate(fixed_threshold=0.05, resolution=0.05 / parts))
    assert guard.value_nats(0.6, prior=0.5, threshold=0.05) <= guard.planned_nats


@for_each("policy", POLICIES)
def test_a_failed_value_is_within_the_bounds_and_a_ladders_best_stays(policy):
    for greater in (True, False):
        guard = certificate_of(policy, plan_certificate(greater_is_better=greater))
        worst = 0.0 if greater else 1.0
        assert guard.failed_value(0.3) == (0.3 if policy in ONE_SIDED else worst)


def test_each_policy_has_its_certificate_with_the_numbers_of_the_plan():
    plan = plan_certificate()
    kinds = {
        "ladder": LadderCertificate,
        "gate": GateCertificate,
        "parameter-free-ladder": ParameterFreeLadderCertificate,
    }
    for policy in POLICIES:
        made = certificate_of(policy, plan)
        assert type(made) is kinds.get(policy, Certificate)
        assert (made.bound, made.queries, made.charges, made.beta) == (
            plan.bound,
            plan.queries,
            plan.charges,
            plan.beta,
        )
        assert made.direction == (1 if policy in kinds else 0)
    assert [certificate_of("ladder", replace(plan, greater_is_better=g)).start for g in (True, False)] == [
        0,
        1,
    ]
