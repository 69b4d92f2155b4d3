"""Queries for submissions, standings, competitions and events, and the choice of entries for the final standings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.store.database import State, as_moment
from reusable_holdout_leaderboard.store.entries import ALL, as_submission
from reusable_holdout_leaderboard.store.records import ClosedError, Event, Submission
from reusable_holdout_leaderboard.store.tables import (
    COMPARED,
    COMPETITIONS,
    EVENTS,
    PREDICTIONS,
    STANDINGS,
    SUBMISSIONS,
    TEAMS,
)

__all__ = [
    "Best",
    "Finalist",
    "Improvement",
    "compared_with",
    "contents",
    "events",
    "finalists",
    "improvements",
    "last_change_of_teams",
    "numbers_given",
    "pending",
    "pick",
    "slugs",
    "standings",
    "submissions",
]

_ENTRY, _STANDING = SUBMISSIONS.c, STANDINGS.c


class Best(NamedTuple):
    """A team's best submission, with its numbers of submissions and charges."""

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
    certified: bool
    measured: float | None


class Finalist(NamedTuple):
    """A submission with which a team enters the final standings."""

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
    told: str
    charged: bool


def pending(connection: sa.Connection, number: int, *, before: float) -> list[Submission]:
    """Return the pending submissions that no worker has tried to finish since the time `before`, the oldest first."""
    waiting = (_ENTRY.competition_id == number) & _ENTRY.query.is_(None) & (_ENTRY.tried_at < before)
    return [as_submission(row) for row in connection.execute(ALL.where(waiting).order_by(_ENTRY.id))]


def submissions(
    connection: sa.Connection,
    number: int,
    *,
    team_id: int | None = None,
    epoch: int | None = None,
    after: int = 0,
    before: int | None = None,
    limit: int = 100,
    newest_first: bool = False,
    picked: bool = False,
) -> list[Submission]:
    """Return the submissions with numbers above `after` and below `before`, at most `limit` of them."""
    where = [_ENTRY.competition_id == number, _ENTRY.id > after]
    if team_id is not None:
        where.append(_ENTRY.team_id == team_id)
    if epoch is not None:
        where.append(_ENTRY.epoch == epoch)
    if before is not None:
        where.append(_ENTRY.id < before)
    if picked:
        where.append(_ENTRY.picked.is_(True))
    order = _ENTRY.id.desc() if newest_first else _ENTRY.id
    found = connection.execute(ALL.where(*where).order_by(order).limit(limit))
    return [as_submission(row) for row in found]


def standings(connection: sa.Connection, number: int, epoch: int) -> list[Best]:
    """Return the best submission of each team in an epoch, in no particular order. Disqualified teams are left out."""
    joined = STANDINGS.join(TEAMS, TEAMS.c.id == _STANDING.team_id)
    names = [TEAMS.c.name if name == "team" else _STANDING[name] for name in Best._fields]
    here = (_STANDING.competition_id == number) & (_STANDING.epoch == epoch) & ~TEAMS.c.disqualified
    return [Best(*row) for row in connection.execute(sa.select(*names).select_from(joined).where(here))]


def improvements(
    connection: sa.Connection, number: int, epoch: int, *, after: int = 0
) -> list[tuple[int, Improvement]]:
    """Return, in order, each submission that became its team's best after a revision, and the revision of its event."""
    here = (_ENTRY.competition_id == number) & (_ENTRY.epoch == epoch) & ~TEAMS.c.disqualified
    best = ALL.where(here, _ENTRY.improved.is_(True)).subquery()
    names = ("id", "team_id", "team", "asked_at", "value", "low", "high", "told", "charged")
    asked = (
        sa.select(EVENTS.c.revision, *(best.c[name] for name in names))
        .select_from(EVENTS.join(best, best.c.id == EVENTS.c.submission_id))
        .where(EVENTS.c.competition_id == number, EVENTS.c.kind == "submission", EVENTS.c.revision > after)
        .order_by(EVENTS.c.revision)
    )
    return [(revision, Improvement(*one)) for revision, *one in connection.execute(asked)]


def last_change_of_teams(connection: sa.Connection, number: int) -> int:
    """Return the revision at which a team was last renamed, disqualified or reinstated, or 0 if none ever was."""
    kinds = EVENTS.c.kind.in_(("rename", "disqualify", "reinstate"))
    asked = sa.select(sa.func.max(EVENTS.c.revision)).where(EVENTS.c.competition_id == number, kinds)
    return int(connection.execute(asked).scalar() or 0)


