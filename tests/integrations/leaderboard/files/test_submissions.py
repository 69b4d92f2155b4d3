"""Submitted files: forms that fit, and explanations of those that do not."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reusable_holdout_leaderboard import Expected, SubmissionError, parse_submission

IDS = ("a", "b", "007", "NA")
LABELS = Expected(
    ids=IDS, rows=4, id_column="id", columns=("prediction",), response="labels", classes=("no", "yes")
)
NUMBERS = Expected(
    ids=IDS, rows=4, id_column="id", columns=("prediction",), response="labels", classes=(0, 1, 7)
)
SCORES = Expected(ids=IDS, rows=4, id_column="id", columns=("score",), response="scores")
CHANCES = Expected(
    ids=("a", "b"),
    rows=2,
    id_column="id",
    columns=("x", "y", "z"),
    response="probabilities",
    classes=("x", "y", "z"),
)
IN_ORDER = Expected(ids=None, rows=3, id_column=None, columns=("score",), response="values")


def problems(text, expected, filename="mine.csv"):
    with pytest.raises(SubmissionError) as refused:
        parse_submission(text if isinstance(text, bytes) else text.encode(), filename, expected)
    assert str(refused.value).endswith("nothing was asked and nothing was charged")
    return refused.value.problems


# ---- files that fit


@pytest.mark.parametrize(
    "content",
    [
        b"id,prediction\nNA,yes\n007,no\nb,yes\na,no\n",
        b"\xef\xbb\xbfid,prediction\r\na,no\r\nb,yes\r\n007,no\r\nNA,yes",
        b"prediction;id\nno;a\nyes;b\nno;007\nyes;NA\n",
        b'"id" , "prediction"\n"a","no"\n b , yes \n\n007,no\nNA,yes\n'.replace(b'" , "', b'","'),
    ],
    ids=["any order of rows", "Windows", "semicolons", "quoted, blank lines and space"],
)
def test_labels_are_put_into_the_order_of_the_rows(content):
    assert parse_submission(content, "mine.csv", LABELS).tolist() == ["no", "yes", "no", "yes"]


@pytest.mark.parametrize(
    ("written", "read"),
    [("0", 0), ("1", 1), ("7.0", 7), ("1e0", 1), ("true", 1), ("False", 0)],
)
def test_whole_numbers_may_be_written_in_several_ways(written, read):
    content = f"id,prediction\na,{written}\nb,0\n007,0\nNA,0\n".encode()
    assert parse_submission(content, "mine.csv", NUMBERS)[0] == read


def test_parquet_of_several_types_is_read(parquet):
    for kind in (np.int8, np.uint64, np.float32, np.float64):
        content = parquet(id=list(IDS), prediction=np.array([0, 1, 7, 0], dtype=kind))
        assert parse_submission(content, "mine.parquet", NUMBERS).tolist() == [0, 1, 7, 0]
    assert parse_submission(content, "no-ending", NUMBERS).tolist() == [0, 1, 7, 0]


def test_parquet_ids_may_be_numbers(parquet):
    expected = Expected(ids=("3", "1", "2"), rows=3, id_column="id", columns=("score",), response="scores")
    content = parquet(id=np.array([1, 2, 3]), score=np.array([0.1, 0.2, 0.3]))
    assert parse_submission(content, "mine.pq", expected).tolist() == [0.3, 0.1, 0.2]


def test_probabilities_have_a_column_for_each_class_in_any_order():
    content = b"z,id,x,y\n0.5,b,0.25,0.25\n0,a,1,0\n"
    assert parse_submission(content, "mine.csv", CHANCES).tolist() == [[1, 0, 0], [0.25, 0.25, 0.5]]


def test_rows_without_ids_are_taken_in_their_order():
    assert parse_submission(b"score\n3\n1\n2\n", "mine.csv", IN_ORDER).tolist() == [3, 1, 2]
    content = b"prediction\nyes\nno\nno\nyes\n"
    assert parse_submission(content, "x.csv", LABELS, in_order=True).tolist() == ["yes", "no", "no", "yes"]
    with pytest.raises(SubmissionError, match="columns missing: 'id'"):
        parse_submission(content, "x.csv", LABELS)


@pytest.mark.parametrize("expected", [LABELS, NUMBERS, SCORES, CHANCES, IN_ORDER])
def test_a_sample_fits(expected):
    predictions = parse_submission(expected.sample(), "sample.csv", expected)
    assert expected.canonical(predictions).shape[0] == expected.rows


@given(st.permutations(range(6)), st.lists(st.floats(-1e300, 1e300), min_size=6, max_size=6))
def test_values_are_read_exactly_in_any_order_of_rows(order, values):
    expected = Expected(ids=tuple("abcdef"), rows=6, id_column="id", columns=("score",), response="scores")
    rows = "".join(f"{'abcdef'[row]},{values[row]!r}\n" for row in order)
    assert parse_submission(f"id,score\n{rows}".encode(), "x.csv", expected).tolist() == values


def test_equal_predictions_have_equal_digests_and_others_have_not():
    same = [
        LABELS.digest(LABELS.canonical(one))
        for one in (["no", "yes", "no", "no"], np.array(["no", "yes", "no", "no"]))
    ]
    other = LABELS.digest(LABELS.canonical(["no", "yes", "no", "yes"]))
    assert len({*same, other}) == 2
    assert SCORES.digest(SCORES.canonical([0, 1, 2, 3])) == SCORES.digest(
        SCORES.canonical(np.array([-0.0, 1, 2, 3], dtype=np.float32))
    )


# ---- files that do not fit


def test_all_problems_of_ids_are_listed_at_once():
    assert problems("id,prediction\na,no\na,yes\nx,no\n,no\n", LABELS) == [
        "1 row without an id: row 4",
        "1 id unknown: 'x'",
        "1 id more than once: 'a'",
        "3 ids missing: 'b', '007', 'NA'",
    ]


def test_of_many_problems_the_first_few_are_listed():
    rows = "".join(f"x{row},0\n" for row in range(9))
    assert problems(f"id,score\n{rows}", SCORES)[0] == (
        "9 ids unknown: 'x0', 'x1', 'x2', 'x3', 'x4' and 4 more"
    )


def test_unknown_labels_are_listed_with_their_rows():
    assert problems("id,prediction\na,no\nb,Yes\n007,\nNA,nan\n", LABELS) == [
        "3 rows of column 'prediction' with a label that is not one of 'no', 'yes': "
        "id 'b' ('Yes'), id '007' (''), id 'NA' ('nan')"
    ]


@pytest.mark.parametrize("written", ["2", "0.5", "x", "", "nan", "inf", "1_0", "1e400"])
def test_numbers_that_are_no_class_are_refused(written):
    assert (
        "not one of 0, 1, 7: id 'b'"
        in problems(f"id,prediction\na,0\nb,{written}\n007,0\nNA,0\n", NUMBERS)[0]
    )


@pytest.mark.parametrize("written", ["", "nan", "NaN", "inf", "-inf", "x", "1e999", "0,5", "1_0", "0x10"])
def test_cells_without_a_finite_number_are_listed_with_their_rows(written):
    (problem,) = problems(f'id,score\na,0\nb,"{written}"\n007,0\nNA,0\n', SCORES)
    assert problem == f"1 row of column 'score' without a finite number: id 'b' ({written!r})"


def test_missing_values_of_parquet_are_listed(parquet):
    content = parquet(id=[*IDS[:3], None], score=[0.1, None, float("nan"), 1.0])
    assert problems(content, SCORES, "x.parquet") == [
        "1 row without an id: row 4",
        "1 id missing: 'NA'",
        "2 rows of column 'score' without a finite number: id 'b' (None), id '007' (nan)",
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1.5,-0.5,0", "with a probability outside [0, 1]"),
        ("0.5,0.4,0", "whose probabilities do not sum to 1"),
    ],
)
def test_rows_without_probabilities_are_listed(row, words):
    assert problems(f"id,x,y,z\nb,{row}\na,1,0,0\n", CHANCES) == [f"1 row {words}: id 'b'"]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("id,label", "columns missing: 'prediction'"),
        (",id,prediction", "columns unknown: ''"),
        ("id,prediction,prediction", "columns more than once: 'prediction'"),
    ],
)
def test_columns_that_are_missing_unknown_or_double_are_named(header, problem):
    found = problems(f"{header}\n1,2,3\n", LABELS)
    assert problem in found
    assert found[-1] == "the columns must be 'id', 'prediction'"


def test_a_file_without_ids_must_have_as_many_rows():
    assert problems("score\n1\n2\n", IN_ORDER) == [
        "3 rows are expected, in the order of the competition; 2 came"
    ]


def test_rows_of_another_width_are_named():
    assert problems("id,prediction\na,no\nb\n007,no,no\nNA,no\n", LABELS) == [
        "rows must have 2 cells like the header; rows 2, 3 do not"
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"id,prediction\n", "it has none"),
        ("id,prediction\na,né\n".encode("latin-1"), "byte 18 is not; save it as UTF-8"),
        ("id,prediction\na,no\n".encode("utf-16"), "byte 1 is not"),
        (b"id,prediction\na,n\x00o\n", "zero bytes"),
        (b'id,prediction\na,"no\nb,yes\n', "line 3 of the CSV file cannot be read"),
        (b"id,prediction\na," + b"n" * 70_000, "line 2 must have at most 65,536 characters"),
        (b"id,prediction\n" + b"a,no\n" * 2_000, "4 rows are expected; there are more than 1,008"),
        (b"PAR1 and then something else", "the Parquet file cannot be read"),
        *(
            (begins + b"x" * 1_000, f"this one is packed ({kind}); unpack it")
            for begins, kind in (
                (b"PK\x03\x04", "zip"),
                (b"\x1f\x8b", "gzip"),
                (b"BZh9", "bzip2"),
                (b"\xfd7zXZ", "xz"),
                (b"\x28\xb5\x2f\xfd", "zstd"),
            )
        ),
    ],
)
def test_an_unreadable_file_is_explained(content, words):
    assert words in problems(content, LABELS)[0]


def test_a_file_that_is_too_large_is_not_read():
    small = Expected(ids=IDS, rows=4, id_column="id", columns=("score",), response="scores", max_bytes=100)
    assert problems(b"id,score\n" + b"a,1\n" * 30, small) == [
        "a file may have 100 bytes; this one has 129; leave other columns out"
    ]


def test_a_small_parquet_file_that_unpacks_to_a_large_one_is_not_read(parquet):
    content = parquet(id=list(IDS), score=["x" * 20_000_000] * 4)
    assert len(content) < 16 << 20
    assert "bytes unpacked" in problems(content, SCORES, "x.parquet")[0]


def test_a_parquet_file_with_far_too_many_rows_is_not_read(parquet):
    content = parquet(id=["a"] * 2_000, score=[0.5] * 2_000)
    assert "4 rows are expected" in problems(content, SCORES, "x.parquet")[0]


def test_parquet_columns_of_lists_are_refused(parquet):
    content = parquet(id=list(IDS), score=[[1.0]] * 4)
    assert problems(content, SCORES, "x.parquet") == ["columns must hold text or numbers; 'score' do not"]


def test_a_long_value_is_shown_in_part():
    content = f"id,score\na,{'9' * 50}x\nb,0\n007,0\nNA,0\n"
    assert "(''9" not in (problem := problems(content, SCORES)[0])
    assert problem.endswith("99999...)")
    assert len(problem) < 120


@settings(max_examples=200)
@given(st.binary(max_size=60) | st.text(alphabet='id,;"\n\r0aé\x00', max_size=60).map(str.encode))
def test_no_file_raises_another_error(content):
    for name in ("x.csv", "x.parquet"):
        for whole in (content, b"id,score\n" + content, b"PAR1" + content + b"PAR1"):
            with pytest.raises(SubmissionError):
                parse_submission(whole, name, SCORES)


def test_a_damaged_parquet_file_raises_no_other_error(parquet):
    content = parquet(id=list(IDS), score=[0.1, 0.2, 0.3, 0.4])
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 200):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        try:
            predictions = parse_submission(bytes(damaged), "x.parquet", SCORES)
        except SubmissionError:
            continue
        assert predictions.shape == (4,)


def test_a_submission_error_can_be_pickled():
    error = SubmissionError(["one", "two"])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems) == (str(error), error.problems)
    assert str(again).startswith("one; two")
