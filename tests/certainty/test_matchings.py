"""Evidence about an area under the ROC curve, averaged over matchings, against all rankings of a few rows."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import EvidenceSet, Matchings, matched

SCORES = np.arange(3.0)
RNG = np.random.default_rng(5)
LAWS = [(RNG.dirichlet([1, 1, 1]), RNG.dirichlet([1, 1, 1])) for _ in range(12)]
LAWS += [(np.eye(3)[2], np.eye(3)[0]), (np.eye(3)[1], np.eye(3)[1]), (np.array([0.5, 0, 0.5]), np.eye(3)[1])]
COUNTS = [(2, 5), (5, 2), (3, 3), (1, 4), (2, 4)]
ALL = 100


def area_of(positive, negative):
    """Share of pairs in order, ties a half."""
    return float((np.sign(np.subtract.outer(positive, negative)) + 1).mean() / 2)


def area(law, other):
    return float(law @ ((np.sign(np.subtract.outer(SCORES, SCORES)) + 1) / 2) @ other)


def every(counts):
    """All scores of so many rows of both classes."""
    return [(np.array(one[: counts[0]]), np.array(one[counts[0] :])) for one in _products(sum(counts))]


def _products(rows):
    return itertools.product(SCORES, repeat=rows)


def chances(law, other, rows):
    return np.array(
        [
            np.prod(law[positive.astype(int)]) * np.prod(other[negative.astype(int)])
            for positive, negative in rows
        ]
    )


@for_each("matchings", [1, 2, ALL])
@for_each("counts", COUNTS)
def test_a_bet_against_the_area_gains_nothing_on_average(counts, matchings):
    """Not a little less: no matching counts a row twice, or leaves one out."""
    bets, rows = np.array([0.1, 0.5, 0.95]), every(counts)
    made = [matched(*one, matchings) for one in rows]
    for law, other in LAWS:
        truth, chance = area(law, other), chances(law, other, rows)
        for value, side in ((truth, "wins"), (1.0 - truth, "mirrored")):
            if value <= 0.0:
                continue
            one_sided = made if side == "wins" else [one.mirrored for one in made]
            gained = np.array([np.exp(one.log_gains(value, bets)) for one in one_sided])
            assert chance @ gained == pytest.approx(1.0, abs=1e-9)


@for_each("counts", COUNTS)
def test_each_end_misses_no_more_often_than_its_level(counts):
    level, rows = 0.2, every(counts)
    left = EvidenceSet(-math.log(level), min(counts), 0.7, 0.4)
    ends = np.empty((len(rows), 2))
    for place, one in enumerate(rows):
        won = matched(*one, ALL)
        ends[place] = left.lowest(0.7, won.log_gains), 1.0 - left.lowest(0.3, won.mirrored.log_gains)
    for law, other in LAWS:
        truth, chance = area(law, other), chances(law, other, rows)
        assert chance[ends[:, 0] > truth + 1e-9].sum() <= level
        assert chance[ends[:, 1] < truth - 1e-9].sum() <= level


def test_a_row_that_is_met_twice_would_gain_from_luck():
    """All pairs taken for independent."""
    rows = every((2, 3))
    law, other = np.array([0.5, 0.0, 0.5]), np.eye(3)[1]
    wins = [(np.sign(np.subtract.outer(*one)) + 1).ravel() / 2 for one in rows]
    gained = [np.exp(Matchings(one[None], None).log_gains(0.5, np.array([0.5]))) for one in wins]
    assert (chances(law, other, rows) @ np.array(gained))[0] > 1.2


@for_each("counts", [(400, 700), (700, 400), (40, 900), (500, 500), (3, 100)])
def test_however_the_wins_are_kept_they_are_those_of_all_matchings(counts):
    positive, negative = (np.round(RNG.normal(size=count), 1) for count in counts)
    made, bets = matched(positive, negative, 7), np.array([0.05, 0.5])
    few, many = min(counts), max(counts)
    own, others = (positive, negative) if counts[0] <= counts[1] else (negative, positive)
    expected = []
    for turn in range(7):
        turned = np.roll(others, -(turn * many // 7))
        cut = np.split(turned, np.arange(1, few) * many // few)
        wins = np.array([area_of(np.array([one]), met) for one, met in zip(own, cut, strict=True)])
        wins = wins if own is positive else 1.0 - wins
        expected.append(np.log1p(np.outer(bets, wins / 0.45 - 1.0)).sum(axis=1))
    logs = np.array(expected)
    assert made.log_gains(0.45, bets) == pytest.approx(np.log(np.exp(logs).mean(axis=0)), abs=1e-8)


def test_it_is_hardly_wider_than_a_normal_interval():
    rng, nats, values, wide = np.random.default_rng(1), 4.08, [], []
    for run in range(200):
        labels = rng.random(2_000) < 0.22
        scores = rng.normal(size=2_000) + 1.5 * labels
        values.append(area_of(scores[labels], scores[~labels]))
        if run < 10:
            won, left = matched(scores[labels], scores[~labels], ALL), EvidenceSet(nats, 440, 0.86, 0.22)
            wide.append(1.0 - left.lowest(0.14, won.mirrored.log_gains) - left.lowest(0.86, won.log_gains))
    assert np.mean(wide) / 2 < 1.6 * 2.12 * np.std(values)
