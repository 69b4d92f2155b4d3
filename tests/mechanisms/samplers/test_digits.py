"""A uniform number of unlimited digits decides exactly, with as many digits as it takes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from cases import for_each

from reusable_holdout.mechanisms import RandomWords
from reusable_holdout.mechanisms.samplers.digits import Digits

THIRD = 2**64 // 3  # the first 64 binary digits of 1/3, and all further ones


class Listed:
    """Gives listed words."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, count: int) -> np.ndarray:  # type: ignore[type-arg]
        assert count == 1
        return np.array([self.words.pop(0)], dtype=np.uint64)


def digits_of(number: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    low = number * 2**bits // 1
    return Fraction(low, 2**bits), Fraction(low + 1, 2**bits)


@for_each(
    ("words", "below", "drawn"),
    [
        ([THIRD - 1], True, 1),
        ([THIRD + 1], False, 1),
        ([THIRD, THIRD - 1], True, 2),
        ([THIRD, THIRD, THIRD + 1], False, 3),
        ([THIRD, THIRD, THIRD, 0], True, 4),
    ],
)
def test_a_third_is_decided_by_the_first_digits_that_differ(
    words: list[int], below: bool, drawn: int
) -> None:
    source = Listed(*words, 5, 6, 7)
    number = Digits(source)  # type: ignore[arg-type]
    assert number.below(lambda bits: digits_of(Fraction(1, 3), bits)) is below
    assert number.bits == 64 * drawn
    assert source.words[-3:] == [5, 6, 7]


def test_bounds_that_are_known_exactly_decide_at_their_edge() -> None:
    half = Fraction(1, 2)
    for word, below in [(2**63 - 1, True), (2**63, False)]:
        number = Digits(Listed(), word)  # type: ignore[arg-type]
        assert number.below(lambda bits: (half, half)) is below


def test_digits_that_were_drawn_before_come_first() -> None:
    number = Digits(Listed(7), 3)  # type: ignore[arg-type]
    number.refine()
    assert (number.known, number.bits) == (3 * 2**64 + 7, 128)
    words = RandomWords(seed=4).take(1).tolist()
    assert Digits(RandomWords(seed=4)).known == words[0]
