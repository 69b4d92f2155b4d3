"""The server as a witness: it remembers how far ledgers elsewhere had come, so that a restored one is noticed."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pathlib
import re
import secrets
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel

from reusable_holdout.errors import InputError
from reusable_holdout.witness import FileWitness, Head
from reusable_holdout_leaderboard.settings import write_private
from reusable_holdout_leaderboard.web.requests import Admin, boards_of, intake_of, json_body, parsed, refusals
from reusable_holdout_leaderboard.web.security import Problem, bearer_token
from reusable_holdout_leaderboard.web.wire import HeadBody

__all__ = ["WITNESS", "make_name"]

_MOST = 10_000
WITNESS = APIRouter(tags=["witness"])
_NAME = "[a-z0-9][a-z0-9-]{0,63}"
Name = Annotated[str, Path(pattern=f"^{_NAME}$", description="of the ledger")]


class NameAnswer(BaseModel):
    """A name that a ledger elsewhere may take."""

    name: str


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

    The administrator makes a name; the token of its first request is the name's from then on.
    """
    boards = boards_of(request)
    folder, token = boards.settings.folder, bearer_token(request)
    if not token:
        raise Problem(401, "token", "a witness takes heads with a token alone; there is none")
    owned = await boards.run(_is_owned, folder, name, token)
    sender = intake_of(request).stranger() if owned else intake_of(request).newcomer(request, "witness")
    if not owned:
        await boards.run(_check_free, folder, name)
    return await boards.run(_advanced, folder, name, token, await intake_of(request).json(request, sender))


@WITNESS.post(
    "/admin/witness/{name}",
    status_code=201,
    dependencies=[Admin],
    responses=refusals(400, 401, 404, 422, 429),
    response_model=NameAnswer,
)
async def make(request: Request, name: Name) -> NameAnswer:
    """Make a name, which the first ledger that comes with it takes."""
    boards = boards_of(request)
    await boards.run(make_name, boards.settings.folder, name)
    return NameAnswer(name=name)


def make_name(folder: pathlib.Path, name: str) -> None:
    """Make a name at this server, which the first ledger that comes with it takes.

    Raises
    ------
    InputError
        If it is no plain word, or there is one already.
    Problem
        429 if there are too many.
    """
    if not re.fullmatch(_NAME, name):
        raise InputError(
            "a witness's name must be 1 to 64 small letters, digits and hyphens, not a hyphen first; nothing was made"
        )
    made, owner = _made(folder, name), _owner(folder, name)
    if made.exists() or owner.exists():
        raise InputError(f"there is a witness {name!r} already; nothing was made; choose another name")
    if made.parent.exists() and sum(1 for _ in made.parent.glob("*.made")) >= _MOST:
        raise Problem(429, "witnesses", f"this server is witness of {_MOST:,} ledgers, and takes no more")
    write_private(made, "")


def _held(folder: pathlib.Path, name: str) -> dict[str, str]:
    head = FileWitness(_file(folder, name)).read()
    return {"head": "" if head is None else head.record().decode()}


def _advanced(folder: pathlib.Path, name: str, token: str, content: bytes) -> dict[str, str]:
    body = parsed(content, HeadBody)
    head, after = (Head.parse(text.encode()) for text in (body.head, body.after))
    if head is None or (body.after and after is None):
        raise Problem(422, "head", "a head must be one that a guard wrote; it is not; nothing was changed")
    if not _owner(folder, name).exists():
        _check_free(folder, name)
        _own(_owner(folder, name), _digest(token))
    if not _is_owned(folder, name, token):
        raise Problem(401, "token", "this name is another ledger's; choose another")
    held = FileWitness(_file(folder, name)).advance(head, after=after)
    return {"head": held.record().decode()}


def _is_owned(folder: pathlib.Path, name: str, token: str) -> bool:
    """Return True if a name is taken, and this is its owner's token."""
    try:
        return hmac.compare_digest(_owner(folder, name).read_text(), _digest(token))
    except FileNotFoundError:
        return False


def _check_free(folder: pathlib.Path, name: str) -> None:
    """Refuse a name that the administrator did not make, or that is another's."""
    if _owner(folder, name).exists():
        raise Problem(401, "token", "this name is another ledger's; choose another")
    if not _made(folder, name).exists():
        raise Problem(
            401,
            "witness",
            "a witness's name must be one that this server's administrator has made; this one is not; nothing was "
            f"changed; ask for it: reusable-holdout board witness {name}",
        )


def _own(owner: pathlib.Path, digest: str) -> None:
    """Write down a name's owner, unless another has come meanwhile."""
    mine = owner.with_name(f"{owner.name}.{secrets.token_hex(8)}")
    write_private(mine, digest)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(mine, owner)
    finally:
        mine.unlink()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _owner(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / "witness" / f"{name}.owner"


def _made(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / "witness" / f"{name}.made"


def _file(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / "witness" / f"{name}.heads"
