"""The JSON API: what everyone may read, and what teams send."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, TypeAdapter

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import Team
from reusable_holdout_leaderboard.web.admin_api import ADMIN
from reusable_holdout_leaderboard.web.evaluating import evaluate as ask
from reusable_holdout_leaderboard.web.exports_api import EXPORTS, final_of
from reusable_holdout_leaderboard.web.files_api import FILES
from reusable_holdout_leaderboard.web.once import answer_once, sample_of
from reusable_holdout_leaderboard.web.requests import (
    After,
    Epoch,
    Here,
    Limit,
    Number,
    Ours,
    Page,
    Rows,
    boards_of,
    form_body,
    intake_of,
    json_body,
    named,
    parsed,
    refusals,
)
from reusable_holdout_leaderboard.web.security import Problem, address_of
from reusable_holdout_leaderboard.web.services import Boards
from reusable_holdout_leaderboard.web.wire import (
    EvaluateBody,
    EventAnswer,
    FinalAnswer,
    PicksBody,
    RankAnswer,
    SignUpBody,
    StandingAnswer,
    StatusAnswer,
    SubmissionAnswer,
    TeamAnswer,
    TokenAnswer,
    as_rows,
    history_rows,
    several,
)
from reusable_holdout_leaderboard.web.witnesses import WITNESS

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.routing import BaseRoute

__all__ = ["add_api"]

_READ = (400, 404, 422, 429)
_OWN = (*_READ, 401)
_SENT = (*_OWN, 408, 409, 413, 415)
_STANDINGS, _RANKS = (TypeAdapter(several(one)) for one in (StandingAnswer, RankAnswer))
_PUBLIC = APIRouter(tags=["everyone"], responses=refusals(*_READ))
_TEAMS = APIRouter(tags=["teams"])


def add_api(app: FastAPI) -> None:
    """Mount the API: for the server's own competition, and for each by its name."""
    app.router.routes.extend(_routes())


@cache  # to put together what each address takes and gives costs a fifth of a second, and no server's differ
def _routes() -> list[BaseRoute]:
    api = APIRouter(prefix="/api/v1")
    for router in (_PUBLIC, _TEAMS, ADMIN, EXPORTS, FILES):
        api.include_router(router)
        api.include_router(router, prefix="/c/{slug}", dependencies=[Depends(named)])
    api.include_router(WITNESS)
    return api.routes


# ---- for everyone


@_PUBLIC.get("/competition")
async def competition(request: Request, competition: Here) -> dict[str, Any]:
    """Rules, metric, plan of the guard, and form of a submission."""
    return await boards_of(request).run(_about, competition)


@_PUBLIC.get("/board", response_model=several(StandingAnswer))
async def board(
    request: Request,
    competition: Here,
    epoch: Epoch = None,
    after: Rows = 0,
    limit: Page = None,
    team: Number = None,
) -> Any:
    """Standings, the best first; without numbers while the competition is blind.

    All of them; or with `limit` a page, after so many rows, of which the header Link names the next; or one team's.
    """
    if not after and limit is None and team is None:
        call = partial(_listed, partial(competition.board, epoch=epoch), _STANDINGS)
        return answer_once(request, await kept(request, competition, ("board", epoch), call))
    rows = await kept(request, competition, ("board's rows", epoch), partial(competition.board, epoch=epoch))
    last = len(rows) if limit is None else after + limit
    chosen = [one for one in rows if one.team_id == team] if team is not None else rows[after:last]
    more = team is None and last < len(rows)
    headers = {"Link": f'<?after={last}&limit={limit}>; rel="next"'} if more else {}
    return answer_once(request, _dumped(chosen, _STANDINGS), headers=headers)


@_PUBLIC.get("/status", response_model=StatusAnswer)
async def status(request: Request, competition: Here) -> Any:
    """Budget, halts, and the revision, which changes when anything else does."""
    return (await boards_of(request).run(competition.status))._asdict()


