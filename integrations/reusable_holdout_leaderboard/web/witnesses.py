"""The server as a witness: it remembers how far ledgers elsewhere had come, so that a restored one is noticed."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel

from reusable_holdout.witness import FileWitness, Head
from reusable_holdout_leaderboard.settings import write_private
from reusable_holdout_leaderboard.web.requests import boards_of, json_body, parsed, read_body, refusals
from reusable_holdout_leaderboard.web.security import Problem, bearer_token
from reusable_holdout_leaderboard.web.wire import HeadBody

if TYPE_CHECKING:
    import pathlib

__all__ = ["WITNESS"]

_MOST = 10_000
WITNESS = APIRouter(tags=["witness"])
Name = Annotated[str, Path(pattern="^[a-z0-9][a-z0-9-]{0,63}$", description="of the ledger")]


class HeadAnswer(BaseModel):
    """Highest head of a ledger; empty if none came."""

    head: str


@WITNESS.get("/witness/{name}", responses=refusals(400, 404, 422, 429), response_model=HeadAnswer)
async def read(request: Request, name: Name) -> dict[str, str]:
    """Highest head that came of a ledger, for everyone: it tells how many answers there were, and nothing of them."""
    boards = boards_of(request)
    return await boards.run(_held, boards.settings.folder, name)


@WITNESS.put(
    "/witness/{name}",
    responses=refusals(400, 401, 404, 408, 413, 415, 422, 429),
    response_model=HeadAnswer,
    openapi_extra=json_body(HeadBody),
)
async def advance(request: Request, name: Name) -> dict[str, str]:
    """Hold a head, if the one that is held is still that which was seen; the one that is held now.

    The token of the first request of a name is the name's from then on.
    """
    boards = boards_of(request)
    content = await read_body(request, seconds=boards.settings.body_seconds)
    return await boards.run(_advanced, boards.settings.folder, name, bearer_token(request), content)


def _held(folder: pathlib.Path, name: str) -> dict[str, str]:
    head = FileWitness(_file(folder, name)).read()
    return {"head": "" if head is None else head.record().decode()}


def _advanced(folder: pathlib.Path, name: str, token: str | None, content: bytes) -> dict[str, str]:
    body = parsed(content, HeadBody)
    head, after = (Head.parse(text.encode()) for text in (body.head, body.after))
    if head is None or (body.after and after is None):
        raise Problem(422, "head", "a head must be one that a guard wrote; it is not; nothing was changed")
    _check_owner(folder, name, token)
    held = FileWitness(_file(folder, name)).advance(head, after=after)
    return {"head": held.record().decode()}


def _check_owner(folder: pathlib.Path, name: str, token: str | None) -> None:
    """Refuse who is not the owner of a name; the first who comes is."""
    if not token:
        raise Problem(401, "token", "a witness takes heads with a token alone; there is none")
    owner, digest = folder / "witness" / f"{name}.owner", hashlib.sha256(token.encode()).hexdigest()
    if not owner.exists():
        if owner.parent.exists() and sum(1 for _ in owner.parent.glob("*.owner")) >= _MOST:
            raise Problem(429, "witnesses", f"this server is witness of {_MOST:,} ledgers, and takes no more")
        _own(owner, digest)
    if not hmac.compare_digest(owner.read_text(), digest):
        raise Problem(401, "token", "this name is another ledger's; choose another")


def _own(owner: pathlib.Path, digest: str) -> None:
    """Write down a name's owner, unless another has come meanwhile."""
    mine = owner.with_name(f"{owner.name}.{secrets.token_hex(8)}")
    write_private(mine, digest)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(mine, owner)
    finally:
        mine.unlink()


def _file(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / "witness" / f"{name}.heads"
