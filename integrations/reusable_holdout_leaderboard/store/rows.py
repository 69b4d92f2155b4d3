"""What the store takes and gives, and what its transactions have in common: rows as records, events, statements."""

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
from reusable_holdout_leaderboard.store.records import Event, Submission, Team
from reusable_holdout_leaderboard.store.tables import COMPETITIONS, EVENTS, STANDINGS, SUBMISSIONS, TEAMS

__all__ = [
    "ANSWERED",
    "FIRST",
    "ID",
    "LATER",
    "NEW",
    "SAME",
    "SENT",
    "STANDS",
    "TEAM",
    "Best",
    "CompetitionRow",
    "Finalist",
    "Improvement",
    "Outcome",
    "Reserved",
    "Wish",
    "as_competition",
    "as_event",
    "as_moment",
    "as_submission",
    "as_team",
    "keep_head",
    "lock_competition",
    "of_team",
    "select_submissions",
    "tell",
    "tell_answer",
]

_ENTRY, _STANDING = SUBMISSIONS.c, STANDINGS.c


class CompetitionRow(NamedTuple):
    """State of one competition in the store."""

    id: int
    rules: Rules
    epoch: int
    frozen: bool
    blind: bool
    revision: int
    final: list[dict[str, Any]] | None
    ledger_head: str | None


class Wish(NamedTuple):
    """A submission that asks for its place.

    Attributes
    ----------
    epoch, team_id : int
    digest : bytes
        SHA-256 of its canonical predictions.
    name : str
    claimed : float or None
    prior : float or None
        What it is to be compared with; None for the team's best so far.
    otherwise : float
        What it is compared with if the team has no best.
    at : float
        Seconds since 1970, UTC.
    content : bytes or None
        Predictions for the fresh rows.
    compared : bytes or None
        Predictions for the holdout's, if neighbours on the board are compared by them.
    """

    epoch: int
    team_id: int
    digest: bytes
    name: str
    claimed: float | None
    prior: float | None
    otherwise: float
    at: float
    content: bytes | None
    compared: bytes | None = None


class Reserved(NamedTuple):
    """A submission's place: pending, or answered before.

    Attributes
    ----------
    submission : Submission
        Its prior is what the guard is asked with, also when it is asked again.
    known : bool
        Whether these predictions were sent before.
    blind : bool
        Whether its competition is.
    """

    submission: Submission
    known: bool
    blind: bool


class Outcome(NamedTuple):
    """What the guard said to a submission.

    Attributes
    ----------
    paid : bool
        Whether this submission took the charge, and not an earlier one with the same question.
    told : str
        Name of the outcome.
    """

    prior: float
    value: float
    low: float
    high: float
    threshold: float
    charged: bool
    paid: bool
    query: int
    told: str

    @property
    def leads(self) -> bool:
        """True if it takes the lead of a board of claims."""
        return self.told.startswith("measured") and not self.charged


class Best(NamedTuple):
    """A team's standing."""

    team_id: int
    team: str
    submission_id: int
    value: float
    low: float
    high: float
    best_at: float
    query: int
    submissions: int
    charges: int
    certified: bool | None
    measured: float | None


class Finalist(NamedTuple):
    """A submission that a team enters for the final standings."""

    team_id: int
    team: str
    submission_id: int
    value: float
    at: float


class Improvement(NamedTuple):
    """A submission that became its team's best."""

    submission_id: int
    team_id: int
    team: str
    at: float
    value: float
    low: float
    high: float
    told: str | None = None
    charged: bool = False


def as_moment(seconds: float) -> datetime:
    """Date and time of a number of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def as_competition(row: Any) -> CompetitionRow:
    """State of a competition from its row."""
    return CompetitionRow(
        id=row.id,
        rules=_rules(row.rules),
        epoch=row.epoch,
        frozen=bool(row.frozen),
        blind=bool(row.blind),
        revision=row.revision,
        final=None if row.final is None else json.loads(row.final),
        ledger_head=row.ledger_head,
    )


@lru_cache(maxsize=16)
def _rules(text: str) -> Rules:
    return Rules.from_json(text)


def lock_competition(connection: sa.Connection, number: int) -> CompetitionRow:
    """Lock a competition until the transaction ends: all its writers take turns here, SQLite's at BEGIN.

    Raises
    ------
    InputError
        If there is none.
    """
    row = connection.execute(_LOCKED, {"number": number}).first()
    if row is None:
        raise InputError(f"there must be a competition of number {number}; there is none")
    return as_competition(row)


def tell(
    connection: sa.Connection,
    number: int,
    kind: str,
    at: float,
    *,
    team_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Add an event, of a competition that is locked; return its revision."""
    here = COMPETITIONS.c.id == number
    connection.execute(sa.update(COMPETITIONS).where(here).values(revision=COMPETITIONS.c.revision + 1))
    revision = connection.execute(sa.select(COMPETITIONS.c.revision).where(here)).scalar_one()
    _note(connection, number, int(revision), kind, at, team_id, None, detail)
    return int(revision)


def tell_answer(
    connection: sa.Connection, state: CompetitionRow, known: Submission, at: float, head: Head | None
) -> None:
    """Add the event that a submission was answered, and keep the ledger's head if it is later.

    It is the first event since the competition was locked in this `state`.
    """
    revision = state.revision + 1
    kept = state.ledger_head if head is None else _later(state.ledger_head, head)
    connection.execute(_TOLD, {"number": state.id, "at_revision": revision, "head": kept})
    _note(connection, state.id, revision, "submission", at, known.team_id, known.id, None)


