"""Reveals, choices, finals: every score and noise within reach is certified, and each outcome has its public cost."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from within_reach import (
    FAMILIES,
    GRID,
    certificate_of,
    certificates_of,
    certified,
    noisy,
    refused,
    sides,
    told_of,
    units,
)

from reusable_holdout.certainty import THEORY, choice_nats, edition
from reusable_holdout.errors import InputError
from reusable_holdout.rules.samples import MeanSample
from reusable_holdout.ways import CELL, FAILED, VALUE, State, Terms, Told, Winner
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.reveal import Choose, Reveal

SHARES = (0.5, 0.5)
CELLS = range(len(THEORY.reveal.cells))
OUTCOMES = [Told(FAILED), *(Told(CELL, place) for place in CELLS)]


def revealing(plan, unit, answer):
    """Reveal whose cells have this unit."""
    return noisy(Reveal, replace(told_of(plan), least_threshold=unit / THEORY.reveal_unit), answer, answer)


# ---- reveals


@settings(max_examples=examples(600))
@given(
    plan=certificates_of("all"),
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
    if near:
        score = min(max(prior + 4.0 * answer * unit, 0.0), 1.0)
    terms, outcome = certified(revealing(plan, unit, answer), score, prior, length=length, shares=SHARES)
    assert terms.unit == pytest.approx(unit, rel=1e-12)
    assert not outcome.charged
    assert 0.0 < outcome.nats <= THEORY.reveal.worst


@pytest.mark.long(*GUARD)
@for_each("family", FAMILIES)
def test_every_score_of_a_small_holdout_is_covered_at_every_prior(family):
    """All 31 x 31 pairs of score and prior, the noise at both ends of its reach; every cell is told."""
    plan = certificate_of("all", rows=30, family=family, noise_scale=1e-3)
    told = set()
    for answer in (-1.0, 1.0):
        way = revealing(plan, 0.033, answer)
        for score, prior in product(range(31), repeat=2):
            _, outcome = certified(way, score / 30, prior / 30, length=9.0, shares=SHARES)
            told.add(outcome.told)
    assert told == {Told(CELL, place) for place in CELLS}


def test_the_weights_of_all_revealed_outcomes_sum_to_one_and_none_is_a_charge():
    way = noisy(Reveal, told_of(certificate_of("all")), 0.0, 0.0)
    terms = Terms(0.6, 0.02)
    found = [way.outcome(told, terms) for told in OUTCOMES]
    assert not any(outcome.charged for outcome in found)
    assert math.fsum(math.exp(-outcome.nats) for outcome in found) == pytest.approx(1.0, abs=1e-12)
    assert max(outcome.nats for outcome in found) == way.worst_nats() == THEORY.reveal.worst
    assert min(outcome.nats for outcome in found) == way.least_nats()
    for text in ("agreed", "cell 10", "cell 3, width 0", "steps 1", "failed, width 0", "cell 3 with 1:0.5"):
        refused(way, text, terms)
    refused(way, "candidate 0 of 2, rank 1, cell 3", terms)


def test_a_revealed_value_is_within_its_cell_of_the_score():
    way = revealing(certificate_of("all", noise_scale=0.0), 0.01, 0.0)
    for score, farthest in ((0.8, 0.005), (0.805, 0.005), (0.79, 0.005), (0.77, 0.01), (0.74, 0.0276)):
        _, outcome = way.decide(math.floor(score * GRID), 0.8, b"", State())
        assert abs(outcome.value - score) <= farthest + 1e-9


def test_what_cannot_be_afforded_is_refused_by_public_numbers():
    plan = replace(told_of(certificate_of("all")), reserved_nats=THEORY.reveal.worst)
    way = noisy(Reveal, plan, 0.0, 0.0)
    way.check_affordable(THEORY.reveal.worst, State(), "a reveal")
    with pytest.raises(
        InputError, match=r"a reveal can cost 3\.7 nats, and 3\.6 are left .* nothing was asked"
    ):
        way.check_affordable(THEORY.reveal.worst, State(nats=0.1), "a reveal")


# ---- reveals that also tell how far the rows' own set reaches


def by_rows(way, answer):
    """Reveal or choice whose rows are measured."""
    settled = {"rows": 200, "family": "bounded", "spread": 0.3, "noise_scale": 1e-3, "least_threshold": 0.02}
    found = noisy(way, told_of(certificate_of("all", **settled)), 0.0, answer)
    return way(found.certificate, found.name, found._noise, by_rows=True)


@for_each("way", [Reveal, Choose])
def test_the_weights_of_all_cells_and_widths_sum_to_at_most_one(way):
    way, codes = by_rows(way, 0.0), THEORY.widths
    winner = Winner(0, 1, 1) if isinstance(way, Choose) else None
    widths = range(-codes.below, codes.above + 1)
    told = [Told(CELL, place, width, winner=winner) for place, width in product(CELLS, widths)]
    found = [way.outcome(one, Terms(0.6, 0.02)) for one in (Told(FAILED, winner=winner), *told)]
    assert 0.5 < math.fsum(math.exp(-outcome.nats) for outcome in found) <= 1.0
    assert max(outcome.nats for outcome in found) <= way.worst_nats() + 1e-12
    assert min(outcome.nats for outcome in found) == pytest.approx(way.least_nats())
    for width in (None, -codes.below - 1, codes.above + 1):
        refused(way, Told(CELL, 3, width, winner=winner).text(), Terms(0.6, 0.02))


@settings(max_examples=examples(150), deadline=None)
@given(
    shape=st.tuples(st.floats(0.05, 8.0), st.floats(0.05, 8.0)),
    seed=st.integers(0, 10**6),
    prior=units,
    near=st.booleans(),
    answer=sides,
    charges=st.integers(0, 7),
)
def test_a_reveal_by_rows_holds_the_whole_set_that_they_leave(shape, seed, prior, near, answer, charges):
    way, state = by_rows(Reveal, answer), State(charges=charges, nats=2.0 * charges)
    terms = np.floor(np.random.default_rng(seed).beta(*shape, 200) * GRID).astype(np.int64)
    if near:
        prior = min(max(float(terms.mean()) / GRID + 0.1 * (prior - 0.5), 0.0), 1.0)
    sample, length = MeanSample(int(terms.mean()), terms, None), way.length(state)
    stated, outcome = way.decide(sample, prior, b"question", state)
    assert Told.parse(outcome.told.text()) == outcome.told
    assert way.outcome(outcome.told, stated) == outcome
    interval = way.interval(outcome.told, stated, length)
    low, high = sample.ends(way.certificate.final_set(length, prior))
    assert 0.0 <= interval.low <= max(low, 0.0) + 1e-12
    assert min(high, 1.0) - 1e-12 <= interval.high <= 1.0


# ---- choices


def chosen(plan, scores, priors, *, comparison=0.0, answer=0.0):
    way = noisy(Choose, told_of(plan), comparison, answer)
    grid = [None if score is None else math.floor(score * GRID) for score in scores]
    digests = [bytes([place]) for place in range(len(scores))]
    return way, *way.choose(grid, np.array(priors), digests, State())


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


@for_each("scores", [(0.7, 0.9, 0.8), (0.1, 0.2), (0.5,), (0.4, 0.4, 0.3)])
def test_the_first_of_the_best_is_chosen_and_priced_by_the_rank_of_its_prior(scores):
    plan = certificate_of("all", noise_scale=0.0)
    best = scores.index(max(scores))
    for shift in (0.0, 0.05):
        priors = [min(score + shift * (place == 0), 1.0) for place, score in enumerate(scores)]
        way, terms, outcome = chosen(plan, scores, priors)
        winner, told = outcome.told.winner, outcome.told
        # the best by the rows; of equal ones that with the better prior, then the first
        order = sorted(range(len(priors)), key=lambda place: (-priors[place], place))
        assert winner == Winner(best, len(scores), order.index(best) + 1)
        assert terms.prior == priors[best]
        assert outcome.nats == pytest.approx(
            THEORY.reveal.nats[told.place] + choice_nats(winner.rank, len(scores))
        )
        assert way.takes(told) == len(scores)
        assert Told.parse(told.text()) == told
        assert way.outcome(told, terms) == outcome


@settings(max_examples=examples(200))
@given(
    plan=certificates_of("all"),
    scores=st.lists(units, min_size=1, max_size=5),
    answer=sides,
    length=st.floats(0.0, 200.0),
)
def test_the_winners_interval_and_the_bound_of_the_others_hold_against_the_noise(
    plan, scores, answer, length
):
    """The comparison's noise is against the best candidate and for all others, as far as it reaches."""
    plan = told_of(plan)
    best = max(range(len(scores)), key=lambda place: scores[place])
    way = noisy(Choose, plan, answer, answer)
    query = plan.tails.comparison * plan.noise_scale * GRID
    way._noise = Opposed(way._noise, bytes([best]), math.trunc(query))
    priors = np.full(len(scores), 0.5)
    digests = [bytes([place]) for place in range(len(scores))]
    terms, outcome = way.choose([math.floor(score * GRID) for score in scores], priors, digests, State())
    interval, others = (ask(outcome.told, terms, length) for ask in (way.interval, way.others))
    level = plan.log_level(length, 0.5)
    for place, score in enumerate(scores):
        low, high = (bound(score, log_level=level) for bound in (plan.bound.lower, plan.bound.upper))
        if place == outcome.told.winner.candidate:
            assert interval.low <= low + 1e-9
            assert interval.high >= high - 1e-9
        else:
            assert others >= high - 1e-9


