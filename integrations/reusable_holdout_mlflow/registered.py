"""Guards that an evaluator's configuration can name: by the file of their ledger, never by their rows."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakValueDictionary

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.guard.handle import Handle
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.slips import checked_call

__all__ = ["register_holdout", "registered_guard"]

_HERE: WeakValueDictionary[Path, ReusableHoldout] = (
    WeakValueDictionary()
)  # those of this process, by their ledger


@checked_call
def register_holdout(guard: ReusableHoldout) -> str:
    """Let ``evaluator_config={"ledger": ...}`` name a guard, in this and every later process of this user.

    The holdout is written beside the ledger, as for joblib's workers: a file that only its owner may read. MLflow sees
    the ledger's path and no row.

    Parameters
    ----------
    guard : ReusableHoldout
        With features, and a ledger in a file. After :meth:`ReusableHoldout.rotate`, register the new one.

    Returns
    -------
    str
        The ledger's path, for the configuration.

    Raises
    ------
    HandleError
        If other processes could not open it, because its ledger or its key lies in no file.
    """
    _, (handle,) = guard.__reduce__()  # writes the file
    path = Path(handle.ledger).absolute()
    _HERE[path] = guard
    return str(path)


@checked_call
def registered_guard(ledger: str | Path) -> ReusableHoldout:
    """Guard of a ledger, with its holdout: the one registered in this process, or one opened from its files.

    Parameters
    ----------
    ledger : str or Path
        SQLite file.

    Raises
    ------
    InputError
        If its holdout was not registered.
    LedgerError, LedgerKeyError, LedgerMismatchError
        If there is no such ledger, its key is missing, or the file beside it has other rows.
    """
    path = Path(ledger).absolute()
    known = _HERE.get(path)
    if known is not None and not known.closed:
        return known
    epoch = _last_epoch(path)
    holdout = path.with_name(f"{path.name}.holdout" if epoch == 1 else f"{path.name}.{epoch}.holdout")
    if not holdout.exists():
        raise InputError(
            f"the holdout of {path.name} must be registered before a configuration can name it; {holdout.name} is not "
            'beside it; call register_holdout(guard) once, or pass {"guard": guard}; nothing was asked'
        )
    return Handle(str(path), str(path.with_name(f"{path.name}.key")), str(holdout)).open()


def _last_epoch(path: Path) -> int:
    ledger = SqlLedger(path, must_exist=True)
    try:
        return ledger.epoch
    finally:
        ledger.close()
