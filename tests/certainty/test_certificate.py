"""Certificates recomputed from their definition; nothing is sampled."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_tests import examples
from scipy import stats

from reusable_holdout.certainty import (
    THEORY,
    Certificate,
    ConfidenceBound,
    NoiseTails,
    Shares,
    ThresholdTable,
    fixed_queries_half_width,
)
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.noise import Calibration
from reusable_holdout.ways import tidy

FAMILIES = ("binomial", "bounded", "bounded-difference")
SHARES = (Shares(0.8, 0.2), Shares(0.5, 0.5), Shares(1.0, 1.0))
GRID = 2**32


def certificate(*, rows=10_000, family="binomial", **changes):
    standard = Certificate(
        bound=ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows),
        queries=1000,
        charges=10,
        beta=0.05,
        noise_scale=1e-4,
        tolerance=0.06,
        least_threshold=0.004,
        charge_nats=THEORY.charge.worst,
    )
    return replace(standard, **changes)


certificates = st.builds(
    certificate,
    rows=st.sampled_from((50, 1000, 10_000, 10**6)),
    family=st.sampled_from(FAMILIES),
    queries=st.sampled_from((1, 30, 1000)),
    noise_scale=st.sampled_from((0.0, 1e-4, 1e-3)),
    tolerance=st.floats(0.01, 0.5),
    shares=st.sampled_from(SHARES),
)
units = st.floats(0.0, 1.0)
lengths = st.floats(0.0, 3000.0)
shares = st.sampled_from((0.2, 0.5, 0.8, 1.0))


def exact_half_width(count, rows, level):
    """Of Clopper and Pearson's interval, each side at this level."""
    low = stats.beta.ppf(level, count, rows - count + 1)
    high = stats.beta.isf(level, count + 1, rows - count)
    return (high - low) / 2.0


# ---- intervals


@for_each(("rows", "queries", "charges"), [(10_000, 1000, 0), (10_000, 1000, 9), (1000, 100, 5)])
def test_half_widths_are_those_of_the_definition(rows, queries, charges):
    guard, nats = certificate(rows=rows, queries=queries), 2.0 * charges
    number = 2.0 if charges == 0 else 2.0 * (guard.charges - 1)
    weight = 0.75 * math.exp(-nats) / (number * math.comb(queries, charges + 1))
    expected = exact_half_width(0.9 * rows, rows, 0.8 * 0.95 * 0.05 * weight)
    width = guard.half_width(charges=charges, nats=nats, estimate=0.9)
    assert width == pytest.approx(expected, rel=1e-8)


@for_each(("charges", "answers"), [(0, 1), (0, 5), (1, 1), (10, 2)])
def test_half_widths_of_finals_are_those_of_the_definition(charges, answers):
    guard, nats = certificate(rows=1000, queries=100), 2.0 * charges
    number = 2.0 * guard.charges if charges else 2.0
    for last in (charges, 50, 100):
        even, early = math.comb(100, charges), (last + 1) * math.comb(last, charges)
        places = 0.9 / even + 0.1 / early if charges else 1.0
        weight = 0.25 * math.exp(-nats) * places / (number * answers)
        expected = exact_half_width(870, 1000, 0.5 * 0.95 * 0.05 * weight)
        length = guard.final_length(charges=charges, nats=nats, answers=answers, last_charge=last)
        width = guard.final_half_width(length=length, estimate=0.87)
        assert width == pytest.approx(expected, rel=1e-8)
    assert length == guard.final_length(charges=charges, nats=nats, answers=answers)


@for_each(
    ("rows", "none", "one", "reveals"),
    [(1000, 0.030, 0.050, 0.072), (5000, 0.0132, 0.022, 0.032), (20_000, 0.0066, 0.0110, 0.0161)],
)
def test_finals_are_as_narrow_as_the_theory_has_them(rows, none, one, reveals):
    """After 100 checks none of which was charged, after an honest charge, and after ten reveals of 2 nats."""
    guard = certificate(rows=rows, queries=100, charges=5, noise_scale=0.0)
    cases = ((0, 0.0, none), (1, THEORY.charge.nats[THEORY.charge.place(1.5)], one), (0, 20.0, reveals))
    for charges, nats, expected in cases:
        length = guard.final_length(charges=charges, nats=nats)
        width = guard.final_half_width(length=length, estimate=0.87)
        assert width == pytest.approx(expected, rel=0.04)