@for_each("candidates", [1, 2, 33])
def test_the_weights_of_all_winners_and_cells_sum_to_at_most_one(candidates):
    way = noisy(Choose, told_of(certificate_of("all")), 0.0, 0.0)
    found = [
        way.outcome(told._replace(winner=Winner(rank - 1, candidates, rank)), Terms(0.5, 0.02))
        for rank, told in product(range(1, candidates + 1), OUTCOMES)
    ]
    assert math.fsum(math.exp(-outcome.nats) for outcome in found) <= 1.0
    assert max(outcome.nats for outcome in found) == pytest.approx(way.worst_nats(candidates))
    assert min(outcome.nats for outcome in found) == pytest.approx(way.least_nats(candidates))
    assert not any(outcome.charged for outcome in found)


@for_each("theory", [2, THEORY.edition])
def test_a_choice_of_which_a_candidate_failed_names_the_best_of_the_others_and_no_value(theory):
    plan = certificate_of("all", noise_scale=0.0, theory=edition(theory))
    for found, best in (((0.4, 0.5, None), 1), ((None, 0.0, None), 1), ((None, None, None), 0)):
        way, terms, outcome = chosen(plan, found, (0.9, 0.5, 0.9))
        assert outcome.told.text() == f"candidate {best} of 3, rank {(1, 3)[best]}, failed"
        assert way.interval(outcome.told, terms, 5.0) == (0.0, 1.0)
        assert way.others(outcome.told, terms, 5.0) == 1.0


