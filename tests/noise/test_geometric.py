"""The row of coins: how many, which words decide them, and which scales it is made for."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace
from reusable_holdout.noise.geometric import GeometricRow, _least_and_most, checked_scale, flip

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALLEST, LARGEST = Fraction(1, 2**20), Fraction(2**50)
TINY = Fraction(1, 10**30)


# Scales -----------------------------------------------------------------------------------------------


@for_each("scale", [0, 0.0, SMALLEST, SMALLEST + TINY, 1, 0.1, LARGEST - TINY, LARGEST, 2.0**50])
def test_a_scale_within_the_limits_is_taken_as_it_is(scale: Fraction | float) -> None:
    assert checked_scale(scale) == Fraction(scale)


@for_each(
    ("scale", "told", "way"),
    [
        (SMALLEST - TINY, "9.53674E-7", "smaller epsilon"),
        (-TINY, "-1E-30", "smaller epsilon"),
        (-1.0, "-1", "smaller epsilon"),
        (Fraction(1, 10**400), "1E-400", "smaller epsilon"),
        (LARGEST + TINY, "1.12590E+15", "larger epsilon"),
        (2.0**51, "2.25180E+15", "larger epsilon"),
        (Fraction(2 * 10**400, 3), "6.66667E+399", "larger epsilon"),
    ],
)
def test_a_scale_beyond_the_limits_is_told_with_the_way_to_go(
    scale: Fraction | float, told: str, way: str
) -> None:
    """Also one that no floating-point number reaches."""
    with pytest.raises(InputError, match="noise scale") as caught:
        checked_scale(scale)
    assert f"got {told}; use a " in str(caught.value)
    assert str(caught.value).endswith(way)


@for_each("scale", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_scale(scale: float) -> None:
    with pytest.raises(InputError, match="is a finite number of grid units"):
        checked_scale(scale)


# Layout -----------------------------------------------------------------------------------------------


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
def test_a_row_has_no_more_coins_than_make_the_quotients_words_zero(scale: Fraction, variables: int) -> None:
    """Another number of digits would be the same law, and other draws."""
    row = GeometricRow.of(scale, variables)
    with mpmath.workdps(40):
        needed = mpmath.log(16 * mpmath.log(2) * mpmath.mpf(scale.numerator) / scale.denominator, 2)
        assert row.digits == max(0, int(mpmath.ceil(needed)))
    assert row.exponents == tuple(Fraction(2**digit) / scale for digit in range(row.digits + 1))
    assert row.words == variables * (row.digits + 1)
    assert row.stream_bytes == 2 * row.words
    assert row.prefixes[row.digits] == 0


@for_each("power", [0, 4, 30])
def test_a_quotient_at_the_border_has_one_digit_more_rather_than_a_word_that_is_not_zero(power: int) -> None:
    """At exactly 16 ln 2 as a float, which is below it, the quotient's first word would be 1."""
    row = GeometricRow.of(2**power / Fraction(16 * math.log(2.0)), 2)
    assert row.digits == power + 1
    assert row.prefixes[row.digits] == 0


@for_each("scale", [Fraction(1, 3), Fraction(5), Fraction(1000), Fraction(2**40)])
@for_each("law", [DiscreteLaplace, DiscreteExponential])
def test_one_word_that_ties_decides_its_digit_alone(
    law: type[DiscreteLaplace | DiscreteExponential], scale: Fraction
) -> None:
    made = law(scale)
    row = made._row
    assert row is not None
    half = row.digits + 1
    for tied in range(row.words):
        if tied % half == row.digits:
            continue
        words = np.full(row.words, 2**16 - 1, dtype="<u2")
        words[tied] = row.prefixes[tied]
        for next_word, heads in ((0, 1), (2**16 - 1, 0)):

            def further(position: int, tied: int = tied, word: int = next_word) -> Iterator[int]:
                assert position == tied
                return itertools.repeat(word)

            expected = heads * (1 if tied < half else -1) * 2 ** (tied % half)
            assert made.decode(words.tobytes(), further) == expected
            many = made.decode_many(words.tobytes() * 3, lambda draw, at, further=further: further(at))  # type: ignore[misc]
            assert many.tolist() == [expected] * 3


