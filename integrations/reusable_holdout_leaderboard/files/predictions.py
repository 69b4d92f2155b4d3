"""A file's predictions: read, checked, and put into the order of the rows.

CSV is read into Arrow's memory, without a Python object for each cell, so it takes memory in proportion to its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from reusable_holdout_leaderboard.files.csv_rows import LONGEST_LINE, check_lines, read_by_rows
from reusable_holdout_leaderboard.files.forms import (
    Expected,
    Form,
    SubmissionError,
    is_parquet,
    separator_of,
    shown,
)
from reusable_holdout_leaderboard.files.parquet import read_parquet

__all__ = ["decoded", "parse_submission"]

_SMALL_BYTES = 1 << 20
_PIECE = 1 << 14  # rows that are Python objects at a time
_BOM = b"\xef\xbb\xbf"
_SLACK = 1e-6  # of probabilities, as in the guard
_SHOWN = 5
_PACKED = {
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_Read = Callable[[bytes, str, Form], NDArray[Any]]


def parse_submission(
    content: bytes,
    filename: str,
    expected: Expected,
    *,
    in_order: bool = False,
    elsewhere: _Read | None = None,
) -> NDArray[Any]:
    r"""Return the predictions of a submitted file, in the order of the rows.

    Everything known here about the labels is public: ids, number of rows, classes. So messages may quote the file, and
    a file that does not fit costs nothing.

    Parameters
    ----------
    content : bytes
        CSV with a header, in UTF-8, separated by commas or semicolons; or Parquet.
    filename : str
        The file is Parquet if this ends in ".parquet" or ".pq", or if the content is.
    expected : Expected
    in_order : bool
        True for a file without ids, whose rows have the order of ``expected.ids``.
    elsewhere : callable, optional
        Reader for files that may take much memory: Parquet, and CSV of more than 1 MiB. A server reads them in a
        process of its own.

    Returns
    -------
    numpy.ndarray of shape (rows,) or (rows, classes)
        Class labels, or float64.

    Raises
    ------
    SubmissionError
        With all problems, and the first examples of each kind.

    Examples
    --------
    >>> from reusable_holdout_leaderboard import Expected
    >>> expected = Expected(ids=("a", "b"), rows=2, id_column="id", columns=("prediction",), response="scores")
    >>> parse_submission(b"id,prediction\nb,0.5\na,1", "mine.csv", expected)
    array([1. , 0.5])
    """
    form = expected.ordered_form if in_order else expected.form
    small = len(content) <= _SMALL_BYTES and not is_parquet(content, filename)
    here = small or elsewhere is None or len(content) > form.max_bytes
    read: _Read = decoded if here or elsewhere is None else elsewhere
    return expected.decoded(read(content, filename, form))


def decoded(content: bytes, filename: str, form: Form) -> NDArray[Any]:
    """Return predictions in the order of the rows: places among the classes, or float64.

    Raises
    ------
    SubmissionError
        With all problems, and the first examples of each kind.
    """
    if len(content) > form.max_bytes:
        raise SubmissionError(
            [
                f"a file may have {form.max_bytes:,} bytes; this one has {len(content):,}; leave other columns out"
            ]
        )
    if not content or content.isspace():
        raise SubmissionError(["the file must hold rows under a header; it is empty"])
    packed = [kind for begins, kind in _PACKED.items() if content.startswith(begins)]
    if packed:
        raise SubmissionError([f"a file must be CSV or Parquet; this one is packed ({packed[0]}); unpack it"])
    table = _table((read_parquet if is_parquet(content, filename) else _read_csv)(content, form), form)
    order, problems = _order(table, form)
    values, wrong = _labels(table, form) if form.labels else _values(table, form)
    if problems or wrong:
        raise SubmissionError([*problems, *wrong])
    return values if order is None else values[order]


# ---- CSV


def _read_csv(content: bytes, form: Form) -> list[Any]:
    """Return the expected columns of a CSV file, without space around their cells.

    Arrow reads files without quotation marks. The standard library reads all others, row by row; its messages are
    better.
    """
    _check_text(content)
    body = content.removeprefix(_BOM)
    columns = None if b'"' in body else _by_arrow(body, form)
    return read_by_rows(content, form) if columns is None else columns


def _check_text(content: bytes) -> None:
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
    longest = int(np.diff(ends, prepend=-1, append=len(content)).max())
    if longest > LONGEST_LINE or b"\x00" in content:
        check_lines(content)


def _by_arrow(body: bytes, form: Form) -> list[Any] | None:
    """Return the columns of a file without quotation marks; None if Arrow cannot read it."""
    first = body[:LONGEST_LINE].split(b"\n", 1)[0].split(b"\r", 1)[0]
    try:
        line = first.decode()
    except UnicodeDecodeError:
        return None
    separator = separator_of(line)
    names = [name.strip() for name in line.split(separator)]
    places = form.places(names if line else [])
    try:
        rows = pa.csv.read_csv(
            pa.BufferReader(pa.py_buffer(body).slice(len(first))),
            read_options=pa.csv.ReadOptions(use_threads=False, column_names=names),
            parse_options=pa.csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:  # ragged rows, no text, or no row at all
        return None
    if len(rows) > form.most_rows:
        raise form.too_many()
    return [pc.utf8_trim_whitespace(rows.column(place)) for place in places]


# ---- tables


class _Table(NamedTuple):
    ids: Any  # pyarrow.StringArray, empty texts for missing ids; or None
    predictions: list[Any]  # a pyarrow.Array for each expected column

    @property
    def rows(self) -> int:
        return len(self.predictions[0])

    def where(self, row: int) -> str:
        """Return the name of a row for a message."""
        one = "" if self.ids is None else self.ids[row].as_py()
        return f"id {shown(one)}" if one else f"row {row + 1}"


def _table(columns: Sequence[Any], form: Form) -> _Table:
    whole = [_whole_column(column) for column in columns]
    if not whole or not len(whole[0]):
        raise SubmissionError(["the file must hold rows under a header; it has none"])
    return _Table(None, whole) if form.id_column is None else _Table(_ids(whole[0]), whole[1:])


def _whole_column(column: Any) -> Any:
    """Return one array of a plain type."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # without chunks, in older releases
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    if pa.types.is_float16(whole.type):
        return whole.cast(pa.float32())
    return whole.cast(pa.string()) if pa.types.is_null(whole.type) else whole


