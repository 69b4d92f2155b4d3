"""A memory of the rows that each fitted model was scored on.

With it a scorer recognises rows whose columns were shuffled, for example by permutation_importance.
"""

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

_MOST, _SENT, _COLUMNS = 1_000, 16, 64  # models remembered; models sent to a worker; columns compared
_ROUNDING = 1e-6  # differences of a score from single precision, and from threads that add in another order

Key: TypeAlias = tuple[bytes, str]
"""A model's content, and the digest of the labels it was scored with."""


class Rows(NamedTuple):
    """A model's score on some rows, and digests of these rows.

    Attributes
    ----------
    score : float
        The score as a fraction of the metric's range.
    columns : tuple of str
        Digest of the values of each compared column, in the order of the rows; empty for a constant column.
    values : tuple of str
        Digest of the sorted values of each compared column.
    """

    score: float
    columns: tuple[str, ...]
    values: tuple[str, ...]

    def has_shuffled(self, other: Rows) -> bool:
        """Return True if other rows with the same labels are these rows with shuffled columns.

        Two tables count as shuffled if one column is equal in both, or if all columns hold the same values in another
        order. If both have the same score, the result is False: a shuffle that changes no score changes no answer.
        """
        same = any(one and one == two for one, two in zip(self.columns, other.columns, strict=False))
        return abs(self.score - other.score) > _ROUNDING and (same or self.values == other.values)


class ScoredRows:
    """The rows that the scorers of one guard have seen, in this process and in the process that sent the scorer."""

    def __init__(self) -> None:
        self._known: dict[Key, Rows] = {}
        self._objects: dict[int, tuple[weakref.ref[Any], bytes]] = {}

    def are_shuffled(self, content: bytes, X: Any, y: Any, score: float) -> bool:
        """Remember the rows that a model is scored on; return True if they are earlier rows with shuffled columns."""
        rows = Rows(score, *_columns(X))
        known = self._known.setdefault((content, _digest(y)), rows)
        for old in list(self._known)[:-_MOST]:
            self._known.pop(old, None)
        return known.has_shuffled(rows)

    def is_read_whole(self, model: Any, content: bytes) -> bool:
        """Remember that a model is scored; return False if its fingerprint differs each time it is taken.

        Nobody can tell if such a model was fitted again since it was last scored. It is recognised when the same object
        is scored for the second time.
        """
        number, forget = id(model), self._objects.pop
        known, before = self._objects.get(number, (lambda: None, content))
        if known() is model and before != content and fingerprint(model) != content:
            return False
        with contextlib.suppress(TypeError):  # an object that cannot be remembered
            self._objects[number] = weakref.ref(model, lambda _: forget(number, None)), content
        return True

    def latest(self) -> list[tuple[Key, Rows]]:
        """Return the rows that were remembered last, to be sent to a worker that scores the same models."""
        return list(self._known.items())[-_SENT:]

    def add(self, rows: list[tuple[Key, Rows]]) -> None:
        """Add rows that were remembered in the process that sent the scorer."""
        for key, one in rows:
            self._known.setdefault(key, one)


_OF_GUARDS: weakref.WeakKeyDictionary[Any, ScoredRows] = weakref.WeakKeyDictionary()


def scored_rows_of(guard: Any) -> ScoredRows:
    """Return the rows that a guard's scorers have seen; all copies of a scorer in one process share them."""
    return _OF_GUARDS.setdefault(guard, ScoredRows())


def _columns(X: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a digest of each column, and a digest of the sorted values of each column."""
    columns, values = [], []
    for column in _each_column(X):
        ordered = np.sort(column)
        constant = len(ordered) == 0 or ordered[0] == ordered[-1]
        columns.append("" if constant else _digest(column))
        values.append(_digest(ordered))
    return tuple(columns), tuple(values)


def _each_column(X: Any) -> Iterator[NDArray[Any]]:
    """Yield the columns of a table; if it has more than 64, yield 64 of them."""
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
