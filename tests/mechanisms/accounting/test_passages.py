"""The tail of target charging: values that it gave when it was checked, how it is searched, and its extremes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import passages
from reusable_holdout.mechanisms.accounting.passages import passage_delta, passage_epsilon

# One call's epsilon, the epsilon of all, charges, mean; delta there and epsilon at 1e-5: of a version that agreed with
# the best adversary's dynamic program and with ballot numbers.
VALUES = [
    (0.02, 0.0, 7, 0.02, 0.15069878371057807, 1.9061485960849347),
    (0.02, 0.7, 7, 0.3, 1.0581808277502409e-07, 0.48976407831233176),
    (0.02, 3.0, 200, 0.5, 2.0326589626518934e-11, 1.737371055223786),
    (0.3, 0.0, 7, 0.02, 0.9890916904351015, 81.53201511494996),
    (0.3, 0.7, 7, 0.3, 0.4278316020180973, 12.674376712322735),
    (0.3, 0.7, 200, 0.3, 0.9998863260706298, 80.30410592477642),
    (0.3, 3.0, 200, 0.5, 0.991895543521814, 55.822282279770356),
    (2.0, 0.0, 200, 0.02, 1.0, 85637.71293532923),
    (2.0, 0.7, 7, 0.3, 0.9999826200257912, 573.4121945784588),
    (2.0, 3.0, 7, 0.5, 0.9995300719559941, 363.7110544985848),
]


@for_each(("each", "epsilon", "charges", "mean", "delta", "total"), VALUES)
def test_tails_are_what_they_were(
    each: float, epsilon: float, charges: int, mean: float, delta: float, total: float
) -> None:
    told = {"each": each, "charges": charges, "mean": mean}
    assert passage_delta(epsilon=epsilon, **told) == pytest.approx(delta, rel=1e-10)  # type: ignore[arg-type]
    assert passage_epsilon(delta=1e-5, **told) == pytest.approx(total, rel=1e-10)  # type: ignore[arg-type]


def test_a_delta_is_at_most_one() -> None:
    for mean in (0.3, 0.5, 0.9):
        assert passage_delta(each=3.0, epsilon=0.0, charges=1000, mean=mean) == 1.0
        assert passage_delta(each=900.0, epsilon=0.0, charges=1, mean=mean) == 1.0


def test_a_mean_beyond_a_half_saves_nothing() -> None:
    told = {"each": 0.3, "epsilon": 1.3, "charges": 4}
    assert passage_delta(mean=0.8, **told) == passage_delta(mean=0.5, **told)  # type: ignore[arg-type]


@for_each("each", [0.4, 5.0, 699.0, 701.0, 900.0])
@for_each("mean", [0.3, 0.5])
def test_between_steps_delta_is_a_chord(each: float, mean: float) -> None:
    """Over ``exp(epsilon)``; also where that is beyond all numbers."""
    told = {"each": each, "charges": 2, "mean": mean}
    low, high = (passage_delta(epsilon=place * each, **told) for place in (1, 2))  # type: ignore[arg-type]
    for part in (0.1, 0.9, 0.999):
        share = math.exp((part - 1) * each) * math.expm1(-part * each) / math.expm1(-each)
        found = passage_delta(epsilon=(1 + part) * each, **told)  # type: ignore[arg-type]
        assert found == pytest.approx(low + share * (high - low), rel=1e-9)
        delta = low + share * (high - low)
        if delta < low * (1 - 1e-6):
            back = passage_epsilon(delta=delta, **told)  # type: ignore[arg-type]
            assert (1 + part) * each * (1 - 1e-6) <= back
            assert back <= ((1 + part) * each if each < 700 else 2 * each) * (1 + 1e-6)


def test_one_call_of_a_large_epsilon_tells_nearly_everything_up_to_it() -> None:
    """A response of epsilon 800 is not private at 750, however it is charged."""
    assert passage_delta(each=800.0, epsilon=750.0, charges=1, mean=0.5) == pytest.approx(1.0)


def looks(guess: int, wanted: int) -> int:
    asked = set()  # what was asked before is kept

    def reached(number: int) -> bool:
        asked.add(number)
        return number >= wanted

    assert passages.first_reached(reached, guess) == wanted
    return len(asked)


def test_a_good_guess_saves_looks() -> None:
    assert [
        [looks(guess, wanted) for wanted in (0, 3, 97, 100, 104, 1000)] for guess in (0, 5, 100, 1600)
    ] == [
        [1, 4, 14, 14, 14, 20],
        [4, 4, 14, 14, 14, 20],
        [8, 9, 5, 5, 4, 19],
        [11, 11, 12, 12, 14, 13],
    ]
    small = [looks(guess, wanted) for guess, wanted in itertools.product(range(40), repeat=2)]
    assert (max(small), sum(small)) == (12, 11_888)


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
def test_blocks_of_moves_hold_nearly_all_of_their_law(
    charges: int, charged: float, middle: float, blocks: tuple[int, int, int, int]
) -> None:
    """From five deviations below the mean: first and last move, how many blocks, and the width of the first."""
    moves, chances, beyond = passages._moves(charges, charged, middle)
    assert (moves[0], moves[-1], len(moves), moves[1] - moves[0]) == blocks
    assert beyond <= 1e-4 * middle
    law = stats.nbinom(charges, charged)
    assert np.cumsum(chances) == pytest.approx(law.cdf(moves - charges), rel=1e-6)
    assert beyond == pytest.approx(law.sf(moves[-1] - charges), rel=1e-6, abs=1e-305)


def test_a_mean_of_a_half_needs_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    passages._at.cache_clear()
    monkeypatch.setattr(passages, "_moves", None)
    assert 0 < passage_delta(each=0.3, epsilon=1.0, charges=3, mean=0.5) < 1


@for_each(("last", "sums"), [(11.2, 2), (11.58, 1)])  # so many e-folds; 64 levels are summed at a time
def test_levels_are_summed_up_to_a_hundred_thousandth(
    monkeypatch: pytest.MonkeyPatch, last: float, sums: int
) -> None:
    taken, whole = [], passages._reaches

    def counted(*given: object) -> object:
        taken.append(given)
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(passages, "_reaches", counted)
    passages._waiting(0, last / 64, np.array([10**6]))
    assert len(taken) == sums


def test_what_cannot_be_reached_costs_hardly_anything() -> None:
    assert passage_delta(each=0.1, epsilon=1e4, charges=3, mean=0.5) == 0.0
    assert passage_delta(each=1e-300, epsilon=1e300, charges=3, mean=0.3) < 1e-300
    assert passage_delta(each=5e-324, epsilon=1.7e308, charges=1, mean=0.5) < 1e-300


@for_each("each", [50.0, 1e5])
def test_calls_that_tell_everything_have_no_epsilon(each: float) -> None:
    for mean in (0.3, 0.5):
        with pytest.raises(InputError, match="an epsilon beyond"):
            passage_epsilon(each=each, delta=0.5, charges=1, mean=mean)
