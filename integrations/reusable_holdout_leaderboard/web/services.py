"""What the API and the pages share: competitions, who is asking, and submissions that all take equally long."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import anyio.to_thread

from reusable_holdout.errors import (
    BudgetError,
    Halted,
    HoldoutError,
    InputError,
    LedgerError,
    PlanError,
    RolledBackError,
)
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.teams import is_token
from reusable_holdout_leaderboard.files.decoder import Decoder, DecoderError
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.files.questions import Question
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.store.records import (
    ClosedError,
    InvitationError,
    LimitError,
    StoreError,
    Submission,
    Team,
)
from reusable_holdout_leaderboard.web.security import (
    Networks,
    Problem,
    Rates,
    Sessions,
    address_of,
    bearer_token,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Boards", "problem_of", "until_next"]

_LOG = logging.getLogger("reusable_holdout_leaderboard")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_AT_ONCE = 8  # submissions that are parsed and scored at a time
_KEPT = 64  # answers to readers, until the board changes
_LIST_SECONDS = 5.0  # how long a list of competitions is good for
_SETTLE_SECONDS = 60.0


class Boards:
    """Opened competitions of one worker process.

    Attributes
    ----------
    settings : Settings
    sessions : Sessions
        Of browsers.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sessions = Sessions(settings)
        self._proxies = Networks(settings.trusted_proxies)
        self._requests = Rates(settings.requests_per_minute)
        self._submissions = Rates(settings.submissions_per_minute)
        self._lock = threading.Lock()
        self._decoder = Decoder()
        self._open: dict[str, Competition] = {}
        self._slugs: list[str] = []
        self._listed_at = -math.inf
        self._kept: dict[Hashable, tuple[int, Any]] = {}
        self._scoring = anyio.CapacityLimiter(_AT_ONCE)

    # ---- competitions

    def slugs(self) -> list[str]:
        """All competitions, the oldest first; perhaps those of some seconds ago."""
        if time.monotonic() - self._listed_at > _LIST_SECONDS:
            self._slugs = Competition.slugs(self.settings.folder, database=self.settings.database)
            self._listed_at = time.monotonic()
        return self._slugs

    def competition(self, slug: str | None = None) -> Competition:
        """An opened competition: call it in a thread, for the first call opens it; see :meth:`run`.

        Parameters
        ----------
        slug : str, optional
            By default the server's own, or the only one.

        Raises
        ------
        Problem
            404.
        """
        if slug is None:
            slug = self.settings.slug or (self.slugs()[0] if len(self.slugs()) == 1 else "")
        known = self._open.get(slug)
        if known is not None:
            return known
        with self._lock:
            if slug not in self._open:
                if slug not in self.slugs():
                    raise Problem(
                        404, "no_competition", "there is no such competition here; look at its address"
                    )
                self._open[slug] = Competition.open(
                    self.settings.folder,
                    slug,
                    database=self.settings.database,
                    key_file=self.settings.key_file,
                    witness=self.settings.witness if slug == self.settings.slug else None,
                    max_bytes=self.settings.max_body_bytes,
                )
            return self._open[slug]

    def known(self, slug: str | None) -> Competition | None:
        """A competition that is open already, without waiting; None if :meth:`competition` must look for it."""
        return self._open.get(slug or self.settings.slug or "")

    def at_revision(self, competition: Competition, name: Hashable, call: Callable[[], _R]) -> _R:
        """What a call gives, or gave before at the same revision: call it in a thread.

        Parameters
        ----------
        competition : Competition
        name : hashable
            Of the call with its arguments, for this competition.
        call : callable
            Whose result is changed by events alone, and by nobody who gets it.
        """
        revision, key = competition.revision, (competition.slug, name)  # before the call: it may be newer
        with self._lock:
            known = self._kept.pop(key, None)
            if known is not None and known[0] == revision:
                self._kept[key] = known  # as the one asked for last
                found: _R = known[1]
                return found
        made = call()
        with self._lock:
            self._kept[key] = (revision, made)
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return made

    def close(self) -> None:
        """Close all competitions."""
        self._decoder.close()
        with self._lock:
            for competition in self._open.values():
                competition.close()
            self._open.clear()

    # ---- calls that wait for a database

    async def run(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call in a thread; what the library raises becomes a :class:`Problem`.

        Raises
        ------
        Problem
        """
        return await anyio.to_thread.run_sync(partial(_answered, call, *args, **kwargs))

    async def submit(
        self,
        competition: Competition,
        team: Team,
        content: bytes,
        *,
        filename: str,
        claimed: float | None = None,
        anew: bool = False,
    ) -> Submission:
        """Have a file scored; it takes equally long whatever the guard finds.

        Raises
        ------
        Problem
            429 for a rate or a limit, 422 for a file that does not fit, 409 if closed, halted or over; of all of them
            nothing was charged.
        """
        self.take_submission(team)
        call = partial(
            competition.submit,
            team.id,
            content,
            filename=filename,
            claimed=claimed,
            anew=anew,
            read=self._decoder.decode,
        )
        return await self.padded(call)

    def question(self, competition: Competition, content: bytes) -> Question:
        """Body of a request to evaluate: call it in a thread.

        Raises
        ------
        SubmissionError
        """
        return self._decoder.question(content, competition.expected)

    def take_submission(self, team: Team, amount: int = 1) -> None:
        """Count submissions to a team's rate.

        Raises
        ------
        Problem
            429.
        """
        self._submissions.take(f"{team.id} {team.created_at}", amount)

    async def padded(self, call: Callable[[], _R]) -> _R:
        """Call in a thread and answer at the next multiple of the quantum, also if it raises a :class:`Problem`."""
        began = time.monotonic()
        try:
            return await anyio.to_thread.run_sync(partial(_answered, call), limiter=self._scoring)
        finally:
            await asyncio.sleep(until_next(self.settings.answer_seconds, time.monotonic() - began))

    async def settle_for_ever(self) -> None:
        """Finish, now and then, what workers that died have left."""
        while True:
            await asyncio.sleep(_SETTLE_SECONDS)
            for competition in list(self._open.values()):
                with contextlib.suppress(Problem):
                    await self.run(competition.settle)

    # ---- who is asking

    def take_request(self, request: Request) -> None:
        """Count a request to its client's rate; what a trusted proxy does not say for whom it asks is not counted.

        Raises
        ------
        Problem
            429.
        """
        if request.client is None or request.client.host not in self._proxies:
            self._requests.take(address_of(request))

    def team(self, request: Request, competition: Competition) -> Team | None:
        """Team of a request, by its bearer token or its session; None if it has none. Call it in a thread."""
        token = bearer_token(request)
        if token is not None:
            return competition.authenticate(token)
        session = self.sessions.of(request, competition.slug)
        return None if session is None else competition.team_of_session(session)

    async def sign_in(
        self, request: Request, response: Response, competition: Competition, scope: str, token: str
    ) -> None:
        """Begin a session of who has shown a token that was checked, and send its number with a response.

        Raises
        ------
        Problem
            503.
        """
        seconds = self.settings.session_seconds
        session = await self.run(competition.begin_session, token, seconds=seconds)
        self.sessions.begin(request, response, scope, session)

    async def sign_out(
        self, request: Request, response: Response, competition: Competition, scope: str
    ) -> None:
        """End the session of a request, if it has one.

        Raises
        ------
        Problem
            503; it may not have ended.
        """
        session = self.sessions.of(request, scope)
        if session is not None:
            await self.run(competition.end_session, session)
        self.sessions.end(request, response, scope)

    def is_organiser(self, request: Request, competition: Competition, scope: str) -> bool:
        """Whether a request's session is the administrator's. Call it in a thread."""
        session, digest = self.sessions.of(request, scope), self.settings.admin_digest
        return (
            session is not None and bool(digest) and competition.is_session_of(session, bytes.fromhex(digest))
        )

    def bearer_team(self, request: Request, competition: Competition) -> Team:
        """Team of a request by its bearer token alone: a browser sends none by itself. Call it in a thread.

        Raises
        ------
        Problem
            401.
        """
        token = bearer_token(request)
        team = None if token is None else competition.authenticate(token)
        if team is None:
            raise _unknown("a team's token is needed: 'Authorization: Bearer rh_...'; nothing was asked")
        return team

    def is_admin(self, token: str) -> bool:
        """Whether a token is the administrator's."""
        digest = self.settings.admin_digest
        return bool(digest) and is_token(token, bytes.fromhex(digest))

    def check_admin(self, request: Request) -> None:
        """Refuse all but the administrator.

        Raises
        ------
        Problem
            401.
        """
        if not self.is_admin(bearer_token(request) or ""):
            raise _unknown(
                "the administrator's token is needed: 'Authorization: Bearer rh_...'; nothing was done"
            )


def problem_of(error: BaseException) -> Problem:
    """Answer to what the library raises; nothing in it depends on the labels."""
    if isinstance(error, Problem):
        return error
    found = ((status, code) for kind, status, code in _ERRORS if isinstance(error, kind))
    status, code = next(found, (500, "internal"))
    details: dict[str, object] = {}
    if isinstance(error, Halted):
        details = {"reason": error.reason}
    elif isinstance(error, SubmissionError):
        details = {"problems": list(error.problems)}
    elif isinstance(error, PlanError):
        details = {"nearest": dict(error.nearest)}
    message = (
        str(error) if status < 500 else _WORDS.get(code, _FAILED)
    )  # its own words name files and servers
    return Problem(status, code, message, details=details)


_FAILED = (
    "the server or its database failed; perhaps this was answered; sent again, it is charged once at most"
)
_WORDS = {
    "rolled_back": (
        "this board is an older copy of itself: its witness has seen answers that are not here; nothing is answered; "
        "its organisers must put the newest copy back, or hold another competition on fresh labels"
    )
}
_ERRORS: tuple[tuple[type[BaseException], int, str], ...] = (
    (Halted, 409, "halted"),
    (RolledBackError, 503, "rolled_back"),
    (SubmissionError, 422, "bad_submission"),
    (InputError, 422, "bad_input"),
    (PlanError, 422, "plan"),
    (LimitError, 429, "limit"),
    (InvitationError, 401, "invitation"),
    (ClosedError, 409, "closed"),
    (BudgetError, 409, "budget"),
    (DecoderError, 503, "unavailable"),
    (StoreError, 503, "unavailable"),
    (LedgerError, 503, "unavailable"),
)


def _answered(call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    try:
        return call(*args, **kwargs)
    except (HoldoutError, Halted) as error:  # a halt is no Exception, and must not end the server
        problem = problem_of(error)
        if problem.status >= 500:  # these words name files and servers, and hold no password
            _LOG.error("answered %d: %s: %s", problem.status, type(error).__name__, error)
    raise problem


def until_next(quantum: float, seconds: float) -> float:
    """Time from `seconds` until the next multiple of a quantum, of which one always passes; 0 without a quantum.

    Examples
    --------
    >>> until_next(0.5, 0.375), until_next(0.5, 0.625), until_next(0.0, 0.625)
    (0.125, 0.375, 0.0)
    """
    return max(1, math.ceil(seconds / quantum)) * quantum - seconds if quantum > 0 else 0.0


def _unknown(message: str) -> Problem:
    return Problem(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
