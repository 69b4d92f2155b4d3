"""Holdouts too large for memory: Parquet files and Dask collections, read and predicted chunk by chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError

__all__ = ["ChunkedRows", "Part"]


class Part(Protocol):
    """Consecutive rows that one task works on; it travels to other processes and machines."""

    def check(self) -> None:
        """Refuse rows that were moved or changed; the check is quick, and does not find every change."""

    def chunks(self) -> Iterator[Any]:
        """Yield the rows in chunks that the caller may change; raise InputError if the files changed."""


class ChunkedRows(ABC):
    """Features whose rows are read chunk by chunk; its repr shows their number only.

    `names` are the names of the columns, or None if they have none; `shape` is the shape of the whole table or array,
    with the rows first.
    """

    names: tuple[Any, ...] | None
    shape: tuple[int, ...]

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """Return the rows in order, in parts for parallel work."""

    @abstractmethod
    def select(self, names: Sequence[Any]) -> Self:
        """Return the rows with these columns only."""

    def chunks(self) -> Iterator[Any]:
        """Yield all rows in order, one chunk at a time."""
        for part in self.parts():
            yield from part.chunks()

    def row_pieces(self) -> Iterator[NDArray[Any]]:
        """Yield all rows in order, as arrays: for labels and predictions."""
        for chunk in self.chunks():
            if hasattr(chunk, "iloc"):
                one = chunk.ndim == 2 and chunk.shape[1] == 1
                yield np.asarray((chunk.iloc[:, 0] if one else chunk).to_numpy())
            else:
                yield np.asarray(chunk)

    def split(self, name: Any) -> tuple[Self, Self]:
        """Return the rows without one column, and that column; InputError if it does not exist or is the only one."""
        names = self.names or ()
        if names.count(name) != 1 or len(names) == 1:
            shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise InputError(
                f"y must name one of several columns of X; got {name!r} and columns {shown or 'without names'}; "
                "nothing was made"
            )
        return self.select([one for one in names if one != name]), self.select([name])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.shape[0]:,} rows>"
