"""The open competitions of one worker process, calls to them in threads, and the competition and team of a request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Annotated, Any, ParamSpec, TypeVar

import anyio.to_thread
from fastapi import Depends, Path, Query, Request

from reusable_holdout.errors import Halted, HoldoutError
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.competition.base import is_token
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.door import Rates
from reusable_holdout_leaderboard.web.problems import Problem, problem_of, unknown

__all__ = [
    "Admin",
    "After",
    "Boards",
    "Epoch",
    "Here",
    "Limit",
    "Number",
    "Ours",
    "bearer_token",
    "boards_of",
    "named",
    "until_next",
]

_LOG = logging.getLogger("reusable_holdout_leaderboard")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_AT_ONCE = 4  # submissions that are read and scored at the same time
_KEPT = 64  # answers that are stored until the board changes
_LIST_SECONDS = 5.0  # age at which the list of competitions is read again
_SETTLE_SECONDS = 60.0
_MOST_TOKEN = 200
_MOST_NUMBER = 2**31 - 1  # largest integer that the database stores


class Boards:
    """The open competitions of one worker process.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._submissions = Rates(settings.submissions_per_minute)
        self._lock = threading.Lock()
        self._open: dict[str, Competition] = {}
        self._slugs: list[str] = []
        self._listed_at = -math.inf
        self._kept: dict[Hashable, tuple[int, Any]] = {}
        self._scoring = anyio.CapacityLimiter(_AT_ONCE)

    # ---- competitions

    def slugs(self) -> list[str]:
        """Return the names of all competitions, the oldest first. The list may be up to five seconds old."""
        if time.monotonic() - self._listed_at > _LIST_SECONDS:
            self._slugs = Competition.slugs(self.settings.folder, database=self.settings.database)
            self._listed_at = time.monotonic()
        return self._slugs

    def default(self) -> str | None:
        """Return the name of the competition for addresses that name none, or None if there is no such competition."""
        slugs = self.slugs()
        return self.settings.slug or (slugs[0] if len(slugs) == 1 else None)

    def competition(self, slug: str | None = None) -> Competition:
        """Return an open competition. Call this method in a thread, because the first call opens the competition.

        Parameters
        ----------
        slug : str, optional
            Name of the competition. By default, the server's own or the only one.

        Raises
        ------
        Problem
            404 if there is no such competition.
        """
        slug = slug or self.default() or ""
        known = self._open.get(slug)
        if known is not None:
            return known
        with self._lock:
            if slug not in self._open:
                if slug not in self.slugs():
                    raise Problem(
                        404, "no_competition", "there is no such competition here; check its address"
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
        """Return a competition if it is open already, without waiting, or else None."""
        return self._open.get(slug or self.settings.slug or "")

    def at_revision(self, competition: Competition, name: Hashable, call: Callable[[], _R]) -> _R:
        """Return the result of a call. A stored result is returned if the competition has had no event since.

        Call this method in a thread.

        Parameters
        ----------
        competition : Competition
        name : hashable
            Name of the call, with its arguments, under which the result is stored.
        call : callable
            Function without arguments. Its result must only change when there is an event, and nobody may modify it.
        """
        revision, key = competition.revision, (competition.slug, name)  # read first: the call may see more
        with self._lock:
            known = self._kept.pop(key, None)
            if known is not None and known[0] == revision:
                self._kept[key] = known  # moved to the end: the first ones are deleted first
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
        with self._lock:
            for competition in self._open.values():
                competition.close()
            self._open.clear()

    # ---- calls

    async def run(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function in a thread. Exceptions of the library become a :class:`Problem`.

        Raises
        ------
        Problem
        """
        return await anyio.to_thread.run_sync(partial(_answered, call, *args, **kwargs))

    async def submit(self, competition: Competition, team: Team, content: bytes, **given: Any) -> Submission:
        """Score a file of predictions. The time that this takes does not tell what the guard found.

        The parameters are those of :meth:`Competition.submit`.

        Raises
        ------
        Problem
            429 if the team sends too often or has reached a limit, 422 if the file does not fit, 409 if the competition
            is closed or halted. Nothing was charged.
        """
        self._submissions.take(f"{team.id} {team.created_at}")
        return await self.padded(partial(competition.submit, team.id, content, **given))

    async def padded(self, call: Callable[[], _R]) -> _R:
        """Call a function in a thread, and return or raise after a multiple of the setting `answer_seconds`.

        So the time of an answer does not tell how long the call took.
        """
        began = time.monotonic()
        try:
            return await anyio.to_thread.run_sync(partial(_answered, call), limiter=self._scoring)
        finally:
            await asyncio.sleep(until_next(self.settings.answer_seconds, time.monotonic() - began))

    async def settle_for_ever(self) -> None:
        """Finish submissions whose worker process died, once a minute, until this task is cancelled."""
        while True:
            await asyncio.sleep(_SETTLE_SECONDS)
            for competition in list(self._open.values()):
                with contextlib.suppress(Problem):
                    await self.run(competition.settle)

    def is_admin(self, token: str) -> bool:
        """Return True if a token is the administrator's."""
        digest = self.settings.admin_digest
        return bool(digest) and is_token(token, bytes.fromhex(digest))


def _answered(call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    try:
        return call(*args, **kwargs)
    except (HoldoutError, Halted) as error:  # a halt is not an Exception, and must not end the server
        problem = problem_of(error)
        if problem.status >= 500:  # the log may name files and servers; the message holds no password
            _LOG.error("answered %d: %s: %s", problem.status, type(error).__name__, error)
    raise problem


def until_next(quantum: float, seconds: float) -> float:
    """Return the time from `seconds` until the next multiple of a quantum. Multiples begin with the quantum itself.

    Examples
    --------
    >>> until_next(0.5, 0.375), until_next(0.5, 0.625), until_next(0.0, 0.625)
    (0.125, 0.375, 0.0)
    """
    return max(1, math.ceil(seconds / quantum)) * quantum - seconds if quantum > 0 else 0.0


# ---- the competition that a request is about, and the sender of the request


def boards_of(request: Request) -> Boards:
    """Return the open competitions of this worker process."""
    boards: Boards = request.app.state.boards
    return boards


async def here(request: Request) -> Competition:
    """Return the competition that a request is about."""
    boards, slug = boards_of(request), request.path_params.get("slug")
    known = boards.known(slug)
    return known if known is not None else await boards.run(boards.competition, slug)


async def named(slug: Annotated[str, Path(description="name of the competition")]) -> None:
    """Declare the path parameter that :func:`here` reads, for the description of the API."""


async def own_team(request: Request, competition: Here) -> Team:
    """Return the team that the bearer token belongs to. The body of the request is not read before that.

    A browser never sends such a token by itself, so no other site can misuse it.
    """
    token = bearer_token(request)
    team = None if token is None else await boards_of(request).run(competition.authenticate, token)
    if team is None:
        raise unknown("a team's token is needed: 'Authorization: Bearer rh_...'; nothing was asked")
    return team


async def admin(request: Request) -> None:
    """Refuse a request that does not have the administrator's token."""
    if not boards_of(request).is_admin(bearer_token(request) or ""):
        raise unknown("the administrator's token is needed: 'Authorization: Bearer rh_...'; nothing was done")


def bearer_token(request: Request) -> str | None:
    """Return the token in the Authorization header of a request, or None if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip()[:_MOST_TOKEN] if scheme.lower() == "bearer" and token.strip() else None


After = Annotated[int, Query(ge=0, le=_MOST_NUMBER, description="leave out this many, or numbers up to this")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="largest number of rows")]
Number = Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="number of a team")]
Epoch = Annotated[
    int | None, Query(ge=1, le=_MOST_NUMBER, description="number of a round; the present one by default")
]
Here = Annotated[Competition, Depends(here)]
Ours = Annotated[Team, Depends(own_team)]
Admin = Depends(admin)
