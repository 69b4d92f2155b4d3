"""Readers of labels, ids and predictions in CSV, Parquet and JSON files, which are brought into one order by their ids.

An error message may quote a file of predictions, because it belongs to the analyst. It must not quote a file of labels,
because messages end up in logs that everyone reads. It does not even name the column of labels: if the header is
missing, this name is a label. Ids are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics.ids import doubled, few, places_in, unmatched
from reusable_holdout_evals.readers import read_scores
from reusable_holdout_evals.readers.files import JSON_ENDINGS, PARQUET_ENDINGS, read_frame

__all__ = ["Table", "classes_of", "columns_of", "in_order_of", "read_ids", "read_labels", "read_table"]


class Table(NamedTuple):
    """The content of one file.

    Attributes
    ----------
    frame : pandas.DataFrame
        All columns except the ids.
    ids : numpy.ndarray of str or None
        The ids of the rows, of shape (rows,), each once; None if no column of ids was named.
    """

    frame: pd.DataFrame
    ids: NDArray[np.str_] | None


@sealed
def read_labels(path: Path, *, id_column: str | None = None) -> Table:
    """Read a file of private labels: one column of labels and, if `id_column` names it, one of ids.

    Parameters
    ----------
    path : Path
        CSV with a header, Parquet, or JSON. A file ``.json`` holds a list of objects, a file ``.jsonl`` one object in
        each line.
    id_column : str, optional
        Column of ids.

    Raises
    ------
    InputError
        If the file does not have this form; the message quotes nothing but ids.
    """
    table = _read(path, id_column, "the labels", quoted=False)
    if table.frame.shape[1] != 1:
        raise InputError(
            f"the labels in {path} must be one column (a column of ids may come with it, if --id names it); there are "
            f"{table.frame.shape[1]} columns without the ids; leave the others out"
        )
    column = table.frame.iloc[:, 0]
    if column.isna().any():
        raise InputError(f"the labels in {path} must not be missing; some are; leave those rows out")
    if path.suffix.lower() not in PARQUET_ENDINGS | JSON_ENDINGS and _is_a_label(column):
        raise InputError(f"{path} must begin with a header; its first line looks like a label; add a header")
    return table


def read_table(path: Path, *, id_column: str | None = None, text: bool = False) -> Table:
    """Read a file of predictions: one column, or one for each class, and one of ids if `id_column` names it.

    Parameters
    ----------
    path : Path
        A file in one of the formats of :func:`read_labels`.
    id_column : str, optional
        Column of ids.
    text : bool
        True to read every value as text, even if all are digits; for labels that are text.

    Raises
    ------
    InputError
        If the file does not have this form, a prediction is missing, or an id comes twice.
    """
    table = _read(path, id_column, "the predictions", quoted=True, text=text)
    missing = np.flatnonzero(table.frame.isna().any(axis=1).to_numpy())
    if len(missing):
        named = (missing + 1).tolist() if table.ids is None else table.ids[missing].tolist()
        where = "rows" if table.ids is None else "the ids"
        raise InputError(f"{path} must hold a prediction for every row; it has none at {where} {few(named)}")
    return table


def read_ids(
    path: Path, *, id_column: str | None = None, groups: str | None = None
) -> tuple[list[str], list[str] | None]:
    """Read the ids of rows that have no labels and, if `groups` names a column, their groups.

    Parameters
    ----------
    path : Path
        A file in one of the formats of :func:`read_labels`.
    id_column : str, optional
        Column of ids; by default the only column, or else "id".
    groups : str, optional
        Column of groups.

    Raises
    ------
    InputError
        If the file does not have this form, an id is missing or comes twice, or a row has no group.
    """
    frame = read_frame(path, what="the ids", text=True)
    column = id_column or "id"
    if id_column is None and len(frame.columns) == 1:
        column = str(frame.columns[0])
    frame["its one score"] = 0.0
    table = read_scores(frame, id=column, score="its one score", groups=groups)
    return list(table.ids), None if table.groups is None else list(table.groups)


def in_order_of(wanted: NDArray[np.str_] | None, table: Table, path: Path, *, rows: int) -> pd.DataFrame:
    """Return predictions in the order of the gate's rows.

    Parameters
    ----------
    wanted : numpy.ndarray of str or None
        Ids of the gate's rows, in order. If these or the table's ids are None, the order is left as it is.
    table : Table
        The predictions, from :func:`read_table`.
    path : Path
        File of the predictions, for messages.
    rows : int
        Number of the gate's rows.

    Raises
    ------
    InputError
        If rows are missing, unknown or too many; the first few ids are listed.
    """
    if wanted is None or table.ids is None:
        if len(table.frame) != rows:
            raise InputError(
                f"{path} must hold {rows:,} rows, one for each label, in their order; it holds {len(table.frame):,} "
                "under its header"
            )
        return table.frame
    names, found = wanted.tolist(), table.ids.tolist()
    problems = unmatched(names, found, owner="the labels'")
    if problems:
        raise InputError(f"{path} must hold the ids of the labels, each once; {'; '.join(problems)}")
    return table.frame.iloc[places_in(found, names)].reset_index(drop=True)


def columns_of(frame: pd.DataFrame, guard: Any, path: Path) -> NDArray[Any]:
    """Return the only column of predictions, or the columns of probabilities in the order of the guard's classes.

    Raises
    ------
    InputError
        If there is neither a single column, nor one column for each class.
    """
    if frame.shape[1] == 1:
        return frame.iloc[:, 0].to_numpy()
    found = [str(name) for name in frame.columns]
    if guard.metric.response != "probabilities":
        raise InputError(
            f"{path} must have one column of predictions; it has {', '.join(found[:10])}; leave the others out, or "
            "name the ids with --id; nothing was asked"
        )
    wanted = [str(one) for one in (() if guard.classes is None else guard.classes.tolist())]
    if sorted(found) != sorted(wanted):
        raise InputError(
            f"{path} must have one column for each class, named {', '.join(wanted[:10])}; it has "
            f"{', '.join(found[:10])}; rename them; nothing was asked"
        )
    return frame.set_axis(found, axis=1)[wanted].to_numpy()


def classes_of(named: Sequence[str] | None) -> list[int] | list[str] | None:
    """Return classes as whole numbers if all of them are, else as text; labels in a file are read the same way."""
    try:
        return None if named is None else [int(one) for one in named]
    except ValueError:
        return list(named or ())


# ---- one file


def _read(path: Path, id_column: str | None, what: str, *, quoted: bool, text: bool = False) -> Table:
    frame = read_frame(path, what=what, id_column=id_column, quoted=quoted, text=text)
    if not len(frame.columns) or not len(frame):
        raise InputError(f"{what} must be rows under a header; {path} holds none")
    if id_column is None:
        return Table(frame, None)
    ids = _ids_of(frame, id_column, path, quoted=quoted)
    if len(frame.columns) < 2:
        raise InputError(f"{path} must have a column in addition to the ids; it has none")
    return Table(frame.drop(columns=id_column), ids)


def _ids_of(frame: pd.DataFrame, id_column: str, path: Path, *, quoted: bool) -> NDArray[np.str_]:
    """Return the column of ids as text, after a check that each id is there and comes once."""
    if id_column not in frame.columns:
        columns = f"it has {few(frame.columns)}" if quoted else "it does not"
        raise InputError(f"{path} must have the column of ids {id_column!r}; {columns}")
    column = frame[id_column]
    ids = column.astype(str).to_numpy(dtype=np.str_)
    empty = np.flatnonzero(column.isna().to_numpy() | (ids == "")) + 1
    if len(empty):
        raise InputError(f"{path} must have an id in every row; it has none in rows {few(empty.tolist())}")
    twice = doubled(ids.tolist())
    if twice:
        raise InputError(f"{path} must have each id once; these come more than once: {few(twice)}")
    return ids


def _is_a_label(column: pd.Series[Any]) -> bool:
    """Return True if a column's name looks like a label that was read as a header: a number, or one of its values."""
    name = str(column.name)
    try:
        float(name)
    except ValueError:
        return bool((column.astype(str) == name).any())
    return True