@for_each(
    "text",
    [
        "cell 3",
        "failed",
        "candidate 0 of 2, rank 1, others failed, cell 3",
        "candidate 2 of 2, rank 1, cell 3",
        "candidate 0 of 2, rank 3, cell 3",
        "candidate 0 of 2, rank 0, failed",
        "candidate 0 of 2, rank 1, cell 10",
        "candidate 0 of 2, rank 1, agreed",
        *(
            "",
            "candidate 0 of 2, rank 1, cell",
            "candidate 0 of 2, rank 1, cell 5 ",
            "candidate -1 of 2, rank 1, cell 5",
        ),
        "candidate 0 of 2, rank 1, candidate 0 of 2, rank 1, cell 3",
    ],
)
def test_what_cannot_have_been_chosen_is_refused(text):
    refused(noisy(Choose, told_of(certificate_of("all")), 0.0, 0.0), text, Terms(0.5, 0.02))


# ---- finals


def final_of(plan):
    return Final(told_of(plan), "final")


@given(plan=certificates_of("all"), score=units, length=st.floats(0.0, 500.0))
def test_a_final_tells_the_value_itself_and_its_interval_has_no_noise(plan, score, length):
    way = final_of(plan)
    terms, outcome = way.decide(math.floor(score * GRID), length)
    assert (outcome.charged, outcome.nats) == (False, 0.0)
    assert terms.prior == outcome.value == outcome.told.value == pytest.approx(score, abs=2e-9)
    assert Told.parse(outcome.told.text()) == outcome.told
    assert way.outcome(outcome.told, terms) == outcome
    low, high = way.interval(outcome.told, terms, length)
    level = plan.log_level(length, 0.5)
    assert low <= plan.bound.lower(score, log_level=level) + 1e-9
    assert high >= plan.bound.upper(score, log_level=level) - 1e-9
    assert low >= plan.bound.lower(score - 1e-8, log_level=level) - 1e-6
    assert high <= plan.bound.upper(score + 1e-8, log_level=level) + 1e-6


def test_a_final_has_its_own_length_and_follows_a_halt_once():
    plan = certificate_of("all")
    way = final_of(plan)
    spent = State(query=300, asked=300, charges=plan.charges, nats=11.0)
    assert way.halt_reason(spent) is None
    assert way.halt_reason(spent._replace(closed=True)) == "final"
    assert way.length(spent, 3) == plan.code.final_length(charges=plan.charges, nats=11.0)
    early = spent._replace(last_charge=plan.charges)
    assert way.length(early) == plan.code.final_length(
        charges=plan.charges, nats=11.0, last_charge=plan.charges
    )
    assert way.takes(Told(VALUE, value=0.5)) == 0


@for_each(
    "text",
    [
        *("value 1.5", "value nan", "value", "0.5", "cell 1", "value -0.1", "value x", "value inf", "agreed"),
        *("value 0.5 within 0.4 0.6", "value 0.5, width 1", "candidate 0 of 1, rank 1, value 0.5"),
        *("value 0.5, weight 0", "value 0.5, weight 1048577", "failed, weight -1"),
    ],
)
def test_what_cannot_have_been_told_in_a_final_is_refused(text):
    refused(final_of(certificate_of("all")), text, Terms(0.5))


@for_each(
    "text", ["value 0.5", "value 0.5 within 0.6 0.7", "value 0.5 within -0.1 0.6", "value 0.5 within 0.4 1.1"]
)
def test_a_final_by_the_rows_tells_an_interval_that_holds_its_value(text):
    way = final_of(certificate_of("all", family="bounded", decides="evidence", spread=0.5))
    refused(way, text, Terms(0.5))
    told = Told.parse("value 0.5 within 0.4 0.6")
    assert way.interval(told, Terms(way.outcome(told, Terms(0.5)).value), 3.0) == (0.4, 0.6)


def test_a_final_that_failed_says_nothing():
    way = final_of(certificate_of("all"))
    terms, outcome = way.decide(None, 3.0)
    assert (outcome.told, outcome.nats) == (Told(FAILED), 0.0)
    assert way.interval(outcome.told, terms, 3.0) == (0.0, 1.0)
