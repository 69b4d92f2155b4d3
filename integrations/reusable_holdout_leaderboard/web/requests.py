"""Requests: their competition, their sender, and their bodies.

One door reads all bodies. It knows the sender first, and then it reads, up to a limit. Every reader needs a
:class:`Sender`, and only :class:`Intake` makes one. So no route can read a body of unknown size from an unknown sender.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Annotated, Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.store.records import Team
from reusable_holdout_leaderboard.web.door import Rates, address_of
from reusable_holdout_leaderboard.web.problems import Problem, unknown
from reusable_holdout_leaderboard.web.services import Boards

__all__ = [
    "GONE",
    "Admin",
    "After",
    "Epoch",
    "Here",
    "Intake",
    "Limit",
    "Number",
    "Ours",
    "Sender",
    "Upload",
    "bearer_token",
    "boards_of",
    "intake_of",
    "named",
    "parsed",
    "whole_of",
]

_Model = TypeVar("_Model", bound=BaseModel)
GONE = "gone"  # code of a problem that nobody waits for
_MOST_TOKEN = 200
_SMALL = 1 << 14  # for strangers and teams: fields of a form, or JSON without a file
_OF_ORGANISERS = 1 << 20  # a description may be long
_MOST_FIELDS = 16
_MOST_FIELD = 1 << 16
_LARGE_AT_ONCE, _LARGE_OF_ONE = 16, 4  # bodies in memory, each of at most max_body_bytes
_TOTAL = 10  # newcomers of all addresses together, as a multiple of those of one address
_MOST_NUMBER = 2**31 - 1  # an integer of the database
_FORMS = {"multipart/form-data", "application/x-www-form-urlencoded"}

After = Annotated[int, Query(ge=0, le=_MOST_NUMBER, description="leave out this many, or numbers up to this")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="largest number of rows")]
Number = Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="number of a team")]
Epoch = Annotated[
    int | None, Query(ge=1, le=_MOST_NUMBER, description="label set; the present one by default")
]


def boards_of(request: Request) -> Boards:
    """Return the competitions of this worker."""
    boards: Boards = request.app.state.boards
    return boards


def intake_of(request: Request) -> Intake:
    """Return the door for the bodies of this worker."""
    intake: Intake = request.app.state.intake
    return intake


async def here(request: Request) -> Competition:
    """Return the competition of a request."""
    boards, slug = boards_of(request), request.path_params.get("slug")
    known = boards.known(slug)
    return known if known is not None else await boards.run(boards.competition, slug)


async def named(slug: Annotated[str, Path(description="name of the competition")]) -> None:
    """Declare the part of the path that :func:`here` reads."""


Here = Annotated[Competition, Depends(here)]


async def own_team(request: Request, competition: Here) -> Team:
    """Return the team of the bearer token, before anything of the body is read; browsers send none by themselves."""
    token = bearer_token(request)
    team = None if token is None else await boards_of(request).run(competition.authenticate, token)
    if team is None:
        raise unknown("a team's token is needed: 'Authorization: Bearer rh_...'; nothing was asked")
    return team


async def admin(request: Request) -> None:
    """Refuse everyone but the administrator."""
    if not boards_of(request).is_admin(bearer_token(request) or ""):
        raise unknown("the administrator's token is needed: 'Authorization: Bearer rh_...'; nothing was done")


Ours = Annotated[Team, Depends(own_team)]
Admin = Depends(admin)


def bearer_token(request: Request) -> str | None:
    """Return the token of the Authorization header; None if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip()[:_MOST_TOKEN] if scheme.lower() == "bearer" and token.strip() else None