@given(guard=certificates, unit=units, reach=st.floats(0.0, 0.3), length=lengths, share=shares)
def test_intervals_contain_what_was_seen_and_stay_within_the_bounds(guard, unit, reach, length, share):
    row = 1.0 / guard.bound.rows  # what lies between two counts is certified by the next
    low, high = guard.around(unit - reach, unit + reach, length=length, share=share)
    assert 0.0 <= low <= max(0.0, unit - reach) + row
    assert min(1.0, unit + reach) - row <= high <= 1.0


@given(
    guard=certificates,
    unit=units,
    reaches=st.tuples(st.floats(0.0, 0.3), st.floats(0.0, 0.3)),
    lengths=st.tuples(lengths, lengths),
    levels=st.tuples(shares, shares),
)
def test_intervals_grow_with_what_is_possible_and_with_the_length_and_shrink_with_the_share(
    guard, unit, reaches, lengths, levels
):
    slack = 1e-13

    def around(reach, length, share):
        return guard.around(unit - reach, unit + reach, length=length, share=share)

    short, long = sorted(lengths)
    less, more = sorted(levels)
    pairs = [
        (around(min(reaches), short, less), around(max(reaches), short, less)),
        (around(reaches[0], short, less), around(reaches[0], long, less)),
        (around(reaches[0], short, more), around(reaches[0], short, less)),
    ]
    for inner, outer in pairs:
        assert outer.low <= inner.low + slack
        assert outer.high >= inner.high - slack


@given(guard=certificates, unit=units, length=lengths, share=shares)
def test_each_side_of_an_interval_has_its_share_of_the_level(guard, unit, length, share):
    low, high = unit, min(1.0, unit + 0.1)
    noise = 0.95 if guard.noise_scale else 1.0  # what is kept for noise is not kept where there is none
    level = math.log(noise * guard.beta * share) - length
    interval = guard.around(low, high, length=length, share=share)
    assert guard.needed(length, share) == pytest.approx(-level)
    lower, upper = guard.bound.lower(low, log_level=level), guard.bound.upper(high, log_level=level)
    assert interval == pytest.approx((lower, upper))


@for_each("family", FAMILIES)
def test_arrays_are_answered_as_their_elements_are(family):
    guard = certificate(family=family, tolerance=0.08)
    priors = np.linspace(0.0, 1.0, 41)
    thresholds = guard.threshold(priors, charges=3, nats=9.5)
    lengths = np.linspace(9.5, 30.0, 41)
    around = guard.around(priors - thresholds, priors + thresholds, length=lengths, share=0.2)
    for i, prior in enumerate(priors.tolist()):
        assert guard.threshold(prior, charges=3, nats=9.5) == pytest.approx(thresholds[i], abs=1e-10)
        ends = prior - float(thresholds[i]), prior + float(thresholds[i])
        one = guard.around(*ends, length=float(lengths[i]), share=0.2)
        assert one == pytest.approx((around.low[i], around.high[i]), abs=1e-10)


# ---- thresholds


@settings(max_examples=examples(300))
@given(guard=certificates, unit=units, charges=st.integers(0, 9), extra=st.floats(0.0, 10.0))
def test_the_threshold_is_the_largest_that_keeps_the_tolerance(guard, unit, charges, extra):
    charges = min(charges, guard.queries - 1)
    prior, nats = unit, 2.0 * charges + extra
    threshold = guard.threshold(prior, charges=charges, nats=nats)
    length = guard.length(charges=charges, nats=nats)

    def kept(deviation):
        reach = deviation + guard.comparison_tail
        low, high = guard.around(prior - reach, prior + reach, length=length, share=guard.shares.agreed)
        return low >= prior - guard.tolerance - 1e-12 and high <= prior + guard.tolerance + 1e-12

    reach = guard.tolerance
    assume(
        min(abs(unit - reach), abs(1.0 - unit - reach)) > 1e-9
    )  # a target within rounding of an end is none

    assert threshold >= guard.least_threshold
    if threshold > guard.least_threshold:
        assert kept(threshold)
    # of 0/1 losses only multiples of 1/n are observed: the next one is as far as a threshold can fall short
    step = (1.0 / guard.bound.rows if guard.bound.family == "binomial" else 0.0) + 1e-7
    if threshold + guard.comparison_tail < 1.0 - 1e-9:
        assert not kept(threshold + step)


