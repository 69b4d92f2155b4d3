"""Where a ledger lies, and connections to it: durable and patient, whatever its database's defaults are."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError, of_extra

__all__ = ["check_file", "driver_of", "engine_of", "keep_durable", "resolved", "shown", "without_password"]

_BUSY_SECONDS = 60


def resolved(location: str | Path) -> tuple[str, Path | None]:
    """URL of a ledger, and its file if it is SQLite."""
    if isinstance(location, str) and "://" in location:
        url = None
        with contextlib.suppress(sa.exc.ArgumentError, ValueError):  # their words may quote a password
            url = sa.make_url(location)
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


def without_password(url: str) -> str:
    """Return the URL without the password it may hold, as a part of its own or among its options."""
    parts = sa.make_url(url)
    options = {name: value for name, value in parts.query.items() if name != "password"}
    return parts._replace(password=None).set(query=options).render_as_string(hide_password=False)


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


# ---- connections


def engine_of(url: str, *, is_sqlite: bool) -> sa.Engine:
    """Engine without a pool: a ledger keeps one connection, and must know of every one that a fork would share."""
    if not is_sqlite:  # "format": the hot path binds by position, and every server's driver can
        # a connection that was lost is not reset: that would log the driver's words
        plain: dict[str, Any] = {"paramstyle": "format", "pool_reset_on_return": None}
        with driver_of(url):
            engine = sa.create_engine(url, poolclass=sa.NullPool, **plain)
        if engine.dialect.name == "postgresql":
            sa.event.listen(engine, "connect", _settle)
        return engine
    settings = {"timeout": _BUSY_SECONDS, "check_same_thread": False, "isolation_level": None}
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=settings)
    keep_durable(engine)
    return engine


def driver_of(url: str) -> contextlib.AbstractContextManager[None]:
    """Say which extra has the driver, where an engine is made in the block and has none."""
    driver: str = sa.make_url(url).get_dialect().driver
    return of_extra("postgresql", "PostgreSQL") if driver == "psycopg" else contextlib.nullcontext()


def keep_durable(engine: sa.Engine, *more: str) -> None:
    """Make every SQLite connection keep what it commits, whatever happens: WAL, synchronous=FULL, and more pragmas."""

    @sa.event.listens_for(engine, "connect")
    def durable(connection: Any, _: Any) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        while not _is_wal(connection, last=time.monotonic() > deadline):
            time.sleep(0.01)
        for pragma in ("synchronous=FULL", *more):
            connection.execute(f"PRAGMA {pragma}")


def _settle(connection: Any, _: Any) -> None:
    """Make a PostgreSQL session durable and patient, whatever its database's defaults are.

    A process that is stopped inside a transaction must not hold up the others for ever.
    """
    milliseconds = str(_BUSY_SECONDS * 1_000)
    settings = {
        "default_transaction_isolation": "read committed",
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
    }
    with contextlib.closing(connection.cursor()) as cursor:
        for name, value in settings.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    connection.commit()


def _is_wal(connection: Any, *, last: bool) -> bool:
    """Change the mode; unlike all else, that does not wait for others by itself when the database is busy."""
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    except connection.OperationalError as error:
        if last or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
            raise
        return False
    return True
