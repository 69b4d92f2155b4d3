"""Means over the rows of groups, against all holdouts of a few groups of up to three rows.

A group's size and what its rows are worth may depend on each other in any way. The population's mean over rows is the
ratio of two expectations, and no holdout's own sizes enter it.
"""

import itertools
import math
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from cases import for_each
from long_tests import VALIDITY

from reusable_holdout.certainty import (
    THEORY,
    ConfidenceBound,
    EvidenceSet,
)
from reusable_holdout.certainty.evidence import Null
from reusable_holdout.guard.class_counts import told
from reusable_holdout.guard.pricing import guessed
from reusable_holdout.metrics import GRID, accuracy

SIZES = (1, 2, 3)
KINDS = [(size, right) for size in SIZES for right in range(size + 1)]


def bound_of(sizes, largest):
    """Accuracy on groups of these sizes, whose labels are all 1."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return accuracy().bind(np.ones(len(groups), int), classes=[0, 1], groups=groups, largest_group=largest)


def laws(seed, count):
    """Laws of a group: its size, and how many of its rows are right; small and large ones differ by much or little."""
    rng = np.random.default_rng(seed)
    for sharpness in itertools.islice(itertools.cycle([0.1, 0.3, 1.0]), count):
        yield dict(zip(KINDS, rng.dirichlet(np.full(len(KINDS), sharpness)), strict=True))
    yield {(1, 1): 0.5, (3, 0): 0.5}  # small groups are right, large ones wrong
    yield {(1, 0): 0.9, (3, 3): 0.1}


def ratio(law, largest):
    """Population's mean over rows, of each group at most so many."""
    kept = {kind: min(kind[0], largest) * chance for kind, chance in law.items()}
    return sum(rows * right / size for (size, right), rows in kept.items()) / sum(kept.values())


def holdouts(law, groups, largest):
    """All holdouts of so many groups: chance, terms and weights; which rows of a group are right is chance as well."""
    contents = [
        (rows, law.get((size, sum(rows)), 0.0) / math.comb(size, sum(rows)))
        for size in SIZES
        for rows in itertools.product((0, 1), repeat=size)
    ]
    bounds = {}
    for drawn in itertools.product([one for one in contents if one[1]], repeat=groups):
        sizes = tuple(len(rows) for rows, _ in drawn)
        if sizes not in bounds and sum(sizes) >= largest:
            bounds[sizes] = bound_of(sizes, largest)
        if sizes in bounds:
            bound = bounds[sizes]
            terms = bound.row_terms(bound.prepare(list(itertools.chain(*(rows for rows, _ in drawn))))) / GRID
            yield math.prod(chance for _, chance in drawn), terms, bound


def expectation(law, null, largest, weights=lambda bound: bound.relative_weights):
    return math.fsum(
        chance * math.exp(null.log_evidence(terms, weights(bound)))
        for chance, terms, bound in holdouts(law, 3, largest)
    )


# ---- evidence


@pytest.mark.long(*VALIDITY)
@pytest.mark.parametrize("largest", [2, 3])
@pytest.mark.parametrize("tolerance", [0.02, 0.2])
def test_the_expectation_of_evidence_is_one_at_the_true_ratio(largest, tolerance):
    for law in laws(1, 6):
        truth = ratio(law, largest)
        if 0.0 < truth < 1.0:
            assert expectation(law, Null(truth, tolerance), largest) == pytest.approx(1.0, abs=1e-8)


def test_it_is_at_most_one_above_the_true_ratio():
    for law in laws(2, 4):
        above = ratio(law, 3) + 0.05
        if above < 1.0:
            assert expectation(law, Null(above, 0.1), 3) <= 1.0


@pytest.mark.long(*VALIDITY)
def test_in_units_of_the_largest_size_seen_it_would_be_more():
    def seen(bound):
        return bound.groups.sizes / bound.groups.sizes.max()

    found = [expectation(law, Null(ratio(law, 3), 0.2), 3, seen) for law in laws(1, 6)]
    assert max(found) > 1.2


def test_without_the_sizes_it_would_be_about_the_mean_of_groups():
    small_right = {(1, 1): 0.5, (3, 0): 0.5}
    assert ratio(small_right, 3) == 0.25
    assert expectation(small_right, Null(0.25, 0.2), 3, lambda _: None) > 2.0


