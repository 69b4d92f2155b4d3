"""Label files: read once from the organiser, kept where only the server's user can read them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reusable_holdout_evals.gate.tables import read_labels

from reusable_holdout.errors import InputError, LedgerKeyError, of_extra
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics import Metric

__all__ = ["Labels", "load_labels", "save_labels", "take_labels"]


class Labels(NamedTuple):
    """Private labels, and the public ids of their rows.

    Attributes
    ----------
    ids : tuple of str or None
    y : numpy.ndarray of shape (rows,)
        int64, text, or float64 for metrics of real values.
    """

    ids: tuple[str, ...] | None
    y: NDArray[Any]

    def __repr__(self) -> str:
        return f"<Labels: {len(self.y):,} rows>"


@sealed
def take_labels(path: Path, *, id_column: str | None, metric: Metric) -> Labels:
    """Read an organiser's file.

    Parameters
    ----------
    path : Path
        CSV with a header, or Parquet: one column of labels, and one of ids.
    id_column : str or None
    metric : Metric

    Raises
    ------
    InputError
        If the file does not fit; nothing in it is quoted but ids.
    """
    table = read_labels(path, id_column=id_column)
    ids = None if table.ids is None else tuple(str(one).strip() for one in table.ids)
    if ids is not None and len(set(ids)) < len(ids):
        raise InputError(f"{path} must have each id once, also without the space around it; it has not")
    return Labels(ids, _normalised(table.frame.iloc[:, 0].to_numpy(), path, metric))


@sealed
def save_labels(path: Path, labels: Labels) -> None:
    """Write labels where only their owner can read them, all or nothing."""
    with of_extra("leaderboard", "a competition's labels"):
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

    columns = {} if labels.ids is None else {"id": list(labels.ids)}
    table = pa.table({**columns, "label": labels.y})
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@sealed
def load_labels(path: Path) -> Labels:
    """Read what :func:`save_labels` wrote.

    Raises
    ------
    LedgerKeyError
        If it is missing, or others can read or change it.
    """
    with of_extra("leaderboard", "a competition's labels"):
        import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        status = path.stat()
    except OSError:
        raise LedgerKeyError(
            f"the labels of this competition must lie in {path}; they do not; restore the file from a backup"
        ) from None
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise LedgerKeyError(
            f"only its owner may read {path}; got mode {status.st_mode & 0o777:o}; chmod 600 it"
        )
    table = pq.read_table(path)
    ids = tuple(table.column("id").to_pylist()) if "id" in table.column_names else None
    column = table.column("label").to_pylist()
    return Labels(ids, np.array(column))


def _normalised(y: NDArray[Any], path: Path, metric: Metric) -> NDArray[Any]:
    """Labels as float64, int64 or text, so that a file read again gives the same bytes."""
    numbers = y.dtype.kind in "biuf"
    if metric.response == "values":
        if not numbers:
            raise InputError(
                f"the labels in {path} must be numbers, for {metric.name} measures values; they are not"
            )
        return y.astype(np.float64)
    if numbers:
        if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.rint(y))).all():
            raise InputError(f"the labels in {path} must be whole numbers or text; they are other numbers")
        return y.astype(np.int64)
    if all(isinstance(one, bool) for one in y.tolist()):
        return y.astype(np.int64)
    if not all(isinstance(one, str) for one in y.tolist()):
        raise InputError(f"the labels in {path} must be all numbers or all text; they are mixed")
    return np.array([one.strip() for one in y.tolist()])
