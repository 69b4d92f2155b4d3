"""The JSON API of a board, for everyone and for teams."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Path, Request
from fastapi.responses import FileResponse, Response
from pydantic import TypeAdapter
from starlette.routing import BaseRoute

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import (
    Event,
    FinalStanding,
    PublicFile,
    RankPoint,
    Standing,
    Status,
    Submission,
    Token,
)
from reusable_holdout_leaderboard.web.admin import ADMIN
from reusable_holdout_leaderboard.web.boards import (
    After,
    Boards,
    Epoch,
    Here,
    Limit,
    Number,
    Ours,
    boards_of,
    named,
)
from reusable_holdout_leaderboard.web.intake import SENT, SUBMISSIONS, intake_of, parsed
from reusable_holdout_leaderboard.web.problems import Problem
from reusable_holdout_leaderboard.web.tables import board_csv, download, final_csv, final_of
from reusable_holdout_leaderboard.web.wire import (
    MyTeam,
    PicksBody,
    SignUpBody,
    as_json,
    history_rows,
    json_body,
    model_of,
    refusals,
)

__all__ = ["add_api"]

_READ = (400, 404, 422, 429)
_OWN = (*_READ, 401)
_several: Any = [list[model_of(one)] for one in (Standing, RankPoint)]  # type: ignore[misc]
_STANDINGS, _RANKS = map(TypeAdapter, _several)
_CSV: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
}
_PUBLIC = APIRouter(tags=["everyone"], responses=refusals(*_READ))
_TEAMS = APIRouter(tags=["teams"])
_MINE: dict[str, Any] = {"responses": refusals(*_OWN), "response_model": list[model_of(Submission)]}  # type: ignore[misc]


def add_api(app: FastAPI) -> None:
    """Add the API's routes to an application: for the server's own competition, and for each competition by name."""
    app.router.routes.extend(_routes())


@cache  # building the routes takes a fifth of a second, and they are the same for all servers
def _routes() -> list[BaseRoute]:
    api = APIRouter(prefix="/api/v1")
    for router in (_PUBLIC, _TEAMS, SUBMISSIONS, ADMIN):
        api.include_router(router)
        api.include_router(router, prefix="/c/{slug}", dependencies=[Depends(named)])
    return api.routes


# ---- for everyone


@_PUBLIC.get("/competition")
async def competition(request: Request, competition: Here) -> dict[str, Any]:
    """Return the competition's rules, its metric, the guard's plan, and the form that a submission must have."""
    return await boards_of(request).run(_about, competition)


@_PUBLIC.get("/board", response_model=list[model_of(Standing)])  # type: ignore[misc]
async def board(request: Request, competition: Here, epoch: Epoch = None) -> Any:
    """Return the standings, the best team first. While the competition is blind, there are no numbers."""
    call = partial(_listed, partial(competition.board, epoch=epoch), _STANDINGS)
    return _once(request, await _kept(request, competition, ("board", epoch), call))


@_PUBLIC.get("/board.csv", **_CSV)
async def board_table(request: Request, competition: Here, epoch: Epoch = None) -> Response:
    """Return the standings as CSV. While the competition is blind, there are no numbers."""
    content = await boards_of(request).run(board_csv, competition, epoch)
    return download(content, f"{competition.slug}-board")


@_PUBLIC.get("/status", response_model=model_of(Status))
async def status(request: Request, competition: Here) -> Any:
    """Return the state of the competition: its budget, its halts, and the revision, which every change increases."""
    return as_json(await boards_of(request).run(competition.status))


@_PUBLIC.get("/history")
async def history(
    request: Request, competition: Here, after: After = 0, limit: Limit = 1_000, epoch: Epoch = None
) -> list[dict[str, Any]]:
    """Return the guard's released answers with numbers above `after`, in order. Empty if the competition is blind."""
    boards = boards_of(request)
    return await boards.run(_history, boards, competition, after, limit, epoch)


@_PUBLIC.get("/rank-history", response_model=list[model_of(RankPoint)])  # type: ignore[misc]
async def rank_history(request: Request, competition: Here, epoch: Epoch = None, team: Number = None) -> Any:
    """Return the ranks over time of the top teams, and of one more team. Empty while the competition is blind."""
    call = partial(_listed, partial(competition.rank_history, epoch=epoch, team_id=team), _RANKS)
    if team is not None:  # not stored, because each team may ask for its own chart
        return _once(request, await boards_of(request).run(call))
    return _once(request, await _kept(request, competition, ("rank history", epoch), call))


@_PUBLIC.get("/final", response_model=list[model_of(FinalStanding)])  # type: ignore[misc]
async def final(request: Request, competition: Here) -> Any:
    """Return the final standings, or an error before they are made."""
    return as_json(await boards_of(request).run(final_of, competition))


@_PUBLIC.get("/final.csv", **_CSV)
async def final_table(request: Request, competition: Here) -> Response:
    """Return the final standings as CSV, with all metrics that the rules name, or an error before they are made."""
    return download(await boards_of(request).run(final_csv, competition), f"{competition.slug}-final")


@_PUBLIC.get("/sample", **_CSV)
async def sample(request: Request, competition: Here, after: After = 0) -> Response:
    """Return a CSV file that has the form of a submission, with the same prediction for all rows.

    The file comes in pages. A page begins after the first `after` rows, and the header Link names the next page.
    """
    expected = competition.expected
    content = await boards_of(request).run(partial(expected.sample, after=after))
    following = after + expected.sample_rows
    headers = {"Link": f'<?after={following}>; rel="next"'} if following < expected.rows else {}
    return _once(request, content, media="text/csv; charset=utf-8", headers=headers)


