"""The adaptive code: its lengths are the stated ones, and every strategy's questions and finals weigh at most one."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from cases import for_each

from reusable_holdout.certainty import AdaptiveCode, Estimator, Priced

CODE = AdaptiveCode(queries=40, final_share=0.25)


@for_each("nats", [0.0, 0.7, 31.5])
@for_each("phi", [0.25, 0.6])
def test_lengths_are_the_stated_ones(nats, phi):
    code = AdaptiveCode(40, phi)
    question = math.log(40) + nats + math.log(1.0 / (1.0 - phi))
    assert code.length(query=3, charges=2, nats=nats) == pytest.approx(question, rel=1e-14)
    final = nats + math.log(1.0 / phi)
    assert code.final_length(charges=2, nats=nats, last_charge=3) == pytest.approx(final, rel=1e-14)
    assert AdaptiveCode(40, 0.0).final_length(charges=2, nats=nats) == math.inf


def test_nothing_was_told_unless_it_is_said():
    assert CODE.length(query=1, charges=0) == CODE.length(query=1, charges=0, nats=0.0)
    assert CODE.final_length(charges=0) == CODE.final_length(charges=0, nats=0.0)


@for_each("queries", [1, 3])
def test_the_questions_and_finals_of_a_strategy_weigh_exactly_one_if_its_outcomes_do(queries):
    code, begun = AdaptiveCode(queries, 0.25), {"stands": 2.0, "charge": 0.5, "failed": 0.25}
    weight = 0.0
    for asked in range(queries + 1):  # questions that were answered before this one, or before the final
        for told in itertools.product(begun, repeat=asked):
            estimator, nats = Estimator(), 0.0
            for outcome in told:
                nats += estimator.at("all", begun).nats(outcome)
                estimator.count("all", outcome)
            if asked < queries:
                weight += math.exp(-code.length(query=asked + 1, charges=0, nats=nats))
            else:
                weight += math.exp(-code.final_length(charges=0, nats=nats))
    assert weight == pytest.approx(1.0, rel=1e-12)


def test_an_outcome_costs_what_its_count_is_of_all_counts():
    priced = Priced({"a": 0.5, "b": 1.5}, Counter({"a": 3, "b": 2, "c": 1}))
    assert priced.nats("a") == pytest.approx(-math.log(Fraction(35, 80)), rel=1e-14)
    assert priced.nats("b") == pytest.approx(-math.log(Fraction(35, 80)), rel=1e-14)
    assert Priced({"a": 1.0}, Counter()).nats("a") == 0.0


def test_contexts_are_counted_apart_and_what_was_priced_stays_as_it_was():
    estimator, begun = Estimator(), {"a": 1.0, "b": 1.0}
    before = estimator.at("here", begun)
    for told in ("a", "a", "b"):
        estimator.count("here", told)
    assert before == Priced(begun, Counter())
    assert estimator.at("here", begun) == Priced(begun, Counter(a=2, b=1))
    assert estimator.at("there", begun) == Priced(begun, Counter())
