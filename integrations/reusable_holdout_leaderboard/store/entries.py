"""Submissions in the database: they are reserved before the guard is asked, and recorded after it has answered.

The guard is asked between two transactions. If a worker dies there, nothing is lost: the submission is stored as
pending, together with its claim. So the same question can be asked again, and the guard repeats its answer free.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any, NamedTuple

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.store.database import State, as_moment, tell_answer
from reusable_holdout_leaderboard.store.records import ClosedError, LimitError, Submission
from reusable_holdout_leaderboard.store.tables import COMPARED, PREDICTIONS, STANDINGS, SUBMISSIONS, TEAMS

__all__ = ["ALL", "Outcome", "Wish", "as_submission", "closed_reason", "record", "release", "reserve"]

_DAY_SECONDS = 86_400
_ENTRY, _STANDING = SUBMISSIONS.c, STANDINGS.c
_NOTHING = "nothing was asked and nothing was charged"
_ANSWER = ("prior", "value", "low", "high", "threshold", "charged", "query", "told", "improved")


class Wish(NamedTuple):
    """A submission that has arrived and is not reserved yet.

    Attributes
    ----------
    epoch, team_id : int
    digest : bytes
        SHA-256 of the canonical predictions. If the team has the guard asked anew, the digest
        covers the claim, too.
    name : str
    claimed : float
        Score that the team claims.
    at : float
        Time of arrival, in seconds since 1970, UTC.
    fresh : bytes or None
        Packed predictions for the fresh rows. None if there are no fresh rows.
    compared : bytes or None
        Packed predictions for the holdout's rows. None if neighbours on the board are not compared row by row.
    """

    epoch: int
    team_id: int
    digest: bytes
    name: str
    claimed: float
    at: float
    fresh: bytes | None
    compared: bytes | None = None


class Outcome(NamedTuple):
    """The guard's answer to a submission.

    Attributes
    ----------
    paid : bool
        True if this submission paid a charge. False if there was no charge, or another submission with the same
        question paid it.
    told : str
        Name of the outcome, such as "agreed".
    """

    prior: float
    value: float
    low: float
    high: float
    threshold: float
    charged: bool
    query: int
    told: str
    paid: bool

    @property
    def certified(self) -> bool:
        """True if the guard certifies the interval."""
        return self.told != "not certified"

    @property
    def leads(self) -> bool:
        """True if the submission was measured and takes the lead of the board."""
        return self.told.startswith("measured") and not self.charged


# ---- statements that every submission needs, built once


def _count(where: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((where, 1), else_=0)), 0)


ALL = sa.select(SUBMISSIONS, TEAMS.c.name.label("team")).join(TEAMS, TEAMS.c.id == _ENTRY.team_id)
_ONE = ALL.where(_ENTRY.id == sa.bindparam("submission"))
_SAME = ALL.where(
    _ENTRY.competition_id == sa.bindparam("number"),
    _ENTRY.epoch == sa.bindparam("epoch"),
    _ENTRY.digest == sa.bindparam("digest"),
    _ENTRY.team_id == sa.bindparam("team"),
)
_SENT = sa.select(
    _count(_ENTRY.epoch == sa.bindparam("epoch")), _count(_ENTRY.asked_at >= sa.bindparam("midnight"))
).where(_ENTRY.competition_id == sa.bindparam("number"), _ENTRY.team_id == sa.bindparam("team"))
_AT = sa.and_(
    _STANDING.competition_id == sa.bindparam("number"),
    _STANDING.epoch == sa.bindparam("at_epoch"),
    _STANDING.team_id == sa.bindparam("team"),
)
_STANDS, _FIRST, _LATER = (
    sa.select(STANDINGS).where(_AT),
    sa.insert(STANDINGS),
    sa.update(STANDINGS).where(_AT),
)
_NEW = sa.insert(SUBMISSIONS)
_TRIED = sa.update(SUBMISSIONS).where(_ENTRY.id == sa.bindparam("submission"))
_TEAM = sa.select(TEAMS.c.series, TEAMS.c.disqualified).where(
    TEAMS.c.competition_id == sa.bindparam("number"), TEAMS.c.id == sa.bindparam("team")
)
_OLD_COMPARED = sa.delete(COMPARED).where(COMPARED.c.submission_id == sa.bindparam("submission"))
_NEW_COMPARED = sa.insert(COMPARED)


def as_submission(row: Any) -> Submission:
    """Return the :class:`Submission` that a row of the database describes, with all its scores."""
    return Submission(
        id=row.id,
        team_id=row.team_id,
        team=row.team,
        epoch=row.epoch,
        name=row.name,
        at=as_moment(row.asked_at),
        state="pending" if row.query is None else "scored",
        claimed=row.claimed,
        series=row.series,
        picked=bool(row.picked),
        **{name: getattr(row, name) for name in _ANSWER},
    )


def _one(connection: sa.Connection, submission_id: int) -> Submission | None:
    row = connection.execute(_ONE, {"submission": submission_id}).first()
    return None if row is None else as_submission(row)


# ---- reserve a submission, then record or release it; the transaction has locked the competition


def reserve(connection: sa.Connection, state: State, wish: Wish) -> Submission:
    """Reserve a submission: store it as pending, if its team may still send one. Return the stored submission.

    If the team has sent the same predictions before, the earlier submission is returned, even if a limit is reached or
    the competition has closed. Submissions are counted and stored in one transaction, so two workers cannot both take
    the last one that a limit allows.

    Raises
    ------
    LimitError, ClosedError
        If the team may not send a new submission. Nothing was written.
    InputError
        If there is no such team.
    """
    sought = {"number": state.id, "epoch": wish.epoch, "team": wish.team_id, "digest": wish.digest}
    found = connection.execute(_SAME, sought).first()
    if found is None:
        _check_open(state, wish)
        series = _series(connection, state, wish, sending=True)
        _check_limits(connection, state, wish)
        made = _one(connection, _insert(connection, state, wish, series))
        assert made is not None  # noqa: S101 - it was written above
        return made
    known = as_submission(found)
    if known.state == "pending":  # the worker that reserved it died, or is still working
        connection.execute(_TRIED, {"submission": known.id, "tried_at": wish.at})
    return known


def record(
    connection: sa.Connection,
    state: State,
    submission_id: int,
    outcome: Outcome,
    *,
    better: int,
    at: float,
    head: Head,
    wish: Wish | None = None,
) -> Submission:
    """Record the guard's answer to a submission, and return the submission with its scores.

    If two workers record the same submission, the first record stays.

    Parameters
    ----------
    connection : Connection
    state : State
    submission_id : int
    outcome : Outcome
    better : int
        1 if larger values are better, else -1.
    at : float
        Time of the record, in seconds since 1970, UTC.
    head : Head
        Head of the ledger after this answer.
    wish : Wish, optional
        The submission as it arrived. With it, the submission is stored again if it was released meanwhile.
    """
    known = _one(connection, submission_id)
    if known is None and wish is not None:
        _insert(connection, state, wish, _series(connection, state, wish, sending=False), submission_id)
        known = _one(connection, submission_id)
    if known is None:
        raise InputError(f"there must be a submission of number {submission_id}; there is none")
    if known.state == "scored":
        return known
    compared = None if wish is None else wish.compared
    improved = _stand(connection, state, known, outcome, compared, better=better)
    answer: dict[str, Any] = outcome._asdict() | {"improved": improved}
    del answer["paid"]  # it is not stored with the submission: teams may not see whose question paid
    connection.execute(_TRIED, {"submission": submission_id, **answer})
    tell_answer(connection, state, known.team_id, known.id, at, head)
    return known._replace(state="scored", **answer)


def release(connection: sa.Connection, submission_id: int) -> None:
    """Remove a submission that was not answered, so that it no longer counts towards its team's limits."""
    waiting = (_ENTRY.id == submission_id) & _ENTRY.query.is_(None)
    if connection.execute(sa.delete(SUBMISSIONS).where(waiting)).rowcount:
        connection.execute(sa.delete(PREDICTIONS).where(PREDICTIONS.c.submission_id == submission_id))


