"""Gates: one bit, whose two intervals need no division of the failure probability."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from scipy import stats
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

from reusable_holdout.certainty import Certificate
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.gate import Gate
from reusable_holdout.ways.told import FAILED, NO, YES, Told

SHARES = (1.0, 1.0)


@settings(max_examples=examples(400))
@given(
    plan=certificates_of("gates"),
    score=units,
    named=units,
    near=st.booleans(),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    plan, score, named, near, noise, length
):
    if near:  # where decisions are made
        reach = 1.2 * plan.tails.comparison * plan.noise_scale + 1e-8
        score = min(max(named + noise[1] * reach, 0.0), 1.0)
    terms, outcome = certified(noisy(Gate, plan, *noise), score, named, length=length, shares=SHARES)
    assert outcome.told in {Told(NO), Told(YES)}
    assert (outcome.value, terms.unit) == (named, 0.0)


@pytest.mark.long(*GUARD)
@for_each("family", FAMILIES)
def test_every_score_of_a_small_holdout_is_covered_at_every_name(family):
    """All 31 x 31 pairs of score and name, the noise at both ends of its reach and at none."""
    plan = certificate_of("gates", rows=30, family=family, noise_scale=2e-3)
    told = set()
    for noise in (-1.0, 0.0, 1.0):
        way = noisy(Gate, plan, noise, 0.0)
        for score, named in product(range(31), repeat=2):
            _, outcome = certified(way, score / 30, named / 30, length=9.0, shares=SHARES)
            told.add(outcome.told)
    assert told == {Told(NO), Told(YES)}


@for_each("truth", [0.05, 0.3, 0.5, 0.83])
@for_each("length", [0.0, 3.0])
def test_one_question_misses_with_at_most_what_its_node_may_spend(truth, length):
    """Yes or no, at every name, exactly: the holdout's value is binomial, and there is no noise."""
    rows, worst = 60, 0.0
    plan = certificate_of("gates", rows=rows, noise_scale=0.0)
    way, chances = noisy(Gate, plan, 0.0, 0.0), stats.binom.pmf(range(rows + 1), rows, truth).tolist()
    for named in range(rows + 1):
        missed = 0.0
        for score, chance in enumerate(chances):
            terms, outcome = answered(way, math.floor(score / rows * GRID), named / rows)
            low, high = way.interval(outcome.told, terms, length)
            missed += chance * (not low <= truth <= high)
        worst = max(worst, missed)
    assert worst <= plan.beta * math.exp(-length)
    if length == 0.0 and truth > 0.1:
        assert worst > 0.5 * plan.beta  # a side has more than a half: nothing is given away


@given(plan=certificates_of("gates"), named=units, length=st.floats(0.0, 500.0))
def test_what_is_not_told_leaves_the_interval_open(plan, named, length):
    way, terms = noisy(Gate, plan, 0.0, 0.0), Terms(named, 0.0)
    assert way.interval(Told(NO), terms, length).low == 0.0
    assert way.interval(Told(YES), terms, length).high == 1.0


def test_yes_and_a_failure_are_all_that_costs_and_their_weights_sum_to_one():
    way, terms = noisy(Gate, certificate_of("gates"), 0.0, 0.0), Terms(0.4, 0.0)
    yes, no, failed = (way.outcome(Told(word), terms) for word in (YES, NO, FAILED))
    assert math.exp(-yes.nats) + math.exp(-failed.nats) == pytest.approx(1.0, abs=1e-12)
    assert (yes.charged, no.charged, no.nats, failed.charged) == (True, False, 0.0, True)
    assert max(yes.nats, failed.nats) == way.certificate.charge_nats
    for text in ("cell 0", "cell 1", "span 0", "steps 1", "agreed", "yes with 1:0.5", "no with 1:0.5", "yes 1"):
        refused(way, text, terms)


def test_a_failure_says_nothing_of_the_population():
    way = noisy(Gate, certificate_of("gates"), 0.0, 0.0)
    terms, outcome = answered(way, None, 0.6)
    assert (outcome.told, outcome.charged, outcome.value) == (Told(FAILED), True, 0.0)
    assert way.interval(outcome.told, terms, 5.0) == (0.0, 1.0)


