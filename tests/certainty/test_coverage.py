"""Coverage of adaptive analysts, by enumerating every holdout; nothing is sampled."""

import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import VALIDITY
from scipy import stats
from within_reach import answered as answered_alone
from within_reach import noisy

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY, Certificate, ConfidenceBound, Shares
from reusable_holdout.ways import AGREED, State, Told
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.reveal import Reveal

BETA = 0.05
GRID = 2**32
LAST_THRESHOLD = 0.25


def coverage_guard(*, rows, cells):
    """Certificate of a guard without noise, the hardest case: the analyst is told every cell exactly."""
    return Certificate(
        bound=ConfidenceBound("binomial", rows=rows, sum_of_squares=1.0 / rows),
        queries=cells + 1,
        charges=cells + 1,
        beta=BETA,
        noise_scale=0.0,
        tolerance=1.0,
        fixed_threshold=0.03,
        least_threshold=0.03,
        charge_nats=THEORY.charge.worst,
        mechanism="noiseless",
    )


@cache
def ways_of(guard, threshold):
    """The ways that are asked: a check, a reveal in cells of this unit, and a final."""
    settled = replace(guard, fixed_threshold=threshold, least_threshold=threshold / THEORY.reveal_unit)
    told = replace(settled, shares=Shares(0.5, 0.5))
    return {
        "check": noisy(Check, settled, 0.0, 0.0),
        "reveal": noisy(Reveal, told, 0.0, 0.0),
        "final": Final(told, "final"),
    }


@cache
def answered(guard, name, value, prior, unit, length):
    """Outcome and interval of one question, whose threshold or cell's unit is this."""
    way, score = ways_of(guard, unit)[name], round(value * GRID)
    if name == "check":
        terms, outcome = answered_alone(way, score, prior)
    else:
        stated = (length,) if name == "final" else (prior, b"", State())
        terms, outcome = way.decide(score, *stated)
    assert name == "final" or terms == pytest.approx((prior, unit))
    return outcome, way.interval(outcome.told, terms, length)


def adaptive_misses(guard, counts, *, batch, length, reveals=False):
    """Ask after each cell, then after all cells that came out high; say which intervals miss the population.

    Each row is in each cell alike. The analyst's priors are the population's values; with `reveals` she has the cells'
    own values told. The last interval is that of a final of the last question. `length` is what a question costs, given
    its number, the charges before it and their nats, or a final, with no number.
    """
    cells, rows = len(counts), guard.bound.rows
    charges, nats, misses, high, before = 0, 0.0, [], [], (0, 0.0)
    for query in range(1, cells + 2):
        asked = [query - 1] if query <= cells else high
        truth, value = len(asked) / cells, sum(counts[cell] for cell in asked) / rows
        # nearly every cell is told; the last question's threshold is so large that its own outcome says something
        unit = guard.fixed_threshold if query <= cells else LAST_THRESHOLD
        before = (0, 0.0) if batch and query <= cells else (charges, nats)
        way = "reveal" if reveals and query <= cells else "check"
        outcome, interval = answered(guard, way, value, truth, unit, length(query, *before))
        charges, nats = charges + outcome.charged, nats + outcome.nats
        if (
            query <= cells and outcome.told != Told(AGREED) and outcome.value > truth
        ):  # an agreed value is not told
            high.append(query - 1)
        misses.append(not interval.low <= truth <= interval.high)
    _, interval = answered(guard, "final", value, truth, LAST_THRESHOLD, length(None, charges, nats))
    return [*misses, not interval.low <= truth <= interval.high]


def by_the_code(guard):
    def length(query, charges, nats):
        if query is None:
            return guard.code.final_length(charges=charges, nats=nats)
        return guard.code.length(query=query, charges=charges, nats=nats)

    return length


def compositions(total, parts):
    """All ways to have so many rows in so many cells."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in compositions(total - first, parts - 1)]


def partitions(total, parts, largest=None):
    """The same up to the order of the cells: counts that never rise."""
    if parts == 0:
        return [()] if total == 0 else []
    most = total if largest is None else min(total, largest)
    return [
        (first, *rest)
        for first in range(most, -1, -1)
        for rest in partitions(total - first, parts - 1, first)
    ]


def chance(counts):
    """Probability of these counts, in this order."""
    ways = math.factorial(sum(counts)) // math.prod(math.factorial(count) for count in counts)
    return ways / len(counts) ** sum(counts)


def chance_in_any_order(counts):
    orders = math.factorial(len(counts)) // math.prod(math.factorial(n) for n in Counter(counts).values())
    return orders * chance(counts)


def missed_ever(guard, *, cells, length, **changes):
    """Probability that any interval misses, the final's included; exact, over all holdouts."""
    holdouts = {counts: chance(counts) for counts in compositions(guard.bound.rows, cells)}
    assert math.fsum(holdouts.values()) == pytest.approx(1.0, rel=1e-12)
    return math.fsum(
        weight
        for counts, weight in holdouts.items()
        if any(adaptive_misses(guard, counts, length=length, **changes))
    )