def _note(
    connection: sa.Connection,
    number: int,
    revision: int,
    kind: str,
    at: float,
    team_id: int | None,
    submission_id: int | None,
    detail: Mapping[str, Any] | None,
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


def as_event(row: Any) -> Event:
    """Event of its row."""
    detail = None if row.detail is None else json.loads(row.detail)
    return Event(row.revision, as_moment(row.at), row.kind, row.team_id, row.submission_id, detail)


def keep_head(connection: sa.Connection, state: CompetitionRow, head: Head) -> None:
    """Keep the ledger's head if it is later than the one that is kept, of a competition that is locked."""
    kept = _later(state.ledger_head, head)
    if kept != state.ledger_head:
        here = COMPETITIONS.c.id == state.id
        connection.execute(sa.update(COMPETITIONS).where(here).values(ledger_head=kept))


def _later(kept: str | None, head: Head) -> str:
    before = None if kept is None else Head.parse(kept.encode())
    if kept is not None and before is not None and not head.is_later_than(before):
        return kept
    return head.record().decode()


def of_team(team_id: int | sa.BindParameter[int]) -> sa.ColumnElement[bool]:
    """Submissions of a team and of those that were merged into it."""
    members = sa.select(TEAMS.c.id).where((TEAMS.c.id == team_id) | (TEAMS.c.merged_into == team_id))
    return SUBMISSIONS.c.team_id.in_(members)


def _with_owners() -> sa.Select[Any]:
    """Statement for all submissions with the teams that have them now."""
    sender = TEAMS.alias("sender")
    joined = SUBMISSIONS.join(sender, sender.c.id == SUBMISSIONS.c.team_id).join(
        TEAMS, TEAMS.c.id == sa.func.coalesce(sender.c.merged_into, sender.c.id)
    )
    owner = (TEAMS.c.id.label("owner_id"), TEAMS.c.name.label("team"))
    return sa.select(SUBMISSIONS, *owner).select_from(joined)


def _count(where: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((where, 1), else_=0))


def _the_sender() -> sa.Select[Any]:
    """Statement for a team, with who has its submissions now."""
    owner = TEAMS.alias("owner")
    joined = TEAMS.join(owner, owner.c.id == sa.func.coalesce(TEAMS.c.merged_into, TEAMS.c.id))
    names = (TEAMS.c.series, TEAMS.c.disqualified, owner.c.id.label("owner_id"), owner.c.name.label("owner"))
    here = (TEAMS.c.competition_id == sa.bindparam("number")) & (TEAMS.c.id == sa.bindparam("team"))
    return sa.select(*names).select_from(joined).where(here)


# what every submission asks and writes is put together once: that takes longer than a database takes to answer
_ALL = _with_owners()
ID = _ALL.where(SUBMISSIONS.c.id == sa.bindparam("submission"))
SAME = _ALL.where(
    SUBMISSIONS.c.competition_id == sa.bindparam("number"),
    SUBMISSIONS.c.epoch == sa.bindparam("epoch"),
    SUBMISSIONS.c.digest == sa.bindparam("digest"),
    of_team(sa.bindparam("team")),
)
_LOCKED = sa.select(COMPETITIONS).where(COMPETITIONS.c.id == sa.bindparam("number")).with_for_update()
_TOLD = (
    sa.update(COMPETITIONS)
    .where(COMPETITIONS.c.id == sa.bindparam("number"))
    .values(revision=sa.bindparam("at_revision"), ledger_head=sa.bindparam("head"))
)
_EVENT = sa.insert(EVENTS)
_HERE = _ENTRY.epoch == sa.bindparam("epoch")
SENT = sa.select(
    _count(_HERE),
    _count(_ENTRY.asked_at >= sa.bindparam("midnight")),
    _count(_HERE & _ENTRY.query.is_(None)),
).where(_ENTRY.competition_id == sa.bindparam("number"), of_team(sa.bindparam("team")))
_AT = sa.and_(
    _STANDING.competition_id == sa.bindparam("number"),
    _STANDING.epoch == sa.bindparam("at_epoch"),
    _STANDING.team_id == sa.bindparam("team"),
)
STANDS, FIRST, LATER = (
    sa.select(STANDINGS).where(_AT),
    sa.insert(STANDINGS),
    sa.update(STANDINGS).where(_AT),
)
NEW = sa.insert(SUBMISSIONS)
ANSWERED = sa.update(SUBMISSIONS).where(_ENTRY.id == sa.bindparam("submission"))
TEAM = _the_sender()


def select_submissions(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Statement for submissions with the teams that have them now."""
    return _ALL.where(*where)


def as_team(row: Any) -> Team:
    """Team of its row."""
    return Team(row.id, row.name, as_moment(row.created_at), bool(row.disqualified))


def as_submission(row: Any) -> Submission:
    """Submission of a row of :func:`select_submissions`, with nothing hidden."""
    return Submission(
        id=row.id,
        team_id=row.owner_id,
        team=row.team,
        epoch=row.epoch,
        name=row.name,
        at=as_moment(row.asked_at),
        state="pending" if row.query is None else "scored",
        value=row.value,
        low=row.low,
        high=row.high,
        charged=row.charged,
        threshold=row.threshold,
        prior=row.prior,
        claimed=row.claimed,
        query=row.query,
        told=row.told,
        improved=row.improved,
        series=row.series,
        picked=bool(row.picked),
    )
