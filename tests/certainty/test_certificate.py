"""Certificates recomputed from their definition; nothing is sampled."""

import math
from dataclasses import replace

import numpy as np
import pytest
from cases import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_tests import examples
from scipy import stats

from reusable_holdout.certainty import THEORY, Certificate, ConfidenceBound, Shares, ThresholdTable

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
    weight = 0.25 * math.exp(-nats) / (number * math.comb(queries, charges + 1))
    expected = exact_half_width(0.9 * rows, rows, 0.8 * 0.95 * 0.05 * weight)
    width = guard.half_width(charges=charges, nats=nats, estimate=0.9)
    assert width == pytest.approx(expected, rel=1e-8)


@for_each("charges", [0, 1, 10])
def test_half_widths_of_finals_are_those_of_the_definition(charges):
    guard, nats = certificate(rows=1000, queries=100), 2.0 * charges
    number = 0.1 * 11 / (10 * charges * (charges + 1)) if charges else 0.9
    for last in (charges, 50, 100):
        even, early = math.comb(100, charges), (last + 1) * math.comb(last, charges)
        places = 0.9 / even + 0.1 / early if charges else 1.0
        weight = 0.75 * math.exp(-nats) * places * number
        expected = exact_half_width(870, 1000, 0.5 * 0.95 * 0.05 * weight)
        length = guard.final_length(charges=charges, nats=nats, last_charge=last)
        width = guard.final_half_width(length=length, estimate=0.87)
        assert width == pytest.approx(expected, rel=1e-8)
    assert length == guard.final_length(charges=charges, nats=nats)


@for_each(
    ("rows", "none", "one", "reveals"),
    [(1000, 0.0233, 0.050, 0.069), (5000, 0.0103, 0.022, 0.031), (20_000, 0.0051, 0.0110, 0.0155)],
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


@given(guard=budgets, charges=st.integers(0, 11), nats=st.floats(0.0, 80.0), more=st.floats(0.0, 20.0))
def test_what_is_told_takes_its_own_cost_of_the_room_and_no_charge_more_than_was_planned(
    guard, charges, nats, more
):
    charges = min(charges, guard.charges - 1, guard.queries - 1)
    room = guard.room(charges=charges, nats=nats)
    assert guard.room(charges=charges, nats=nats + more) == pytest.approx(room - more, abs=1e-7)
    if charges + 1 < min(guard.charges, guard.queries):
        assert guard.room(charges=charges + 1, nats=nats + guard.charge_nats) >= room - 1e-7
