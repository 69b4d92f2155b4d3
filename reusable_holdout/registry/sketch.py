"""Sketches of rows: a few thousand keyed numbers that tell whether two sets of rows have some in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reusable_holdout.registry.hashing import Words, mixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["Part", "Sketch", "Sketcher", "overlap"]

_KEPT = 1024  # numbers of each part
_TELLING = 4  # columns whose values tell rows apart by themselves
_REPEATED = 0.1  # of the rows at most: values of such a column
_WHOLE = float(1 << 64)
_FEWEST = 3  # numbers in common that are no accident
_OF_ROWS, _OF_VALUES = 0.02, 0.2  # in common by chance: rows of one population, values of a column
_ROUGHLY = 8.0  # times as many are looked at as are kept


class Part(NamedTuple):
    """The smallest of the hashes of some values, digested.

    Attributes
    ----------
    kind : {"rows", "values"}
        What was hashed: whole rows, or the values of one column.
    rate : float
        Share of all hashes that are below the largest one kept; 1 if all are.
    distinct : float
        How many values there are, about.
    repeated : float
        Share of the rows whose value another one had before, about.
    numbers : numpy.ndarray of uint64
        Sorted.
    """

    kind: str
    rate: float
    distinct: float
    repeated: float
    numbers: NDArray[np.uint64]


@dataclass(frozen=True)
class Sketch:
    """What is kept of a set of rows.

    Attributes
    ----------
    rows : int
    total : str
        Digest of all rows whatever their order, or, of labels alone, in order.
    parts : tuple of Part
    """

    rows: int
    total: str
    parts: tuple[Part, ...]


def overlap(one: Sketch, other: Sketch) -> float:
    """Share of the smaller set of rows that the other one has, too, about; 0 if it may be chance.

    Rows of one population may agree by chance, the more the fewer values there are: what their own duplicates explain
    does not count.
    """
    if one.total == other.total and one.rows == other.rows:
        return 1.0
    found = 0.0
    for mine in one.parts:
        for theirs in other.parts:
            if mine.kind == theirs.kind:
                chance = _OF_VALUES if mine.kind == "values" else _OF_ROWS
                chance += 2.0 * max(mine.repeated, theirs.repeated)
                share = _share(mine, theirs)
                found = max(found, share if share > chance else 0.0)
    return min(found, 1.0)


def _share(mine: Part, theirs: Part) -> float:
    rate, common = min(mine.rate, theirs.rate), len(np.intersect1d(mine.numbers, theirs.numbers))
    smaller = min(mine.distinct, theirs.distinct)
    if not common or common < min(_FEWEST, smaller):
        return 0.0
    return common / rate / smaller


class Sketcher:
    """Makes the sketch of rows that come piece by piece.

    Parameters
    ----------
    key : bytes
        Of 32 bytes: without it the numbers say nothing.
    """

    def __init__(self, key: bytes) -> None:
        self._words = Words(key)
        self._salt = np.uint64(int.from_bytes(self._digest(b"salt"), "little"))
        self._rows, self._sum = 0, 0
        self._whole, self._columns = _Least(), list[_Least]()
        self._tell: list[bool] = []

    def add(self, columns: Iterable[NDArray[Any]]) -> None:
        """Go on with the rows of these columns, each of shape (rows,)."""
        whole: NDArray[np.uint64] | None = None
        for place, column in enumerate(columns):
            values = self._hashed(column)
            if place == len(self._columns):
                self._columns.append(_Least())
                self._tell.append(True)
            self._tell[place] &= _may_tell(column)
            if self._tell[place]:
                self._columns[place].add(values)
            whole = values if whole is None else np.add(whole, values, out=whole)
        if whole is None:
            return
        rows = mixed(whole)  # whatever the columns' order and names
        self._rows += len(rows)
        self._sum = (self._sum + int(rows.sum(dtype=np.uint64))) % (1 << 64)
        self._whole.add(rows)

    def sketch(self) -> Sketch:
        """Sketch of all rows so far."""
        telling = [
            least
            for least, tells in zip(self._columns, self._tell, strict=True)
            if tells and least.repeated <= _REPEATED
        ]
        telling.sort(
            key=lambda least: int(least.hashes[0])
        )  # the same ones, if columns are added or left out
        parts = [self._part("rows", self._whole), *(self._part("values", one) for one in telling[:_TELLING])]
        total = self._digest(f"{self._rows} rows {self._sum}".encode()).hex()
        return Sketch(self._rows, total, tuple(parts))

    def of_whole(self, rows: int, content: bytes) -> Sketch:
        """Sketch of what is known as a whole only: labels alone, in order."""
        return Sketch(rows, self._digest(b"whole" + content).hex(), ())

    def _part(self, kind: str, least: _Least) -> Part:
        numbers = [int.from_bytes(self._digest(one.tobytes()), "little") for one in least.hashes]
        ordered = np.sort(np.array(numbers, dtype=np.uint64))
        return Part(kind, least.rate, least.distinct, least.repeated, ordered)

    def _digest(self, content: bytes) -> bytes:
        return self._words.digest(content)

    def _hashed(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        return mixed(self._words.of(column) ^ self._salt)


class _Least:
    """The smallest of all hashes that came, each once, and how often each came."""

    def __init__(self) -> None:
        self.hashes = np.zeros(0, dtype=np.uint64)
        self._times = np.zeros(0, dtype=np.int64)

    def add(self, values: NDArray[np.uint64]) -> None:
        if len(self.hashes) == _KEPT:
            few = values[values <= self.hashes[-1]]
        else:
            few = values[values < np.uint64(min(_ROUGHLY * _KEPT / max(len(values), 1), 0.99) * _WHOLE)]
            if (
                len(_counted(few, np.ones(len(few), dtype=np.int64))[0]) < _KEPT
            ):  # many are the same, or all are few
                few = values
        hashes, times = _counted(
            np.concatenate([self.hashes, few]),
            np.concatenate([self._times, np.ones(len(few), dtype=np.int64)]),
        )
        self.hashes, self._times = hashes[:_KEPT], times[:_KEPT]

    @property
    def rate(self) -> float:
        return 1.0 if len(self.hashes) < _KEPT else (float(self.hashes[-1]) + 1.0) / _WHOLE

    @property
    def distinct(self) -> float:
        return len(self.hashes) / self.rate

    @property
    def repeated(self) -> float:
        times = int(self._times.sum())
        return 1.0 - len(self.hashes) / times if times else 0.0


def _counted(
    values: NDArray[np.uint64], times: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Each value once, in order, and how often it came in all; numpy's own is several times as slow."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    if not len(starts):
        return ordered, times
    return ordered[starts], np.add.reduceat(times[order], starts)


def _may_tell(column: NDArray[Any]) -> bool:
    """Whether values of a column may tell rows apart: text, or numbers that are not whole, as counters are."""
    if column.dtype.kind == "f":
        head = column[: 1 << 10]
        return bool((head != np.floor(head)).mean() > 0.5)
    return column.dtype.kind in "OUST"
