"""The tables of the board's database. Nothing in them depends on the labels except answers that the guard released."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from reusable_holdout_leaderboard.store.records import StoreError

__all__ = [
    "COMPARED",
    "COMPETITIONS",
    "EVENTS",
    "FORMS",
    "METADATA",
    "PREDICTIONS",
    "SCHEMA",
    "SCHEMAS",
    "SECRETS",
    "SESSIONS",
    "STANDINGS",
    "SUBMISSIONS",
    "TEAMS",
    "prepare_tables",
]

SCHEMA = 6
"""Number of the database format. Versions 0.1 and 0.2 used formats 1 to 5; this version cannot ask their guards."""

FORMS = "forms"  # name of the secret that signs the keys of forms
_DIGEST = sa.LargeBinary(32)

METADATA = sa.MetaData()

SCHEMAS = sa.Table(  # has a single row
    "board_schema", METADATA, sa.Column("version", sa.Integer, primary_key=True, autoincrement=False)
)

COMPETITIONS = sa.Table(
    "board_competitions",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("slug", sa.String(48), nullable=False, unique=True),
    sa.Column("rules", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("frozen", sa.Boolean, nullable=False),
    sa.Column("blind", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("final", sa.Text),  # JSON of the final standings
    sa.Column("ledger_head", sa.Text, nullable=False),  # head of the ledger after the last recorded answer
    sa.Column("invitation", sa.String(64)),  # SHA-256 of the newest invitation code, hex
)

TEAMS = sa.Table(
    "board_teams",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("name_key", sa.String(256), nullable=False),  # equal for names that look alike
    sa.Column("token_digest", _DIGEST, nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
    # name in the ledger; never changed
    sa.Column("series", sa.String(100), nullable=False, server_default=""),
    sa.Column("disqualified", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("competition_id", "name_key"),
)

SUBMISSIONS = sa.Table(
    "board_submissions",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("team_id", sa.ForeignKey(TEAMS.c.id), nullable=False),
    sa.Column("series", sa.String(100), nullable=False),
    sa.Column("digest", _DIGEST, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("claimed", sa.Double, nullable=False),
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("tried_at", sa.Double, nullable=False),
    # the guard's answer; NULL while pending
    sa.Column("prior", sa.Double),
    sa.Column("value", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("threshold", sa.Double),
    sa.Column("charged", sa.Boolean),
    sa.Column("query", sa.Integer),
    sa.Column("told", sa.Text),
    sa.Column("improved", sa.Boolean),
    sa.Column("picked", sa.Boolean),  # true if its team picked it for the final standings
    sa.UniqueConstraint("competition_id", "epoch", "team_id", "digest"),
    sa.Index("board_submissions_of_team", "team_id", "asked_at"),
    sqlite_autoincrement=True,  # a number names a question in the ledger, so it must never be used twice
)
sa.Index(
    "board_submissions_pending",
    SUBMISSIONS.c.competition_id,
    SUBMISSIONS.c.team_id,
    sqlite_where=SUBMISSIONS.c.query.is_(None),
    postgresql_where=SUBMISSIONS.c.query.is_(None),
)
sa.Index(
    "board_submissions_improved",
    SUBMISSIONS.c.competition_id,
    SUBMISSIONS.c.epoch,
    SUBMISSIONS.c.query,
    sqlite_where=SUBMISSIONS.c.improved.is_(True),
    postgresql_where=SUBMISSIONS.c.improved.is_(True),
)

STANDINGS = sa.Table(  # each team's best, so that a board reads one row for each team
    "board_standings",
    METADATA,
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("team_id", sa.ForeignKey(TEAMS.c.id), primary_key=True, autoincrement=False),
    sa.Column("submission_id", sa.Integer, nullable=False),
    sa.Column("value", sa.Double, nullable=False),
    sa.Column("low", sa.Double, nullable=False),
    sa.Column("high", sa.Double, nullable=False),
    sa.Column("best_at", sa.Double, nullable=False),
    sa.Column("query", sa.Integer, nullable=False),
    sa.Column("submissions", sa.Integer, nullable=False),
    sa.Column("charges", sa.Integer, nullable=False),
    sa.Column("certified", sa.Boolean, nullable=False),
    sa.Column("measured", sa.Double),  # best value that was measured and took the lead
)

SECRETS = sa.Table(  # secrets that all servers of a database share
    "board_secrets",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", _DIGEST, nullable=False),
)

SESSIONS = sa.Table(  # sessions of browsers
    "board_sessions",
    METADATA,
    sa.Column("digest", _DIGEST, primary_key=True),  # SHA-256 of the number in the cookie
    sa.Column("token_digest", _DIGEST, nullable=False),  # SHA-256 of the token that began the session
    sa.Column("began_at", sa.Double, nullable=False),
    sa.Column("ends_at", sa.Double, nullable=False),
    sa.Index("board_sessions_of_token", "token_digest"),
)


def _contents(name: str) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        sa.Column("submission_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )


PREDICTIONS = _contents("board_predictions")  # predictions for the fresh rows
COMPARED = _contents("board_compared")  # predictions for the holdout's rows, of each team's best submission

EVENTS = sa.Table(
    "board_events",
    METADATA,
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("team_id", sa.Integer),
    sa.Column("submission_id", sa.Integer),
    sa.Column("detail", sa.Text),  # JSON
)


def prepare_tables(connection: sa.Connection) -> None:
    """Create the tables if there are none. The caller must hold the only transaction that writes.

    Raises
    ------
    StoreError
        If another version of the library made the tables; nothing was changed.
    """
    present = _schema(connection)
    if present == SCHEMA:
        return
    if present is not None:
        writer, then = (
            ("a later version", "install that version")
            if present > SCHEMA
            else (
                "version 0.1 or 0.2",
                "install 0.2.1 to go on with it, or make a new competition on fresh labels",
            )
        )
        raise StoreError(
            f"the board's database must have format {SCHEMA}; it has format {present}, of {writer} of "
            f"reusable-holdout; nothing was changed; {then}"
        )
    METADATA.create_all(connection)
    connection.execute(sa.insert(SECRETS).values(name=FORMS, value=secrets.token_bytes(32)))
    connection.execute(sa.insert(SCHEMAS).values(version=SCHEMA))


def _schema(connection: sa.Connection) -> int | None:
    """Return the format number of the tables, or None if there are no tables. Format 1 did not store its number."""
    inspector = sa.inspect(connection)
    if inspector.has_table(SCHEMAS.name):
        return int(connection.execute(sa.select(SCHEMAS.c.version)).scalar_one())
    return 1 if inspector.has_table(COMPETITIONS.name) else None
