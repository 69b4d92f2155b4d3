"""Bands and intervals of an average precision, recomputed rank by rank and step by step."""

import math

import numpy as np
import pytest
from cases import for_each
from scipy import integrate, stats

from reusable_holdout.certainty import THEORY, average_precision_interval
from reusable_holdout.certainty.precision_bands import _band, _ranks, _upper
from reusable_holdout.certainty.theory import BandShares

OTHER = BandShares(band=0.3, positives=0.4, ranks=0.25, ratio=1.5)


@for_each("ratio", [1.1, 1.5])
@for_each("rows", [1, 2, 11, 12, 13, 1000])
def test_ranks_are_each_at_least_one_and_about_a_ratio_above_the_one_before(rows, ratio):
    expected, rank = [], 1.0
    while rank < rows:
        expected.append(math.floor(rank))
        rank += max(1.0, rank * (ratio - 1.0))
    assert _ranks(rows, ratio).tolist() == [*expected, rows]


def limits(rows, nats, shares):
    """Least and most share at or above a score with so many rows at or above it."""
    ranks = _ranks(rows, shares.ratio).tolist()
    level = math.exp(-nats) * shares.ranks / len(ranks)
    distance = math.sqrt(-math.log(math.exp(-nats) * (1 - shares.ranks)) / (2 * rows))
    least, most = [], []
    for count in range(rows + 1):
        reached = [rank for rank in ranks if rank <= count]
        ahead = [rank for rank in ranks if rank > count]
        low = stats.beta.ppf(level, reached[-1], rows - reached[-1] + 1) if reached else 0.0
        high = stats.beta.isf(level, ahead[0], rows - ahead[0] + 1) if ahead else 1.0
        least.append(max(low, count / rows - distance))
        most.append(min(high, count / rows + distance))
    return least, most


@for_each("shares", [THEORY.bands, OTHER])
@for_each(("rows", "nats"), [(1, 2.0), (7, 0.5), (60, 5.0), (60, 40.0)])
def test_a_band_is_the_narrower_of_a_distance_and_of_exact_ranks(rows, nats, shares):
    band = _band(rows, nats, shares)
    least, most = limits(rows, nats, shares)
    assert band.least.tolist() == pytest.approx(least, rel=1e-8, abs=1e-11)
    assert band.most.tolist() == pytest.approx(most, rel=1e-8, abs=1e-11)
    assert _band(rows, nats).most.tolist() == _band(rows, nats, THEORY.bands).most.tolist()


@for_each("shares", [THEORY.bands, OTHER])
@for_each("nats", [1.0, 6.0])
@for_each(
    ("above", "negatives"),
    [
        *(([0], 1), ([3], 3), ([0, 0, 1, 4, 4, 9], 12), ([5, 5, 5], 5), (list(range(0, 60, 2)), 60)),
        ([0] * 40, 200),
    ],
)
def test_an_interval_is_its_two_integrals(above, negatives, nats, shares):
    positives = len(above)
    rows = positives + negatives
    level = math.exp(-nats) * shares.positives
    p_least = stats.beta.ppf(level, positives, rows - positives + 1)
    p_most = stats.beta.isf(level, positives + 1, rows - positives)
    own, other = (limits(count, nats - math.log(shares.band), shares) for count in (positives, negatives))
    low = 0.0
    for count, (start, end) in enumerate(zip(own[0], [*own[0][1:], 1.0], strict=True)):
        against = other[1][above[count]] if count < positives else 1.0
        odds = (1 - p_least) / p_least * against
        low += integrate.quad(lambda u, odds=odds: u / (u + odds), start, end, epsabs=1e-13)[0]
    at_best = [
        p_most * own[1][k + 1] / (p_most * own[1][k + 1] + (1 - p_most) * other[0][above[k]])
        for k in range(positives)
    ]
    high = own[1][0] + sum((own[1][k + 1] - own[1][k]) * max(at_best[k:]) for k in range(positives))
    found = average_precision_interval(np.array(above), negatives, nats=nats, shares=shares)
    assert found == pytest.approx((low, min(high, 1.0)), rel=1e-8, abs=1e-11)
    if shares == THEORY.bands:
        assert found == average_precision_interval(np.array(above), negatives, nats=nats)


def test_where_the_share_of_positives_may_be_nothing_the_lower_end_is():
    low, high = average_precision_interval(np.array([0]), 9, nats=50_000.0)
    assert (low, high) == (0.0, 1.0)


def test_perfect_scores_have_an_upper_end_of_one_and_none_is_beyond():
    ends = [average_precision_interval(np.zeros(n, dtype=int), n, nats=3.0 + n / 10)[1] for n in range(1, 80)]
    assert max(ends) == 1.0
    assert min(ends) >= 1.0 - 1e-15


def test_steps_whose_sum_is_rounded_up_end_at_one():
    """Best scores, and bands whose steps add up to one but for rounding: some sums are above it."""
    rng, none = np.random.default_rng(5), np.zeros(6)
    bands = np.sort(rng.random((1000, 6)) ** 8, axis=1)
    bands[:, -1] = 1.0
    ends = [_upper(np.zeros(5, dtype=int), 0.5, band, none) for band in bands]
    assert max(ends) == 1.0
    assert min(ends) >= 1.0 - 1e-14
