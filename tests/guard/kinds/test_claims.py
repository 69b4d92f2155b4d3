"""Claims: outcomes weigh one together, every score is covered, and the worst analyst misses less than is promised."""

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from within_reach import FAMILIES, GRID, certificate_of, refused

from reusable_holdout.certainty import AdaptiveCode
from reusable_holdout.errors import InputError
from reusable_holdout.guard.transcript import row_of
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.ways import AGREED, CELL, FAILED, MEASURED, NOT_CERTIFIED, State, Told
from reusable_holdout.ways.claim import Claims

NOISE = KeyedNoise(bytes(32))


def certificate_of_claims(*, threshold=0.12, **changes):
    settled = {"mechanism": "noiseless", "charges": 2, "fixed_threshold": threshold, "adaptive": True}
    return certificate_of("claims", **{**settled, **changes})


class Asked:
    """A board as one process after another would see it: by the rows of its ledger alone."""

    def __init__(self, certificate):
        self.kind = Claims(certificate, "claim", NOISE)
        self.board, self.state, self.rows = self.kind.board(), State(), []

    def ask(self, score, prior, series="a"):
        terms = self.kind.claimed(prior, series, self.board)
        outcome = self.kind.decide_claim(None if score is None else self.kind.grid(score), terms, bytes(32))
        digest, takes = len(self.rows).to_bytes(32, "big"), self.kind.takes(outcome.told)
        row = row_of(self.kind, self.state, digest, terms, outcome, takes=takes, series=series)
        self.board.follow(row)
        self.rows.append(row)
        self.state = self.state._replace(
            query=row.query, asked=row.asked, charges=row.charges, nats=row.spent_nats
        )
        return row


# ---- code


@settings(max_examples=examples(60), deadline=None)
@given(
    claims=st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0.0, 1.0)), st.floats(0.0, 1.0), st.sampled_from(["a", "b", "c"])
        ),
        max_size=30,
    ),
    prior=st.floats(0.0, 1.0),
)
def test_what_a_claim_can_be_told_weighs_one_whatever_was_told_before(claims, prior):
    told = Asked(certificate_of_claims())
    for score, stated, series in claims:
        told.ask(score, stated, series)
    for series in ("a", "b", "c", "another"):
        terms = told.kind.claimed(prior, series, told.board)
        if not terms.claim.charges_left:
            assert told.kind.outcome(Told(NOT_CERTIFIED), terms).nats == 0.0
            refuses(InputError, "no outcome", told.kind.outcome, Told(AGREED), terms)
            continue
        names = [Told.parse(text) for text in terms.claim.priced.begun]
        assert math.isclose(sum(math.exp(-told.kind.outcome(name, terms).nats) for name in names), 1.0)
        assert (Told(AGREED) in names) is not terms.claim.leads
        assert (Told(MEASURED, 0) in names) is terms.claim.leads
        for text in ("not certified", "cell 7", "measured 5", "yes", "failed, width 1", "agreed with 1:0.5"):
            refused(told.kind, text, terms)


@for_each("queries", [1, 2, 3, 5])
def test_all_questions_and_finals_of_any_strategy_weigh_at_most_one(queries):
    """A strategy is a tree: at each history some public weights, or a final; batches share the history before them."""
    rng = np.random.default_rng(queries)
    code = AdaptiveCode(queries, 0.25)
    for _ in range(40):
        total = _weight_of_strategy(code, rng, queries)
        assert total <= 1.0 + 1e-12
    assert math.isclose(_weight_of_strategy(code, rng, queries, finals=False), 0.75)


def _weight_of_strategy(code, rng, queries, *, finals=True):
    def walk(left, nats):
        if finals and rng.random() < 0.2:
            return math.exp(-code.final_length(charges=0, nats=nats))
        if not left:
            return math.exp(-code.final_length(charges=0, nats=nats)) if finals else 0.0
        batch = int(rng.integers(1, left + 1))  # the questions of one batch are certified by its start
        total = batch * math.exp(-code.length(query=1, charges=0, nats=nats))
        histories = [nats]
        for _ in range(batch):
            weights = rng.dirichlet([0.5] * 3)
            histories = [one - math.log(weight) for one in histories for weight in weights if weight > 1e-9]
        return total + sum(walk(left - batch, one) for one in histories)

    return walk(queries, 0.0)


