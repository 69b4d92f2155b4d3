"""A file's columns in Arrow's memory, which is as large as the file, and not a Python object for each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from reusable_holdout_leaderboard.files.forms import SubmissionError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reusable_holdout_leaderboard.files.forms import Form

__all__ = ["Table", "in_pieces", "table_of"]

_PIECE = 1 << 14  # rows that are Python objects at a time


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


def table_of(columns: Sequence[Any], form: Form) -> Table:
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


def in_pieces(column: Any, call: Callable[[Any], Any]) -> Iterator[Any]:
    """What a call makes of each value, as a Python object; few of them are there at a time."""
    for start in range(0, len(column), _PIECE):
        yield from map(call, column.slice(start, _PIECE).to_pylist())


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
