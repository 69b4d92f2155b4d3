"""Reading of a submitted file: its predictions are checked and put into the order of the competition's rows.

The CSV file is read into Arrow arrays, without a Python object for each cell. So the memory that is needed grows only
in proportion to the size of the file.
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from reusable_holdout_leaderboard.files.forms import Expected, SubmissionError, shown

__all__ = ["parse_submission"]

_LONGEST_HEADER = 1 << 16
_SPARE_ROWS = 1_000
_SPARE_LABELS = 500  # a file may have ten different labels for each class, and this number in addition
_PIECE = 1 << 14  # rows that are converted to Python objects at a time
_BOM = b"\xef\xbb\xbf"
_SLACK = 1e-6  # rounding error that probabilities may have, as in the guard
_SHOWN = 5
_OTHERS = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "packed (zip)",
    b"\x1f\x8b": "packed (gzip)",
    b"BZh": "packed (bzip2)",
    b"\xfd7zXZ": "packed (xz)",
    b"\x28\xb5\x2f\xfd": "packed (zstd)",
}


def parse_submission(content: bytes, expected: Expected, *, in_order: bool = False) -> NDArray[Any]:
    r"""Return the predictions in a submitted file, in the order of the competition's rows.

    This function knows only public facts about the labels: ids, number of rows, and classes. So its messages may quote
    the file, and a file that does not fit costs nothing.

    Parameters
    ----------
    content : bytes
        CSV file with a header, in UTF-8, separated by commas or semicolons.
    expected : Expected
    in_order : bool
        True for a file without ids, whose rows have the order of ``expected.ids``.

    Returns
    -------
    numpy.ndarray of shape (rows,) or (rows, classes)
        Class labels, or float64.

    Raises
    ------
    SubmissionError
        If the file does not fit. The error lists all problems, with a few examples of each kind.

    Examples
    --------
    >>> from reusable_holdout_leaderboard import Expected
    >>> expected = Expected(ids=("a", "b"), rows=2, id_column="id", columns=("prediction",), response="scores")
    >>> parse_submission(b"id,prediction\nb,0.5\na,1", expected)
    array([1. , 0.5])
    """
    form = expected.ordered if in_order else expected
    body = content.removeprefix(_BOM)
    _check_content(body, form)
    columns = _columns(body, form)
    table = _Table(None, columns)
    if form.id_column is not None:
        table = _Table(columns[0], columns[1:])
    if not table.rows:
        raise SubmissionError(["the file must hold rows under a header; it has none"])
    order, problems = _order(table, form)
    values, wrong = (_labels if form.response == "labels" else _values)(table, form)
    if problems or wrong:
        raise SubmissionError([*problems, *wrong])
    return form.decoded(values if order is None else values[order])


# ---- CSV


def _check_content(content: bytes, form: Expected) -> None:
    size, most = len(content), form.max_bytes
    kinds = [kind for begins, kind in _OTHERS.items() if content.startswith(begins)]
    problem = ""
    if size > most:
        problem = f"a file may have at most {most:,} bytes; this one has {size:,}; leave other columns out"
    elif not content or content.isspace():
        problem = "the file must hold rows under a header; it is empty"
    elif kinds:
        problem = f"a file must be CSV; this one is {kinds[0]}; send CSV"
    else:
        try:
            if "\x00" in content.decode():
                problem = "a file must be text; this one contains NUL characters; send CSV"
        except UnicodeDecodeError as error:
            problem = f"a file must be text in UTF-8; byte {error.start + 1:,} is not; save it as UTF-8"
    if problem:
        raise SubmissionError([problem])


def _columns(body: bytes, form: Expected) -> list[Any]:
    """Return the expected columns of a CSV file as Arrow arrays, without space around the cells."""
    separator, names = _header_of(body)
    places = _places(names, form)
    unique = [str(number) for number in range(len(names))]
    body = body if b"\n" in body or b"\r" in body else body + b"\n"
    wrong: list[int] = []

    def skip(row: Any) -> str:
        wrong.append(row.number)
        return "skip" if len(wrong) <= _SHOWN else "error"

    read = pa.csv.ReadOptions(use_threads=False, column_names=unique, skip_rows=1, block_size=len(body))
    parse = pa.csv.ParseOptions(
        delimiter=separator, newlines_in_values=b'"' in body, invalid_row_handler=skip
    )
    convert = pa.csv.ConvertOptions(
        include_columns=[unique[place] for place in places],
        column_types=dict.fromkeys(unique, pa.string()),
        strings_can_be_null=False,
    )
    rows = None
    with contextlib.suppress(pa.ArrowInvalid):
        rows = pa.csv.read_csv(pa.BufferReader(body), read, parse, convert)
    if wrong:
        more = " and more" if len(wrong) > _SHOWN else ""
        listed = ", ".join(map(str, wrong[:_SHOWN]))
        problem = f"each line must have {len(names)} cells like the header; lines {listed}{more} do not"
    elif rows is None:
        problem = "the CSV file cannot be read; a quotation mark may be missing or unneeded"
    elif len(rows) > 2 * form.rows + _SPARE_ROWS:
        problem = f"{form.rows:,} rows are expected; there are {len(rows):,}"
    else:
        return [pc.utf8_trim_whitespace(_whole(column)) for column in rows.columns]
    raise SubmissionError([problem])


def _header_of(body: bytes) -> tuple[str, list[str]]:
    """Return the separator of a CSV file, and the names of its columns."""
    first = body[:_LONGEST_HEADER].splitlines()[0]
    if len(first) == _LONGEST_HEADER:
        raise SubmissionError([f"the header must have at most {_LONGEST_HEADER:,} bytes; it has more"])
    line = first.decode()
    separator = ";" if line.count(";") > line.count(",") else ","
    (cells,) = csv.reader([line], delimiter=separator) if line else ([],)
    return separator, [name.strip() for name in cells]


def _places(header: Sequence[str], form: Expected) -> list[int]:
    """Return the position of each expected column in a file's header."""
    wanted, problems = form.header(), []
    missing = [name for name in wanted if name not in header]
    twice = sorted({name for name in header if header.count(name) > 1}) if len(header) < 1_000 else []
    unknown = [name for name in header if name not in wanted]
    for names, what in ((missing, "missing"), (unknown, "unknown"), (twice, "more than once")):
        if names:
            more = ", ..." if len(names) > _SHOWN else ""
            problems.append(f"columns {what}: {', '.join(map(shown, names[:_SHOWN]))}{more}")
    if problems:
        listed = f"{', '.join(map(shown, wanted[:20]))}{', ...' * (len(wanted) > 20)}"
        raise SubmissionError([*problems, f"the columns must be {listed}"])
    return [header.index(name) for name in wanted]


