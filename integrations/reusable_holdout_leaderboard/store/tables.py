"""Tables of the board, beside the guard's ledger: nothing in them depends on the labels but released answers.

Those of an earlier version are brought to this one's schema; those of a later one are refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import sqlalchemy as sa

from reusable_holdout_leaderboard.store.names import key_of
from reusable_holdout_leaderboard.store.records import StoreError

__all__ = [
    "COMPARED",
    "COMPETITIONS",
    "EVENTS",
    "FORMS",
    "METADATA",
    "MIGRATIONS",
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

SCHEMA = 5
_KEYED_ANEW = 5  # the first schema whose keys of names go by Unicode's tables
FORMS = "forms"  # name of the secret that signs the keys of forms
_DIGEST = sa.LargeBinary(32)

METADATA = sa.MetaData()

SCHEMAS = sa.Table(  # one row
    "board_schema",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
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
    sa.Column("ledger_head", sa.Text),  # of the ledger, after the last answer that was recorded
    sa.Column("invitation", sa.String(64)),  # SHA-256 of the newest code, hex
)

TEAMS = sa.Table(
    "board_teams",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), nullable=False),
    sa.Column("name", sa.String(64), nullable=False),
    sa.Column("name_key", sa.String(256), nullable=False),  # names that look the same are the same
    sa.Column("token_digest", _DIGEST, nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column(
        "series", sa.String(100), nullable=False, server_default=""
    ),  # its name in the ledger, for ever
    sa.Column("merged_into", sa.Integer),  # team that has its submissions now
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
    sa.Column("series", sa.String(100), nullable=False, server_default=""),  # it was asked in
    sa.Column("digest", _DIGEST, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("claimed", sa.Double),
    sa.Column(
        "prior", sa.Double, nullable=False
    ),  # kept while pending, so that asking again is the same question
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("tried_at", sa.Double, nullable=False),
    # of the guard's answer; NULL while pending
    sa.Column("value", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("threshold", sa.Double),
    sa.Column("charged", sa.Boolean),
    sa.Column(
        "paid", sa.Boolean
    ),  # whether this submission, and no other with the same question, took the charge
    sa.Column("query", sa.Integer),
    sa.Column("told", sa.Text),  # the outcome's name
    sa.Column("improved", sa.Boolean),
    sa.Column("picked", sa.Boolean),  # for the final standings
    sa.UniqueConstraint("competition_id", "epoch", "team_id", "digest"),
    sa.Index("board_submissions_of_team", "team_id", "asked_at"),
    sqlite_autoincrement=True,  # a number names a question in the ledger: it must never come twice
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

STANDINGS = sa.Table(  # each team's best, so that a board costs as many rows as there are teams
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
    sa.Column("certified", sa.Boolean),  # NULL: it is
    sa.Column("measured", sa.Float),  # FLOAT in both: best value that was, and took the lead, of claims
)

SECRETS = sa.Table(  # that all servers of a database share
    "board_secrets",
    METADATA,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", _DIGEST, nullable=False),
)

SESSIONS = sa.Table(  # of browsers
    "board_sessions",
    METADATA,
    sa.Column("digest", _DIGEST, primary_key=True),  # of the number in the cookie
    sa.Column("token_digest", _DIGEST, nullable=False),  # of the token that was shown
    sa.Column("began_at", sa.Double, nullable=False),
    sa.Column("ends_at", sa.Double, nullable=False),
    sa.Index("board_sessions_of_token", "token_digest"),
)

PREDICTIONS = sa.Table(  # for the fresh rows
    "board_predictions",
    METADATA,
    sa.Column("submission_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

COMPARED = sa.Table(  # predictions for the holdout's rows, of teams' bests
    "board_compared",
    METADATA,
    sa.Column("submission_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("competition_id", sa.ForeignKey(COMPETITIONS.c.id), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("team_id", sa.ForeignKey(TEAMS.c.id), nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("board_compared_of_team", "competition_id", "epoch", "team_id"),
)

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

# ---- earlier schemas

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
    4: (),  # and teams get other keys
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
    if present is not None and present < _KEYED_ANEW:
        _key_names_anew(connection)
    connection.execute(sa.insert(SECRETS).values(name=FORMS, value=secrets.token_bytes(32)))
    connection.execute(sa.delete(SCHEMAS))
    connection.execute(sa.insert(SCHEMAS).values(version=SCHEMA))


def _key_names_anew(connection: sa.Connection) -> None:
    """Give teams the keys that this version makes of their names.

    Of teams whose names have come to look alike the oldest gets the key, and the others one that no name has.
    """
    taken: set[tuple[int, str]] = set()
    teams = sa.select(TEAMS.c.id, TEAMS.c.competition_id, TEAMS.c.name).order_by(TEAMS.c.id)
    found = connection.execute(teams).all()
    keys = {team_id: f"\n{team_id}" for team_id, _, _ in found}
    _set_keys(connection, keys)  # first, for a new key may be another team's old one
    for team_id, number, name in found:
        if (number, key_of(name)) not in taken:
            keys[team_id] = key_of(name)
            taken.add((number, keys[team_id]))
    _set_keys(connection, keys)


def _set_keys(connection: sa.Connection, keys: Mapping[int, str]) -> None:
    for team_id, key in keys.items():
        connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(name_key=key))


def _schema(connection: sa.Connection) -> int | None:
    """Schema of the tables; None if there are none. The first was not written down."""
    inspector = sa.inspect(connection)
    if inspector.has_table(SCHEMAS.name):
        return int(connection.execute(sa.select(SCHEMAS.c.version)).scalar_one())
    return 1 if inspector.has_table("board_competitions") else None
