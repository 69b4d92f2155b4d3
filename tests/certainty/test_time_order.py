"""Rows in time order: every adversary whose next row depends on all rows before it, by exact dynamic programming.

A node is one question in one state. Its outcomes, and their intervals, are functions of the rows. The adversary chooses
the law of each row when she has seen the rows before it, and wins if the interval that is told misses the mean of the
conditional expectations.
"""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from cases import for_each

from reusable_holdout import Plan
from reusable_holdout.certainty import IN_TIME_ORDER, THEORY, ConfidenceBound, Evidence, EvidenceSet
from reusable_holdout.metrics import GRID
from reusable_holdout.rules.samples import MeanSample
from reusable_holdout.ways import State
from reusable_holdout.ways.check import Asked
from reusable_holdout.ways.table import Ways

STEPS = 8  # a law's probabilities are multiples of 1 over it


def worst(intervals, rows, laws, values):
    """Largest probability that an interval misses, over all adversaries.

    `intervals` maps counts of each value but the first to ends. `laws` are tuples of multiples of 1/STEPS.
    """
    means = [round(sum(2 * part * value for part, value in zip(law, values, strict=True))) for law in laws]
    totals = np.arange(2 * STEPS * rows + 1) / (2.0 * STEPS * rows)
    after = {
        counts: ((totals < low - 1e-9) | (totals > high + 1e-9)).astype(float)
        for counts, (low, high) in intervals.items()
    }
    for row in range(rows - 1, -1, -1):
        now = {}
        for counts in (one for one in after if sum(one) <= row):
            best = np.zeros(len(totals))
            for law, mean in zip(laws, means, strict=True):
                found = law[0] / STEPS * after[counts]
                for place, part in enumerate(law[1:]):
                    more = tuple(count + (place == at) for at, count in enumerate(counts))
                    found = found + part / STEPS * after[more]
                best = np.maximum(best, np.append(found[mean:], np.zeros(mean)))
            now[counts] = best
        after = now
    return max(float(one[0]) for one in after.values())


def all_laws(values):
    every = itertools.product(range(STEPS + 1), repeat=len(values))
    return [law for law in every if sum(law) == STEPS]


def all_counts(rows, values):
    every = itertools.product(range(rows + 1), repeat=len(values) - 1)
    return [counts for counts in every if sum(counts) <= rows]


def ways_of(rows, *, graded=False, confidence=0.5, estimate=0.5, **more):
    facts = {"family": "mean", "spread": 0.3} if graded else {}
    order = more.pop("order", "time")
    numbers = {"queries": 2, "charges": 1, "noise": 0.0, "confidence": confidence, "estimate": estimate}
    return Ways(Plan(rows, order=order, **(numbers | facts | more)))


def told(way, rows, prior, counts, values):
    """The interval that a way tells of so many rows of each value."""
    found = np.repeat(values, [rows - sum(counts), *counts])
    state, terms = State(), np.rint(found * GRID).astype(np.int64)
    score = int(terms.sum()) // rows
    if way.name in {"reveal", "final"}:
        measured = MeanSample(score, terms, None) if way.by_rows else score
        if way.name == "final":
            chosen, outcome = way.decide(measured, way.length(state))
        else:
            chosen, outcome = way.decide(measured, prior, b"1", state)
    else:
        priors, none = np.array([prior]), np.zeros(1)
        measured = np.array([[score, *terms]] if way.rule.by_rows else [[score]])
        tolerances = way.tolerances(None, none, state)
        weighed = way.rule.weighed(SimpleNamespace(relative_weights=None), measured, priors, tolerances)
        asked = Asked([b"1"], priors, tolerances, weighed, np.array([False]), none)
        chosen, outcome = way.decide_one(asked, state)
    return tuple(map(float, way.interval(outcome.told, chosen, way.length(state))))


def missed(way, rows, prior, values):
    intervals = {counts: told(way, rows, prior, counts, values) for counts in all_counts(rows, values)}
    return worst(intervals, rows, all_laws(values), values)


def level(way):
    return math.exp(float(way.certificate.log_level(way.length(State()), 1.0)))


@for_each("name", ["check", "gate", "reveal", "final"])
@for_each("rows", [6, 14])
@for_each("prior", [0.2, 0.5, 0.95])
def test_rows_of_zeros_and_ones_miss_no_more_often_than_a_node_may(name, rows, prior):
    way = ways_of(rows, estimate=prior).named(name)
    assert missed(way, rows, prior, np.array([0.0, 1.0])) <= level(way)


