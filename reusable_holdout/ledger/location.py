"""Where a ledger lies."""

from __future__ import annotations

import os
from pathlib import Path

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError

__all__ = ["check_file", "file_identity", "resolved", "shown"]


def resolved(location: str | Path) -> tuple[str, Path | None]:
    """URL of a ledger, and its file if it is SQLite."""
    if isinstance(location, str) and "://" in location:
        url = _url(location)
        if url is None:
            raise LedgerError("a ledger must be a file or a SQLAlchemy URL; got a URL that cannot be read")
        if url.get_backend_name() != "sqlite":
            return location, None
        if not url.database or url.database == ":memory:":
            raise LedgerError("a ledger in memory is ledger=None; got a SQLite URL without a file")
        if url.query or url.drivername not in {"sqlite", "sqlite+pysqlite"}:
            raise LedgerError(
                "a SQLite ledger's URL must be sqlite:///file and nothing more, for options could make answers less "
                "durable; got a driver or options; leave them out"
            )
        location = url.database
    if not isinstance(location, str | Path) or not str(location):
        raise LedgerError(f"a ledger must be a file or a SQLAlchemy URL; got {type(location).__name__}")
    path = Path(location).absolute()
    rendered = sa.URL.create("sqlite", database=str(path)).render_as_string()
    # before SQLAlchemy 2.1 what follows a question mark is options
    if sa.make_url(rendered).database != str(path):
        raise LedgerError(
            "a ledger's file must have a name that SQLAlchemy finds again by its URL; this one has a question mark; "
            "name another, or install SQLAlchemy 2.1"
        )
    return rendered, path


def shown(url: str) -> str:
    """URL without the password it may hold, as a part of its own or among its options."""
    return sa.make_url(url).set(query={}).render_as_string(hide_password=True)


def _url(text: str) -> sa.URL | None:
    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # their words may quote a password
        return None


def file_identity(path: str | Path) -> tuple[int, int] | None:
    """What changes when a file is replaced, and not when it grows; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - with every use of a ledger
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_file(path: Path, *, must_exist: bool) -> None:
    """Refuse what cannot be a ledger's file."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        raise LedgerError(
            "a ledger's path must be one the system can open; it is not; name another file"
        ) from None
    if path.is_dir():
        raise LedgerError(f"a ledger must be a file; {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; {path.parent} does not; make it first")
    if must_exist and not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}; name another file, or make a guard with ReusableHoldout(X, y, ledger=...)"
        )
