"""Submitted files: forms that fit, and explanations of those that do not."""

import pickle

import numpy as np
import pytest
from cases import refuses
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


def problems(text, expected):
    with pytest.raises(SubmissionError) as refused:
        parse_submission(text if isinstance(text, bytes) else text.encode(), expected)
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
    assert parse_submission(content, LABELS).tolist() == ["no", "yes", "no", "yes"]


@pytest.mark.parametrize(
    ("written", "read"), [("0", 0), ("1", 1), ("7.0", 7), ("1e0", 1), ("true", 1), ("False", 0)]
)
def test_whole_numbers_may_be_written_in_several_ways(written, read):
    content = f"id,prediction\na,{written}\nb,0\n007,0\nNA,0\n".encode()
    assert parse_submission(content, NUMBERS)[0] == read


def test_probabilities_have_a_column_for_each_class_in_any_order():
    content = b"z,id,x,y\n0.5,b,0.25,0.25\n0,a,1,0\n"
    assert parse_submission(content, CHANCES).tolist() == [[1, 0, 0], [0.25, 0.25, 0.5]]


def test_rows_without_ids_are_taken_in_their_order():
    assert parse_submission(b"score\n3\n1\n2\n", IN_ORDER).tolist() == [3, 1, 2]
    content = b"prediction\nyes\nno\nno\nyes\n"
    assert parse_submission(content, LABELS, in_order=True).tolist() == ["yes", "no", "no", "yes"]
    refuses(SubmissionError, "columns missing: 'id'", parse_submission, content, LABELS)


@pytest.mark.parametrize("expected", [LABELS, NUMBERS, SCORES, CHANCES, IN_ORDER])
def test_a_sample_fits(expected):
    predictions = parse_submission(expected.sample(), expected)
    assert expected.canonical(predictions).shape[0] == expected.rows


@given(st.permutations(range(6)), st.lists(st.floats(-1e300, 1e300), min_size=6, max_size=6))
def test_values_are_read_exactly_in_any_order_of_rows(order, values):
    expected = Expected(ids=tuple("abcdef"), rows=6, id_column="id", columns=("score",), response="scores")
    rows = "".join(f"{'abcdef'[row]},{values[row]!r}\n" for row in order)
    assert parse_submission(f"id,score\n{rows}".encode(), expected).tolist() == values


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


SMALL = Expected(ids=IDS, rows=4, id_column="id", columns=("score",), response="scores", max_bytes=100)
PROBLEMS = {  # of a file, what is listed
    "ids": (
        ("id,prediction\na,no\na,yes\nx,no\n,no\n", LABELS),
        "1 row without an id: row 4|1 id unknown: 'x'|1 id more than once: 'a'|3 ids missing: 'b', '007', 'NA'",
    ),
    "many": (
        ("id,score\n" + "".join(f"x{row},0\n" for row in range(9)), SCORES),
        "9 ids unknown: 'x0', 'x1', 'x2', 'x3', 'x4' and 4 more|4 ids missing: 'a', 'b', '007', 'NA'",
    ),
    "labels": (
        ("id,prediction\na,no\nb,Yes\n007,\nNA,nan\n", LABELS),
        "3 rows of column 'prediction' with a label that is not one of 'no', 'yes': "
        "id 'b' ('Yes'), id '007' (''), id 'NA' ('nan')",
    ),
    "beyond": (("id,x,y,z\nb,1.5,-0.5,0\na,1,0,0\n", CHANCES), "1 row with a probability outside [0, 1]: id 'b'"),
    "sums": (("id,x,y,z\nb,0.5,0.4,0\na,1,0,0\n", CHANCES), "1 row whose probabilities do not sum to 1: id 'b'"),
    "rows": (("score\n1\n2\n", IN_ORDER), "3 rows are expected, in the order of the competition; 2 came"),
    "widths": (
        ("id,prediction\na,no\nb\n007,no,no\nNA,no\n", LABELS),
        "each line must have 2 cells like the header; lines 3, 4 do not",
    ),
    "bytes": (
        ("id,score\n" + "a,1\n" * 30, SMALL),
        "a file may have at most 100 bytes; this one has 129; leave other columns out",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_problems_of_a_file_are_listed_at_once(name):
    (content, expected), listed = PROBLEMS[name]
    assert problems(content, expected) == listed.split("|")


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"id,prediction\n", "it has none"),
        ("id,prediction\na,né\n".encode("latin-1"), "byte 18 is not; save it as UTF-8"),
        ("id,prediction\na,no\n".encode("utf-16"), "byte 1 is not"),
        (b"id,prediction\na,n\x00o\n", "contains NUL characters"),
        (b'id,prediction\na,"no\nb,yes\n', "3 ids missing: 'b', '007', 'NA'"),
        (b"id,prediction\n" + b"a\n" * 9, "lines 2, 3, 4, 5, 6 and more do not"),
        (b"a," * 40_000, "the header must have at most 65,536 bytes"),
        (b"id,prediction\n" + b"a,no\n" * 2_000, "4 rows are expected; there are 2,000"),
        (b"id,prediction\n" + b"".join(b"a,%d\n" % n for n in range(1_008)), "'yes'; got 1,008 different"),
        (b"PAR1 and then something else", "this one is Parquet; send CSV"),
        *(
            (begins + b"x" * 1_000, f"this one is packed ({kind}); send CSV")
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
    assert any(words in one for one in problems(content, LABELS))


@settings(max_examples=200)
@given(st.binary(max_size=60) | st.text(alphabet='id,;"\n\r0aé\x00', max_size=60).map(str.encode))
def test_no_file_raises_another_error(content):
    for whole in (content, b"\xef\xbb\xbf" + content, b"id,score\n" + content):
        refuses(SubmissionError, "", parse_submission, whole, SCORES)


def test_a_submission_error_can_be_pickled():
    error = SubmissionError(["one", "two"])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems) == (str(error), error.problems)
    assert str(again).startswith("one; two")
