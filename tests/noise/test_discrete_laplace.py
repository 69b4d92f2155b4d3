"""The sampler's law, checked digit by digit: exactly, on scripted words, and on samples."""

import decimal
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples
from scipy import stats

from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed
from reusable_holdout.noise.discrete_laplace import leading_bits

SCALES = [Fraction(1, 7), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(0.01 * 2**32), Fraction(2**50)]
scales = st.fractions(min_value=Fraction(1, 100), max_value=10**12, max_denominator=1000)


def probability(exponent, coin):
    power = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
    return power / (1 + power) if coin == "digit" else power


def coins(law):
    """Return the coins of one geometric variable, read from the law's own layout."""
    layout = law._row
    return [layout.coin(position) for position in range(layout.digits + 1)]


# Exact.


@for_each("scale", SCALES)
def test_every_coin_has_the_digits_of_its_probability(scale):
    with mpmath.workdps(120):
        for exponent, coin in coins(DiscreteLaplace(scale)):
            for bits in (16, 32, 128):
                exact = probability(exponent, coin) * mpmath.mpf(2) ** bits
                assert leading_bits(exponent, coin, bits) == int(mpmath.floor(exact))


@for_each("side", [-1, 1])
@for_each(("coin", "inverse", "tie"), [("quotient", 2, 1 << 15), ("digit", 3, 1 << 14)])
def test_a_probability_next_to_a_tie_is_not_rounded_across_it(coin, inverse, tie, side):
    """The first precision sees ``exp(-x)`` as 1/2 or 1/3 itself: both ends of the error interval must be looked at."""
    with mpmath.workdps(120):
        nearly = mpmath.log(inverse) - side * mpmath.mpf(10) ** -60
        exponent = Fraction(int(mpmath.floor(nearly * mpmath.mpf(10) ** 100)), 10**100)
    assert leading_bits(exponent, coin, 16) == (tie if side > 0 else tie - 1)


@for_each("scale", SCALES[:4])
def test_the_coins_of_a_law_compose_to_a_geometric_variable(scale):
    with mpmath.workdps(60):
        *digits, (quotient, _) = (
            (mpmath.mpf(leading_bits(exponent, coin, 160)) / mpmath.mpf(2) ** 160, coin)
            for exponent, coin in coins(DiscreteLaplace(scale))
        )
        q = mpmath.exp(-1 / mpmath.mpf(scale.numerator) * scale.denominator)
        for value in range(4 * 2 ** len(digits)):
            left, bits = divmod(value, 2 ** len(digits))
            composed = quotient**left * (1 - quotient)
            for digit, (one, _) in enumerate(digits):
                composed *= one if bits >> digit & 1 else 1 - one
            assert abs(composed - (1 - q) * q**value) < mpmath.mpf(10) ** -30


@for_each("scale", SCALES[:4])
def test_the_difference_of_two_geometric_variables_has_the_stated_probabilities(scale):
    law = DiscreteLaplace(scale)
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        geometric = [(1 - q) * q**value for value in range(math.ceil(60 * scale) + 40)]
        for x in range(-5, 6):
            difference = mpmath.fsum(a * b for a, b in zip(geometric, geometric[abs(x) :], strict=False))
            assert law.log_pmf(x) == pytest.approx(float(mpmath.log(difference)), rel=1e-13)


@given(scales, st.integers(-50, 50))
def test_tails_are_sums_of_probabilities(scale, m):
    law = DiscreteLaplace(scale)
    step = math.exp(law.log_tail(m)) - math.exp(law.log_tail(m + 1))
    assert step == pytest.approx(math.exp(law.log_pmf(m)), rel=1e-6, abs=1e-15)
    assert math.exp(law.log_tail(m)) + math.exp(law.log_tail(1 - m)) == pytest.approx(1, abs=1e-12)


@for_each("scale", [Fraction(1, 7), Fraction(1), Fraction(7, 3), Fraction(1000)])
def test_tail_quantiles_agree_with_a_search(scale):
    """Some lie next to the tails at -1, 0, 1 and 2, where one formula takes over from another."""
    law = DiscreteLaplace(scale)
    near = [law.log_tail(m) * (1 + side * 1e-6) for m in (-1, 0, 1, 2) for side in (1, -1)]
    tails = {m: law.log_tail(m) for m in range(-5000, 20_000)}
    for log_probability in (-0.01, -0.3, -0.7, -1.0, -3.3, -17.2, *near):
        searched = next(m for m, tail in tails.items() if tail <= log_probability)
        assert law.tail_quantile(log_probability) == searched


