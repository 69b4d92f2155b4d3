"""The set of means that evidence leaves, against all samples of a few rows."""

import itertools
import math

import numpy as np
import pytest

from reusable_holdout.certainty import ConfidenceBound, EvidenceSet, likely_rows
from reusable_holdout.certainty.evidence import EvidenceRows

VALUES = np.array([0.0, 0.4, 1.0])


@pytest.mark.parametrize(("mean", "spread"), [(0.5, 0.5), (0.9, 0.1), (0.2, 0.4)])
@pytest.mark.parametrize("rows", [3, 8])
@pytest.mark.parametrize("level", [0.5, 0.1, 0.01])
def test_each_end_misses_no_more_often_than_its_level_whatever_the_law(rows, level, mean, spread):
    found = EvidenceSet(-math.log(level), rows, mean, spread)
    counts = np.array(
        [(rows - k - j, k, j) for k in range(rows + 1) for j in range(rows + 1 - k)], dtype=float
    )
    ways = np.array(
        [math.factorial(rows) / math.prod(math.factorial(int(n)) for n in each) for each in counts]
    )
    ends = np.array([found.of(EvidenceRows(VALUES, each)) for each in counts])
    worst = 0.0
    for p0, p1 in itertools.product(np.linspace(0, 1, 26), repeat=2):
        if p0 + p1 > 1.0:
            continue
        law = np.array([p0, max(0.0, 1.0 - p0 - p1), p1])
        chances, truth = ways * np.prod(law**counts, axis=1), float(law @ VALUES)
        worst = max(
            worst, chances[ends[:, 0] > truth + 1e-12].sum(), chances[ends[:, 1] < truth - 1e-12].sum()
        )
    assert worst <= level
    if level == 0.5 and mean == 0.5:
        assert worst > 0.05


def test_rows_of_unequal_means_and_weights_miss_no_more_often():
    """The weighted mean of the rows' means, over all samples of five rows."""
    weights, chances = np.array([1.0, 0.4, 0.7, 1.0, 0.1]), np.array([0.2, 0.9, 0.5, 0.7, 0.05])
    truth, level = float(weights @ chances / weights.sum()), 0.3
    found, below, above = EvidenceSet(-math.log(level), 5, 0.4, 0.3), 0.0, 0.0
    for sample in itertools.product((0.0, 1.0), repeat=5):
        terms = np.array(sample)
        low, high = found.of_rows(terms, weights)
        chance = float(np.prod(np.where(terms == 1.0, chances, 1.0 - chances)))
        below, above = below + chance * (high < truth), above + chance * (low > truth)
    assert max(below, above) <= level


def test_what_is_excluded_is_excluded_by_all_that_lies_below():
    """Otherwise the ends would be no ends of a set."""
    terms = np.random.default_rng(1).beta(4.0, 1.0, 200)
    found = EvidenceSet(6.0, 200)
    low, high = found.of_rows(terms)
    assert low < terms.mean() < high
    wider = EvidenceSet(9.0, 200).of_rows(terms)
    assert wider[0] < low < high < wider[1]


def test_it_is_far_narrower_than_the_chernoff_interval_where_rows_spread_little():
    bound, nats = ConfidenceBound("bounded", rows=2_000, sum_of_squares=1 / 2_000), 10.0
    chernoff = bound.upper(0.5, log_level=-nats) - bound.lower(0.5, log_level=-nats)
    for spread, most in [(0.05, 0.15), (0.2, 0.45), (0.5, 1.04)]:
        low, high = EvidenceSet(nats, 2_000, 0.5, spread).of(likely_rows(0.5, spread, 2_000))
        assert high - low < most * chernoff
