"""The API of organisers: teams, freezing, another label set, final standings."""

from __future__ import annotations

import os
import secrets
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.web.requests import (
    Admin,
    Here,
    Upload,
    boards_of,
    form_body,
    intake_of,
    json_body,
    parsed,
    refusals,
    whole_of,
)
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards
from reusable_holdout_leaderboard.web.wire import (
    DisqualifyBody,
    EventAnswer,
    FinalAnswer,
    FreezeBody,
    MergeBody,
    RulesBody,
    StandingAnswer,
    StatusAnswer,
    TeamAnswer,
    TeamBody,
    TokenAnswer,
    as_rows,
    several,
)

__all__ = ["ADMIN"]

_Model = TypeVar("_Model", bound=BaseModel)
ADMIN = APIRouter(prefix="/admin", tags=["admin"], dependencies=[Admin])
_ASKED = (400, 401, 404, 422, 429)
_SENT = (*_ASKED, 408, 409, 413, 415)
TeamId = Annotated[int, Path(ge=1, le=2**31 - 1, description="of the team")]
_FORM = form_body(early={"type": "string", "enum": ["true", "false"]}, queries={"type": "string"})


class InvitationAnswer(BaseModel):
    """An invitation code; it is shown this once."""

    code: str


class OrganisersAnswer(BaseModel):
    """Everything, also while the competition is blind."""

    status: StatusAnswer  # type: ignore[valid-type]
    board: list[StandingAnswer]  # type: ignore[valid-type]
    teams: list[TeamAnswer]  # type: ignore[valid-type]


@ADMIN.get("/status", responses=refusals(*_ASKED), response_model=OrganisersAnswer)
async def admin_status(request: Request, competition: Here) -> Any:
    """State, board and teams, also while the competition is blind."""
    return await boards_of(request).run(_everything, competition)


@ADMIN.post(
    "/teams",
    status_code=201,
    responses=refusals(*_SENT),
    openapi_extra=json_body(TeamBody),
    response_model=TokenAnswer,
)
async def add_team(request: Request, competition: Here) -> Any:
    """Add a team and get its token."""
    body = await _body(request, TeamBody)
    return await boards_of(request).run(_added, competition, body.name)


@ADMIN.post(
    "/teams/{team_id}/token",
    status_code=201,
    responses=refusals(*_ASKED),
    response_model=TokenAnswer,
)
async def renew_token(request: Request, competition: Here, team_id: int) -> Any:
    """Give a team another token; the old one is void."""
    return await boards_of(request).run(_renewed, competition, team_id)


@ADMIN.post("/invitation", status_code=201, responses=refusals(*_ASKED), response_model=InvitationAnswer)
async def invite(request: Request, competition: Here) -> Any:
    """Make an invitation code; the one before is void."""
    return InvitationAnswer(code=await boards_of(request).run(competition.invite))


@ADMIN.post(
    "/rules",
    responses=refusals(*_SENT),
    openapi_extra=json_body(RulesBody),
    response_model=several(EventAnswer),
)
async def change_rules(request: Request, competition: Here) -> Any:
    """Change rules that the guard does not rest on; the events that everyone sees."""
    body = await _body(request, RulesBody)
    return as_rows(await boards_of(request).run(competition.change_rules, body.changes))


@ADMIN.post(
    "/teams/{team_id}/name",
    responses=refusals(*_SENT),
    openapi_extra=json_body(TeamBody),
    response_model=several(TeamAnswer),
)
async def rename_team(request: Request, competition: Here, team_id: TeamId) -> Any:
    """Give a team another name; all teams."""
    body = await _body(request, TeamBody)
    await boards_of(request).run(competition.rename_team, team_id, body.name)
    return as_rows(await boards_of(request).run(competition.teams))


@ADMIN.post(
    "/teams/{team_id}/disqualify",
    responses=refusals(*_SENT),
    openapi_extra=json_body(DisqualifyBody),
    response_model=several(TeamAnswer),
)
async def disqualify(request: Request, competition: Here, team_id: TeamId) -> Any:
    """Take a team off board and final, or put it back; all teams."""
    body = await _body(request, DisqualifyBody)
    await boards_of(request).run(competition.disqualify, team_id, body.on)
    return as_rows(await boards_of(request).run(competition.teams))


