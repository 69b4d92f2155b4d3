"""Random choices: scripted words decide exactly as the binary digits say; samples come last."""

import hashlib
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
from cases import for_each
from scipy import stats

from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.noise import key_from_seed


class Scripted(RandomWords):
    """Words that a test lists."""

    def __init__(self, words):
        super().__init__(seed=0)
        self._script = list(words)

    def take(self, count):
        taken, self._script = self._script[:count], self._script[count:]
        assert len(taken) == count, "the script has ended"
        return np.array(taken, dtype=np.uint64)


def digits(value, words):
    """Return the first 64-bit digits of a probability."""
    with mpmath.workdps(200):
        exact = mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
        whole = int(mpmath.floor(exact * mpmath.mpf(2) ** (64 * words)))
    return [whole >> 64 * (words - 1 - i) & (1 << 64) - 1 for i in range(words)]


@for_each("share", [(1, 3), (2, 7), (10**30, 10**31 + 1), (10**15 - 1, 10**15)])
def test_a_share_is_compared_digit_by_digit(share):
    first, second, third = digits(Fraction(*share), 3)
    assert Scripted([first, second, third - 1]).share(*share)
    assert not Scripted([first, second, third + 1]).share(*share)
    assert Scripted([first - 1]).share(*share)
    assert not Scripted([first + 1]).share(*share)


def test_a_share_with_finitely_many_digits_is_exact_at_its_end():
    assert Scripted([2**63 - 1]).share(1, 2)
    assert not Scripted([2**63]).share(1, 2)
    assert not Scripted([]).share(0, 5)
    assert Scripted([]).share(5, 5)


@for_each("exponent", [Fraction(1, 1000), Fraction(1), Fraction(35, 3), Fraction(40)])
def test_a_decay_is_compared_digit_by_digit(exponent):
    with mpmath.workdps(200):
        first, second = digits(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), 2)
    assert Scripted([first, second - 1]).decay(exponent)
    assert not Scripted([first, second + 1]).decay(exponent)
    assert not Scripted([first + 1]).decay(exponent)


def test_rows_of_coins_decide_as_single_coins_do():
    exponents = [Fraction(number, 7) for number in range(1, 60)]
    floats = np.array([float(exponent) for exponent in exponents])
    for seed in range(50):
        row, words = RandomWords(seed=seed), RandomWords(seed=seed).take(len(exponents)).tolist()
        single = [Scripted([word, *([0] * 8)]).decay(x) for word, x in zip(words, exponents, strict=True)]
        expected = single.index(True) if any(single) else None
        assert row.first_decay(floats, exponents.__getitem__) == expected


def test_a_word_on_the_edge_is_decided_by_the_next():
    """The float filter lets it through, the exact coin decides."""
    with mpmath.workdps(200):
        first, second = digits(mpmath.exp(-2), 2)
    for last, expected in ((second - 1, 0), (second + 1, None)):
        words = Scripted([first, last])
        assert words.first_decay(np.array([2.0]), [Fraction(2)].__getitem__) == expected


def test_a_row_asks_only_of_coins_that_may_fall_heads():
    """A word above its probability by a millionth is clearly tails; one that ties is decided, however unlikely."""
    asked = []

    def exact(index):
        asked.append(index)
        return exponents[index]

    exponents = [Fraction(number, 5) for number in range(1, 150)]
    floats = np.array([float(exponent) for exponent in exponents])
    above = [min(2**64 - 1, int(2**64 * math.exp(-x) * (1 + 1e-6)) + 3) for x in floats.tolist()]
    assert Scripted(above).first_decay(floats, exact) is None
    assert asked == []
    tied = 100
    assert math.exp(-floats[tied]) < 2.0**-28
    below = int(2**64 * math.exp(-floats[tied])) - 1
    words = Scripted([*above[:tied], below, *above[tied + 1 :]])
    assert words.first_decay(floats, exact) == tied
    assert asked == [tied]
    zeros = Scripted([0, 0])  # exp(-60) has 86 leading zeros: the second word decides
    assert zeros.first_decay(np.array([60.0]), lambda index: Fraction(60)) == 0


def test_uniform_integers_reject_what_would_favour_some():
    assert Scripted([2**64 - 1, 7]).below(10) == 7, "2**64 is 6 more than a multiple of 10"
    assert Scripted([2**64 - 7]).below(10) == 9
    assert Scripted([2**64 - 1]).below(2**63) == 2**63 - 1


def test_permutations_are_uniform():
    words = RandomWords(seed=11)
    seen = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(12_000):
        seen[tuple(words.permutation(4).tolist())] += 1
    assert stats.chisquare(list(seen.values())).pvalue > 1e-9
    assert words.permutation(0).tolist() == []


def test_permutations_start_again_when_two_words_tie():
    assert Scripted([3, 3, 9, 1]).permutation(2).tolist() == [1, 0]
    assert Scripted([3, 4, 2, 8, 8, 8, 1, 2, 3]).permutation(3).tolist() == [2, 0, 1]


def test_words_are_those_of_a_counted_hash():
    """A seed repeats SHAKE-256 of a domain, the key and a number for every 8,192 words."""
    head = b"reusable-holdout/words/1" + key_from_seed(9)
    blocks = [hashlib.shake_256(head + block.to_bytes(8, "big")).digest(2**16) for block in range(3)]
    words = np.frombuffer(b"".join(blocks), "<u8").tolist()
    for sizes in ((0, 1, 8191, 0, 1, 16_383), (8192, 8192, 8192), (24_576,)):
        source = RandomWords(seed=9)
        taken = [source.take(size) for size in sizes]
        assert [len(part) for part in taken] == list(sizes)
        assert np.concatenate(taken).tolist() == words
    assert RandomWords().take(4).tolist() != RandomWords().take(4).tolist()


def test_a_certain_coin_and_an_almost_impossible_one():
    assert RandomWords(seed=1).decay(Fraction(0))
    assert not RandomWords(seed=1).decay(Fraction(10**9))
    assert math.isfinite(float(RandomWords(seed=1).below(2)))


def test_sixteen_bits_at_a_time_are_the_words_from_the_front_and_none_is_left_out():
    quarters = RandomWords(seed=5).sixteen_bits()
    first, second = (sum(next(quarters) << shift for shift in (48, 32, 16, 0)) for _ in range(2))
    assert [first, second] == RandomWords(seed=5).take(2).tolist()
