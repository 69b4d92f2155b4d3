"""Connections to a ledger on a PostgreSQL server, and its SQL where that differs from SQLite's."""
# ruff: noqa: S608 - the texts are built of those in `schema` alone

from __future__ import annotations

import re
from typing import Any

from reusable_holdout.errors import of_extra
from reusable_holdout.ledger.schema import TABLES, Statements

_ALONE = "BEGIN; SELECT pg_advisory_xact_lock(1919434860)"
# a process that is stopped inside a transaction must not hold up the others for ever
_DURABLE_AND_PATIENT = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
    set_config('lock_timeout', '1min', false),
    set_config('idle_in_transaction_session_timeout', '1min', false),
    set_config('synchronous_commit', CASE WHEN now IN ('off', 'local') THEN 'on' ELSE now END, false)
FROM current_setting('synchronous_commit') AS now
"""


def _translated(text: str) -> str:
    """Return a SQLite statement for PostgreSQL: without names of indexes, and with the driver's placeholders."""
    return re.sub(r" NOT INDEXED| INDEXED BY \w+", "", text).replace("?", "%s")


def _table(text: str) -> str:
    """Return the text that makes a table or an index, with this database's types."""
    return text.partition("\n WITHOUT")[0].replace("DOUBLE", "DOUBLE PRECISION").replace("BLOB", "BYTEA")


_SQL = Statements._make(_translated(text) if isinstance(text, str) else text for text in Statements())
STATEMENTS = _SQL._replace(
    present="SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
    tables=tuple(map(_table, TABLES)),
    alone=_ALONE,
    begin=f"{_ALONE}; SELECT epoch FROM configuration ORDER BY epoch DESC LIMIT 1 FOR UPDATE",
    digest="(%s::bytea)",
    # with a list of digests, PostgreSQL may use the primary key instead, and read the whole epoch
    found="SELECT found.* FROM (VALUES {}) AS asked (digest) JOIN LATERAL ("
    + _SQL.found.replace("IN ({})", "= asked.digest")
    + " LIMIT 1) AS found ON true",
)


def connect(place: str) -> Any:
    """Return a new connection to a server; no transaction begins unless a statement says so."""
    with of_extra("postgresql", "PostgreSQL"):
        import psycopg  # noqa: PLC0415 - an extra brings it
    return psycopg.connect(place.replace("+psycopg", "", 1), autocommit=True)


def settle(connection: Any) -> None:
    """Make a session's commits durable and its waits a minute long, whatever the defaults of its database are."""
    connection.execute(_DURABLE_AND_PATIENT)
