"""A ledger's tables as SQL that makes them on a PostgreSQL server."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from reusable_holdout.ledger import postgresql

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dumped"]


def dumped(ledger: Path) -> str:
    """Return the SQL of a SQLite ledger's tables and rows, as this version makes them on a server."""
    lines = list(postgresql.STATEMENTS.tables)
    connection = sqlite3.connect(ledger)
    for table in ("answers", "configuration"):
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        lines += [f"INSERT INTO {table} VALUES ({', '.join(map(_literal, row))})" for row in rows]
    connection.close()
    return ";\n".join(lines) + ";\n"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
