"""The worst analyst against pairs: of fair coins nothing is better, and how often that is certified is counted."""

import itertools
from functools import cache

import pytest
from cases import for_each
from guard.kinds.test_claims import NOISE, certificate_of_claims
from long_tests import GUARD

from reusable_holdout.guard.boards import Pairs, Reached
from reusable_holdout.guard.transcript import row_of
from reusable_holdout.metrics import GRID
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.ways import State, Told
from reusable_holdout.ways.claim import Claims


@pytest.mark.long(*GUARD)
@for_each(("rows", "queries", "beta", "threshold"), [(6, 2, 0.9, 0.08), (8, 2, 0.5, 0.06), (3, 3, 0.9, 0.15)])
def test_no_analyst_has_a_pair_certified_that_is_not_better_more_often_than_is_promised(
    rows, queries, beta, threshold
):
    """Exact: all labels of a few rows; every question of either of two series, by what was told before."""
    assert _Game(rows, queries, beta, threshold).worst() <= beta


@pytest.mark.long(*GUARD)
def test_the_game_finds_pairs_that_pay_for_nothing(monkeypatch):
    """Priced as if no question had come before, the same analyst takes more than is promised."""
    assert _Game(3, 3, 0.4, 0.15).worst() <= 0.4
    monkeypatch.setattr("reusable_holdout.guard.boards.paired_length", lambda **_: 0.0)
    assert _Game(3, 3, 0.4, 0.15).worst() > 0.4


class _Game:
    def __init__(self, rows, queries, beta, threshold):
        certificate = certificate_of_claims(rows=rows, beta=0.05, threshold=threshold, queries=queries)
        self.kind = Claims(certificate, "claim", NOISE)
        self.pairs = Pairs(certificate, beta, lambda _: [], Unit(0.0, 1.0, greater_is_better=True))
        self.rows, self.queries = rows, queries
        self.everything = tuple(itertools.product((0, 1), repeat=rows))
        self.row_at, self.value = cache(self.row_at), cache(self.value)

    def worst(self):
        """Largest probability that any pair is certified."""
        return self.value(self.everything, ()) / len(self.everything)

    def choices(self, asked):
        """By symmetry of fair labels the first predictions are any, and of the second ones the ones count alone."""
        if not asked:
            return [self.everything[0]]
        if asked == 1:
            return [(0,) * (self.rows - ones) + (1,) * ones for ones in range(1, self.rows + 1)]
        return self.everything

    def row_at(self, rows_told, score, claim, series):
        """What a score is told as, after these rows."""
        board, state = self.kind.board(), State()
        for row in rows_told:
            board.follow(row)
            state = state._replace(query=row.query, asked=row.asked, nats=row.spent_nats)
        terms = self.kind.claimed(claim, series, board)
        outcome = self.kind.decide_claim(round(score / self.rows * GRID), terms, bytes(32))
        row = row_of(self.kind, state, bytes(32), terms, outcome, series=series)
        return row._replace(low=0.0, high=1.0, asked_at=0.0)  # no pair rests on its interval

    def value(self, labels, told):
        """Label vectors of these whose holder certifies something, at the most, from here on."""
        if len(told) == self.queries:
            return 0
        claims = [score / self.rows for score in range(self.rows + 1)]
        asked = itertools.product(self.choices(len(told)), claims, ("a", "b") if told else ("a",))
        return max(self.after(labels, told, *one) for one in asked)

    def after(self, labels, told, predictions, claim, series):
        """The same after one more question."""
        groups, wrong = {}, 0
        rows_told = tuple(row for _, row in told)
        for one in labels:
            score = sum(a == b for a, b in zip(one, predictions, strict=True))
            groups.setdefault(self.row_at(rows_told, score, claim, series), []).append(one)
        for row, some in groups.items():
            following = (*told, (predictions, row))
            wrong += len(some) if self.certified(following) else self.value(tuple(some), following)
        return wrong

    def certified(self, told):
        """Whether a pair of the last question with another is."""
        predictions, row = told[-1]
        return any(
            self.leads(row, earlier, predictions, other) or self.leads(earlier, row, predictions, other)
            for other, earlier in told[:-1]
        )

    def leads(self, row, other, predictions, others):
        differing = sum(a != b for a, b in zip(predictions, others, strict=True))
        both = [self.reached(one) for one in (row, other)]
        return None not in both and self.pairs.leads(*both, differing)

    def reached(self, row):
        ends = self.kind.reached(Told.parse(row.told), row.prior)
        if ends is None:
            return None
        return Reached(row.query, row.asked, float(ends.low), float(ends.high), row.spent_nats - row.nats)