@pytest.mark.long(*VALIDITY)
@for_each(("batch", "reveals"), [(False, False), (True, False), (False, True)])
@for_each(("rows", "cells"), [(8, 5), (10, 6), (6, 8)])
def test_an_adaptive_analyst_misses_with_probability_at_most_beta(rows, cells, batch, reveals):
    guard = coverage_guard(rows=rows, cells=cells)
    missed = missed_ever(guard, cells=cells, length=by_the_code(guard), batch=batch, reveals=reveals)
    assert missed <= BETA
    # the twin: intervals of one question each, at the same levels but for the code
    assert missed_ever(guard, cells=cells, length=lambda *_: 0.0, batch=batch, reveals=reveals) > BETA


def birthday_misses(length, *, rows, cells):
    """Probability that a cell's interval misses, that the last question's does, and that its final's does.

    All cells are asked in one batch, so their order means nothing. Nearly every row has a cell of its own: the last
    question, after the cells that are not empty, is right about every row of the holdout and about few others.
    """
    guard = coverage_guard(rows=rows, cells=cells)
    cell, last, final, total = 0.0, 0.0, 0.0, 0.0
    for counts in partitions(rows, cells):
        misses = adaptive_misses(guard, counts, batch=True, length=length(guard))
        weight = chance_in_any_order(counts)
        cell, last = cell + weight * any(misses[:-2]), last + weight * misses[-2]
        final, total = final + weight * misses[-1], total + weight
    assert total == pytest.approx(1.0, rel=1e-12)
    return cell, last, final


def test_a_union_over_the_questions_alone_holds_for_fixed_questions_and_never_for_the_last():
    cell, last, final = birthday_misses(lambda guard: lambda *_: math.log(guard.queries), rows=12, cells=60)
    assert cell <= BETA
    assert min(last, final) > 0.99


def test_the_code_holds_for_the_last_question_and_its_final_too():
    assert sum(birthday_misses(by_the_code, rows=12, cells=60)) <= BETA


def test_the_positions_and_values_of_the_charges_must_be_paid_for():
    def for_nothing(guard):
        return lambda query, charges, nats: math.log(guard.queries) + math.log(2.0) * (charges + 1)

    final = birthday_misses(for_nothing, rows=12, cells=60)[2]
    assert final > BETA


# ---- what a node spends


@pytest.mark.long(*VALIDITY)
@for_each("truth", [0.02, 0.3, 0.5, 0.83, 0.999])
@for_each(("threshold", "length"), [(0.02, 0.0), (0.15, 0.0), (0.15, 3.0)])
def test_one_question_misses_with_at_most_what_its_node_may_spend(truth, threshold, length):
    """Agreed, charged or revealed, at every prior, exactly: the value is binomial, and there is no noise."""
    rows = 40
    guard = coverage_guard(rows=rows, cells=3)
    chances = stats.binom.pmf(np.arange(rows + 1), rows, truth).tolist()
    for way in ("check", "reveal"):
        spent = []
        for prior in np.linspace(0.0, 1.0, 41).tolist():
            missed = 0.0
            for count, chance in enumerate(chances):
                _, (low, high) = answered(guard, way, count / rows, prior, threshold, length)
                missed += chance * (not low <= truth <= high)
            spent.append(missed)
        assert max(spent) <= BETA * math.exp(-length)


def test_two_shares_of_four_fifths_would_spend_more_than_a_node_has():
    """The twin: a charged answer can miss on either side, so its sides cannot both have what an agreed one's have."""
    rows, truth = 4000, 0.5
    guard = coverage_guard(rows=rows, cells=3)
    scores = np.arange(rows + 1) / rows
    chances = stats.binom.pmf(np.arange(rows + 1), rows, truth)

    def missed(share):
        interval = guard.around(scores, scores, length=0.0, share=share)
        return float(chances[(truth < interval.low) | (truth > interval.high)].sum())

    assert missed(guard.shares.charged) <= 0.4 * BETA
    assert missed(guard.shares.agreed) > 1.4 * BETA


PLANS = {
    "by distance": Plan(20_000, queries=40, charges=3).scores,
    "by evidence": Plan(20_000, queries=40, charges=3, family="mean", spread=0.3).scores,
    "differences": Plan(20_000, queries=40, charges=3).pairs,
    "a board": Plan(20_000, queries=40, board="claims").scores,
    "told because it is asked for": Plan(20_000, queries=40, charges=3).told,
}


@given(
    length=st.floats(0.0, 3000.0),
    noise_scale=st.sampled_from((0.0, 1e-3)),
    certificate=st.sampled_from(list(PLANS.values())),
)
def test_the_shares_of_a_node_are_all_there_is(length, noise_scale, certificate):
    shares = certificate.shares
    guard = replace(coverage_guard(rows=40, cells=3), shares=shares, noise_scale=noise_scale)
    agreed, charged = (guard.log_level(length, share) for share in shares)
    sides = 2.0 if certificate.decides == "evidence" else 1.0  # a charged one may miss on both
    own = (0.95 if noise_scale else 1.0) * BETA
    assert math.exp(agreed + length) + sides * math.exp(charged + length) == pytest.approx(own, rel=1e-9)
    assert agreed >= charged  # so that an agreed answer's miss contains a charged one's on the same side


def test_each_side_of_a_gate_has_all_for_only_one_of_them_can_miss():
    gates = Plan(20_000, queries=40, charges=3, gates=True)
    assert gates.scores.shares == gates.pairs.shares == (1.0, 1.0)
    everything = Plan(20_000, queries=40, charges=3)
    assert (
        everything.gates(everything.scores).shares == everything.gates(everything.pairs).shares == (1.0, 1.0)
    )