@given(guard=certificates, unit=units, charges=st.integers(0, 8), told=st.floats(0.0, 30.0))
def test_neither_a_charge_nor_anything_told_raises_the_threshold(guard, unit, charges, told):
    charges = min(charges, max(0, guard.queries - 2))
    prior = unit
    before = guard.threshold(prior, charges=charges, nats=2.0 * charges)
    assert guard.threshold(prior, charges=charges, nats=2.0 * charges + told) <= before + 1e-9
    # the first charges tell more than their place costs where there are many questions to come
    if charges + 1 < min(guard.queries / 2, guard.charges):
        after = guard.threshold(prior, charges=charges + 1, nats=2.0 * (charges + 1))
        assert after <= before + 1e-9


def test_a_stated_threshold_is_the_threshold():
    guard = certificate(fixed_threshold=0.05)
    assert guard.threshold(0.3, charges=4, nats=12.0) == 0.05
    np.testing.assert_array_equal(guard.threshold(np.array([0.1, 0.9]), charges=0, nats=0.0), [0.05, 0.05])


def test_another_tolerance_and_another_least_threshold_may_be_named():
    guard = certificate()
    length = guard.length(charges=2, nats=4.0)
    named = guard.threshold_of_length(0.6, length, tolerance=0.09)
    assert named == replace(guard, tolerance=0.09).threshold(0.6, charges=2, nats=4.0) > 0.0
    assert guard.threshold_of_length(0.6, length, tolerance=1e-9) == guard.least_threshold
    assert guard.threshold_of_length(0.6, length, tolerance=1e-9, least=-math.inf) < 0.0


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


# ---- what may be told beside the charges

budgets = st.builds(
    certificate,
    queries=st.sampled_from((3, 30, 1000, 10**5)),
    charges=st.integers(1, 12),
    charge_nats=st.sampled_from((math.log(2.0), 2.0, 6.0)),
    reserved_nats=st.floats(0.0, 60.0),
)


@given(guard=budgets, costs=st.lists(st.floats(0.0, 1.0), max_size=12))
def test_whatever_charges_cost_no_question_is_longer_than_the_plan_affords(guard, costs):
    """All charges are made: their number is a promise."""
    nats = guard.reserved_nats
    for charges in range(min(guard.charges, guard.queries)):
        assert guard.length(charges=charges, nats=nats) <= guard.affordable_length + 1e-9
        nats += guard.charge_nats * (costs[charges] if charges < len(costs) else 1.0)


@given(guard=budgets)
def test_the_affordable_length_is_that_of_the_dearest_state_before_the_last_charge(guard):
    states = [
        guard.length(charges=charges, nats=guard.reserved_nats + guard.charge_nats * charges)
        for charges in range(min(guard.charges, guard.queries))
    ]
    assert guard.affordable_length == max(states)


@given(guard=budgets, asked=st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0)), max_size=40))
def test_what_fits_the_room_leaves_every_charge_and_the_tolerance(guard, asked):
    """An adaptive sequence of charges and of voluntary answers, each of which is checked before it is asked."""
    charges, nats = 0, 0.0
    most = min(guard.charges, guard.queries)
    for charged, share in asked:
        room = guard.room(charges=charges, nats=nats)
        if charged:
            if charges + 1 == most:
                break
            charges, nats = charges + 1, nats + guard.charge_nats * share
        elif room > 0.0:
            nats += room * share
        for more in range(most - charges):
            length = guard.length(charges=charges + more, nats=nats + guard.charge_nats * more)
            assert length <= guard.affordable_length + 2e-9


