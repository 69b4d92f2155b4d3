"""The same predictions are the same question, whatever they are kept in."""

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import mae, resolve_metric, score

ROWS = 6
CODES = np.array([0, 1, 1, 0, 0, 1])
TEXT = np.array(["no", "yes"])[CODES]
Y = np.array([0, 1, 0, 1, 0, 1])

KEPT = {  # how any column may be kept
    "list": np.ndarray.tolist,
    "tuple": lambda one: tuple(one.tolist()),
    "list of NumPy values": list,
    "objects": lambda one: one.astype(object),
    "column": lambda one: one[:, None],
    "every third of a longer array": lambda one: np.repeat(one, 3)[::3],
    "Fortran order": lambda one: np.asfortranarray(np.stack([one, one]))[0],
    "pandas Series": lambda one: pd.Series(one, index=range(100, 106)),
    "pandas categories": lambda one: pd.Series(one).astype("category"),
    "pandas Index": pd.Index,
    "pandas Categorical": pd.Categorical,
    "pandas DataFrame": lambda one: pd.DataFrame({"prediction": one}),
    "polars Series": pl.Series,
    "polars DataFrame": lambda one: pl.DataFrame({"prediction": one}),
}  # fmt: skip


def kept_in_all(column, **otherwise):
    return {name: keep(column) for name, keep in KEPT.items()} | otherwise


DTYPES = "i1 u1 i2 u4 i8 u8 f2 f4 f8 g >i8 >f4 ?"
NUMBERS = kept_in_all(
    CODES,
    **{f"dtype {one}": CODES.astype(one) for one in DTYPES.split()},
    booleans=[bool(code) for code in CODES],
    boolean_objects=CODES.astype(bool).astype(object),
    float_objects=CODES.astype(float).astype(object),
    read_only=np.frombuffer(CODES.tobytes(), CODES.dtype),
    without_masks=np.ma.masked_array(CODES, np.zeros(ROWS)),
    pandas_nullable=pd.Series(CODES, dtype="Int64"),
    pandas_nullable_booleans=pd.Series(CODES, dtype="boolean"),
    polars_booleans=pl.Series(CODES.astype(bool)),
    sparse_matrix=scipy.sparse.csr_matrix(CODES[:, None]),
    sparse_array=scipy.sparse.coo_array(CODES[:, None]),
    negative_zeros=np.where(CODES == 0, -0.0, 1.0),
)
TEXTS = kept_in_all(
    TEXT,
    wider=TEXT.astype("U40"),
    big_endian=TEXT.astype(">U3"),
    variable_width=TEXT.astype(np.dtypes.StringDType()),
    pandas_objects=pd.Series(TEXT, dtype=object),
    pandas_strings=pd.Series(TEXT, dtype="string"),
    in_order=pd.Series(TEXT).astype(pd.CategoricalDtype(["yes", "maybe", "no"], ordered=True)),
    polars_categories=pl.Series(TEXT.tolist(), dtype=pl.Categorical),
)
PROBABILITIES = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 0.125])
REALS = kept_in_all(
    PROBABILITIES,
    **{f"dtype {one}": PROBABILITIES.astype(one) for one in ("f4", ">f8", "g")},
    pandas_nullable=pd.Series(PROBABILITIES, dtype="Float64"),
    sparse=scipy.sparse.csr_matrix(PROBABILITIES[:, None]),
    negative_zero=np.where(PROBABILITIES == 0, -0.0, PROBABILITIES),
)
PAIRS = np.stack([1 - PROBABILITIES, PROBABILITIES], axis=1)
MATRICES = {
    "array": PAIRS,
    "list of lists": PAIRS.tolist(),
    "Fortran order": np.asfortranarray(PAIRS),
    "pandas DataFrame": pd.DataFrame(PAIRS, columns=["no", "yes"]),
    "polars DataFrame": pl.DataFrame(PAIRS),
    "sparse": scipy.sparse.csr_matrix(PAIRS),
    "float32": PAIRS.astype("f4"),
}


