"""A box's folder: labels, key, ledger and witness, for its own user alone.

::

    FOLDER/            0711: others may pass to the socket, and list nothing
        socket         while it runs
        private/       0700
            box.json   what is allowed, and how the labels are read
            labels.csv (or .parquet)
            guard.db, guard.db.key, guard.db.heads
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reusable_holdout.box.wall import check_place, check_private
from reusable_holdout.errors import HoldoutError, InputError, LedgerError
from reusable_holdout.guard import ReusableHoldout
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.queries import mae, mse, resolve_metric, rmse, score
from reusable_holdout.release_gate.files import read_ids, read_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.plan import Plan
    from reusable_holdout.queries import Metric

__all__ = ["ALLOWED", "QUESTIONS", "OpenBox", "Settings", "make_box", "open_box", "private_of", "socket_of"]

QUESTIONS = ("evaluate", "compare", "reveal", "choose", "final")
ALLOWED = ("evaluate", "compare")
"""What a box answers by default."""

_NUMBERS = {"reveal", "choose", "final"}
_PRIVATE, _SETTINGS, _LEDGER = "private", "box.json", "guard.db"
_BOUNDED: dict[str, Callable[..., Metric]] = {"mae": mae, "mse": mse, "rmse": rmse, "score": score}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a box's owner decided when it was made.

    Attributes
    ----------
    labels : str
        Name of the file of labels, or of ids, in the folder.
    id_column : str or None
    judged : bool
        Whether it holds ids alone.
    allow : tuple of str
        Ways to ask.
    verdict_only : bool
        Whether an answer tells only whether it was charged.
    """

    labels: str
    id_column: str | None
    judged: bool
    allow: tuple[str, ...] = ALLOWED
    verdict_only: bool = False

    def __post_init__(self) -> None:
        unknown = [one for one in self.allow if one not in QUESTIONS]
        if unknown or not self.allow:
            raise InputError(
                f"a box answers {', '.join(QUESTIONS)}; got {', '.join(unknown) or 'none'}; nothing was made"
            )
        told = [one for one in self.allow if one in _NUMBERS]
        if self.verdict_only and told:
            raise InputError(
                f"a box that tells verdicts alone tells no number; {told[0]} tells one; nothing was made; leave it out"
            )


@dataclass(frozen=True)
class OpenBox:
    """A box whose guard is open in this process.

    Attributes
    ----------
    guard : ReusableHoldout
    ids : list or None
        Of the rows, in their order; public.
    settings : Settings
    """

    guard: ReusableHoldout
    ids: list[Any] | None
    settings: Settings


def socket_of(folder: Path) -> Path:
    """Where a box's socket is by default."""
    return folder / "socket"


def private_of(folder: Path) -> Path:
    """Where what is private lies; a link on the way is not followed, so that it can be refused."""
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
    allow: Sequence[str] = ALLOWED,
    verdict_only: bool = False,
    witness: str | Path | Literal[False] | None = None,
    seed: int | None = None,
    **wish: Any,
) -> Plan:
    """Make a box: a folder that its user alone can read, with a copy of the labels and a guard on them.

    Parameters
    ----------
    folder : Path
        Made if there is none.
    labels : Path, optional
        CSV, Parquet or JSON with one column, and one of ids; or else `ids`.
    ids : Path, optional
        The same with a column of ids alone, for judged scores.
    id_column : str, optional
        Column of ids.
    metric : str
        A name of the catalogue.
    bounds : (float, float), optional
        For "mae", "mse", "rmse" and "score". Targets outside are moved to them, and nothing says so.
    allow : sequence of {"evaluate", "compare", "reveal", "choose", "final"}
        What is answered.
    verdict_only : bool
        Whether to tell only which answers were charged, and no number.
    witness : str, Path or False, optional
        As for :class:`ReusableHoldout`; by default a file in the folder.
    seed : int, optional
        Makes the key instead, for tests.
    **wish
        Of :class:`ReusableHoldout`: queries, tolerance, charges, policy, estimate ...

    Returns
    -------
    Plan

    Raises
    ------
    InputError, PlanError, LedgerError
        If labels, metric and wish do not fit, or there is a box; nothing was made.
    WallError
        If another user could exchange the folder.
    """
    source = labels if ids is None else ids
    if source is None or (labels is not None and ids is not None):
        raise InputError("a box has labels, or ids for judged scores; name one of them; nothing was made")
    settings = Settings(
        labels=f"labels{source.suffix.lower() or '.csv'}",
        id_column=id_column,
        judged=ids is not None,
        allow=tuple(allow),
        verdict_only=verdict_only,
    )
    y, names = _rows(source, settings)
    private = _new_folder(folder)
    try:
        _copy(source, private / settings.labels)
        guard = ReusableHoldout(
            None,
            y,
            metric=_metric(metric, bounds),
            ids=None if settings.judged or names is None else names,
            ledger=private / _LEDGER,
            witness=private / f"{_LEDGER}.heads" if witness is None else witness,
            seed=seed,
            **wish,
        )
        guard.close()
        _write(private / _SETTINGS, json.dumps(asdict(settings), indent=2).encode())
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
        If another user owns the folder or something in it, or may read or change it.
    InputError, LedgerError
        If there is no box, or its ledger cannot be used.
    """
    private = private_of(folder)
    if not private.is_dir():
        raise _no_box(private)
    check_private(private)
    settings = _settings(private)
    check_place(private.parent, "a box")
    y, names = _rows(private / settings.labels, settings)
    guard = ReusableHoldout.open(private / _LEDGER, None, y)
    return OpenBox(guard, names, settings)


# ---- inside


def _metric(name: str, bounds: tuple[float, float] | None) -> Metric:
    if bounds is None:
        return resolve_metric(name)
    if name not in _BOUNDED:
        raise InputError(
            f"bounds are those of mae, mse, rmse and score; got them for {name!r}; leave them out"
        )
    return _BOUNDED[name](lower=bounds[0], upper=bounds[1])


def _rows(path: Path, settings: Settings) -> tuple[NDArray[Any], list[Any] | None]:
    """What a guard's y is, and the ids."""
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
        raise InputError(
            f"a box must have a folder of its own; {folder} is not empty; nothing was made"
        ) from None
    except OSError as error:
        raise LedgerError(f"a box must be writable at {folder}; it is not ({error.strerror})") from None
    return private


def _copy(source: Path, target: Path) -> None:
    _write(target, source.read_bytes())


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _settings(private: Path) -> Settings:
    try:
        found = json.loads((private / _SETTINGS).read_text())
        return Settings(**found | {"allow": tuple(found["allow"])})
    except FileNotFoundError:
        raise _no_box(private) from None
    except (OSError, HoldoutError, ValueError, TypeError, KeyError):
        raise LedgerError(
            f"{private / _SETTINGS} must be what box init wrote; it cannot be read as that"
        ) from None


def _no_box(private: Path) -> InputError:
    return InputError(f"there must be a box in {private.parent}; there is none; make it with box init")
