"""Recognition of a holdout's rows by ids or features: what a ledger keeps for it, and comparison with other tables.

An analyst holds one table only. She is never told directly that it has rows of the holdout: the question then counts as
a model that failed.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Any, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.guard.boundary import attempt, sealed
from reusable_holdout.guard.configuration import Configuration, KeptRows
from reusable_holdout.guard.inputs import PrivateData, rows_and_labels
from reusable_holdout.guard.row_sets import ANALYSTS, RowSet, by_chance, column_names, ordered_rows
from reusable_holdout.metrics.containers import compact, typed_array
from reusable_holdout.metrics.targets import rows_of
from reusable_holdout.registry import Words, mixed

_IDS, _FEATURES, _BY_NAME = "ids", "features", "features by name"


class Names(NamedTuple):
    """Names of rows, of one kind: "numbers" or "text"."""

    kind: str
    rows: RowSet

    @property
    def part(self) -> str:
        """The name of the ledger's part that keeps them."""
        return f"{_IDS} of {self.kind}"


class OwnedRows:
    """The rows of a guard, the ids or features by which they are recognised, and the owner's word on overlaps.

    Ids are distinct names, one for each row; else an InputError quotes `nothing`. Judged rows have ids already.
    """

    def __init__(self, holdout: PrivateData, ids: Any, *, allowed: bool, nothing: str) -> None:
        self.holdout, self.allowed, self._named = holdout, allowed, ids is not None
        self.nothing = nothing
        judged = holdout.bound.metric.response == "judged"
        if judged and ids is not None:
            raise InputError(f"judged rows have ids already, in y; got ids=, too; {nothing}; leave ids= out")
        given = holdout.y if judged else ids
        self.ids = None if given is None else names_of(given, what="ids=", nothing=nothing)
        if self.ids is None:
            return
        names, rows = self.ids.rows, holdout.bound.rows
        if names.rows != rows:
            raise InputError(
                f"ids= must name each of the {rows:,} rows; got {names.rows:,} names; {nothing}; pass one for each"
            )
        if names.copies.repeated:
            raise InputError(
                f"ids= must name each row once; {names.copies.repeated:,} of {rows:,} rows share a name with another; "
                f"{nothing}; pass distinct names"
            )

    def kept(self, key: bytes, *, epoch: int = 1) -> KeptRows:
        """Return the data by which a new epoch recognises its rows, under the noise key."""
        X = self.holdout.X
        features = None if X is None else self.holdout.row_set
        return self.kept_as(key, epoch, features, by_name=column_names(X) is not None)

    def kept_as(self, key: bytes, epoch: int, features: RowSet | None, *, by_name: bool) -> KeptRows:
        """Return what a ledger keeps of ids and features.

        `by_name` is True if the columns of the features are in the order of their names.
        """
        sets = {} if features is None else {_BY_NAME if by_name else _FEATURES: features}
        if self.ids is not None:
            sets[self.ids.part] = self.ids.rows
        texts = {part: rows.text(secret_of(key, epoch, part)) for part, rows in sets.items()}
        digests = {part: hashlib.sha256(text).hexdigest() for part, text in texts.items()}
        return KeptRows(digests, b"".join(texts.values()))

    def check_same(self, stored: Configuration, key: bytes) -> None:
        """Raise LedgerMismatchError if ids are given that the ledger was not made with."""
        digests = self.kept_as(key, stored.epoch, None, by_name=False).digests
        if self._named and not digests.items() <= stored.known_rows.items():
            raise LedgerMismatchError(
                "ids= must be those the ledger was made with; these differ, or it was made without ids; nothing was "
                "asked and nothing was charged; resume with ReusableHoldout.open"
            )


def secret_of(key: bytes, epoch: int, part: str) -> bytes:
    """Return the secret for one epoch's rows, so that two epochs do not show which rows they share."""
    return hashlib.blake2b(f"{part} of epoch {epoch}".encode(), key=key, digest_size=32).digest()


def are_ids(part: str) -> bool:
    """Return True if a part of a ledger's known rows holds ids."""
    return part.startswith(_IDS)


