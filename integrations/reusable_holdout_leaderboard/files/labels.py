"""Label files: read once from the organiser's file, and stored where only the server's user can read them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from reusable_holdout_evals.gate.tables import read_labels

from reusable_holdout.errors import InputError, LedgerKeyError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics import Metric
from reusable_holdout_leaderboard.private_files import check_private, write_private

__all__ = ["Labels", "load_labels", "save_labels", "take_labels"]


class Labels(NamedTuple):
    """The private labels of some rows, and the public ids of these rows.

    Attributes
    ----------
    ids : tuple of str or None
        Ids of the rows. None if the rows have none.
    y : numpy.ndarray of shape (rows,)
        Labels: int64 or text for classes, float64 for real values.
    """

    ids: tuple[str, ...] | None
    y: NDArray[Any]

    def __repr__(self) -> str:
        return f"<Labels: {len(self.y):,} rows>"


@sealed
def take_labels(path: Path, *, id_column: str | None, metric: Metric) -> Labels:
    """Read the labels from an organiser's file.

    Parameters
    ----------
    path : Path
        CSV file with a header, or Parquet file, with one column of labels and perhaps one of ids.
    id_column : str or None
    metric : Metric

    Raises
    ------
    InputError
        If the file does not fit. The message quotes no label.
    """
    table = read_labels(path, id_column=id_column)
    ids = None if table.ids is None else tuple(str(one).strip() for one in table.ids)
    if ids is not None and len(set(ids)) < len(ids):
        raise InputError(
            f"{path} must have each id once, spaces around it not counted; one is there twice; nothing was changed"
        )
    return Labels(ids, _normalised(table.frame.iloc[:, 0].to_numpy(), path, metric))


@sealed
def save_labels(path: Path, labels: Labels) -> None:
    """Write labels to a file that only its owner can read. The file appears only when it is complete."""
    columns = {} if labels.ids is None else {"id": list(labels.ids)}
    buffer = io.BytesIO()
    pq.write_table(pa.table({**columns, "label": labels.y}), buffer)
    write_private(path, buffer.getvalue())


@sealed
def load_labels(path: Path) -> Labels:
    """Read the labels that :func:`save_labels` wrote.

    Raises
    ------
    LedgerKeyError
        If the file is missing, or others can read or change it.
    """
    if not path.exists():
        raise LedgerKeyError(
            f"the labels of this competition must be in {path}; they are not; restore the file from a backup"
        )
    table = pq.read_table(check_private(path, LedgerKeyError))
    ids = tuple(table.column("id").to_pylist()) if "id" in table.column_names else None
    return Labels(ids, np.array(table.column("label").to_pylist()))


def _normalised(y: NDArray[Any], path: Path, metric: Metric) -> NDArray[Any]:
    """Return labels as float64, int64 or text.

    Labels that are stored and read again then have the same bytes as before.
    """
    numbers = y.dtype.kind in "biuf"
    if metric.response == "values":
        if not numbers:
            raise InputError(
                f"the labels in {path} must be numbers, because {metric.name} measures values; they are not; "
                "nothing was changed"
            )
        return y.astype(np.float64)
    if numbers:
        if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.rint(y))).all():
            raise InputError(
                f"the labels in {path} must be whole numbers or text; they are other numbers; nothing was changed"
            )
        return y.astype(np.int64)
    if all(isinstance(one, bool) for one in y.tolist()):
        return y.astype(np.int64)
    if not all(isinstance(one, str) for one in y.tolist()):
        raise InputError(
            f"the labels in {path} must be all numbers or all text; they are mixed; nothing was changed"
        )
    return np.array([one.strip() for one in y.tolist()])
