"""Coverage of adaptive analysts, by enumerating every holdout; nothing is sampled."""

from __future__ import annotations

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

from reusable_holdout.certainty import (
    THEORY,
    Certificate,
    ConfidenceBound,
    Shares,
    policy_code,
)
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.reveal import Reveal
from reusable_holdout.ways.told import AGREED

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
        lower=0.0,
        upper=1.0,
        tolerance=1.0,
        fixed_threshold=0.03,
        least_threshold=0.03,
        charge_nats=THEORY.charge.worst,
        mechanism="noiseless",
    )


@cache
def kinds_of(guard):
    """The kinds that are asked: a check, a reveal, and a final."""
    told = replace(guard, shares=Shares(0.5, 0.5))
    noise = KeyedNoise(bytes(32))
    return {"check": Check(guard, noise), "reveal": Reveal(told, noise), "final": Final(told, noise)}


@cache
def answered(guard, way, value, terms, length):
    """Outcome, and whether its interval misses the prior, which is the population's value."""
    kind = kinds_of(guard)[way]
    score = round(value * GRID)
    outcome = kind.decide(score, b"") if way == "final" else kind.decide(score, terms, b"", State())
    interval = kind.interval(outcome, terms, length)
    return outcome, not interval.low <= terms.prior <= interval.high


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
        terms = Terms(truth, guard.fixed_threshold if query <= cells else LAST_THRESHOLD)
        before = (0, 0.0) if batch and query <= cells else (charges, nats)
        way = "reveal" if reveals and query <= cells else "check"
        outcome, missed = answered(guard, way, value, terms, length(query, *before))
        charges, nats = charges + outcome.charged, nats + outcome.nats
        if query <= cells and outcome.told != AGREED and outcome.value > truth:  # an agreed value is not told
            high.append(query - 1)
        misses.append(missed)
    return [*misses, answered(guard, "final", value, Terms(truth, 0.0), length(None, charges, nats))[1]]


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
        kind, spent = kinds_of(guard)[way], []
        for prior in np.linspace(0.0, 1.0, 41).tolist():
            missed, terms = 0.0, Terms(prior, threshold)
            for count, chance in enumerate(chances):
                outcome = kind.decide(round(count / rows * GRID), terms, b"", State())
                low, high = kind.interval(outcome, terms, length)
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


@given(
    length=st.floats(0.0, 3000.0),
    noise_scale=st.sampled_from((0.0, 1e-3)),
    policy=st.sampled_from(("thresholdout", "guess-and-check", "ladder", "parameter-free-ladder", "claims")),
)
def test_the_shares_of_a_node_are_all_there_is(length, noise_scale, policy):
    shares = policy_code(policy, places=40.0).shares
    guard = replace(coverage_guard(rows=40, cells=3), shares=shares, noise_scale=noise_scale)
    levels = [guard.log_level(length, share) for share in shares]
    own = (0.95 if noise_scale else 1.0) * BETA
    assert sum(math.exp(level + length) for level in levels) == pytest.approx(own, rel=1e-9)
    assert levels[0] >= levels[1]  # so that an agreed answer's miss contains a charged one's on the same side


def test_each_side_of_a_gate_has_all_for_only_one_of_them_can_miss():
    assert policy_code("gate", places=1.0).shares == (1.0, 1.0)
