"""A search for private labels in files that are about to become public.

The search reads CSV with any delimiter, Parquet, JSON, JSON lines and NumPy arrays. Tables may be transposed, and files
may be packed by gzip, bzip2, xz, tar or zip. Columns may have any name. Labels are found beside the ids of their rows,
or in their own order. They are found, too, if the classes have other names, such as "yes" instead of 1, and if a few
labels are wrong.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reusable_holdout.guard.boundary import sealed
from reusable_holdout_leaderboard.files.labels import Labels

__all__ = ["labels_found"]

_LEAST = 30  # fewer rows than this may agree with the labels by chance
_MOST_UNPACKED = 1 << 28  # bytes
_DEPTH = 2  # levels of archives inside archives
_MOST_STARTS = 100  # rows of a column that are tried as the first row of the labels
_MOST_WRONG = 0.01  # share of each class's rows that may differ from the labels
_WIDE = 30  # a table with more columns and fewer rows than this may be transposed
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_UNREADABLE = (ValueError, TypeError, OSError, KeyError, RecursionError, EOFError, csv.Error, AttributeError)
_UNPACKABLE = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError),
    *(RuntimeError, NotImplementedError),  # an archive with a password, or of an unknown kind
)


@sealed
def labels_found(content: bytes, labels: Sequence[Labels]) -> str:
    """Return a sentence that says where a file holds private labels, or an empty string if it holds none.

    Parameters
    ----------
    content : bytes
        Content of the file.
    labels : sequence of Labels
        Sets of labels that are searched for.
    """
    for table in _tables(content, depth=_DEPTH):
        columns = [table[name] for name in table.columns]
        for one in labels:
            place = _by_ids(columns, one) or _by_order(columns, one)
            if place:
                return place
    return ""


# ---- tables


def _tables(content: bytes, *, depth: int) -> Iterator[pd.DataFrame]:
    """Yield the tables that a file contains. Text is not converted to numbers, and a header counts as a row."""
    parts = _unpacked(content) if depth else []
    for part in parts:
        yield from _tables(part, depth=depth - 1)
    if parts:
        return
    for read in (_parquet, _array, _json, _csv):
        try:
            found = [one for one in read(content) if len(one.columns)]
        except _UNREADABLE:
            continue
        for one in found:
            yield one
            if len(one) < _WIDE < len(one.columns):
                yield one.T.reset_index()
        if found:
            return


def _unpacked(content: bytes) -> list[bytes]:
    """Return the contents of the files in an archive, as far as it can be unpacked; an empty list for other files."""
    left, found = _MOST_UNPACKED, []
    try:
        for sign, opened in _PACKED.items():
            if content.startswith(sign):
                with opened(io.BytesIO(content)) as file:
                    return [file.read(left)]
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for name in archive.namelist():
                    with archive.open(name) as file:
                        found.append(file.read(left))
                    left -= len(found[-1])
        elif content[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                files = (archive.extractfile(one) for one in archive if one.isfile())
                found += [file.read(left) for file in files if file is not None]
    except _UNPACKABLE:
        return found
    return found


def _parquet(content: bytes) -> list[pd.DataFrame]:
    if not content.startswith(b"PAR1"):
        return []
    frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas()
    return [frame.reset_index()]


def _array(content: bytes) -> list[pd.DataFrame]:
    if not content.startswith(b"\x93NUMPY"):
        return []
    found = np.load(io.BytesIO(content), allow_pickle=False)
    return [pd.DataFrame(found.reshape(len(found), -1))] if found.ndim else []


def _json(content: bytes) -> list[pd.DataFrame]:
    text = content.removeprefix(b"\xef\xbb\xbf").strip()
    if not text.startswith((b"[", b"{")):
        return []
    try:
        return list(_json_tables(json.loads(text)))
    except json.JSONDecodeError:
        return list(_json_tables([json.loads(line) for line in text.splitlines() if line.strip()]))


def _json_tables(value: Any) -> Iterator[pd.DataFrame]:
    """Yield every table that a JSON value can be read as.

    A list is read as rows. An object is read as columns, as rows by their ids, as pairs of an id and a label, or as a
    list of ids for each class.
    """
    inner = [*(value.values() if isinstance(value, dict) else value)]
    nested = [one for one in inner if isinstance(one, dict | list)]
    if isinstance(value, list):
        yield pd.DataFrame(value)
        if value and all(isinstance(one, dict) and len(one) == 1 for one in value):
            yield pd.DataFrame([entry for one in value for entry in one.items()])
    elif not nested:
        yield pd.DataFrame(list(value.items()))
    elif all(isinstance(one, dict) for one in inner):
        for orient in ("index", "columns"):
            yield pd.DataFrame.from_dict(value, orient=orient).reset_index()
    else:
        lists = {name: one for name, one in value.items() if isinstance(one, list)}
        yield pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in lists.items()})
        yield pd.DataFrame([(one, name) for name, ones in lists.items() for one in ones])
    if len(nested) < _WIDE:  # the items of a longer list are the rows of one table
        for one in nested:
            yield from _json_tables(one)


def _csv(content: bytes) -> list[pd.DataFrame]:
    text = _decoded(content).replace("\r\n", "\n").replace("\r", "\n")
    lines = [line for line in islice(text.split("\n"), 100) if line.strip()]
    middle = lines[len(lines) // 2] if lines else ""  # the first line may be a title
    delimiter = max(",;\t|", key=middle.count)
    delimiter = delimiter if delimiter in middle else max(": ", key=middle.count)
    names = [str(number) for number in range(len(next(csv.reader([middle], delimiter=delimiter))))]
    table = pa.csv.read_csv(
        io.BytesIO(text.encode()),
        read_options=pa.csv.ReadOptions(column_names=names),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip"
        ),
        convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    frame: pd.DataFrame = table.to_pandas()
    return [frame]


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


# ---- labels in a table


def _by_ids(columns: Sequence[pd.Series[Any]], labels: Labels) -> str:
    """Return a sentence that names the column of labels in a table with ids, or an empty string if there is none."""
    if labels.ids is None:
        return ""
    ids = pd.Index(labels.ids)
    for place, column in enumerate(columns):
        rows = ids.get_indexer(pd.Index(_text(column)))
        known = rows >= 0
        if known.sum() < min(_LEAST, len(ids)):
            continue
        for other, values in enumerate(columns):
            if other != place and _agree(values[known], labels.y[rows[known]]):
                return f"its column {other + 1} has the labels of {known.sum():,} rows, beside their ids"
    return ""


def _by_order(columns: Sequence[pd.Series[Any]], labels: Labels) -> str:
    """Return a sentence that names the column of labels in a table without ids, or an empty string if there is none.

    The labels are found in their order, even if other rows come before and after them. In a file with one column, they
    are found in any order: each class then has as many labels as one of the values has rows.
    """
    y, rows = labels.y, len(labels.y)
    for place, column in enumerate(columns):
        if len(column) < rows:
            continue
        for start in islice(_starts(column, y), _MOST_STARTS):
            if _agree(column[start : start + rows], y):
                return f"its column {place + 1} has all labels in their order"
    if len(columns) == 1 and y.dtype.kind != "f" and rows >= _LEAST and _same_counts(columns[0], y):
        return "its only column has as many values of each kind as there are labels of each class"
    return ""


def _starts(column: pd.Series[Any], y: NDArray[Any]) -> Iterator[int]:
    """Yield each row of a column at which a copy of the labels may start.

    From such a row on, the column changes its value exactly where the labels change. For labels that are real values,
    it is each row that is equal to the first label.
    """
    if y.dtype.kind == "f":
        numbers = np.ascontiguousarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
        yield from (int(start) for start in np.flatnonzero(np.isclose(numbers, y[0])))
        return
    text = _text(column)
    sought, among = ((one[1:] != one[:-1]).astype(np.uint8).tobytes() for one in (y, text))
    start = among.find(sought)
    while start >= 0 and sought:
        yield start
        start = among.find(sought, start + 1)


def _agree(column: pd.Series[Any], y: NDArray[Any]) -> bool:
    """Return True if a column contains the labels `y`, perhaps with other names for the classes."""
    if len(column) != len(y):
        return False
    if y.dtype.kind == "f":
        numbers = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
        return bool(len(np.unique(y)) > 1 and np.allclose(numbers, y, rtol=1e-6))
    text = _text(column)
    ours, names = pd.factorize(y)
    if len(names) < 2 or 3 * len(names) > len(y):  # with so few rows for each class, any names would match
        same = text == _text(pd.Series(y))
        return bool(len(names) > 1 and np.mean(~same) <= _MOST_WRONG)
    theirs, others = pd.factorize(text)
    pairs, counts = np.unique(ours.astype(np.int64) * len(others) + theirs, return_counts=True)
    of = pairs // len(others)
    # the value that most rows of each class have
    best = np.lexsort((-counts, of))[np.flatnonzero(np.diff(np.sort(of), prepend=-1))]
    few = counts[best] >= (1 - _MOST_WRONG) * np.bincount(ours)
    return bool(few.all() and len(np.unique(pairs[best] % len(others))) == len(names))


def _same_counts(column: pd.Series[Any], y: NDArray[Any]) -> bool:
    """Return True if each class has as many labels as one of the column's values has rows. A header may come first."""
    ours = np.unique(y, return_counts=True)[1]
    for values in (_text(column), _text(column)[1:]):
        theirs = np.unique(values, return_counts=True)[1]
        if len(ours) > 1 and len(theirs) == len(ours) and (np.sort(theirs) == np.sort(ours)).all():
            return True
    return False


def _text(column: pd.Series[Any]) -> NDArray[Any]:
    """Return the cells of a column as text, without space around it, and with 1.0 written as 1."""
    return np.array([str(one).strip().removesuffix(".0") for one in column.tolist()], dtype=object)
