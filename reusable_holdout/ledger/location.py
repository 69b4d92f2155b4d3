"""The place of a ledger: a file, or a database on a server by its URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

from reusable_holdout.errors import LedgerError

__all__ = ["check_file", "file_identity", "resolved", "shown", "without_password"]

_SERVER = re.compile(
    r"(?P<begin>postgresql(\+psycopg)?://)((?P<user>[^:/?#@]*)(?P<password>:[^/?#@]*)?@)?(?P<rest>[^?#@]*)(\?[^#]*)?"
)


def resolved(location: str | Path) -> tuple[str, Path | None]:
    """Return the URL of a ledger, and its file if it is SQLite; a LedgerError refuses anything else."""
    problem = ""
    if isinstance(location, str) and re.match(r"sqlite\b.*://", location):
        scheme, _, rest = location.partition("://")
        if scheme not in {"sqlite", "sqlite+pysqlite"} or "?" in rest or not rest.startswith("/"):
            problem = (
                "a SQLite ledger's URL must be sqlite:///file and nothing more, for options could make answers less "
                "durable; got a driver, a host, options or no file; leave them out; a ledger in memory is ledger=None"
            )
        location = unquote(rest[1:])
    elif isinstance(location, str) and "://" in location:
        if _SERVER.fullmatch(location):
            return location, None
        problem = (
            "a ledger's URL must be postgresql+psycopg://user@host/database; got another database, or a URL that "
            "cannot be read; write special characters of a password as %40"
        )
    if not isinstance(location, str | Path) or str(location) in {"", ":memory:"} or "\0" in str(location):
        problem = problem or f"a ledger must be a file or the URL of a server; got {type(location).__name__}"
    if problem:
        raise LedgerError(f"{problem}; nothing was made")
    path = Path(location).absolute()
    return f"sqlite:///{quote(str(path), safe=' +/')}", path


def shown(url: str) -> str:
    """Return a URL without its options and the password that it may hold."""
    found = _SERVER.fullmatch(url)
    if found is None:
        return url
    user = "" if found["user"] is None else f"{found['user']}{':***' * bool(found['password'])}@"
    return f"{found['begin']}{user}{found['rest']}"


def without_password(url: str) -> str:
    """Return a URL without the password that it may hold, as a part of its own or among its options."""
    place, _, options = url.partition("?")
    found = _SERVER.fullmatch(place)
    if found is None:
        return url
    kept = "&".join(one for one in options.split("&") if one and not one.startswith("password="))
    user = "" if found["user"] is None else f"{found['user']}@"
    return f"{found['begin']}{user}{found['rest']}{'?' * bool(kept)}{kept}"


def check_file(path: Path, *, must_exist: bool) -> None:
    """Refuse a path that cannot be a ledger's file."""
    if path.is_dir():
        raise LedgerError(f"a ledger must be a file; {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; {path.parent} does not; make it first")
    if must_exist and not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}; name another file, or make a guard with ReusableHoldout(X, y, ledger=...)"
        )


def file_identity(path: str | Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced, and not when it grows; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - with every use of a ledger
    except OSError:
        return None
    return status.st_dev, status.st_ino
