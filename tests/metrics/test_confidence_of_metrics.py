"""Confidence bounds of metrics that are no plain means, against the exact law of the metric on a few rows."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.metrics import GRID, accuracy, balanced_accuracy, resolve_metric, roc_auc

LEVELS = [0.5, 0.2, 0.05, 0.01, 1e-3]


def bound_of(bound):
    return ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)


def misses(confidence, law, truth, level):
    """Probabilities that the lower bound is above the truth, and that the upper one is below it."""
    log_level = math.log(level)
    above = [chance for value, chance in law if confidence.lower(value, log_level=log_level) > truth]
    below = [chance for value, chance in law if confidence.upper(value, log_level=log_level) < truth]
    return math.fsum(above), math.fsum(below)


def law_of(bound, laws_of_rows):
    """Exact law of a metric whose rows are independent: pairs of value and probability."""
    found = {}
    for rows in itertools.product(*laws_of_rows):
        chance = math.prod(one for _, one in rows)
        if chance:
            value = int(bound.score(bound.prepare([value for value, _ in rows])[None])[0]) / GRID
            found[value] = found.get(value, 0.0) + chance
    assert math.fsum(found.values()) == pytest.approx(1.0)
    return list(found.items())


def scores(*chances):
    """Law of a row's score 0, 1, 2 ..."""
    return [(float(place), chance) for place, chance in enumerate(chances)]


def area(negative, positive):
    """Population value: the probability that a positive is above a negative, and half of that of a tie."""
    return math.fsum(
        chance * other * (1.0 if high > low else 0.5 if high == low else 0.0)
        for low, chance in negative
        for high, other in positive
    )


@for_each(("negatives", "positives"), [(1, 1), (2, 2), (1, 5), (3, 4), (5, 2)])
def test_the_area_under_the_curve_misses_at_most_as_often_as_its_pairs_allow(negatives, positives):
    bound = roc_auc().bind([0] * negatives + [1] * positives)
    confidence = bound_of(bound)
    assert (confidence.family, confidence.rows) == ("bounded", min(negatives, positives))
    for negative, positive in [
        (scores(0.5, 0.5), scores(0.5, 0.5)),
        (scores(0.9, 0.1), scores(0.2, 0.8)),
        (scores(0.0, 1.0), scores(0.3, 0.0, 0.7)),
        (scores(0.98, 0.0, 0.02), scores(0.0, 1.0)),
        (scores(0.4, 0.2, 0.4), scores(0.1, 0.8, 0.1)),
    ]:
        law, truth = law_of(bound, [negative] * negatives + [positive] * positives), area(negative, positive)
        for level in LEVELS:
            assert max(misses(confidence, law, truth, level)) <= level + 1e-12


def test_equal_bets_on_all_rows_would_not_do_for_the_area():
    """Were all rows counted, a level would be exceeded: the rarer class alone gives the information."""
    negative, positive = scores(0.0, 1.0), scores(0.5, 0.0, 0.5)
    bound = roc_auc().bind([0] * 12 + [1])
    wrong = ConfidenceBound("bounded", rows=13, sum_of_squares=1 / 13)
    law = law_of(bound, [negative] * 12 + [positive])
    assert max(misses(wrong, law, area(negative, positive), 0.05)) > 0.05


@for_each("counts", [(1, 1), (1, 6), (3, 4), (2, 2, 3)])
def test_balanced_accuracy_misses_at_most_as_often_as_its_weights_allow(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    bound = balanced_accuracy().bind(labels)
    confidence = bound_of(bound)
    assert (confidence.family, confidence.rows) == ("bounded", len(counts) * min(counts))
    for recalls in itertools.product([0.1, 0.5, 0.9, 1.0], repeat=len(counts)):
        each = [
            [
                (int(label), recalls[label]),
                (int(label) - 1 if label else len(counts) - 1, 1.0 - recalls[label]),
            ]
            for label in labels
        ]
        law, truth = law_of(bound, each), math.fsum(recalls) / len(counts)
        for level in LEVELS:
            assert max(misses(confidence, law, truth, level)) <= level + 1e-12


def test_weighted_means_miss_at_most_as_often_as_their_weights_allow():
    for weights in ([1, 1, 1, 5], [1, 2, 3, 4, 5], [1, 1, 1, 1, 100]):
        bound = accuracy().bind([1] * len(weights), classes=[0, 1], sample_weight=weights)
        confidence = bound_of(bound)
        assert confidence.family == "bounded"
        shares = np.array(weights) / sum(weights)
        for right in itertools.product([0.2, 0.9], repeat=len(weights)):
            law = law_of(bound, [[(1, chance), (0, 1.0 - chance)] for chance in right])
            for level in LEVELS:
                assert max(misses(confidence, law, float(shares @ right), level)) <= level + 1e-12


def test_the_narrower_of_two_bounds_is_taken_at_each_value():
    even = ConfidenceBound("bounded", rows=100, sum_of_squares=0.005)
    chernoff = ConfidenceBound("bounded", rows=100, sum_of_squares=0.0099)  # weighted, but hardly
    hoeffding = ConfidenceBound("bounded-difference", rows=100, sum_of_squares=0.005)
    values, level = np.linspace(0.0, 1.0, 201), math.log(0.001)
    lower = np.maximum(chernoff.lower(values, log_level=level), hoeffding.lower(values, log_level=level))
    assert np.array_equal(even.lower(values, log_level=level), lower)
    assert 0 < np.sum(lower == hoeffding.lower(values, log_level=level)) < len(values)
    reach = np.minimum(
        chernoff.reach_low(values, log_level=level), hoeffding.reach_low(values, log_level=level)
    )
    assert np.array_equal(even.reach_low(values, log_level=level), reach)
    assert even.lower(0.7, log_level=level) == pytest.approx(lower[140], abs=1e-12)
    assert even.reach_low(0.7, log_level=level) == pytest.approx(reach[140], abs=1e-12)


def test_at_unequal_classes_they_are_as_much_narrower_as_the_theory_says():
    """n = 5,000, 22% positive, value .9: 1.9 and 1.4 times narrower, and a little less at a small level."""
    labels = np.arange(5_000) % 50 < 11
    for name, narrower in (("roc_auc", 1.85), ("balanced_accuracy", 1.3)):
        bound = resolve_metric(name).bind(labels)
        level = math.log(1e-6)
        before = ConfidenceBound("bounded-difference", rows=5_000, sum_of_squares=bound.sum_of_squares)
        ours, theirs = (
            one.upper(0.9, log_level=level) - one.lower(0.9, log_level=level)
            for one in (bound_of(bound), before)
        )
        assert theirs / ours >= narrower


def test_what_is_no_mean_over_rows_is_said_to_be_none():
    labels = np.arange(100) % 2
    by_rows = {
        name: resolve_metric(name).bind(labels).by_rows for name in ("accuracy", "brier", "roc_auc", "f1")
    }
    assert by_rows == {"accuracy": True, "brier": True, "roc_auc": False, "f1": False}
    for weights in (None, np.arange(100) < 50):
        assert resolve_metric("recall").bind(labels, sample_weight=weights).by_rows
    assert not balanced_accuracy().bind(labels).by_rows
    for weights in (labels, 1 + labels, 1 + np.arange(100)):
        assert accuracy().bind(labels, sample_weight=weights).by_rows
