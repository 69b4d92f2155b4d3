"""The Kraft sum of all strategies that mix every kind of question, and twins that overfill it; exact fractions."""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import pytest
from cases import for_each

from reusable_holdout.certainty import (
    THEORY,
    CellCode,
    SpanCode,
    TranscriptCode,
    choice_nats,
    worst_choice_nats,
)
from reusable_holdout.earlier.plans import StepCode

HALF = Fraction(1, 2)
SHARE = Fraction(THEORY.final_share)
EARLY = Fraction(str(THEORY.early_share))
FIRST = Fraction(str(THEORY.first_share_of_finals))
STEP_FAILED = Fraction(3, 100)
EVERY = [(queries, most) for queries in range(1, 8) for most in range(1, 5)]


def exactly(weight):
    """The decimal fraction that a weight was written as."""
    return Fraction(str(weight))


def mass(code: CellCode):
    """Weight of all outcomes of a kind, and of a failure alone."""
    failed = exactly(code.failed)
    return sum((exactly(cell.weight) for cell in code.cells), failed), failed


def spans(code: SpanCode):
    """The same of a ratio's charges."""
    failed = exactly(code.failed)
    return sum((exactly(span.weight) for span in code.spans), failed), failed


def steps(places):
    """The same of a ladder with so many places."""
    even = sum(HALF / (k * (k + 1)) + HALF / places for k in range(1, places + 1))
    return (1 - STEP_FAILED) * even + STEP_FAILED, STEP_FAILED


@dataclass(frozen=True)
class Game:
    """A guard of `queries` questions and `most` charges, as the code has it, or as a twin has it.

    The first of `charges` is all outcomes' weight of a charged kind (check, gate, check of a ratio, and the ladders of
    earlier versions), the second its failure's.
    """

    queries: int
    most: int
    final_share: Fraction = SHARE
    charges: tuple[tuple[Fraction, Fraction], ...] = (
        mass(THEORY.charge),
        mass(THEORY.gate),
        spans(THEORY.spans),
        steps(1),
        steps(30),
    )
    reveal: Fraction = mass(THEORY.reveal)[0]
    finals_like_questions: bool = False
    finals: int = 1
    early: Fraction = EARLY
    gives_indices_back: bool = False

    def question(self, charges):
        """Weight of a question, without what was told before it."""
        number = HALF if self.most > 1 else Fraction(1)
        if charges:
            number = Fraction(1, 2 * (self.most - 1))
        return (1 - SHARE) * number / math.comb(self.queries, charges + 1)

    def number(self, charges):
        """Share of a number of charges before a final; a twin's leave none for the last charge."""
        most = self.most - 1 if self.finals_like_questions and self.most > 1 else self.most
        if not charges:
            return FIRST
        return (1 - FIRST) * Fraction(most + 1, most * charges * (charges + 1))

    def final(self, charges, last):
        """Weight of all answers of a final together; the last charge was at this index."""
        if not charges:
            return self.final_share * FIRST
        even = (1 - EARLY) / math.comb(self.queries, charges)
        last = max(last, charges)  # that of a twin whose indices come again may be less
        by_last = self.early / ((last + 1) * math.comb(last, charges))
        return self.final_share * (even + by_last) * self.number(charges)

    def all_finals(self):
        """Weight of the finals after all histories: of no charge, and of all sets of places."""
        charged = sum(
            self.number(charges) * (1 - EARLY + self.early * (1 - Fraction(charges, self.queries + 1)))
            for charges in range(1, min(self.queries, self.most) + 1)
        )
        return self.finals * self.final_share * (FIRST + charged)

    def choice(self, candidates):
        """Weight of all outcomes of a choice."""
        ranks = range(1, candidates + 1)
        return sum(HALF / (r * (r + 1)) + HALF / candidates for r in ranks) * self.reveal


def best_sums(game):
    """Largest Kraft sums from every state on: (asked, charges, index of the last) -> sum relative to what was told.

    Exact: what was told multiplies all that follows by one weight, so the best continuation is the same after all
    outcomes that lead to one state, and chance among strategies gains nothing over the best of them.
    """

    @cache
    def best(asked, charges, last):
        found = [Fraction(0), game.finals * game.final(charges, last)]
        if charges >= game.most or asked >= game.queries:
            return max(found)
        left = range(1, game.queries - asked + 1)
        weight = game.question(charges)
        found.append(weight + game.reveal * best(asked + 1, charges, last))
        found += [m * weight + game.choice(m) * best(asked + m, charges, last) for m in left]
        for (told, _), size in itertools.product(game.charges, left):
            found.append(size * weight + after(asked, charges, size, 0, charges, last, told))
            found.append(size * weight + gated(asked, charges, last, size, told))
        return max(found)

    def gated(start, charges, last, size, told):
        """After one question that takes several indices, and is charged at the last of them."""
        agreed = best(start + size, charges, last)
        return agreed + told * best(start + size, charges + 1, start + size)

    @cache
    def after(start, before, size, place, charges, last, told):
        """After a batch of one kind: each question of it is charged, be it for its failure, or not."""
        if charges >= game.most or place == size:
            if game.gives_indices_back and charges > before:
                return best(start + 1, charges, start + 1)
            return best(start + place, charges, last)
        agreed = after(start, before, size, place + 1, charges, last, told)
        charged = after(start, before, size, place + 1, charges + 1, start + place + 1, told)
        return agreed + told * charged

    return best


