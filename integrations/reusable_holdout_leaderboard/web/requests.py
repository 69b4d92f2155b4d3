"""Requests: the competition that they are about, who sends them, and their bodies.

A body is read when it is known who sends it, in bounded time, memory and parts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import Team
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.wire import ErrorAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from reusable_holdout_leaderboard.web.services import Boards

__all__ = [
    "GONE",
    "Admin",
    "After",
    "Epoch",
    "Here",
    "Limit",
    "Number",
    "Ours",
    "Page",
    "Rows",
    "Upload",
    "boards_of",
    "form_body",
    "json_body",
    "named",
    "parsed",
    "read_body",
    "read_upload",
    "refusals",
    "whole_of",
]

_Model = TypeVar("_Model", bound=BaseModel)
_MOST_FIELDS = 16
GONE = "gone"  # code of a problem that nobody waits for
_MOST_JSON = 1 << 14
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
        """Content of the file.

        Raises
        ------
        Problem
            422 if there is none.
        """
        if self.content is None:
            raise Problem(422, "bad_input", "a file is needed, as the form's field 'file'; got none")
        return self.content


async def read_upload(request: Request, *, seconds: float, most_bytes: int) -> Upload:
    """Read a form: multipart, or URL-encoded without a file.

    Parameters
    ----------
    request : Request
    seconds : float
        Longest time it may take to come.
    most_bytes : int
        Of the file.

    Raises
    ------
    Problem
        415, 400 or 408.
    """
    kind = _kind(request)
    if kind not in {"multipart/form-data", "application/x-www-form-urlencoded"}:
        raise Problem(415, "media_type", "a form is needed, of type multipart/form-data; got something else")
    form = await _within(
        request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=min(most_bytes, 1 << 16)), seconds
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


async def read_body(request: Request, *, seconds: float, most_bytes: int = _MOST_JSON) -> bytes:
    """Read JSON, not parsed.

    Parameters
    ----------
    request : Request
    seconds : float
        Longest time it may take to come.
    most_bytes : int
        Parsed, it may take hundreds of times as many.

    Raises
    ------
    Problem
        415, 413, 400 or 408.
    """
    kind = _kind(request)
    if kind != "application/json":  # which no form of another site can send
        raise Problem(415, "media_type", "a body of type application/json is needed; got something else")
    body: bytes = await _within(_whole(request, most_bytes), seconds)
    return body


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


def _kind(request: Request) -> str:
    """Media type of a body, which must come as it is."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(
            415, "media_type", "a body must come as it is; this one has a Content-Encoding; send it without"
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _whole(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            raise Problem(
                413,
                "too_large",
                f"this body must be at most {most_bytes:,} bytes; nothing was done",
                headers={"Connection": "close"},
            )
    return bytes(body)


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
            400, "bad_request", "the body must be a form of at most one file; it cannot be read"
        )
    raise problem
