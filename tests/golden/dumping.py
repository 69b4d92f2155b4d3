"""A ledger's tables as SQL that makes them on a PostgreSQL server."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from reusable_holdout.ledger.schema import METADATA, create_tables

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dumped"]


def dumped(ledger: Path) -> str:
    """SQL of a SQLite ledger's tables and rows, as this version makes them on a server."""
    lines: list[str] = []
    engine = sa.create_mock_engine(
        "postgresql+psycopg://", lambda statement, *_, **__: lines.append(_compiled(statement))
    )
    create_tables(engine)  # type: ignore[arg-type]
    with sqlite3.connect(ledger) as connection:
        for table in METADATA.sorted_tables:
            names = [column.name for column in table.columns]
            rows = connection.execute(f"SELECT {', '.join(names)} FROM {table.name}").fetchall()
            lines += [f"INSERT INTO {table.name} VALUES ({', '.join(map(_literal, row))})" for row in rows]
    connection.close()
    return ";\n".join(line.strip() for line in lines) + ";\n"


def _compiled(statement: Any) -> str:
    return str(statement.compile(dialect=postgresql.dialect()))


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
