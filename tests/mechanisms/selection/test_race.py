"""The race of clocks: bounds as narrow as they can be, exact times, and ties that further digits decide."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import Scripted

from reusable_holdout.mechanisms.samplers.random_words import Digits
from reusable_holdout.mechanisms.selection import race
from reusable_holdout.mechanisms.selection.race import first_rings

WORDS = [
    *(1, 2, 3, 2**20, 2**40 + 5, 2**62, 2**63 - 2**52, 2**63 - 1, 2**63, 2**63 + 1, 2**63 + 2**52),
    *(2**64 - 2**40, 2**64 - 2**20, 2**64 - 4, 2**64 - 3, 2**64 - 2),
]
RATE = Fraction(1, 2**17)


def log_time(known, bits=64):
    """Return the log of the time of the number that is so many times 2**-bits."""
    return mpmath.log(-mpmath.log(1 - mpmath.mpf(known) / mpmath.mpf(2) ** bits))


def number(words):
    """Join words to one whole number, leading first."""
    return sum(word << 64 * place for place, word in enumerate(reversed(words)))


def bounds_of(words, behind, rate):
    return race._log_ring_bounds(
        np.array(words, dtype=np.uint64), np.full(len(words), behind, dtype=np.int64), rate
    )


@for_each(("behind", "rate"), [(0, 1.0), (3, 0.25), (2**40, 2.0**-20), (2**61, 2.0**20)])
def test_bounds_hold_a_clock_and_are_narrow(behind, rate):
    lows, highs = bounds_of(WORDS, behind, rate)
    with mpmath.workdps(50):
        for word, low, high in zip(WORDS, lows.tolist(), highs.tolist(), strict=True):
            shift = mpmath.mpf(behind) * rate
            assert low <= log_time(word) + shift < log_time(word + 1) + shift <= high
            near = 4 / word + 4 / (2**64 - 1 - word)
            assert high - low <= 2 * near + 3e-12 * (64 + behind * rate)
            assert high - low > 1.99e-12 * (64 + behind * rate)  # it can hide more than the rounding of logs


def test_bounds_at_the_ends_are_infinite_and_no_warning_is_given():
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
def test_a_clock_has_exact_bounds_of_as_many_digits_as_make_them_finite(words, bits):
    source = Scripted(words=words)
    clock = race._Clock(0, Digits(source), 0)
    low, high = clock.bounds()
    assert clock._digits.bits == bits
    assert source.words == []
    with mpmath.workdps(300):
        for bound, end, side in ((low, number(words), -1), (high, number(words) + 1, 1)):
            off = mpmath.mpf(bound.numerator) / bound.denominator - log_time(end, bits)
            assert float(off * mpmath.mpf(10) ** (bits + 20)) == pytest.approx(side, rel=1e-4)
    assert clock.bounds() == (low, high)  # nothing is drawn


@for_each("count", [1, 2, 3, 4])
def test_clocks_far_apart_ring_in_the_order_of_their_times(count):
    words = [2**62, 2**20, 2**63, 2**40]  # times 0.3, 1e-13, 0.7 and 6e-8
    for behind, order in [
        ([0] * 4, [1, 3, 0, 2]),
        ([0, 90, 0, 0], [3, 0, 2, 1]),
        ([40, 0, 0, 0], [1, 3, 2, 0]),
    ]:
        script = Scripted(words=words)
        rings = first_rings(np.array(behind), Fraction(1, 2), count, script)
        assert rings.tolist() == order[:count]
        assert rings.dtype == np.int64
        assert script.words == []


def test_a_tie_of_the_last_two_that_may_be_wanted_is_decided():
    """The second and the third have the same 64 digits, and one of them is wanted: further words decide."""
    for further, order in [([10, 20], [0, 1]), ([20, 10], [0, 2])]:
        script = Scripted(words=[2**20, 2**62, 2**62, 2**63, *reversed(further)])
        rings = first_rings(np.zeros(4, dtype=np.int64), Fraction(1), 2, script)
        assert rings.tolist() == order


def ring_order(words, behind):
    """Order clocks at 400 digits."""
    with mpmath.workdps(400):
        times = [
            log_time(mpmath.mpf(number(digits)) + 0.5, 64 * len(digits)) + mpmath.mpf(back) / 2**17
            for digits, back in zip(words, behind, strict=True)
        ]
        return sorted(range(len(times)), key=times.__getitem__)


@pytest.mark.long(*MECHANISMS)
@given(st.data())
def test_the_race_is_decided_as_at_four_hundred_digits_also_where_clocks_nearly_tie(data):
    size = data.draw(st.integers(2, 6))
    word = st.sampled_from([*WORDS, 0, 2**64 - 1]) | st.integers(0, 2**64 - 1)
    few = st.sampled_from(data.draw(st.lists(word, min_size=1, max_size=2)))
    first = data.draw(st.lists(few, min_size=size, max_size=size))
    behind = data.draw(st.lists(st.sampled_from([0, 0, 1, 70_000]), min_size=size, max_size=size))
    count = data.draw(st.integers(1, size))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    clocks = {}

    class Kept(race._Clock):
        __slots__ = ()

        def __init__(self, index, digits, back):
            super().__init__(index, digits, back)
            clocks[index] = digits

    script = Scripted(words=[*first, *rng.integers(2**64, size=500, dtype=np.uint64).tolist()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "_Clock", Kept)
        rings = race.first_rings(np.array(behind), RATE, count, script)
    words = [[word] for word in first]
    for index, digits in clocks.items():
        words[index] = [digits.known >> 64 * k & 2**64 - 1 for k in reversed(range(digits.bits // 64))]
    assert rings.tolist() == ring_order(words, behind)[:count]


@for_each("word", [2**40, 2**62 + 12345, 2**63 + 7, 2**64 - 2**50])
@for_each("behind", [1, 70_000])
def test_clocks_of_different_rates_that_nearly_tie_are_ordered_by_further_digits(word, behind):
    """The first clock is set so that it rings with the second, to 64 digits."""
    with mpmath.workdps(60):
        second = -mpmath.log(1 - (mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64)
        first = second * mpmath.exp(mpmath.mpf(behind) / 2**17)
        tie = int(mpmath.floor((1 - mpmath.exp(-first)) * mpmath.mpf(2) ** 64))
    for off, further in itertools.product((-3, -1, 0, 1, 3), ((0, 2**64 - 1), (2**64 - 1, 0), (1, 2))):
        script = Scripted(words=[tie + off, word, *further, 5, 6, 7, 8])
        rings = race.first_rings(np.array([0, behind]), RATE, 2, script)
        # The sort asks whether the second comes before the first, so it is refined first.
        drawn = [[tie + off, further[1], 6, 8], [word, further[0], 5, 7]]
        assert rings.tolist() == ring_order(drawn, [0, behind])
