"""Columns that come piece by piece, because all their rows as they are would not fit into memory.

Dask collections come so, and whatever has a method ``row_pieces``. They are read once, in order; what stays is small:
whole numbers in the fewest bytes that hold them, text as codes.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.queries.containers import as_array, one_column, typed_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["BLOCK", "CodedLabels", "compact", "dask_parts", "in_blocks", "is_dask", "pieces_of"]

BLOCK = 1 << 17  # rows worked on at a time: their bytes stay in a processor's cache
_AHEAD = min(os.cpu_count() or 1, 8)  # Dask's chunks that are computed, and held, together


class CodedLabels:
    """Text labels as codes: a byte or so per row.

    Its repr does not depend on the labels' values.

    Parameters
    ----------
    codes : numpy.ndarray of unsigned integers of shape (rows,)
        Place of each label in `values`.
    values : sequence of str
        Distinct labels, sorted.

    Examples
    --------
    >>> labels = CodedLabels(np.array([1, 0], np.uint8), ["ham", "spam"])
    >>> labels, np.asarray(labels).tolist()
    (<CodedLabels: 2 rows>, ['spam', 'ham'])
    """

    def __init__(self, codes: NDArray[Any], values: Sequence[str]) -> None:
        self.codes, self.values = codes, list(values)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<CodedLabels: {len(self)} rows>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(np.array(self.values)[self.codes], dtype=dtype)


def is_dask(values: object) -> bool:
    """Whether something is a Dask collection; Dask is not imported for that."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(values))


def pieces_of(values: object) -> Iterator[NDArray[Any]] | None:
    """Consecutive pieces of a column or matrix, rows first; None if it is all in memory.

    Raises
    ------
    InputError
        While they are read, if a piece is no array.
    """
    read = getattr(values, "row_pieces", None)
    if callable(read) and not isinstance(values, type):
        pieces: Iterator[NDArray[Any]] = read()
        return pieces
    return _computed(values) if is_dask(values) else None


def compact(values: object, *, what: str) -> Any:
    """Labels in little memory: unchanged if they are in memory, else read once.

    Values and kind of number stay: booleans, integers, floats. Text becomes :class:`CodedLabels`.

    Parameters
    ----------
    values : array-like
        Or what :func:`pieces_of` takes.
    what : str
        What they are, for messages.

    Raises
    ------
    InputError
        If they are missing, or of several kinds; no value is quoted.
    """
    pieces = pieces_of(values)
    if pieces is None:
        return values
    parts: list[NDArray[Any]] = []
    codes: dict[str, int] = {}
    kinds = set()
    for piece in pieces:
        array = one_column(as_array(piece, what=what))
        if array.ndim != 1:
            raise InputError(
                f"{what} must be one column; got {array.ndim - 1} axes beside the rows; choose one"
            )
        if len(array):
            typed, kind = typed_array(array, what=what)
            kinds.add(kind if kind == "text" else typed.dtype.kind.replace("u", "i"))
            parts.append(_numbered(typed, codes) if kind == "text" else _shortened(typed))
    if len(kinds) != 1:
        raise InputError(f"{what} must be of one kind in every chunk; got {len(kinds)} kinds; convert them")
    if not codes:
        return _joined(parts)
    joined = np.concatenate(parts)
    order = sorted(codes)
    places = np.empty(len(codes), np.min_scalar_type(len(codes)))
    places[[codes[value] for value in order]] = np.arange(len(codes))
    return CodedLabels(places[joined], order)


def in_blocks(rows: int, *, width: int = 1) -> Iterator[slice]:
    """Slices that cover all rows, each of at most :data:`BLOCK` numbers if a row has so many."""
    step = max(1, BLOCK // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _numbered(labels: NDArray[Any], codes: dict[str, int]) -> NDArray[Any]:
    """Codes of a piece of text labels; new labels are added to `codes`."""
    import pandas as pd  # noqa: PLC0415 - a slow import that numbers do not need

    places, values = pd.factorize(labels.astype(np.object_))
    mine = np.array([codes.setdefault(value, len(codes)) for value in values.tolist()])
    return mine.astype(np.min_scalar_type(len(codes)))[places]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    kind = np.result_type(*parts)
    if kind.kind in "iu" and kind != np.uint64:
        kind = _narrowest(min(int(part.min()) for part in parts), max(int(part.max()) for part in parts))
    return np.concatenate(parts, dtype=kind, casting="unsafe")


def _shortened(numbers: NDArray[Any]) -> NDArray[Any]:
    """Integers in as few bytes as they need; 64 bits without a sign stay what they are."""
    if numbers.dtype.kind not in "iu" or numbers.dtype == np.uint64:
        return numbers.copy()
    return numbers.astype(_narrowest(int(numbers.min()), int(numbers.max())))


def _narrowest(low: int, high: int) -> np.dtype[Any]:
    """Smallest integer type for a range."""
    return np.result_type(np.min_scalar_type(low), np.min_scalar_type(-high - 1 if low < 0 <= high else high))


def _computed(collection: Any) -> Iterator[NDArray[Any]]:
    import dask  # noqa: PLC0415 - optional, and here already

    parts = dask_parts(collection)
    for start in range(0, len(parts), _AHEAD):
        for piece in dask.compute(*parts[start : start + _AHEAD]):
            yield as_array(piece, what="a Dask chunk")


def dask_parts(collection: Any) -> list[Any]:
    """Parts of a Dask array or frame, all columns of some rows each.

    Raises
    ------
    InputError
        If it is another collection.
    """
    axes = getattr(collection, "ndim", None)
    axes = axes if isinstance(axes, int) else 0  # of something delayed, every attribute is delayed
    if axes and hasattr(collection, "blocks"):
        whole = collection.rechunk(dict.fromkeys(range(1, axes), -1))
        return [whole.blocks[number] for number in range(whole.numblocks[0])]
    if axes and hasattr(collection, "dtypes"):
        return [collection.partitions[number] for number in range(collection.npartitions)]
    raise InputError(
        f"of Dask, an array, a DataFrame or a Series can be taken; got {type(collection).__name__}; convert it"
    )