# ---- one claim


@pytest.mark.long(*GUARD)
@for_each("family", FAMILIES)
def test_every_score_of_a_small_holdout_is_covered_at_every_claim(family):
    """The interval holds what the score alone leaves possible: both ends of its own bound at half the level."""
    certificate = certificate_of_claims(rows=24, family=family)
    outcomes = set()
    for lead in (None, 0.4, 0.7):
        for score, prior in itertools.product(range(25), range(97)):
            told = Asked(certificate)
            if lead is not None:
                told.ask(lead, lead, "first")
            length = told.kind.length(told.state)
            row = told.ask(score / 24, prior / 96)
            own = certificate.around(score / 24, score / 24, length=length, share=0.5)
            assert row.low <= own.low + 1e-12
            assert row.high >= own.high - 1e-12
            assert row.low <= row.value <= row.high
            outcomes.add(Told.parse(row.told).word)
    assert outcomes == {AGREED, MEASURED, CELL}


def test_what_stands_is_free_of_charge_what_does_not_is_one_and_then_nothing_is_certified():
    told = Asked(certificate_of_claims())
    told.ask(0.9, 0.9, "leader")
    assert [told.ask(0.7, 0.6 + step / 50, "a").charged for step in range(11)] == [0] * 11
    assert told.ask(0.7, 0.83, "a").charged == 1
    assert told.board.charges_left("a") == 1
    assert told.ask(None, 0.7, "a").told == FAILED
    last = told.ask(0.7, 0.7, "a")
    assert (last.told, last.charged, last.nats, last.low, last.high) == (NOT_CERTIFIED, 0, 0.0, 0.0, 1.0)
    assert last.asked == told.rows[-2].asked
    assert told.ask(0.7, 0.7, "b").told == AGREED


def test_nobody_leads_on_a_claim():
    told = Asked(certificate_of_claims())
    assert told.ask(0.5, 0.5, "a").told == "measured 0"
    unit = 0.12 / 4
    near = told.ask(0.5, 0.5 + 2.9 * unit, "b")
    assert (near.told, near.charged) == (AGREED, 0)
    short = told.ask(0.5, 0.5 + 3.1 * unit, "b")
    assert (short.told.split()[0], short.charged) == ("measured", 1)
    assert math.isclose(told.board.lead, 0.5)
    better = told.ask(0.65, 0.65, "c")
    assert (better.told, better.charged) == ("measured 0", 0)
    assert math.isclose(told.board.lead, 0.65)


def test_a_lead_grows_by_a_cell_at_least_so_there_are_few():
    told, unit = Asked(certificate_of_claims(threshold=0.04)), 0.01
    rng = np.random.default_rng(0)
    leads = []
    for number in range(
        3_000
    ):  # whoever claims the lead without end, with scores that just pass the one before
        score = min(1.0, (told.board.lead or 0.0) + unit * rng.uniform(0.0, 2.0))
        row = told.ask(score, min(1.0, (told.board.lead or 0.0) + unit * 3.05), f"team {number}")
        if row.told.startswith("measured") and not row.charged:
            leads.append(row.value)
    assert min(np.diff(leads)) >= unit - 1e-9
    assert len(leads) <= 1.0 / unit + 1


# ---- the worst analyst


@pytest.mark.long(*GUARD)
@for_each(
    ("rows", "queries", "beta", "threshold"),
    [(4, 2, 0.5, 0.3), (4, 2, 0.3, 0.6), (3, 3, 0.5, 0.35), (6, 2, 0.4, 0.2)],
)
def test_no_analyst_makes_intervals_miss_more_often_than_is_promised(rows, queries, beta, threshold):
    """Exact: all labels of a few rows, fair coins; every question of every series, by what was told before."""
    assert _worst(rows, queries, beta, threshold) <= beta


