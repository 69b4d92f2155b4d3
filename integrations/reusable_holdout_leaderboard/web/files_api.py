"""The API of public files: organisers attach them, everyone may have them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel

from reusable_holdout_leaderboard.web.requests import Admin, Here, boards_of, form_body, intake_of, refusals
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.wire import as_rows

__all__ = ["FILES", "file_response"]

FILES = APIRouter(tags=["files"])
_ASKED = (400, 404, 422, 429)
_ADMIN = (*_ASKED, 401)
Name = Annotated[str, Path(max_length=100, description="of the file")]


class FileAnswer(BaseModel):
    """A file that everyone may have."""

    name: str
    bytes: int


@FILES.get("/files", responses=refusals(*_ASKED), response_model=list[FileAnswer])
async def files(request: Request, competition: Here) -> Any:
    """Public files of the competition."""
    return as_rows(await boards_of(request).run(competition.public_files))


@FILES.get(
    "/files/{name}",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        **refusals(*_ASKED),
    },
)
async def file(request: Request, competition: Here, name: Name) -> FileResponse:
    """One public file of the competition."""
    return await file_response(request, competition, name)


@FILES.post(
    "/admin/files",
    status_code=201,
    dependencies=[Admin],
    responses=refusals(*_ADMIN, 408, 413, 415),
    openapi_extra=form_body(),
    response_model=FileAnswer,
)
async def attach(request: Request, competition: Here) -> Any:
    """Give everyone a file; one of the same name is replaced."""
    boards = boards_of(request)
    async with intake_of(request).large(intake_of(request).organiser()) as sender:
        form = await intake_of(request).form(request, sender, files=1)
        return (await boards.run(competition.attach, form.filename, form.file()))._asdict()


@FILES.post(
    "/admin/files/{name}/remove",
    dependencies=[Admin],
    responses=refusals(*_ADMIN),
    response_model=list[FileAnswer],
)
async def detach(request: Request, competition: Here, name: Name) -> Any:
    """Take a file away; those that are left."""
    boards = boards_of(request)
    await boards.run(competition.detach, name)
    return as_rows(await boards.run(competition.public_files))


async def file_response(request: Request, competition: Here, name: str) -> FileResponse:
    """Public file that a browser keeps, and never shows as a page of the server's.

    Raises
    ------
    Problem
        404.
    """
    path = await boards_of(request).run(competition.public_file, name)
    if path is None:
        raise Problem(404, "no_file", "there is no such file; look at the list of them")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
