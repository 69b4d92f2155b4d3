"""Bodies of requests: read when it is known who sends them, in bounded time, memory and parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from reusable_holdout_leaderboard.web.security import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request

__all__ = ["GONE", "Upload", "form_body", "json_body", "parsed", "read_body", "read_upload"]

_Model = TypeVar("_Model", bound=BaseModel)
_MOST_FIELDS = 16
GONE = "gone"  # code of a problem that nobody waits for
_MOST_JSON = 1 << 14


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
