"""Reveals, choices, finals: every score and noise within reach is certified, and each outcome has its public cost."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from within_reach import FAMILIES, GRID, certificate_of, certificates_of, certified, noisy, sides, units

from reusable_holdout.certainty import (
    THEORY,
    Shares,
    choice_nats,
    edition,
)
from reusable_holdout.errors import InputError
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.reveal import Choose, Reveal
from reusable_holdout.ways.told import FAILED, Winner

SHARES = (0.5, 0.5)
NOISE = KeyedNoise(bytes(32))
CELLS = range(len(THEORY.reveal.cells))


def told_of(plan):
    return replace(plan, shares=Shares(0.5, 0.5))


# ---- reveals


@settings(max_examples=examples(600))
@given(
    plan=certificates_of("thresholdout"),
    score=units,
    prior=units,
    near=st.booleans(),
    unit=st.floats(0.002, 0.3),
    answer=sides,
    length=st.floats(0.0, 500.0),
)
def test_a_cell_contains_all_that_the_score_alone_leaves_possible(
    plan, score, prior, near, unit, answer, length
):
    terms = Terms(plan.lower + prior * plan.span, unit * plan.span)
    score = plan.lower + score * plan.span
    if near:
        score = min(max(terms.prior + 4.0 * answer * terms.threshold, plan.lower), plan.upper)
    outcome, _ = certified(
        noisy(Reveal, told_of(plan), answer, answer), score, terms, length=length, shares=SHARES
    )
    assert not outcome.charged
    assert 0.0 < outcome.nats <= THEORY.reveal.worst


@pytest.mark.long(*GUARD)
@for_each(("family", "greater"), list(product(FAMILIES, (True, False))))
def test_every_score_of_a_small_holdout_is_covered_at_every_prior(family, greater):
    """All 31 x 31 pairs of score and prior, the noise at both ends of its reach; every cell is told."""
    plan = certificate_of("thresholdout", rows=30, family=family, greater_is_better=greater, noise=1e-3)
    told = set()
    for answer in (-1.0, 1.0):
        kind = noisy(Reveal, told_of(plan), 0.0, answer)
        for score, prior in product(range(31), repeat=2):
            terms = Terms(prior / 30, 0.033)
            told.add(certified(kind, score / 30, terms, length=9.0, shares=SHARES)[0].told)
    assert told == {f"cell {place}" for place in CELLS}


def test_the_weights_of_all_revealed_outcomes_sum_to_one_and_none_is_a_charge():
    kind = noisy(Reveal, told_of(certificate_of("thresholdout")), 0.0, 0.0)
    terms = Terms(0.6, 0.02)
    told = [kind.outcome(name, terms) for name in (FAILED, *(f"cell {place}" for place in CELLS))]
    assert not any(outcome.charged for outcome in told)
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) == pytest.approx(1.0, abs=1e-12)
    assert max(outcome.nats for outcome in told) == kind.worst_nats() == THEORY.reveal.worst
    for name in ("agreed", "cell 10", "steps 1"):
        with pytest.raises(InputError, match="has no outcome"):
            kind.outcome(name, terms)


def test_a_revealed_value_is_within_its_cell_of_the_score():
    plan = told_of(certificate_of("thresholdout", noise=0.0))
    kind, terms = noisy(Reveal, plan, 0.0, 0.0), Terms(0.8, 0.01)
    for score, farthest in ((0.8, 0.005), (0.805, 0.005), (0.79, 0.005), (0.77, 0.01), (0.74, 0.0276)):
        outcome = kind.decide(math.floor(score * GRID), terms, b"", State())
        assert abs(outcome.value - score) <= farthest + 1e-9


def test_what_cannot_be_afforded_is_refused_by_public_numbers():
    plan = replace(told_of(certificate_of("thresholdout")), reserved_nats=THEORY.reveal.worst)
    kind = noisy(Reveal, plan, 0.0, 0.0)
    kind.check_affordable(THEORY.reveal.worst, State(), "a reveal")
    with pytest.raises(
        InputError, match=r"a reveal can cost 3\.7 nats, and 3\.6 are left .* nothing was asked"
    ):
        kind.check_affordable(THEORY.reveal.worst, State(nats=0.1), "a reveal")


# ---- choices


def chosen(plan, scores, priors, *, comparison=0.0, answer=0.0):
    kind = noisy(Choose, told_of(plan), comparison, answer)
    grid = [None if score is None else math.floor(score * GRID) for score in scores]
    digests = [bytes([place]) for place in range(len(scores))]
    return kind, *kind.choose(grid, np.array(priors), digests, State())


class Opposed:
    """Comparison noise that is against the best as far as it reaches, and for all others."""

    def __init__(self, noise, best, reach):
        self.noise, self.best, self.reach = noise, best, reach

    def draw(self, law, *, label, question):
        if label == "query":
            return -self.reach if question == self.best else self.reach
        return self.noise.draw(law, label=label, question=question)

    def draw_many(self, law, *, label, questions):
        return np.array([self.draw(law, label=label, question=question) for question in questions])


@for_each("greater", [True, False])
@for_each("scores", [(0.7, 0.9, 0.8), (0.1, 0.2), (0.5,), (0.4, 0.4, 0.3)])
def test_the_first_of_the_best_is_chosen_and_priced_by_the_rank_of_its_prior(greater, scores):
    plan = certificate_of("thresholdout", noise=0.0, greater_is_better=greater)
    best = scores.index(max(scores) if greater else min(scores))
    for shift in (0.0, 0.05):
        priors = [min(score + shift * (place == 0), 1.0) for place, score in enumerate(scores)]
        kind, terms, outcome = chosen(plan, scores, priors)
        winner = Winner.parse(outcome.told)
        order = sorted(range(len(priors)), key=lambda place: (-plan.better * priors[place], place))
        assert (winner.candidate, winner.candidates) == (best, len(scores))
        assert winner.rank == order.index(best) + 1
        assert terms.prior == priors[best]
        cell = int(winner.cell.split()[1])
        assert outcome.nats == pytest.approx(THEORY.reveal.nats[cell] + choice_nats(winner.rank, len(scores)))
        assert kind.takes(outcome.told) == len(scores)
        assert kind.outcome(outcome.told, terms) == outcome


@settings(max_examples=examples(200))
@given(
    plan=certificates_of("thresholdout"),
    scores=st.lists(units, min_size=1, max_size=5),
    answer=sides,
    length=st.floats(0.0, 200.0),
)
def test_the_winners_interval_and_the_bound_of_the_others_hold_against_the_noise(
    plan, scores, answer, length
):
    """The comparison's noise is against the best candidate and for all others, as far as it reaches."""
    plan = told_of(plan)
    best = max(range(len(scores)), key=lambda place: plan.better * scores[place])
    kind = noisy(Choose, plan, answer, answer)
    query = plan.tails.comparison * plan.noise / plan.span * GRID
    kind._noise = Opposed(kind._noise, bytes([best]), math.trunc(query))
    priors = plan.lower + plan.span * np.full(len(scores), 0.5)
    digests = [bytes([place]) for place in range(len(scores))]
    terms, outcome = kind.choose([math.floor(score * GRID) for score in scores], priors, digests, State())
    winner = Winner.parse(outcome.told)
    interval, others = kind.interval(outcome, terms, length), kind.others(outcome, terms, length)
    level = plan.log_level(length, 0.5)
    for place, score in enumerate(scores):
        low, high = (
            plan.lower + plan.span * bound(score, log_level=level)
            for bound in (plan.bound.lower, plan.bound.upper)
        )
        if place == winner.candidate:
            assert interval.low <= low + 1e-9
            assert interval.high >= high - 1e-9
        else:
            assert (others >= high - 1e-9) if plan.greater_is_better else (others <= low + 1e-9)