def test_scale_zero_is_no_noise():
    law = DiscreteLaplace(0)
    assert law.mean == DiscreteLaplace(1000).mean == 0.0
    assert [law.log_pmf(x) for x in (-1, 0, 1)] == [-math.inf, 0.0, -math.inf]
    assert [law.log_tail(m) for m in (-1, 0, 1)] == [0.0, 0.0, -math.inf]
    noise = KeyedNoise(key_from_seed(0))
    assert noise.draw(law, label="query", question=b"?") == 0
    assert noise.draw_many(law, label="query", questions=[b"a", b"b"]).tolist() == [0, 0]


def test_the_callers_decimal_context_changes_nothing():
    exponent = Fraction(355, 113)
    expected = leading_bits.__wrapped__(exponent, "digit", 64)
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP, traps=[decimal.Inexact])):
        assert leading_bits.__wrapped__(exponent, "digit", 64) == expected


# Scripted.


def word_of(coin, index):
    with mpmath.workdps(80):
        scaled = probability(*coin) * mpmath.mpf(2) ** (16 * (index + 1))
        return int(mpmath.floor(scaled)) % 2**16


def refuse(*_):
    raise AssertionError("no tie, no further words")


@settings(deadline=None, max_examples=examples(100))  # mpmath
@given(st.data())
def test_words_below_the_prefix_are_ones(data):
    law = DiscreteLaplace(data.draw(scales))
    half = coins(law)
    words, value = [], 0
    for sign in (1, -1):
        for digit, coin in enumerate(half):
            prefix = word_of(coin, 0)
            one = prefix > 0 and data.draw(st.booleans())
            words.append(data.draw(st.integers(0, prefix - 1) if one else st.integers(prefix + 1, 2**16 - 1)))
            value += sign * one * 2**digit
    stream = np.array(words, dtype="<u2").tobytes()
    assert law.decode_many(stream * 3, refuse).tolist() == [value] * 3


@settings(deadline=None, max_examples=examples(100))
@given(scales, st.integers(0, 2), st.lists(st.booleans(), min_size=300, max_size=300), st.integers(0, 3))
def test_a_tie_goes_on_with_the_next_words(scale, ties, outcomes, quotient):
    """All words tie with the first 16 bits, then `ties` times again, before the coin falls as scripted."""
    law = DiscreteLaplace(scale)
    half = coins(law)

    def fall(coin, first, heads):
        index = first
        while index < first + ties or word_of(coin, index) == (0 if heads else 2**16 - 1):  # none beyond
            yield word_of(coin, index)
            index += 1
        yield word_of(coin, index) + (-1 if heads else 1)

    def further(position):
        coin = half[position % len(half)]
        if coin[1] == "digit":
            return fall(coin, 1, outcomes[position])
        flips = [fall(coin, 1, quotient > 0)]
        flips += [fall(coin, 0, left > 0) for left in reversed(range(quotient))]
        return itertools.chain(*flips)

    expected = 0
    for position in range(2 * len(half)):
        digit = position % len(half)
        count = quotient if half[digit][1] == "quotient" else outcomes[position]
        expected += (1 if position < len(half) else -1) * count * 2**digit
    stream = np.array([word_of(coin, 0) for coin in half * 2], dtype="<u2").tobytes()
    assert law.decode_many(stream * 2, lambda draw, position: further(position)).tolist() == [expected] * 2


# Sampled.


def rejects(draws, law):
    """Run exact binomial tests of 24 tails, two-sided, with a false-alarm probability of 1e-9 in all."""
    points = [round(float(law.scale) * z) for z in (-6, -4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4)]
    for point in points:
        tail = math.exp(law.log_tail(point))
        count = int((draws >= point).sum())
        low = stats.binom.cdf(count, len(draws), tail)
        high = stats.binom.sf(count - 1, len(draws), tail)
        if min(low, high) < 1e-9 / (2 * len(points)):
            return True
    return False


@for_each("scale", [3.0, 0.01 * 2**32])
def test_samples_follow_the_law_and_not_one_with_a_larger_scale(scale):
    questions = [number.to_bytes(8, "big") for number in range(20_000)]
    noise = KeyedNoise(key_from_seed(2015))
    draws = noise.draw_many(DiscreteLaplace(scale), label="query", questions=questions)
    for factor in (1.0, 1.3, 1 / 1.3):
        assert rejects(draws, DiscreteLaplace(factor * scale)) is (factor != 1.0)
