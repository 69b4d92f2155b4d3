"""CSV files that Arrow does not read, row by row: files with quotation marks, and files with mistakes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError, separator_of

__all__ = ["LONGEST_LINE", "check_lines", "read_by_rows"]

LONGEST_LINE = 1 << 16
_PIECE = 1 << 14  # rows that are Python objects at a time
_SHOWN = 5


def check_lines(content: bytes) -> None:
    """Refuse lines that are too long, and zero bytes.

    Raises
    ------
    SubmissionError
        The message names the line.
    """
    text = _text_of(content)
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        if len(line) > LONGEST_LINE:
            raise SubmissionError(
                [f"line {number:,} must have at most {LONGEST_LINE:,} characters; it has more"]
            )
    if "\x00" in text:
        raise SubmissionError(["a CSV file must be text; this one has zero bytes; save it as CSV or Parquet"])


def read_by_rows(content: bytes, form: Form) -> list[Any]:
    """Return the expected columns of a file.

    Raises
    ------
    SubmissionError
        If it cannot be read; the message says why.
    """
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    try:
        separator = separator_of(text.read(LONGEST_LINE).split("\n", 1)[0])
        text.seek(0)
        reader = csv.reader(text, delimiter=separator, strict=True)
        header = [name.strip() for name in next(reader, [])]
        pieces = list(_pieces(filter(None, reader), form, form.places(header), len(header)))
    except csv.Error:
        line = reader.line_num
    except UnicodeDecodeError:
        line = 0
    else:
        return [pa.chunked_array(list(column), pa.string()) for column in zip(*pieces, strict=True)]
    _text_of(content)  # names the byte that is not UTF-8, if that is the reason
    raise SubmissionError(
        [f"line {line:,} of the CSV file cannot be read; a quotation mark may be missing or unneeded"]
    )


def _pieces(
    reader: Iterator[list[str]], form: Form, places: Sequence[int], width: int
) -> Iterator[list[Any]]:
    """Yield columns of some thousand rows at a time."""
    rows: list[list[str]] = []
    wrong: list[int] = []
    for number, cells in enumerate(reader, start=1):  # blank lines are not counted
        if number > form.most_rows:
            raise form.too_many()
        if len(cells) != width:
            wrong.append(number)
        elif not wrong:
            rows.append(cells)
        if len(rows) == _PIECE:
            yield _as_columns(rows, places)
            rows.clear()
    if wrong:
        more = f" and {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else ""
        listed = ", ".join(map(str, wrong[:_SHOWN]))
        raise SubmissionError([f"rows must have {width} cells like the header; rows {listed}{more} do not"])
    if rows:
        yield _as_columns(rows, places)


def _as_columns(rows: list[list[str]], places: Sequence[int]) -> list[Any]:
    return [pa.array([cells[place].strip() for cells in rows], pa.string()) for place in places]


def _text_of(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start + 1
    raise SubmissionError([f"a CSV file must be text in UTF-8; byte {place:,} is not; save it as UTF-8"])