def identity(prepared):
    return prepared.tobytes(), prepared.dtype.str, prepared.shape, prepared.flags.c_contiguous


CODED = (CODES.astype("u1").tobytes(), "|u1", (ROWS,), True)
FLOATS = (PROBABILITIES.tobytes(), PROBABILITIES.dtype.str, (ROWS,), True)
QUESTIONS = [  # the metric, its labels, predictions in every container, and the one question they are
    *(
        ("accuracy", Y.astype(dtype), kept, CODED)
        for kept in NUMBERS.values()
        for dtype in (int, bool, float)
    ),
    *(("accuracy", np.array(["no", "yes"])[Y], kept, CODED) for kept in TEXTS.values()),
    *((name, Y, kept, FLOATS) for kept in REALS.values() for name in ("brier", "roc_auc")),
    *(("log_loss", Y, kept, FLOATS) for kept in MATRICES.values()),
]


@for_each(("name", "y", "kept", "expected"), QUESTIONS)
def test_predictions_that_mean_the_same_are_one_question_in_any_container(name, y, kept, expected):
    bound = resolve_metric(name).bind(y)
    assert identity(bound.prepare(kept)) == expected
    assert identity(bound.prepare_many([kept, kept])[1]) == expected


@for_each(
    ("kept", "plain", "classes"),
    [
        *((kept, CODES, [0, 1]) for kept in NUMBERS.values()),
        *((kept, TEXT, ["no", "yes"]) for kept in TEXTS.values()),
    ],
)
def test_private_labels_may_be_kept_in_anything_too(kept, plain, classes):
    bound = resolve_metric("accuracy").bind(kept)
    assert bound.score(bound.prepare(plain)[None]).tolist() == [1 << 32]
    assert bound.classes.tolist() == classes


@for_each("kept", REALS)
def test_private_targets_may_be_kept_in_anything_too(kept):
    assert mae(lower=0, upper=1).measure(REALS[kept], PROBABILITIES) == 0


@for_each("kept", ["array", "list", "arrays", "frames"])
def test_a_batch_is_its_queries_in_any_container(kept):
    bound = resolve_metric("accuracy").bind(Y)
    batch = np.stack([CODES, 1 - CODES, Y])
    ways = {
        "array": batch,
        "list": batch.tolist(),
        "arrays": tuple(batch),
        "frames": [pd.DataFrame({"a": batch[0]}), pl.Series(batch[1]), batch[2].astype(bool)],
    }
    assert identity(bound.prepare_many(ways[kept])) == identity(batch.astype("u1"))


def test_a_batch_of_matrices_is_three_dimensional():
    bound = resolve_metric("log_loss").bind([0, 1, 2, 0])
    batch = np.random.default_rng(0).dirichlet(np.ones(3), (5, 4))
    assert identity(bound.prepare_many(batch)) == identity(batch)
    assert identity(bound.prepare_many(list(batch))) == identity(batch)
    refuses(InputError, r"predictions\[0\]: .*\(4, 3\)", bound.prepare_many, batch[0])


WHOLE = st.one_of(
    st.integers(-3, 3), st.integers(-200, 200), st.integers(-(2**40), 2**40), st.integers(-(2**63), 2**63 - 1)
)


@given(classes=st.sets(WHOLE, min_size=2, max_size=12), data=st.data())
def test_any_whole_numbers_are_coded_by_their_place(classes, data):
    classes = sorted(classes)
    labels = data.draw(st.lists(st.sampled_from(classes), min_size=1, max_size=20))
    bound = resolve_metric("accuracy").bind(np.array(labels), classes=classes)
    expected = [classes.index(label) for label in labels]
    fitting = [
        t
        for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
        if all(np.can_cast(np.min_scalar_type(x), t) for x in labels)
    ]
    for dtype in fitting:
        assert bound.prepare(np.array(labels, dtype)).tolist() == expected


