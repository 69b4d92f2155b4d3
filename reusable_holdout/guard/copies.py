"""Exact copies among the rows of a holdout: noticed when its owner makes a guard of them, and told nobody else.

Copies of a row are no independent draws. Where they come from (a table joined twice, oversampling, one user's rows)
cannot be known here, nor whether chance made them: so the owner is warned, and nothing depends on it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reusable_holdout.errors import HoldoutError
from reusable_holdout.guard.digests import is_chunked, named_columns
from reusable_holdout.guard.row_sets import hashes_of
from reusable_holdout.queries.containers import CodedLabels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.guard.inputs import PrivateData

__all__ = ["CopiedRowsWarning", "warn_of_copies"]

# values of a column that tells rows apart, of the rows that are no copies
_LEAST_DISTINCT, _DISTINCT = 30, 0.9
_COLUMNS = 2  # one alone may be coarse, and the label follow from it
_NOTICED = 1.02  # rows to one independent draw: then an interval is too narrow by a hundredth
_LOOKED_AT = 1_000_000  # rows


class CopiedRowsWarning(HoldoutError, UserWarning):  # noqa: N818 - a warning
    """Rows of a holdout are exact copies of others.

    An error of this library as well, for where warnings are errors its words must reach the user.
    """


class CopiedRows(NamedTuple):
    """Exact copies among so many rows: those equal to one before, and as many independent rows as all are worth."""

    rows: int
    copies: int
    worth: int


def warn_of_copies(data: PrivateData) -> None:
    """Warn the owner of copies that chance does not explain, unless groups say what belongs together.

    Labels alone repeat; rows that come in chunks, or sparse, are not looked at.
    """
    X = data.X
    if data.groups is not None or X is None or is_chunked(X) or hasattr(X, "tocsr"):
        return
    found = copies_among(X, data.y)
    if found is not None:
        warnings.warn(
            CopiedRowsWarning(
                f"{found.copies:,} of {found.rows:,} rows are exact copies of others, features and label; copies are "
                f"no independent draws: all rows are worth about {found.worth:,}, and intervals would be too narrow; "
                "pass groups= with one name for a row and its copies, or leave these out; if chance made them, as it "
                "does of coarse numbers, nothing is wrong"
            ),
            stacklevel=5,  # warn_of_copies, check_may_stand, __init__ or rotate, sealed, user
        )


def copies_among(X: Any, y: Any) -> CopiedRows | None:
    """Copies that chance does not explain and that matter; None if there are none.

    Rows are the same if the values of their features and labels are, to 64 bits. Of more than a million a part is
    looked at that has all or none of equal rows.

    Rows of which each is there ``count`` times have a mean of the variance of ``rows**2 / sum of count**2``
    independent ones; copies matter if that is below 98% of the rows. Chance does not explain them if nine in ten of
    the rows that are no copies differ in a single floating-point column (in 30 values at least), and fewer share a
    value there than are copies in all columns: chance makes whole rows equal less often than one of their values. So
    tables of categories, or of numbers as coarse as those of the iris, are left alone.
    """
    features, targets = ([_array(part) for _, part in named_columns(given)] for given in (X, y))
    telling = [*features, *filter(_is_float, targets)]
    if sum(part[:1].size for part in telling) < _COLUMNS:
        return None
    parts, rows = features + targets, len(targets[0])
    hashes = hashes_of(parts, rows)
    looked_at = np.arange(rows)
    if rows > _LOOKED_AT:  # equal rows together
        looked_at = np.flatnonzero(hashes < np.uint64(2**64 // rows * _LOOKED_AT))
    _, first, counts = np.unique(hashes[looked_at], return_index=True, return_counts=True)
    kept, draws = len(looked_at), float(np.square(counts, dtype=np.float64).sum())
    copies = kept - len(first)
    if draws <= _NOTICED * kept or not _beyond_chance(copies, parts, looked_at[first]):
        return None
    return CopiedRows(rows, round(copies * rows / kept), round(rows * kept / draws))


def _beyond_chance(copies: int, parts: list[NDArray[Any]], distinct: NDArray[np.int64]) -> bool:
    """Whether a column tells nearly all of the distinct rows apart, and fewer of them share a value than are copies."""
    columns = (column for part in parts if _is_float(part) for column in part.reshape(len(part), -1).T)
    enough = max(_LEAST_DISTINCT, _DISTINCT * len(distinct), len(distinct) - copies + 1)
    return any(len(np.unique(column[distinct])) >= enough for column in columns)


def _array(part: Any) -> NDArray[Any]:
    return np.asarray(part.codes if isinstance(part, CodedLabels) else part)


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "f"
