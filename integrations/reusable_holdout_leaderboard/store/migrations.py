"""Schemas that boards were kept in: one of an earlier version is brought to this one's, one of a later is refused."""

from __future__ import annotations

import sqlalchemy as sa

from reusable_holdout_leaderboard.store.records import StoreError
from reusable_holdout_leaderboard.store.tables import METADATA, SCHEMA, SCHEMAS

__all__ = ["MIGRATIONS", "prepare_tables"]

MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE board_competitions DROP COLUMN schema_version",  # so that 0.1 refuses what it would misread
        "ALTER TABLE board_competitions ADD COLUMN invitation VARCHAR(64)",
        "ALTER TABLE board_competitions ADD COLUMN ledger_head TEXT",
        "ALTER TABLE board_submissions ADD COLUMN picked BOOLEAN",
        "ALTER TABLE board_submissions ADD COLUMN told TEXT",
        "ALTER TABLE board_standings ADD COLUMN certified BOOLEAN",
        "ALTER TABLE board_standings ADD COLUMN measured FLOAT",
        "ALTER TABLE board_teams ADD COLUMN series VARCHAR(100) NOT NULL DEFAULT ''",
        "UPDATE board_teams SET series = name",
        "ALTER TABLE board_teams ADD COLUMN merged_into INTEGER",
        "ALTER TABLE board_teams ADD COLUMN disqualified BOOLEAN NOT NULL DEFAULT false",
        "ALTER TABLE board_submissions ADD COLUMN series VARCHAR(100) NOT NULL DEFAULT ''",
        "UPDATE board_submissions SET series = (SELECT name FROM board_teams WHERE id = team_id)",
        "ALTER TABLE board_events ADD COLUMN detail TEXT",
    ),
    2: (),  # tables that were not there are made
    3: (),
}
"""By the schema they begin at: statements that SQLite and PostgreSQL both know, never changed once released."""


def prepare_tables(connection: sa.Connection) -> None:
    """Make the tables, or bring those of an earlier version to this schema, in a transaction that nobody shares.

    Raises
    ------
    StoreError
        If a later version wrote them; nothing was changed.
    """
    present = _schema(connection)
    if present is not None and present > SCHEMA:
        raise StoreError(
            f"the board's database must have a schema from 1 to {SCHEMA}; it has {present}, which a later version of "
            "reusable-holdout wrote; nothing was changed; install that version"
        )
    if present == SCHEMA:
        return
    if present is not None:
        for number in range(present, SCHEMA):
            for statement in MIGRATIONS[number]:
                connection.exec_driver_sql(statement)
    METADATA.create_all(connection)
    connection.execute(sa.delete(SCHEMAS))
    connection.execute(sa.insert(SCHEMAS).values(version=SCHEMA))


def _schema(connection: sa.Connection) -> int | None:
    """Schema of the tables; None if there are none. The first was not written down."""
    inspector = sa.inspect(connection)
    if inspector.has_table(SCHEMAS.name):
        return int(connection.execute(sa.select(SCHEMAS.c.version)).scalar_one())
    return 1 if inspector.has_table("board_competitions") else None
