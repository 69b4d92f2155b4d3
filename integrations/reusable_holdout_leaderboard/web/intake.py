"""Reading of request bodies, and the route for submissions.

:class:`Intake` reads all bodies, up to a limit that depends on the sender. To read one, a route needs a
:class:`Sender`, and only :class:`Intake` makes senders. So no route can read a large body from an unknown sender.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from fastapi import APIRouter, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.boards import Here, Ours, boards_of
from reusable_holdout_leaderboard.web.door import Rates, address_of
from reusable_holdout_leaderboard.web.problems import Problem, unknown
from reusable_holdout_leaderboard.web.wire import Answered, form_body, refusals

__all__ = [
    "GONE",
    "SENT",
    "SUBMISSIONS",
    "Intake",
    "Sender",
    "Upload",
    "intake_of",
    "parsed",
    "scored",
    "whole_of",
]

_Model = TypeVar("_Model", bound=BaseModel)
SENT = (400, 401, 404, 408, 409, 413, 415, 422, 429)  # statuses with which a team's body may be refused
SUBMISSIONS = APIRouter(tags=["teams"])
GONE = "gone"  # code of the problem that the client has disconnected, so that nobody waits for the answer
_SMALL = 1 << 14  # bytes of a body without a file, from strangers and teams
_OF_ORGANISERS = 1 << 20  # bytes of a body without a file, from organisers: a description may be long
_MOST_FIELDS = 16
_MOST_FIELD = 1 << 16
_LARGE_AT_ONCE, _LARGE_OF_ONE = 16, 4  # large bodies in memory, of all senders together and of one sender
_TOTAL = 10  # limit for newcomers from all addresses together, as a multiple of the limit for one address
_FORMS = {"multipart/form-data", "application/x-www-form-urlencoded"}


class Sender(NamedTuple):
    """The permission to send one body, with its limits.

    Attributes
    ----------
    who : str
        Name under which the large bodies of this sender are counted. Empty for an unknown sender.
    most_bytes : int
        Largest size of the body.
    seconds : float
        Longest time that the body may take to arrive.
    """

    who: str
    most_bytes: int
    seconds: float


class Upload(NamedTuple):
    """The content of a form, with at most one file.

    Attributes
    ----------
    content : bytes or None
        Content of the file. None if the form has no file.
    filename : str
    fields : dict of str to str
        Values of the other fields, by name.
    """

    content: bytes | None
    filename: str
    fields: dict[str, str]

    def file(self) -> bytes:
        """Return the content of the file.

        Raises
        ------
        Problem
            422 if the form has no file.
        """
        if self.content is None:
            raise Problem(422, "bad_input", "a file is needed in the form; got none; nothing was done")
        return self.content


class Intake:
    """The reader of all request bodies of one worker process. It limits their size, time and number.

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
        """Return the permission for a team. Call this method after the team's token or session was checked."""
        return Sender(f"team {team.id} {team.created_at}", _SMALL, self._settings.body_seconds)

    def organiser(self) -> Sender:
        """Return the permission for the organiser. Call this method after the token or session was checked."""
        return Sender("organiser", _OF_ORGANISERS, self._settings.body_seconds)

    def stranger(self) -> Sender:
        """Return the permission for an unknown sender to send a small body, such as the token of a log-in."""
        return Sender("", _SMALL, self._settings.head_seconds)

    def newcomer(self, request: Request, kind: str) -> Sender:
        """Count a request that creates something lasting, such as a team, and return the permission to send its body.

        The sender is unknown, so these requests are limited for each address and in total.

        Parameters
        ----------
        request : Request
        kind : str
            Kind of the request. Requests of each kind are counted separately.

        Raises
        ------
        Problem
            429 if there were too many such requests, from this address or in total.
        """
        self._by_address.take(f"{kind} {address_of(request)}")
        self._in_total.take(kind)
        return self.stranger()

    @contextlib.asynccontextmanager
    async def large(self, sender: Sender) -> AsyncIterator[Sender]:
        """Wait until there is room for a large body, and then yield the permission to send one.

        Until the block ends, the body counts as one that is in memory. The number of such bodies is limited, in total
        and for each sender. So a team that sends slowly mostly delays itself.

        Raises
        ------
        Problem
            401 if the sender is unknown.
        """
        if not sender.who:
            raise unknown("a large body needs a token or a session; nothing was done")
        own = self._of_one.setdefault(sender.who, asyncio.Semaphore(_LARGE_OF_ONE))
        async with own, self._all:
            yield sender._replace(most_bytes=self._settings.max_body_bytes)

    # ---- content

    async def form(self, request: Request, sender: Sender, *, files: int = 0) -> Upload:
        """Read a form, which is multipart or URL-encoded.

        Parameters
        ----------
        request : Request
        sender : Sender
        files : int
            Number of files that the form may have, 0 or 1.

        Raises
        ------
        Problem
            415 for another media type, 413 for a body that is too large, 408 for one that arrives too slowly, 400 for
            one that cannot be read.
        """
        if _kind(request) not in _FORMS:
            raise Problem(
                415,
                "media_type",
                "a form of type multipart/form-data is needed; got something else; nothing was done",
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
        """Read a JSON body, and return it as text that is not parsed yet.

        Freely parsed JSON may take hundreds of times as much memory. :func:`parsed` parses the text with a model.

        Raises
        ------
        Problem
            415 for another media type, 413 for a body that is too large, 408 for one that arrives too slowly, 400 for
            one that cannot be read.
        """
        if _kind(request) != "application/json":  # no form of another site can send this type
            raise Problem(
                415,
                "media_type",
                "a body of type application/json is needed; got something else; nothing was done",
            )
        body: bytes = await _within(_bounded(request, sender.most_bytes).body(), sender.seconds)
        return body


def _kind(request: Request) -> str:
    """Return the media type of a body. Refuse a body that is compressed."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(
            415,
            "media_type",
            "a body must have no Content-Encoding; this one has; nothing was done; send it without",
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _bounded(request: Request, most_bytes: int) -> Request:
    """Return a request whose body raises a Problem when it has more than `most_bytes`.

    If the header Content-Length states a larger size, the body is not read at all.
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
        problem = Problem(
            408, "slow", f"the whole request must arrive within {seconds:g} s; it did not; nothing was done"
        )
    except ClientDisconnect:
        problem = Problem(400, GONE, "the rest of the request did not arrive; nothing was done")
    except (HTTPException, ValueError):  # multipart parsers raise these
        problem = Problem(
            400,
            "bad_request",
            "the body must be a form that fits this address; it cannot be read; nothing was done",
        )
    raise problem


def parsed(content: bytes | dict[str, Any], model: type[_Model]) -> _Model:
    """Check JSON text or the fields of a form against a model, and return the model with their values.

    Raises
    ------
    Problem
        422 if the content does not fit the model.
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


def whole_of(text: str) -> int | None:
    """Return the whole number that a text of at most nine digits states, or None for other texts."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def intake_of(request: Request) -> Intake:
    """Return the reader of request bodies of this worker process."""
    intake: Intake = request.app.state.intake
    return intake


# ---- submissions


@SUBMISSIONS.post(
    "/submissions",
    status_code=201,
    responses=refusals(*SENT),
    openapi_extra=form_body("file", "claimed", "name", "anew", "in_order"),
    response_model=Answered,
)
async def submit(request: Request, competition: Here, team: Ours) -> Any:
    """Submit a CSV file of predictions, with the score that the team claims in `claimed`.

    The team measures this score on rows of its own. The submission is listed under `name`, or the name of the file.

    If `anew` is "yes", the guard is asked again about predictions that were answered before, which may cost the team a
    charge. If `in_order` is "yes", the file has no ids, and its rows have the order of the sample.
    """
    found = await scored(request, competition, team)
    left = await boards_of(request).run(competition.charges_left_of, team.id)
    return {**found._asdict(), "charges_left": left}


async def scored(request: Request, competition: Competition, team: Team) -> Submission:
    """Read the form that a team has sent, and score the file in it.

    Raises
    ------
    Problem
        If the form or the file is refused; see :meth:`Intake.form` and :meth:`Boards.submit`.
    """
    intake = intake_of(request)
    async with intake.large(intake.team(team)) as sender:
        form = await intake.form(request, sender, files=1)
        return await boards_of(request).submit(
            competition,
            team,
            form.file(),
            filename=form.filename,
            name=form.fields.get("name", ""),
            claimed=_claimed(form.fields.get("claimed", "")),
            anew=_flag(form.fields, "anew"),
            in_order=_flag(form.fields, "in_order"),
        )


def _flag(fields: Mapping[str, str], name: str) -> bool:
    given = fields.get(name, "")
    if given not in {"", "yes"}:
        raise Problem(422, "bad_input", f'{name} must be "yes" or left out; nothing was asked')
    return given == "yes"


def _claimed(text: str) -> float | None:
    """Return the claimed score that a text states, in which a comma may stand for the decimal point.

    Return None for an empty text, and NaN for other texts; both are refused later.
    """
    try:
        return float(text.replace(",", ".")) if text.strip() else None
    except ValueError:
        return math.nan
