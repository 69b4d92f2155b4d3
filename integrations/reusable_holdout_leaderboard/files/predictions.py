"""A file's predictions, checked and brought into the order of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError, is_parquet, shown
from reusable_holdout_leaderboard.files.joins import order_of
from reusable_holdout_leaderboard.files.tables import Table, in_pieces, read_csv, read_parquet

__all__ = ["decoded"]

_SLACK = 1e-6  # of probabilities, as the guard's
_SHOWN = 5
_PACKED = {
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}


def decoded(content: bytes, filename: str, form: Form) -> NDArray[Any]:
    """Predictions in the order of the rows: places among the classes, or float64.

    Raises
    ------
    SubmissionError
        Listing what does not fit, the first offenders of each kind.
    """
    if len(content) > form.max_bytes:
        raise SubmissionError(
            [f"a file may have {form.max_bytes:,} bytes; {len(content):,} came; leave other columns out"]
        )
    if not content or content.isspace():
        raise SubmissionError(["the file must hold rows under a header; it is empty"])
    packed = [kind for begins, kind in _PACKED.items() if content.startswith(begins)]
    if packed:
        raise SubmissionError([f"a file must be CSV or Parquet; this one is packed ({packed[0]}); unpack it"])
    table = (read_parquet if is_parquet(content, filename) else read_csv)(content, form)
    order, problems = _order(table, form)
    values, wrong = _labels(table, form) if form.labels else _values(table, form)
    if problems or wrong:
        raise SubmissionError([*problems, *wrong])
    return values if order is None else values[order]


# ---- rows


def _order(table: Table, form: Form) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Place in the file of each expected row; None if it has their order."""
    if form.ids is None or table.ids is None:
        if table.rows == form.rows:
            return None, []
        return None, [
            f"{form.rows:,} rows are expected, in the order of the competition's; {table.rows:,} came"
        ]
    if table.ids.equals(form.ids):
        return None, []
    order = order_of(table.ids, form.ids) if table.rows == form.rows else None
    if order is not None:
        return order, []
    places = pc.index_in(form.ids, value_set=table.ids)
    if table.rows == form.rows and not places.null_count:  # then each id is there once
        return places.to_numpy(zero_copy_only=False).astype(np.int64), []
    return None, _wrong_ids(table, form, places)


def _wrong_ids(table: Table, form: Form, places: Any) -> list[str]:
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


def _labels(table: Table, form: Form) -> tuple[NDArray[Any], list[str]]:
    parse: Callable[[Any], Any] = _whole if form.classes and isinstance(form.classes[0], int) else _text
    places = {label: place for place, label in enumerate(form.classes)}
    column = table.predictions[0]
    coded = column.dictionary_encode(null_encoding="encode")  # few different values, many rows
    known = in_pieces(coded.dictionary, lambda value: places.get(parse(value), -1))
    codes = np.fromiter(known, np.int64, len(coded.dictionary))[coded.indices.to_numpy(zero_copy_only=False)]
    strange = np.flatnonzero(codes < 0)
    if not len(strange):
        return codes, []
    listed = ", ".join(map(shown, form.classes[:10])) + (", ..." if len(form.classes) > 10 else "")
    problem = f"of column {form.columns[0]!r} with a label that is not one of {listed}"
    return codes, [_counted(strange, _valued(table, column), "row", problem)]


def _values(table: Table, form: Form) -> tuple[NDArray[Any], list[str]]:
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


def _valued(table: Table, column: Any) -> Callable[[int], str]:
    return lambda row: f"{table.where(row)} ({shown(column[row].as_py())})"


def _numbers(column: Any) -> NDArray[np.float64]:
    kind = column.type
    try:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind):
            cast = pc.cast(column, pa.float64(), safe=False)
            return np.array(cast.fill_null(math.nan).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:  # text that is no number, or written in another way
        pass
    return np.fromiter(in_pieces(column, _number), np.float64, len(column))


def _not_probabilities(table: Table, values: NDArray[np.float64]) -> list[str]:
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
    """How many, and the first few."""
    more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    plural = "" if len(rows) == 1 else "s"
    return f"{len(rows):,} {noun}{plural} {what}: {', '.join(say(int(row)) for row in rows[:_SHOWN])}{more}"
