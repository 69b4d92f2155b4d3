"""Requests: the competition that they are about, who sends them, and their bodies.

One door reads all bodies: first it is known who sends a body, and then it is read, up to a limit. Whoever asks for a
body passes a :class:`Sender`, and only :class:`Intake` makes one. So no route can read a body of unknown size from an
unknown sender.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as PlainRequest

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.store.records import Team
from reusable_holdout_leaderboard.web.security import Problem, Rates, address_of
from reusable_holdout_leaderboard.web.services import Boards
from reusable_holdout_leaderboard.web.wire import ErrorAnswer

if TYPE_CHECKING:
    from starlette.types import Message

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
    "Page",
    "Rows",
    "Sender",
    "Upload",
    "boards_of",
    "form_body",
    "intake_of",
    "json_body",
    "named",
    "parsed",
    "refusals",
    "whole_of",
]

_Model = TypeVar("_Model", bound=BaseModel)
GONE = "gone"  # code of a problem that nobody waits for
_SMALL = 1 << 14  # of strangers and teams: a form's fields, or JSON that no file is in
_OF_ORGANISERS = 1 << 20  # a description may be long
_MOST_FIELDS = 16
_MOST_FIELD = 1 << 16
_LARGE_AT_ONCE, _LARGE_OF_ONE = 16, 4  # bodies in memory, each of at most max_body_bytes
_TOTAL = 10  # newcomers of all addresses together may be so many times as many as those of one address
_MOST_NUMBER = 2**31 - 1  # of a database's integer
_WORDS = {
    400: "the request cannot be read",
    401: "no token, or one that is not known",
    404: "no such competition, or nothing there yet",
    408: "the body came too slowly",
    409: "closed, halted, or not yet",
    413: "too large",
    415: "another media type is needed",
    422: "the input does not fit; nothing was asked",
    429: "a rate or a limit",
    503: "a database cannot be used now",
}

After = Annotated[int, Query(ge=0, le=_MOST_NUMBER, description="numbers above this one")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="at most so many")]
Rows = Annotated[int, Query(ge=0, le=_MOST_NUMBER, description="rows to leave out at the beginning")]
Page = Annotated[int | None, Query(ge=1, le=1_000, description="rows at most; all by default")]
Number = Annotated[int | None, Query(ge=1, le=_MOST_NUMBER, description="of a team")]
Epoch = Annotated[
    int | None, Query(ge=1, le=_MOST_NUMBER, description="label set; the present one by default")
]


def boards_of(request: Request) -> Boards:
    """Competitions of this worker."""
    boards: Boards = request.app.state.boards
    return boards


def intake_of(request: PlainRequest) -> Intake:
    """Door for the bodies of this worker."""
    intake: Intake = request.app.state.intake
    return intake


async def here(request: Request) -> Competition:
    """Competition that a request is about."""
    boards, slug = boards_of(request), request.path_params.get("slug")
    known = boards.known(slug)
    return known if known is not None else await boards.run(boards.competition, slug)


async def named(slug: Annotated[str, Path(description="of the competition")]) -> None:
    """Declare the part of the path that :func:`here` reads."""


Here = Annotated[Competition, Depends(here)]


async def own_team(request: Request, competition: Here) -> Team:
    """Team of the bearer token, before anything of the body is read."""
    boards = boards_of(request)
    return await boards.run(boards.bearer_team, request, competition)


async def admin(request: Request) -> None:
    """Let nobody pass but the administrator."""
    boards_of(request).check_admin(request)


Ours = Annotated[Team, Depends(own_team)]
Admin = Depends(admin)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route refuses with, for the OpenAPI description."""
    return {status: {"model": ErrorAnswer, "description": _WORDS[status]} for status in sorted(statuses)}