@for_each("scale", [Fraction(1, 3), Fraction(5), Fraction(1000), Fraction(2**50)])
@for_each("successes", [0, 1, 2, 5])
def test_a_quotient_that_ties_is_counted_until_its_first_failure(scale: Fraction, successes: int) -> None:
    law = DiscreteLaplace(scale)
    row = law._row
    assert row is not None
    for tied, sign in ((row.digits, 1), (2 * row.digits + 1, -1)):
        words = np.full(row.words, 2**16 - 1, dtype="<u2")
        words[tied] = 0

        def further(position: int, tied: int = tied) -> Iterator[int]:
            assert position == tied
            exponent, count = row.exponents[-1], 0
            while count < successes:  # the least words that win: ties while the digits are zero
                chance = math.exp(-exponent)
                known = 1 if count == 0 else 0
                for word in itertools.count(known + 1):
                    digits = int(chance * 2.0 ** (16 * word))
                    yield 0
                    if digits:
                        break
                count += 1
            yield from itertools.repeat(2**16 - 1)

        expected = sign * successes * 2**row.digits
        assert law.decode(words.tobytes(), further) == expected
        many = law.decode_many(words.tobytes() * 2, lambda draw, at, further=further: further(at))  # type: ignore[misc]
        assert many.tolist() == [expected] * 2


@for_each("scale", [Fraction(1, 3), Fraction(1000), Fraction(2**40)])
def test_without_a_tie_no_coin_is_flipped_alone(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow way gives the same draw: it is for words that tie, and not for their neighbours."""
    row = GeometricRow.of(scale, 2)
    up, down = (row.prefixes.astype(int) + side for side in (1, -1))
    digit = np.arange(row.words) % (row.digits + 1) < row.digits
    with monkeypatch.context() as patched:
        patched.delattr(GeometricRow, "_decode_slowly")
        for words, each in ((up, 0), (np.where(digit & (down >= 0), down, up), 1)):
            stream = words.astype("<u2").tobytes()
            drawn = row.decode(stream, lambda position: iter(()))
            value = sum(
                2**at * (row.prefixes[at] > 0) * each for at in range(row.digits)
            )  # a digit whose chance has a zero word has none below it
            assert drawn == (value, value)
            assert [one.tolist() for one in row.decode_many(stream, lambda draw, at: iter(()))] == [
                [value],
                [value],
            ]


def test_a_law_shows_and_compares_its_scale_alone() -> None:
    for law in (DiscreteLaplace, DiscreteExponential):
        made, same, other = law(3), law(Fraction(3)), law(4)
        assert made.decode(bytes([255]) * made.stream_bytes, lambda position: iter(())) == 0
        assert repr(made) == f"{law.__name__}(scale=Fraction(3, 1))"
        assert made == same != other
        assert hash(made) == hash(same)
    assert DiscreteLaplace(3) != DiscreteExponential(3)


# Coins ------------------------------------------------------------------------------------------------


@for_each("coin", ["digit", "quotient"])
@for_each(
    "exponent", [Fraction(1, 50), Fraction(1, 2), Fraction(7, 2), Fraction(4), Fraction(9, 2), Fraction(9)]
)
def test_few_decimals_leave_the_true_digits_between_their_ends(exponent: Fraction, coin: str) -> None:
    with mpmath.workdps(60):
        power = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        chance = power / (1 + power) if coin == "digit" else power
        for bits in (16, 32):
            true = int(mpmath.floor(chance * 2**bits))
            for precision in range(2, 40):
                low, high = _least_and_most(exponent, coin, bits, precision)  # type: ignore[arg-type]
                assert low <= true <= high
            assert low == high


def test_a_coin_falls_at_the_first_word_that_differs() -> None:
    """Of one that is heads with probability exp(-1), whose first two words are these."""
    coin, first, second = (Fraction(1), "quotient"), int(2**16 / math.e), int(2**32 / math.e) % 2**16
    for words, heads in [
        ([first - 1], True),
        ([first + 1], False),
        ([first, second - 1], True),
        ([first, second + 1], False),
    ]:
        assert flip(coin, iter(words), known=0) is heads  # type: ignore[arg-type]
    assert flip(coin, iter([second - 1]), known=1) is True  # type: ignore[arg-type]
