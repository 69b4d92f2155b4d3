"""Gates: one bit, whose two intervals need no division of the failure probability."""

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
    noisy,
    refused,
    sides,
    units,
)

from reusable_holdout.certainty import Certificate
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.ways import FAILED, NO, YES, State, Terms, Told
from reusable_holdout.ways.gate import Gate, GuardedGate, Named


def told_rightly(plan, way, score, named, length):
    """Ask by a length of the test's own; "better" only where the score's own bound is at least what was named."""
    with_length = replace_length(way, length)
    terms, outcome = answered(with_length, math.floor(score * GRID), named)
    assert (outcome.value, terms.unit) == (named, 0.0)
    assert Told.parse(outcome.told.text()) == outcome.told
    interval = way.interval(outcome.told, terms, length)
    if outcome.told == Told(YES):
        assert interval == (named, 1.0)
        assert plan.bound.lower(score, log_level=plan.log_level(length, 1.0)) >= named - 1e-9
    else:
        assert outcome.told == Told(NO)
        assert interval == (0.0, 1.0)
    return outcome.told


def replace_length(way, length):
    """Let a way ask at this description length."""
    way.length = lambda state, answers=1: length
    return way


@settings(max_examples=examples(400))
@given(
    plan=certificates_of("gates"),
    score=units,
    named=units,
    near=st.booleans(),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_better_is_certified_whatever_the_noise_and_not_shown_bounds_nothing(
    plan, score, named, near, noise, length
):
    if near:  # where decisions are made
        reach = 1.2 * plan.tails.comparison * plan.noise_scale + 1e-8
        least = float(plan.bound.reach_low(named, log_level=plan.log_level(length, 1.0)))
        score = min(max(min(max(least, 0.0), 1.0) + noise[1] * reach, 0.0), 1.0)
    told_rightly(plan, noisy(Gate, plan, *noise), score, named, length)


@pytest.mark.long(*GUARD)
@for_each("family", FAMILIES)
def test_every_score_of_a_small_holdout_is_covered_at_every_name(family):
    """All 31 x 31 pairs of score and name, the noise at both ends of its reach and at none."""
    plan = certificate_of("gates", rows=30, family=family, noise_scale=2e-3)
    told = set()
    for noise in (-1.0, 0.0, 1.0):
        way = noisy(Gate, plan, noise, 0.0)
        for score, named in product(range(31), repeat=2):
            told.add(told_rightly(plan, way, score / 30, named / 30, 1.0))
    assert told == {Told(NO), Told(YES)}


@for_each("truth", [0.05, 0.3, 0.5, 0.83])
@for_each("length", [0.0, 3.0])
def test_one_question_misses_with_at_most_what_its_node_may_spend(truth, length):
    """Better or not shown, at every name, exactly: the holdout's value is binomial, and there is no noise."""
    rows, worst = 60, 0.0
    plan = certificate_of("gates", rows=rows, noise_scale=0.0)
    way = replace_length(noisy(Gate, plan, 0.0, 0.0), length)
    chances = stats.binom.pmf(range(rows + 1), rows, truth).tolist()
    for name in [*(row / rows for row in range(rows + 1)), truth + 1e-9]:  # just above the truth is the worst
        missed = 0.0
        for score, chance in enumerate(chances):
            terms, outcome = answered(way, math.floor(score / rows * GRID), name)
            low, high = way.interval(outcome.told, terms, length)
            missed += chance * (not low <= truth <= high)
        worst = max(worst, missed)
    assert worst <= plan.beta * math.exp(-length)
    if length == 0.0 and truth > 0.1:
        assert worst > 0.5 * plan.beta  # a side has more than a half: nothing is given away


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


def test_the_least_score_that_certifies_what_was_named_is_better():
    plan = certificate_of("gates", noise_scale=0.0)
    way = noisy(Gate, plan, 0.0, 0.0)
    level = plan.log_level(way.length(State()), 1.0)
    for named in (0.1, 1 / 3, 0.5, 0.7):
        score = math.ceil(plan.bound.reach_low(named, log_level=level) * GRID) + 16  # rounding
        assert answered(way, score, named)[1].told == Told(YES)
        assert answered(way, score - 32, named)[1].told == Told(NO)
    assert answered(way, GRID, 1.0)[1].told == Told(NO)  # nothing certifies the best value
    assert answered(way, 0, 0.0)[1].told == Told(YES)  # nor is anything below the worst


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
def test_a_guarded_yes_certifies_each_value_by_its_part_and_a_no_bounds_none(family, noise):
    plan, told = certificate_of("gates", rows=40, family=family, noise_scale=2e-3), set()
    for own, rail, named, least in product((0, 20, 39, 40), (0, 20, 39, 40), (0, 10, 30), (0, 10, 30)):
        scores, names = (own / 40, rail / 40), (named / 40, least / 40)
        way, rails, terms, outcome = guarded(plan, noise, scores, names)
        told.add(outcome.told.word)
        assert outcome.told.rails == ((1, least / 40),)
        length = way.length(State())
        bounds = [way.interval(outcome.told, terms, length), *way.bounds(outcome.told, rails, length, None)]
        if outcome.told.word == NO:
            assert bounds == [(0.0, 1.0)] * 2
            continue
        level = plan.log_level(length + math.log(2), 1.0)
        for bound, name, score in zip(bounds, names, scores, strict=True):
            assert bound == (name, 1.0)
            assert plan.bound.lower(score, log_level=level) >= name - 1e-9
    assert told == {YES, NO}


@for_each("truths", [(0.3, 0.5), (0.5, 0.5), (0.83, 0.6)])
def test_both_bounds_of_a_guarded_gate_miss_together_no_more_often_than_its_node_may(truths):
    """Two values that have nothing to do with each other, which is the worst case of two that are as named."""
    rows, length = 24, 0.0
    plan = certificate_of("gates", rows=rows, noise_scale=0.0, queries=1, charges=1)
    chances = [stats.binom.pmf(range(rows + 1), rows, truth).tolist() for truth in truths]
    for ahead in (1e-9, 1 / rows):
        names, missed = [min(truth + ahead, 1.0) for truth in truths], 0.0
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

ROWS, TRUTH = 8, 0.5


class Rows:
    """What a rule asks of rows whose weights are alike."""

    relative_weights = None


def gate_by_evidence(noise, **changes):
    """Gate that the rows' evidence decides, whose noise is this share of its reach."""
    settled = {"family": "bounded", "decides": "evidence", "spread": 0.4, "queries": 1, "charges": 1}
    plan = certificate_of("gates", **{"rows": ROWS, "beta": 0.4, "noise_scale": 0.0} | settled | changes)
    return noisy(Gate, plan, noise, 0.0, ByEvidence)


def decided(way, rows, named):
    """What is told of rows with these values."""
    terms = (np.array(rows) * GRID).astype(np.int64)
    measured = np.concatenate([[int(terms.mean())], terms])
    (weighed,) = way.rule.weighed(Rows, measured[None], np.array([named]), None)
    return answered(way, weighed, named)[1].told


def missed(way, values, chances):
    """Probability, over all holdouts of a few rows, that "better" is told of a value just above the population's."""
    named = float(np.dot(values, chances)) + 1e-9
    found = 0.0
    for counts in product(range(ROWS + 1), repeat=len(values)):
        if sum(counts) == ROWS and decided(way, np.repeat(values, counts), named) == Told(YES):
            found += stats.multinomial.pmf(counts, ROWS, chances)
    return found


LAWS = {
    "fair coins": ((0.0, 1.0), (0.5, 0.5)),
    "rare losses": ((0.0, 1.0), (0.1, 0.9)),
    "rare hits": ((0.0, 1.0), (0.9, 0.1)),
    "differences": ((0.0, 0.5, 1.0), (0.15, 0.7, 0.15)),
    "graded": ((0.2, 0.5, 0.9), (0.3, 0.4, 0.3)),
}


@for_each("law", LAWS)
@for_each("spread", [0.1, 0.3, 0.5])
def test_every_holdout_of_a_few_rows_is_enumerated_and_better_is_told_wrongly_no_more_often_than_allowed(
    law, spread
):
    """By any guess of the spread."""
    way = gate_by_evidence(0.0, spread=spread)
    assert missed(way, *LAWS[law]) <= way.certificate.beta


def test_evidence_that_reckons_with_fewer_nats_is_told_wrongly_too_often(monkeypatch):
    monkeypatch.setattr(Certificate, "needed", lambda *_: 0.05)
    way = gate_by_evidence(0.0, spread=0.3, beta=0.05)
    assert missed(way, *LAWS["fair coins"]) > way.certificate.beta


@for_each("noise", [-1.0, 0.0, 1.0])
@for_each("named", [0.2, 0.5, 0.7, 0.85])
def test_a_better_by_evidence_is_certain_whatever_the_noise(named, noise):
    """Of what is better the rows' own evidence excludes all below what was named, at the question's level."""
    way = gate_by_evidence(noise, rows=400, spread=0.5, noise_scale=5e-5, beta=0.05)
    needed, told = way.certificate.needed(way.length(State()), 1.0), set()
    for ones in range(401):
        rows = np.repeat([1.0, 0.0], [ones, 400 - ones])
        told.add(found := decided(way, rows, named))
        if found == Told(YES):
            assert way.interval(found, Terms(named, 0.0), 5.0) == (named, 1.0)
            assert way.certificate.named_evidence(named, needed).log_evidence(rows) >= needed
    assert told == {Told(NO), Told(YES)}
