"""Rows of competitions and events, and the lock under which a competition is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import Event, StoreError
from reusable_holdout_leaderboard.store.tables import COMPETITIONS, EVENTS, FORMS, SECRETS

__all__ = [
    "State",
    "as_moment",
    "create_competition",
    "events",
    "find",
    "form_secret",
    "keep_head",
    "lock",
    "numbers_given",
    "slugs",
    "tell",
    "tell_answer",
    "update",
]


class State(NamedTuple):
    """State of one competition in the database."""

    id: int
    rules: Rules
    epoch: int
    frozen: bool
    blind: bool
    revision: int
    final: list[dict[str, Any]] | None
    head: Head
    invitation: str


def as_moment(seconds: float) -> datetime:
    """Return the date and time of a number of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)


@lru_cache(maxsize=16)
def _rules(text: str) -> Rules:
    return Rules.from_json(text)


def _head(text: str) -> Head:
    head = Head.parse(text.encode())
    if head is None:
        raise StoreError("the board must hold the head of its ledger; it does not; restore it from a backup")
    return head


def _state(row: Any) -> State:
    return State(
        id=row.id,
        rules=_rules(row.rules),
        epoch=row.epoch,
        frozen=bool(row.frozen),
        blind=bool(row.blind),
        revision=row.revision,
        final=None if row.final is None else json.loads(row.final),
        head=_head(row.ledger_head),
        invitation=row.invitation or "",
    )


# ---- competitions. Statements of every request are built once, because building takes longer than answering.

_NAMED = sa.select(COMPETITIONS).where(COMPETITIONS.c.slug == sa.bindparam("slug"))
_LOCKED = sa.select(COMPETITIONS).where(COMPETITIONS.c.id == sa.bindparam("number")).with_for_update()


def create_competition(connection: sa.Connection, rules: Rules, head: Head, *, at: float) -> None:
    """Add a competition.

    Raises
    ------
    InputError
        If there is one with this slug.
    """
    if find(connection, rules.slug) is not None:
        raise InputError(f"there is a competition {rules.slug!r} already; open it, or name another slug")
    values = {"slug": rules.slug, "rules": rules.to_json(), "created_at": at, "blind": rules.blind}
    values |= {"epoch": 1, "frozen": False, "revision": 0, "ledger_head": _text(head)}
    (number,) = connection.execute(sa.insert(COMPETITIONS).values(values)).inserted_primary_key or (0,)
    tell(connection, int(number), "created", at)


def slugs(connection: sa.Connection) -> list[str]:
    """Return the names of all competitions, the oldest first."""
    return list(connection.scalars(sa.select(COMPETITIONS.c.slug).order_by(COMPETITIONS.c.id)))


def find(connection: sa.Connection, slug: str) -> State | None:
    """Return the state of a competition; None if there is none."""
    row = connection.execute(_NAMED, {"slug": slug}).first()
    return None if row is None else _state(row)


def lock(connection: sa.Connection, number: int) -> State:
    """Lock a competition until the transaction ends; all its writers wait here, on SQLite at BEGIN.

    Raises
    ------
    InputError
        If there is none.
    """
    row = connection.execute(_LOCKED, {"number": number}).first()
    if row is None:
        raise InputError(f"there must be a competition of number {number}; there is none")
    return _state(row)


def update(connection: sa.Connection, number: int, **values: Any) -> None:
    """Change columns of a competition."""
    connection.execute(sa.update(COMPETITIONS).where(COMPETITIONS.c.id == number).values(values))


def form_secret(connection: sa.Connection) -> bytes:
    """Return the secret that signs the keys of forms: one for all servers of this database."""
    return bytes(connection.execute(sa.select(SECRETS.c.value).where(SECRETS.c.name == FORMS)).scalar_one())


def numbers_given(connection: sa.Connection) -> int:
    """Return the highest number that any submission in this database ever had."""
    asked = (
        "SELECT seq FROM sqlite_sequence WHERE name = 'board_submissions'"
        if connection.dialect.name == "sqlite"
        else "SELECT last_value FROM board_submissions_id_seq"
    )
    return int(connection.exec_driver_sql(asked).scalar() or 0)


# ---- events

_EVENT = sa.insert(EVENTS)
_TOLD = (
    sa.update(COMPETITIONS)
    .where(COMPETITIONS.c.id == sa.bindparam("number"))
    .values(revision=sa.bindparam("at_revision"), ledger_head=sa.bindparam("head"))
)


def tell(
    connection: sa.Connection,
    number: int,
    kind: str,
    at: float,
    *,
    team_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Event:
    """Add an event to a locked competition."""
    update(connection, number, revision=COMPETITIONS.c.revision + 1)
    asked = sa.select(COMPETITIONS.c.revision).where(COMPETITIONS.c.id == number)
    revision = int(connection.execute(asked).scalar_one())
    _add_event(connection, number, revision, kind, at, team_id=team_id, detail=detail)
    return Event(revision, as_moment(at), kind, team_id, None, None if detail is None else dict(detail))


def tell_answer(
    connection: sa.Connection, state: State, team_id: int, submission_id: int, at: float, head: Head
) -> None:
    """Add the event that a submission was answered, and keep the ledger's head.

    It must be the first event after the competition was locked in this `state`.
    """
    revision = state.revision + 1
    kept = head if head.is_later_than(state.head) else state.head  # another worker may have been faster
    connection.execute(_TOLD, {"number": state.id, "at_revision": revision, "head": _text(kept)})
    _add_event(connection, state.id, revision, "submission", at, team_id=team_id, submission_id=submission_id)


def _add_event(
    connection: sa.Connection,
    number: int,
    revision: int,
    kind: str,
    at: float,
    *,
    team_id: int | None,
    submission_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    values = {
        "competition_id": number,
        "revision": revision,
        "at": at,
        "kind": kind,
        "team_id": team_id,
        "submission_id": submission_id,
        "detail": None if detail is None else json.dumps(detail, allow_nan=False),
    }
    connection.execute(_EVENT, values)


def events(
    connection: sa.Connection,
    number: int,
    *,
    after: int = 0,
    limit: int | None = None,
    changes: bool = False,
) -> list[Event]:
    """Return events with revisions above `after`, in order; or the changes among them alone."""
    here = (EVENTS.c.competition_id == number) & (EVENTS.c.revision > after)
    if changes:
        here &= EVENTS.c.detail.is_not(None)
    asked = sa.select(EVENTS).where(here).order_by(EVENTS.c.revision).limit(limit)
    return [
        Event(
            row.revision,
            as_moment(row.at),
            row.kind,
            row.team_id,
            row.submission_id,
            None if row.detail is None else json.loads(row.detail),
        )
        for row in connection.execute(asked)
    ]


# ---- the ledger's head


def keep_head(connection: sa.Connection, state: State, head: Head) -> None:
    """Keep the ledger's head of a locked competition, if it is later than the stored one."""
    if head.is_later_than(state.head):
        update(connection, state.id, ledger_head=_text(head))


def _text(head: Head) -> str:
    return head.record().decode()
