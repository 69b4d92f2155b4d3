"""Database failures in messages of our own, because a driver's messages and chained errors may quote rows."""

from __future__ import annotations

from reusable_holdout.errors import LedgerError, RolledBackError, RotatedError

_CLASSES = {"rotated": RotatedError, "rolled back": RolledBackError, "lost": RolledBackError}
_REFUSALS = {
    "bereft": "a ledger with rows must have the configuration they were sealed with; it is gone; nothing was written; "
    "restore the ledger whole",
    "closed": "the ledger must be open; it is closed; nothing was asked; open the guard again",
    "forked": "a budget in memory belongs to the process that made it; this is a fork of it; nothing was asked; use a "
    "ledger on disk to share a budget",
    "gone": "the ledger must stay the file that was opened; {place} is gone, or another file is there now; nothing was "
    "answered and nothing was charged; put the file back and open the guard again",
    "lost": "a ledger's witness must have seen it; that of {place} is {witness}, which has seen nothing: it was lost, "
    "or is another; nothing was answered and nothing was charged; restore it, or, if you are sure that this is the "
    "newest copy of the ledger, begin it anew: reusable-holdout witness LEDGER",
    "nested": "the ledger must be used through its transaction while this thread holds one; it was used beside it; "
    "nothing was done; leave the with statement first",
    "over": "a transaction must be used inside its with statement, by the process that began it; it was used "
    "elsewhere; nothing was written",
    "orphaned": "a process must not be forked inside a transaction of the ledger it is to use; this one was; nothing "
    "was asked; fork outside the with statement, or start the process by spawning",
    "rolled back": "a ledger must go on from what its witness has seen, {seen.query} answers of epoch {seen.epoch}; "
    "{place} has {here.query} of epoch {here.epoch}, or others: an older copy was restored, or two copies were used; "
    "nothing is answered; put the newest copy back, or guard fresh rows: a budget is never refilled",
    "rotated": "a question must be asked of the ledger's last epoch, {latest}; this guard stands at epoch {epoch}, "
    "whose holdout was released, or given another plan; nothing was asked and nothing was charged; open the guard with "
    "the holdout of the last epoch",
    "twice": "a transaction appends or rotates, and once at most; it was asked twice; nothing was written",
    "unconfigured": "a ledger must be given a configuration before its first row; it has none; nothing was written; "
    "call create first",
    "unsealed": "the ledger's last row must be sealed; it is not: rows were added or removed; verify it",
}
_ADVICE = {
    "SQLITE_BUSY": "another process held it for a minute; let that one end, and ask again",
    "SQLITE_CANTOPEN": "check the file: it and its folder must be writable, even to read it; copy it to your own",
    "SQLITE_CORRUPT": "the file is damaged; restore it whole, or start on fresh rows",
    "SQLITE_FULL": "the disk is full; make room, and ask again",
    "SQLITE_IOERR": "the disk failed; check it and its room, and ask again",
    "SQLITE_NOTADB": "the file is something else; name another file",
    "SQLITE_READONLY": "check the file: it and its folder must be writable; change its mode, or copy it elsewhere",
    "SQLITE_ERROR": "a table or column is missing or another program's; name another file, or restore it",
    "SQLITE_CONSTRAINT": "a row is there already or has an empty column: each question is answered once",
    "": "check the file, its folder's permissions and the disk, or the server",
}
# Names of drivers' error classes: PEP 249 prescribes two names, but each driver has classes of its own.
_DRIVERS = {"DatabaseError", "InterfaceError", "SQLAlchemyError"}


def refusal(kind: str, **facts: object) -> LedgerError:
    """Return the error for a use of a ledger that its state does not allow."""
    return _CLASSES.get(kind, LedgerError)(_REFUSALS[kind].format(**facts))


def failure(place: str, done: str, problem: str, *, on_server: bool) -> LedgerError:
    """Return the error for a ledger that could not be `done`: "opened", "read", "written" or "committed".

    `problem` comes from :func:`reason`. A server may have committed rows although its reply was lost.
    """
    outcome = "nothing was answered and nothing was charged"
    if on_server and done == "committed":
        outcome = "whether its rows were recorded is unknown until the server is back: what was recorded replays free"
    advice = next(words for name, words in _ADVICE.items() if problem.startswith(name))
    return LedgerError(
        f"the ledger {place} must be a ledger that can be {done}; it could not be ({problem}); {outcome}; {advice}"
    )


def reason(error: BaseException) -> str | None:
    """Return the kind of a database failure, without the driver's words; None for other errors."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if _DRIVERS.isdisjoint(cls.__name__ for cls in type(error).__mro__):
        return None
    error = getattr(error, "orig", None) or error  # SQLAlchemy wraps the driver's
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
