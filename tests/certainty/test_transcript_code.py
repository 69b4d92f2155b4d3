"""Kraft sums by exact dynamic programming, checked against every strategy of small games; nothing is sampled."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import THEORY, TranscriptCode

FINALS, QUESTIONS = Fraction(THEORY.final_share), 1 - Fraction(THEORY.final_share)
EARLY = Fraction(str(THEORY.early_share))

# A weight of one node, without the outcomes' part and the questions' share: of question `query` of K, asked in a batch
# that starts after `before` questions, `charges` of at most `most` of which were charged.


FIRST = Fraction(str(THEORY.first_share_of_gates))


def number_of_charges(charges, most, first=Fraction(1, 2)):
    """Of the charges before a question: none can follow the last."""
    if most == 1:
        return Fraction(1)
    return (1 - first) / (most - 1) if charges else first


def number_before_a_final(charges, most):
    """A final can follow the last charge; most finals follow none."""
    first = Fraction(str(THEORY.first_share_of_finals))
    return (1 - first) * Fraction(most + 1, most * charges * (charges + 1)) if charges else first


WEIGHTS = {
    "the code": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / math.comb(queries, charges + 1)
    ),
    "the code of gates": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most, FIRST) / math.comb(queries, charges + 1)
    ),
    "index and positions": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / (queries * math.comb(query - 1, charges))
    ),
    "the batch's start": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / (queries * math.comb(before, charges))
    ),
}


def worst_kraft_sum(queries, weight, *, most, batches=None, values=Fraction(1)):
    """Largest sum of weights any strategy reaches; `batches` limits the sizes, `values` is all values' mass.

    A charged value multiplies what follows by its own weight, so the best continuation is the same after every value
    and every set of positions: the game's state is (questions asked, charges), and the recursion is exact. A guard
    that has made `most` charges has halted, in the middle of a batch too.
    """

    @cache
    def worst(before, charges):
        if charges >= most:
            return Fraction(0)
        sizes = range(1, queries - before + 1) if batches is None else batches(before)
        return max((after(before, charges, size) for size in sizes), default=Fraction(0))

    def after(before, charges, size):
        asked = sum(
            weight(queries, query, before, charges, most) for query in range(before + 1, before + size + 1)
        )
        return asked + sum(
            math.comb(size, hits) * values**hits * worst(before + size, charges + hits)
            for hits in range(min(size, most - charges - 1) + 1)
        )

    return worst(0, 0)


def kraft_sums_of_all_strategies(code, value_weight):
    """Questions' Kraft sum of every deterministic strategy, history by history, from the public lengths alone.

    In units of the questions' share.
    """

    def sums(before, charges, nats):
        if before == code.queries or charges >= code.charges:
            return [0.0]
        found = []
        for size in range(1, code.queries - before + 1):
            places = range(before + 1, before + size + 1)
            lengths = np.array([code.length(query=place, charges=charges, nats=nats) for place in places])
            # outcomes of the batch: each question agreed or charged; the sub-strategy may differ after each
            continuations = [
                sums(before + size, charges + sum(hits), nats - sum(hits) * math.log(value_weight))
                for hits in itertools.product((0, 1), repeat=size)
            ]
            asked = float(np.exp(-lengths).sum() / QUESTIONS)
            found += [asked + sum(chosen) for chosen in itertools.product(*continuations)]
        return found

    return sums(0, 0, 0.0)


@for_each("most", [1, 2, 3, 5, 25])
@for_each("queries", [1, 2, 3, 5, 9, 16, 25])
def test_no_strategy_overfills_the_kraft_sum_even_when_answers_choose_the_batches(queries, most):
    for name, first in (("the code", Fraction(1, 2)), ("the code of gates", FIRST)):
        assert (
            first <= worst_kraft_sum(queries, WEIGHTS[name], most=most) <= 1
        )  # so much weighs the first batch alone


@for_each(("queries", "most"), [(4, 1), (4, 3), (12, 5), (20, 8)])
def test_one_question_at_a_time_fills_the_kraft_sum(queries, most):
    """Every set of at most `most` questions, the last asked and the others charged, is a history: nothing is wasted."""
    single = worst_kraft_sum(
        queries, WEIGHTS["the code"], most=most, batches=lambda before: [1] if before < queries else []
    )
    assert single == 1


def test_the_last_question_costs_less_than_by_index_and_positions():
    for charges in range(10):
        ours, apart = (
            WEIGHTS[name](1000, 1000, None, charges, 10) for name in ("the code", "index and positions")
        )
        assert ours / apart == Fraction(charges + 1)


def test_counting_positions_before_the_batch_overfills_the_kraft_sum_once_answers_choose_the_batches():
    weight = WEIGHTS["the batch's start"]
    assert worst_kraft_sum(12, weight, most=4) > 1
    # and it is this freedom that does it: every schedule of sizes fixed in advance stays within 1
    for cuts in itertools.product((False, True), repeat=7):
        starts = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), 8]
        sizes = {start: [end - start] for start, end in itertools.pairwise(starts)}
        fixed = worst_kraft_sum(8, weight, most=4, batches=lambda before, sizes=sizes: sizes.get(before, []))
        assert fixed <= 1


@for_each("queries", [2, 3, 4, 5])
@for_each("most", [1, 2, 3, 9])
@for_each("value_weight", [0.9999, 0.3])
def test_the_dynamic_programme_finds_the_worst_of_all_enumerated_strategies(queries, most, value_weight):
    sums = kraft_sums_of_all_strategies(TranscriptCode(queries=queries, charges=most), value_weight)
    if most > queries:
        assert len(sums) == {2: 2, 3: 6, 4: 54, 5: 4470}[queries]
    worst = worst_kraft_sum(queries, WEIGHTS["the code"], most=most, values=Fraction(value_weight))
    assert max(sums) == pytest.approx(float(worst), rel=1e-12)
    assert max(sums) <= 1.0 + 1e-12


def test_a_length_is_minus_the_log_of_the_weight_the_kraft_sums_are_about():
    for queries, most, nats in ((7, 1, 0.0), (7, 4, 0.0), (40, 40, 2.5)):
        code = TranscriptCode(queries=queries, charges=most)
        gates = replace(code, first_share=float(FIRST))
        for query in range(1, queries + 1):
            for charges in range(min(query, most)):
                for one, name in ((code, "the code"), (gates, "the code of gates")):
                    weight = QUESTIONS * WEIGHTS[name](queries, query, None, charges, most)
                    length = one.length(query=query, charges=charges, nats=nats)
                    assert length == pytest.approx(nats - math.log(weight), abs=1e-11)


def test_undeclared_questions_weigh_one_together():
    code = TranscriptCode()
    weights = sum(math.exp(-code.length(query=i, charges=0)) for i in range(1, 2001))
    share = float(QUESTIONS)
    assert weights == pytest.approx(share * 0.5 * (1 - 1 / 2001), rel=1e-12)  # 1 / (i (i + 1)) telescopes
    for i in (1, 5, 40):  # all histories of the i-th question, but the one in which i charges were before it
        together = sum(math.comb(i - 1, j) * math.exp(-code.length(query=i, charges=j)) for j in range(i))
        assert together == pytest.approx(share * (1 - 2.0**-i) / (i * (i + 1)), rel=1e-9)


def test_more_charges_than_were_declared_cost_as_if_so_many_had_been():
    few, many = (TranscriptCode(queries=100, charges=charges) for charges in (5, 31))
    assert few.length(query=100, charges=30) == many.length(query=100, charges=30)
    assert few.length(query=100, charges=4) < many.length(query=100, charges=4)


# ---- the final


def places(queries, charges, last):
    """Weight of the places of charges, the last of them at this index."""
    if not charges:
        return Fraction(1)
    return (1 - EARLY) / math.comb(queries, charges) + EARLY * by_last(charges, last)


def by_last(charges, last):
    """The same if the last one is coded first, and then the others below it."""
    return Fraction(1, (last + 1) * math.comb(last, charges)) if charges else Fraction(1)


def left_over(queries, most):
    """What the finals of a guard leave of their share: the last charge would have to come after the last question."""
    left = range(1, most + 1)
    return EARLY * sum(number_before_a_final(j, most) * Fraction(j, queries + 1) for j in left)


def worst_kraft_sum_of_finals(queries, weight, *, most, values=Fraction(1)):
    """Largest sum of the finals' weights: after every history the strategy gives its final, or asks one more first.

    `weight` is that of a final after so many questions and charges, the last of them at this index. Between two
    questions is all there is of freedom: a final depends on a batch's answers as on those of single questions.
    """

    @cache
    def worst(asked, charges, last):
        now = weight(asked, charges, last)
        if asked == queries or charges == most:
            return now
        return max(now, worst(asked + 1, charges, last) + values * worst(asked + 1, charges + 1, asked + 1))

    return worst(0, 0, 0)


@for_each("most", [1, 2, 3, 5, 25])
@for_each("queries", [1, 2, 3, 5, 9, 16, 25])
def test_no_strategy_overfills_the_kraft_sum_of_finals(queries, most):
    def weight(asked, charges, last):
        return number_before_a_final(charges, most) * places(queries, charges, last)

    total = worst_kraft_sum_of_finals(queries, weight, most=most)
    assert Fraction(1, 2) <= total <= 1
    if most <= queries:
        assert total == 1 - left_over(queries, most)  # asking on to the end, or to the last charge


WRONG_PLACES = {
    "among the questions asked alone": lambda asked, charges, last: Fraction(
        1, math.comb(max(asked, charges), charges)
    ),
    "among those up to the last charge alone": lambda asked, charges, last: Fraction(
        1, math.comb(last, charges)
    ),
    "the cheaper code for nothing": lambda asked, charges, last: max(
        Fraction(1, math.comb(12, charges)), by_last(charges, last)
    ),
}


@for_each("wrong", WRONG_PLACES)
def test_finals_that_pay_less_for_the_places_would_overfill_the_kraft_sum(wrong):
    """The twins: a strategy stops where stopping is cheap."""

    def weight(asked, charges, last):
        return number_before_a_final(charges, 4) * WRONG_PLACES[wrong](asked, charges, last)

    assert worst_kraft_sum_of_finals(12, weight, most=4) > 1


@for_each(("queries", "most"), [(1, 1), (7, 1), (7, 4), (40, 40)])
def test_a_finals_length_is_minus_the_log_of_its_weight(queries, most):
    code = TranscriptCode(queries=queries, charges=most)
    for charges in range(min(queries, most) + 1):
        for last in range(charges, queries + 1):
            weight = FINALS * number_before_a_final(charges, most) * places(queries, charges, last)
            length = code.final_length(charges=charges, nats=1.5, last_charge=last)
            assert length == pytest.approx(1.5 - math.log(weight), abs=1e-11)
        dearest = code.final_length(charges=charges, nats=1.5)
        assert dearest == length  # the last charge at the last question


def test_questions_and_finals_share_one():
    code = TranscriptCode(queries=50, charges=1)
    questions = sum(math.exp(-code.length(query=i, charges=0)) for i in range(1, 51))
    charged = sum(math.exp(-code.final_length(charges=1, last_charge=i)) for i in range(1, 51))
    finals = math.exp(-code.final_length(charges=0)) + charged
    assert questions == pytest.approx(float(QUESTIONS), rel=1e-9)
    assert finals == pytest.approx(float(FINALS * (1 - left_over(50, 1))), rel=1e-9)


def test_undeclared_finals_weigh_their_share_together():
    """Those of as many charges telescope in the index of the last one."""
    code, most = TranscriptCode(), 400
    none = math.exp(-code.final_length(charges=0))
    assert none == pytest.approx(float(FINALS) * THEORY.first_share_of_finals)
    for charges in (1, 2, 7, 30):
        together = sum(
            math.comb(last - 1, charges - 1) * math.exp(-code.final_length(charges=charges, last_charge=last))
            for last in range(charges, most + 1)
        )
        assert together == pytest.approx(
            float(FINALS) * 0.1 * 2.0**-charges * (1 - charges / (most + 1)), rel=1e-9
        )
