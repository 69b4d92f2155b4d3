"""The JSON API for organisers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from reusable_holdout_leaderboard.actions import ACTIONS, Action, File
from reusable_holdout_leaderboard.web.boards import Admin, Here, boards_of
from reusable_holdout_leaderboard.web.intake import Upload, intake_of, parsed
from reusable_holdout_leaderboard.web.tables import download, submissions_csv
from reusable_holdout_leaderboard.web.wire import as_json, body_of, form_body, json_body, model_of, refusals

__all__ = ["ADMIN", "given_by_form"]

_ASKED = (400, 401, 404, 409, 422, 429)
_SENT = (*_ASKED, 408, 413, 415)
ADMIN = APIRouter(prefix="/admin", tags=["admin"], dependencies=[Admin])


# ---- organisers


def given_by_form(action: Action, upload: Upload) -> dict[str, Any]:
    """Return the arguments of an action, read from the fields of its form. Empty fields are left out.

    Raises
    ------
    Problem
        422 if a value does not fit.
    """
    texts: Mapping[str, str] = {name: text for name, text in upload.fields.items() if text}
    given = parsed({one.name: texts[one.name] for one in action.fields if one.name in texts}, body_of(action))
    files = {one.name: File(upload.filename, upload.file()) for one in action.fields if one.kind is File}
    return given.model_dump() | files


def _endpoint(action: Action, *, file: str | None) -> Callable[..., Awaitable[Any]]:
    async def act(request: Request, competition: Here) -> Any:
        boards, intake = boards_of(request), intake_of(request)
        given: dict[str, Any] = {}
        if file is not None:
            async with intake.large(intake.organiser()) as sender:
                given = given_by_form(action, await intake.form(request, sender, files=1))
        elif action.fields:
            content = await intake.json(request, intake.organiser())
            given = parsed(content, body_of(action)).model_dump()
        return as_json(await boards.run(action.run, competition, **given))

    act.__doc__ = f"{action.about}."
    return act


def _add(action: Action) -> None:
    file = next((one.name for one in action.fields if one.kind is File), None)
    texts = [one.name for one in action.fields if one.kind is not File]
    body: dict[str, Any] = {}
    if action.fields:
        body = form_body(file, *texts) if file is not None else json_body(body_of(action))
    answer: Any = model_of(action.answer)
    ADMIN.add_api_route(
        f"/{action.name}",
        _endpoint(action, file=file),
        methods=["POST"],
        name=action.name,
        responses=refusals(*(_SENT if action.fields else _ASKED)),
        openapi_extra=body,
        response_model=list[answer] if action.several else answer,
    )


for _action in ACTIONS.values():
    _add(_action)


@ADMIN.get(
    "/submissions.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **refusals(*_ASKED)},
)
async def submissions(request: Request, competition: Here) -> Response:
    """Return all submissions as CSV, with the scores that a blind competition hides."""
    content = await boards_of(request).run(submissions_csv, competition, None)
    return download(content, f"{competition.slug}-all-submissions")
