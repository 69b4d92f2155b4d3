"""Pickled guards: a handle says where the ledger, its key and the holdout lie; it carries none of them.

Every process that opens the handle shares the one budget in the ledger.
"""

from __future__ import annotations

import os
import pickle
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import HandleError, LedgerKeyError

if TYPE_CHECKING:
    from reusable_holdout.holdout.guard import ReusableHoldout

__all__ = ["Handle", "read_private", "write_private"]


class Handle(NamedTuple):
    """Where a guard lives."""

    ledger_file: str
    key_file: str
    holdout_file: str

    def open(self) -> ReusableHoldout:
        """Guard of this handle: the one that is open in this process, or a new one."""
        state = (os.getpid(), _identity(self.ledger_file), _identity(self.holdout_file))
        known = _OPEN.get(self)
        if known is not None and known.state == state and not known.guard.closed:
            return known.guard
        from reusable_holdout.holdout.guard import ReusableHoldout  # noqa: PLC0415 - the guard makes handles

        contents = read_private(Path(self.holdout_file))
        guard = ReusableHoldout.open(
            self.ledger_file,
            contents["X"],
            contents["y"],
            metric=contents["metric"],
            classes=contents["classes"],
            sample_weight=contents["sample_weight"],
            key=Path(self.key_file),
        )
        guard._handle = self  # pickled on, it is the same handle
        _OPEN[self] = _Opened(state, guard)
        return guard


class _Opened(NamedTuple):
    """A guard, and the process and files it was opened with."""

    state: tuple[object, ...]
    guard: ReusableHoldout


_OPEN: dict[Handle, _Opened] = {}  # workers unpickle the guard with every task


def _identity(path: str) -> tuple[int, ...]:
    """What changes when a file is replaced, and not when a ledger grows."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino


def write_private(path: Path, contents: dict[str, Any]) -> None:
    """Write the holdout where only its owner can read it, all or nothing.

    Raises
    ------
    HandleError
        If something in it cannot be pickled, such as a metric made of a lambda, or the file cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pickle.dump(contents, file, protocol=5)
        temporary.replace(path)
    except (pickle.PicklingError, AttributeError, TypeError, OSError):
        temporary.unlink(missing_ok=True)
        raise HandleError(
            f"a guard that goes to other processes must be able to write its holdout to {path}; it was not; use a "
            "folder you can write to, and a metric made of importable functions"
        ) from None


def read_private(path: Path) -> dict[str, Any]:
    """Read what :func:`write_private` wrote.

    Raises
    ------
    LedgerKeyError
        If the file is missing or others can read or change it.
    """
    try:
        status = path.stat()
    except OSError:
        raise LedgerKeyError(
            f"the holdout of this handle must lie in {path}; it does not; open the guard with its data instead"
        ) from None
    if status.st_mode & 0o077 or status.st_uid != os.getuid():
        raise LedgerKeyError(
            f"only its owner may read {path}; got mode {status.st_mode & 0o777:o}; chmod 600 it"
        )
    with path.open("rb") as file:
        contents: dict[str, Any] = pickle.load(file)  # noqa: S301 - a private file of this user
    return contents
