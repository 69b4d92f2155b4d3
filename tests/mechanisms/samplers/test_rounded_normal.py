"""Rounded normal noise: its quantiles beside a distribution function of many digits, and where digits are asked for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from scipy import special, stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import RoundedNormal
from reusable_holdout.mechanisms.samplers.rounded_normal import (
    _DOUBT,
    _series,
    normal_cdf_digits,
)
from reusable_holdout.noise import KeyedNoise, key_from_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

SCALES = [Fraction(1, 3), Fraction(2), Fraction(1000), Fraction(10**7 + 1, 7), Fraction(2**40)]


def cdf(y: Fraction) -> mpmath.mpf:
    return mpmath.ncdf(mpmath.mpf(y.numerator) / y.denominator)


def boundary(law: RoundedNormal, m: int, bits: int) -> int:
    """First digits of the chance that a draw is at most m."""
    with mpmath.workprec(bits + 200):
        return int(mpmath.floor(cdf((m + Fraction(1, 2)) / law.scale) * mpmath.mpf(2) ** bits))


def sixteens(number: int, bits: int) -> Iterator[int]:
    return iter([number >> shift & 0xFFFF for shift in range(bits - 16, -1, -16)])


@given(st.integers(-60_000, 60_000), st.integers(1, 3_000), st.integers(1, 300))
def test_the_distribution_function_is_bracketed_to_every_digit(
    numerator: int, denominator: int, bits: int
) -> None:
    y = Fraction(numerator, denominator)
    low, high = normal_cdf_digits(y, bits)
    assert high - low <= 2
    with mpmath.workprec(bits + 100):
        assert low <= cdf(y) * mpmath.mpf(2) ** bits <= high


@for_each("bits", [4, 10, 33])
@for_each("place", [0.01, 0.1, 0.4, 1.3])
def test_the_distribution_function_next_to_a_tie_is_not_rounded_across_it(bits: int, place: float) -> None:
    """By less than the precision that is computed first tells from the tie itself."""
    with mpmath.workdps(80):
        tie = round(float(mpmath.ncdf(place)) * 2**bits)
        quantile = mpmath.findroot(lambda y: mpmath.ncdf(y) - mpmath.mpf(tie) / 2**bits, place)
        whole = Fraction(int(mpmath.nint(quantile * mpmath.mpf(10) ** 60)), 10**60)
        for y in (whole - Fraction(1, 10**50), whole + Fraction(1, 10**50)):
            low, high = normal_cdf_digits(y, bits)
            assert low <= cdf(y) * mpmath.mpf(2) ** bits <= high


@for_each("precision", [4, 7, 12, 20])
def test_few_decimals_leave_the_distribution_function_between_their_ends(precision: int) -> None:
    for y in (*(Fraction(n, 7) for n in range(1, 90, 3)), Fraction(1, 10**6), Fraction(16), Fraction(20)):
        with mpmath.workprec(300):
            true = cdf(y) * mpmath.mpf(2) ** 90
            low, high = _series(y, 90, precision=precision)
            assert low <= true <= high
            assert high - low < 10 ** (6 - precision) * 2.0**90 + 3


def test_far_out_the_distribution_function_is_next_to_one() -> None:
    for y, bits in ((Fraction(10), 33), (Fraction(10**9), 64), (Fraction(8), 31)):
        assert normal_cdf_digits(y, bits) == ((1 << bits) - 1, 1 << bits)
        assert normal_cdf_digits(-y, bits) == (0, 1)


@for_each("scale", [Fraction(3, 2), Fraction(1000), Fraction(10**7 + 1, 7)])
@for_each("place", [-3.9, -2.3, -0.2, 0.0, 0.3, 1.8, 4.2])
@for_each("share", [-1.1, -0.9, -0.3, 0.3, 0.9, 1.1])
def test_further_digits_are_asked_for_within_the_margin_and_not_beyond(
    scale: Fraction, place: float, share: float
) -> None:
    """By quantiles that are so many margins from a boundary, where the margin is far wider than a word."""
    law, asked = RoundedNormal(scale), []
    m = round(place * scale)
    with mpmath.workdps(60):
        y = (m + mpmath.mpf(1) / 2) * scale.denominator / scale.numerator
        word = int(mpmath.ncdf(y + share * mpmath.mpf(_DOUBT) * (1 + abs(y))) * mpmath.mpf(2) ** 64)

    def further(draw: int, position: int) -> Iterator[int]:
        assert position == 0
        asked.append(draw)
        return iter([1] * 100)

    stream = word.to_bytes(8, "little")
    inside = abs(share) < 1
    expected = m if share < 0 else m + 1
    assert law.decode(stream, lambda position: further(0, position)) == expected
    assert law.decode_many(stream * 3, further).tolist() == [expected] * 3
    assert asked == ([0, 0, 1, 2] if inside else [])


def test_in_the_far_tail_a_word_decides_but_for_the_one_that_a_boundary_crosses() -> None:
    """A word there is wider than the margin."""
    for scale in (Fraction(1, 3), Fraction(2), Fraction(7, 2)):
        law = RoundedNormal(scale)
        places = [m for m in range(-40, 0) if 3 < boundary(law, m, 64) < 10**6]
        assert places
        for m in places:
            edge = boundary(law, m, 64)
            for word, expected in ((edge - 1, m), (edge, None), (edge + 1, m + 1)):
                for mirrored in (False, True):
                    stream = (2**64 - 1 - word if mirrored else word).to_bytes(8, "little")
                    asked: list[int] = []
                    if expected is None:
                        with pytest.raises(StopIteration):
                            law.decode(stream, lambda position: iter(()))
                    else:
                        drawn = law.decode(stream, lambda position, asked=asked: asked.append(position))  # type: ignore[misc]
                        assert drawn == (-expected if mirrored else expected)
                        assert asked == []


@for_each("ends", [(0, -1), (2**64 - 1, 1)])
@for_each("scale", [Fraction(1, 3), Fraction(1000)])
def test_the_outermost_words_are_decided_by_further_digits(ends: tuple[int, int], scale: Fraction) -> None:
    word, sign = ends
    law = RoundedNormal(scale)
    tail = [0x8000 if sign > 0 else 0x7FFF] + [0] * 40
    drawn = law.decode(word.to_bytes(8, "little"), lambda position: iter(tail))
    least = law.tail_quantile(-64 * math.log(2.0))
    assert least - 1 <= sign * drawn <= least + scale / 2


@for_each("scale", SCALES)
@for_each("place", [0.0, 0.4, -1.7, 4.0])
def test_floating_point_numbers_next_to_a_boundary_do_not_decide(scale: Fraction, place: float) -> None:
    law = RoundedNormal(scale)
    edge = boundary(law, round(place * scale), 64)
    words = np.array([edge + step for step in range(-50, 51)], dtype=np.uint64)
    assert law._by_quantiles(words)[1].all()


def test_floating_point_quantiles_err_by_far_less_than_the_margin() -> None:
    """Of words in both tails and near one half, where their 53 leading digits are all that a double has."""
    rng = np.random.default_rng(0)
    words = np.concatenate(
        [rng.integers(1, 2**63, 300), 2 ** rng.integers(1, 63, 60), 2**63 - 1 - 2 ** rng.integers(0, 62, 60)]
    )
    for word in words.tolist():
        y = float(special.ndtri(float(word) * 2.0**-64))
        with mpmath.workprec(200):
            # Newton from the double: the distance to the true quantile.
            error = (mpmath.ncdf(y) - mpmath.mpf(word) / 2**64) / mpmath.npdf(y)
            assert abs(float(error)) < _DOUBT / 100 * (1 + abs(y))


@for_each("scale", SCALES)
@for_each("place", [0.0, 0.3, -1.7, 4.0, -6.5])
@for_each("bits", [64, 128, 192])
def test_a_draw_is_decided_by_the_digits_on_each_side_of_a_boundary(
    scale: Fraction, place: float, bits: int
) -> None:
    """A uniform number just below the chance of "at most m" gives m, one just above m + 1: that is the law, exactly."""
    law = RoundedNormal(scale)
    m = round(place * scale)
    if law.log_pmf(m) < -55 * math.log(2.0) or law.log_pmf(m + 1) < -55 * math.log(2.0):
        return  # narrower than the step beside the boundary
    edge = boundary(law, m, bits)
    for number, expected in ((edge - 2, m), (edge - 1, m), (edge + 1, m + 1), (edge + 2, m + 1)):
        first, rest = number >> bits - 64, number & (1 << bits - 64) - 1
        further = [*sixteens(rest, bits - 64), *[0x8000] * 40]
        drawn = law.decode(first.to_bytes(8, "little"), lambda position, words=further: iter(words))
        assert drawn == expected


@pytest.mark.long(*MECHANISMS)
@for_each("scale", SCALES)
def test_many_are_drawn_as_one_by_one_and_by_their_numbers_order(scale: Fraction) -> None:
    law = RoundedNormal(scale)
    rng = np.random.default_rng(1)
    words = np.sort(rng.integers(0, 2**64, 120, dtype=np.uint64, endpoint=False))
    words[:3], words[-3:] = [0, 1, 2], [2**64 - 3, 2**64 - 2, 2**64 - 1]
    stream = words.astype("<u8").tobytes()
    drawn = law.decode_many(stream, lambda draw, position: iter([0x1234] * 100))
    alone = [
        law.decode(stream[8 * at : 8 * at + 8], lambda position: iter([0x1234] * 100)) for at in range(120)
    ]
    assert drawn.tolist() == alone
    assert (np.diff(drawn) >= 0).all()
    assert abs(drawn).max() <= 60 * scale + 1


def test_further_digits_are_asked_for_only_where_64_do_not_decide() -> None:
    """Once in some million draws at the noise of a stream: the fast path is nearly always the only one."""
    law, asked = RoundedNormal(2.0**20), []

    def further(draw: int, position: int) -> Iterator[int]:
        asked.append(draw)
        return iter([7] * 100)

    words = np.random.default_rng(2).integers(0, 2**64, 20_000, dtype=np.uint64, endpoint=False)
    law.decode_many(words.astype("<u8").tobytes(), further)
    assert len(asked) <= 2


@for_each("scale", [Fraction(1, 3), Fraction(2), Fraction(40)])
def test_probabilities_are_differences_of_the_distribution_function(scale: Fraction) -> None:
    law = RoundedNormal(scale)
    reach = math.ceil(12 * scale)
    with mpmath.workdps(50):
        for x in range(-reach, reach + 1, max(1, reach // 20)):
            upper, lower = (cdf((x + Fraction(half, 2)) / scale) for half in (1, -1))
            assert law.log_pmf(x) == pytest.approx(float(mpmath.log(upper - lower)), rel=1e-9)
            assert law.log_tail(x) == pytest.approx(float(mpmath.log(1 - lower)), rel=1e-9, abs=1e-15)
    assert sum(math.exp(law.log_pmf(x)) for x in range(-reach, reach + 1)) == pytest.approx(1, abs=1e-9)


@given(st.floats(-2000.0, -1e-6), st.sampled_from(SCALES))
def test_a_tail_quantile_is_the_smallest(log_probability: float, scale: Fraction) -> None:
    law = RoundedNormal(scale)
    m = law.tail_quantile(log_probability)
    assert law.log_tail(m) <= log_probability
    if scale <= 10**7:
        assert law.log_tail(m - 1) > log_probability


def test_a_tail_quantile_at_a_tail_is_where_it_is() -> None:
    law = RoundedNormal(40)
    for m in range(-150, 400, 7):
        assert law.tail_quantile(law.log_tail(m)) == m
    assert (law.mean, repr(law)) == (0.0, "RoundedNormal(scale=Fraction(40, 1))")
    assert law == RoundedNormal(40.0) != RoundedNormal(41)


def test_keyed_noise_draws_it_alone_and_in_a_batch_and_it_has_its_width() -> None:
    """False alarms have a probability of 1e-9; a deviation off by a twentieth is found."""
    noise, law = KeyedNoise(key_from_seed(5)), RoundedNormal(1000)
    questions = [number.to_bytes(8, "big") for number in range(20_000)]
    batch = noise.draw_many(law, label="query", questions=questions)
    assert [noise.draw(law, label="query", question=q) for q in questions[:200]] == batch[:200].tolist()
    sample = batch + np.random.default_rng(3).uniform(-0.5, 0.5, len(batch))
    assert stats.kstest(sample, stats.norm(0, 1000).cdf).pvalue > 1e-9
    assert stats.kstest(sample, stats.norm(0, 1050).cdf).pvalue < 1e-3
    assert stats.kstest(sample, stats.norm(50, 1000).cdf).pvalue < 1e-3


def test_no_noise_reads_no_bits_and_bad_scales_are_refused() -> None:
    silent = RoundedNormal(0)
    assert (silent.stream_bytes, silent.decode(b"", lambda position: iter(()))) == (0, 0)
    assert (silent.log_tail(0), silent.log_tail(1), silent.log_pmf(0)) == (0.0, -math.inf, 0.0)
    assert [silent.log_pmf(x) for x in (-1, 1)] == [-math.inf] * 2
    assert silent.tail_quantile(-1.0) == 1
    with pytest.raises(InputError):
        silent.decode_many(b"", lambda draw, position: iter(()))
    for bad in (-1, math.nan, math.inf, 2.0**51):
        with pytest.raises(InputError):
            RoundedNormal(bad)
    for bad in (0.0, math.nan, -math.inf):
        with pytest.raises(InputError):
            RoundedNormal(1).tail_quantile(bad)
