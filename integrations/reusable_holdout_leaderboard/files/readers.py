"""CSV and Parquet files of strangers as columns of text and numbers, within bounds of size."""

from __future__ import annotations

import csv
import io
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout_leaderboard.files.expected import Expected, SubmissionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Columns", "read_submission", "shown"]

_MAGIC = b"PAR1"
_LONGEST_LINE = 1 << 16
_LONGEST_SHOWN = 40
_SPARE_ROWS = 1_000


class Columns(NamedTuple):
    """A file's ids and predictions.

    Attributes
    ----------
    ids : list of str or None
        Empty text where one is missing.
    predictions : list of list
        A list for each expected column, of text, numbers or None.
    """

    ids: list[str] | None
    predictions: list[list[Any]]

    @property
    def rows(self) -> int:
        """Rows under the header."""
        return len(self.predictions[0])

    def where(self, row: int) -> str:
        """Name a row in a message."""
        if self.ids is not None and self.ids[row]:
            return f"id {shown(self.ids[row])}"
        return f"row {row + 1}"


def shown(value: object) -> str:
    """Value of a file in a message: short, and on one line."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def read_submission(content: bytes, filename: str, expected: Expected) -> Columns:
    """Read the columns that are expected, and no others.

    Raises
    ------
    SubmissionError
        If the file is too large, is neither CSV nor Parquet, or has other columns.
    """
    if len(content) > expected.max_bytes:
        raise SubmissionError(
            [f"a file may have {expected.max_bytes:,} bytes; {len(content):,} came; leave other columns out"]
        )
    if not content.strip():
        raise SubmissionError(["the file must hold rows under a header; it is empty"])
    if content.startswith(_MAGIC) or filename.lower().endswith((".parquet", ".pq")):
        return _parquet(content, expected)
    return _csv(content, expected)


def _most_rows(expected: Expected) -> int:
    return 2 * expected.rows + _SPARE_ROWS


def _too_many(expected: Expected) -> SubmissionError:
    return SubmissionError(
        [f"{expected.rows:,} rows are expected; there are more than {_most_rows(expected):,}"]
    )


def _places(header: Sequence[str], expected: Expected) -> list[int]:
    """Where the expected columns are."""
    wanted, problems = expected.header(), []
    missing = [name for name in wanted if name not in header]
    twice = sorted({name for name in header if header.count(name) > 1}) if len(header) < 1_000 else []
    unknown = [name for name in header if name not in wanted]
    for names, what in ((missing, "missing"), (unknown, "unknown"), (twice, "more than once")):
        if names:
            more = ", ..." if len(names) > 5 else ""
            problems.append(f"columns {what}: {', '.join(map(shown, names[:5]))}{more}")
    if problems:
        problems.append(
            f"the columns must be {', '.join(map(shown, wanted[:20]))}{', ...' * (len(wanted) > 20)}"
        )
        raise SubmissionError(problems)
    return [header.index(name) for name in wanted]


def _columns(columns: Sequence[Sequence[Any]], expected: Expected) -> Columns:
    """Columns in the order of :meth:`Expected.header`."""
    if not columns or not len(columns[0]):
        raise SubmissionError(["the file must hold rows under a header; it has none"])
    ids, *predictions = ([], *columns) if expected.id_column is None else columns
    known = None if expected.id_column is None else [_as_id(one) for one in ids]
    return Columns(known, [list(column) for column in predictions])


def _as_id(value: Any) -> str:
    if type(value) is str:
        return value.strip()
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


# ---- CSV


def _csv(content: bytes, expected: Expected) -> Columns:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubmissionError(
            [f"a CSV file must be text in UTF-8; byte {error.start + 1:,} is not; save it as UTF-8"]
        ) from None
    if "\x00" in text:
        raise SubmissionError(["a CSV file must be text; it holds zero bytes; save it as CSV or Parquet"])
    _check_lines(text)
    first_line = text[:_LONGEST_LINE].split("\n", 1)[0]
    separator = ";" if first_line.count(";") > first_line.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    most = _most_rows(expected)
    try:
        header = [name.strip() for name in next(reader, [])]
        places = _places(header, expected)
        rows = list(islice(filter(None, reader), most + 1))  # without blank lines
    except csv.Error:
        problem = (
            f"line {reader.line_num:,} of the CSV file cannot be read: look for a quotation mark too many"
        )
        raise SubmissionError([problem]) from None
    if len(rows) > most:
        raise _too_many(expected)
    wrong = [number for number, cells in enumerate(rows, start=1) if len(cells) != len(header)]
    if wrong:
        more = f" and {len(wrong) - 5:,} more" if len(wrong) > 5 else ""
        listed = ", ".join(str(number) for number in wrong[:5])
        raise SubmissionError(
            [f"rows must have {len(header)} cells like the header; rows {listed}{more} have not"]
        )
    columns = list(zip(*rows, strict=True))
    return _columns([[cell.strip() for cell in columns[place]] for place in places] if rows else [], expected)


def _check_lines(text: str) -> None:
    """Refuse lines that would take much more memory than the file."""
    if max(map(len, io.StringIO(text, newline=""))) <= _LONGEST_LINE:
        return
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        if len(line) > _LONGEST_LINE:
            raise SubmissionError(
                [f"line {number:,} must have at most {_LONGEST_LINE:,} characters; it has more"]
            )


# ---- Parquet


def _parquet(content: bytes, expected: Expected) -> Columns:
    try:
        import pyarrow as pa  # noqa: PLC0415 - CSV does not need it
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise SubmissionError(["Parquet cannot be read on this server; send CSV"]) from None
    problem = None
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        _check_size(file.metadata, expected)
        names = [name.strip() for name in file.schema_arrow.names]
        places = _places(names, expected)
        nested = [names[place] for place in places if pa.types.is_nested(file.schema_arrow.types[place])]
        if nested:
            raise SubmissionError(
                [f"columns must hold text or numbers; {', '.join(map(shown, nested))} do not"]
            )
        columns: list[list[Any]] = [[] for _ in places]
        for batch in file.iter_batches(
            batch_size=1 << 16, columns=[file.schema_arrow.names[place] for place in places]
        ):
            for place, column in zip(places, columns, strict=True):
                column.extend(batch.column(file.schema_arrow.names[place]).to_pylist())
            if len(columns[0]) > _most_rows(expected):
                raise _too_many(expected)
    except SubmissionError as error:
        problem = error
    except Exception:  # whatever a reader raises on a damaged file
        problem = SubmissionError(["the Parquet file cannot be read; write it again, or send CSV"])
    if problem is not None:
        raise problem
    return _columns(columns, expected)


def _check_size(metadata: Any, expected: Expected) -> None:
    """Refuse a small file that says it is a large one."""
    if metadata.num_rows > _most_rows(expected):
        raise _too_many(expected)
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if unpacked > expected.max_bytes:
        raise SubmissionError(
            [
                f"a file may have {expected.max_bytes:,} bytes unpacked; {unpacked:,} came; leave other columns out"
            ]
        )
