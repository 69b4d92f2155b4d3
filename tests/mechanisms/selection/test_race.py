"""The race of clocks: bounds as narrow as they can be, exact times, and ties that further digits decide."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from mechanisms.selection.selection_laws import Scripted

from reusable_holdout.mechanisms.samplers.digits import Digits
from reusable_holdout.mechanisms.selection import race
from reusable_holdout.mechanisms.selection.race import first_rings

WORDS = [
    *(1, 2, 3, 2**20, 2**40 + 5, 2**62, 2**63 - 2**52, 2**63 - 1, 2**63, 2**63 + 1, 2**63 + 2**52),
    *(2**64 - 2**40, 2**64 - 2**20, 2**64 - 4, 2**64 - 3, 2**64 - 2),
]


def log_time(word: int) -> mpmath.mpf:
    """Of the number that is so many times 2**-64."""
    return mpmath.log(-mpmath.log(1 - mpmath.mpf(word) / mpmath.mpf(2) ** 64))


def bounds_of(words: list[int], behind: int, rate: float) -> tuple[Any, Any]:
    return race._log_ring_bounds(
        np.array(words, dtype=np.uint64), np.full(len(words), behind, dtype=np.int64), rate
    )


@for_each(("behind", "rate"), [(0, 1.0), (3, 0.25), (2**40, 2.0**-20)])
def test_bounds_hold_a_clock_and_are_narrow(behind: int, rate: float) -> None:
    lows, highs = bounds_of(WORDS, behind, rate)
    with mpmath.workdps(50):
        for word, low, high in zip(WORDS, lows.tolist(), highs.tolist(), strict=True):
            first, last = log_time(word) + behind * rate, log_time(word + 1) + behind * rate
            assert low <= first < last <= high
            near = 4 / word + 4 / (2**64 - 1 - word)
            assert high - low <= 2 * near + 3e-12 * (64 + behind * rate)
            assert high - low > 1.99e-12 * (64 + behind * rate)  # it can hide more than the rounding of logs


def test_bounds_at_the_ends_are_infinite_and_no_warning_is_given() -> None:
    with np.errstate(all="raise"):
        lows, highs = bounds_of([0, 2**64 - 1, 2**63], 5, 1.0)
        far_low, far_high = bounds_of([2**63], 2**61, 1e300)
        near_low, near_high = bounds_of([2**63], 1, 0.99e290)
    assert lows.tolist()[:2] == [-math.inf, -math.inf]
    assert highs.tolist()[:2] == [math.inf, math.inf]
    assert np.isfinite([lows[2], highs[2]]).all()
    assert far_high.tolist() == [math.inf]  # how far is not known
    assert 9e289 < far_low[0] < 2e290
    assert near_low[0] < near_high[0] < 2e290


class Listed:
    """Words one after another; there are no more of them."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, count: int) -> Any:
        assert count == 1
        return np.array([self.words.pop(0)], dtype=np.uint64)


@for_each(
    ("words", "bits"),
    [
        ((1,), 64),
        ((2**63 + 77,), 64),
        ((2**64 - 2,), 64),
        ((0, 9), 128),
        ((2**64 - 1, 9), 128),
        ((0, 0, 9), 192),
        ((2**64 - 1, 2**64 - 1, 3), 192),
        ((2**64 - 1, 0), 128),
    ],
)
def test_a_clock_has_exact_bounds_of_as_many_digits_as_make_them_finite(
    words: tuple[int, ...], bits: int
) -> None:
    source = Listed(*words)
    clock = race._Clock(0, Digits(source), 0)
    low, high = clock.bounds()
    assert clock._digits.bits == bits
    assert source.words == []
    known = sum(word << 64 * place for place, word in enumerate(reversed(words)))
    with mpmath.workdps(300):
        for bound, end, side in ((low, known, -1), (high, known + 1, 1)):
            true = mpmath.log(-mpmath.log(1 - mpmath.mpf(end) / mpmath.mpf(2) ** bits))
            off = mpmath.mpf(bound.numerator) / bound.denominator - true
            assert float(off * mpmath.mpf(10) ** (bits + 20)) == pytest.approx(side, rel=1e-4)
    assert clock.bounds() == (low, high)  # nothing is drawn


class Timed:
    """A clock with given bounds, before and after it is refined."""

    def __init__(self, behind: int, *bounds: tuple[int, int]) -> None:
        self.behind, self._bounds, self.refined = behind, bounds, 0

    def bounds(self) -> tuple[Fraction, Fraction]:
        low, high = self._bounds[self.refined]
        return Fraction(low), Fraction(high)

    def refine(self) -> None:
        self.refined += 1


@for_each(
    ("one", "other", "first", "refined"),
    [
        (Timed(0, (1, 2)), Timed(0, (3, 4)), -1, 0),
        (Timed(0, (3, 4)), Timed(0, (1, 2)), 1, 0),
        (Timed(0, (1, 3), (1, 2)), Timed(0, (3, 4), (3, 4)), -1, 1),  # they touch
        (Timed(0, (3, 4), (3, 4)), Timed(0, (1, 3), (1, 2)), 1, 1),
        (Timed(5, (1, 2)), Timed(0, (3, 4)), 1, 0),  # ten later
        (Timed(0, (3, 4)), Timed(5, (1, 2)), -1, 0),
        (Timed(1, (1, 2), (1, 2)), Timed(0, (0, 3), (4, 5)), 0, 1),
    ],
)
def test_the_earlier_clock_is_told_as_soon_as_their_bounds_part(
    one: Timed, other: Timed, first: int, refined: int
) -> None:
    if not first:
        one, other, first = Timed(1, (1, 2), (1, 2)), Timed(0, (0, 3), (5, 6)), -1  # 3 to 4, and 5 to 6
    assert race._compare(one, other, rate=Fraction(2)) == first  # type: ignore[arg-type]
    assert (one.refined, other.refined) == (refined, refined)


@for_each("count", [1, 2, 3, 4])
def test_clocks_far_apart_ring_in_the_order_of_their_times(count: int) -> None:
    words = [2**62, 2**20, 2**63, 2**40]  # times 0.3, 1e-13, 0.7 and 6e-8
    for behind, order in [
        ([0] * 4, [1, 3, 0, 2]),
        ([0, 90, 0, 0], [3, 0, 2, 1]),
        ([40, 0, 0, 0], [1, 3, 2, 0]),
    ]:
        script = Scripted(words=words)
        rings = first_rings(np.array(behind), Fraction(1, 2), count, script)  # type: ignore[arg-type]
        assert rings.tolist() == order[:count]
        assert rings.dtype == np.int64
        assert script.words == []


def test_a_tie_at_the_end_of_those_that_are_wanted_is_decided() -> None:
    """The second and the third cannot be told apart by 64 digits: one of them is wanted, and further words decide."""
    for further, order in [([10, 20], [0, 1]), ([20, 10], [0, 2])]:
        script = Scripted(words=[2**20, 2**62, 2**62, 2**63, *reversed(further)])
        rings = first_rings(np.zeros(4, dtype=np.int64), Fraction(1), 2, script)  # type: ignore[arg-type]
        assert rings.tolist() == order
