"""Coverage of adaptive analysts, by enumerating every holdout; nothing is sampled."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import VALIDITY
from scipy import stats

from reusable_holdout.validity import Certificate, ConfidenceBound, certificate_of

BETA = 0.05


def coverage_guard(*, rows, cells):
    return Certificate(
        bound=ConfidenceBound("binomial", rows=rows, sum_of_squares=1.0 / rows),
        queries=cells + 1,
        charges=cells + 1,
        beta=BETA,
        noise_scale=0.0,
        resolution=0.01,
        lower=0.0,
        upper=1.0,
        tolerance=1.0,
        fixed_threshold=0.03,
        least_threshold=0.0,
    )


def adaptive_misses(guard, counts, *, batch, length):
    """Ask after each cell, then after all cells that came out high; say which intervals miss the population.

    Each row is in each cell alike. Thresholdout without noise: the hardest case, for the analyst sees every charged
    value exactly. Her priors are the population's values. `length` is what a question costs, given its number, the
    charges before it and their nats.
    """
    cells, rows = len(counts), guard.bound.rows
    spent, misses, high = [], [], []
    for query in range(1, cells + 2):
        asked = [query - 1] if query <= cells else high
        truth, value = len(asked) / cells, sum(counts[cell] for cell in asked) / rows
        before = [] if batch and query <= cells else list(spent)
        cost = length(query, len(before), sum(before))
        if abs(value - truth) < guard.fixed_threshold:
            interval = guard.agreed(truth, guard.fixed_threshold, cost)
        else:
            interval = guard.charged(value, guard.fixed_threshold, cost)
            spent.append(guard.value_nats(value, prior=truth, threshold=guard.fixed_threshold))
            if query <= cells and value > truth:  # an agreed value is not told to her
                high.append(query - 1)
        misses.append(not interval.low <= truth <= interval.high)
    return misses


def by_the_code(guard):
    return lambda query, charges, nats: guard.code.length(query=query, charges=charges, nats=nats)


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


def missed_ever(guard, *, cells, length, batch=False):
    """Probability that any interval misses; exact, over all holdouts."""
    holdouts = {counts: chance(counts) for counts in compositions(guard.bound.rows, cells)}
    assert math.fsum(holdouts.values()) == pytest.approx(1.0, rel=1e-12)
    return math.fsum(
        weight
        for counts, weight in holdouts.items()
        if any(adaptive_misses(guard, counts, batch=batch, length=length))
    )


@pytest.mark.long(*VALIDITY)
@for_each("batch", [False, True])
@for_each(("rows", "cells"), [(8, 5), (10, 6), (6, 8)])
def test_an_adaptive_analyst_misses_with_probability_at_most_beta(rows, cells, batch):
    guard = coverage_guard(rows=rows, cells=cells)
    missed = missed_ever(guard, cells=cells, length=by_the_code(guard), batch=batch)
    assert missed <= BETA
    # the twin: intervals of one question each, at the same levels but for the code
    assert missed_ever(guard, cells=cells, length=lambda *_: 0.0, batch=batch) > BETA


def birthday_misses(length, *, rows, cells):
    """Probability that a cell's interval misses, and that the last question's does.

    All cells are asked in one batch, so their order means nothing. Nearly every row has a cell of its own: the last
    question, after the cells that are not empty, is right about every row of the holdout and about few others.
    """
    guard = coverage_guard(rows=rows, cells=cells)
    cell, last, total = 0.0, 0.0, 0.0
    for counts in partitions(rows, cells):
        misses = adaptive_misses(guard, counts, batch=True, length=length(guard))
        weight = chance_in_any_order(counts)
        cell, last, total = cell + weight * any(misses[:-1]), last + weight * misses[-1], total + weight
    assert total == pytest.approx(1.0, rel=1e-12)
    return cell, last


def test_a_union_over_the_questions_alone_holds_for_fixed_questions_and_never_for_the_last():
    cell, last = birthday_misses(lambda guard: lambda *_: math.log(guard.queries), rows=12, cells=60)
    assert cell <= BETA
    assert last > 0.99


def test_the_code_holds_for_the_last_question_too():
    cell, last = birthday_misses(by_the_code, rows=12, cells=60)
    assert cell + last <= BETA


def test_the_positions_and_values_of_the_charges_must_be_paid_for():
    def for_nothing(guard):
        return lambda query, charges, nats: math.log(guard.queries) + math.log(2.0) * (charges + 1)

    assert birthday_misses(for_nothing, rows=12, cells=60)[1] > BETA


# ---- what a node spends


@for_each("truth", [0.02, 0.3, 0.5, 0.83, 0.999])
@for_each(("threshold", "length"), [(0.02, 0.0), (0.15, 0.0), (0.15, 3.0)])
def test_one_question_misses_with_at_most_what_its_node_may_spend(truth, threshold, length):
    """Agreed or charged, at every prior, exactly: the holdout's value is binomial, and there is no noise."""
    rows = 40
    guard = replace(coverage_guard(rows=rows, cells=3), resolution=1e-6)
    chances = stats.binom.pmf(np.arange(rows + 1), rows, truth)
    spent = []
    for prior in np.linspace(0.0, 1.0, 81).tolist():
        missed = 0.0
        for score, chance in zip(np.arange(rows + 1) / rows, chances.tolist(), strict=True):
            agrees = abs(score - prior) < threshold
            answer = (
                guard.agreed(prior, threshold, length) if agrees else guard.charged(score, threshold, length)
            )
            missed += chance * (not answer.low <= truth <= answer.high)
        spent.append(missed)
    assert max(spent) <= 0.95 * BETA * math.exp(-length)


def test_two_shares_of_four_fifths_would_spend_more_than_a_node_has():
    """The twin: a charged answer can miss on either side, so its sides cannot both have what an agreed one's have."""
    rows, truth = 4000, 0.5
    guard = coverage_guard(rows=rows, cells=3)
    scores, own = np.arange(rows + 1) / rows, 0.95 * BETA
    chances = stats.binom.pmf(np.arange(rows + 1), rows, truth)

    def missed(level):
        low, high = (bound(scores, log_level=level) for bound in (guard.bound.lower, guard.bound.upper))
        return float(chances[(truth < low) | (truth > high)].sum())

    assert missed(guard.charged_level(0.0)) <= 0.4 * own
    assert missed(guard.agreed_level(0.0)) > 1.4 * own


@given(length=st.floats(0.0, 3000.0), policy=st.sampled_from(("thresholdout", "ladder")))
def test_the_shares_of_a_node_are_all_there_is(length, policy):
    guard = certificate_of(policy, coverage_guard(rows=40, cells=3))
    levels = guard.agreed_level(length), guard.charged_level(length)
    shares = sum(math.exp(level + length) for level in levels)
    assert shares == pytest.approx(0.95 * BETA, rel=1e-9)
    assert levels[0] >= levels[1]  # so that an agreed answer's miss contains a charged one's on the same side