@_PUBLIC.get("/history")
async def history(
    request: Request, competition: Here, after: After = 0, limit: Limit = 1_000, epoch: Epoch = None
) -> list[dict[str, Any]]:
    """Everything the guard has released, in order, after a question's number; empty while blind."""
    boards = boards_of(request)
    return await boards.run(_history, boards, competition, after, limit, epoch)


@_PUBLIC.get("/rank-history", response_model=several(RankAnswer))
async def rank_history(request: Request, competition: Here, epoch: Epoch = None, team: Number = None) -> Any:
    """Places over time of the teams that are first now, and of one more; some hundred points; empty while blind."""
    call = partial(_listed, partial(competition.rank_history, epoch=epoch, team_id=team), _RANKS)
    if team is not None:  # of a thousand teams' charts none is kept
        return answer_once(request, await boards_of(request).run(call))
    return answer_once(request, await kept(request, competition, ("rank history", epoch), call))


@_PUBLIC.get("/final", response_model=several(FinalAnswer))
async def final(request: Request, competition: Here) -> Any:
    """Final standings, once they are made."""
    return as_rows(await boards_of(request).run(final_of, competition))


@_PUBLIC.get(
    "/sample",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def sample(request: Request, competition: Here, after: After = 0) -> Response:
    """A file that fits, as CSV: the rows in order, and one prediction for all of them.

    Of many rows it has those of one page, after so many; the header Link names the next one.
    """
    content, following = await boards_of(request).run(sample_of, competition, after)
    headers = {} if following is None else {"Link": f'<?after={following}>; rel="next"'}
    return answer_once(request, content, media="text/csv; charset=utf-8", headers=headers)


@_PUBLIC.get(
    "/events",
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    response_model=several(EventAnswer),
)
async def events(request: Request, competition: Here, after: After = 0, limit: Limit = 100) -> Any:
    """What happened after a revision; or with ``Accept: text/event-stream`` a stream of revisions."""
    if "text/event-stream" in request.headers.get("accept", ""):
        stream = request.app.state.feed.stream(competition, address_of(request))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    return as_rows(await boards_of(request).run(partial(competition.events, after=after, limit=limit)))


# ---- for teams


class EvaluateAnswer(BaseModel):
    """Answers, in the order of the questions, and what stopped the others.

    `charges_left` are those of the whole competition after the last answer; null while it is blind.
    """

    submissions: list[SubmissionAnswer]  # type: ignore[valid-type]
    charges_left: int | None
    stopped: dict[str, Any] | None


@_TEAMS.post(
    "/teams",
    status_code=201,
    responses=refusals(*_SENT),
    openapi_extra=json_body(SignUpBody),
    response_model=TokenAnswer,
)
async def sign_up(request: Request, competition: Here) -> Any:
    """Sign up as a team and get its token, where the rules let teams do so."""
    boards = boards_of(request)
    sender = intake_of(request).newcomer(request, "sign-up")
    body = parsed(await intake_of(request).json(request, sender), SignUpBody)
    return await boards.run(_signed_up, competition, body)


@_TEAMS.get("/me", responses=refusals(*_OWN), response_model=TeamAnswer)
async def me(team: Ours) -> Any:
    """Whose token it is."""
    return team._asdict()


@_TEAMS.get("/me/submissions", responses=refusals(*_OWN), response_model=several(SubmissionAnswer))
async def my_submissions(
    request: Request, competition: Here, team: Ours, after: After = 0, limit: Limit = 100, epoch: Epoch = None
) -> Any:
    """The team's submissions, the oldest first."""
    call = partial(competition.submissions, team.id, after=after, limit=limit, epoch=epoch)
    return as_rows(await boards_of(request).run(call))


@_TEAMS.get("/me/picks", responses=refusals(*_OWN), response_model=several(SubmissionAnswer))
async def my_picks(request: Request, competition: Here, team: Ours) -> Any:
    """What the team has picked for the final standings; nothing if its best ones are entered."""
    return as_rows(await boards_of(request).run(competition.picks, team.id))


@_TEAMS.post(
    "/me/picks",
    responses=refusals(*_SENT),
    openapi_extra=json_body(PicksBody),
    response_model=several(SubmissionAnswer),
)
async def pick(request: Request, competition: Here, team: Ours) -> Any:
    """Enter these submissions for the final standings, and no others."""
    boards = boards_of(request)
    body = parsed(await intake_of(request).json(request, intake_of(request).team(team)), PicksBody)
    return as_rows(await boards.run(competition.pick, team.id, body.submissions))


@_TEAMS.post(
    "/submissions",
    status_code=201,
    responses=refusals(*_SENT),
    openapi_extra=form_body(claimed={"type": "string"}, anew={"type": "string", "enum": ["", "yes"]}),
    response_model=SubmissionAnswer,
)
async def submit(request: Request, competition: Here, team: Ours) -> Any:
    """Send a file, CSV or Parquet; `claimed` is the team's own validation score.

    With `anew` "yes", on a board of claims, predictions that were answered before are asked about again, at the team's
    own expense.
    """
    boards = boards_of(request)
    async with intake_of(request).large(intake_of(request).team(team)) as sender:
        form = await intake_of(request).form(request, sender, files=1)
        claimed, content = claimed_score(form.fields.get("claimed", "")), form.file()
        found = await boards.submit(
            competition, team, content, filename=form.filename, claimed=claimed, anew=asked_anew(form.fields)
        )
    return found._asdict()


@_TEAMS.post(
    "/evaluate",
    responses=refusals(*_SENT),
    openapi_extra=json_body(EvaluateBody),
    response_model=EvaluateAnswer,
)
async def evaluate(request: Request, competition: Here, team: Ours) -> Any:
    """Ask about predictions in the order of the competition's rows; RemoteHoldout does."""
    boards = boards_of(request)
    async with intake_of(request).large(intake_of(request).team(team)) as sender:
        content = await intake_of(request).json(request, sender)
        return await boards.padded(partial(_asked, boards, competition, team, content))


def asked_anew(fields: Mapping[str, str]) -> bool:
    """Whether a form asks anew.

    Raises
    ------
    Problem
        422.
    """
    given = fields.get("anew", "")
    if given not in {"", "yes"}:
        raise Problem(422, "bad_input", 'anew must be "yes" or left out; nothing was asked')
    return given == "yes"


def claimed_score(text: str) -> float | None:
    """A validation score as forms send it; None if it is empty.

    Raises
    ------
    Problem
        422.
    """
    try:
        return float(text) if text.strip() else None
    except ValueError:
        problem = Problem(422, "bad_input", "a claimed score must be a number; nothing was asked")
    raise problem


async def kept(request: Request, competition: Competition, name: Hashable, call: Callable[[], Any]) -> Any:
    """What a call gives, which is made again when the board has changed."""
    boards = boards_of(request)
    return await boards.run(boards.at_revision, competition, name, call)


# ---- in a thread


def _about(competition: Competition) -> dict[str, Any]:
    expected, metric, plan = competition.expected, competition.metric, competition.plan
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
        "plan": plan.record(),
        "start": competition.start,
    }


def _asked(boards: Boards, competition: Competition, team: Team, content: bytes) -> dict[str, Any]:
    asked = boards.question(competition, content)
    boards.take_submission(team, len(asked.names))
    return ask(competition, team, asked)


def _history(
    boards: Boards, competition: Competition, after: int, limit: int, epoch: int | None
) -> list[dict[str, Any]]:
    call = partial(competition.history, epoch=epoch)
    found = boards.at_revision(competition, ("history", epoch), call)
    return history_rows(found[found["query"] > after].iloc[:limit])


def _signed_up(competition: Competition, body: SignUpBody) -> TokenAnswer:
    token = competition.sign_up(body.name, body.code)
    team = competition.authenticate(token)
    return TokenAnswer(team=body.name if team is None else team.name, token=token)


def _listed(call: Callable[[], Any], kind: TypeAdapter[Any]) -> bytes:
    return _dumped(call(), kind)


def _dumped(found: Any, kind: TypeAdapter[Any]) -> bytes:
    return kind.dump_json(kind.validate_python(as_rows(found)))
