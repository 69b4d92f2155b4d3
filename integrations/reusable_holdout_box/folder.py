"""The folder of a box, with labels, key, ledger and witness, which only the box's own user can read.

::

    FOLDER/            0711: other users can reach the socket, and list nothing
        socket         while the box runs
        private/       0700
            box.json   format of the folder, what is allowed, and how the labels are read
            labels.csv (or .parquet)
            guard.db, guard.db.key, guard.db.heads
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from reusable_holdout_evals.gate.tables import read_ids, read_labels
from reusable_holdout_evals.guards import metric_of

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import HoldoutError, InputError, LedgerError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.plan import Plan
from reusable_holdout_box.guards import made_guard, open_guard
from reusable_holdout_box.wall import check_place, check_private

__all__ = ["ALLOWED", "OpenBox", "Settings", "make_box", "open_box", "private_of", "socket_of"]

ALLOWED = ("evaluate", "compare")
"""The ways to ask that a box allows by default."""

_QUESTIONS = (*ALLOWED, "gate", "reveal", "choose", "final")
_PRIVATE, _SETTINGS, _LEDGER = "private", "box.json", "guard.db"
_FORMAT = 3  # earlier formats hold ledgers of versions before 0.3


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings that the owner of a box chose when the box was made.

    Attributes
    ----------
    labels : str
        Name of the file of labels, or of ids, in the private folder.
    id_column : str or None
        Name of the column of ids in that file.
    judged : bool
        True if the file has ids and no labels, because a judge scores the rows' outputs.
    allow : tuple of str
        The ways to ask that the box allows.
    """

    labels: str
    id_column: str | None
    judged: bool
    allow: tuple[str, ...] = ALLOWED

    def __post_init__(self) -> None:
        unknown = [one for one in self.allow if one not in _QUESTIONS]
        if unknown or not self.allow:
            raise InputError(
                f"a box can allow {', '.join(_QUESTIONS)}; got {', '.join(unknown) or 'none'}; nothing was made"
            )


@dataclass(frozen=True)
class OpenBox:
    """A box whose guard is open in this process.

    Attributes
    ----------
    guard : ReusableHoldout
    ids : list or None
        Ids of the rows in order, which are public; None if the rows have no ids.
    settings : Settings
    """

    guard: ReusableHoldout
    ids: list[Any] | None
    settings: Settings


def socket_of(folder: Path) -> Path:
    """Return the default path of a box's socket."""
    return folder / "socket"


def private_of(folder: Path) -> Path:
    """Return the path of a box's private folder; links in it are not resolved, so that a check can refuse them."""
    return Path(os.path.abspath(folder)) / _PRIVATE  # noqa: PTH100


