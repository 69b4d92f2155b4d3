"""Checks: every score, noise and rounding within reach is certified, and each outcome costs what is public."""

import math
from dataclasses import replace
from itertools import product

import pytest
from cases import for_each, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from within_reach import (
    FAMILIES,
    GRID,
    answered,
    certificate_of,
    certificates_of,
    certified,
    noisy,
    refused,
    sides,
    units,
)

from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import InputError
from reusable_holdout.ways import AGREED, ALL, CELL, FAILED, State, Terms, Told
from reusable_holdout.ways.check import Check

SHARES = (0.8, 0.2)
CELLS = range(len(THEORY.charge.cells))
thresholds = st.floats(0.004, 0.3)


def near_to(prior, unit, where):
    """A score where decisions are made."""
    return min(max(prior + 2.2 * where * unit, 0.0), 1.0)


@settings(max_examples=examples(400))
@given(
    plan=certificates_of("all"),
    score=units,
    prior=units,
    near=st.booleans(),
    threshold=thresholds,
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    plan, score, prior, near, threshold, noise, length
):
    way = noisy(Check, replace(plan, fixed_threshold=threshold), *noise)
    if near:
        score = near_to(prior, threshold, noise[1])
    terms, outcome = certified(way, score, prior, length=length, shares=SHARES)
    assert terms.unit == threshold
    assert outcome.charged == (outcome.told != Told(AGREED))
    assert outcome.charged or (outcome.value, outcome.nats) == (prior, 0.0)


@settings(max_examples=examples(200))
@given(
    plan=certificates_of("all"),
    score=units,
    prior=units,
    near=st.booleans(),
    tolerance=st.floats(0.01, 0.9),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_so_it_does_where_a_question_has_a_tolerance_of_its_own(
    plan, score, prior, near, tolerance, noise, length
):
    way = noisy(Check, plan, *noise)
    unit = way.unit(prior, State(), tolerance)
    if near:
        score = near_to(prior, unit, noise[1])
    terms, outcome = certified(way, score, prior, length=length, shares=SHARES, tolerance=tolerance)
    assert terms.unit == unit
    if outcome.told == Told(AGREED) and way.keeps(prior, tolerance, way.length(State())):
        low, high = way.interval(outcome.told, terms, way.length(State()))
        assert prior - tolerance - 1e-9 <= low <= high <= prior + tolerance + 1e-9


@pytest.mark.long(*GUARD)
@for_each("family", FAMILIES)
def test_every_score_of_a_small_holdout_is_covered_at_every_prior(family):
    """All 25 x 25 pairs of score and prior, the noise at both ends of its reach and at none."""
    plan = certificate_of("all", rows=24, family=family, noise_scale=2e-3, fixed_threshold=0.05)
    told = set()
    for noise in product((-1.0, 0.0, 1.0), (-1.0, 1.0)):
        way = noisy(Check, plan, *noise)
        for score, prior in product(range(25), repeat=2):
            _, outcome = certified(way, score / 24, prior / 24, length=9.0, shares=SHARES)
            told.add(outcome.told)
    assert told == {Told(AGREED), *(Told(CELL, place) for place in CELLS)}


@for_each(("score", "place"), [(0.4, 4), (0.3, 3), (0.05, 2), (0.58, 5), (0.75, 6)])
def test_the_cell_says_which_way_and_how_far_the_prior_is_off(score, place):
    way = noisy(Check, certificate_of("all", noise_scale=0.0, fixed_threshold=0.07), 0.0, 0.0)
    _, outcome = answered(way, round(score * GRID), 0.5)
    cell = THEORY.charge.cells[place]
    near, far = (0.5 - cell.side * 0.07 * end for end in (cell.near, cell.far))
    middle = near if math.isinf(far) else (near + min(max(far, 0.0), 1.0)) / 2
    assert outcome.told == Told(CELL, place)
    assert outcome.value == pytest.approx(middle, abs=1e-9)
    assert outcome.nats == THEORY.charge.nats[place]


@given(plan=certificates_of("all"), prior=units, threshold=thresholds, place=st.sampled_from(CELLS))
def test_the_value_of_a_cell_lies_in_it_and_within_the_bounds(plan, prior, threshold, place):
    way = noisy(Check, plan, 0.0, 0.0)
    value, cell = way.outcome(Told(CELL, place), Terms(prior, threshold)).value, THEORY.charge.cells[place]
    assert 0.0 <= value <= 1.0
    step = max(threshold, plan.threshold_at_estimate)
    deviation = (prior - value) * cell.side / step
    room = (prior if cell.side == 1 else 1.0 - prior) / step
    nearest = min(
        threshold / step if cell.near == 1.0 else cell.near, room
    )  # a cell beyond the bound is told as the bound
    assert nearest - 1e-6 <= deviation <= cell.far + 1e-6


def test_the_weights_of_all_charged_outcomes_sum_to_one():
    way = noisy(Check, certificate_of("all"), 0.0, 0.0)
    terms = Terms(0.6, 0.05)
    told = [way.outcome(one, terms) for one in (Told(FAILED), *(Told(CELL, place) for place in CELLS))]
    assert all(outcome.charged for outcome in told)
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) == pytest.approx(1.0, abs=1e-12)
    assert max(outcome.nats for outcome in told) <= way.certificate.charge_nats


