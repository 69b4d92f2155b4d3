"""Rows of a Dask array or DataFrame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.chunks import ChunkedRows
from reusable_holdout.metrics.containers import dask_parts


class DaskRows(ChunkedRows):
    """Rows of a Dask DataFrame, or of a Dask array of two or more axes, rows first; read chunk by chunk.

    They are computed anew each time they are needed, by Dask's scheduler, unless the user has persisted them.
    """

    def __init__(self, collection: Any) -> None:
        self.collection = collection
        self._parts = dask_parts(collection)
        if collection.ndim < 2:
            raise InputError(
                "X must be a Dask array with rows and columns, or a DataFrame; got one axis; nothing was made"
            )
        self._rows = _lengths(collection, self._parts)
        frame = hasattr(collection, "columns")
        self.names = tuple(collection.columns) if frame else None
        width = (len(collection.columns),) if frame else tuple(collection.shape[1:])
        self.shape = (sum(self._rows), *width)

    def __reduce__(self) -> tuple[Any, ...]:
        return DaskRows, (self.collection,)

    def select(self, names: Sequence[Any]) -> DaskRows:
        """Return the rows with these columns only."""
        return DaskRows(self.collection[list(names)])

    def parts(self) -> list[DaskPart]:
        """Return the chunks or partitions that have rows."""
        types = None if self.names is None else dict(self.collection.dtypes)
        return [
            DaskPart(part, rows, types) for part, rows in zip(self._parts, self._rows, strict=True) if rows
        ]

    @property
    def on_a_cluster(self) -> bool:
        """True if the rows lie in the memory of a cluster's workers: only they and their client can read them."""
        try:
            from distributed import futures_of  # noqa: PLC0415 - optional
        except ImportError:
            return False
        return bool(futures_of(self.collection))


@dataclass(frozen=True)
class DaskPart:
    """One chunk or partition."""

    part: Any
    rows: int
    types: dict[Any, Any] | None

    def check(self) -> None:
        """Do nothing: a Dask part cannot be checked before it is computed."""

    def chunks(self) -> Iterator[Any]:
        """Compute the part and yield it as a copy, because it may be a view of the user's data."""
        chunk = self.part.compute()
        if len(chunk) != self.rows:
            raise InputError(
                f"a Dask chunk of X must have the {self.rows} rows it had when the guard was made; it has "
                f"{len(chunk)}; use data that do not change"
            )
        if self.types is None:
            yield np.array(chunk)
        else:
            same = dict(chunk.dtypes) == self.types
            yield chunk.copy() if same else chunk.astype(self.types)


def _lengths(collection: Any, parts: Sequence[Any]) -> list[int]:
    """Return the number of rows of each part; if Dask does not know it, the rows are counted."""
    frame = hasattr(collection, "columns")
    known = None if frame else collection.chunks[0]
    if known is not None and not any(map(math.isnan, known)):
        return list(known)
    import dask  # noqa: PLC0415 - optional, and here already

    # Dask 2025 at times took the length of the list around a delayed frame
    counts = [part.shape[0] if frame else dask.delayed(len)(part) for part in parts]
    return [int(count) for count in dask.compute(*counts)]
