"""Exact normal noise: its coins digit by digit, further digits where they decide, and at last a sample."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from scipy import stats

from reusable_holdout.mechanisms import RandomWords
from reusable_holdout.mechanisms.samplers.normal import Normal, nearest_with_noise

if TYPE_CHECKING:
    import numpy.typing as npt


class Script:
    """Coins and words that a test lists."""

    def __init__(self, words: list[int], coins: list[bool]) -> None:
        self.words, self.coins = iter(words), iter(coins)
        self.asked: list[Fraction] = []

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        return np.array([next(self.words) for _ in range(count)], dtype=np.uint64)

    def decay(self, exponent: Fraction) -> bool:
        self.asked.append(exponent)
        return next(self.coins)

    def share(self, numerator: int, denominator: int) -> bool:
        assert (numerator, denominator) == (1, 2)
        return next(self.coins)


def normal(words: list[int], coins: list[bool]) -> tuple[Normal, Script]:
    script = Script(words, coins)
    return Normal(script), script  # type: ignore[arg-type]


def test_the_coins_compose_to_the_normal_law() -> None:
    """Geometric, times what keeps k, times what keeps x: the density exp(-(k + x)**2 / 2) up to a constant."""
    for k in range(6):
        for x in (Fraction(1, 7), Fraction(1, 2), Fraction(6, 7)):
            exponent = k * Fraction(1, 2) + Fraction(k * (k - 1), 2) + x * (2 * k + x) / 2
            assert exponent == (k + x) ** 2 / 2


def test_a_draw_asks_for_these_coins_in_this_order() -> None:
    half = 1 << 63
    drawn, script = normal([half, 0], [True, True, False, True, False])
    assert script.asked == [Fraction(1, 2)] * 3 + [Fraction(1)]  # k = 2, kept with exp(-2 * 1 / 2)
    low, high = drawn.bounds()
    assert (low, high) == (-Fraction(5, 2) - Fraction(1, 2**64), -Fraction(5, 2))


def test_what_is_not_kept_is_drawn_again() -> None:
    one, half = 2**64 - 1, 1 << 63
    drawn, script = normal([half, one, half, 0], [True, False, True, False, True, True])
    assert script.asked == [Fraction(1, 2), Fraction(1, 2), Fraction(0), Fraction(1, 2), Fraction(0)]
    assert drawn.bounds()[0] == Fraction(1, 2)


@for_each("whole", [0, 1, 3])
@for_each("digits", [1 << 60, 5 << 61, 2**64 - 2**40])
@for_each("kept", [False, True])
def test_the_last_coin_is_decided_by_further_digits_where_it_nearly_ties(
    whole: int, digits: int, kept: bool
) -> None:
    """The coin's first 64 digits are those of the probability; the next, and the number's own, decide."""
    further = 0x123456789ABCDEF0
    with mpmath.workdps(80):
        x = mpmath.mpf(digits) / 2**64 + mpmath.mpf(further) / 2**128
        probability = int(mpmath.floor(mpmath.exp(-x * (2 * whole + x) / 2) * mpmath.mpf(2) ** 128))
    coin = probability + (-(2**20) if kept else 2**20)
    words = [digits, coin >> 64, further, coin & (2**64 - 1)]
    keeps = [True] * whole + [False, True]
    if kept:
        drawn, _ = normal(words, [*keeps, True])
        least = whole + Fraction(digits << 64 | further, 2**128)
        assert drawn.bounds() == (least, least + Fraction(1, 2**128))
    else:  # the next draw is 0 and kept
        drawn, _ = normal([*words, 0, 0], [*keeps, False, True, True])
        assert drawn.bounds() == (Fraction(0), Fraction(1, 2**64))


@for_each("whole", [0, 1, 3])
@for_each("digits", [1 << 60, 1 << 63, 2**64 - 2**40])
def test_the_last_coin_asks_for_further_digits_only_where_it_needs_them(whole: int, digits: int) -> None:
    with mpmath.workdps(60):
        ends = [mpmath.mpf(digits + end) / 2**64 for end in (0, 1)]
        most, least = (int(mpmath.floor(mpmath.exp(-x * (2 * whole + x) / 2) * 2**64)) for x in ends)
    keeps = [True] * whole + [False, True]
    drawn, script = normal([digits, least - 1], [*keeps, True])
    assert drawn.bounds()[0] == whole + Fraction(digits, 2**64)
    assert next(script.words, None) is None
    drawn, _ = normal([digits, most + 1, 0, 0], [*keeps, False, True, True])  # the next draw is 0 and kept
    assert drawn.bounds() == (Fraction(0), Fraction(1, 2**64))
    for coin in {least, most}:
        with pytest.raises(StopIteration):
            normal([digits, coin], keeps)


def test_a_number_of_which_only_zeros_are_known_may_be_kept_for_certain() -> None:
    """The largest probability is 1 then, which no digits of a coin reach: further digits decide."""
    drawn, script = normal([0, 2**64 - 1, 1 << 63, 0], [False, True, True])
    assert drawn.bounds() == (Fraction(1, 2**65), Fraction(1, 2**65) + Fraction(1, 2**128))
    assert next(script.words, None) is None


@for_each(("further", "expected"), [([0, 0], 0), ([1], 1)])
def test_a_sum_next_to_a_rounding_point_asks_for_further_digits(further: list[int], expected: int) -> None:
    """The noise is 1/2 and a little, the value a little below 0: digits 65 to 128 say on which side of 1/2 it is."""
    script = Script([1 << 63, 0, *further], [False, True, True])
    found = nearest_with_noise(
        -Fraction(1, 2**128),
        deviation=Fraction(1),
        step=Fraction(1),
        words=script,  # type: ignore[arg-type]
    )
    assert found == expected
    assert next(script.words, None) is None


@pytest.mark.long(*MECHANISMS)
def test_a_sample_has_the_normal_law_and_not_one_of_another_width() -> None:
    """False alarms have a probability of 1e-9; a width off by a twentieth is found for certain."""
    words = RandomWords(seed=11)
    step = Fraction(1, 2**20)
    sample = np.array(
        [
            float(nearest_with_noise(Fraction(3), deviation=Fraction(2), step=step, words=words) * step)
            for _ in range(20_000)
        ]
    )
    assert stats.kstest(sample, stats.norm(3, 2).cdf).pvalue > 1e-9
    assert stats.kstest(sample, stats.norm(3, 2.1).cdf).pvalue < 1e-3
    assert stats.kstest(sample, stats.norm(3.1, 2).cdf).pvalue < 1e-3
    assert float(np.mean(np.abs(sample - 3) > 6)) == pytest.approx(2 * stats.norm.sf(3), abs=3e-3)
