"""Labels and predictions in CSV, Parquet and JSON files, brought into one order by their ids.

What a file of predictions holds may be quoted: it is the analyst's. What a file of labels holds may not, for messages
end up in logs that everyone reads; so of labels not even a column's name is told, which may be a label itself where
the header is missing. Ids are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError, MissingExtraError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.metrics.ids import doubled, few, places_in, unmatched
from reusable_holdout_evals.readers import read_scores
from reusable_holdout_evals.readers.archives import check_unpacked
from reusable_holdout_evals.readers.json_files import JSON_ENDINGS, json_table

__all__ = ["Table", "classes_of", "in_order_of", "read_ids", "read_labels", "read_table"]

_PARQUET = {".parquet", ".pq"}


class Table(NamedTuple):
    """One file.

    Attributes
    ----------
    frame : pandas.DataFrame
        All columns but the ids.
    ids : numpy.ndarray of str or None
        Of shape (rows,), each once; None if rows are told apart by their order.
    """

    frame: pd.DataFrame
    ids: NDArray[np.str_] | None


@sealed
def read_labels(path: Path, *, id_column: str | None = None) -> Table:
    """Read private labels: one column, and one with ids if it is named.

    Parameters
    ----------
    path : Path
        CSV with a header, Parquet, or JSON: a list of objects, or in a file ``.jsonl`` an object in each line.
    id_column : str, optional
        Column of ids.

    Raises
    ------
    InputError
        If the file is something else; nothing in it is quoted but ids.
    """
    table = _read(path, id_column, "the labels", quoted=False)
    if table.frame.shape[1] != 1:
        raise InputError(
            f"the labels in {path} must be one column, and ids a column that --id names; there are "
            f"{table.frame.shape[1]} columns without ids; leave the others out"
        )
    column = table.frame.iloc[:, 0]
    if column.isna().any():
        raise InputError(f"the labels in {path} must not be missing; some are; leave those rows out")
    if path.suffix.lower() not in _PARQUET | JSON_ENDINGS and _is_a_label(column):
        raise InputError(f"{path} must begin with a header; its first line looks like a label; add a header")
    return table


def read_table(path: Path, *, id_column: str | None = None, text: bool = False) -> Table:
    """Read predictions: one column, or one for each class, and one with ids if it is named.

    Parameters
    ----------
    path : Path
        CSV with a header, Parquet, or JSON: a list of objects, or in a file ``.jsonl`` an object in each line.
    id_column : str, optional
        Column of ids.
    text : bool
        Whether all of CSV is text, as answers are, also those of digits alone.

    Raises
    ------
    InputError
        If the file is something else, a prediction is missing, or an id comes twice.
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
    """Read ids of rows that have no labels, and what each belongs to.

    Parameters
    ----------
    path : Path
        CSV with a header, Parquet, or JSON: a list of objects, or in a file ``.jsonl`` an object in each line.
    id_column : str, optional
        Column of ids; by default "id", or the only one.
    groups : str, optional
        Column of groups.

    Raises
    ------
    InputError
        If the file is something else, an id is missing or comes twice, or a row has no group.
    """
    column = id_column or "id"
    frame = _frame(path, column, "the ids", quoted=True)
    if id_column is None and len(frame.columns) == 1 and frame.columns[0] != column:
        column = str(frame.columns[0])
        frame = _frame(path, column, "the ids", quoted=True)  # again, as text: 007 is not 7
    frame["its one score"] = 0.0
    table = read_scores(frame, id=column, score="its one score", groups=groups)
    return list(table.ids), None if table.groups is None else list(table.groups)


def in_order_of(wanted: NDArray[np.str_] | None, table: Table, path: Path, *, rows: int) -> pd.DataFrame:
    """Predictions in the order of the labels.

    Parameters
    ----------
    wanted : numpy.ndarray of str or None
        Ids of the labels' rows.
    table : Table
        From :func:`read_table`.
    path : Path
        Its file, for messages.
    rows : int
        Of the labels.

    Raises
    ------
    InputError
        If rows are missing, unknown or too many; ids are listed, the first few.
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


def classes_of(named: Sequence[str] | None) -> list[int] | list[str] | None:
    """Classes as the labels of a file are read: whole numbers if all are, else text."""
    try:
        return None if named is None else [int(one) for one in named]
    except ValueError:
        return list(named or ())


# ---- one file


def _read(path: Path, id_column: str | None, what: str, *, quoted: bool, text: bool = False) -> Table:
    frame = _frame(path, id_column, what, quoted=quoted, text=text)
    if not len(frame.columns) or not len(frame):
        raise InputError(f"{what} must be rows under a header; {path} holds none")
    if id_column is None:
        return Table(frame, None)
    ids = _ids_of(frame, id_column, path, quoted=quoted)
    if len(frame.columns) < 2:
        raise InputError(f"{path} must have a column beside the ids; it has none")
    return Table(frame.drop(columns=id_column), ids)


def _ids_of(frame: pd.DataFrame, id_column: str, path: Path, *, quoted: bool) -> NDArray[np.str_]:
    """Ids as text, each once."""
    if id_column not in frame.columns:
        columns = f"it has {few(frame.columns)}" if quoted else "it does not"
        raise InputError(f"{path} must have the column of ids {id_column!r}; {columns}")
    column = frame[id_column]
    ids = column.astype(str).to_numpy(dtype=np.str_)
    if column.isna().any() or (ids == "").any():
        empty = np.flatnonzero(column.isna().to_numpy() | (ids == "")) + 1
        raise InputError(f"{path} must have an id in every row; it has none in rows {few(empty.tolist())}")
    twice = doubled(ids.tolist())
    if twice:
        raise InputError(f"{path} must have each id once; more than once come {few(twice)}")
    return ids


def _frame(path: Path, id_column: str | None, what: str, *, quoted: bool, text: bool = False) -> pd.DataFrame:
    if not path.is_file():
        raise InputError(f"there must be a file with {what} at {path}; there is none")
    words, ending = "", path.suffix.lower()
    try:
        if ending in JSON_ENDINGS:
            frame = pd.DataFrame(json_table(path, what=what))
            return frame.map(str) if text else frame
        if ending in _PARQUET:
            return pd.read_parquet(path)
        check_unpacked(path, what=what)
        return _csv(path, id_column, text=text)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError(f"{path} as Parquet, and not CSV,", "pyarrow", "large") from None
    except Exception as error:  # whatever a reader raises: its words may quote the file
        problem, words = "it cannot be read so", f" ({type(error).__name__}: {error})" if quoted else ""
    raise InputError(
        f"{what} must be a CSV file with a header, Parquet or JSON; got {path}, {problem}{words}"
    )


def _csv(path: Path, id_column: str | None, *, text: bool) -> pd.DataFrame:
    """Read CSV, ids as text: 007 is not 7, and NA is one like any other."""
    if text:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    frame = pd.read_csv(path)
    if id_column in frame.columns:
        ids = pd.read_csv(path, usecols=[id_column], dtype=str, keep_default_na=False)
        frame[id_column] = ids[id_column]
    return frame


def _is_a_label(column: pd.Series[Any]) -> bool:
    """Whether a column is named like what it holds: then its first row was taken for a header."""
    name = str(column.name)
    try:
        float(name)
    except ValueError:
        return bool((column.astype(str) == name).any())
    return True
