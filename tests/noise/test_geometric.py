"""The row of coins: their number, the words that decide them, and the scales that it is made for."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
from cases import for_each, refuses

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace
from reusable_holdout.noise.discrete_laplace import GeometricRow, _least_and_most, checked_scale, flip

SMALLEST, LARGEST = Fraction(1, 2**20), Fraction(2**50)
TINY = Fraction(1, 10**30)


# Scales.


@for_each("scale", [0, 0.0, SMALLEST, SMALLEST + TINY, 1, 0.1, LARGEST - TINY, LARGEST, 2.0**50])
def test_a_scale_within_the_limits_is_taken_as_it_is(scale):
    assert checked_scale(scale) == Fraction(scale)


@for_each(
    ("scale", "words"),
    [
        (SMALLEST - TINY, "got 9.53674E-7; use a .*smaller epsilon$"),
        (-TINY, "got -1E-30; use a .*smaller epsilon$"),
        (-1.0, "got -1; use a .*smaller epsilon$"),
        (Fraction(1, 10**400), "got 1E-400; use a .*smaller epsilon$"),
        (LARGEST + TINY, r"got 1.12590E\+15; use a .*larger epsilon$"),
        (2.0**51, r"got 2.25180E\+15; use a .*larger epsilon$"),
        (Fraction(2 * 10**400, 3), r"got 6.66667E\+399; use a .*larger epsilon$"),
        *((bad, "a noise scale is a finite number of grid units") for bad in (math.nan, math.inf, -math.inf)),
    ],
)
def test_a_scale_beyond_the_limits_is_told_with_the_way_to_go(scale, words):
    for make in (checked_scale, DiscreteLaplace, DiscreteExponential):
        refuses(InputError, words, make, scale)


# Layout.


LAID_OUT = [
    Fraction(1, 2**20),
    Fraction(1, 20),
    Fraction(1, 12),
    Fraction(1, 11),
    Fraction(1),
    Fraction(7, 3),
]


@for_each("scale", [*LAID_OUT, Fraction(1000), Fraction(2**50)])
@for_each("variables", [1, 2])
def test_a_row_has_no_more_coins_than_make_the_quotients_words_zero(scale, variables):
    """Another number of digits would be the same law, and other draws."""
    row = GeometricRow.of(scale, variables)
    with mpmath.workdps(40):
        needed = mpmath.log(16 * mpmath.log(2) * mpmath.mpf(scale.numerator) / scale.denominator, 2)
        assert row.digits == max(0, int(mpmath.ceil(needed)))
    assert row.exponents == tuple(Fraction(2**digit) / scale for digit in range(row.digits + 1))
    assert len(row.prefixes) == variables * (row.digits + 1)
    assert row.stream_bytes == 2 * len(row.prefixes)
    assert row.prefixes[row.digits] == 0


@for_each("power", [0, 4, 30])
def test_a_quotient_at_the_border_has_one_digit_more_rather_than_a_word_that_is_not_zero(power):
    """At exactly 16 ln 2 as a float, which is below it, the quotient's first word would be 1."""
    row = GeometricRow.of(2**power / Fraction(16 * math.log(2.0)), 2)
    assert row.digits == power + 1
    assert row.prefixes[row.digits] == 0


@for_each("scale", [Fraction(1, 3), Fraction(5), Fraction(1000), Fraction(2**40)])
@for_each("law", [DiscreteLaplace, DiscreteExponential])
def test_one_word_that_ties_decides_its_digit_alone(law, scale):
    made = law(scale)
    row = made._row
    half = row.digits + 1
    for tied in range(len(row.prefixes)):
        if tied % half == row.digits:
            continue
        words = np.full(len(row.prefixes), 2**16 - 1, dtype="<u2")
        words[tied] = row.prefixes[tied]
        for next_word, heads in ((0, 1), (2**16 - 1, 0)):

            def further(position, tied=tied, word=next_word):
                assert position == tied
                return itertools.repeat(word)

            expected = heads * (1 if tied < half else -1) * 2 ** (tied % half)
            many = made.decode_many(words.tobytes() * 3, lambda draw, at, further=further: further(at))
            assert many.tolist() == [expected] * 3


@for_each("scale", [Fraction(1, 3), Fraction(1000), Fraction(2**40)])
def test_without_a_tie_no_coin_is_flipped_alone(scale, monkeypatch):
    """The slow way gives the same draw: it is for words that tie, and not for their neighbours."""
    row = GeometricRow.of(scale, 2)
    up, down = (row.prefixes.astype(int) + side for side in (1, -1))
    digit = np.arange(len(row.prefixes)) % (row.digits + 1) < row.digits
    with monkeypatch.context() as patched:
        patched.delattr(GeometricRow, "_decode_slowly")
        for words, each in ((up, 0), (np.where(digit & (down >= 0), down, up), 1)):
            stream = words.astype("<u2").tobytes()
            # a digit whose chance has a zero word has none below it
            value = sum(2**at * (row.prefixes[at] > 0) * each for at in range(row.digits))
            many = row.decode_many(stream, lambda draw, at: iter(()))
            assert [one.tolist() for one in many] == [[value], [value]]


def test_a_law_shows_and_compares_its_scale_alone():
    for law in (DiscreteLaplace, DiscreteExponential):
        made, same, other = law(3), law(Fraction(3)), law(4)
        assert made.decode_many(bytes([255]) * made.stream_bytes, lambda draw, at: iter(())).tolist() == [0]
        assert repr(made) == f"{law.__name__}(scale=Fraction(3, 1))"
        assert made == same != other
        assert hash(made) == hash(same)
    assert DiscreteLaplace(3) != DiscreteExponential(3)


# Coins.


@for_each("coin", ["digit", "quotient"])
@for_each(
    "exponent", [Fraction(1, 50), Fraction(1, 2), Fraction(7, 2), Fraction(4), Fraction(9, 2), Fraction(9)]
)
def test_few_decimals_leave_the_true_digits_between_their_ends(exponent, coin):
    with mpmath.workdps(60):
        power = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        chance = power / (1 + power) if coin == "digit" else power
        for bits in (16, 32):
            true = int(mpmath.floor(chance * 2**bits))
            for precision in range(2, 40):
                low, high = _least_and_most(exponent, coin, bits, precision)
                assert low <= true <= high
            assert low == high


def test_a_coin_falls_at_the_first_word_that_differs():
    """The coin is heads with probability exp(-1), whose first two words are these."""
    coin, first, second = (Fraction(1), "quotient"), int(2**16 / math.e), int(2**32 / math.e) % 2**16
    for words, heads in [
        ([first - 1], True),
        ([first + 1], False),
        ([first, second - 1], True),
        ([first, second + 1], False),
    ]:
        assert flip(coin, iter(words), known=0) is heads
    assert flip(coin, iter([second - 1]), known=1) is True