@given(classes=st.sets(WHOLE, min_size=2, max_size=12), stranger=WHOLE)
def test_a_number_that_is_no_class_is_never_coded(classes, stranger):
    bound = resolve_metric("accuracy").bind(np.array(sorted(classes)))
    predictions = np.array([stranger, *sorted(classes)[1:]])
    if stranger in classes:
        bound.prepare(predictions)
    else:
        refuses(InputError, f"got {stranger};", bound.prepare, predictions)


@for_each(("classes", "dtype"), [(2, "u1"), (255, "u1"), (256, "u2"), (65_536, "u4")])
def test_codes_are_as_narrow_as_the_classes_allow(classes, dtype):
    for labels in (np.arange(classes), np.arange(classes) * 3 - 50, np.arange(classes).astype(str)):
        bound = resolve_metric("accuracy").bind(labels)
        prepared = bound.prepare(labels)
        assert prepared.dtype == dtype
        assert np.array_equal(bound.classes[prepared], labels)


@for_each("stray", [1e-7, -1e-7, 9e-7])
def test_probabilities_may_stray_a_little_and_are_brought_back(stray):
    bound = resolve_metric("brier").bind(Y)
    assert bound.prepare([1 + abs(stray), -abs(stray), 0.5, 0, 1, 1]).tolist() == [1, 0, 0.5, 0, 1, 1]
    three = resolve_metric("brier").bind([0, 1, 2])
    prepared = three.prepare([[1 + stray, 0, -stray], [0.5, 0.5, stray], [0.2, 0.3, 0.5 + stray]])
    assert prepared.min() >= 0
    assert prepared.max() <= 1


@for_each(("label", "wrapped"), [(2**64 - 1, -1), (2**63, -(2**63))])
@for_each("dtype", ["u8", "f8"])
def test_a_number_beyond_64_bits_is_not_the_class_it_wraps_to(label, wrapped, dtype):
    bound = resolve_metric("accuracy").bind(np.array([wrapped, 1]))
    refuses(InputError, "must be among the classes", bound.prepare, np.array([label, 1], dtype))


def test_answers_of_a_private_set_may_come_as_bytes_of_their_hashes():
    bound = resolve_metric("accuracy").bind(TEXT, classes="private")
    prepared = bound.prepare(np.char.upper(TEXT))
    assert bound.prepare(prepared.view("V8")).tolist() == prepared.tolist()
    assert bound.score(np.stack([prepared, prepared[::-1]])).tolist() == [1 << 32, 0]
    numbers = resolve_metric("accuracy").bind(np.arange(6) * 7, classes="private")
    for answers in (TEXT, prepared.view("V8")):
        refuses(InputError, "predicted labels must be", numbers.prepare, answers)


# ---- piece by piece


class Pieces:
    """A column that comes piece by piece, two rows each."""

    def __init__(self, *values):
        self.values = values

    def row_pieces(self):
        return (one[start : start + 2] for one in self.values for start in range(0, len(one), 2))


@for_each(
    "y",
    [CODES, CODES == 1, TEXT, CODES + 2**40, CODES.astype("u8"), np.array(["b", "c", "a", "a", "d", "b"])],
)
def test_labels_and_predictions_may_come_piece_by_piece(y):
    for kept in (Pieces(y), dask.array.from_array(y, chunks=4), Pieces(y[:4], y[:0], y[4:])):
        bound = resolve_metric("accuracy").bind(kept)
        assert bound.classes.tolist() == sorted(set(y.tolist()))
        assert identity(bound.prepare(kept)) == identity(bound.prepare(y))
        assert bound.score(bound.prepare(y)[None]).tolist() == [1 << 32]
    refuses(InputError, "predictions must have 6 rows; got 4;", bound.prepare, Pieces(y[:4]))
    assert list(score().bind(Pieces(np.arange(6)))._form._ids.names) == [*range(6)]


def test_pieces_that_do_not_fit_together_are_refused():
    for pieces, words in (
        ((CODES, TEXT), "one kind in every chunk; got 2"),
        ((np.ones((2, 2)),), "one column; got 1 axes"),
    ):
        refuses(InputError, words, resolve_metric("accuracy").bind, Pieces(*pieces))