@ADMIN.post(
    "/teams/{team_id}/merge",
    responses=refusals(*_SENT),
    openapi_extra=json_body(MergeBody),
    response_model=several(TeamAnswer),
)
async def merge(request: Request, competition: Here, team_id: TeamId) -> Any:
    """Let a team have what another has sent and paid for; all teams that are left."""
    body = await _body(request, MergeBody)
    await boards_of(request).run(competition.merge_teams, team_id, body.other)
    return as_rows(await boards_of(request).run(competition.teams))


@ADMIN.post(
    "/freeze", responses=refusals(*_SENT), openapi_extra=json_body(FreezeBody), response_model=StatusAnswer
)
async def freeze(request: Request, competition: Here) -> Any:
    """Take no new submissions, or take them again."""
    body = await _body(request, FreezeBody)
    await boards_of(request).run(competition.freeze, body.on)
    return await _status(request, competition)


@ADMIN.post("/unblind", responses=refusals(*_ASKED), response_model=StatusAnswer)
async def unblind(request: Request, competition: Here) -> Any:
    """Show all scores."""
    await boards_of(request).run(competition.unblind)
    return await _status(request, competition)


@ADMIN.post(
    "/rotate",
    responses=refusals(*_SENT),
    openapi_extra=_FORM,
    response_model=StatusAnswer,
)
async def rotate(request: Request, competition: Here) -> Any:
    """Go on with another label set, which is sent as a file; `early` if the guard has not halted."""
    boards = boards_of(request)
    async with intake_of(request).large(intake_of(request).organiser()) as sender:
        form = await intake_of(request).form(request, sender, files=1)
        await boards.run(_rotate, boards, competition, form)
    return await _status(request, competition)


@ADMIN.post("/final", responses=refusals(*_ASKED, 409), response_model=several(FinalAnswer))
async def final(request: Request, competition: Here) -> Any:
    """Make the final standings of a frozen competition; called again, the same."""
    found = await boards_of(request).run(competition.final_standings)
    return as_rows(found)


async def _body(request: Request, model: type[_Model]) -> _Model:
    intake = intake_of(request)
    return parsed(await intake.json(request, intake.organiser()), model)


def _everything(competition: Competition) -> Any:
    return {
        "status": competition.status(reveal=True)._asdict(),
        "board": as_rows(competition.board(reveal=True)),
        "teams": as_rows(competition.teams()),
    }


def _added(competition: Competition, name: str) -> TokenAnswer:
    token = competition.add_team(name)
    team = competition.authenticate(token)
    return TokenAnswer(team=name if team is None else team.name, token=token)


def _renewed(competition: Competition, team_id: int) -> TokenAnswer:
    name = next((team.name for team in competition.teams() if team.id == team_id), None)
    if name is None:
        raise Problem(404, "no_team", "there is no team of this number; look at the status")
    return TokenAnswer(team=name, token=competition.renew_token(team_id))


async def _status(request: Request, competition: Competition) -> Any:
    return (await boards_of(request).run(lambda: competition.status(reveal=True)))._asdict()


def _rotate(boards: Boards, competition: Competition, form: Upload) -> None:
    """Labels lie in a private file while they are read."""
    early, queries = form.fields.get("early", "false"), form.fields.get("queries", "")
    if early not in {"true", "false"} or (queries and whole_of(queries) is None):
        raise Problem(422, "bad_input", "early must be true or false, and queries a whole number")
    suffix = ".parquet" if form.filename.endswith((".parquet", ".pq")) else ".csv"
    path = boards.settings.folder.absolute() / f"uploaded-{secrets.token_hex(8)}{suffix}"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(form.file())
        competition.rotate(path, early=early == "true", queries=whole_of(queries))
    finally:
        path.unlink(missing_ok=True)