@given(guard=budgets)
def test_at_first_there_is_room_for_what_was_set_aside_and_for_no_more(guard):
    assert guard.room(charges=0, nats=0.0) == pytest.approx(guard.reserved_nats, abs=1e-8)
    assert guard.room(charges=0, nats=guard.reserved_nats + 0.01) < 0.0


@given(guard=budgets, charges=st.integers(0, 11), nats=st.floats(0.0, 80.0), more=st.floats(0.0, 20.0))
def test_what_is_told_takes_its_own_cost_of_the_room_and_no_charge_more_than_was_planned(
    guard, charges, nats, more
):
    charges = min(charges, guard.charges - 1, guard.queries - 1)
    room = guard.room(charges=charges, nats=nats)
    assert guard.room(charges=charges, nats=nats + more) == pytest.approx(room - more, abs=1e-7)
    if charges + 1 < min(guard.charges, guard.queries):
        assert guard.room(charges=charges + 1, nats=nats + guard.charge_nats) >= room - 1e-7


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
    """A value may be told at any question: a reveal has a value, and no charge. One threshold can err both ways.

    The questions are those of all views together; thresholds are each view's own, and half of their part is view 0's.
    """
    tails = [NoiseTails(queries=queries, charges=charges, beta=beta, view=view) for view in range(400)]
    parts = [0.5, *(0.5 / (view * (view + 1)) for view in range(1, 400))]
    reaches = [2.0 * math.log((charges + 1) / (0.1 * 0.05 * beta * part)) for part in parts]
    query_reaches = {round(one.comparison - reach, 6) for one, reach in zip(tails, reaches, strict=True)}
    assert len(query_reaches) == 1
    failures = (
        queries * laplace_tail(tails[0].comparison - reaches[0], scale=4.0)
        + sum(2 * (charges + 1) * laplace_tail(reach, scale=2.0) for reach in reaches)
        + 2 * queries * laplace_tail(tails[0].answer, scale=1.0)
    )
    unopened = 0.1 * 0.05 * beta * 0.5 / 400  # of the views from the 400th on
    assert failures + unopened == pytest.approx(0.05 * beta, rel=1e-9)