def whole_of(text: str) -> int | None:
    """Whole number that an address or a form says in digits; None if it says something else, or too many of them."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


# ---- bodies


class Sender(NamedTuple):
    """A sender who may send a body now.

    Attributes
    ----------
    who : str
        Whose body it is: large bodies of one sender wait for each other. Empty for a stranger.
    most_bytes : int
        Largest body.
    seconds : float
        Longest time that it may take to come.
    """

    who: str
    most_bytes: int
    seconds: float


class Upload(NamedTuple):
    """A form with at most one file.

    Attributes
    ----------
    content : bytes or None
        Of the file; None if there is none.
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
            raise Problem(422, "bad_input", "a file is needed, as the form's field 'file'; got none")
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

    # ---- who may send

    def team(self, team: Team) -> Sender:
        """Return the sender that a team is, once its token or session was checked."""
        return Sender(f"team {team.id} {team.created_at}", _SMALL, self._settings.body_seconds)

    def organiser(self) -> Sender:
        """Return the sender that an organiser is, once the administrator's token or session was checked."""
        return Sender("organiser", _OF_ORGANISERS, self._settings.body_seconds)

    def stranger(self) -> Sender:
        """Return the sender of a small body that says itself who sends it, such as a token at log-in."""
        return Sender("", _SMALL, self._settings.head_seconds)

    def newcomer(self, request: Request, kind: str) -> Sender:
        """Count a stranger who will leave something behind: a team or a name. Return the sender.

        Parameters
        ----------
        request : Request
        kind : str
            What newcomers are counted for, each kind by itself.

        Raises
        ------
        Problem
            429 if too many came, from this address or from all together.
        """
        self._by_address.take(f"{kind} {address_of(request)}")
        self._in_total.take(kind)
        return self.stranger()

    @contextlib.asynccontextmanager
    async def large(self, sender: Sender) -> AsyncIterator[Sender]:
        """Wait for room, and then let a known sender send as much as the largest request may have.

        A fixed number of such bodies, and of each sender, is in memory until the block is left. A team that sends
        slowly holds up itself first.

        Raises
        ------
        Problem
            401 for a stranger.
        """
        if not sender.who:
            raise Problem(401, "unauthorized", "a large body needs a token or a session; nothing was done")
        own = self._of_one.setdefault(sender.who, asyncio.Semaphore(_LARGE_OF_ONE))
        async with own, self._all:
            yield sender._replace(most_bytes=self._settings.max_body_bytes)

    # ---- what was sent

    async def form(self, request: Request, sender: Sender, *, files: int = 0) -> Upload:
        """Read a form, multipart or URL-encoded.

        Parameters
        ----------
        request : Request
        sender : Sender
        files : int
            How many files it may have: 0 or 1.

        Raises
        ------
        Problem
            415, 413, 400 or 408.
        """
        if _kind(request) not in {"multipart/form-data", "application/x-www-form-urlencoded"}:
            raise Problem(
                415, "media_type", "a form is needed, of type multipart/form-data; got something else"
            )
        bounded = _bounded(request, sender.most_bytes)
        form = await _within(
            bounded.form(
                max_files=files, max_fields=_MOST_FIELDS, max_part_size=min(sender.most_bytes, _MOST_FIELD)
            ),
            sender.seconds,
        )
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
        if _kind(request) != "application/json":  # which no form of another site can send
            raise Problem(415, "media_type", "a body of type application/json is needed; got something else")
        body: bytes = await _within(_bounded(request, sender.most_bytes).body(), sender.seconds)
        return body


def _kind(request: Request) -> str:
    """Return the media type of a body, which must not be packed."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(
            415, "media_type", "a body must come as it is; this one has a Content-Encoding; send it without"
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _bounded(request: Request, most_bytes: int) -> Request:
    """Return the same request with a body that ends in a Problem once it is longer than `most_bytes`.

    A body that says beforehand that it is longer is not read at all.
    """
    problem = Problem(
        413,
        "too_large",
        f"this body must be at most {most_bytes:,} bytes; nothing was done",
        headers={"Connection": "close"},
    )
    stated = request.headers.get("content-length", "")
    if stated.isascii() and stated.isdigit() and int(stated) > most_bytes:
        raise problem
    left = most_bytes

    async def receive() -> Message:
        nonlocal left
        message = await request.receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise problem
        return message

    return Request(request.scope, receive)


async def _within(reading: Awaitable[Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError:
        problem = Problem(408, "slow", f"the whole request must come within {seconds:g} s; it did not")
    except ClientDisconnect:
        problem = Problem(400, GONE, "the rest of the request did not come; nothing was asked")
    except (HTTPException, ValueError):  # what multipart parsers raise
        problem = Problem(
            400, "bad_request", "the body must be a form that fits this address; it cannot be read"
        )
    raise problem


def parsed(content: bytes, model: type[_Model]) -> _Model:
    """Parse JSON.

    Raises
    ------
    Problem
        422.
    """
    try:
        return model.model_validate_json(content)
    except (ValidationError, ValueError, RecursionError) as error:
        found = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "not JSON"}
        where = " ".join(["the body", *map(str, found["loc"])])
        problem = Problem(
            422, "bad_input", f"{where}: {found['msg']}; nothing was asked and nothing was charged"
        )
    raise problem


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """OpenAPI description of a body that is read by hand, after it is known who sends it."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def form_body(**fields: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI description of a form with a file, that is read by hand, after it is known who sends it."""
    schema = {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "format": "binary"}, **fields},
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