def _insert(
    connection: sa.Connection, state: State, wish: Wish, series: str, number: int | None = None
) -> int:
    values: dict[str, Any] = {
        "competition_id": state.id,
        "epoch": wish.epoch,
        "team_id": wish.team_id,
        "series": series,
        "digest": wish.digest,
        "name": wish.name,
        "claimed": wish.claimed,
        "asked_at": wish.at,
        "tried_at": wish.at,
    }
    if number is not None:
        values["id"] = number
    (number,) = connection.execute(_NEW, values).inserted_primary_key or (number,)
    if wish.fresh is not None:
        connection.execute(sa.insert(PREDICTIONS).values(submission_id=number, content=wish.fresh))
    return int(number)  # type: ignore[arg-type]


def _series(connection: sa.Connection, state: State, wish: Wish, *, sending: bool) -> str:
    """Return the team's name in the ledger. If `sending`, refuse a team that is disqualified."""
    row = connection.execute(_TEAM, {"number": state.id, "team": wish.team_id}).first()
    if row is None:
        raise InputError(
            f"there must be a team of number {wish.team_id} in this competition; there is none; {_NOTHING}"
        )
    if sending and row.disqualified:
        raise ClosedError(f"the team is disqualified; {_NOTHING}")
    return str(row.series)


def _check_open(state: State, wish: Wish) -> None:
    reason = closed_reason(state, wish.at)
    if state.epoch != wish.epoch:
        reason = "the competition has begun a new round with other rows; send predictions for these rows"
    if reason:
        raise ClosedError(f"{reason}; {_NOTHING}")


