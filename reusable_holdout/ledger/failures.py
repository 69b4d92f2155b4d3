"""Database failures in words of our own: a driver's words, and what it chains, may quote rows."""

from __future__ import annotations

from reusable_holdout.errors import LedgerError, RolledBackError, RotatedError
from reusable_holdout.witness import Head

__all__ = ["failure", "gone", "lost", "misuse", "reason", "rolled_back", "rotated"]

_ADVICE = {
    "ModuleNotFoundError": "its database's driver must be installed; install it",
    "NoSuchModuleError": "its URL must name a database and driver that SQLAlchemy knows; correct it",
    "SQLITE_BUSY": "another process held it for a minute; let that one end, and ask again",
    "SQLITE_CANTOPEN": "check the file: it and its folder must be writable, even to read it; copy it to your own",
    "SQLITE_CORRUPT": "the file is damaged; restore it whole, or start on fresh rows",
    "SQLITE_FULL": "the disk is full; make room, and ask again",
    "SQLITE_IOERR": "the disk failed; check it and its room, and ask again",
    "SQLITE_NOTADB": "the file is something else; name another file",
    "SQLITE_READONLY": "check the file: it and its folder must be writable; change its mode, or copy it elsewhere",
    "SQLITE_ERROR": "a table or column is missing or another program's; name another file, or restore it",
    "SQLITE_CONSTRAINT": "a row is there already or has an empty column: each question is answered once",
}
_MISUSE = {
    "closed": "the ledger must be open; it is closed; nothing was asked; open the guard again",
    "nested": "the ledger must be used through its transaction while this thread holds one; it was used beside it; "
    "nothing was done; leave the with statement first",
    "over": "a transaction must be used inside its with statement, by the process that began it; it was used "
    "elsewhere; nothing was written",
    "orphaned": "a process must not be forked inside a transaction of the ledger it is to use; this one was; nothing "
    "was asked; fork outside the with statement, or start the process by spawning",
    "twice": "a transaction appends or rotates, and once at most; it was asked twice; nothing was written",
    "unconfigured": "a ledger must be given a configuration before its first row; it has none; nothing was written; "
    "call create first",
}


def misuse(kind: str) -> LedgerError:
    """Error of a caller who did not keep to the contract."""
    return LedgerError(_MISUSE[kind])


def rotated(epoch: int, latest: int) -> RotatedError:
    """Error of a ledger that stands at an epoch that is over."""
    return RotatedError(
        f"a question must be asked of the ledger's last epoch, {latest}; this guard stands at epoch {epoch}, whose "
        "holdout was released, or given another plan; nothing was asked and nothing was charged; open the guard with "
        "the holdout of the last epoch"
    )


def rolled_back(place: str, here: Head, seen: Head) -> RolledBackError:
    """Error of a ledger that is not a successor of what its witness saw."""
    return RolledBackError(
        f"a ledger must go on from what its witness has seen, {seen.query} answers of epoch {seen.epoch}; {place} has "
        f"{here.query} of epoch {here.epoch}, or others: an older copy was restored, or two copies were used; nothing "
        "is answered; put the newest copy back, or guard fresh rows: a budget is never refilled"
    )


def lost(place: str, witness: str) -> RolledBackError:
    """Error of a ledger with answers whose witness has seen nothing."""
    return RolledBackError(
        f"a ledger's witness must have seen it; that of {place} is {witness}, which has seen nothing: it was lost, or "
        "is another; nothing was answered and nothing was charged; restore it, or, if you are sure that this is the "
        "newest copy of the ledger, begin it anew: reusable-holdout witness LEDGER"
    )


def gone(place: str) -> LedgerError:
    """Error of a file that was deleted or replaced while it was in use."""
    return LedgerError(
        f"the ledger must stay the file that was opened; {place} is gone, or another file is there now; nothing was "
        "answered and nothing was charged; put the file back and open the guard again"
    )


def failure(ledger: object, done: str, problem: str, *, outcome: str = "") -> LedgerError:
    """Error of a database, whose ledger, named by its repr, was to be "opened", "read" or "written".

    The `problem` is of :func:`reason`; `outcome` is what the failure left behind, nothing by default.
    """
    advice = next(
        (words for name, words in _ADVICE.items() if problem.startswith(name)),
        "check the file, its folder's permissions and the disk, or the server",
    )
    return LedgerError(
        f"the ledger {ledger!r} must be a ledger that can be {done}; it could not be ({problem}); "
        f"{outcome or 'nothing was answered and nothing was charged'}; {advice}"
    )


def reason(error: BaseException) -> str | None:
    """Kind of a database failure, without the driver's words; None for other errors."""
    import sqlalchemy as sa  # noqa: PLC0415 - ledgers in memory have errors too, and need no database

    if isinstance(error, LedgerError):
        return None
    if isinstance(error, sa.exc.SQLAlchemyError):
        error = getattr(error, "orig", None) or error
        return getattr(error, "sqlite_errorname", None) or type(error).__name__
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    # PEP 249 names the classes of drivers' errors, and no two drivers share them
    if any(cls.__name__ in {"DatabaseError", "InterfaceError"} for cls in type(error).__mro__):
        return getattr(error, "sqlite_errorname", None) or type(error).__name__
    return None