@for_each(("graded", "name"), [(True, "check"), (True, "gate"), (True, "reveal"), (True, "final")])
@for_each("prior", [0.3, 0.5, 0.8])
def test_graded_rows_miss_no_more_often_than_a_node_may(graded, name, prior):
    way = ways_of(6, graded=graded, estimate=prior).named(name)
    assert missed(way, 6, prior, np.array([0.0, 0.5, 1.0])) <= level(way)


@for_each("name", ["compare", "gate-compare"])
@for_each("prior", [0.5, 0.6])
def test_differences_miss_no_more_often_than_a_node_may(name, prior):
    way = ways_of(6).named(name)
    assert missed(way, 6, prior, np.array([0.0, 0.5, 1.0])) <= level(way)


def of_one_side(family, rows, chance):
    """Largest probability that a lower end lies above the mean, over what a side may miss."""
    values = np.array([0.0, 1.0])
    bound = ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows, odds=IN_TIME_ORDER.odds)
    low = bound.lower(np.arange(rows + 1) / rows, log_level=np.full(rows + 1, math.log(chance)))
    intervals = {(ones,): (float(low[ones]), 1.0) for ones in range(rows + 1)}
    return worst(intervals, rows, all_laws(values), values) / chance


@for_each("chance", [0.1, 0.02])
def test_bounds_for_independent_rows_fail_in_time_order(chance):
    assert of_one_side("odds", 60, chance) <= 1.0
    assert of_one_side("bounded", 60, chance) > 1.3
    assert of_one_side("binomial", 60, chance) > 3.0


def half_width(bound, nats):
    level, at = -nats, bound.estimate
    return float(bound.upper(at, log_level=level) - bound.lower(at, log_level=level)) / 2.0


@for_each(("nats", "final", "check"), [(6.0, 1.28, 1.33), (12.0, 1.16, 1.18), (18.0, 1.11, 1.13)])
@for_each(("rows", "at"), [(200, 0.7), (1_000, 0.85), (5_000, 0.95)])
def test_what_time_order_costs_zeros_and_ones(rows, at, nats, final, check):
    independent = ConfidenceBound("binomial", rows=rows, sum_of_squares=1.0 / rows, estimate=at)
    ordered = replace(independent, family="odds", odds=IN_TIME_ORDER.odds)
    assert half_width(ordered, nats) <= final * half_width(independent, nats)
    more = math.log(THEORY.scores.agreed / IN_TIME_ORDER.scores.agreed)
    assert half_width(ordered, nats + more) <= check * half_width(independent, nats)


@for_each("nats", [6.0, 12.0, 18.0])
@for_each("spread", [0.1, 0.25])
def test_what_time_order_costs_graded_rows(nats, spread):
    """The ends for rows of the guessed spread."""
    lost = math.log(THEORY.by_evidence.agreed / IN_TIME_ORDER.by_evidence.agreed)
    ends = [
        EvidenceSet(nats + more, 2_000, 0.7, spread, theory).likely
        for more, theory in ((0.0, THEORY), (0.0, IN_TIME_ORDER))
    ]
    widths = [high - low for low, high in ends]
    assert widths[1] <= 1.01 * widths[0]
    tests = [Evidence(0.7, 0.1).likely_reach(one, spread, 2_000) for one in (nats, nats + lost)]
    assert (0.1 - tests[1]) <= 1.04 * (0.1 - tests[0])


@for_each("at", [0.0, 0.3, 0.85, 1.0])
@for_each("nats", [1.0, 9.0, 300.0])
def test_the_bound_and_its_inverse_agree(at, nats):
    bound = ConfidenceBound("odds", rows=400, sum_of_squares=1.0 / 400, odds=IN_TIME_ORDER.odds, estimate=0.8)
    values = np.linspace(0.0, 1.0, 41)
    low = bound.lower(values, log_level=np.full(41, -nats))
    assert (np.diff(low) >= 0.0).all()
    assert (low <= values).all()
    assert not np.signbit(bound.lower(np.array([-0.02]), log_level=np.array([-nats]))).any()
    assert low.tolist() == [bound.lower(value, log_level=-nats) for value in values.tolist()]
    reach = bound.reach_low(at, log_level=-nats)
    if at == 0.0:
        assert reach == -math.inf
    elif math.isfinite(reach):
        assert bound.lower(reach, log_level=-nats) >= at
        assert bound.lower(reach - 1e-6, log_level=-nats) < at
    else:
        assert bound.lower(1.0, log_level=-nats) < at
