"""What a holdout is given as, made into what the guard keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import InputError
from reusable_holdout.guard.chunks.rows import ChunkedRows
from reusable_holdout.queries.containers import compact, from_arrow, is_dask

if TYPE_CHECKING:
    from reusable_holdout.guard.chunks import dask_rows
else:
    (dask_rows,) = modules_on_first_use(__package__, "dask_rows")

__all__ = ["rows_and_labels"]


def rows_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Features, which may stay where they are, and labels, read once.

    Whatever lies in memory is returned as it is, but pyarrow's tables, which become pandas'; doing this twice changes
    nothing.

    Parameters
    ----------
    X : array-like, ParquetRows, Dask array or DataFrame, or None
    y : array-like, ParquetRows of one column, Dask array or Series; or the name of a column of X

    Raises
    ------
    InputError
        If they are paths, or y names no column.
    """
    for given, what in ((X, "X"), (y, "y")):
        _check_no_paths(given, what, name_allowed=what == "y")
    X, y = from_arrow(X), from_arrow(y)
    if is_dask(X):
        X = dask_rows.DaskRows(X)
    if isinstance(y, str):
        if not isinstance(X, ChunkedRows):
            raise InputError(
                "y may be the name of a column only where X is ParquetRows or a Dask DataFrame; got text; pass the "
                "labels themselves"
            )
        X, y = X.split(y)
    return X, compact(y, what="the labels")


def _check_no_paths(given: Any, what: str, *, name_allowed: bool) -> None:
    first = given[0] if isinstance(given, list | tuple) and given else given
    if isinstance(first, Path) or (isinstance(given, str) and not name_allowed):
        raise InputError(
            f"{what} must be data, not where they lie; for Parquet files pass ParquetRows(...), from reusable_holdout; "
            "read other files first; nothing was made"
        )