def kraft(game):
    """Largest Kraft sum that any strategy reaches."""
    return best_sums(game)(0, 0, 0)


@for_each(("queries", "most"), EVERY)
def test_no_mixture_of_kinds_overfills_the_kraft_sum_and_the_best_fill_it(queries, most):
    game = Game(queries, most)
    total = kraft(game)
    assert total <= 1
    # check one at a time, then the final: every history there is
    charged = Fraction(min(queries, most) - 1, 2 * (most - 1)) if most > 1 else HALF
    assert total == (1 - SHARE) * (HALF + charged) + game.all_finals()
    if most <= queries:  # else shares of charges that cannot be made are left over
        left = sum(game.number(charges) * Fraction(charges, queries + 1) for charges in range(1, most + 1))
        assert total == 1 - SHARE * EARLY * left


@pytest.mark.long("reusable_holdout/certainty", "reusable_holdout/guard")
@for_each(("queries", "most"), [(12, 4), (20, 7), (30, 3), (16, 16), (9, 20)])
def test_no_mixture_overfills_the_kraft_sum_of_larger_games(queries, most):
    assert kraft(Game(queries, most)) <= 1


@for_each(("queries", "most"), EVERY)
def test_the_exact_weights_are_those_of_the_public_lengths(queries, most):
    game, code = Game(queries, most), TranscriptCode(queries=queries, charges=most)
    for charges in range(min(queries, most)):
        for query in range(charges + 1, queries + 1):
            weight = math.exp(-code.length(query=query, charges=charges))
            assert weight == pytest.approx(float(game.question(charges)), rel=1e-12)
        told = code.length(query=queries, charges=charges, nats=1.5)
        assert told == pytest.approx(code.length(query=queries, charges=charges) + 1.5)
    for charges in range(min(queries, most) + 1):
        for last in range(charges, queries + 1) if charges else [0]:
            each = math.exp(-code.final_length(charges=charges, last_charge=last))
            assert each == pytest.approx(float(game.final(charges, last)), rel=1e-12)
        cheaper = code.final_length(charges=charges, nats=1.5) + math.log(each)
        assert cheaper == pytest.approx(1.5, abs=1e-12)


def test_the_exact_masses_are_those_of_the_outcome_codes():
    for code in (THEORY.charge, THEORY.reveal, THEORY.gate):
        told = math.fsum(math.exp(-nats) for nats in (*code.nats, code.failure_nats))
        assert told == pytest.approx(float(mass(code)[0]), abs=1e-12)
        assert mass(code)[0] == 1
    told = math.fsum(math.exp(-nats) for nats in (*THEORY.spans.nats, THEORY.spans.failure_nats))
    assert told == pytest.approx(float(spans(THEORY.spans)[0]), abs=1e-12)
    assert spans(THEORY.spans)[0] <= 1
    for places in (1, 2, 30, 1000):
        code = StepCode(places, THEORY.steps_failed)
        told = math.fsum(math.exp(-code.nats(k)) for k in range(1, places + 1)) + math.exp(-code.failure_nats)
        assert told == pytest.approx(float(steps(places)[0]), abs=1e-12)
        assert max(code.nats(places), code.failure_nats) <= code.worst
        assert 0.5 < told <= 1.0
    for candidates in (1, 2, 3, 7):
        told = math.fsum(math.exp(-choice_nats(rank, candidates)) for rank in range(1, candidates + 1))
        assert told * float(mass(THEORY.reveal)[0]) == pytest.approx(
            float(Game(7, 2).choice(candidates)), abs=1e-12
        )
        assert told < 1.0
        assert max(choice_nats(rank, candidates) for rank in range(1, candidates + 1)) == worst_choice_nats(
            candidates
        )


@pytest.mark.parametrize(("queries", "most"), [(1, 1), (3, 2), (5, 3), (7, 4)])
def test_without_a_final_the_questions_fill_their_share_and_the_finals_theirs(queries, most):
    """Neither family has room of the other's: each is full alone."""
    assert kraft(Game(queries, most, final_share=Fraction(0))) == 1 - SHARE
    both = kraft(Game(queries, most)) - kraft(Game(queries, most, final_share=Fraction(0)))
    assert both == Game(queries, most).all_finals()


