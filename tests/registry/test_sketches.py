"""Sketches of rows: what is the same is found, what is fresh is not."""

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from reusable_holdout.registry import Sketcher, overlap

KEY = bytes(range(32))
RNG = np.random.default_rng(0)
ROWS = 4_000
X = RNG.normal(size=(ROWS, 6))


def sketch(array, key=KEY, pieces=1):
    made = Sketcher(key)
    for piece in np.array_split(np.asarray(array), pieces):
        made.add(list(piece.T))
    return made.sketch()


SAME = {
    "themselves": X,
    "in another order": X[RNG.permutation(ROWS)],
    "with columns in another order": X[:, ::-1],
    "nine in ten of them": X[: ROWS * 9 // 10],
    "one in twenty of them": X[::20],
    "with one more column": np.c_[X, RNG.normal(size=ROWS)],
    "without two columns": X[:, 2:],
}


@pytest.mark.parametrize("how", SAME)
def test_the_same_rows_are_found(how):
    assert overlap(sketch(X), sketch(SAME[how])) > 0.9
    assert overlap(sketch(SAME[how]), sketch(X)) > 0.9


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_a_share_of_known_rows_is_about_what_is_said(share):
    known = round(share * ROWS)
    mixed = np.r_[X[:known], RNG.normal(size=(ROWS - known, 6))]
    assert overlap(sketch(X), sketch(mixed)) == pytest.approx(share, rel=0.3)


def test_fresh_rows_of_the_same_population_are_not_taken_for_known_ones():
    for seed in range(20):
        assert overlap(sketch(X), sketch(np.random.default_rng([1, seed]).normal(size=(ROWS, 6)))) == 0.0
    few = RNG.integers(0, 3, size=(2, ROWS, 3)).astype(float)
    assert overlap(sketch(few[0]), sketch(few[1])) == 0.0
    rounded = np.round(RNG.normal(size=(2, ROWS, 4)), 1)
    assert overlap(sketch(rounded[0]), sketch(rounded[1])) == 0.0
    counted = np.c_[np.arange(ROWS), RNG.normal(size=ROWS)], np.c_[np.arange(ROWS), RNG.normal(size=ROWS)]
    assert overlap(*map(sketch, counted)) == 0.0  # both number their rows


@pytest.mark.parametrize(
    "load", [datasets.load_breast_cancer, datasets.load_iris, datasets.load_diabetes, datasets.load_wine]
)
def test_halves_of_real_tables_are_not_taken_for_each_other(load):
    table = load().data
    assert overlap(sketch(table[::2]), sketch(table[1::2])) == 0.0
    assert overlap(sketch(table), sketch(table[::2])) > 0.9


def test_rows_of_few_values_are_known_as_a_whole_in_any_order():
    few = RNG.integers(0, 2, size=(500, 2)).astype(float)
    assert overlap(sketch(few), sketch(few[::-1])) == 1.0
    assert overlap(sketch(few), sketch(np.r_[few[:-1], 1.0 - few[-1:]])) == 0.0


def test_pieces_do_not_matter_and_types_of_equal_numbers_do_not():
    whole = sketch(X)
    assert overlap(whole, sketch(X, pieces=7)) == 1.0
    assert sketch(X, pieces=7).total == whole.total
    numbers = RNG.integers(0, 9, size=(50, 3))
    assert sketch(numbers).total == sketch(numbers.astype(float)).total
    text = pd.DataFrame({"a": ["x", "y"], "b": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    made = Sketcher(KEY)
    made.add([text[name].to_numpy() for name in text])
    assert made.sketch().rows == 2


def test_under_another_key_nothing_is_the_same():
    assert overlap(sketch(X), sketch(X, key=bytes(32))) == 0.0


def test_a_sketch_is_small():
    large = sketch(RNG.normal(size=(200_000, 12)))
    assert sum(part.numbers.nbytes for part in large.parts) < 50_000
    assert (large.rows, large.parts[0].distinct) == (200_000, pytest.approx(200_000, rel=0.15))