@for_each("candidates", [1, 2, 33])
def test_the_weights_of_all_winners_and_cells_sum_to_at_most_one(candidates):
    kind = noisy(Choose, told_of(certificate_of("thresholdout")), 0.0, 0.0)
    names = [FAILED, *(f"cell {place}" for place in CELLS)]
    told = [
        kind.outcome(Winner(rank - 1, candidates, rank, name).told(), Terms(0.5, 0.02))
        for rank, name in product(range(1, candidates + 1), names)
    ]
    assert math.fsum(math.exp(-outcome.nats) for outcome in told) <= 1.0
    assert max(outcome.nats for outcome in told) == pytest.approx(kind.worst_nats(candidates))
    assert not any(outcome.charged for outcome in told)


@for_each("theory", [2, THEORY.edition])
def test_a_choice_of_which_a_candidate_failed_names_the_best_of_the_others_and_no_value(theory):
    plan = replace(certificate_of("thresholdout", noise=0.0), theory=edition(theory))
    for found, best in (((0.4, 0.5, None), 1), ((None, 0.0, None), 1), ((None, None, None), 0)):
        kind, terms, outcome = chosen(plan, found, (0.9, 0.5, 0.9))
        assert outcome.told == f"candidate {best} of 3, rank {(1, 3)[best]}, failed"
        assert kind.interval(outcome, terms, 5.0) == (0.0, 1.0)
        assert kind.others(outcome, terms, 5.0) == 1.0


