"""Pairs: rows that differ are excluded as a sign test would, and all pairs of any strategy weigh at most one."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reusable_holdout.certainty import lead_nats, paired_length
from reusable_holdout.errors import InputError


@given(st.integers(1, 400), st.integers(0, 400))
def test_fair_signs_lead_by_so_much_no_more_often_than_is_said(differing, lead):
    lead = min(lead, differing)
    exact = stats.binom.sf(math.ceil((differing + lead) / 2) - 1, differing, 0.5)
    assert exact <= math.exp(-lead_nats(lead, differing)) * (1.0 + 1e-9)


@for_each("rows", [1, 2, 3, 4, 5])
def test_whatever_rows_gain_or_lose_if_on_average_they_gain_nothing_the_bound_holds(rows):
    """Exact: rows that differ in their chances, of which one may win, lose or do neither; graded losses, too."""
    rng = np.random.default_rng(rows)
    values = np.array([-1.0, -0.4, 0.0, 0.7, 1.0])
    for _ in range(20):
        chances = rng.dirichlet([0.4] * len(values), rows)
        gain = (chances @ values).sum()
        if gain > 0.0:  # moved towards losses until they gain nothing
            share = gain / (gain + rows)
            chances *= 1.0 - share
            chances[:, 0] += share
        sums, weights = [], []
        for drawn in itertools.product(range(len(values)), repeat=rows):
            sums.append(values[list(drawn)].sum())
            weights.append(math.prod(chances[row, one] for row, one in enumerate(drawn)))
        sums, weights = np.array(sums), np.array(weights)
        for lead in np.unique(sums[sums > 0.0]):
            chance = weights[sums >= lead - 1e-12].sum()
            assert chance <= math.exp(-lead_nats(float(lead), rows)) * (1.0 + 1e-6)


def test_a_lead_says_the_less_the_more_rows_differ_and_none_says_nothing():
    nats = [lead_nats(50, differing) for differing in (50, 60, 100, 1_000, 100_000)]
    assert nats == sorted(nats, reverse=True)
    assert nats[0] == pytest.approx(50 * math.log(2.0))
    assert lead_nats(0, 10) == lead_nats(-5, 10) == lead_nats(5, 0) == 0.0
    assert lead_nats(11, 10) == pytest.approx(
        lead_nats(10, 10)
    )  # what was told of both cannot be, and certifies no more


@for_each("queries", [2, 3, 4, 6])
def test_all_pairs_of_any_strategy_weigh_at_most_one(queries):
    """A strategy is a tree, with public weights at each history; a question is a pair with each earlier one, twice."""
    rng = np.random.default_rng(queries)

    def walk(asked, nats):
        if asked == queries:
            return 0.0
        total = 0.0
        if asked:
            total = 2 * asked * math.exp(-paired_length(queries=queries, question=asked + 1, nats=nats))
        weights = rng.dirichlet([0.5] * 3)
        return total + sum(walk(asked + 1, nats - math.log(weight)) for weight in weights if weight > 1e-9)

    for _ in range(20):
        total = walk(0, 0.0)
        assert total <= (queries - 1) / queries + 1e-9


def test_a_pair_needs_an_earlier_question():
    refuses(InputError, "one of 2 to 10; got 1", paired_length, queries=10, question=1, nats=0.0)


@for_each(("queries", "question"), [(2, 2), (9, 2), (9, 9), (10_000, 501)])
def test_a_pairs_length_names_both_and_who_leads(queries, question):
    length = paired_length(queries=queries, question=question, nats=1.5)
    assert length == pytest.approx(1.5 + math.log(queries * (question - 1) * 2), rel=1e-13)
    for beyond in (1, queries + 1):
        with pytest.raises(InputError, match="the later question of a pair"):
            paired_length(queries=queries, question=beyond, nats=1.5)


@for_each(("lead", "differing"), [(60, 400), (60, 4000), (0.5, 2), (3.0, 3), (1, 1), (900.5, 1000)])
def test_a_lead_is_worth_the_divergence_of_its_share_from_a_half(lead, differing):
    right = (1 + lead / differing) / 2
    divergence = sum(share * math.log(2 * share) for share in (right, 1 - right) if share)
    assert lead_nats(lead, differing) == pytest.approx(differing * divergence, rel=1e-7, abs=3e-8)


@for_each(
    ("lead", "differing"),
    [(0.0, 1), (-1e-9, 9), (1e-9, 1), (0.5e-9, 3), (-4, 4), (0, 0), (3, 0), (1e-3, 10**6)],
)
def test_a_lead_within_rounding_is_worth_nothing(lead, differing):
    assert lead_nats(lead, differing) == 0.0


def test_rounding_is_taken_from_what_a_lead_is_worth():
    assert 10 * math.log(2) - 4e-8 < lead_nats(10, 10) < 10 * math.log(2) - 1.5e-9
