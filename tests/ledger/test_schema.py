"""The tables, word for word: a ledger holds them for ever, so another shape needs another schema number."""

from __future__ import annotations

import sqlalchemy as sa
from cases import for_each

from reusable_holdout.ledger.schema import SCHEMA, Statements, create_tables

_SQLITE = [
    "CREATE TABLE answers ( epoch INTEGER NOT NULL, query BIGINT NOT NULL, batch BIGINT NOT NULL, "
    "digest BLOB NOT NULL, prior DOUBLE NOT NULL, value DOUBLE NOT NULL, charged INTEGER NOT NULL, "
    "threshold DOUBLE NOT NULL, tolerance DOUBLE NOT NULL, low DOUBLE NOT NULL, high DOUBLE NOT NULL, "
    "nats DOUBLE NOT NULL, charges BIGINT NOT NULL, spent_nats DOUBLE NOT NULL, asked BIGINT NOT NULL, "
    "asked_at DOUBLE NOT NULL, view BIGINT NOT NULL, kind TEXT NOT NULL, told TEXT NOT NULL, name TEXT NOT NULL, "
    "series TEXT NOT NULL, seal BLOB, "
    "PRIMARY KEY (epoch, query), UNIQUE (epoch, digest) )",
    "CREATE TABLE configuration ( epoch INTEGER NOT NULL CHECK (epoch >= 1), schema_version INTEGER NOT NULL, "
    "library TEXT NOT NULL, text TEXT NOT NULL, known_rows BLOB, PRIMARY KEY (epoch) )",
]
_POSTGRESQL = [text.replace("DOUBLE", "DOUBLE PRECISION").replace("BLOB", "BYTEA") for text in _SQLITE]
_INDEXES = {
    "CREATE INDEX answers_in_series ON answers (epoch, series, query) WHERE series != ''",
    "CREATE INDEX answers_charged ON answers (epoch, charged, query) WHERE charged = 1",
}


@for_each(
    ("url", "answers", "configuration"),
    [("sqlite://", f"{_SQLITE[0]} WITHOUT ROWID", _SQLITE[1]), ("postgresql://", *_POSTGRESQL)],
)
def test_the_tables_of_schema_5_never_change(url, answers, configuration):
    made = []
    engine = sa.create_mock_engine(
        url, lambda statement, _: made.append(statement.compile(dialect=engine.dialect))
    )
    create_tables(engine)
    assert SCHEMA == 5
    texts = {
        " ".join(str(text).replace('"query"', "query").replace('"view"', "view").split()) for text in made
    }
    assert texts == {answers, *_INDEXES, configuration}


def test_a_transaction_is_begun_by_who_ends_it():
    """psycopg ends what a statement began; psycopg2 sends no COMMIT for that, and begins its transactions itself."""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
    from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2

    by_statement, by_driver = Statements(PGDialect_psycopg(), 1), Statements(PGDialect_psycopg2(), 1)
    assert by_statement.reads_alone
    assert by_statement.begin == ["BEGIN", *by_driver.begin]
    assert not by_driver.reads_alone
    assert all("FOR UPDATE" in statement for statement in by_driver.begin)