def whole_of(text: str) -> int | None:
    """Return a whole number that an address or a form states in digits; None for other text or too many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


# ---- bodies


class Sender(NamedTuple):
    """A sender who may send a body now.

    Attributes
    ----------
    who : str
        Name of the sender: large bodies of one sender wait for each other. Empty for a stranger.
    most_bytes : int
        Largest body.
    seconds : float
        Longest time that the body may take to arrive.
    """

    who: str
    most_bytes: int
    seconds: float


class Upload(NamedTuple):
    """A form with at most one file.

    Attributes
    ----------
    content : bytes or None
        Content of the file; None if there is none.
    filename : str
    fields : dict of str to str
    """

    content: bytes | None
    filename: str
    fields: dict[str, str]

    def file(self) -> bytes:
        """Return the content of the file.

        Raises
        ------
        Problem
            422 if there is none.
        """
        if self.content is None:
            raise Problem(422, "bad_input", "a file is needed in the form; got none; nothing was done")
        return self.content


class Intake:
    """The door for all bodies of one worker process.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        per_minute = settings.newcomers_per_minute
        self._by_address = Rates(per_minute, burst=per_minute)
        self._in_total = Rates(per_minute * _TOTAL, burst=per_minute * _TOTAL)
        self._all = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._of_one: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    # ---- senders

    def team(self, team: Team) -> Sender:
        """Return a team as a sender, after its token or session was checked."""
        return Sender(f"team {team.id} {team.created_at}", _SMALL, self._settings.body_seconds)

    def organiser(self) -> Sender:
        """Return the organiser as a sender, after the administrator's token or session was checked."""
        return Sender("organiser", _OF_ORGANISERS, self._settings.body_seconds)

    def stranger(self) -> Sender:
        """Return the sender of a small body that names its sender itself, such as a token at log-in."""
        return Sender("", _SMALL, self._settings.head_seconds)

    def newcomer(self, request: Request, kind: str) -> Sender:
        """Count a stranger who will leave something behind, a team or a name; return the sender.

        Parameters
        ----------
        request : Request
        kind : str
            Newcomers of each kind are counted by themselves.

        Raises
        ------
        Problem
            429 if too many came, from this address or in total.
        """
        self._by_address.take(f"{kind} {address_of(request)}")
        self._in_total.take(kind)
        return self.stranger()

    @contextlib.asynccontextmanager
    async def large(self, sender: Sender) -> AsyncIterator[Sender]:
        """Wait for room, and then let a known sender send as much as the largest request may have.

        A fixed number of such bodies is in memory, in total and of each sender, until the block ends. A team that sends
        slowly delays itself first.

        Raises
        ------
        Problem
            401 for a stranger.
        """
        if not sender.who:
            raise unknown("a large body needs a token or a session; nothing was done")
        own = self._of_one.setdefault(sender.who, asyncio.Semaphore(_LARGE_OF_ONE))
        async with own, self._all:
            yield sender._replace(most_bytes=self._settings.max_body_bytes)

    # ---- content

    async def form(self, request: Request, sender: Sender, *, files: int = 0) -> Upload:
        """Read a form, multipart or URL-encoded.

        Parameters
        ----------
        request : Request
        sender : Sender
        files : int
            Number of files that it may have, 0 or 1.

        Raises
        ------
        Problem
            415, 413, 400 or 408.
        """
        if _kind(request) not in _FORMS:
            raise Problem(
                415, "media_type", "a form of type multipart/form-data is needed; got something else"
            )
        most_part = min(sender.most_bytes, _MOST_FIELD)
        reading = _bounded(request, sender.most_bytes).form(
            max_files=files, max_fields=_MOST_FIELDS, max_part_size=most_part
        )
        form = await _within(reading, sender.seconds)
        try:
            content, filename, fields = None, "", {}
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    content, filename = await value.read(), value.filename or ""
                else:
                    fields[name] = value
            return Upload(content, filename, fields)
        finally:
            await form.close()

    async def json(self, request: Request, sender: Sender) -> bytes:
        """Read JSON, and leave it unparsed: parsed, it may take hundreds of times as many bytes.

        Raises
        ------
        Problem
            415, 413, 400 or 408.
        """
        if _kind(request) != "application/json":  # no form of another site can send this type
            raise Problem(415, "media_type", "a body of type application/json is needed; got something else")
        body: bytes = await _within(_bounded(request, sender.most_bytes).body(), sender.seconds)
        return body


def _kind(request: Request) -> str:
    """Return the media type of a body, which must not be packed."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(
            415, "media_type", "a body must have no Content-Encoding; this one has; send it without"
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _bounded(request: Request, most_bytes: int) -> Request:
    """Return the same request with a body that raises a Problem after `most_bytes`.

    A body that states a larger size is not read at all.
    """

    def check(left: int) -> int:
        if left < 0:
            message = f"this body must be at most {most_bytes:,} bytes; nothing was done"
            raise Problem(413, "too_large", message, headers={"Connection": "close"})
        return left

    stated, left = request.headers.get("content-length", ""), most_bytes
    if stated.isascii() and stated.isdigit():
        check(most_bytes - int(stated))

    async def receive() -> Message:
        nonlocal left
        message = await request.receive()
        left = check(left - len(message.get("body", b"")))
        return message

    return Request(request.scope, receive)


async def _within(reading: Awaitable[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError:
        problem = Problem(408, "slow", f"the whole request must arrive within {seconds:g} s; it did not")
    except ClientDisconnect:
        problem = Problem(400, GONE, "the rest of the request did not arrive; nothing was asked")
    except (HTTPException, ValueError):  # multipart parsers raise these
        problem = Problem(
            400, "bad_request", "the body must be a form that fits this address; it cannot be read"
        )
    raise problem


def parsed(content: bytes | dict[str, Any], model: type[_Model]) -> _Model:
    """Check JSON, or the fields of a form.

    Raises
    ------
    Problem
        422.
    """
    try:
        if isinstance(content, bytes):
            return model.model_validate_json(content)
        return model.model_validate(content)
    except (ValidationError, ValueError, RecursionError) as error:
        found = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "not JSON"}
        where = " ".join(["the body", *map(str, found["loc"])])
        problem = Problem(
            422, "bad_input", f"{where}: {found['msg']}; nothing was asked and nothing was charged"
        )
    raise problem
