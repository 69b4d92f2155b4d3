"""Bands of an average precision: true everywhere at once, and the interval that follows from them."""

import math

import numpy as np
import pytest
from long_tests import VALIDITY

from reusable_holdout.certainty import average_precision_interval
from reusable_holdout.certainty.precision_bands import _band


def crossing(rows, most):
    """Chance that some k-th smallest of so many uniform draws lies above ``most[k - 1]``; exact, by Steck's recursion.

    No crossing: before most[k - 1] there are at least k draws, for each k.
    """
    # states: draws so far; walk the distinct limits in order
    law, before = {0: 1.0}, 0.0
    for k, limit in enumerate(most, start=1):
        share, after = (limit - before) / (1.0 - before) if before < 1.0 else 0.0, {}
        for draws, chance in law.items():
            left = rows - draws
            for new in range(left + 1):
                if draws + new >= k:
                    weight = math.comb(left, new) * share**new * (1.0 - share) ** (left - new)
                    after[draws + new] = after.get(draws + new, 0.0) + chance * weight
        law, before = after, max(before, limit)
    return 1.0 - sum(law.values())


@pytest.mark.parametrize("rows", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("nats", [0.5, 2.0, 6.0])
def test_a_band_is_crossed_no_more_often_than_its_level(rows, nats):
    """A share of scores at least as high as the k-th highest is the k-th smallest of uniform draws, if none tie."""
    band = _band(rows, nats)
    # upper side, just above the k-th highest score: k - 1 rows are counted
    assert crossing(rows, band.most[:-1]) <= math.exp(-nats) * (1 + 1e-9)
    # lower side, at the k-th highest: k rows; mirrored, the k-th largest of as many draws
    assert crossing(rows, 1.0 - band.least[:0:-1]) <= math.exp(-nats) * (1 + 1e-9)


def drawn(rng, rows, share, distance, ties):
    labels = rng.random(rows) < share
    scores = rng.normal(size=rows) + distance * labels
    if ties:
        scores = np.round(scores)
    positive, negative = np.sort(scores[labels])[::-1], np.sort(scores[~labels])
    return len(negative) - np.searchsorted(negative, positive, side="left"), len(negative)


def population(share, distance, ties):
    above, _ = drawn(np.random.default_rng(0), 2_000_000, share, distance, ties)
    ranks = np.searchsorted(np.unique(above), above)  # positives that tie count together
    last = (
        np.append(np.flatnonzero(np.diff(ranks)), len(above) - 1)[ranks] + 1
        if ties
        else np.arange(len(above)) + 1
    )
    return float((last / (last + above)).mean())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("share", "distance"), [(0.1, 1.0), (0.5, 0.3), (0.3, 2.5)])
def test_the_interval_misses_less_often_than_its_level(share, distance, ties):
    truth, rng, nats, runs = population(share, distance, ties), np.random.default_rng(1), 0.5, 400
    missed = 0
    for _ in range(runs):
        low, high = average_precision_interval(*drawn(rng, 150, share, distance, ties), nats=nats)
        assert 0.0 <= low <= high <= 1.0
        missed += not low <= truth <= high
    allowed = min(2.0 * math.exp(-nats), 1.0)
    assert missed <= allowed * runs
    assert missed <= 0.05 * runs  # three events and a union over ranks: far from what is allowed


@pytest.mark.long(*VALIDITY)
@pytest.mark.parametrize("positives", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_few_positives_say_little_however_many_nats_are_asked_for(positives, place):
    """The least share of positives is next to nothing then, and its odds are as large as a float can tell apart."""
    negatives = 2_000
    above = np.full(positives, {"first": 0, "middle": negatives // 2, "last": negatives}[place])
    value = float((np.arange(1, positives + 1) / (np.arange(1, positives + 1) + above)).mean())
    ends = [average_precision_interval(above, negatives, nats=nats) for nats in np.linspace(0.7, 90.0, 120)]
    lows, highs = np.array(ends).T
    assert (lows <= value).all()
    assert (np.diff(lows) <= 1e-12).all()
    assert (highs >= value - 1e-12).all()
    assert (np.diff(highs) >= -1e-12).all()
