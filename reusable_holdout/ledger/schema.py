"""The schema of a ledger: its tables, and the statements about them, in the SQL of SQLite."""
# ruff: noqa: S608 - the texts are built of the names of our own columns alone

from __future__ import annotations

from typing import NamedTuple

from reusable_holdout.ledger.records import COLUMNS

SCHEMA = 5

CHUNK = 500
"""Number of digests that one statement looks up at most."""

_RESERVED = {"query", "view"}  # words of SQL, which are quoted
_NAMES = {name: f'"{name}"' if name in _RESERVED else name for name in COLUMNS}
_TYPES = {int: "BIGINT", float: "DOUBLE", bytes: "BLOB", str: "TEXT"}
_ROW = ", ".join(_NAMES.values())


def _table(name: str, *columns: str) -> str:
    """Return the statement that makes a table. SQLite stores it, so it equals the one of version 0.2 to the byte."""
    listed = ", \n\t".join(columns)
    return f"CREATE TABLE {name} (\n\t{listed}\n)"


_CONFIGURATION = _table(
    "configuration",
    "epoch INTEGER NOT NULL CHECK (epoch >= 1)",
    "schema_version INTEGER NOT NULL",
    "library TEXT NOT NULL",
    "text TEXT NOT NULL",
    "known_rows BLOB",
    "PRIMARY KEY (epoch)",
)
_ANSWERS = _table(
    "answers",
    "epoch INTEGER NOT NULL",
    *(
        f"{_NAMES[name]} {'INTEGER' if name == 'charged' else _TYPES[kind]} NOT NULL"
        for name, kind in COLUMNS.items()
    ),
    "seal BLOB",
    'PRIMARY KEY (epoch, "query")',
    "UNIQUE (epoch, digest)",
)
TABLES = (
    _CONFIGURATION,
    f"{_ANSWERS}\n WITHOUT ROWID\n\n",  # rows lie in the order of their key, and need no second index
    'CREATE INDEX answers_charged ON answers (epoch, charged, "query") WHERE charged = 1',
    "CREATE INDEX answers_in_series ON answers (epoch, series, \"query\") WHERE series != ''",
)

# SQLite chooses an index as if every condition excluded most rows; so, to find the last charge, it read all rows of a
# ledger without charges. Every statement about answers therefore names its index, and fails if it cannot use it.
_BY_KEY = "FROM answers NOT INDEXED WHERE epoch = ?"
_CHARGED = "FROM answers INDEXED BY answers_charged WHERE epoch = ? AND charged = 1"
_DIGESTS = "FROM answers INDEXED BY sqlite_autoindex_answers_2"

# The last row is looked up at the end of an index. If max() were used instead, PostgreSQL would read all rows of the
# epoch, because it has no statistics of a new table.
_LOOK = f"""
SELECT (SELECT max(epoch) FROM configuration),
    last."query", last.charges, last.spent_nats, last.asked, last.kind, last.seal, charge.digest, charge.asked,
    {", ".join(f"found.{name}" for name in _NAMES.values())}
FROM (SELECT 1) AS one
LEFT JOIN answers AS last NOT INDEXED ON last.epoch = ?
    AND last."query" = (SELECT "query" {_BY_KEY} ORDER BY "query" DESC LIMIT 1)
LEFT JOIN answers AS charge NOT INDEXED ON charge.epoch = last.epoch
    AND charge."query" = (SELECT "query" {_CHARGED} ORDER BY "query" DESC LIMIT 1)
LEFT JOIN answers AS found INDEXED BY sqlite_autoindex_answers_2 ON found.epoch = last.epoch AND found.digest = ?
"""


class Statements(NamedTuple):
    """SQL statements for one database, by default SQLite; the epoch is their first parameter, unless it says otherwise.

    Attributes
    ----------
    present : str
        Names of the tables that are there.
    alone : str
        Begins a transaction, and waits until no other process is in one.
    begin : str
        Does the same as `alone`; if the ledger has a configuration, it waits for writers of version 0.2, too.
    look : str
        Last epoch, end of the ledger, last charge, and the row of a digest if there is one.
    digests : str
        All digests.
    found : str
        Rows of some digests. Its parameters are the digests, then the epoch; its text takes `digest` for each of them.
    insert, insert_sealed : str
        The number of the epoch is in their text, so that each row of a batch binds one parameter fewer.
    """

    present: str = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    tables: tuple[str, ...] = TABLES
    alone: str = "BEGIN IMMEDIATE"
    begin: str = "BEGIN IMMEDIATE"
    schemas: str = "SELECT epoch, schema_version, library FROM configuration ORDER BY epoch"
    configurations: str = "SELECT epoch, text FROM configuration ORDER BY epoch"
    configure: str = (
        "INSERT INTO configuration (epoch, schema_version, library, text, known_rows) VALUES (?, ?, ?, ?, ?)"
    )
    known_rows: str = "SELECT known_rows FROM configuration WHERE epoch = ?"
    look: str = _LOOK
    rows: str = f'SELECT {_ROW} {_BY_KEY} AND "query" > ? AND kind = coalesce(?, kind) ORDER BY "query"'
    charged: str = f'SELECT "query" {_CHARGED} ORDER BY "query" LIMIT ?'
    seals: str = f'SELECT "query", seal {_BY_KEY} AND seal IS NOT NULL ORDER BY "query"'
    seal_at: str = f'SELECT seal {_BY_KEY} AND "query" = ?'
    digests: str = f"SELECT digest {_DIGESTS} WHERE epoch = ?"
    digest: str = "?"
    found: str = f"SELECT {_ROW} {_DIGESTS} WHERE digest IN ({{}}) AND epoch = ?"
    insert: str = f"INSERT INTO answers (epoch, {_ROW}) VALUES ({{}}{', ?' * len(COLUMNS)})"
    insert_sealed: str = f"INSERT INTO answers (epoch, {_ROW}, seal) VALUES ({{}}{', ?' * len(COLUMNS)}, ?)"
