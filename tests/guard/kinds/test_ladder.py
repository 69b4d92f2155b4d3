"""Ladders: a new best is a whole number of steps, and every score, noise and rounding within reach is certified."""

from __future__ import annotations

import math
from itertools import product

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from within_reach import FAMILIES, certificate_of, certificates_of, certified, noisy, sides, units

from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds import AGREED, FAILED, State, Terms
from reusable_holdout.guard.kinds.ladder import Ladder
from reusable_holdout.plan import Plan

SHARES = (0.5, 0.5)
thresholds = st.floats(0.004, 0.3)


@settings(max_examples=examples(600))
@given(
    plan=certificates_of("ladder"),
    score=units,
    best=units,
    near=st.booleans(),
    threshold=thresholds,
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    plan, score, best, near, threshold, noise, length
):
    terms = Terms(plan.lower + best * plan.span, threshold * plan.span)
    score = plan.lower + score * plan.span
    if near:  # where decisions are made
        score = min(max(terms.prior + 2.2 * noise[1] * terms.threshold, plan.lower), plan.upper)
    certified(noisy(Ladder, plan, *noise), score, terms, length=length, shares=SHARES)


@pytest.mark.long(*GUARD)
@for_each(("family", "greater"), list(product(FAMILIES, (True, False))))
def test_every_score_of_a_small_holdout_is_covered_at_every_best(family, greater):
    """All 25 x 25 pairs of score and best, the noise at both ends of its reach and at none."""
    plan = certificate_of("ladder", rows=24, family=family, greater_is_better=greater, noise_scale=2e-3)
    told = set()
    for noise in product((-1.0, 0.0, 1.0), (-1.0, 1.0)):
        kind = noisy(Ladder, plan, *noise)
        for score, best in product(range(25), repeat=2):
            terms = Terms(best / 24, 0.07)
            told.add(certified(kind, score / 24, terms, length=9.0, shares=SHARES)[0].told)
    assert told == {AGREED, *(f"steps {count}" for count in range(1, 15))}


@for_each("greater", [True, False])
@for_each("short", [0.0, 2e-7, 4e-7])
def test_a_score_just_below_a_whole_number_of_steps_is_certified_though_it_is_told_as_that(greater, short):
    """Of 0/1 losses: an interval around the steps alone would be that of one more row."""
    plan = certificate_of("ladder", mechanism="noiseless", greater_is_better=greater)
    kind, step = noisy(Ladder, plan, 0.0, 0.0), 0.01 * (1.0 + short)
    outcome, _ = certified(kind, 0.5 + plan.better * 0.02, Terms(0.5, step), length=9.0, shares=SHARES)
    assert outcome.told == "steps 2"


@given(plan=certificates_of("ladder"), best=units, length=st.floats(0.0, 500.0))
def test_how_far_below_the_best_a_submission_is_is_not_told(plan, best, length):
    kind, terms = noisy(Ladder, plan, 0.0, 0.0), Terms(plan.lower + best * plan.span, 0.05)
    assert (plan.lower if plan.greater_is_better else plan.upper) in kind.interval(
        kind.outcome(AGREED, terms), terms, length
    )


# ---- what can be told


@given(plan=certificates_of("ladder"), best=units, score=units, threshold=thresholds)
def test_a_new_best_is_a_whole_number_of_steps_better_or_the_best_there_is(plan, best, score, threshold):
    kind = noisy(Ladder, plan, 1.0, 0.0)
    terms = Terms(plan.lower + best * plan.span, threshold * plan.span)
    outcome = kind.decide(math.floor(score * 2**32), terms, b"", State())
    gain = plan.better * (outcome.value - terms.prior) / terms.threshold
    top = plan.upper if plan.greater_is_better else plan.lower
    assert plan.lower <= outcome.value <= plan.upper
    if outcome.told == AGREED:
        assert gain == 0.0
    else:
        assert outcome.told == f"steps {max(1, math.ceil(gain - 1e-6))}" or outcome.value == top
        assert outcome.value == top or gain == pytest.approx(round(gain), abs=1e-5)
        assert outcome.nats > 0.0


