"""Exact intervals of scores that are made of counts, against all tables of a few rows."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import EvidenceSet, matthews_interval, ratio_interval
from reusable_holdout.certainty.exact_ratios import matthews
from reusable_holdout.metrics import resolve_metric
from reusable_holdout.metrics.samples import Counted, Ratio
from reusable_holdout.rules.samples import CountedSample

ROWS = 6
TABLES = np.array([cells for cells in itertools.product(range(ROWS + 1), repeat=4) if sum(cells) == ROWS])
WAYS = np.array(
    [math.factorial(ROWS) // math.prod(math.factorial(int(one)) for one in cells) for cells in TABLES]
)
STEPS = np.linspace(0.0, 1.0, 6)
LAWS = [law for law in itertools.product(STEPS, repeat=4) if abs(sum(law) - 1.0) < 1e-9]
LEVELS = [0.4, 0.1]
SLACK = 1e-9


def f_score(hits, false, missed):
    return hits / (hits + (false + missed) / 2)


def misses(ends, truth_of):
    """Largest probability, over the laws of a row, that the lower and the upper end miss."""
    worst = np.zeros(2)
    for law in LAWS:
        truth = truth_of(law)
        chances = WAYS * np.prod(np.power(law, TABLES), axis=1)
        over = [ends[:, 0] > truth + SLACK, ends[:, 1] < truth - SLACK]
        worst = np.maximum(worst, [chances[one].sum() for one in over])
    return worst


def class_ratio(hits, false, missed):
    return Ratio(np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.5, 0.5]), np.array([hits, false, missed], float))


@for_each("level", LEVELS)
def test_an_f1_misses_no_more_often_than_its_level_whatever_the_law(level):
    found = np.array(
        [ratio_interval(*class_ratio(*cells[:3])[:3], nats=-math.log(level)) for cells in TABLES]
    )
    worst = misses(found, lambda law: f_score(*law[:3]) if sum(law[:3]) else 0.5)
    assert worst.max() <= level
    assert worst.min() > level / 4


def test_an_f1_that_is_taken_for_a_share_of_its_rows_misses_more_often():
    level = 0.1
    found = []
    for cells in TABLES:
        hits, others = 2 * cells[0], cells[1] + cells[2]  # as if each hit were two rows of weight 1/2
        ones = np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([hits, others], float)
        found.append(ratio_interval(*ones, nats=-math.log(level)))
    worst = misses(np.array(found), lambda law: f_score(*law[:3]) if sum(law[:3]) else 0.5)
    assert worst.max() > 1.5 * level


@for_each("average", ["macro", "weighted"])
def test_an_average_of_f1s_misses_no_more_often_than_its_level_whatever_the_law(average):
    """Also where a class has no rows: nothing is known of it, or it has no weight."""
    level = 0.2
    found, truths = [], []
    for hits, false, missed, rejected in TABLES:
        own = (hits + missed) / ROWS if average == "weighted" else 0.5
        ratios = class_ratio(hits, false, missed), class_ratio(rejected, missed, false)
        none = Ratio(*ratios[0][:2], np.zeros(3))
        kept = tuple(
            one if rows else none for one, rows in zip(ratios, (hits + missed, false + rejected), strict=True)
        )
        sample = CountedSample(*Counted(0, kept, (own, 1.0 - own)))
        found.append(sample.ends(EvidenceSet(-math.log(level), ROWS)))
        truths.append(own)
    ends, shares = np.array(found), np.array(truths)

    def truth_of(law):
        own = f_score(*law[:3]) if sum(law[:3]) else 0.5
        other = f_score(law[3], law[2], law[1]) if sum(law[1:]) else 0.5
        return shares * own + (1.0 - shares) * other  # of "weighted" given the class counts

    assert misses(ends, truth_of).max() <= level


@for_each("counts", [(3, 5), (6, 2), (1, 4)])
def test_matthewss_correlation_misses_no_more_often_than_its_level_given_the_class_counts(counts):
    positives, negatives = counts
    level, share = 0.2, positives / sum(counts)
    tables = np.array(list(itertools.product(range(positives + 1), range(negatives + 1))))
    ends = np.array([matthews_interval(h, positives, r, negatives, nats=-math.log(level)) for h, r in tables])
    ways = np.array([math.comb(positives, h) * math.comb(negatives, r) for h, r in tables])
    worst = np.zeros(2)
    for recall, other in itertools.product(np.linspace(0, 1, 31), repeat=2):
        rates = np.array([recall, other])
        chances = ways * np.prod(
            np.power(rates, tables) * np.power(1.0 - rates, np.array(counts) - tables), axis=1
        )
        truth = matthews(recall, other, share)
        missed = [ends[:, 0] > truth + SLACK, ends[:, 1] < truth - SLACK]
        worst = np.maximum(worst, [chances[one].sum() for one in missed])
    assert worst.max() <= level
    assert worst.max() > level / 8


@for_each("share", [0.02, 0.3, 0.5, 0.9])
def test_the_correlation_rises_in_recall_and_in_specificity(share):
    rates = np.linspace(0.0, 1.0, 41)
    table = np.array([[matthews(recall, other, share) for other in rates] for recall in rates])
    assert np.diff(table, axis=0).min() >= -1e-12
    assert np.diff(table, axis=1).min() >= -1e-12


def test_the_correlation_of_counts_is_the_metrics_own():
    y, predicted = [0, 0, 0, 1, 1], [0, 1, 0, 1, 0]
    value = resolve_metric("matthews_corrcoef").measure(y, predicted)
    assert matthews(1 / 2, 2 / 3, 2 / 5) == pytest.approx(value, abs=1e-12)


def test_without_rows_nothing_is_known():
    assert ratio_interval(*class_ratio(0, 0, 0)[:3], nats=3.0) == (0.0, 1.0)


@for_each(
    ("values", "weights"),
    [
        ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0]),  # two kinds of hits, as of two classes whose recalls differ
        ([1.0, 0.0, 0.0], [1.0, 0.2, 0.8]),  # an F-beta
        ([1.0, 0.0, 0.5], [1.0, 0.5, 0.5]),
    ],
)
def test_other_ratios_have_no_exact_interval(values, weights):
    assert ratio_interval(np.array(values), np.array(weights), np.ones(3), nats=3.0) is None