def _ids(column: Any) -> Any:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.utf8_trim_whitespace(column).cast(pa.string())
    elif pa.types.is_integer(column.type):
        texts = column.cast(pa.string())
    else:
        texts = pa.array(_in_pieces(column, _as_id), pa.string(), size=len(column))
    return pc.fill_null(texts, "")


def _as_id(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _in_pieces(column: Any, call: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the result of a call for each value; few values are Python objects at a time."""
    for start in range(0, len(column), _PIECE):
        yield from map(call, column.slice(start, _PIECE).to_pylist())


# ---- rows


def _order(table: _Table, form: Form) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Return the place of each expected row in the file; None if the file has their order."""
    if form.ids is None or table.ids is None:
        if table.rows == form.rows:
            return None, []
        return None, [
            f"{form.rows:,} rows are expected, in the order of the competition; {table.rows:,} came"
        ]
    if table.ids.equals(form.ids):
        return None, []
    places = pc.index_in(form.ids, value_set=table.ids)
    if table.rows == form.rows and not places.null_count:  # then each id is there once
        return places.to_numpy(zero_copy_only=False).astype(np.int64), []
    return None, _wrong_ids(table, form, places)


def _wrong_ids(table: _Table, form: Form, places: Any) -> list[str]:
    empty = pc.equal(table.ids, "").to_numpy(zero_copy_only=False)
    unknown = pc.is_null(pc.index_in(table.ids, value_set=form.ids)).to_numpy(zero_copy_only=False) & ~empty
    first = pc.index_in(table.ids, value_set=table.ids).to_numpy(zero_copy_only=False)
    twice = (first < np.arange(table.rows)) & ~unknown & ~empty
    found = (
        (np.flatnonzero(empty), table.where, "row", "without an id"),
        (np.flatnonzero(unknown), _shown_in(table.ids), "id", "unknown"),
        (np.flatnonzero(twice), _shown_in(table.ids), "id", "more than once"),
        (np.flatnonzero(pc.is_null(places)), _shown_in(form.ids), "id", "missing"),
    )
    return [_counted(rows, say, noun, what) for rows, say, noun, what in found if len(rows)]


def _shown_in(ids: Any) -> Callable[[int], str]:
    return lambda row: shown(ids[row].as_py())


# ---- values


def _labels(table: _Table, form: Form) -> tuple[NDArray[Any], list[str]]:
    parse: Callable[[Any], Any] = _whole if form.classes and isinstance(form.classes[0], int) else _text
    places = {label: place for place, label in enumerate(form.classes)}
    column = table.predictions[0]
    coded = column.dictionary_encode(null_encoding="encode")  # few different values, many rows
    known = _in_pieces(coded.dictionary, lambda value: places.get(parse(value), -1))
    codes = np.fromiter(known, np.int64, len(coded.dictionary))[coded.indices.to_numpy(zero_copy_only=False)]
    strange = np.flatnonzero(codes < 0)
    if not len(strange):
        return codes, []
    listed = ", ".join(map(shown, form.classes[:10])) + (", ..." if len(form.classes) > 10 else "")
    problem = f"of column {form.columns[0]!r} with a label that is not one of {listed}"
    return codes, [_counted(strange, _valued(table, column), "row", problem)]


def _values(table: _Table, form: Form) -> tuple[NDArray[Any], list[str]]:
    columns, problems = [], []
    for name, column in zip(form.columns, table.predictions, strict=True):
        numbers = _numbers(column)
        rows = np.flatnonzero(~np.isfinite(numbers))
        columns.append(numbers)
        if len(rows):
            what = f"of column {name!r} without a finite number"
            problems.append(_counted(rows, _valued(table, column), "row", what))
    values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    if form.probabilities and not problems:
        problems = _not_probabilities(table, values)
    return values, problems


def _valued(table: _Table, column: Any) -> Callable[[int], str]:
    return lambda row: f"{table.where(row)} ({shown(column[row].as_py())})"


def _numbers(column: Any) -> NDArray[np.float64]:
    kind = column.type
    try:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind):
            cast = pc.cast(column, pa.float64(), safe=False)
            return np.array(cast.fill_null(math.nan).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:  # text that is no number, or written in another way
        pass
    return np.fromiter(_in_pieces(column, _number), np.float64, len(column))


def _not_probabilities(table: _Table, values: NDArray[np.float64]) -> list[str]:
    outside = (values < -_SLACK) | (values > 1 + _SLACK)
    rows = np.flatnonzero(outside if values.ndim == 1 else outside.any(axis=1))
    if len(rows):
        return [_counted(rows, table.where, "row", "with a probability outside [0, 1]")]
    if values.ndim == 1:
        return []
    rows = np.flatnonzero(np.abs(values.sum(axis=1) - 1) > _SLACK)
    return [_counted(rows, table.where, "row", "whose probabilities do not sum to 1")] if len(rows) else []


def _number(value: Any) -> float:
    if isinstance(value, bool) or value is None or (isinstance(value, str) and "_" in value):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return int(value.strip().lower() == "true")
    if isinstance(value, int):
        return value
    number = _number(value)
    return int(number) if math.isfinite(number) and number == int(number) else None


def _text(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) else None


def _counted(rows: Sequence[int] | NDArray[Any], say: Callable[[int], str], noun: str, what: str) -> str:
    """Return a sentence with the number of rows and the first few of them."""
    more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    plural = "" if len(rows) == 1 else "s"
    return f"{len(rows):,} {noun}{plural} {what}: {', '.join(say(int(row)) for row in rows[:_SHOWN])}{more}"
