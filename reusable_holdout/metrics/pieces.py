"""Columns that do not fit into memory as they are: Dask collections, and objects with a method ``row_pieces``.

They are read once, in order. The copy that is kept is small: whole numbers in the fewest bytes that hold them, and text
as codes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import (
    CodedLabels,
    as_array,
    in_pieces,
    is_dask,
    one_column,
    typed_array,
)

__all__ = ["compact", "dask_parts", "pieces_of"]

_AHEAD = min(os.cpu_count() or 1, 8)  # Dask's chunks that are computed, and held, together


def pieces_of(values: Any) -> Iterator[NDArray[Any]]:
    """Return consecutive pieces of a column or matrix, rows first."""
    if is_dask(values):
        return _computed(values)
    pieces: Iterator[NDArray[Any]] = values.row_pieces()
    return pieces


def compact(values: object, *, what: str) -> Any:
    """Return labels in little memory: unchanged if they are in memory, else read once, piece by piece.

    Values and kind of number stay: booleans, integers, floats. Text becomes :class:`CodedLabels`. No value is quoted.
    """
    if not in_pieces(values):
        return values
    parts: list[NDArray[Any]] = []
    codes: dict[str, int] = {}
    kinds = set()
    for piece in pieces_of(values):
        array = one_column(as_array(piece, what=what))
        if array.ndim != 1:
            raise InputError(
                f"{what} must be one column; got {array.ndim - 1} axes beside the rows; choose one"
            )
        if len(array):
            typed, kind = typed_array(array, what=what)
            kinds.add(kind if kind == "text" else typed.dtype.kind.replace("u", "i"))
            parts.append(_numbered(typed, codes) if kind == "text" else _joined([typed]))
    if len(kinds) != 1:
        raise InputError(f"{what} must be of one kind in every chunk; got {len(kinds)} kinds; convert them")
    if not codes:
        return _joined(parts)
    order = sorted(codes)
    places = np.empty(len(codes), np.min_scalar_type(len(codes)))
    places[[codes[value] for value in order]] = np.arange(len(codes))
    return CodedLabels(places[np.concatenate(parts)], order)


def _numbered(labels: NDArray[Any], codes: dict[str, int]) -> NDArray[Any]:
    """Return codes of a piece of text labels, and add new labels to `codes`."""
    places, values = pd.factorize(labels.astype(np.object_))
    mine = np.array([codes.setdefault(value, len(codes)) for value in values.tolist()])
    return mine.astype(np.min_scalar_type(len(codes)))[places]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Copy pieces into one array: integers in as few bytes as they need, but unsigned 64-bit integers unchanged."""
    kind = np.result_type(*parts)
    if kind.kind in "iu" and kind != np.uint64:
        low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
        other = -high - 1 if low < 0 <= high else high  # NumPy's smallest type for a number >= 0 has no sign
        kind = np.result_type(np.min_scalar_type(low), np.min_scalar_type(other))
    return np.concatenate(parts, dtype=kind, casting="unsafe")


def _computed(collection: Any) -> Iterator[NDArray[Any]]:
    import dask  # noqa: PLC0415 - optional, and imported already by whoever made the collection

    parts = dask_parts(collection)
    for start in range(0, len(parts), _AHEAD):
        for piece in dask.compute(*parts[start : start + _AHEAD]):
            yield as_array(piece, what="a Dask chunk")


def dask_parts(collection: Any) -> list[Any]:
    """Return the parts of a Dask array or frame, each with all columns of some rows."""
    axes = getattr(collection, "ndim", None)
    axes = axes if isinstance(axes, int) else 0  # every attribute of a delayed object is delayed
    if axes and hasattr(collection, "blocks"):
        whole = collection.rechunk(dict.fromkeys(range(1, axes), -1))
        return [whole.blocks[number] for number in range(whole.numblocks[0])]
    if axes and hasattr(collection, "dtypes"):
        return [collection.partitions[number] for number in range(collection.npartitions)]
    raise InputError(
        f"of Dask, an array, a DataFrame or a Series can be taken; got {type(collection).__name__}; convert it"
    )
