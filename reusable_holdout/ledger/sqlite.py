"""Connections to a ledger in a SQLite file: commits are durable, and a busy file is waited for."""

from __future__ import annotations

import sqlite3
import time

from reusable_holdout.ledger.schema import Statements

STATEMENTS = Statements()

_BUSY_SECONDS = 60


def connect(place: str) -> sqlite3.Connection:
    """Return a new connection to a file, which all threads may use."""
    return sqlite3.connect(place, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def settle(connection: sqlite3.Connection) -> None:
    """Make a connection durable: a commit survives a crash (WAL, synchronous=FULL)."""
    deadline, in_wal = time.monotonic() + _BUSY_SECONDS, False
    while not in_wal:  # unlike other statements, this one does not wait by itself while the database is busy
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            in_wal = True
        except sqlite3.OperationalError as error:
            if time.monotonic() > deadline or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous=FULL")
