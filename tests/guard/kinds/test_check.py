"""Checks: every score, noise and rounding within reach is certified, and each outcome costs what is public."""

from __future__ import annotations

import math
from itertools import product

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from reusable_holdout.guard.kinds.guess_and_check import GuessAndCheck
from within_reach import FAMILIES, certificate_of, certificates_of, certified, noisy, sides, units

from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import InputError
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.told import AGREED, FAILED

SHARES = (0.8, 0.2)
CELLS = range(len(THEORY.charge.cells))
kinds = st.sampled_from((Check, GuessAndCheck))


@settings(max_examples=examples(600))
@given(
    kind=kinds,
    plan=certificates_of("thresholdout"),
    score=units,
    prior=units,
    near=st.booleans(),
    threshold=st.floats(0.004, 0.3),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    kind, plan, score, prior, near, threshold, noise, length
):
    terms = Terms(plan.lower + prior * plan.span, threshold * plan.span)
    score = plan.lower + score * plan.span
    if near:  # where decisions are made
        score = min(max(terms.prior + 2.2 * noise[1] * terms.threshold, plan.lower), plan.upper)
    outcome, _ = certified(noisy(kind, plan, *noise), score, terms, length=length, shares=SHARES)
    assert outcome.charged == (outcome.told != AGREED)
    assert outcome.charged or (outcome.value, outcome.nats) == (terms.prior, 0.0)


@pytest.mark.long(*GUARD)
@for_each(("family", "greater"), list(product(FAMILIES, (True, False))))
def test_every_score_of_a_small_holdout_is_covered_at_every_prior(family, greater):
    """All 25 x 25 pairs of score and prior, the noise at both ends of its reach and at none."""
    plan = certificate_of("thresholdout", rows=24, family=family, greater_is_better=greater, noise=2e-3)
    told = set()
    for noise in product((-1.0, 0.0, 1.0), (-1.0, 1.0)):
        kind = noisy(Check, plan, *noise)
        for score, prior in product(range(25), repeat=2):
            terms = Terms(prior / 24, 0.07)
            told.add(certified(kind, score / 24, terms, length=9.0, shares=SHARES)[0].told)
    assert told == {AGREED, *(f"cell {place}" for place in CELLS)}


@for_each("greater", [True, False])
@for_each(("score", "place"), [(0.4, 3), (0.3, 2), (0.05, 1), (0.58, 4), (0.75, 5)])
def test_the_cell_says_which_way_and_how_far_the_prior_is_off(greater, score, place):
    plan = certificate_of("thresholdout", noise=0.0, greater_is_better=greater)
    kind = noisy(Check, plan, 0.0, 0.0)
    turned = (lambda unit: unit) if greater else (lambda unit: 1.0 - unit)
    terms = Terms(turned(0.5), 0.07)
    outcome = kind.decide(round(turned(score) * 2**32), terms, b"", State())
    near, far = (
        0.5 - THEORY.charge.cells[place].side * 0.07 * end for end in THEORY.charge.cells[place][1:3]
    )
    middle = near if math.isinf(far) else (near + min(max(far, 0.0), 1.0)) / 2
    assert outcome.told == f"cell {place}"
    assert outcome.value == pytest.approx(turned(middle), abs=1e-9)
    assert outcome.nats == THEORY.charge.nats[place]


@given(
    plan=certificates_of("thresholdout"),
    prior=units,
    threshold=st.floats(0.004, 0.3),
    place=st.sampled_from(CELLS),
)
def test_the_value_of_a_cell_lies_in_it_and_within_the_bounds(plan, prior, threshold, place):
    kind = noisy(Check, plan, 0.0, 0.0)
    terms = Terms(plan.lower + prior * plan.span, threshold * plan.span)
    value, cell = kind.outcome(f"cell {place}", terms).value, THEORY.charge.cells[place]
    assert plan.lower <= value <= plan.upper
    deviation = (terms.prior - value) * plan.better * cell.side / terms.threshold
    nearest = min(cell.near, _room(plan, terms, cell.side))  # a cell beyond the bound is told as the bound
    assert nearest - 1e-6 <= deviation <= cell.far + 1e-6


def _room(plan, terms, side):
    """Thresholds between the prior and the bound on one side."""
    worse = (terms.prior - plan.lower) if plan.better == 1 else (plan.upper - terms.prior)
    return (worse if side == 1 else plan.span - worse) / terms.threshold


def test_the_weights_of_all_charged_outcomes_sum_to_one():
    kind = noisy(Check, certificate_of("thresholdout"), 0.0, 0.0)
    terms = Terms(0.6, 0.05)
    told = [kind.outcome(name, terms) for name in (FAILED, *(f"cell {place}" for place in CELLS))]
    assert all(outcome.charged for outcome in told)
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) == pytest.approx(1.0, abs=1e-12)
    assert max(outcome.nats for outcome in told) <= kind.certificate.charge_nats


@for_each("told", ["cell 6", "cell -1", "cell", "cell x", "steps 1", "value 0.5", "", "Agreed"])
def test_what_cannot_have_been_told_is_refused(told):
    kind = noisy(Check, certificate_of("thresholdout"), 0.0, 0.0)
    with pytest.raises(InputError, match="has no outcome"):
        kind.outcome(told, Terms(0.6, 0.05))


@for_each("greater", [True, False])
def test_a_failure_says_nothing_of_the_population_and_has_the_worst_value(greater):
    kind = noisy(Check, certificate_of("thresholdout", greater_is_better=greater), 0.0, 0.0)
    terms = Terms(0.6, 0.05)
    outcome = kind.fail(terms, State())
    assert (outcome.told, outcome.charged, outcome.value) == (FAILED, True, 0.0 if greater else 1.0)
    assert kind.interval(outcome, terms, 5.0) == (0.0, 1.0)


# ---- how much a charge tells


@for_each(
    ("place", "first", "fifth"),
    [
        (3, 0.036, 0.057),
        (2, 0.053, 0.075),
        (1, 0.086, 0.110),
        (0, 0.33, 0.33),
        (4, 0.031, 0.046),
        (5, 0.043, 0.051),
    ],
)
def test_charged_answers_are_as_narrow_as_the_theory_has_them(place, first, fifth):
    """Half-widths at 5,000 rows, an accuracy of .87 and a threshold of .03, after 0 and 4 charges."""
    plan = certificate_of("thresholdout", rows=5_000, queries=100, charges=5, noise=0.0)
    kind, terms = noisy(Check, plan, 0.0, 0.0), Terms(0.87, 0.03)
    outcome = kind.outcome(f"cell {place}", terms)
    for charges, expected in ((0, first), (4, fifth)):
        length = plan.length(charges=charges, nats=plan.charge_nats * charges)
        low, high = kind.interval(outcome, terms, length)
        assert (high - low) / 2 <= 1.1 * expected
