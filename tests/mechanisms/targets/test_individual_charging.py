"""Individual charging: the delta of a whole interaction, the records that pay for a count, and refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from scipy import special

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import IndividualCharging
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed


class NoNoise:
    """Noise that is 0, so that the records that are counted can be seen."""

    def draw(self, *_, **__):
        return 0


def noiseless(records, charges):
    counts = IndividualCharging(records, charges=charges, epsilon=1.0, delta=1e-6)
    counts._noise = NoNoise()
    return counts


def delta_of_record(counts, distance, *, charges, queries, epsilon, joins):
    """Return delta, at an epsilon, of `queries` counts that a record is part of until its last charge.

    On integers a published count is likelier by exactly ``exp(e)`` either with the record or without it. So the
    transcripts are enumerated by how many counts of either kind they hold, and by when the last came.
    """
    law, each = counts._law, counts.epsilon_each
    far = distance + min(4000, round(500 / each))  # beyond it is one outcome, whose chance is still a number
    sides = [  # without the record, whose count is 0, and with it
        np.exp([*(law.log_pmf(v - own) for v in range(distance, far)), law.log_tail(far - own)])
        for own in (0, 1)
    ]
    up = sides[1] > sides[0]
    assert np.abs(np.abs(np.log(sides[1] / sides[0])) - each) == pytest.approx(0.0, abs=1e-9)
    rises, falls, silent = (
        [float(np.log(max(value, 1e-300))) for value in values]
        for values in (
            [p[up].sum() for p in sides],
            [p[~up].sum() for p in sides],
            [1 - p.sum() for p in sides],
        )
    )
    total = 0.0
    for published in range(charges + 1):
        steps = np.arange(charges, queries + 1) if published == charges else np.array([queries])
        last = published < charges  # then the last count may be any
        places = special.gammaln(steps + last) - special.gammaln(steps - published + 1)
        places -= special.gammaln(published + last)
        for rising in range(published + 1):
            here, there = (
                math.log(math.comb(published, rising))
                + places
                + rising * rises[side]
                + (published - rising) * falls[side]
                + (steps - published) * silent[side]
                for side in ((1, 0) if joins else (0, 1))
            )
            total += float(np.maximum(0.0, np.exp(here) - np.exp(there + epsilon)).sum())
    return total


@pytest.mark.long(*MECHANISMS)
@for_each("charges", [1, 4, 12])
@for_each(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-6), (0.5, 0.05)])
def test_adding_or_removing_a_record_keeps_the_delta(epsilon, delta, charges):
    counts = IndividualCharging(1, charges=charges, epsilon=epsilon, delta=delta)
    distances = np.round(np.linspace(-2, 10, 13) / counts.epsilon_each).astype(int).tolist()

    def worst(leaves_at, queries):
        how = {"charges": leaves_at, "queries": queries, "epsilon": epsilon}
        ways = itertools.product(distances, (True, False))
        return max(delta_of_record(counts, distance, joins=joins, **how) for distance, joins in ways)

    for queries in (charges, 20 * charges, 400 * charges):
        assert worst(charges, queries) <= delta
    # The same audit rejects an interaction in which the record would leave after four times the charges.
    assert worst(4 * charges, 400 * charges) > delta


def test_a_record_pays_for_the_published_counts_it_is_part_of_and_then_leaves():
    counts = noiseless(4, charges=2)
    everyone, first_two = [True] * 4, [True, True, False, False]
    assert counts.ask(first_two, 2) == 2
    assert counts.ask(first_two, 3) is None  # not published: nobody pays
    assert counts.ask(everyone, 4) == 4
    assert counts.ask(everyone, 0) == 2  # the first two have paid twice and left
    assert counts.ask(first_two, -1) == 0
    assert counts.ask(everyone, 0) == 0
    assert counts.ask(everyone, 1) is None


def test_a_count_equal_to_its_threshold_is_published():
    counts = noiseless(3, charges=9)
    assert counts.ask([True] * 3, 3.0) == 3
    assert counts.ask([True] * 3, math.nextafter(3.0, 4.0)) is None


def test_an_array_and_a_list_are_the_same_predicate_and_a_seed_repeats_the_answers():
    truth = np.arange(100) < 40

    def answers(seed, predicate):
        counts = IndividualCharging(100, charges=10, epsilon=1.0, delta=1e-6, seed=seed)
        return [counts.ask(predicate, -1e9) for _ in range(10)]

    assert answers(1, truth) == answers(1, truth.tolist())
    assert answers(1, truth) != answers(2, truth)
    assert answers(None, truth) != answers(None, truth)


def test_a_count_has_the_noise_of_its_number():
    counts = IndividualCharging(7, charges=99, epsilon=1.0, delta=1e-3, seed=4)
    assert counts._law == DiscreteLaplace(1 / Fraction(counts.epsilon_each))
    for number in range(4):
        drawn = KeyedNoise(key_from_seed(4)).draw(
            counts._law, label="count", question=number.to_bytes(8, "big")
        )
        assert counts.ask([True] * 3 + [False] * 4, -1e9) == 3 + drawn


BAD = [[True], [True] * 4, [[True] * 3], [1, 0, 1], [0.5, 0.0, 1.0], True, [None, True, False], "yes"]


@for_each("predicate", [*BAD, [[True], [True, False]]])
def test_anything_but_one_boolean_per_record_is_refused_without_telling_their_number(predicate):
    counts = IndividualCharging(3, charges=1, epsilon=1.0, delta=1e-6)
    caught = refuses(InputError, "", counts.ask, predicate, 0.0)
    words = "a predicate has one boolean for each record; got something else; nothing was charged"
    assert str(caught) == words
