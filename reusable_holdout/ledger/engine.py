"""Connections to a ledger's database: durable and patient, whatever its defaults are."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import sqlalchemy as sa

from reusable_holdout.extras import of_extra

__all__ = ["driver_of", "engine_of", "keep_durable"]

_BUSY_SECONDS = 60


def engine_of(url: str, *, is_sqlite: bool) -> sa.Engine:
    """Engine without a pool: a ledger keeps one connection, and must know of every one that a fork would share."""
    if not is_sqlite:  # "format": the hot path binds by position, and every server's driver can
        # a connection that was lost is not reset: that would log the driver's words
        with driver_of(url):
            engine = sa.create_engine(
                url, poolclass=sa.NullPool, paramstyle="format", pool_reset_on_return=None
            )
        if engine.dialect.name == "postgresql":
            sa.event.listen(engine, "connect", _settle)
        return engine
    engine = sa.create_engine(
        url,
        poolclass=sa.NullPool,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
    )
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
