"""Teams in the store: made, signed up, renamed, merged and disqualified; and the sessions that tokens began."""

from __future__ import annotations

import hmac
import secrets
from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.records import ClosedError, InvitationError, LimitError, Team
from reusable_holdout_leaderboard.store.rows import CompetitionRow, as_moment, as_team, lock_competition, tell
from reusable_holdout_leaderboard.store.tables import COMPETITIONS, SESSIONS, STANDINGS, TEAMS

__all__ = ["Teams"]

_BEST = ("submission_id", "value", "low", "high", "best_at", "query", "certified")
_MOST_SESSIONS = 20  # of one token: the oldest ends when another begins
_SESSION = SESSIONS.c
_LASTING = (_SESSION.digest == sa.bindparam("session")) & (_SESSION.ends_at > sa.bindparam("at"))
_TEAM_OF_SESSION = (
    sa.select(TEAMS)
    .select_from(SESSIONS.join(TEAMS, TEAMS.c.token_digest == _SESSION.token_digest))
    .where(_LASTING, TEAMS.c.competition_id == sa.bindparam("number"))
)
_TOKEN_OF_SESSION = sa.select(_SESSION.token_digest).where(_LASTING)


class Teams:
    """Teams of all competitions in a database, and sessions of teams and organisers.

    A session stands for the token that it began with: it ends with it.
    """

    database: Database

    def invite(self, number: int, invitation: str) -> None:
        """Keep the digest of a new invitation code; the old one is void."""
        with self.database.writing() as connection:
            here = COMPETITIONS.c.id == number
            connection.execute(sa.update(COMPETITIONS).where(here).values(invitation=invitation))

    def add_team(
        self, number: int, name: str, key: str, digest: bytes, *, at: float, invitation: str | None = None
    ) -> Team:
        """Add a team.

        Parameters
        ----------
        number : int
            Of the competition.
        name, key : str
            Teams of one competition have different keys.
        digest : bytes
            Of its token.
        at : float
            Seconds since 1970, UTC.
        invitation : str, optional
            Digest of the code it signs up with; None if the organiser adds it.

        Raises
        ------
        InputError
            If there is a team of this key.
        ClosedError, InvitationError, LimitError
            If it may not sign up.
        """
        values = {"competition_id": number, "name": name, "name_key": key, "token_digest": digest}
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            if invitation is not None:
                _check_sign_up(connection, row, invitation, at=at)
            same = (TEAMS.c.competition_id == number) & (TEAMS.c.name_key == key)
            if connection.execute(sa.select(TEAMS.c.id).where(same)).first() is not None:
                raise InputError(
                    f"there is a team {name!r} already, or one that looks the same; name another"
                )
            added = connection.execute(sa.insert(TEAMS).values(values | {"created_at": at}))
            (team_id,) = added.inserted_primary_key or (0,)
            taken = sa.select(TEAMS.c.id).where(TEAMS.c.competition_id == number, TEAMS.c.series == name)
            series = name if connection.execute(taken).first() is None else f"{name} ({team_id})"
            connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(series=series))
            tell(connection, number, "team", at, team_id=team_id)
        return Team(team_id, name, as_moment(at))

    def set_token(self, number: int, team_id: int, digest: bytes) -> None:
        """Give a team another token; the old one is void, and with it the sessions that it began.

        Raises
        ------
        InputError
            If there is no such team.
        """
        here = (TEAMS.c.competition_id == number) & (TEAMS.c.id == team_id)
        with self.database.writing() as connection:
            if connection.execute(sa.update(TEAMS).where(here).values(token_digest=digest)).rowcount != 1:
                raise InputError(
                    f"there must be a team of number {team_id} in this competition; there is none"
                )

    def teams(self, number: int) -> list[Team]:
        """All teams but those that were merged into others, the oldest first."""
        here = (TEAMS.c.competition_id == number) & TEAMS.c.merged_into.is_(None)
        asked = sa.select(TEAMS).where(here).order_by(TEAMS.c.id)
        with self.database.reading() as connection:
            found = connection.execute(asked).all()
        return [as_team(row) for row in found]

    def team_with(self, number: int, digest: bytes) -> tuple[Team, bytes] | None:
        """Team whose token has this digest, with the digest as it is kept; None if there is none."""
        asked = sa.select(TEAMS).where(TEAMS.c.competition_id == number, TEAMS.c.token_digest == digest)
        with self.database.reading() as connection:
            row = connection.execute(asked).first()
        if row is None:
            return None
        return as_team(row), bytes(row.token_digest)

    def rename(self, number: int, team_id: int, name: str, key: str, *, at: float) -> None:
        """Give a team another name; in the ledger it keeps the one it has there.

        Raises
        ------
        InputError
            If there is no such team, or another of this key.
        """
        with self.database.writing() as connection:
            lock_competition(connection, number)
            team = _one(connection, number, team_id)
            same = (TEAMS.c.competition_id == number) & (TEAMS.c.name_key == key) & (TEAMS.c.id != team_id)
            if connection.execute(sa.select(TEAMS.c.id).where(same)).first() is not None:
                raise InputError(
                    f"there is a team {name!r} already, or one that looks the same; name another"
                )
            connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(name=name, name_key=key))
            detail = {"from": team.name, "to": name}
            tell(connection, number, "rename", at, team_id=team_id, detail=detail)

    def disqualify(self, number: int, team_id: int, on: bool, *, at: float) -> None:
        """Take a team off all boards, or put it back; nothing happens if it is so already.

        Raises
        ------
        InputError
            If there is no such team.
        ClosedError
            If the final standings are made.
        """
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            team = _one(connection, number, team_id)
            _check_not_final(row)
            if bool(team.disqualified) != on:
                connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(disqualified=on))
                kind = "disqualify" if on else "reinstate"
                tell(connection, number, kind, at, team_id=team_id, detail={"team": team.name})

    def series_of(self, number: int, team_id: int) -> str:
        """Name under which a team asks, whatever it is called now.

        Raises
        ------
        InputError
            If there is no such team.
        """
        with self.database.reading() as connection:
            return str(_one(connection, number, team_id).series)

    def merge(self, number: int, team_id: int, other_id: int, *, better: int, at: float) -> None:
        """Let a team have all that another has sent and paid for; the other's token is void.

        It goes on in the ledger under the name of the one of them that has the better best; on a board of claims, of
        the one that has more charges, so that a merger gives none back.

        Raises
        ------
        InputError
            If they are not two teams that take part.
        ClosedError
            If the final standings are made.
        """
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            team, other = _one(connection, number, team_id), _one(connection, number, other_id)
            _check_not_final(row)
            if team_id == other_id or team.disqualified or other.disqualified:
                raise InputError("two teams are merged, neither of them disqualified; nothing was changed")
            bests = {one: _standings(connection, number, one) for one in (team_id, other_id)}
            values: dict[str, Any] = {}
            for epoch, theirs in bests[other_id].items():
                ours = bests[team_id].get(epoch)
                is_better = (
                    ours is None or ours.certified is False or better * (theirs.value - ours.value) > 0
                )
                is_better = is_better and (ours is None or theirs.certified is not False)
                takes_name = is_better
                if row.rules.policy == "claims":
                    takes_name = ours is None or theirs.charges > ours.charges
                if takes_name and epoch == row.epoch:
                    values["series"] = other.series
                _add_up(connection, ours, theirs, team_id, is_better=is_better, better=better)
            if values:
                connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(values))
            gone = (TEAMS.c.id == other_id) | (TEAMS.c.merged_into == other_id)
            connection.execute(sa.update(TEAMS).where(gone).values(merged_into=team_id))
            void = {"token_digest": secrets.token_bytes(32)}
            connection.execute(sa.update(TEAMS).where(TEAMS.c.id == other_id).values(void))
            detail = {"from": other.name, "to": team.name}
            tell(connection, number, "merge", at, team_id=team_id, detail=detail)

    # ---- sessions

    def begin_session(self, digest: bytes, token_digest: bytes, *, at: float, ends_at: float) -> None:
        """Keep a session, and forget those that are over.

        Parameters
        ----------
        digest, token_digest : bytes
            SHA-256 of the session's number and of the token that was shown.
        at, ends_at : float
            Seconds since 1970, UTC.
        """
        own = _SESSION.token_digest == token_digest
        newest = (
            sa.select(_SESSION.digest)
            .where(own)
            .order_by(_SESSION.began_at.desc(), _SESSION.digest)
            .limit(_MOST_SESSIONS - 1)
        )
        values = {"digest": digest, "token_digest": token_digest, "began_at": at, "ends_at": ends_at}
        with self.database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(_SESSION.ends_at <= at))
            kept = list(connection.scalars(newest))
            connection.execute(sa.delete(SESSIONS).where(own, _SESSION.digest.not_in(kept)))
            connection.execute(sa.insert(SESSIONS).values(values))

    def end_session(self, digest: bytes) -> None:
        """Forget a session, if it is there."""
        with self.database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(_SESSION.digest == digest))

    def team_of_session(self, number: int, digest: bytes, *, at: float) -> Team | None:
        """Team whose present token a session of this competition began with; None if there is none."""
        with self.database.reading() as connection:
            row = connection.execute(
                _TEAM_OF_SESSION, {"session": digest, "at": at, "number": number}
            ).first()
        return None if row is None else as_team(row)

    def token_of_session(self, digest: bytes, *, at: float) -> bytes | None:
        """Digest of the token that a session began with; None if it is over or unknown."""
        with self.database.reading() as connection:
            found = connection.execute(_TOKEN_OF_SESSION, {"session": digest, "at": at}).scalar()
        return None if found is None else bytes(found)


