"""Exact normal noise: its coins digit by digit, further digits where they decide, and a sample."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from scipy import stats

from reusable_holdout.mechanisms import RandomWords
from reusable_holdout.mechanisms.samplers.normal import Normal, nearest_with_noise


class Script:
    """Coins and words that a test lists."""

    def __init__(self, words, coins):
        self.words, self.coins = iter(words), iter(coins)
        self.asked = []

    def take(self, count):
        return np.array([next(self.words) for _ in range(count)], dtype=np.uint64)

    def decay(self, exponent):
        self.asked.append(exponent)
        return next(self.coins)

    def share(self, numerator, denominator):
        assert (numerator, denominator) == (1, 2)
        return next(self.coins)


def normal(words, coins):
    script = Script(words, coins)
    return Normal(script), script


def test_a_draw_asks_for_these_coins_in_this_order():
    half = 1 << 63
    drawn, script = normal([half, 0], [True, True, False, True, False])
    assert script.asked == [Fraction(1, 2)] * 3 + [Fraction(1)]  # k = 2, kept with exp(-2 * 1 / 2)
    low, high = drawn.bounds()
    assert (low, high) == (-Fraction(5, 2) - Fraction(1, 2**64), -Fraction(5, 2))


def test_a_number_that_is_not_kept_is_drawn_again():
    one, half = 2**64 - 1, 1 << 63
    drawn, script = normal([half, one, half, 0], [True, False, True, False, True, True])
    assert script.asked == [Fraction(1, 2), Fraction(1, 2), Fraction(0), Fraction(1, 2), Fraction(0)]
    assert drawn.bounds()[0] == Fraction(1, 2)


@for_each("whole", [0, 1, 3])
@for_each("digits", [1 << 60, 5 << 61, 2**64 - 2**40])
@for_each("kept", [False, True])
def test_the_last_coin_is_decided_by_further_digits_where_it_nearly_ties(whole, digits, kept):
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
def test_the_last_coin_asks_for_further_digits_only_where_it_needs_them(whole, digits):
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
        refuses(StopIteration, "", normal, [digits, coin], keeps)


def test_a_number_whose_known_digits_are_zeros_may_be_kept_for_certain():
    """Then the largest probability is 1, which no digits of a coin reach: further digits decide."""
    drawn, script = normal([0, 2**64 - 1, 1 << 63, 0], [False, True, True])
    assert drawn.bounds() == (Fraction(1, 2**65), Fraction(1, 2**65) + Fraction(1, 2**128))
    assert next(script.words, None) is None


@for_each(("further", "expected"), [([0, 0], 0), ([1], 1)])
def test_a_sum_next_to_a_rounding_point_asks_for_further_digits(further, expected):
    """The noise is 1/2 and a little, the value a little below 0: digits 65 to 128 tell the side of 1/2 it is on."""
    script, one = Script([1 << 63, 0, *further], [False, True, True]), Fraction(1)
    found = nearest_with_noise(-Fraction(1, 2**128), deviation=one, step=one, words=script)
    assert found == expected
    assert next(script.words, None) is None


@pytest.mark.long(*MECHANISMS)
def test_a_sample_has_the_normal_law_and_not_one_of_another_width():
    """False alarms have a probability of 1e-9; a width off by a twentieth is found for certain."""
    how = {"deviation": Fraction(2), "step": Fraction(1, 2**20), "words": RandomWords(seed=11)}
    sample = np.array([nearest_with_noise(Fraction(3), **how) / 2**20 for _ in range(20_000)])
    assert stats.kstest(sample, stats.norm(3, 2).cdf).pvalue > 1e-9
    assert stats.kstest(sample, stats.norm(3, 2.1).cdf).pvalue < 1e-3
    assert stats.kstest(sample, stats.norm(3.1, 2).cdf).pvalue < 1e-3
    assert float(np.mean(np.abs(sample - 3) > 6)) == pytest.approx(2 * stats.norm.sf(3), abs=3e-3)
