"""The tables, word for word: a ledger holds them for ever, so another shape needs another schema number."""

from __future__ import annotations

from cases import for_each
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from reusable_holdout.ledger.schema import METADATA, SCHEMA

_SQLITE = [
    "CREATE TABLE answers ( epoch INTEGER NOT NULL, query BIGINT NOT NULL, batch BIGINT NOT NULL, "
    "digest BLOB NOT NULL, prior DOUBLE NOT NULL, value DOUBLE NOT NULL, charged INTEGER NOT NULL, "
    "threshold DOUBLE NOT NULL, low DOUBLE NOT NULL, high DOUBLE NOT NULL, nats DOUBLE NOT NULL, "
    "charges BIGINT NOT NULL, spent_nats DOUBLE NOT NULL, asked BIGINT NOT NULL, asked_at DOUBLE NOT NULL, "
    "view BIGINT NOT NULL, kind TEXT NOT NULL, told TEXT NOT NULL, name TEXT NOT NULL, series TEXT NOT NULL, "
    "seal BLOB, "
    "PRIMARY KEY (epoch, query), UNIQUE (epoch, digest) )",
    "CREATE TABLE configuration ( epoch INTEGER NOT NULL CHECK (epoch >= 1), schema_version INTEGER NOT NULL, "
    "text TEXT NOT NULL, PRIMARY KEY (epoch) )",
]
_POSTGRESQL = [text.replace("DOUBLE", "DOUBLE PRECISION").replace("BLOB", "BYTEA") for text in _SQLITE]


@for_each(
    ("dialect", "tables", "ending"),
    [(sqlite.dialect(), _SQLITE, " WITHOUT ROWID"), (postgresql.dialect(), _POSTGRESQL, "")],
    ids=["sqlite", "postgresql"],
)
def test_the_tables_of_schema_4_never_change(dialect, tables, ending):
    made = [
        " ".join(str(CreateTable(table).compile(dialect=dialect)).split()) for table in METADATA.sorted_tables
    ]
    assert SCHEMA == 4
    assert [text.replace('"query"', "query").replace('"view"', "view") for text in made] == [
        tables[0] + ending,
        tables[1],
    ]


def test_rows_of_no_series_are_left_out_of_the_index_of_series():
    [index] = METADATA.tables["answers"].indexes
    made = str(CreateIndex(index).compile(dialect=sqlite.dialect()))
    assert made == "CREATE INDEX answers_in_series ON answers (epoch, series, \"query\") WHERE series != ''"
