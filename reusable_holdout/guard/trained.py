"""Whether an analyst's rows hold rows of the holdout: of some never told by itself, but as a model that fails."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import attempt
from reusable_holdout.guard.inputs import rows_and_labels
from reusable_holdout.guard.known_rows import comparable_names
from reusable_holdout.guard.row_sets import ANALYSTS, by_chance, column_names, ordered_rows

if TYPE_CHECKING:
    from reusable_holdout.guard.inputs import PrivateData
    from reusable_holdout.guard.row_sets import RowSet

__all__ = ["TrainedOn"]


class TrainedOn:
    """What is known of the rows that an analyst's models were trained on; one for all metrics of the holdout.

    Features alone are compared: labels and ids would be read out.

    Parameters
    ----------
    holdout : PrivateData
    allowed : bool
        Whether the owner insists: then nothing is looked for.
    """

    def __init__(self, holdout: PrivateData, *, allowed: bool) -> None:
        self._holdout, self._allowed = holdout, allowed
        self._last: tuple[weakref.ref[Any], bool] | None = None  # loops ask with one table

    def __repr__(self) -> str:
        return "<training rows>"

    def holds(self, X_train: Any) -> bool:
        """Whether some of these rows are in the holdout, more than chance explains: a fact about it, to be priced.

        Rows that cannot be compared hold none.
        """
        if X_train is None or self._allowed or self._holdout.X is None:
            return False
        last = self._last
        if last is not None and last[0]() is X_train:
            return last[1]
        rows = attempt(lambda: _compared(X_train, self._holdout.X))
        found = rows is not None and self._shares(rows)
        try:
            self._last = weakref.ref(X_train), found
        except TypeError:  # a list
            self._last = None
        return found

    def is_in(self, table: Any) -> bool:
        """Whether most of the holdout's rows are among these, whichever precision they are kept in."""
        X = self._holdout.X
        if X is None:
            return False
        rows = attempt(lambda: _compared(table, X))
        if rows is not None and _is_most(self._holdout.row_set, rows):
            return True
        if not _is_single(table):
            return False
        own = attempt(lambda: ordered_rows(_in_single(X), column_names(X)))
        rows = attempt(lambda: _compared(_in_single(table), X))
        return own is not None and rows is not None and _is_most(own, rows)

    def _shares(self, rows: RowSet) -> bool:
        own = self._holdout.row_set
        return rows.rows > 0 and own.common(rows) > by_chance(own.copies, rows.copies, ANALYSTS)


def _compared(X_train: Any, X: Any) -> RowSet | None:
    """Rows of a table with the holdout's columns; None if it has others, which anyone may know."""
    table = rows_and_labels(X_train, None)[0]
    try:
        return ordered_rows(table, comparable_names(table, X))
    except InputError:
        return None


def _is_most(own: RowSet, rows: RowSet) -> bool:
    common = own.common(rows) if rows.rows else 0
    if common == own.rows == rows.rows:
        return True
    return 2 * common > own.rows and common > by_chance(own.copies, rows.copies, ANALYSTS)


def _is_single(table: Any) -> bool:
    """Whether a table has numbers of less than double precision."""
    kinds = table.dtypes if hasattr(table, "dtypes") else [getattr(table, "dtype", None)]
    return any(kind in (np.float32, np.float16) for kind in kinds)


def _in_single(table: Any) -> Any:
    if not hasattr(table, "columns"):
        return table.astype(np.float32)
    return table.astype({name: np.float32 for name, kind in table.dtypes.items() if kind.kind == "f"})
