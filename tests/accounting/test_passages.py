"""The tail of target charging: values that it gave when it was checked, how it is searched, and its extremes."""

from __future__ import annotations

import itertools
import math

import pytest
from cases import for_each

from reusable_holdout.accounting import passages
from reusable_holdout.accounting.passages import passage_delta, passage_epsilon

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
    asked = []

    def reached(number: int) -> bool:
        asked.append(number)
        return number >= wanted

    assert passages._first(reached, guess) == wanted
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
