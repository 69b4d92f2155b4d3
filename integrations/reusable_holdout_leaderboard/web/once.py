"""What everyone may read is sent once: asked for again, it is enough to say that it is the same."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from starlette.responses import Response

from reusable_holdout_leaderboard.competition import Competition

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["answer_once", "sample_of"]


def answer_once(
    request: Request,
    content: bytes,
    *,
    media: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Response:
    """Content with its ETag, or 304 without it for who has it already.

    Parameters
    ----------
    request : Request
    content : bytes
    media : str
    headers : dict of str to str, optional
    """
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    told = (headers or {}) | {"ETag": tag, "Cache-Control": "no-cache"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=told)
    return Response(content, media_type=media, headers=told)


def sample_of(competition: Competition, after: int) -> tuple[bytes, int | None]:
    """Page of the sample file, and after how many rows the next one is; None after the last."""
    expected = competition.expected
    following = after + expected.sample_rows
    return expected.sample(after=after), following if following < expected.rows else None
