"""The rows that fitted models were scored on, by which rows with shuffled columns are recognised."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from reusable_holdout.guard.fingerprint import fingerprint

__all__ = ["Key", "Rows", "ScoredRows", "scored_rows_of"]

_MOST, _SENT, _COLUMNS = 1_000, 16, 64  # models kept; models sent to a worker; columns compared
_ROUNDING = 1e-6  # of a score: single precision, and threads that add in another order

Key: TypeAlias = tuple[bytes, str]
"""A model's content, and the digest of the labels it was scored with."""


class Rows(NamedTuple):
    """A model's score on some rows, and digests of these rows.

    Attributes
    ----------
    score : float
        As a fraction of the metric's range.
    columns : tuple of str
        Of each column that was read, in place; empty for a constant column.
    values : tuple of str
        Of the sorted values of each.
    """

    score: float
    columns: tuple[str, ...]
    values: tuple[str, ...]

    def has_shuffled(self, other: Rows) -> bool:
        """Return True if other rows with the same labels are these rows with some columns changed.

        Then a column is the same in both, or all columns hold the same values in another order. Rows with the same
        score are let through: a shuffle that changes no score has the same answer.
        """
        same = any(one and one == two for one, two in zip(self.columns, other.columns, strict=False))
        return abs(self.score - other.score) > _ROUNDING and (same or self.values == other.values)


class ScoredRows:
    """The rows of one guard's scorers, in this process and in the process that sent them."""

    def __init__(self) -> None:
        self._known: dict[Key, Rows] = {}
        self._objects: dict[int, tuple[weakref.ref[Any], bytes]] = {}

    def are_shuffled(self, content: bytes, X: Any, y: Any, score: float) -> bool:
        """Note the rows that a model is scored on; return True if they are known rows with shuffled columns."""
        rows = Rows(score, *_columns(X))
        known = self._known.setdefault((content, _digest(y)), rows)
        for old in list(self._known)[:-_MOST]:
            self._known.pop(old, None)
        return known.has_shuffled(rows)

    def is_read_whole(self, model: Any, content: bytes) -> bool:
        """Note that a model is scored; return False if it is a known object whose content is never the same.

        Such a model may have been fitted again in between, or not.
        """
        number, forget = id(model), self._objects.pop
        known, before = self._objects.get(number, (lambda: None, content))
        if known() is model and before != content and fingerprint(model) != content:
            return False
        with contextlib.suppress(TypeError):  # an object that cannot be remembered
            self._objects[number] = weakref.ref(model, lambda _: forget(number, None)), content
        return True

    def latest(self) -> list[tuple[Key, Rows]]:
        """Return the last rows; a worker that scores the same models needs them."""
        return list(self._known.items())[-_SENT:]

    def add(self, rows: list[tuple[Key, Rows]]) -> None:
        """Add the rows of the process that sent a scorer."""
        for key, one in rows:
            self._known.setdefault(key, one)


_OF_GUARDS: weakref.WeakKeyDictionary[Any, ScoredRows] = weakref.WeakKeyDictionary()


def scored_rows_of(guard: Any) -> ScoredRows:
    """Return the scored rows of a guard: in one process all copies of a scorer share them."""
    return _OF_GUARDS.setdefault(guard, ScoredRows())


def _columns(X: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return digests of the columns, and of their sorted values."""
    columns, values = [], []
    for column in _each_column(X):
        ordered = np.sort(column)
        constant = len(ordered) == 0 or ordered[0] == ordered[-1]
        columns.append("" if constant else _digest(column))
        values.append(_digest(ordered))
    return tuple(columns), tuple(values)


def _each_column(X: Any) -> Iterator[NDArray[Any]]:
    """Yield the columns; of a wide table some are enough."""
    table = X if hasattr(X, "shape") else np.asarray(X)
    table = table.tocsr() if hasattr(table, "tocsr") else table
    places = np.unique(np.linspace(0, table.shape[1] - 1, _COLUMNS).astype(np.int64))
    part = _safe_indexing(table, places, axis=1)
    part = part.toarray() if hasattr(part, "toarray") else part
    for place in range(len(places)):
        column = np.asarray(_safe_indexing(part, place, axis=1))
        yield column.astype(str) if column.dtype.kind == "O" else column


def _digest(values: Any) -> str:
    return str(joblib.hash(np.ascontiguousarray(values)))
