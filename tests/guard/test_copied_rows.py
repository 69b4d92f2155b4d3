"""Exact copies among the rows are noticed by the owner of a guard, when it is made, where chance does not make them."""

import warnings

import made_guards
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import for_each, refuses
from made_guards import made_guard
from scipy import sparse
from sklearn import datasets

from reusable_holdout import CopiedRowsWarning, ParquetRows, ReusableHoldout
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import HoldoutError
from reusable_holdout.guard.row_sets import CopiedRows, copies_among

ROWS = 2_000
PLAN = {"queries": 20, "charges": 1, "seed": 1}
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(ROWS, 4))
LABELS = (FEATURES[:, 0] > 0).astype(int)
OFTEN = RNG.permutation(np.repeat(np.arange(ROWS // 20), 20))  # each of a hundred rows twenty times
SOME = np.concatenate([np.arange(ROWS - 200), np.arange(200)])  # a tenth of the rows twice


def frame_of(X):
    return pd.DataFrame(X, columns=list("abcd"))


# ---- what is noticed


@for_each("places", [OFTEN, SOME, RNG.integers(0, ROWS, ROWS)])
def test_copies_are_counted_and_what_they_are_worth(places):
    counts = np.unique(places, return_counts=True)[1]
    assert copies_among(FEATURES[places]) == CopiedRows(
        rows=ROWS, copies=ROWS - len(counts), worth=round(ROWS**2 / (counts**2).sum())
    )


@for_each(
    "form",
    [
        frame_of,
        lambda X: pl.from_pandas(frame_of(X)),
        lambda X: frame_of(X).assign(
            kind=np.where(X[:, 1] > 0, "up", "down"), when=pd.Timestamp("2026-01-01")
        ),
        lambda X: X.astype(np.float32),
        np.asfortranarray,
        lambda X: X.tolist(),
        lambda X: X.reshape(ROWS, 2, 2),
        lambda X: frame_of(X).assign(a=lambda frame: frame.a.where(frame.a > 0)),
        lambda X: np.where(np.arange(4) == 3, (X > 0) * 1.0, X),
    ],
)
def test_copies_are_found_whatever_the_rows_are_made_of(form):
    found = copies_among(form(FEATURES[SOME]))
    assert (found.rows, found.copies) == (ROWS, 200)
    assert copies_among(form(FEATURES)) is None


def test_both_zeros_are_one_number():
    X = np.column_stack([RNG.normal(size=ROWS), np.zeros(ROWS)])[SOME]
    X[-200:, 1] = -0.0
    assert copies_among(X).copies == 200


def test_a_single_column_and_categories_tell_no_rows_apart():
    assert copies_among(FEATURES[SOME][:, :1]) is None
    assert copies_among(RNG.integers(0, 3, (ROWS, 2))[SOME]) is None


def test_many_rows_are_looked_at_in_part():
    rows = 1_500_000
    X = np.random.default_rng(1).normal(size=(rows, 2))
    X[: rows // 10] = X[-(rows // 10) :]
    found = copies_among(X)
    assert found.rows == rows
    assert found.copies == pytest.approx(rows / 10, rel=0.02)
    assert found.worth == pytest.approx(rows / 1.2, rel=0.01)


# ---- what is not


def rounded(digits, columns, rows=10_000):
    return np.round(np.random.default_rng(2).normal(size=(rows, columns)), digits)


def money(rows=10_000):
    """Amounts that a twentieth of the rows have in common with others, and two categories."""
    rng = np.random.default_rng(3)
    amounts = np.round(rng.lognormal(4.0, 2.0, rows), 2)
    return np.column_stack([amounts, rng.integers(0, 3, rows), rng.integers(0, 2, rows)])


def categories(columns, levels, rows=10_000):
    return np.random.default_rng(4).integers(0, levels, (rows, columns))


PLAIN = {
    "iris": datasets.load_iris(return_X_y=True),
    "breast cancer": datasets.load_breast_cancer(return_X_y=True),
    "wine": datasets.load_wine(return_X_y=True),
    "diabetes": datasets.load_diabetes(return_X_y=True),
    "digits": datasets.load_digits(return_X_y=True),
    "linnerud": datasets.load_linnerud(return_X_y=True),
    "adult": load_adult(),
    "made": datasets.make_classification(5_000, random_state=0),
    "three digits": (rounded(3, 2), categories(1, 2)[:, 0]),
    "two digits": (rounded(2, 2), categories(1, 2)[:, 0]),
    "one digit": (rounded(1, 2), categories(1, 2)[:, 0]),
    "one coarse column": (rounded(2, 1), (rounded(2, 1)[:, 0] > 0).astype(int)),
    "whole numbers as floats": (rounded(0, 3), categories(1, 2)[:, 0]),
    "amounts": (money(), categories(1, 2)[:, 0]),
    "categories": (categories(3, 4), categories(1, 2)[:, 0]),
    "categories as floats": (categories(2, 40).astype(float), categories(1, 2)[:, 0]),
    "one of two": (np.eye(2)[categories(1, 2)[:, 0]], categories(1, 2)[:, 0]),
    "text": (pd.DataFrame({"a": ["x", "y"] * 500, "b": ["u", "v"] * 500}), np.arange(1_000) % 2),
    "dummies": (
        pd.get_dummies(load_adult()[0].select_dtypes(exclude="number"), dtype=float),
        load_adult()[1],
    ),
    "constant": (np.zeros((500, 2)), np.arange(500) % 2),
    "no columns": (np.zeros((500, 0)), np.arange(500) % 2),
    "a pair": (np.vstack([FEATURES, FEATURES[:1]]), np.append(LABELS, LABELS[0])),
}


@for_each("name", PLAIN)
def test_rows_that_chance_makes_equal_are_not_noticed(name):
    assert copies_among(PLAIN[name][0]) is None


@for_each("half", [0, 1])
def test_nor_in_a_half_of_the_iris_that_has_its_pair(half):
    X, _ = PLAIN["iris"]
    pair = np.flatnonzero((X[101] == X).all(axis=1))
    assert len(pair) == 2
    rows = np.union1d(np.arange(150)[half::2], pair)
    assert copies_among(X[rows]) is None


# ---- who is told


def told(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return made, caught


def test_the_owner_is_warned_once_when_a_guard_is_made_and_when_it_is_rotated(tmp_path):
    plan = {**PLAN, "ledger": tmp_path / "guard.db", "unwitnessed": True}
    guard, caught = told(lambda: made_guard(FEATURES[SOME], LABELS[SOME], **plan))
    (warning,) = caught
    assert warning.category is CopiedRowsWarning
    assert warning.filename == made_guards.__file__
    assert str(warning.message) == (
        "200 of 2,000 rows have exactly the features of other rows; copies are not independent: all rows are worth "
        "about 1,667, and intervals would be too narrow; pass groups= with one name for a row and its copies, or "
        "leave the copies out; if they are equal by chance, as rows of coarse numbers can be, nothing is wrong"
    )
    fresh, caught = told(lambda: guard.rotate(FEATURES[OFTEN], LABELS[OFTEN], early=True).guard)
    assert [one.category for one in caught] == [CopiedRowsWarning]
    assert caught[0].filename == __file__
    fresh.close()
    opened, caught = told(
        lambda: ReusableHoldout.open(plan["ledger"], FEATURES[OFTEN], LABELS[OFTEN], seed=1)
    )
    assert caught == []
    _, caught = told(lambda: opened.on("brier"))
    assert caught == []
    opened.close()


def test_no_label_shows_in_the_warning():
    """Copies whose labels had to agree would tell, row by row, which labels do."""
    said = [
        [str(warning.message) for warning in told(lambda y=y: made_guard(FEATURES[SOME], y, **PLAN))[1]]
        for y in (LABELS[SOME], RNG.permutation(LABELS), np.arange(ROWS) % 2)
    ]
    assert len(said[0]) == 1
    assert said[0] == said[1] == said[2]


def test_nothing_that_a_guard_tells_or_writes_depends_on_it():
    made = [told(lambda y=y: made_guard(FEATURES[SOME], y, **PLAN))[0] for y in (LABELS[SOME], 1 - LABELS)]
    assert made[0].plan == made[1].plan
    assert [repr(guard) for guard in made] == [repr(made[0])] * 2
    assert "cop" not in made[0]._view.ledger.configuration()


def test_groups_are_the_owners_word_and_labels_alone_repeat():
    for make in (
        lambda: made_guard(FEATURES[SOME], LABELS[SOME], groups=SOME, **PLAN),
        lambda: made_guard(None, LABELS[SOME], **PLAN),
        lambda: made_guard(sparse.csr_matrix(FEATURES[SOME]), LABELS[SOME], **PLAN),
        lambda: made_guard(None, np.arange(ROWS), metric="score", **PLAN),
    ):
        assert told(make)[1] == []


def test_rows_in_chunks_are_not_looked_at(tmp_path):
    frame_of(FEATURES[SOME]).assign(label=LABELS[SOME]).to_parquet(tmp_path / "rows.parquet")
    make = lambda: made_guard(ParquetRows(tmp_path / "rows.parquet"), "label", **PLAN)  # noqa: E731
    assert told(make)[1] == []


def test_where_warnings_are_errors_its_words_are_not_withheld_and_nothing_is_written(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HoldoutError, match="exactly the features") as caught:
            made_guard(FEATURES[SOME], LABELS[SOME], ledger=tmp_path / "guard.db", **PLAN)
    assert isinstance(caught.value, CopiedRowsWarning)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_no_digest_takes_are_refused_as_ever():
    X = np.zeros(ROWS, dtype=[("a", float), ("b", float)])
    refuses(HoldoutError, "must hold numbers, dates or text", made_guard, X, LABELS, **PLAN)