def closed_reason(state: State, at: float) -> str:
    """Return the reason why a competition takes no submission at this time, or an empty string if it takes them."""
    rules, now = state.rules, as_moment(at)
    if state.frozen:
        return "the competition is frozen"
    if rules.opens_at is not None and now < rules.opens_at:
        return f"the competition opens at {rules.opens_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if rules.closes_at is not None and now >= rules.closes_at:
        return f"the competition closed at {rules.closes_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return ""


def _check_limits(connection: sa.Connection, state: State, wish: Wish) -> None:
    """Refuse a submission if its team has reached the limit of the epoch or of the day."""
    midnight = wish.at - wish.at % _DAY_SECONDS
    asked = {"number": state.id, "epoch": wish.epoch, "team": wish.team_id, "midnight": midnight}
    sent, sent_today = connection.execute(_SENT, asked).one()
    most, most_a_day = state.rules.most_submissions, state.rules.submissions_per_day
    if sent >= most:
        raise LimitError(f"each team has {most} submissions; all are used; {_NOTHING}")
    if most_a_day is not None and sent_today >= most_a_day:
        raise LimitError(
            f"each team has {most_a_day} submissions a day; all are used; {_NOTHING}; the next day begins at "
            f"{as_moment(midnight + _DAY_SECONDS):%Y-%m-%d %H:%M} UTC"
        )


def _stand(
    connection: sa.Connection,
    state: State,
    known: Submission,
    outcome: Outcome,
    compared: bytes | None,
    *,
    better: int,
) -> bool:
    """Count a submission in its team's standing, and replace the team's best submission if this one is better.

    Return True if the submission is certified and became the team's best.
    """
    here = {"number": state.id, "at_epoch": known.epoch, "team": known.team_id}
    best = connection.execute(_STANDS, here).first()
    improved = best is None or _improves(outcome, best, better=better)
    values: dict[str, Any] = {
        "submissions": (0 if best is None else best.submissions) + 1,
        "charges": (0 if best is None else best.charges) + int(outcome.paid),
    }
    if improved:
        values |= {name: getattr(outcome, name) for name in ("value", "low", "high", "query", "certified")}
        values |= {"submission_id": known.id, "best_at": known.at.timestamp()}
        if best is not None and best.certified and outcome.low <= best.high and best.low <= outcome.high:
            values["best_at"] = best.best_at  # a team that ties with its earlier best keeps the earlier time
    if outcome.leads:  # a new lead is above all earlier ones, even if an accepted claim is the best
        values["measured"] = outcome.value
    if best is None:
        key = {"competition_id": state.id, "epoch": known.epoch, "team_id": known.team_id}
        connection.execute(_FIRST, key | values)
    else:
        connection.execute(_LATER, here | values)
    if improved and outcome.certified and compared is not None:
        if best is not None:
            connection.execute(_OLD_COMPARED, {"submission": best.submission_id})
        connection.execute(_NEW_COMPARED, {"submission_id": known.id, "content": compared})
    return improved and outcome.certified


def _improves(outcome: Outcome, best: Any, *, better: int) -> bool:
    """Return True if an answer beats the team's best: the worst value in its certified interval is better.

    A certified answer always beats one that is not certified.
    """
    if not outcome.certified or not best.certified:
        return outcome.certified
    ours, theirs = (one.low if better > 0 else one.high for one in (outcome, best))
    return bool(better * (ours - theirs) > 0)