def test_failures_alone_break_no_promise_of_the_plan_up_to_the_last_charge():
    plan = certificate_of("gates")
    assert plan.charges > 2
    way, state = noisy(Gate, plan, 0.0, 0.0), State()
    while state.charges < plan.charges - 1:
        _, failed = answered(way, None, 0.6, state=state)
        assert failed.told == Told(FAILED)
        state = State(charges=state.charges + 1, nats=state.nats + failed.nats)
        assert plan.room(charges=state.charges, nats=state.nats) >= 0.0


def test_a_score_that_is_exactly_as_named_passes():
    way = noisy(Gate, certificate_of("gates", noise_scale=0.0), 0.0, 0.0)
    for named in (0.1, 1 / 3, 0.5, 0.7):
        score = way.grid(named)
        assert answered(way, score, named)[1].told == Told(YES)
        assert answered(way, score - 1, named)[1].told == Told(NO)


# ---- by evidence

ROWS, TOLERANCE = 400, 0.1
NAMES = [0.2, 0.5, 0.7, 0.85]


def gate_by_evidence(noise, **changes):
    """Gate that the rows' evidence decides, whose noise is this share of its reach."""
    settled = {"rows": ROWS, "family": "bounded", "noise_scale": 5e-5, "decides": "evidence", "spread": 0.5}
    plan = certificate_of("gates", **settled | {"tolerance": TOLERANCE} | changes)
    return noisy(Gate, plan, noise, 0.0, ByEvidence)


class Rows:
    """What a rule asks of rows whose weights are alike."""

    relative_weights = None


def every_mean(way, named):
    """Each mean of rows of 0 and 1, of which the evidence is the least, and what they are weighed as."""
    for ones in range(ROWS + 1):
        terms = np.repeat([GRID, 0], [ones, ROWS - ones])
        measured = np.concatenate([[ones * GRID // ROWS], terms])
        (weighed,) = way.rule.weighed(Rows, measured[None], np.array([named]), None)
        yield ones / ROWS, weighed


def left_out(way, named):
    """Means that are told as "no", and whose own confidence bound lies beyond the interval of that."""
    length, certificate = way.length(State()), way.certificate
    level, found = certificate.log_level(length, certificate.shares.agreed), []
    for mean, weighed in every_mean(way, named):
        terms, outcome = answered(way, weighed, named)
        interval = way.interval(outcome.told, terms, length)
        upper = certificate.bound.upper(mean, log_level=level)
        if outcome.told == Told(NO) and interval.high < upper - 1e-9:
            found.append(mean)
    return found


@for_each("noise", [-1.0, 0.0, 1.0])
@for_each("named", NAMES)
def test_a_no_by_evidence_holds_every_mean_that_the_noise_lets_it_be_told_of(named, noise):
    """The noise that let the evidence fall short reaches as far as the noise that was reckoned with."""
    assert left_out(gate_by_evidence(noise), named) == []


@for_each("named", NAMES)
def test_a_no_that_reckons_with_the_noise_on_one_side_alone_leaves_means_out(named, monkeypatch):
    """The twin: with half of the reach at each of its two places there is one reach in all."""
    whole = Certificate.evidence_tail
    with monkeypatch.context() as patched:
        patched.setattr(Certificate, "evidence_tail", lambda *each: whole(*each) / 2.0)
        assert left_out(gate_by_evidence(-1.0), named)


@for_each("noise", [-1.0, 0.0, 1.0])
@for_each("named", NAMES)
def test_a_yes_by_evidence_is_certain_whatever_the_noise(named, noise):
    """Of what was accepted the rows' own evidence excludes all below the tolerance, at the question's level."""
    way = gate_by_evidence(noise)
    length, told = way.length(State()), set()
    needed = way.certificate.needed(length, way.certificate.shares.charged)
    for mean, weighed in every_mean(way, named):
        terms, outcome = answered(way, weighed, named)
        told.add(outcome.told)
        if outcome.told == Told(YES):
            low, high = way.interval(outcome.told, terms, length)
            assert (low, high) == (pytest.approx(named - TOLERANCE, abs=1e-12), 1.0)
            ones = np.repeat([1.0, 0.0], [round(mean * ROWS), ROWS - round(mean * ROWS)])
            evidence = way.certificate.evidence(named, TOLERANCE, "low")
            assert evidence.of_rows(ones) >= needed
    assert told == {Told(NO), Told(YES)}
