"""Submitted files: read, checked and brought into the order of the rows, before anything is asked.

All that is known here of the labels is public: ids, number of rows, classes. So messages may quote the file, and a file
that does not fit costs nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout_leaderboard.files.expected import Expected, SubmissionError
from reusable_holdout_leaderboard.files.readers import read_submission, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reusable_holdout_leaderboard.files.readers import Columns

__all__ = ["parse_submission"]

_SLACK = 1e-6  # of probabilities, as the guard's
_SHOWN = 5


def parse_submission(content: bytes, filename: str, expected: Expected) -> NDArray[Any]:
    r"""Predictions of a submitted file, in the order of the rows.

    It depends on nothing private, asks nothing and costs nothing.

    Parameters
    ----------
    content : bytes
        CSV with a header, in UTF-8, separated by commas or semicolons; or Parquet.
    filename : str
        Says which: Parquet if it ends in ".parquet" or ".pq", or if the content does.
    expected : Expected

    Returns
    -------
    numpy.ndarray of shape (rows,) or (rows, classes)
        Class labels, or float64.

    Raises
    ------
    SubmissionError
        Listing what does not fit, the first offenders of each kind.

    Examples
    --------
    >>> expected = Expected(ids=("a", "b"), rows=2, id_column="id", columns=("prediction",), response="scores")
    >>> parse_submission(b"id,prediction\nb,0.5\na,1", "mine.csv", expected)
    array([1. , 0.5])
    """
    table = read_submission(content, filename, expected)
    order, problems = _order(table, expected)
    values, wrong = _values(table, expected)
    problems += wrong
    if problems:
        raise SubmissionError(problems)
    return values if order is None else values[order]


# ---- rows


def _order(table: Columns, expected: Expected) -> tuple[NDArray[np.int64] | None, list[str]]:
    """Place in the file of each expected row; None if it has their order."""
    if expected.ids is None or table.ids is None:
        if table.rows == expected.rows:
            return None, []
        return None, [
            f"{expected.rows:,} rows are expected, in the order of the competition's; {table.rows:,} came"
        ]
    places = dict(zip(table.ids, range(table.rows), strict=True))
    if len(places) == table.rows == expected.rows and places.keys() == expected.places.keys():
        return np.fromiter(map(places.__getitem__, expected.ids), np.int64, expected.rows), []
    return None, _wrong_ids(table, table.ids, expected)


def _wrong_ids(table: Columns, ids: Sequence[str], expected: Expected) -> list[str]:
    seen: set[str] = set()
    empty, unknown, twice = [], [], []
    for row, one in enumerate(ids):
        if not one:
            empty.append(table.where(row))
        elif one not in expected.places:
            unknown.append(shown(one))
        elif one in seen:
            twice.append(shown(one))
        seen.add(one)
    missing = [shown(one) for one in expected.places if one not in seen]
    found = ((empty, "row", "without an id"), (unknown, "id", "unknown"), (twice, "id", "more than once"))
    return [_counted(rows, noun, what) for rows, noun, what in (*found, (missing, "id", "missing")) if rows]


# ---- values


def _values(table: Columns, expected: Expected) -> tuple[NDArray[Any], list[str]]:
    """Predictions in the order of the file, and what is wrong with them."""
    if expected.response == "labels":
        return _labels(table, expected)
    columns, problems = [], []
    for name, column in zip(expected.columns, table.predictions, strict=True):
        numbers, wrong = _numbers(table, name, column)
        columns.append(numbers)
        problems += wrong
    values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    if expected.response == "probabilities" and not problems:
        problems = _not_probabilities(table, values)
    return values, problems


def _labels(table: Columns, expected: Expected) -> tuple[NDArray[Any], list[str]]:
    classes = expected.classes or ()
    parse: Callable[[Any], Any] = _whole if classes and isinstance(classes[0], int) else _text
    column = table.predictions[0]
    known = {value: parse(value) for value in set(column)}  # few different values, many rows
    allowed = set(classes)
    strange = {value for value, label in known.items() if label not in allowed}
    if not strange:
        return np.array([known[value] for value in column]), []
    wrong = [f"{table.where(row)} ({shown(value)})" for row, value in enumerate(column) if value in strange]
    listed = ", ".join(map(shown, classes[:10])) + (", ..." if len(classes) > 10 else "")
    problem = f"of column {expected.columns[0]!r} with a label that is not one of {listed}"
    return np.empty(0), [_counted(wrong, "row", problem)]


def _numbers(table: Columns, name: str, column: Sequence[Any]) -> tuple[NDArray[np.float64], list[str]]:
    values = np.array([_number(value) for value in column], dtype=np.float64)
    rows = np.flatnonzero(~np.isfinite(values))
    if not len(rows):
        return values, []
    wrong = [f"{table.where(row)} ({shown(column[row])})" for row in rows.tolist()]
    return values, [_counted(wrong, "row", f"of column {name!r} without a finite number")]


def _not_probabilities(table: Columns, values: NDArray[np.float64]) -> list[str]:
    outside = (values < -_SLACK) | (values > 1 + _SLACK)
    rows = np.flatnonzero(outside if values.ndim == 1 else outside.any(axis=1))
    if len(rows):
        return [
            _counted([table.where(row) for row in rows.tolist()], "row", "with a probability outside [0, 1]")
        ]
    if values.ndim == 1:
        return []
    rows = np.flatnonzero(np.abs(values.sum(axis=1) - 1) > _SLACK)
    wrong = [table.where(row) for row in rows.tolist()]
    return [_counted(wrong, "row", "whose probabilities do not sum to 1")] if wrong else []


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


def _counted(items: Sequence[str], noun: str, what: str) -> str:
    """How many, and the first few."""
    more = f" and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
    plural = "" if len(items) == 1 else "s"
    return f"{len(items):,} {noun}{plural} {what}: {', '.join(items[:_SHOWN])}{more}"
