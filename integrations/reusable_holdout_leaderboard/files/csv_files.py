"""CSV files of strangers, read in memory that grows with the file alone."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.files.tables import Table, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reusable_holdout_leaderboard.files.forms import Form

__all__ = ["read_csv"]

_LONGEST_LINE = 1 << 16
_PIECE = 1 << 14  # rows that are Python objects at a time
_BOM = b"\xef\xbb\xbf"


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
    return table_of(_by_rows(content, form) if columns is None else columns, form)


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


# ---- by Arrow


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


# ---- by rows


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
            yield _columns(rows, places)
            rows.clear()
    if wrong:
        more = f" and {wrong - 5:,} more" if wrong > 5 else ""
        listed = ", ".join(map(str, wrong_rows))
        raise SubmissionError([f"rows must have {width} cells like the header; rows {listed}{more} have not"])
    if rows:
        yield _columns(rows, places)


def _columns(rows: list[list[str]], places: Sequence[int]) -> list[Any]:
    return [pa.array([cells[place].strip() for cells in rows], pa.string()) for place in places]