@settings(max_examples=examples(200))
@given(plan=certificates_of("ladder"), best=units, threshold=st.floats(0.002, 0.3))
def test_the_weights_of_all_new_bests_and_of_a_failure_sum_to_at_most_one(plan, best, threshold):
    """Kraft: every number of steps that the range has, whatever the score and the noise."""
    kind = noisy(Ladder, plan, 0.0, 0.0)
    terms = Terms(plan.lower + best * plan.span, threshold * plan.span)
    most = math.ceil(1.0 / threshold - 1e-6)
    told = [kind.outcome(f"steps {count}", terms) for count in range(1, most + 1)]
    told.append(kind.outcome(FAILED, terms))
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) <= 1.0 + 1e-12
    with pytest.raises(InputError, match="has no outcome"):
        kind.outcome(f"steps {most + 1}", terms)
    for score in (0, 2**32):  # from worst to best there are no more steps
        first = kind.decide(score, terms._replace(prior=kind.start), b"", State())
        assert first.told == AGREED or 1 <= int(first.told.split()[1]) <= most


@for_each("rows", [200, 10_000])
@for_each("wish", [{}, {"threshold": 0.1}, {"family": "bounded", "bounds": (-1.0, 4.0)}])
def test_no_new_best_costs_more_than_the_plan_set_aside(rows, wish):
    """The steps shrink with the charges, but never below one standard deviation of an honest deviation."""
    plan = Plan(rows=rows, queries=100, charges=3, policy="ladder", **wish)
    certificate = plan.certificate()
    kind = noisy(Ladder, certificate, 0.0, 0.0)
    for charges in range(plan.charges):
        state = State(charges=charges, nats=certificate.charge_nats * charges + certificate.reserved_nats)
        terms = kind.terms(math.nan, state, None)
        most = math.ceil(certificate.span / terms.threshold - 1e-6)
        assert kind.outcome(f"steps {most}", terms).nats <= certificate.charge_nats + 1e-12


def test_up_to_the_last_charge_the_good_end_of_a_ladder_keeps_the_tolerance_of_the_plan():
    plan = Plan(rows=10_000, queries=1_000, tolerance=0.06, policy="ladder")
    certificate = plan.certificate()
    kind = noisy(Ladder, certificate, 0.0, 0.0)
    for charges in range(plan.charges):
        state = State(charges=charges, nats=certificate.charge_nats * charges, value=0.5)
        terms = kind.terms(math.nan, state, None)
        _, high = kind.interval(kind.outcome(AGREED, terms), terms, kind.length(state))
        assert high - 0.5 <= plan.tolerance + 1e-9


@for_each("greater", [True, False])
def test_a_best_at_the_bound_stays_there(greater):
    kind = noisy(Ladder, certificate_of("ladder", greater_is_better=greater), -1.0, 1.0)
    terms = Terms(1.0 if greater else 0.0, 0.05)
    for score in (0, 2**31, 2**32):
        assert kind.decide(score, terms, b"", State()).value == terms.prior
    # noise alone can make it a step better: it is told as the bound
    outcome = kind.outcome("steps 1", terms)
    low, high = kind.interval(outcome, terms, 5.0)
    assert low <= terms.prior == outcome.value <= high


@for_each("told", ["steps 0", "steps -1", "steps 21", "steps 1.5", "steps", "cell 0", "yes", ""])
def test_what_cannot_have_been_told_is_refused(told):
    with pytest.raises(InputError, match="has no outcome"):
        noisy(Ladder, certificate_of("ladder"), 0.0, 0.0).outcome(told, Terms(0.5, 0.05))


@for_each("greater", [True, False])
def test_a_failure_leaves_the_best_as_it_was(greater):
    kind = noisy(Ladder, certificate_of("ladder", greater_is_better=greater), 0.0, 0.0)
    outcome = kind.fail(Terms(0.3, 0.05), State())
    assert (outcome.told, outcome.charged, outcome.value) == (FAILED, True, 0.3)
    assert kind.interval(outcome, Terms(0.3, 0.05), 5.0) == (0.0, 1.0)
    assert kind.start == (0.0 if greater else 1.0)