# ---- the final standings, and stored predictions


def pick(connection: sa.Connection, state: State, team_id: int, epoch: int, chosen: Iterable[int]) -> None:
    """Store the submissions with which a team enters the final standings. They replace an earlier choice.

    Raises
    ------
    InputError
        If they are too many, or if one belongs to another team or another epoch, or is not scored.
    ClosedError
        If the final standings have been made.
    """
    picked = set(chosen)
    own = (_ENTRY.competition_id == state.id) & (_ENTRY.team_id == team_id) & (_ENTRY.epoch == epoch)
    if state.final is not None:
        raise ClosedError("the final standings are made, so nothing can be picked now; nothing was changed")
    if len(picked) > state.rules.final_picks:
        raise InputError(
            f"a team may pick at most {state.rules.final_picks} for the final; got {len(picked)}; nothing was changed"
        )
    kept = sa.select(PREDICTIONS.c.submission_id)
    scored = sa.select(_ENTRY.id).where(own, _ENTRY.query.is_not(None), _ENTRY.id.in_(kept))
    unknown = sorted(picked - set(connection.scalars(scored)))
    if unknown:
        raise InputError(
            "a pick must be a scored submission of the team, in the present round, with stored predictions for the "
            f"final; {unknown[0]} is not; nothing was changed"
        )
    connection.execute(sa.update(SUBMISSIONS).where(own).values(picked=_ENTRY.id.in_(picked)))


def finalists(connection: sa.Connection, state: State, epoch: int, *, better: int) -> list[Finalist]:
    """Return the submissions with which all teams enter the final standings: their picks, or else their best ones.

    Parameters
    ----------
    connection : Connection
    state : State
    epoch : int
    better : int
        1 if larger values are better, else -1.
    """
    here = (_ENTRY.competition_id == state.id) & (_ENTRY.epoch == epoch) & _ENTRY.query.is_not(None)
    kept = _ENTRY.id.in_(sa.select(PREDICTIONS.c.submission_id))
    rows = connection.execute(ALL.where(here, kept, ~TEAMS.c.disqualified))
    of_team: dict[int, list[Submission]] = {}
    for one in map(as_submission, rows):
        of_team.setdefault(one.team_id, []).append(one)
    entered: list[Finalist] = []
    for _, own in sorted(of_team.items()):
        own.sort(key=lambda one: (-better * (one.value or 0.0), one.id))
        chosen = [one for one in own if one.picked] or own
        entered += [
            Finalist(one.team_id, one.team, one.id, one.value or 0.0, one.at.timestamp())
            for one in chosen[: state.rules.final_picks]
        ]
    return entered


def contents(connection: sa.Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the stored predictions for the fresh rows, by the number of the submission."""
    return _stored(connection, PREDICTIONS, numbers)


def compared_with(connection: sa.Connection, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the stored predictions for the holdout's rows, by the number of the submission."""
    return _stored(connection, COMPARED, numbers)


def _stored(connection: sa.Connection, table: sa.Table, numbers: Sequence[int]) -> dict[int, bytes]:
    asked = sa.select(table.c.submission_id, table.c.content).where(table.c.submission_id.in_(list(numbers)))
    return {row.submission_id: bytes(row.content) for row in connection.execute(asked)}


# ---- competitions and events


def slugs(connection: sa.Connection) -> list[str]:
    """Return the names of all competitions, the oldest first."""
    return list(connection.scalars(sa.select(COMPETITIONS.c.slug).order_by(COMPETITIONS.c.id)))


def numbers_given(connection: sa.Connection) -> int:
    """Return the highest number that any submission in this database ever had."""
    asked = (
        "SELECT seq FROM sqlite_sequence WHERE name = 'board_submissions'"
        if connection.dialect.name == "sqlite"
        else "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM board_submissions_id_seq"
    )
    return int(connection.exec_driver_sql(asked).scalar() or 0)


def events(
    connection: sa.Connection, number: int, *, after: int = 0, limit: int | None = None, changes: bool = False
) -> list[Event]:
    """Return the events with revisions above `after`, in order. If `changes`, return only changes by organisers.

    These changes are the events that have details.
    """
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