def without_room_for_failures():
    """Cells that sum to one, with a failure beside them."""
    return tuple((1 + failed, failed) for _, failed in Game(1, 1).charges)


TWINS = {
    "finals with four fifths beside questions with a quarter": {"final_share": Fraction(4, 5)},
    "finals without a share": {"final_share": Fraction(1)},
    "finals that keep no share for the last charge": {"finals_like_questions": True},
    "a second final": {"finals": 2},
    "finals that are coded by the last charge beside the even code, not in a share of it": {"early": HALF},
}


@for_each("most", [2, 3, 4])
@for_each("twin", TWINS)
def test_other_shares_overfill_the_kraft_sum(twin, most):
    game = Game(7, most, **TWINS[twin])
    total = kraft(game)
    assert total == 1 - SHARE + game.all_finals()
    assert total > 1


def test_half_and_half_would_be_valid_too():
    """Phi is a choice: any two shares that sum to one fill the sum and do not overfill it."""
    game = Game(7, 3, final_share=HALF)
    half = kraft(game) - kraft(Game(7, 3, final_share=Fraction(0)))
    assert half == game.all_finals() <= HALF


@pytest.mark.parametrize("queries", [4, 7])
def test_a_batch_that_gives_indices_back_overfills_the_kraft_sum(queries):
    """Every question of a batch takes its index at its start, for the next batch may depend on what was told."""
    for most in (2, 3, 4):
        assert kraft(Game(queries, most, gives_indices_back=True)) > 1
        assert kraft(Game(queries, most)) < 1


@pytest.mark.parametrize("most", [2, 3, 4])
def test_outcomes_that_forget_the_failure_overfill_the_kraft_sum(most):
    assert kraft(Game(7, most, charges=without_room_for_failures())) > 1


@for_each("most", [2, 3])
def test_failures_that_halt_nothing_and_cost_nothing_overfill_the_kraft_sum(most):
    """As if a question that failed were neither a charge nor an answer: it could be asked in place of any other."""
    free = tuple((told + 1, failed) for told, failed in Game(1, 1).charges)
    assert kraft(Game(5, most, charges=free)) > Fraction(6, 5)


def test_reveals_that_forget_the_failure_overfill_the_kraft_sum_when_there_are_many():
    """A reveal leaves unused that it might have been charged; forty of them have used that up."""
    alone = Game(40, 1, charges=())
    assert kraft(alone) < 1
    assert kraft(replace(alone, reveal=1 + exactly(THEORY.reveal.failed))) > Fraction(5, 4)


def every_sum(code, game):
    """Kraft sums of strategies of checks, reveals and finals, history by history: the least and the largest."""
    cells = [math.log(2.0), math.log(4.0), math.log(4.0)]  # a charge or reveal has three outcomes here

    def sums(asked, charges, last, nats):
        found = [0.0, math.exp(-code.final_length(charges=charges, nats=nats, last_charge=last))]
        if asked == game.queries or charges == game.most:
            return found
        node = math.exp(-code.length(query=asked + 1, charges=charges, nats=nats))
        charged = [sums(asked + 1, charges + 1, asked + 1, nats + cell) for cell in cells]
        revealed = [sums(asked + 1, charges, last, nats + cell) for cell in cells]
        agreed = sums(asked + 1, charges, last, nats)
        found += [node + sum(chosen) for chosen in itertools.product(*revealed)]
        found += [node + sum(chosen) for chosen in itertools.product(agreed, *map(extremes, charged))]
        return extremes(found)

    return sums(0, 0, 0, 0.0)


def extremes(sums):
    """Only the least and the largest: sums of strategies are sums of their branches'."""
    return sorted({min(sums), max(sums)})


@pytest.mark.parametrize(("queries", "most"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)])
def test_strategies_walked_history_by_history_by_the_public_lengths_agree(queries, most):
    game = Game(queries, most)
    code = TranscriptCode(queries=queries, charges=most)
    largest = max(every_sum(code, game))
    assert largest == pytest.approx(float(kraft(game)), abs=1e-12)
    assert largest <= 1.0 + 1e-12


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("end", [3, 7])
def test_undeclared_questions_and_their_finals_stay_within_one(end, most):
    """Without a declared number, each charge's index is coded by itself; strategies that end after so many."""
    code = TranscriptCode(charges=most)

    @cache
    def best(asked, charges, last):
        found = [math.exp(-code.final_length(charges=charges, last_charge=last))]
        if charges < most and asked < end:
            node = math.exp(-code.length(query=asked + 1, charges=charges))
            agreed = best(asked + 1, charges, last)
            found += [node + agreed, node + agreed + best(asked + 1, charges + 1, asked + 1)]
        return max(found)

    assert 0.25 < best(0, 0, 0) <= 1.0 + 1e-12
