"""Predictions that an agent names: in the call, or a file of its own folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reusable_holdout_evals.gate import in_order_of, read_table

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout_box.remote import RemoteHoldout

__all__ = ["Workspace"]

_MOST_BYTES = 64 << 20
_NOTHING = "; nothing was asked and nothing was charged"


class Workspace:
    """A folder whose files may be named.

    Parameters
    ----------
    folder : Path
    remote : RemoteHoldout
        Whose rows predictions are brought into the order of, where both have ids.
    """

    def __init__(self, folder: Path, remote: RemoteHoldout) -> None:
        self._folder, self._remote = folder.resolve(), remote

    def predictions(self, given: Sequence[Any] | None, file: str, what: str) -> Any:
        """Predictions of one question.

        Parameters
        ----------
        given : sequence, optional
            In the call itself, in the order of the rows.
        file : str
            CSV with a header, Parquet, ``.npy``, JSON or JSON lines, relative to the folder; or empty.
        what : str
            For messages.

        Raises
        ------
        InputError
            If neither or both came, or the file is none of the folder's or cannot be read.
        """
        if (given is None) == (not file):
            raise InputError(f"{what} must come as a list or as a file, one of them{_NOTHING}")
        if given is not None:
            return list(given)
        path = self._path(file)
        if path.suffix.lower() not in {".npy", ".json"}:
            return self._table(path)
        plain = self._plain(path)
        is_table = isinstance(plain, list) and plain and all(isinstance(one, dict) for one in plain)
        return self._table(path) if is_table else plain

    def _path(self, file: str) -> Path:
        try:
            path = (self._folder / file).resolve()
            there = path.is_file() and path.stat().st_size <= _MOST_BYTES
        except (OSError, ValueError, RuntimeError):  # too long, no name of a file, links in a circle
            path, there = self._folder, False
        if not path.is_relative_to(self._folder):
            raise InputError(f"a file must lie in the workspace; {file!r} does not{_NOTHING}")
        if not there:
            raise InputError(
                f"there must be a file {file!r} of at most {_MOST_BYTES >> 20} MB; there is none{_NOTHING}"
            )
        return path

    def _plain(self, path: Path) -> Any:
        try:
            if path.suffix.lower() == ".npy":
                with path.open("rb") as file:  # not by load(), which takes archives, too
                    return np.lib.format.read_array(file, allow_pickle=False)
            found = json.loads(path.read_text())
        except (OSError, ValueError, RecursionError, EOFError, MemoryError, OverflowError):
            found = None  # a header may state any shape
        if not isinstance(found, list):
            raise InputError(
                f"{path.name} must be a list of predictions, as its name says; it is not{_NOTHING}"
            )
        return found

    def _table(self, path: Path) -> Any:
        """Columns of a table, in the rows' order; judged scores with their ids."""
        remote = self._remote
        ids = getattr(remote, "ids", None)
        named = "id" if ids is not None and "id" in _columns(path) else None
        text = getattr(remote, "private_labels", None) == "text"
        table = read_table(path, id_column=named, text=text)
        if table.ids is None or ids is None:
            return _values(table.frame, remote, path)
        whole = np.array([str(one) for one in ids])
        return _values(in_order_of(whole, table, path, rows=len(ids)), remote, path)


def _columns(path: Path) -> list[str]:
    table = read_table(path)
    return [str(one) for one in table.frame.columns]


def _values(frame: pd.DataFrame, remote: RemoteHoldout, path: Path) -> Any:
    """One column; or the classes' probabilities in their order; or repeats."""
    if frame.shape[1] == 1:
        return frame.iloc[:, 0].to_numpy()
    if remote.metric.response == "judged":
        return frame.to_numpy()
    wanted = [str(one) for one in (() if remote.classes is None else remote.classes.tolist())]
    found = [str(name) for name in frame.columns]
    if remote.metric.response != "probabilities" or sorted(found) != sorted(wanted):
        raise InputError(
            f"{path.name} must have one column of predictions beside a column 'id', or one for each class, named "
            "by it; "
            f"it has {', '.join(found[:10])}{_NOTHING}"
        )
    return frame.set_axis(found, axis=1)[wanted].to_numpy()
