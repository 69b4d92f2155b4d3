"""Sets of rows: what two tables have in common, exactly, whatever they are kept in."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import for_each, refuses

from reusable_holdout.errors import HandleError
from reusable_holdout.guard.chunks.dask_rows import DaskRows
from reusable_holdout.guard.row_sets import (
    ANALYSTS,
    OWNERS,
    Copies,
    RowSet,
    Rule,
    by_chance,
    column_names,
    ordered_rows,
    rows_of_table,
)

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(500, 4)) * (RNG.random(size=(500, 4)) < 0.7)
NAMES = ["d", "a", "c", "b"]
FRAME = pd.DataFrame(TABLE, columns=NAMES)


def named(X):
    return ordered_rows(X, column_names(X))


FORMS = {
    "a list": TABLE.tolist(),
    "columns first": np.asfortranarray(TABLE),
    "objects": TABLE.astype(object),
    "sparse": scipy.sparse.csr_array(TABLE),
    "sparse by columns": scipy.sparse.csc_matrix(TABLE),
    "pandas": pd.DataFrame(TABLE),
    "another order": TABLE[RNG.permutation(500)],
}


@for_each("form", FORMS)
def test_equal_rows_are_the_same_in_every_form(form):
    assert rows_of_table(TABLE).common(rows_of_table(FORMS[form])) == 500


@for_each(
    "frame", [FRAME[sorted(NAMES)], FRAME, pl.DataFrame(FRAME), pl.DataFrame(FRAME)[["b", "a", "d", "c"]]]
)
def test_columns_with_names_have_no_order(frame):
    assert named(FRAME).common(named(frame)) == 500


def test_chunks_may_be_empty():
    da = pytest.importorskip("dask.array")
    lazy = da.concatenate([da.from_array(TABLE[:0]), da.from_array(TABLE, chunks=200)])
    cut = DaskRows(lazy.rechunk(((0, 300, 0, 200), (4,))))
    assert rows_of_table(cut).common(rows_of_table(TABLE)) == 500


def test_columns_without_names_have_one():
    full = RNG.normal(size=(500, 4))
    assert rows_of_table(full).common(rows_of_table(full[:, ::-1])) == 0
    assert rows_of_table(np.array([[0, 1]])).common(rows_of_table(np.array([[1, 0]]))) == 0


def test_every_kind_of_column_counts():
    mixed = pd.DataFrame(
        {
            "number": [1.5, None, 2.0],
            "text": ["a", None, "b"],
            "day": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
            "category": pd.Categorical(["x", "y", None]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    assert named(mixed).common(named(pl.DataFrame(mixed))) == 3
    for name in mixed:
        other = mixed.assign(**{name: mixed[name].iloc[[2, 0, 0]].to_numpy()})
        assert named(mixed).common(named(other)) == 0


def test_rows_are_counted_as_often_as_both_have_them():
    one, other = (RowSet(np.array(rows, dtype=np.uint64)) for rows in ([1, 1, 1, 2, 3], [1, 1, 3, 3, 4]))
    assert (one.common(other), one.rows, one.copies.repeated, other.copies.repeated) == (3, 5, 3, 4)
    kept = other.text(b"secret")
    assert one.common_with(kept, b"secret") == 3
    assert RowSet.copies_in(kept, b"secret").repeated == 4


def test_what_is_kept_tells_only_how_many_rows_there_are():
    rows = np.repeat(np.arange(10, dtype=np.uint64), 100)
    texts = [
        RowSet(hashes).text(secret)
        for hashes in (rows, np.arange(1_000, dtype=np.uint64))
        for secret in (b"one", b"other")
    ]
    kept = [np.frombuffer(text, dtype="<u8") for text in texts]
    for numbers in kept:
        assert (np.diff(numbers[1:].astype(float)) >= 0).all()  # in order
        assert len(np.unique(numbers)) == 1_001  # copies are not equal
        # sums of bits: each half the time, five standard deviations
        share = np.unpackbits(numbers.view(np.uint8)).mean()
        assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(64 * 1_001)
    assert len(np.unique(np.concatenate(kept))) > 3_900  # the same rows under another secret are others


def test_a_set_of_rows_says_nothing_and_is_not_pickled():
    rows = rows_of_table(TABLE)
    assert repr(rows) == "<rows>"
    refuses(HandleError, "cannot be pickled", pickle.dumps, rows)


def split(pairs, singles, n, m, rng):
    """Rows of which some come twice, shuffled into two tables."""
    rows = np.concatenate([np.repeat(np.arange(pairs), 2), pairs + np.arange(singles)]).astype(np.uint64)
    rows = rng.permutation(rows)[: n + m]
    return RowSet(rows[:n]), RowSet(rows[n:])


@pytest.mark.parametrize(("n", "m"), [(100, 900), (500, 500), (900, 100)])
@pytest.mark.parametrize("pairs", [1, 3, 10, 100])
def test_fresh_rows_agree_more_than_chance_explains_as_rarely_as_promised(n, m, pairs):
    """Exact where each row comes twice at most, whatever the number of pairs; at error .05, over 2,000 shuffles.

    The number of refusals is at most binomial: a false alarm has probability 1e-9.
    """
    rng, refused = np.random.default_rng([n, pairs]), 0
    for _ in range(2_000):
        fresh, known = split(pairs, 1_000 - 2 * pairs, n, m, rng)
        refused += fresh.common(known) > by_chance(fresh.copies, known.copies, Rule(0.05, tells=False))
    assert refused <= 165  # the 1 - 1e-9 quantile of a binomial of 2,000 and .05


def test_rows_that_never_repeat_agree_by_chance_nowhere_if_they_tell():
    none = Copies(1_000, 0, 40.0), Copies(1_000, 0)
    assert by_chance(*none, OWNERS) == 0
    assert by_chance(*none, ANALYSTS) == 34
    assert by_chance(Copies(3, 0), Copies(1_000, 0), Rule(0.5, tells=False)) <= 3


def test_a_lower_error_lets_more_pass():
    found = [
        by_chance(Copies(1_000, 4), Copies(4_000, 20), Rule(error, tells=True)) for error in (0.1, 0.01, 1e-6)
    ]
    assert found == sorted(found)
    assert found[0] < found[1] < found[2]


@for_each(
    ("table", "tells"),
    [
        (RNG.normal(size=(1_000, 3)), True),
        (RNG.normal(size=(1_000, 1)), False),  # one column, of which a sample shows no more than 19 bits
        (RNG.integers(0, 30, size=(1_000, 4)), False),
        (RNG.integers(0, 30, size=(1_000, 12)), True),
        (np.repeat(RNG.normal(size=(10, 3)), 100, axis=0), False),
        (scipy.sparse.csr_array(RNG.normal(size=(1_000, 3))), True),
        (scipy.sparse.random_array((1_000, 30_000), density=0.002, rng=np.random.default_rng(0)), True),
        (scipy.sparse.random_array((1_000, 30_000), density=0.00002, rng=np.random.default_rng(0)), False),
        (
            pd.DataFrame({"text": RNG.integers(0, 9, 1_000).astype(str), "number": RNG.normal(size=1_000)}),
            False,
        ),
    ],
)
def test_one_row_in_both_is_too_many_only_where_columns_leave_room_for_it(table, tells):
    bits = rows_of_table(table).copies.bits
    none = Copies(1_000, 0, bits), Copies(1_000, 0)
    assert (by_chance(*none, OWNERS) == 0) == tells
