"""Teams, their tokens, and the sessions of browsers."""

from __future__ import annotations

import hmac
import secrets
from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition.base import Base, digest_of, new_token, team_of
from reusable_holdout_leaderboard.store.database import State, as_moment, update
from reusable_holdout_leaderboard.store.names import checked_team, key_of
from reusable_holdout_leaderboard.store.records import ClosedError, InvitationError, LimitError, Team
from reusable_holdout_leaderboard.store.tables import SESSIONS, TEAMS

__all__ = ["Teams"]

_BYTES = 32
_CODE_BYTES = 16  # short, because people read it out and type it
_MOST_SESSIONS = 20  # sessions of one token; the oldest one ends when another one begins
_SESSION = SESSIONS.c
_LASTING = (_SESSION.digest == sa.bindparam("session")) & (_SESSION.ends_at > sa.bindparam("at"))
_TEAM_OF_SESSION = (
    sa.select(TEAMS)
    .select_from(SESSIONS.join(TEAMS, TEAMS.c.token_digest == _SESSION.token_digest))
    .where(_LASTING, TEAMS.c.competition_id == sa.bindparam("number"))
)
_TOKEN_OF_SESSION = sa.select(_SESSION.token_digest).where(_LASTING)


class Teams(Base):
    """The part of a competition that manages its teams. It stores only digests of their tokens and sessions."""

    def teams(self) -> list[Team]:
        """Return all teams, the oldest first."""
        here = TEAMS.c.competition_id == self._number
        with self._database.reading() as connection:
            return [
                team_of(row) for row in connection.execute(sa.select(TEAMS).where(here).order_by(TEAMS.c.id))
            ]

    def add_team(self, name: str) -> str:
        """Add a team, and return its token. The token itself is not stored.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        """
        return self._add(name, None)

    def invite(self) -> str:
        """Make a new invitation code, with which teams can sign up. The earlier code becomes void."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        with self._database.writing() as connection:
            update(connection, self._number, invitation=digest_of(code).hex())
        return code

    def sign_up(self, name: str, code: str = "") -> str:
        """Add a team that signs up by itself, and return its token. The token itself is not stored.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        ClosedError
            If the rules do not allow teams to sign up, or the competition is over.
        InvitationError
            If the rules need an invitation code, and `code` is not the newest one.
        LimitError
            If there are as many teams as the rules allow.
        """
        return self._add(name, digest_of(code.strip()).hex())

    def renew_token(self, team_id: int) -> str:
        """Give a team a new token, and return it. The earlier token and its sessions become void.

        Raises
        ------
        InputError
            If there is no such team.
        """
        token = new_token()
        with self._database.writing() as connection:
            self._one(connection, team_id)
            _change(connection, team_id, token_digest=digest_of(token))
        return token

    def rename_team(self, team_id: int, name: str) -> None:
        """Give a team another name. The change is a public event; in the ledger the team keeps its first name.

        Raises
        ------
        InputError
            If there is no such team, or the name is invalid or taken.
        """
        checked = checked_team(name)
        with self._changing() as (connection, _):
            team = self._one(connection, team_id)
            self._check_free(connection, checked, team_id)
            _change(connection, team_id, name=checked, name_key=key_of(checked))
            self._tell(connection, "rename", team_id=team_id, detail={"from": team.name, "to": checked})

    def disqualify(self, team_id: int, on: bool = True) -> None:
        """Remove a team from the board and the final standings, or, with `on` false, put it back.

        The team's answers stay in the ledger, and its charges stay spent.

        Raises
        ------
        InputError
            If there is no such team.
        ClosedError
            If the final standings have been made.
        """
        with self._changing() as (connection, state):
            team = self._one(connection, team_id)
            _check_not_final(state)
            if bool(team.disqualified) != on:
                _change(connection, team_id, disqualified=on)
                kind = "disqualify" if on else "reinstate"
                self._tell(connection, kind, team_id=team_id, detail={"team": team.name})

    # ---- tokens and sessions

    def begin_session(self, token: str, *, seconds: float) -> str:
        """Begin a session for a browser, and return its secret number. Sessions that are over are deleted.

        Parameters
        ----------
        token : str
            Token of a team or of the administrator. The caller has checked it.
        seconds : float
            Length of the session. The session ends earlier if :meth:`end_session` is called or the token is renewed.
        """
        session, now, digest = secrets.token_urlsafe(_BYTES), self._clock(), digest_of(token)
        own = _SESSION.token_digest == digest
        newest = sa.select(_SESSION.digest).where(own).order_by(_SESSION.began_at.desc(), _SESSION.digest)
        values: dict[str, Any] = {"digest": digest_of(session), "token_digest": digest}
        values |= {"began_at": now, "ends_at": now + seconds}
        with self._database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(_SESSION.ends_at <= now))
            kept = list(connection.scalars(newest.limit(_MOST_SESSIONS - 1)))
            connection.execute(sa.delete(SESSIONS).where(own, _SESSION.digest.not_in(kept)))
            connection.execute(sa.insert(SESSIONS).values(values))
        return session

    def end_session(self, session: str) -> None:
        """End a session for every browser that has its number."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(_SESSION.digest == digest_of(session)))

    def team_of_session(self, session: str) -> Team | None:
        """Return the team whose token began a session, or None if the session is over or unknown."""
        asked = {"session": digest_of(session), "at": self._clock(), "number": self._number}
        with self._database.reading() as connection:
            row = connection.execute(_TEAM_OF_SESSION, asked).first()
        return None if row is None else team_of(row)

    def is_session_of(self, session: str, token_digest: bytes) -> bool:
        """Return True if a session has not ended and was begun with the token that has this digest."""
        asked = {"session": digest_of(session), "at": self._clock()}
        with self._database.reading() as connection:
            found = connection.execute(_TOKEN_OF_SESSION, asked).scalar()
        return found is not None and hmac.compare_digest(bytes(found), token_digest)

    # ---- inside

    def _add(self, name: str, invitation: str | None) -> str:
        checked, token = checked_team(name), new_token()
        values = {"competition_id": self._number, "name": checked, "name_key": key_of(checked)}
        values |= {"token_digest": digest_of(token), "created_at": self._clock()}
        with self._changing() as (connection, state):
            if invitation is not None:
                self._check_sign_up(connection, state, invitation)
            self._check_free(connection, checked, None)
            (team_id,) = connection.execute(sa.insert(TEAMS).values(values)).inserted_primary_key or (0,)
            named = (TEAMS.c.competition_id == self._number) & (TEAMS.c.series == checked)
            taken = connection.execute(sa.select(TEAMS.c.id).where(named)).first() is not None
            _change(connection, team_id, series=f"{checked} ({team_id})" if taken else checked)
            self._tell(connection, "team", team_id=team_id)
        return token

    def _check_free(self, connection: sa.Connection, name: str, team_id: int | None) -> None:
        """Refuse a name that another team has, or that looks like another team's name."""
        same = (TEAMS.c.competition_id == self._number) & (TEAMS.c.name_key == key_of(name))
        found = connection.execute(sa.select(TEAMS.c.id).where(same)).scalar()
        if found is not None and found != team_id:
            raise InputError(
                f"there is a team {name!r} already, or one that looks the same; nothing was changed; choose another"
            )

    def _check_sign_up(self, connection: sa.Connection, state: State, invitation: str) -> None:
        rules, now = state.rules, as_moment(self._clock())
        if rules.sign_up == "closed":
            raise ClosedError("only the organisers make teams; no team was made; ask them for a token")
        if state.frozen or (rules.closes_at is not None and now >= rules.closes_at):
            raise ClosedError("the competition is over, so nobody can sign up; no team was made")
        if rules.sign_up == "code" and not hmac.compare_digest(state.invitation, invitation):
            raise InvitationError(
                "an invitation code must be the organisers' newest; this one is not; no team was made; ask them for it"
            )
        here = TEAMS.c.competition_id == self._number
        counted = connection.execute(sa.select(sa.func.count()).select_from(TEAMS).where(here)).scalar_one()
        if rules.most_teams is not None and counted >= rules.most_teams:
            raise LimitError(
                f"there are at most {rules.most_teams} teams, and all have signed up; no team was made"
            )


def _change(connection: sa.Connection, team_id: int, **values: Any) -> None:
    connection.execute(sa.update(TEAMS).where(TEAMS.c.id == team_id).values(values))


def _check_not_final(state: State) -> None:
    if state.final is not None:
        raise ClosedError("the final standings are made, so teams cannot change; nothing was changed")
