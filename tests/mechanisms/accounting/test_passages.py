"""The tail of target charging: recorded values, how it is searched, and its extremes."""

import math

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import passages
from reusable_holdout.mechanisms.accounting.passages import passage_delta, passage_epsilon

# One call's epsilon, the epsilon of all, charges, mean; delta there and epsilon at 1e-5: recorded from a version that
# agreed with the best adversary's dynamic program and with ballot numbers.
VALUES = [
    (0.02, 0.0, 7, 0.02, 0.15069878371057807, 1.9061485960849347),
    (0.02, 0.7, 7, 0.3, 1.0581808277502409e-07, 0.48976407831233176),
    (0.02, 3.0, 200, 0.5, 2.0326589626518934e-11, 1.737371055223786),
    (0.3, 0.7, 200, 0.3, 0.9998863260706298, 80.30410592477642),
    (2.0, 0.0, 200, 0.02, 1.0, 85637.71293532923),
    (2.0, 3.0, 7, 0.5, 0.9995300719559941, 363.7110544985848),
]


@for_each(("each", "epsilon", "charges", "mean", "delta", "total"), VALUES)
def test_tails_are_the_recorded_ones(each, epsilon, charges, mean, delta, total):
    told = {"each": each, "charges": charges, "mean": mean}
    assert passage_delta(epsilon=epsilon, **told) == pytest.approx(delta, rel=1e-10)
    assert passage_epsilon(delta=1e-5, **told) == pytest.approx(total, rel=1e-10)


def test_a_delta_is_at_most_one_and_a_mean_beyond_a_half_saves_nothing():
    for mean in (0.3, 0.5, 0.9):
        assert passage_delta(each=3.0, epsilon=0.0, charges=1000, mean=mean) == 1.0
        assert passage_delta(each=900.0, epsilon=0.0, charges=1, mean=mean) == 1.0
    # A response of epsilon 800 is not private at 750, however it is charged.
    assert passage_delta(each=800.0, epsilon=750.0, charges=1, mean=0.5) == pytest.approx(1.0)
    told = {"each": 0.3, "epsilon": 1.3, "charges": 4}
    assert passage_delta(mean=0.8, **told) == passage_delta(mean=0.5, **told)


@for_each("each", [0.4, 5.0, 699.0, 701.0, 900.0])
@for_each("mean", [0.3, 0.5])
def test_between_steps_delta_is_a_chord(each, mean):
    """It is a chord over ``exp(epsilon)``, also where that is beyond all numbers."""
    told = {"each": each, "charges": 2, "mean": mean}
    low, high = (passage_delta(epsilon=place * each, **told) for place in (1, 2))
    for part in (0.1, 0.9, 0.999):
        share = math.exp((part - 1) * each) * math.expm1(-part * each) / math.expm1(-each)
        delta = low + share * (high - low)
        assert passage_delta(epsilon=(1 + part) * each, **told) == pytest.approx(delta, rel=1e-9)
        if delta < low * (1 - 1e-6):
            back = passage_epsilon(delta=delta, **told)
            assert (1 + part) * each * (1 - 1e-6) <= back
            assert back <= ((1 + part) * each if each < 700 else 2 * each) * (1 + 1e-6)


@for_each("guess", [0, 1, 5, 100, 1600, 2**20])
@for_each("wanted", [0, 1, 2, 3, 97, 100, 104, 1000, 2**20 - 1, 2**50])
def test_the_first_number_that_has_reached_is_found_from_any_guess_and_soon_from_a_good_one(guess, wanted):
    asked = set()  # a number that was asked before is kept

    def reached(number):
        asked.add(number)
        return number >= wanted

    assert passages.first_reached(reached, guess) == wanted
    if max(guess, wanted) <= 1600:
        assert len(asked) <= (5 if abs(guess - wanted) <= 4 else 20)


def test_an_epsilon_beyond_all_steps_is_refused():
    refuses(InputError, "epsilon must be at most", passages.first_reached, lambda number: number > 2**50, 1)
    for each, mean in ((50.0, 0.3), (1e5, 0.5)):
        with pytest.raises(InputError, match="epsilon must be at most"):
            passage_epsilon(each=each, delta=0.5, charges=1, mean=mean)


@for_each(
    ("charges", "charged", "middle", "blocks"),
    [
        (200, 0.6, 1e-5, (228, 439, 212, 1)),
        (200, 0.6, 0.9, (228, 399, 58, 3)),
        (100_000, 0.5, 1e-6, (196_827, 203_307, 46, 144)),
        (100_000, 0.5, 1e-300, (196_827, 217_779, 500, 40)),
        (352, 0.6, 1e-40, (450, 949, 500, 1)),
        (7, 0.04, 0.5, (7, 1223, 336, 1)),
        (1, 1e-9, 1e-300, (1, 94_872_329_757_618, 473, 1)),
    ],
)
def test_blocks_of_moves_hold_nearly_all_of_their_law(charges, charged, middle, blocks):
    """A case has the first and the last move, the number of blocks, and the width of the first one."""
    moves, chances, beyond = passages._moves(charges, charged, middle)
    assert (moves[0], moves[-1], len(moves), moves[1] - moves[0]) == blocks
    assert beyond <= 1e-4 * middle
    law = stats.nbinom(charges, charged)
    assert np.cumsum(chances) == pytest.approx(law.cdf(moves - charges), rel=1e-6)
    assert beyond == pytest.approx(law.sf(moves[-1] - charges), rel=1e-6, abs=1e-305)


@for_each(("last", "sums"), [(11.2, 2), (11.58, 1)])  # so many e-folds; 64 levels are summed at a time
def test_levels_are_summed_up_to_a_hundred_thousandth(monkeypatch, last, sums):
    taken, whole = [], passages._reaches

    def counted(*given):
        taken.append(given)
        return whole(*given)

    monkeypatch.setattr(passages, "_reaches", counted)
    passages._waiting(0, last / 64, np.array([10**6]))
    assert len(taken) == sums


def test_an_epsilon_that_cannot_be_reached_leaves_hardly_any_delta():
    assert passage_delta(each=0.1, epsilon=1e4, charges=3, mean=0.5) == 0.0
    assert passage_delta(each=1e-300, epsilon=1e300, charges=3, mean=0.3) < 1e-300
    assert passage_delta(each=5e-324, epsilon=1.7e308, charges=1, mean=0.5) < 1e-300


@for_each(("charges", "calls", "q"), [(50, 117, 0.4), (400_000, 880_000, 0.45), (3, 2000, 0.01)])
def test_the_chance_of_too_few_hits_is_the_binomial_tail_at_any_size(charges, calls, q):
    with mpmath.workdps(40):
        p, rest = mpmath.mpf(q), calls - charges + 1
        log = mpmath.loggamma(calls + 1) - mpmath.loggamma(charges) - mpmath.loggamma(rest + 1)
        term = mpmath.exp(log) * p ** (charges - 1) * (1 - p) ** rest
        exact, hits = term, charges - 1
        while hits and term > exact * mpmath.mpf(10) ** -20:
            term *= mpmath.mpf(hits) / (calls - hits + 1) * (1 - p) / p
            exact, hits = exact + term, hits - 1
    found = passages._fewer(np.array([calls]), charges, q)[0]
    assert float(found) == pytest.approx(float(exact), rel=1e-10)
