"""Columns of strangers' files, CSV or Parquet, in Arrow's memory: not a Python object for each cell.

A CSV file takes memory that grows with the file alone. A few bytes of a Parquet file can stand for any number, so these
are read where memory is limited.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError, shown

__all__ = ["Table", "in_pieces", "read_csv", "read_parquet"]

_LONGEST_LINE = 1 << 16
_PIECE = 1 << 14  # rows that are Python objects at a time
_BOM = b"\xef\xbb\xbf"


class Table(NamedTuple):
    """A file's ids and predictions.

    Attributes
    ----------
    ids : pyarrow.StringArray or None
        Without space around them; empty text where one is missing.
    predictions : list of pyarrow.Array
        One for each expected column.
    """

    ids: Any
    predictions: list[Any]

    @property
    def rows(self) -> int:
        """Rows under the header."""
        return len(self.predictions[0])

    def where(self, row: int) -> str:
        """Name a row in a message."""
        one = "" if self.ids is None else self.ids[row].as_py()
        return f"id {shown(one)}" if one else f"row {row + 1}"


def in_pieces(column: Any, call: Callable[[Any], Any]) -> Iterator[Any]:
    """What a call makes of each value, as a Python object; few of them are there at a time."""
    for start in range(0, len(column), _PIECE):
        yield from map(call, column.slice(start, _PIECE).to_pylist())


# ---- CSV


def read_csv(content: bytes, form: Form) -> Table:
    """Columns of a CSV file, without space around their cells.

    Arrow reads what has no quotation marks; what has some, or cannot be read so, the standard library reads row by row:
    it knows what to say.

    Raises
    ------
    SubmissionError
        If it is no text in UTF-8, or has other columns or too many rows.
    """
    _check_text(content)
    body = content[len(_BOM) :] if content.startswith(_BOM) else content
    columns = None if b'"' in body else _by_arrow(body, form)
    return _table_of(_by_rows(content, form) if columns is None else columns, form)


def _check_text(content: bytes) -> None:
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
    longest = int(np.diff(ends, prepend=-1, append=len(content)).max())
    if longest > _LONGEST_LINE or b"\x00" in content:
        text = _decoded(content)
        for number, line in enumerate(io.StringIO(text, newline=""), start=1):
            if len(line) > _LONGEST_LINE:
                raise SubmissionError(
                    [f"line {number:,} must have at most {_LONGEST_LINE:,} characters; it has more"]
                )
        if "\x00" in text:
            raise SubmissionError(["a CSV file must be text; it holds zero bytes; save it as CSV or Parquet"])


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start + 1
    raise SubmissionError([f"a CSV file must be text in UTF-8; byte {place:,} is not; save it as UTF-8"])


def _by_arrow(body: bytes, form: Form) -> list[Any] | None:
    """Columns of a file without quotation marks; None if it cannot be read."""
    first = body[:_LONGEST_LINE].split(b"\n", 1)[0].split(b"\r", 1)[0]
    try:
        line = first.decode()
    except UnicodeDecodeError:
        return None
    separator = _separator(line)
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
    except pa.ArrowInvalid:  # cells too many or too few, no text, or no row at all
        return None
    if len(rows) > form.most_rows:
        raise form.too_many()
    return [pc.utf8_trim_whitespace(rows.column(place)) for place in places]


def _separator(line: str) -> str:
    return ";" if line.count(";") > line.count(",") else ","


def _by_rows(content: bytes, form: Form) -> list[Any]:
    """Columns of any file, or why it cannot be read."""
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    try:
        separator = _separator(text.read(_LONGEST_LINE).split("\n", 1)[0])
        text.seek(0)
        reader = csv.reader(text, delimiter=separator, strict=True)
        header = [name.strip() for name in next(reader, [])]
        pieces = list(_pieces(filter(None, reader), form, form.places(header), len(header)))
    except csv.Error:
        line = reader.line_num
    except UnicodeDecodeError:
        _refuse_bytes(content)
    else:
        return [pa.chunked_array(list(column), pa.string()) for column in zip(*pieces, strict=True)]
    raise SubmissionError(
        [f"line {line:,} of the CSV file cannot be read: look for a quotation mark too many"]
    )


def _refuse_bytes(content: bytes) -> NoReturn:
    _decoded(content)
    raise SubmissionError(["a CSV file must be text in UTF-8; it is not; save it as UTF-8"])


def _pieces(
    reader: Iterator[list[str]], form: Form, places: Sequence[int], width: int
) -> Iterator[list[Any]]:
    """Some thousand rows at a time, as columns."""
    rows: list[list[str]] = []
    wrong, wrong_rows = 0, []
    for number, cells in enumerate(reader, start=1):  # blank lines are not counted
        if number > form.most_rows:
            raise form.too_many()
        if len(cells) != width:
            wrong += 1
            wrong_rows += [number] if wrong <= 5 else []
        elif not wrong:
            rows.append(cells)
        if len(rows) == _PIECE:
            yield _as_columns(rows, places)
            rows.clear()
    if wrong:
        more = f" and {wrong - 5:,} more" if wrong > 5 else ""
        listed = ", ".join(map(str, wrong_rows))
        raise SubmissionError([f"rows must have {width} cells like the header; rows {listed}{more} have not"])
    if rows:
        yield _as_columns(rows, places)


def _as_columns(rows: list[list[str]], places: Sequence[int]) -> list[Any]:
    return [pa.array([cells[place].strip() for cells in rows], pa.string()) for place in places]


# ---- Parquet


def read_parquet(content: bytes, form: Form) -> Table:
    """Columns of a Parquet file.

    Raises
    ------
    SubmissionError
        If it is damaged, has other columns, or says that it is larger than it may be.
    MemoryError
        If it is larger, and says otherwise.
    """
    problem = None
    try:
        return _table_of(_unpacked(content, form), form)
    except (SubmissionError, MemoryError) as error:
        problem = error
    except Exception:  # whatever a reader raises on a damaged file
        problem = SubmissionError(["the Parquet file cannot be read; write it again, or send CSV"])
    raise problem


def _unpacked(content: bytes, form: Form) -> list[Any]:
    file = pq.ParquetFile(pa.BufferReader(content))
    _check_size(file.metadata, form)
    schema = file.schema_arrow
    places = form.places([name.strip() for name in schema.names])
    nested = [schema.names[place].strip() for place in places if pa.types.is_nested(schema.types[place])]
    if nested:
        raise SubmissionError([f"columns must hold text or numbers; {', '.join(map(shown, nested))} do not"])
    names, batches, rows = [schema.names[place] for place in places], [], 0
    for batch in file.iter_batches(batch_size=_PIECE, columns=names, use_threads=False):
        batches.append(batch)
        rows += len(batch)
        if rows > form.most_rows:
            raise form.too_many()
    if not batches:
        return []
    return [pa.chunked_array([batch.column(name) for batch in batches]) for name in names]


def _check_size(metadata: Any, form: Form) -> None:
    """Refuse a small file that says it is a large one."""
    if metadata.num_rows > form.most_rows:
        raise form.too_many()
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if unpacked > form.max_bytes:
        raise SubmissionError(
            [f"a file may have {form.max_bytes:,} bytes unpacked; {unpacked:,} came; leave other columns out"]
        )


# ---- tables of columns


def _table_of(columns: Sequence[Any], form: Form) -> Table:
    """Table of columns in the order of the form's header.

    Raises
    ------
    SubmissionError
        If there are no rows.
    """
    whole = [_whole(column) for column in columns]
    if not whole or not len(whole[0]):
        raise SubmissionError(["the file must hold rows under a header; it has none"])
    if form.id_column is None:
        return Table(None, whole)
    return Table(_ids(whole[0]), whole[1:])


def _whole(column: Any) -> Any:
    """One array of a plain type."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # of no chunk, in older releases
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
        texts = pa.array(in_pieces(column, _as_id), pa.string(), size=len(column))
    return pc.fill_null(texts, "")


def _as_id(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