def by_name(part: str) -> bool:
    """Return True if a part of a ledger's known rows has columns in the order of their names."""
    return part == _BY_NAME


def comparable_names(table: Any, X: Any) -> tuple[str, ...] | None:
    """Return the names by which a table's columns are sorted into the order of a holdout's columns.

    An InputError is raised if the table has other columns.
    """
    mine, theirs = column_names(X), column_names(table)
    came, width = np.shape(table)[1:], np.shape(X)[1:]
    if came != width:
        raise InputError(f"got rows of shape {came}, the holdout's are {width}")
    if mine is None or theirs is None:
        return mine
    if set(mine) != set(theirs):
        strange = len(set(theirs) - set(mine))
        raise InputError(f"{strange} of the other rows' columns have names that no column of these rows has")
    return theirs


def names_of(given: Any, *, what: str, nothing: str) -> Names:
    """Return the names of rows; an InputError, which quotes none, if some are missing or of different types."""
    column = rows_of(compact(given, what=what), what=what)
    array, kind = typed_array(column, what=what)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{what} must name every row; some are missing; {nothing}; name them, or leave them out"
        )
    return Names(kind, RowSet(mixed(Words().of(array))))


# ---- an analyst's


class TrainedOn:
    """The comparison of the holdout's rows with the rows that an analyst's models were trained on.

    One comparison serves all metrics of the holdout. It uses features alone, because an analyst could find out labels
    and ids by asking. If the owner allows overlap, nothing is compared.
    """

    def __init__(self, holdout: PrivateData, *, allowed: bool) -> None:
        self._holdout, self.allowed = holdout, allowed
        self._last: tuple[weakref.ref[Any], bool] | None = None  # loops ask with one table

    def __repr__(self) -> str:
        return "<training rows>"

    def holds(self, X_train: Any) -> bool:
        """Return True if the holdout has more of these rows than chance explains: a fact that must be paid for.

        Rows that cannot be compared count as different.
        """
        if X_train is None or self.allowed or self._holdout.X is None:
            return False
        last = self._last
        if last is not None and last[0]() is X_train:
            return last[1]
        rows = attempt(lambda: _compared(X_train, self._holdout.X))
        found = rows is not None and _shared(self._holdout.row_set, rows) > 0
        try:
            self._last = weakref.ref(X_train), found
        except TypeError:  # a list
            self._last = None
        return found

    def is_in(self, table: Any) -> bool:
        """Return True if most of the holdout's rows are among these rows, in any floating-point precision."""
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


@sealed
def has_most_rows(table: Any, guard: Any) -> bool:
    """Return True if a table has more than half of a guard's rows, and more than chance explains, by features alone.

    A person who makes it true has those rows. A person who gives the table away tells nothing of a row that she lacks,
    unless she has half of the others.
    """
    return bool(guard._view.trained_on.is_in(table))


def _compared(X_train: Any, X: Any) -> RowSet | None:
    """Return the rows of a table with the holdout's columns; None if it has other columns, which is public."""
    table = rows_and_labels(X_train, None)[0]
    try:
        return ordered_rows(table, comparable_names(table, X))
    except InputError:
        return None


def _shared(own: RowSet, rows: RowSet) -> int:
    """Return the number of common rows; 0 if chance explains them."""
    common = own.common(rows)
    return common if common and common > by_chance(own.copies, rows.copies, ANALYSTS) else 0


def _is_most(own: RowSet, rows: RowSet) -> bool:
    same = own.rows == rows.rows and own.common(rows) == own.rows
    return same or 2 * _shared(own, rows) > own.rows


def _is_single(table: Any) -> bool:
    """Return True if a table has numbers of less than double precision."""
    kinds = table.dtypes if hasattr(table, "dtypes") else [getattr(table, "dtype", None)]
    return any(kind in (np.float32, np.float16) for kind in kinds)


def _in_single(table: Any) -> Any:
    if not hasattr(table, "columns"):
        return table.astype(np.float32)
    return table.astype({name: np.float32 for name, kind in table.dtypes.items() if kind.kind == "f"})