def _whole(column: Any) -> Any:
    """Return a column of Arrow chunks as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


# ---- rows


class _Table(NamedTuple):
    ids: Any  # pyarrow.StringArray, empty texts for missing ids; or None
    predictions: list[Any]  # a pyarrow.StringArray for each expected column

    @property
    def rows(self) -> int:
        return len(self.predictions[0])

    def where(self, row: int) -> str:
        """Return the name of a row for messages: its id, or its number if it has no id."""
        one = "" if self.ids is None else self.ids[row].as_py()
        return f"id {shown(one)}" if one else f"row {row + 1}"


def _order(table: _Table, form: Expected) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Return the position of each expected row in the file, and the problems with the ids.

    The positions are None if the rows have the expected order already.
    """
    if form.ids is None or table.ids is None:
        if table.rows == form.rows:
            return None, []
        return None, [
            f"{form.rows:,} rows are expected, in the order of the competition; {table.rows:,} came"
        ]
    if table.ids.equals(form.id_texts):
        return None, []
    places = pc.index_in(form.id_texts, value_set=table.ids)
    if table.rows == form.rows and not places.null_count:  # so each id occurs exactly once
        return places.to_numpy(zero_copy_only=False).astype(np.int64), []
    return None, _wrong_ids(table, form, places)


