"""The tables of a ledger and the number of their schema."""

from __future__ import annotations

from typing import Any

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.connection import Connection

__all__ = ["SCHEMA", "prepare"]

SCHEMA = 5
_LIBRARY = "0.2.0"  # the first version that wrote it

_TABLES = {"configuration", "answers"}


def prepare(cursor: Any, connection: Connection) -> int:
    """Make the tables if there are none, once also if several processes try; return the number of epochs, from 1.

    A LedgerError refuses another database, and a ledger of another schema: it names the version to install.
    """
    sql = connection.sql
    if not _has_tables(cursor, connection):
        cursor.execute(sql.alone)
        for statement in () if _has_tables(cursor, connection) else sql.tables:
            cursor.execute(statement)
        cursor.execute("COMMIT")
    found = cursor.execute(sql.schemas).fetchall()
    for schema, library in found:
        if schema != SCHEMA:
            is_newer = isinstance(schema, int) and schema > SCHEMA
            raise LedgerError(
                f"the ledger {connection.place} must have schema {SCHEMA}; it has {schema!r}; nothing was changed; "
                + (
                    f"install reusable-holdout {library} or later, which wrote it"
                    if is_newer
                    else f"ledgers are kept for ever from reusable-holdout {_LIBRARY} on; open this one with the "
                    "version that wrote it"
                )
            )
    return len(found) or 1


def _has_tables(cursor: Any, connection: Connection) -> bool:
    present = {name for (name,) in cursor.execute(connection.sql.present).fetchall()}
    if present and not present >= _TABLES and (connection.path is not None or present & _TABLES):
        raise LedgerError(
            f"{connection.place} must be a ledger or empty; it is another database; name another file"
        )
    return present >= _TABLES