@for_each(
    "text",
    [
        *("cell 7", "cell -1", "cell", "cell x", "steps 1", "value 0.5", "", "Agreed", "agreed 1", "cell 03"),
        *("yes", "no", "span 0", "measured 0", "not certified", "failed 1"),
        *("cell 3, width 1", "agreed, width 0", "cell 3 with 1:0.5", "candidate 0 of 2, rank 1, cell 3"),
    ],
)
def test_what_cannot_have_been_told_is_refused(text):
    refused(noisy(Check, certificate_of("all"), 0.0, 0.0), text, Terms(0.6, 0.05))


def test_what_was_told_is_read_from_what_is_written_alone():
    for told in (Told(AGREED), Told(FAILED), *(Told(CELL, place) for place in CELLS)):
        assert Told.parse(told.text()) == told
    way = noisy(Check, certificate_of("all"), 0.0, 0.0)
    refuses(InputError, "check has no outcome 'cell 7'", way.outcome, Told(CELL, 7), Terms(0.6, 0.05))


def test_a_failure_says_nothing_of_the_population_and_has_the_worst_value():
    way = noisy(Check, certificate_of("all"), 0.0, 0.0)
    terms, outcome = answered(way, None, 0.6)
    assert (outcome.told, outcome.charged, outcome.value) == (Told(FAILED), True, 0.0)
    assert way.interval(outcome.told, terms, 5.0) == ALL == (0.0, 1.0)


# ---- how much a charge tells


@for_each(
    ("place", "first", "fifth"),
    [
        *((4, 0.036, 0.057), (3, 0.053, 0.075), (2, 0.086, 0.110), (1, 0.146, 0.17), (0, 0.21, 0.22)),
        *((5, 0.031, 0.046), (6, 0.043, 0.051)),
    ],
)
def test_charged_answers_are_as_narrow_as_the_theory_has_them(place, first, fifth):
    """Half-widths at 5,000 rows, an accuracy of .87 and a threshold of .03, after 0 and 4 charges."""
    plan = certificate_of("all", rows=5_000, queries=100, charges=5, noise_scale=0.0, fixed_threshold=0.03)
    way, terms = noisy(Check, plan, 0.0, 0.0), Terms(0.87, 0.03)
    for charges, expected in ((0, first), (4, fifth)):
        length = plan.length(charges=charges, nats=plan.charge_nats * charges)
        low, high = way.interval(Told(CELL, place), terms, length)
        assert (high - low) / 2 <= 1.1 * expected