def _one(connection: sa.Connection, number: int, team_id: int) -> Any:
    here = (TEAMS.c.competition_id == number) & (TEAMS.c.id == team_id) & TEAMS.c.merged_into.is_(None)
    row = connection.execute(sa.select(TEAMS).where(here)).first()
    if row is None:
        raise InputError(f"there must be a team of number {team_id} in this competition; there is none")
    return row


def _standings(connection: sa.Connection, number: int, team_id: int) -> dict[int, Any]:
    """Standings of a team, by label set."""
    here = (STANDINGS.c.competition_id == number) & (STANDINGS.c.team_id == team_id)
    return {row.epoch: row for row in connection.execute(sa.select(STANDINGS).where(here))}


def _add_up(
    connection: sa.Connection, ours: Any, theirs: Any, team_id: int, *, is_better: bool, better: int
) -> None:
    """Make one standing of two of one label set, or of theirs alone."""

    def at(row: Any) -> sa.ColumnElement[bool]:
        return sa.and_(
            STANDINGS.c.competition_id == row.competition_id,
            STANDINGS.c.epoch == row.epoch,
            STANDINGS.c.team_id == row.team_id,
        )

    if ours is None:
        connection.execute(sa.update(STANDINGS).where(at(theirs)).values(team_id=team_id))
        return
    values = {name: getattr(ours, name) + getattr(theirs, name) for name in ("submissions", "charges")}
    if is_better:
        values |= {name: getattr(theirs, name) for name in _BEST}
    led = [row.measured for row in (ours, theirs) if row.measured is not None]
    if led:
        values["measured"] = max(led, key=lambda value: better * value)
    connection.execute(sa.update(STANDINGS).where(at(ours)).values(values))
    connection.execute(sa.delete(STANDINGS).where(at(theirs)))