@for_each(("queries", "charges"), [(1, 1), (100, 5), (10**6, 200)])
def test_a_threshold_noise_that_is_held_is_paid_for_once(queries, charges):
    beta = 0.05
    tails = NoiseTails(queries=queries, charges=charges, beta=beta, mechanism="standard-svt")
    threshold, query, answer = Calibration("standard-svt", charges).scales
    threshold_reach = threshold * math.log(2 / (0.1 * 0.05 * beta))  # half is for views that may be opened
    failures = (
        queries * laplace_tail(tails.comparison - threshold_reach, scale=query)
        + 2 * 2 * laplace_tail(threshold_reach, scale=threshold)
        + 2 * queries * laplace_tail(tails.answer, scale=answer)
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
    threshold_reach = 2.0 * math.log((charges + 1) / (0.1 * 0.05 * beta))
    failures = (
        queries * discrete_laplace_tail((tails.comparison - threshold_reach) * scale + 1, scale=4 * scale)
        + (charges + 1) * discrete_laplace_tail(threshold_reach * scale + 1, scale=2 * scale)
        + 2 * queries * discrete_laplace_tail(tails.answer * scale + 1, scale=scale)
    )
    assert failures <= 0.05 * beta
    # two noises, the statistic, the prior and the threshold, rounded to the grid: a unit each, at most
    assert GRID_SLACK * GRID >= 5


def test_reaches_are_those_of_the_noise_and_of_rounding():
    guard = certificate(noise_scale=1e-3)
    assert guard.comparison_tail == pytest.approx(1e-3 * guard.tails.comparison + GRID_SLACK)
    assert guard.answer_tail == pytest.approx(1e-3 * guard.tails.answer + GRID_SLACK)
    assert guard.comparison_sd == pytest.approx(1e-3 * math.sqrt(2.0 * 20.0))


@for_each("queries", [1, 7, 40])
@for_each("noise_scale", [0.0, 1e-4])
def test_all_levels_of_one_question_at_a_time_of_finals_and_of_the_noise_sum_to_at_most_beta(
    queries, noise_scale
):
    guard = certificate(queries=queries, noise_scale=noise_scale)
    most = min(queries, guard.charges)
    # each (i, j) stands for C(i - 1, j) sets of positions
    questions = sum(
        math.comb(i - 1, j)
        * math.exp(guard.log_level(guard.code.length(query=i, charges=j), sum(guard.shares)))
        for i, j in itertools.product(range(1, queries + 1), range(most))
        if j < i
    )
    # the last question's agreement or charge is followed by a final, as is every charge of the last
    finals = math.exp(guard.log_level(guard.code.final_length(charges=0), 1.0)) + sum(
        math.comb(last - 1, j - 1)
        * math.exp(guard.log_level(guard.code.final_length(charges=j, last_charge=last), 1.0))
        for j in range(1, most + 1)
        for last in range(j, queries + 1)
    )
    mechanism = 0.05 * guard.beta if noise_scale else 0.0
    assert 0.5 * guard.beta <= questions + finals + mechanism <= guard.beta * (1 + 1e-9)
    if queries >= guard.charges:  # a last charge after the last question is what the finals leave over
        left = (
            0.25 * THEORY.early_share * (guard.charges + 1) / (4 * (queries + 1)) * (guard.beta - mechanism)
        )
        assert questions + finals + mechanism == pytest.approx(guard.beta - left, rel=1e-9)


def test_without_charges_the_certificate_costs_less_than_a_bit_more_than_fixed_questions():
    """A third of a bit for charged answers' sides, less than half a one for the final; the rest are the noise's."""
    guard = certificate()
    assert math.log2(1.0 / (0.8 * 0.75)) < 0.75
    fixed = fixed_queries_half_width(guard.bound, queries=1000, beta=0.8 * 0.75 * 0.95 * 0.05, estimate=0.9)
    assert guard.half_width(charges=0, nats=0.0, estimate=0.9) == pytest.approx(fixed, rel=1e-9)


def test_half_widths_rise_with_charges_and_with_what_they_tell():
    guard = certificate()
    widths = [guard.half_width(charges=j, nats=0.0, estimate=0.8) for j in range(10)]
    assert all(a < b for a, b in pairwise(widths))
    told = [guard.half_width(charges=3, nats=nats, estimate=0.8) for nats in (0.0, 3.0, 6.0, 60.0)]
    assert all(a < b for a, b in pairwise(told))
    lengths = [guard.final_length(charges=j, nats=0.0) for j in range(11)]
    finals = [guard.final_half_width(length=length, estimate=0.8) for length in lengths]
    assert all(a < b for a, b in pairwise(finals))
    assert all(final < width for final, width in zip(finals, widths, strict=False))


def test_a_value_is_told_coarser_than_the_noise_grid_and_within_its_slack():
    """Finer, the last digits of what is told would name the grid step; coarser, an interval would not hold it."""
    scores = [0.3 + step / GRID for step in range(1000)]
    told = [tidy(score) for score in scores]
    assert len(set(told)) < 800
    assert max(abs(value - score) for value, score in zip(told, scores, strict=True)) <= GRID_SLACK
    assert (tidy(-1.0), tidy(2.0)) == (0.0, 1.0)


def test_what_was_told_before_the_first_question_widens_like_what_was_told_since():
    before, since = certificate(told_before=2.5), certificate()
    for one, other in ((0.0, 2.5), (1.0, 3.5)):
        assert before.half_width(charges=1, nats=one, estimate=0.8) == since.half_width(
            charges=1, nats=other, estimate=0.8
        )
        assert before.final_length(charges=1, nats=one) == since.final_length(charges=1, nats=other)
    assert before.half_width(charges=0, nats=0.0, estimate=0.8) > since.half_width(
        charges=0, nats=0.0, estimate=0.8
    )
