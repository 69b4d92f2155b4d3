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
from reusable_holdout.ways import FAILED, NO, YES, State, Terms, Told
from reusable_holdout.ways.gate import Gate, GuardedGate, Named

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
    for text in (
        *("cell 0", "cell 1", "span 0", "steps 1", "agreed", "yes with 1:0.5", "no with 1:0.5", "yes 1"),
    ):
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


# ---- with guardrails


def guarded(plan, noise, scores, names):
    """A guarded gate, its guardrails' gates, and what is told of these scores; of None one failed."""
    gates = [noisy(Gate, plan, noise, 0.0) for _ in scores]
    way = GuardedGate(gates[0], "guarded-gate")
    weighed = [None if score is None else np.array([math.floor(score * GRID)]) for score in scores]
    values = [Named(*one) for one in zip(gates, names, weighed, strict=True)]
    terms, outcome = way.decide(values, range(1, len(scores)), b"question", State())
    assert Told.parse(outcome.told.text()) == outcome.told
    assert way.outcome(outcome.told, terms) == outcome
    return way, gates[1:], terms, outcome


@for_each("family", FAMILIES)
@for_each("noise", [-1.0, 0.0, 1.0])
def test_a_guarded_yes_bounds_each_value_by_its_part_and_a_no_bounds_none(family, noise):
    plan, told, length = certificate_of("gates", rows=12, family=family, noise_scale=2e-3), set(), 5.0
    level = plan.log_level(length + math.log(2), 1.0)
    for own, rail, named, least in product(
        range(0, 13, 2), range(0, 13, 2), range(0, 13, 3), range(0, 13, 3)
    ):
        scores, names = (own / 12, rail / 12), (named / 12, least / 12)
        way, rails, terms, outcome = guarded(plan, noise, scores, names)
        told.add(outcome.told.word)
        assert outcome.told.rails == ((1, least / 12),)
        interval = way.interval(outcome.told, terms, length)
        bounds = [interval, *way.bounds(outcome.told, rails, length, None)]
        if outcome.told.word == NO:
            assert bounds == [(0.0, 1.0)] * 2
            continue
        for one, score in zip(bounds, scores, strict=True):
            assert one.low <= plan.bound.lower(score, log_level=level) + 1e-9
            assert one.high == 1.0
    assert told == {YES, NO}


@for_each("truths", [(0.3, 0.5), (0.5, 0.5), (0.83, 0.6)])
def test_both_bounds_of_a_guarded_gate_miss_together_no_more_often_than_its_node_may(truths):
    """Two values that have nothing to do with each other, which is the worst case of two that are as named."""
    rows, length = 24, 0.0
    plan = certificate_of("gates", rows=rows, noise_scale=0.0)
    chances = [stats.binom.pmf(range(rows + 1), rows, truth).tolist() for truth in truths]
    for ahead in (0, 3, 5, 7):
        names, missed = [min(truth + ahead / rows, 1.0) for truth in truths], 0.0
        for counts in product(range(rows + 1), repeat=2):
            way, rails, terms, outcome = guarded(plan, 0.0, [count / rows for count in counts], names)
            bounds = [
                way.interval(outcome.told, terms, length), *way.bounds(outcome.told, rails, length, None)
            ]  # fmt: skip
            if any(truth < bound.low for truth, bound in zip(truths, bounds, strict=True)):
                missed += math.prod(chance[count] for chance, count in zip(chances, counts, strict=True))
        assert missed <= plan.beta * math.exp(-length)


def test_a_guarded_gate_costs_what_a_gate_does_and_takes_a_query_of_each_value():
    plan = certificate_of("gates", noise_scale=0.0)
    way, _, terms, yes = guarded(plan, 0.0, (0.9, 0.8, 0.7), (0.5, 0.5, 0.5))
    _, _, _, no = guarded(plan, 0.0, (0.9, 0.8, 0.7), (0.5, 0.5, 0.75))
    _, rails, _, failed = guarded(plan, 0.0, (0.9, None, 0.7), (0.5, 0.5, 0.75))
    assert [one.told.word for one in (yes, no, failed)] == [YES, NO, FAILED]
    assert [one.charged for one in (yes, no, failed)] == [True, False, True]
    assert math.exp(-yes.nats) + math.exp(-failed.nats) == pytest.approx(1.0, abs=1e-12)
    assert [way.takes(one.told) for one in (yes, no, failed)] == [3, 3, 3]
    assert (no.nats, failed.value) == (0.0, 0.0)
    assert way.interval(failed.told, terms, 3.0) == (0.0, 1.0)
    assert way.bounds(failed.told, rails, 3.0, None) == [(0.0, 1.0)] * 2
    for text in ("yes", "no", "failed", "agreed with 1:0.5", "cell 0 with 1:0.5"):
        refused(way, text, terms)


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
