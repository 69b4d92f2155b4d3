"""Certificates recomputed from their definition, and their coverage by enumeration; nothing is sampled."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_tests import examples

from reusable_holdout.mechanisms import Calibration
from reusable_holdout.validity import (
    FAILURE_NATS,
    PLANNED_NATS_PER_CHARGE,
    Certificate,
    ConfidenceBound,
    NoiseTails,
    ThresholdTable,
    fixed_queries_half_width,
)
from reusable_holdout.validity.certificate import GRID_SLACK

FAMILIES = ("binomial", "bounded", "bounded-difference")
GRID = 2**32


def certificate(*, rows=10_000, family="binomial", **changes):
    standard = Certificate(
        bound=ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows),
        queries=1000,
        charges=10,
        beta=0.05,
        noise_scale=1e-4,
        resolution=0.005,
        lower=0.0,
        upper=1.0,
        tolerance=0.06,
        fixed_threshold=None,
        least_threshold=0.004,
    )
    return replace(standard, **changes)


certificates = st.builds(
    certificate,
    rows=st.sampled_from((50, 1000, 10_000, 10**6)),
    family=st.sampled_from(FAMILIES),
    queries=st.sampled_from((1, 30, 1000)),
    noise_scale=st.sampled_from((0.0, 1e-4, 1e-3)),
    tolerance=st.floats(0.01, 0.5),
    lower=st.sampled_from((0.0, -1.0)),
    upper=st.just(1.0),
)
units = st.floats(0.0, 1.0)


@for_each(
    ("rows", "queries", "charges", "most"),
    [(10_000, 1000, 0, 0.0128), (10_000, 1000, 10, 0.0366), (1000, 100, 5, 0.075)],
)
def test_half_widths_are_those_required(rows, queries, charges, most):
    guard = certificate(rows=rows, queries=queries, charges=charges)
    width = guard.half_width(query=queries, charges=charges, estimate=0.9)
    assert 0.9 * most < width <= most
    wide = replace(guard, lower=-2.0, upper=8.0)  # the same in a unit ten times as fine
    assert wide.half_width(query=queries, charges=charges, estimate=7.0) == pytest.approx(10 * width)


@given(guard=certificates, unit=units, threshold=st.floats(0.0, 0.3), length=st.floats(0.0, 3000.0))
def test_intervals_contain_what_was_answered_and_stay_within_the_bounds(guard, unit, threshold, length):
    centre = guard.lower + unit * guard.span
    for low, high in (guard.agreed(centre, threshold, length), guard.charged(centre, threshold, length)):
        assert guard.lower <= low <= centre <= high <= guard.upper


@given(
    guard=certificates,
    unit=units,
    thresholds=st.tuples(st.floats(0.0, 0.3), st.floats(0.0, 0.3)),
    lengths=st.tuples(st.floats(0.0, 3000.0), st.floats(0.0, 3000.0)),
)
def test_intervals_grow_with_length_threshold_and_noise(guard, unit, thresholds, lengths):
    centre, slack = guard.lower + unit * guard.span, 1e-13
    noisier = replace(guard, noise_scale=guard.noise_scale + 1e-4, resolution=2 * guard.resolution)
    pairs = [
        (
            guard.agreed(centre, min(thresholds), lengths[0]),
            guard.agreed(centre, max(thresholds), lengths[0]),
        ),
        (
            guard.agreed(centre, thresholds[0], min(lengths)),
            guard.agreed(centre, thresholds[0], max(lengths)),
        ),
        (guard.charged(centre, 0.03, min(lengths)), guard.charged(centre, 0.03, max(lengths))),
        (guard.agreed(centre, thresholds[0], lengths[0]), noisier.agreed(centre, thresholds[0], lengths[0])),
        (guard.charged(centre, 0.03, lengths[0]), noisier.charged(centre, 0.03, lengths[0])),
    ]
    for inner, outer in pairs:
        assert outer.low <= inner.low + slack
        assert outer.high >= inner.high - slack


@given(guard=certificates, unit=units, length=st.floats(0.0, 3000.0))
def test_intervals_cover_the_bounds_of_every_holdout_value_the_noise_allows(guard, unit, length):
    centre, tails = guard.lower + unit * guard.span, guard.tails
    agreed, charged = guard.agreed(centre, 0.03, length), guard.charged(centre, 0.03, length)
    rounding = guard.resolution_at(0.03) / 2
    for interval, reach, level in (
        (agreed, 0.03 + tails.comparison * guard.noise_scale, guard.agreed_level(length)),
        (charged, rounding + tails.answer * guard.noise_scale, guard.charged_level(length)),
    ):
        value = np.array([centre - reach, centre + reach]) / guard.span - guard.lower / guard.span
        low, high = guard.bound.lower(value[0], log_level=level), guard.bound.upper(value[1], log_level=level)
        assert interval.low <= guard.lower + low * guard.span + 1e-13
        assert interval.high >= guard.lower + high * guard.span - 1e-13


@settings(max_examples=examples(300))
@given(guard=certificates, unit=units, charges=st.integers(0, 9), extra=st.floats(0.0, 10.0))
def test_the_threshold_is_the_largest_that_keeps_the_tolerance(guard, unit, charges, extra):
    charges = min(charges, guard.queries - 1)
    prior, nats = guard.lower + unit * guard.span, 3.0 * charges + extra
    threshold = guard.threshold(prior, charges=charges, nats=nats)
    length = guard.last_length(charges=charges, nats=nats)

    def kept(deviation):
        low, high = guard.agreed(prior, deviation, length)
        return low >= prior - guard.tolerance - 1e-12 and high <= prior + guard.tolerance + 1e-12

    reach = guard.tolerance / guard.span
    assume(
        min(abs(unit - reach), abs(1.0 - unit - reach)) > 1e-9
    )  # a target within rounding of an end is none

    assert threshold >= guard.least_threshold
    if threshold > guard.least_threshold:
        assert kept(threshold)
    # of 0/1 losses only multiples of 1/n are observed: the next one is as far as a threshold can fall short
    step = (1.0 / guard.bound.rows if guard.bound.family == "binomial" else 0.0) + 1e-7
    if threshold / guard.span + guard.comparison_tail < 1.0 - 1e-9:
        assert not kept(threshold + step * guard.span)


@given(guard=certificates, unit=units, charges=st.integers(0, 8))
def test_a_charge_never_raises_the_threshold(guard, unit, charges):
    charges = min(charges, max(0, guard.queries - 2))
    prior = guard.lower + unit * guard.span
    if charges + 1 < guard.queries:
        before, after = (guard.threshold(prior, charges=j, nats=3.0 * j) for j in (charges, charges + 1))
        assert after <= before + 1e-9


def test_a_stated_threshold_is_the_threshold():
    guard = certificate(fixed_threshold=0.05)
    assert guard.threshold(0.3, charges=4, nats=12.0) == 0.05
    np.testing.assert_array_equal(guard.threshold(np.array([0.1, 0.9]), charges=0, nats=0.0), [0.05, 0.05])


@for_each("family", FAMILIES)
def test_arrays_are_answered_as_their_elements_are(family):
    guard = certificate(family=family, lower=-1.0, upper=3.0, tolerance=0.3)
    priors = np.linspace(-1.0, 3.0, 41)
    thresholds = guard.threshold(priors, charges=3, nats=9.5)
    lengths = guard.code.lengths(first=500, count=41, charges=3, nats=9.5)
    agreed, charged = guard.agreed(priors, thresholds, lengths), guard.charged(priors, thresholds, lengths)
    for i, prior in enumerate(priors.tolist()):
        assert guard.threshold(prior, charges=3, nats=9.5) == pytest.approx(thresholds[i], abs=1e-10)
        one = guard.agreed(prior, float(thresholds[i]), float(lengths[i]))
        assert one == pytest.approx((agreed.low[i], agreed.high[i]), abs=1e-10)
        other = guard.charged(prior, float(thresholds[i]), float(lengths[i]))
        assert other == pytest.approx((charged.low[i], charged.high[i]), abs=1e-10)


@given(
    charges=st.integers(0, 12),
    nats=st.floats(0.0, 80.0),
    more=st.floats(0.0, 20.0),
    queries=st.sampled_from(
        (30, 1000, 10**5)
    ),  # with hardly more questions than charges, the last positions cost less
)
def test_charges_left_falls_with_charges_and_nats(charges, nats, more, queries):
    guard = certificate(charges=12, queries=queries)
    left = guard.charges_left(charges=charges, nats=nats)
    assert 0 <= left <= 12 - charges
    assert guard.charges_left(charges=charges, nats=nats + more) <= left
    if charges < 12:
        assert guard.charges_left(charges=charges + 1, nats=nats + more) <= left


@given(charges=st.integers(0, 11), nats=st.floats(0.0, 80.0))
def test_the_guard_halts_exactly_when_the_next_questions_would_outgrow_the_plan(charges, nats):
    guard = certificate(charges=12)
    excess = guard.last_length(charges=charges, nats=nats) - guard.affordable_length
    if abs(excess) > 1e-6:
        assert (guard.charges_left(charges=charges, nats=nats) == 0) == (excess > 0.0)


def test_a_plan_of_a_stated_threshold_on_a_fine_grid_sets_aside_what_its_values_cost():
    coarse = certificate(charges=12, fixed_threshold=0.05, resolution=0.1)
    fine = certificate(charges=12, fixed_threshold=0.05, resolution=0.0005)
    assert coarse.planned_nats == PLANNED_NATS_PER_CHARGE
    two_thresholds_off = fine.value_nats(0.4, prior=0.5, threshold=0.05)
    assert fine.planned_nats == pytest.approx(two_thresholds_off, rel=1e-9)
    assert fine.planned_nats > PLANNED_NATS_PER_CHARGE
    for charges in range(13):
        assert fine.charges_left(charges=charges, nats=fine.planned_nats * charges) == 12 - charges


def test_at_planned_cost_every_charge_of_the_plan_is_left():
    guard = certificate(charges=12)
    for charges in range(13):
        nats = PLANNED_NATS_PER_CHARGE * charges
        assert guard.charges_left(charges=charges, nats=nats) == 12 - charges


@settings(max_examples=60)
@given(
    guard=certificates,
    resolution=st.sampled_from((None, 0.005, 0.03, 0.07, 0.08, 0.6)),
    greater=st.booleans(),
    unit=units,
    threshold=st.floats(0.004, 0.6),
)
def test_the_weights_of_all_values_a_guard_can_release_and_of_a_failure_sum_to_one(
    guard, resolution, greater, unit, threshold
):
    guard = replace(guard, resolution=resolution, greater_is_better=greater)
    prior, step = guard.lower + unit * guard.span, guard.resolution_at(threshold)
    noisy = np.linspace(guard.lower, guard.upper, 8 * math.ceil(guard.span / step) + 1)
    values = {guard.rounded(score, prior, threshold) for score in noisy.tolist()}
    assert len(values) >= guard.span / step
    assert all(guard.is_answer(value, prior=prior, threshold=threshold) for value in values)
    nats = [guard.value_nats(value, prior=prior, threshold=threshold) for value in values]
    assert math.fsum(math.exp(-each) for each in [*nats, FAILURE_NATS]) == pytest.approx(1.0, abs=1e-9)


def test_where_the_bounds_leave_no_room_the_other_side_has_all_the_weight():
    guard = certificate()
    far, near = (guard.value_nats(prior - 0.1, prior=prior, threshold=0.05) for prior in (0.9, 0.96))
    assert far - near == pytest.approx(math.log(1.0 / 0.8), abs=1e-6)  # nothing can be 0.05 above 0.96
    for losses in (guard, replace(guard, greater_is_better=False)):
        mirrored = replace(losses, greater_is_better=not losses.greater_is_better)
        for value, prior in ((0.7, 0.9), (0.9, 0.7), (0.8, 0.98), (0.2, 0.01)):
            cost = losses.value_nats(value, prior=prior, threshold=0.05)
            other = mirrored.value_nats(1.0 - value, prior=1.0 - prior, threshold=0.05)
            assert other == pytest.approx(cost, abs=1e-6)


@given(threshold=st.floats(1e-6, 0.36))
def test_a_derived_grid_is_between_one_threshold_and_four_thirds(threshold):
    step = certificate(resolution=None).resolution_at(threshold)
    assert threshold * (1.0 - 1e-8) <= step <= 4.0 / 3.0 * threshold * (1.0 + 1e-8)


@for_each(
    ("rows", "queries", "charges", "tolerance", "estimate"),
    [(10_000, 1000, 15, 0.06, 0.9), (1000, 100, 3, 0.12, 0.8), (10_000, 1000, 6, 0.06, 0.5)],
)
def test_a_charged_answer_keeps_the_tolerance_unless_its_prior_was_far_off(
    rows, queries, charges, tolerance, estimate
):
    guard = certificate(
        rows=rows, queries=queries, charges=charges, tolerance=tolerance, resolution=None, least_threshold=0.0
    )
    guard = replace(guard, noise_scale=0.1 * tolerance / guard.tails.comparison)
    for made in range(charges):
        length = guard.last_length(charges=made, nats=1.2 * made)
        for prior in np.linspace(estimate, 1.0, 11).tolist():
            threshold = guard.threshold_of_length(prior, length)
            for value in np.linspace(max(estimate, prior - 2.0 * threshold), prior, 7).tolist():
                low, high = guard.charged(value, threshold, length)
                assert value - tolerance <= low <= high <= value + tolerance


@for_each("family", FAMILIES)
@for_each(("rows", "tolerance"), [(60, 0.4), (1000, 0.12), (10_000, 0.06)])
def test_a_table_never_raises_a_threshold_and_hardly_lowers_it(family, rows, tolerance):
    guard = certificate(rows=rows, family=family, tolerance=tolerance, queries=100)
    table = ThresholdTable(guard, charges=3, nats=9.5)
    priors = np.linspace(0.0, 1.0, 20_011)
    exact, tabled = guard.threshold(priors, charges=3, nats=9.5), table.at_each(priors)
    assert (tabled <= exact).all()
    inside = (priors > tolerance + 1e-3) & (
        priors < 1 - tolerance - 1e-3
    )  # beyond, one side asks for nothing
    assert (exact[inside] - tabled[inside]).max() <= 5e-3
    assert [table.at(prior) for prior in priors[::397].tolist()] == tabled[::397].tolist()


# ---- the failure probability, part by part


def laplace_tail(reach, *, scale):
    """P(Lap(scale) > reach)."""
    return 0.5 * math.exp(-reach / scale)


def discrete_laplace_tail(reach, *, scale):
    """P(X > reach) for X on the integers with probabilities proportional to exp(-|x| / scale)."""
    return math.exp(-(math.floor(reach) + 1) / scale) / (1.0 + math.exp(-1.0 / scale))


@for_each("beta", [0.5, 0.05, 1e-4])
@for_each(("queries", "charges"), [(1, 0), (1, 1), (100, 5), (10**6, 200)])
def test_the_noise_exceeds_its_reach_with_a_twentieth_of_the_failure_probability(queries, charges, beta):
    tails = NoiseTails(queries=queries, charges=charges, beta=beta)
    threshold_reach = 2.0 * math.log((charges + 1) / (2 * 0.1 * 0.05 * beta))
    query_reach = tails.comparison - threshold_reach
    failures = (
        queries * laplace_tail(query_reach, scale=4.0)
        + (charges + 1) * laplace_tail(threshold_reach, scale=2.0)
        + 2 * charges * laplace_tail(tails.answer, scale=1.0)
    )
    unspent = 0.1 * 0.05 * beta if charges == 0 else 0.0  # no charge, no charged value
    assert failures + unspent == pytest.approx(0.05 * beta, rel=1e-9)


@for_each(("queries", "charges"), [(1, 1), (100, 5), (10**6, 200)])
def test_a_threshold_noise_that_is_held_is_paid_for_once(queries, charges):
    beta = 0.05
    tails = NoiseTails(queries=queries, charges=charges, beta=beta, mechanism="standard-svt")
    threshold, query, answer = Calibration("standard-svt", charges).scales
    threshold_reach = threshold * math.log(1 / (2 * 0.1 * 0.05 * beta))
    failures = (
        queries * laplace_tail(tails.comparison - threshold_reach, scale=query)
        + laplace_tail(threshold_reach, scale=threshold)
        + 2 * charges * laplace_tail(tails.answer, scale=answer)
    )
    assert failures == pytest.approx(0.05 * beta, rel=1e-9)


@for_each(("queries", "charges"), [(1, 1), (100, 5), (10**6, 200)])
def test_noise_that_is_compared_and_released_is_paid_for_once(queries, charges):
    beta = 0.05
    tails = NoiseTails(queries=queries, charges=charges, beta=beta, mechanism="target-charging")
    assert tails.answer == tails.comparison
    failures = 2 * queries * laplace_tail(tails.comparison, scale=math.sqrt(20))
    assert failures == pytest.approx(0.05 * beta, rel=1e-9)


def test_no_noise_reaches_nowhere():
    tails = NoiseTails(queries=100, charges=5, beta=0.05, mechanism="noiseless")
    assert (tails.comparison, tails.answer) == (0.0, 0.0)


@for_each("noise_scale", [1e-2, 1e-4, 1e-7, 1e-9, 1e-11])
def test_one_grid_unit_per_noise_pays_for_its_being_discrete(noise_scale):
    queries, charges, beta = 1000, 10, 0.05
    scale, tails = noise_scale * GRID, NoiseTails(queries=queries, charges=charges, beta=beta)
    threshold_reach = 2.0 * math.log((charges + 1) / (2 * 0.1 * 0.05 * beta))
    failures = (
        queries * discrete_laplace_tail((tails.comparison - threshold_reach) * scale + 1, scale=4 * scale)
        + (charges + 1) * discrete_laplace_tail(threshold_reach * scale + 1, scale=2 * scale)
        + 2 * charges * discrete_laplace_tail(tails.answer * scale + 1, scale=scale)
    )
    assert failures <= 0.05 * beta
    # two noises, the statistic, the prior and the threshold, rounded to the grid: a unit each, at most
    assert GRID_SLACK * GRID >= 5


@for_each("queries", [1, 7, 40])
def test_all_levels_of_one_question_at_a_time_and_the_noise_sum_to_at_most_beta(queries):
    guard = certificate(queries=queries)
    nodes = [(i, j) for i in range(1, queries + 1) for j in range(min(i, guard.charges))]
    # both sides of every node; each (i, j) stands for C(i - 1, j) sets of positions
    spent = sum(
        2.0 * math.comb(i - 1, j) * math.exp(guard.log_level(guard.code.length(query=i, charges=j)))
        for i, j in nodes
    )
    assert 0.5 * 0.95 * guard.beta * 0.999 <= spent <= 0.95 * guard.beta * (1 + 1e-9)


def test_without_charges_the_certificate_costs_less_than_a_third_of_a_bit_more_than_fixed_questions():
    guard = certificate()
    assert math.log2(1.0 / 0.8) < 1.0 / 3.0
    fixed = fixed_queries_half_width(guard.bound, queries=1000, beta=0.8 * 0.95 * 0.05, estimate=0.9)
    assert guard.half_width(query=1000, charges=0, estimate=0.9) == pytest.approx(fixed, rel=1e-9)


def test_half_widths_rise_with_questions_and_charges():
    guard = certificate()
    widths = [guard.half_width(query=1000, charges=j, estimate=0.8) for j in range(12)]
    assert all(a < b for a, b in pairwise(widths))
    later = [guard.half_width(query=i, charges=3, estimate=0.8) for i in (4, 10, 100, 1000)]
    assert later == sorted(later)