def _check_not_final(row: CompetitionRow) -> None:
    if row.final is not None:
        raise ClosedError("the final standings are made, so teams stay as they are; nothing was changed")


def _check_sign_up(connection: sa.Connection, row: CompetitionRow, invitation: str, *, at: float) -> None:
    """Refuse a team that may not sign up; the competition is locked."""
    rules = row.rules
    if rules.sign_up == "closed":
        raise ClosedError("teams are made by the organisers alone; no team was made; ask them for a token")
    if row.frozen or (rules.closes_at is not None and as_moment(at) >= rules.closes_at):
        raise ClosedError("the competition is over, so nobody can sign up any more; no team was made")
    kept = connection.execute(
        sa.select(COMPETITIONS.c.invitation).where(COMPETITIONS.c.id == row.id)
    ).scalar()
    if rules.sign_up == "code" and not hmac.compare_digest(kept or "", invitation):
        raise InvitationError(
            "an invitation code must be the organisers' newest; this one is not; no team was made; ask them for it"
        )
    counted = (
        sa.select(sa.func.count())
        .select_from(TEAMS)
        .where(TEAMS.c.competition_id == row.id, TEAMS.c.merged_into.is_(None))
    )
    if rules.most_teams is not None and connection.execute(counted).scalar_one() >= rules.most_teams:
        raise LimitError(
            f"there are {rules.most_teams} teams at most, and as many have signed up; no team was made"
        )
