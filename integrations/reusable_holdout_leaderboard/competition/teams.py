"""Who takes part: teams with their names, the tokens that they show, and the sessions of browsers that tokens begin.

A token is 256 random bits, so one round of SHA-256 is digest enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from reusable_holdout_leaderboard.competition.epoch import Epochs
from reusable_holdout_leaderboard.store.names import checked_team, key_of
from reusable_holdout_leaderboard.store.records import Team

__all__ = ["Teams", "digest_of", "is_token", "new_token"]

_BYTES = 32
_CODE_BYTES = 16  # for it is read out and typed
_PREFIX = "rh_"  # so that scanners for leaked secrets can know one


class Teams(Epochs):
    """Teams of a competition. Of tokens, and of sessions, which are not worth a token, digests alone are kept."""

    def add_team(self, name: str) -> str:
        """Add a team; return its token, which is kept nowhere.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        """
        checked, token = checked_team(name), new_token()
        self._store.add_team(self._number, checked, key_of(checked), digest_of(token), at=self._clock())
        return token

    def invite(self) -> str:
        """Make an invitation code, by which teams sign up while the rules say so; the one before is void."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        self._store.invite(self._number, digest_of(code).hex())
        return code

    def sign_up(self, name: str, code: str = "") -> str:
        """Add a team that signs up by itself; return its token, which is kept nowhere.

        Raises
        ------
        InputError
            If the name is empty, too long, unprintable or taken.
        ClosedError
            If teams do not sign up, or not any more.
        InvitationError
            If the rules ask for a code, and this is not the newest.
        LimitError
            If there are as many teams as the rules allow.
        """
        checked, token = checked_team(name), new_token()
        self._store.add_team(
            self._number,
            checked,
            key_of(checked),
            digest_of(token),
            at=self._clock(),
            invitation=digest_of(code.strip()).hex(),
        )
        return token

    def renew_token(self, team_id: int) -> str:
        """Give a team another token and return it; the old one is void.

        Raises
        ------
        InputError
            If there is no such team.
        """
        token = new_token()
        self._store.set_token(self._number, team_id, digest_of(token))
        return token

    def rename_team(self, team_id: int, name: str) -> None:
        """Give a team another name, which everyone is told.

        Raises
        ------
        InputError
            If there is no such team, or the name is none or taken.
        """
        checked = checked_team(name)
        self._store.rename(self._number, team_id, checked, key_of(checked), at=self._clock())

    def disqualify(self, team_id: int, on: bool = True) -> None:
        """Take a team off board and final, or put it back; its answers stay in the ledger, and were paid for.

        Raises
        ------
        InputError
            If there is no such team.
        ClosedError
            If the final standings are made.
        """
        self._store.disqualify(self._number, team_id, on, at=self._clock())

    def merge_teams(self, team_id: int, other_id: int) -> None:
        """Let a team have the submissions and charges of another, whose token is void; they count to its limits.

        Raises
        ------
        InputError
            If they are not two teams that take part.
        ClosedError
            If the final standings are made.
        """
        better = 1 if self.metric.greater_is_better else -1
        self._store.merge(self._number, team_id, other_id, better=better, at=self._clock())

    def authenticate(self, token: str) -> Team | None:
        """Team of a token; None if it is nobody's."""
        found = self._store.team_with(self._number, digest_of(token))
        return found[0] if found is not None and is_token(token, found[1]) else None

    # ---- browsers: a random number in place of a token, which ends when it should

    def begin_session(self, token: str, *, seconds: float) -> str:
        """Begin a session of who has shown a token, a team's or the administrator's; return its number.

        Parameters
        ----------
        token : str
            That was checked: whoever has the number is its owner, until the session ends.
        seconds : float
            How long it lasts. It ends before when it is ended, or the token is no longer the owner's.
        """
        session, now = secrets.token_urlsafe(_BYTES), self._clock()
        self._store.begin_session(digest_of(session), digest_of(token), at=now, ends_at=now + seconds)
        return session

    def end_session(self, session: str) -> None:
        """End a session; whoever has its number is nobody from then on."""
        self._store.end_session(digest_of(session))

    def team_of_session(self, session: str) -> Team | None:
        """Team that signed in; None if the session is over or another's."""
        return self._store.team_of_session(self._number, digest_of(session), at=self._clock())

    def is_session_of(self, session: str, token_digest: bytes) -> bool:
        """Whether a session was begun with the token of this digest."""
        found = self._store.token_of_session(digest_of(session), at=self._clock())
        return found is not None and hmac.compare_digest(found, token_digest)


# ---- tokens


def new_token() -> str:
    """A new token, safe in URLs; it is shown once and kept by nobody but its owner."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def digest_of(token: str) -> bytes:
    """SHA-256 of a token, 32 bytes: all that a store keeps."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def is_token(token: str, digest: bytes) -> bool:
    """Whether a token has this digest, in a time that does not depend on where they differ."""
    return hmac.compare_digest(digest_of(token), digest)