@sealed
def make_box(
    folder: Path,
    labels: Path | None = None,
    *,
    ids: Path | None = None,
    id_column: str | None = None,
    metric: str = "accuracy",
    bounds: tuple[float, float] | None = None,
    allow: Sequence[str] | None = None,
    gates: bool = False,
    vacuous: bool = False,
    witness: str | Path | Literal[False] | None = None,
    **wish: Any,
) -> Plan:
    """Make a box: a folder that its user alone can read, with a copy of the labels and a guard on them.

    Parameters
    ----------
    folder : Path
        A new or empty folder.
    labels : Path, optional
        CSV, Parquet or JSON with one column of labels and, if `id_column` names it, one of ids. Give either `labels` or
        `ids`.
    ids : Path, optional
        CSV, Parquet or JSON with a column of ids and no labels, for judged scores.
    id_column : str, optional
        Column of ids.
    metric : str
        Name of one of the library's metrics.
    bounds : (float, float), optional
        Range of targets or scores, for "mae", "mse", "rmse" and "score". Values outside are moved to the nearer bound,
        without a message.
    allow : sequence of {"evaluate", "compare", "gate", "reveal", "choose", "final"}, optional
        Ways to ask that are allowed; by default "evaluate" and "compare", or "gate" alone if `gates` is True.
    gates : bool
        True if the plan is for gates alone.
    vacuous : bool
        True to make the box although its plan is vacuous.
    witness : str, Path or False, optional
        Place of the witness; see :class:`ReusableHoldout`. By default a file in the folder.
    **wish
        Arguments of the :class:`Plan`, such as queries, tolerance, charges and estimate; the arguments `classes` and
        `prevalence` of :class:`Rows`; and `seed`, for tests.

    Returns
    -------
    Plan
        The plan of the box's guard.

    Raises
    ------
    InputError, PlanError, LedgerError
        If labels, metric and wish do not fit, or the folder is not empty; nothing was made.
    WallError
        If another user could replace the folder.
    """
    source = labels if ids is None else ids
    if source is None or (labels is not None and ids is not None):
        raise InputError("a box has labels or, for judged scores, ids; got both or none; nothing was made")
    settings = Settings(
        labels=f"labels{source.suffix.lower() or '.csv'}",
        id_column=id_column,
        judged=ids is not None,
        allow=tuple(allow if allow is not None else ("gate",) if gates else ALLOWED),
    )
    y, names = _rows(source, settings)
    private = _new_folder(folder)
    try:
        _write(private / settings.labels, source.read_bytes())
        guard = made_guard(
            y,
            metric=metric_of(metric, bounds),
            ids=None if settings.judged or names is None else names,
            ledger=private / _LEDGER,
            witness=(private / f"{_LEDGER}.heads" if witness is None else witness) or None,
            gates=gates,
            allow=({"vacuous"} if vacuous else set()) | ({"no witness"} if witness is False else set()),
            **wish,
        )
        guard.close()
        _write(private / _SETTINGS, json.dumps({"format": _FORMAT, **asdict(settings)}, indent=2).encode())
        for file in private.iterdir():
            file.chmod(0o600)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise
    return guard.plan


@sealed
def open_box(folder: Path) -> OpenBox:
    """Open a box's guard in this process.

    Raises
    ------
    WallError
        If the folder or something in it belongs to another user, or another user can read or change it.
    InputError, LedgerError
        If there is no box, its folder has the format of another version, or its ledger cannot be used.
    """
    private = private_of(folder)
    if not private.is_dir():
        raise _no_box(private)
    check_private(private)
    settings = _settings(private)
    check_place(private.parent, "a box")
    y, names = _rows(private / settings.labels, settings)
    return OpenBox(open_guard(private / _LEDGER, y), names, settings)


# ---- inside


def _rows(path: Path, settings: Settings) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the guard's y (the labels, or the ids if scores are judged), and a list of the ids or None."""
    if settings.judged:
        names, _ = read_ids(path, id_column=settings.id_column)
        whole = all(one.isascii() and one.isdigit() and str(int(one)) == one for one in names)
        ids = np.array(names, dtype=np.int64 if whole else np.str_)
        return ids, ids.tolist()
    table = read_labels(path, id_column=settings.id_column)
    labels: NDArray[Any] = table.frame.iloc[:, 0].to_numpy()
    if labels.dtype.kind == "O":
        labels = np.asarray(labels.tolist())
    return labels, None if table.ids is None else table.ids.tolist()


def _new_folder(folder: Path) -> Path:
    private = private_of(folder)
    try:
        private.parent.mkdir(mode=0o711, exist_ok=True)
        if any(private.parent.iterdir()):
            raise FileExistsError
        private.parent.chmod(0o711)
        check_place(private.parent, "a box")
        private.mkdir(mode=0o700)
    except FileExistsError:
        raise InputError(f"a box needs an empty folder; {folder} is not empty; nothing was made") from None
    except OSError as error:
        raise LedgerError(f"a box's folder must be writable; {folder} is not ({error.strerror})") from None
    return private


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _settings(private: Path) -> Settings:
    try:
        found = json.loads((private / _SETTINGS).read_text())
        made = found.pop("format", 1)
        if made == _FORMAT:
            return Settings(**found | {"allow": tuple(found["allow"])})
        problem = f"this version reads format {_FORMAT}; use the version that made the box"
    except FileNotFoundError:
        raise _no_box(private) from None
    except (OSError, HoldoutError, AttributeError, ValueError, TypeError, KeyError):
        problem = "it cannot be read, or has other content"
    raise LedgerError(f"{private / _SETTINGS} must be what box init wrote; {problem}; nothing was opened")


def _no_box(private: Path) -> InputError:
    return InputError(f"there must be a box in {private.parent}; there is none; make it with box init")
