"""Conditional release: what is published is what was compared, and a tie is a deviation however it is asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mechanisms.scripted_noise import ScriptedNoise

from reusable_holdout.mechanisms import ConditionalRelease, KeyedNoise, key_from_seed

QUESTIONS = [number.to_bytes(2, "big") for number in range(40)]
SIGNS = [(0, 1), (0, -1), (1, 1), (-1, -1)]  # which deviations count, and the side of this one


def keyed(direction: int) -> ConditionalRelease:
    noise = KeyedNoise(key_from_seed(7))
    return ConditionalRelease(scale=Fraction(1_000), noise=noise, charges=99, direction=direction)


def scripted(noise: int, direction: int) -> ConditionalRelease:
    only = ScriptedNoise({("query", b"a"): noise})
    return ConditionalRelease(scale=Fraction(1), noise=only, charges=9, direction=direction)  # type: ignore[arg-type]


@pytest.mark.parametrize(("direction", "sign"), SIGNS)
def test_the_published_number_is_the_very_number_that_was_compared(direction: int, sign: int) -> None:
    """Fresh noise would be a second release of the score, which nothing pays for.

    The largest threshold that a question passes says which number was compared.
    """
    core, prior = keyed(direction), 3_000
    score = prior + sign * 20_000
    for question in QUESTIONS:
        released = core.charge(score, question)
        furthest = sign * (released - prior)
        assert core.deviates(score, prior, furthest, question)
        assert not core.deviates(score, prior, furthest + 1, question)
        assert core.charge(score, question) == released


@pytest.mark.parametrize(("direction", "sign"), SIGNS)
def test_the_published_numbers_of_a_batch_are_those_it_compared(direction: int, sign: int) -> None:
    core, none = keyed(direction), np.zeros(len(QUESTIONS), dtype=np.int64)
    scores = none + sign * 20_000
    noise = core.query_noise(QUESTIONS)
    furthest = sign * (scores + noise)
    for start in range(len(QUESTIONS)):
        rest = slice(start, None)
        ask = (scores[rest], none[rest], furthest[rest], QUESTIONS[rest])
        assert core.first_deviation(*ask, query_noise=noise[rest]) == 0
        assert core.first_deviation(*ask) == 0
        assert core.charge(int(scores[start]), QUESTIONS[start]) == sign * furthest[start]
    assert core.first_deviation(scores, none, furthest + 1, QUESTIONS) is None


def test_comparison_and_release_share_one_draw() -> None:
    core = scripted(-4, 0)  # another label or question is not listed, and would be an error
    assert core.deviates(104, 0, 100, b"a")
    assert core.charge(104, b"a") == 100


@pytest.mark.parametrize(("direction", "sign"), SIGNS)
@pytest.mark.parametrize("noise", [-30, 0, 4])
def test_a_tie_deviates_alone_and_in_a_batch(noise: int, direction: int, sign: int) -> None:
    """Else `ask` and `ask_many` would give one question two answers, and two prices."""
    core = scripted(sign * noise, direction)
    for deviation, expected in ((99, False), (100, True), (101, True)):
        score = 5_000 + sign * (deviation - noise)
        assert core.deviates(score, 5_000, 100, b"a") is expected
        first = core.first_deviation(np.array([score]), np.array([5_000]), np.array([100]), [b"a"])
        assert (first == 0) is expected