@_PUBLIC.get("/events", response_model=list[model_of(Event)])  # type: ignore[misc]
async def events(request: Request, competition: Here, after: After = 0, limit: Limit = 100) -> Any:
    """Return the events with revisions above `after`. To notice changes, repeat this request: it is the cheapest."""
    return as_json(await boards_of(request).run(partial(competition.events, after=after, limit=limit)))


@_PUBLIC.get("/files", response_model=list[model_of(PublicFile)])  # type: ignore[misc]
async def files(request: Request, competition: Here) -> Any:
    """Return the names and sizes of the competition's public files."""
    return as_json(await boards_of(request).run(competition.public_files))


@_PUBLIC.get(
    "/files/{name}",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def file(
    request: Request, competition: Here, name: Annotated[str, Path(max_length=100, description="of the file")]
) -> FileResponse:
    """Return one public file. A browser saves the file, and never shows it as a page of this server."""
    path = await boards_of(request).run(competition.public_file, name)
    if path is None:
        raise Problem(404, "no_file", "there is no such file; look at the list of files")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


# ---- for teams


@_TEAMS.post(
    "/teams",
    status_code=201,
    responses=refusals(*SENT),
    openapi_extra=json_body(SignUpBody),
    response_model=model_of(Token),
)
async def sign_up(request: Request, competition: Here) -> Any:
    """Sign up as a new team, if the rules allow it, and return the team's token."""
    sender = intake_of(request).newcomer(request, "sign-up")
    body = parsed(await intake_of(request).json(request, sender), SignUpBody)
    return await boards_of(request).run(_signed_up, competition, body)


@_TEAMS.get("/me", responses=refusals(*_OWN), response_model=MyTeam)
async def me(request: Request, competition: Here, team: Ours) -> Any:
    """Return the team that the token belongs to, and the number of charges that it has left."""
    left = await boards_of(request).run(competition.charges_left_of, team.id)
    return {**team._asdict(), "charges_left": left}


@_TEAMS.get("/me/submissions", **_MINE)
async def my_submissions(
    request: Request, competition: Here, team: Ours, after: After = 0, limit: Limit = 100, epoch: Epoch = None
) -> Any:
    """Return the team's submissions, the oldest first."""
    call = partial(competition.submissions, team.id, after=after, limit=limit, epoch=epoch)
    return as_json(await boards_of(request).run(call))


@_TEAMS.get("/me/picks", **_MINE)
async def my_picks(request: Request, competition: Here, team: Ours) -> Any:
    """Return the submissions that the team has picked for the final standings. Without picks, its best are entered."""
    return as_json(await boards_of(request).run(competition.picks, team.id))


@_TEAMS.post("/me/picks", **_MINE | {"responses": refusals(*SENT)}, openapi_extra=json_body(PicksBody))
async def pick(request: Request, competition: Here, team: Ours) -> Any:
    """Choose the submissions with which the team enters the final standings. They replace an earlier choice."""
    body = parsed(await intake_of(request).json(request, intake_of(request).team(team)), PicksBody)
    return as_json(await boards_of(request).run(competition.pick, team.id, body.submissions))


# ---- answers that are stored because many readers get the same


async def _kept(request: Request, competition: Competition, name: Hashable, call: Callable[[], Any]) -> Any:
    """Return the result of a call. The result is stored and returned again until the board changes."""
    boards = boards_of(request)
    return await boards.run(boards.at_revision, competition, name, call)


def _once(
    request: Request,
    content: bytes,
    *,
    media: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response with content and its ETag, or status 304 if the reader has the same content already."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    told = {**(headers or {}), "ETag": tag, "Cache-Control": "no-cache"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=told)
    return Response(content, media_type=media, headers=told)


# ---- functions that run in a thread


def _about(competition: Competition) -> dict[str, Any]:
    expected, metric = competition.expected, competition.metric
    return {
        "rules": competition.rules.as_dict(),
        "metric": {
            "name": metric.name,
            "lower": metric.lower,
            "upper": metric.upper,
            "greater_is_better": metric.greater_is_better,
            "response": metric.response,
        },
        "submission": {
            "rows": expected.rows,
            "columns": expected.header(),
            "id_column": expected.id_column,
            "prediction_columns": list(expected.columns),
            "classes": None if expected.classes is None else list(expected.classes),
            "max_bytes": expected.max_bytes,
        },
        "plan": competition.plan.record(),
    }


def _history(
    boards: Boards, competition: Competition, after: int, limit: int, epoch: int | None
) -> list[dict[str, Any]]:
    found = boards.at_revision(competition, ("history", epoch), partial(competition.history, epoch=epoch))
    return history_rows(found[found["query"] > after].iloc[:limit])


def _signed_up(competition: Competition, body: SignUpBody) -> dict[str, str]:
    token = competition.sign_up(body.name, body.code)
    team = competition.authenticate(token)
    return {"team": body.name if team is None else team.name, "token": token}


def _listed(call: Callable[[], Any], kind: TypeAdapter[Any]) -> bytes:
    return kind.dump_json(kind.validate_python(as_json(call())))