def _wrong_ids(table: _Table, form: Expected, places: Any) -> list[str]:
    ids, expected = table.ids, form.id_texts
    empty = pc.equal(ids, "").to_numpy(zero_copy_only=False)
    unknown = pc.is_null(pc.index_in(ids, value_set=expected)).to_numpy(zero_copy_only=False) & ~empty
    first = pc.index_in(ids, value_set=ids).to_numpy(zero_copy_only=False)
    twice = (first < np.arange(table.rows)) & ~unknown & ~empty
    found = (
        (np.flatnonzero(empty), table.where, "row", "without an id"),
        (np.flatnonzero(unknown), _shown_in(ids), "id", "unknown"),
        (np.flatnonzero(twice), _shown_in(ids), "id", "more than once"),
        (np.flatnonzero(pc.is_null(places)), _shown_in(expected), "id", "missing"),
    )
    return [_counted(rows, say, noun, what) for rows, say, noun, what in found if len(rows)]


def _shown_in(ids: Any) -> Callable[[int], str]:
    return lambda row: shown(ids[row].as_py())


# ---- values


def _labels(table: _Table, form: Expected) -> tuple[NDArray[Any], list[str]]:
    classes = form.classes or ()
    parse: Callable[[str], Any] = _integer if isinstance(classes[0], int) else str
    places = {label: place for place, label in enumerate(classes)}
    coded = table.predictions[0].dictionary_encode()  # few different values, many rows
    listed = ", ".join(map(shown, classes[:10])) + (", ..." if len(classes) > 10 else "")
    if len(coded.dictionary) > 10 * len(classes) + _SPARE_LABELS:
        return np.array([]), [f"labels must be among {listed}; got {len(coded.dictionary):,} different ones"]
    known = (places.get(parse(value), -1) for value in coded.dictionary.to_pylist())
    codes = np.fromiter(known, np.int64, len(coded.dictionary))[coded.indices.to_numpy(zero_copy_only=False)]
    strange = np.flatnonzero(codes < 0)
    if not len(strange):
        return codes, []
    problem = f"of column {form.columns[0]!r} with a label that is not one of {listed}"
    return codes, [_counted(strange, _valued(table, table.predictions[0]), "row", problem)]


def _values(table: _Table, form: Expected) -> tuple[NDArray[Any], list[str]]:
    columns, problems = [], []
    for name, column in zip(form.columns, table.predictions, strict=True):
        numbers = _numbers(column)
        rows = np.flatnonzero(~np.isfinite(numbers))
        columns.append(numbers)
        if len(rows):
            what = f"of column {name!r} without a finite number"
            problems.append(_counted(rows, _valued(table, column), "row", what))
    values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    if form.response == "probabilities" and not problems:
        problems = _not_probabilities(table, values)
    return values, problems


def _valued(table: _Table, column: Any) -> Callable[[int], str]:
    return lambda row: f"{table.where(row)} ({shown(column[row].as_py())})"


def _numbers(column: Any) -> NDArray[np.float64]:
    try:
        return np.array(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:  # some text is no number, or is a number in another notation
        return np.fromiter(map(_number, _in_pieces(column)), np.float64, len(column))


def _in_pieces(column: Any) -> Iterator[Any]:
    """Yield the values of a column. To save memory, only some of them are Python objects at any time."""
    for start in range(0, len(column), _PIECE):
        yield from column.slice(start, _PIECE).to_pylist()


def _not_probabilities(table: _Table, values: NDArray[np.float64]) -> list[str]:
    outside = (values < -_SLACK) | (values > 1 + _SLACK)
    rows = np.flatnonzero(outside if values.ndim == 1 else outside.any(axis=1))
    if len(rows):
        return [_counted(rows, table.where, "row", "with a probability outside [0, 1]")]
    if values.ndim == 1:
        return []
    rows = np.flatnonzero(np.abs(values.sum(axis=1) - 1) > _SLACK)
    return [_counted(rows, table.where, "row", "whose probabilities do not sum to 1")] if len(rows) else []


def _number(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _integer(text: str) -> int | None:
    """Return the whole number in a text, such as 7, 7.0, 7e0 or true. Return None for other texts."""
    if text.lower() in {"true", "false"}:
        return int(text.lower() == "true")
    number = _number(text)
    if not math.isfinite(number) or number != int(number):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else int(number)


def _counted(rows: Sequence[int] | NDArray[Any], say: Callable[[int], str], noun: str, what: str) -> str:
    """Return the description of a problem: how many rows have it, and which are the first few of them."""
    more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    plural = "" if len(rows) == 1 else "s"
    return f"{len(rows):,} {noun}{plural} {what}: {', '.join(say(int(row)) for row in rows[:_SHOWN])}{more}"