def test_the_game_finds_a_code_that_prices_nothing():
    """Of a wrong code the same analyst takes more than is promised: the game is no formality."""
    priced, free = (_worst(4, 2, 0.85, 0.3, price=price) for price in (1.0, -1.0))
    assert priced <= 0.85 < free


def _worst(rows, queries, beta, threshold, *, price=1.0):
    """Largest probability that any interval misses; `price` is what a nat and the queries count in the length."""
    certificate = certificate_of_claims(rows=rows, beta=beta, threshold=threshold, queries=queries)
    everything = tuple(itertools.product((0, 1), repeat=rows))
    # by symmetry a first question's predictions matter up to the order of rows, and fair labels do not care for ones
    first, later = [(0,) * rows], everything
    priors = [step / 4 for step in range(5)]

    @cache
    def value(labels, rows_told, left):
        """Expected number of label vectors whose holder is missed from here on."""
        if not left:
            return 0
        told = Asked(certificate)
        for row in rows_told:
            told.board.follow(row)
            told.rows.append(row)
            told.state = told.state._replace(
                query=row.query, asked=row.asked, charges=row.charges, nats=row.spent_nats
            )
        best = 0
        for predictions in later if rows_told else first:
            scores = {one: sum(a == b for a, b in zip(one, predictions, strict=True)) for one in labels}
            for prior, series in itertools.product(priors, ("a", "b") if rows_told else ("a",)):
                outcomes = {score: _row(told, score / rows, prior, series) for score in set(scores.values())}
                best = max(best, _sum(labels, scores, outcomes, rows_told, left))
        return best

    def _row(told, score, prior, series):
        terms = told.kind.claimed(prior, series, told.board)
        outcome = told.kind.decide_claim(round(score * GRID), terms, bytes(32))
        length = price * told.kind.length(told.state)
        return row_of(told.kind, told.state, bytes(32), terms, outcome, length=length, series=series)

    def _sum(labels, scores, outcomes, rows_told, left):
        total, groups = 0, {}
        for one in labels:
            row = outcomes[scores[one]]._replace(asked_at=0.0)
            if row.low <= 0.5 <= row.high:
                groups.setdefault(row, []).append(one)
            else:
                total += 1
        return total + sum(value(tuple(some), (*rows_told, row), left - 1) for row, some in groups.items())

    return value(everything, (), queries) / len(everything)


# ---- what is kept


def test_a_board_is_the_same_for_whoever_follows_its_rows():
    told = Asked(certificate_of_claims())
    rng = np.random.default_rng(3)
    for _ in range(200):
        score = rng.uniform(0.4, 0.9)
        told.ask(score, float(np.clip(score + rng.normal(0.0, 0.08), 0.0, 1.0)), f"team {rng.integers(40)}")
    again = Claims(told.kind.certificate, "claim", NOISE)
    for row, terms in zip(told.rows, again.recalled(told.rows), strict=True):
        outcome = again.outcome(Told.parse(row.told), terms)
        assert (outcome.value, outcome.charged, outcome.nats) == (row.value, bool(row.charged), row.nats)
    kinds = {row.told if row.told == NOT_CERTIFIED else row.told.split()[0] for row in told.rows}
    assert kinds == {AGREED, "cell", "measured", NOT_CERTIFIED}


def test_charges_halt_nobody():
    kind = Claims(certificate_of_claims(queries=10), "claim", NOISE)
    assert kind.halt_reason(State(asked=9, charges=50)) is None
    assert kind.halt_reason(State(asked=10)) == "queries"
    assert kind.halt_reason(State(closed=True)) == "final"
    other = Claims(replace(kind.certificate, adaptive=False), "claim", NOISE)
    assert other.halt_reason(State(asked=9, charges=50)) == "charges"