def test_where_the_sizes_are_known_it_is_about_the_rows_of_such_groups():
    """Each group has a law of its own; their mean over rows is what the evidence is about."""
    rng, sizes = np.random.default_rng(3), (1, 3, 2, 3)
    bound = bound_of(sizes, 4)
    for _ in range(8):
        chances = rng.random(len(sizes))  # that all rows of a group are right, or none
        truth = float(np.dot(sizes, chances) / sum(sizes))
        total = 0.0
        for right in itertools.product((0, 1), repeat=len(sizes)):
            terms = bound.row_terms(bound.prepare(np.repeat(right, sizes))) / GRID
            chance = math.prod(p if yes else 1 - p for p, yes in zip(chances, right, strict=True))
            total += chance * math.exp(Null(truth, 0.2).log_evidence(terms, bound.relative_weights))
        assert total <= 1.0 + 1e-8


@pytest.mark.long(*VALIDITY)
@pytest.mark.parametrize("level", [0.3, 0.05])
def test_the_set_of_a_final_misses_no_more_often_than_its_level_whatever_was_told_of_the_sizes(level):
    """Exact, over all holdouts; its bets follow from the number of rows that was told."""
    found = []
    for drawn in itertools.combinations_with_replacement(KINDS, 4):
        bound = bound_of([size for size, _ in drawn], 3)
        right = np.concatenate([np.arange(size) < good for size, good in drawn]).astype(int)
        terms, place = bound.row_terms(bound.prepare(right)) / GRID, told(bound, guessed(bound)).place
        ends = EvidenceSet(-math.log(level), bound.effective_rows, 0.6, 0.3).of_rows(
            terms, bound.relative_weights
        )
        orders = math.factorial(4) // math.prod(math.factorial(drawn.count(kind)) for kind in set(drawn))
        found.append((drawn, orders, place, *ends))
    for law in laws(4, 12):
        truth, missed = ratio(law, 3), defaultdict(float)
        for drawn, orders, place, low, high in found:
            chance = orders * math.prod(law.get(kind, 0.0) for kind in drawn)
            missed[place, "low"] += chance * (low > truth + 1e-9)
            missed[place, "high"] += chance * (high < truth - 1e-9)
        assert max(missed.values()) <= level


# ---- the Chernoff bound, of as many rows as were told


def counts(law, groups):
    """Chance of each number of rows, and of right ones among them."""
    found = {(0, 0): 1.0}
    for _ in range(groups):
        more = defaultdict(float)
        for (rows, right), chance in found.items():
            for (size, good), own in law.items():
                more[rows + size, right + good] += chance * own
        found = more
    return found


@cache
def told_rows(rows, groups):
    """What is told where so many groups have so many rows: cell, and the rows that may be counted on."""
    sizes = np.full(groups, rows // groups)
    sizes[: rows % groups] += 1
    bound = bound_of(sizes, 3)
    return told(bound, guessed(bound)).place, bound.effective_rows


@cache
def ends(right, rows, counted, level):
    bound = ConfidenceBound("bounded", rows=counted, sum_of_squares=1 / counted)
    return tuple(end(right / rows, log_level=math.log(level)) for end in (bound.lower, bound.upper))


def most_missed(law, groups, level, rows_of):
    """Largest chance, over what is told, that it is told and a side of the interval misses."""
    truth, missed = ratio(law, 3), defaultdict(float)
    for (rows, right), chance in counts(law, groups).items():
        cell, counted = rows_of(rows, groups)
        low, high = ends(right, rows, counted, level)
        missed[cell, "low"] += chance * (low > truth + 1e-12)
        missed[cell, "high"] += chance * (high < truth - 1e-12)
    return max(missed.values())


@for_each("groups", [3, 6, 20])
@for_each("level", [0.3, 0.05, 0.005])
def test_no_law_makes_the_bound_of_the_told_rows_miss_more_often_than_its_level(groups, level):
    for law in laws(groups, 9):
        assert most_missed(law, groups, level, told_rows) <= level


def test_a_bound_of_as_many_rows_as_there_are_would_miss_more_often():
    large = {(1, 0): 0.5, (3, 3): 0.25, (3, 0): 0.25}
    assert most_missed(large, 20, 0.05, told_rows) <= 0.05
    assert most_missed(large, 20, 0.05, lambda rows, _: (0, rows)) > 0.07


def test_what_is_told_is_never_more_than_there_is_and_is_paid_for():
    for groups in (3, 20, 200):
        for rows in range(groups, 3 * groups + 1, max(1, groups // 10)):
            place, counted = told_rows(rows, groups)
            assert 1 <= counted <= rows / 3
            assert THEORY.counts.least(place) <= (rows / 3) / (groups * 2 / 3) * 1.5


def test_sizes_of_one_row_have_nothing_to_tell():
    bound = bound_of((1, 2, 3), 1)
    assert guessed(bound) is None
    assert (bound.effective_rows, bound.sensitivity) == (3, pytest.approx(1 / 3))
