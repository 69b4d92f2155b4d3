"""What a holdout's rows are known by: their ids, or their features; and what a ledger keeps of that."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.configuration import KeptRows
from reusable_holdout.guard.row_sets import RowSet, column_names, names_in, width_of
from reusable_holdout.queries.containers import compact, typed_array
from reusable_holdout.queries.targets import rows_of

if TYPE_CHECKING:
    from reusable_holdout.guard.inputs import PrivateData

__all__ = [
    "KnownRows",
    "Names",
    "are_ids",
    "by_name",
    "comparable_names",
    "names_of",
    "secret_of",
]

_IDS, _FEATURES, _BY_NAME = "ids", "features", "features by name"


class Names(NamedTuple):
    """Names of rows.

    Attributes
    ----------
    kind : {"numbers", "text"}
    rows : RowSet
    """

    kind: str
    rows: RowSet

    @property
    def part(self) -> str:
        """What the part of a ledger is called that keeps them."""
        return f"{_IDS} of {self.kind}"


class KnownRows:
    """What one holdout's rows are known by.

    Parameters
    ----------
    holdout : PrivateData
    ids : array-like of shape (rows,), optional
        Distinct names; of judged rows their own.
    nothing : str
        What an error says did not happen.

    Raises
    ------
    InputError
        If ids are no names, one for each row.
    """

    def __init__(self, holdout: PrivateData, ids: Any = None, *, nothing: str = "nothing was made") -> None:
        self.holdout = holdout
        judged = holdout.bound.metric.response == "judged"
        if judged and ids is not None:
            raise InputError(f"judged rows have ids already, y; got ids=, too; {nothing}; leave it out")
        given = holdout.y if judged else ids
        self.ids = None if given is None else names_of(given, what="ids=", nothing=nothing)
        if self.ids is not None:
            self._check(self.ids.rows, nothing)

    def _check(self, names: RowSet, nothing: str) -> None:
        rows = self.holdout.bound.rows
        if names.rows != rows:
            raise InputError(
                f"ids= must name each of the {rows:,} rows; got {names.rows:,} names; {nothing}; pass one for each"
            )
        if names.copies.repeated:
            raise InputError(
                f"ids= must name each row once; {names.copies.repeated:,} of {rows:,} rows share a name with another; "
                f"{nothing}; pass distinct names"
            )

    def kept(self, key: bytes, epoch: int, features: RowSet | None, *, by_name: bool) -> KeptRows:
        """What a ledger keeps of the rows.

        Parameters
        ----------
        key : bytes
            The noise key.
        epoch : int
        features : RowSet or None
        by_name : bool
            Whether columns come in the order of their names.
        """
        sets = {} if features is None else {_BY_NAME if by_name else _FEATURES: features}
        if self.ids is not None:
            sets[self.ids.part] = self.ids.rows
        texts = {part: rows.text(secret_of(key, epoch, part)) for part, rows in sets.items()}
        digests = {part: hashlib.sha256(text).hexdigest() for part, text in texts.items()}
        return KeptRows(digests, b"".join(texts.values()))


def secret_of(key: bytes, epoch: int, part: str) -> bytes:
    """Secret of the numbers of one epoch's rows: which rows two epochs share is told by none of both."""
    return hashlib.blake2b(f"{part} of epoch {epoch}".encode(), key=key, digest_size=32).digest()


def are_ids(part: str) -> bool:
    """Whether a part is of ids."""
    return part.startswith(_IDS)


def by_name(part: str) -> bool:
    """Whether a part has columns in the order of their names."""
    return part == _BY_NAME


def comparable_names(table: Any, X: Any) -> tuple[str, ...] | None:
    """Names by which the columns of a table come in the order that those of a holdout do.

    Raises
    ------
    InputError
        If it has other columns.
    """
    mine, theirs = column_names(X), column_names(table)
    if width_of(table) != width_of(X):
        raise InputError(f"got rows of shape {width_of(table)}, the holdout's are {width_of(X)}")
    if mine is None or theirs is None:
        return mine
    if set(mine) != set(theirs):
        raise InputError(f"{len(set(theirs) - set(mine))} of the columns have other names")
    return theirs


def names_of(given: Any, *, what: str, nothing: str) -> Names:
    """Names of rows.

    Raises
    ------
    InputError
        If they are missing, or of several kinds; none is quoted.
    """
    column = rows_of(compact(given, what=what), what=what)
    array, kind = typed_array(column, what=what)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{what} must name every row; some are missing; {nothing}; name them, or leave them out"
        )
    return Names(kind, names_in(array))