@for_each(
    "told",
    [
        "cell 3",
        "candidate 0 of 2, rank 1, others failed, cell 3",
        "candidate 2 of 2, rank 1, cell 3",
        "candidate 0 of 2, rank 3, cell 3",
        "candidate 0 of 2, rank 0, failed",
    ],
)
def test_what_cannot_have_been_chosen_is_refused(told):
    kind = noisy(Choose, told_of(certificate_of("thresholdout")), 0.0, 0.0)
    for ask in (lambda: kind.outcome(told, Terms(0.5, 0.02)), lambda: kind.takes(told)):
        with pytest.raises(InputError, match="has no outcome"):
            ask()


# ---- finals


@given(plan=certificates_of("thresholdout"), score=units, length=st.floats(0.0, 500.0))
def test_a_final_tells_the_value_itself_and_its_interval_has_no_noise(plan, score, length):
    kind = Final(told_of(plan), NOISE)
    outcome = kind.decide(math.floor(score * GRID), b"")
    assert (outcome.charged, outcome.nats) == (False, 0.0)
    assert outcome.value == pytest.approx(plan.lower + score * plan.span, abs=2e-9 * plan.span)
    assert kind.outcome(outcome.told, kind.terms(outcome)) == outcome
    low, high = kind.interval(outcome, kind.terms(outcome), length)
    level = plan.log_level(length, 0.5)
    least, most = (bound(score, log_level=level) for bound in (plan.bound.lower, plan.bound.upper))
    assert low <= plan.lower + least * plan.span + 1e-9
    assert high >= plan.lower + most * plan.span - 1e-9
    wider = [
        bound(score + slack, log_level=level)
        for bound, slack in ((plan.bound.lower, -1e-8), (plan.bound.upper, 1e-8))
    ]
    assert low >= plan.lower + wider[0] * plan.span - 1e-6
    assert high <= plan.lower + wider[1] * plan.span + 1e-6


def test_a_final_has_its_own_length_and_follows_a_halt_once():
    plan = certificate_of("thresholdout")
    kind = Final(told_of(plan), NOISE)
    spent = State(query=300, asked=300, charges=plan.charges, nats=11.0)
    assert kind.halt_reason(spent) is None
    assert kind.halt_reason(spent._replace(closed=True)) == "final"
    assert kind.length(spent, 3) == plan.code.final_length(charges=plan.charges, nats=11.0, answers=3)
    assert kind.takes("value 0.5") == 0


@for_each("told", ["value 1.5", "value nan", "value", "0.5", "cell 1", "value -0.1", "value x"])
def test_what_cannot_have_been_told_in_a_final_is_refused(told):
    with pytest.raises(InputError, match="final has no outcome"):
        Final(told_of(certificate_of("thresholdout")), NOISE).outcome(told, Terms(0.5, 0.0))


def test_a_final_that_failed_says_nothing():
    kind = Final(told_of(certificate_of("thresholdout")), NOISE)
    outcome = kind.decide(None, b"")
    assert (outcome.told, outcome.nats) == (FAILED, 0.0)
    assert kind.interval(outcome, kind.terms(outcome), 3.0) == (0.0, 1.0)
