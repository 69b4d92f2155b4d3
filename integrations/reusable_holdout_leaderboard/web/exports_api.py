"""The API of tables: boards and submissions as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from reusable_holdout_leaderboard.competition.exports import board_csv, final_csv, submissions_csv
from reusable_holdout_leaderboard.web.parameters import Admin, Epoch, Here, Ours, boards_of, refusals
from reusable_holdout_leaderboard.web.security import Problem

if TYPE_CHECKING:
    from reusable_holdout_leaderboard.competition import Competition
    from reusable_holdout_leaderboard.store.records import FinalStanding

__all__ = ["EXPORTS", "final_of", "submissions_table", "table_of"]

EXPORTS = APIRouter(tags=["tables"])
_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}


@EXPORTS.get("/board.csv", response_class=Response, responses={**_CSV, **refusals(400, 404, 422, 429)})
async def board(request: Request, competition: Here, epoch: Epoch = None) -> Response:
    """Board as CSV, without numbers while the competition is blind."""
    content = await boards_of(request).run(lambda: board_csv(competition.board(epoch=epoch)))
    return table_of(content, f"{competition.slug}-board")


@EXPORTS.get("/final.csv", response_class=Response, responses={**_CSV, **refusals(400, 404, 422, 429)})
async def final(request: Request, competition: Here) -> Response:
    """Final standings as CSV, once they are made, with all metrics that the rules name."""
    content = await boards_of(request).run(lambda: final_csv(final_of(competition), competition.rules.also))
    return table_of(content, f"{competition.slug}-final")


@EXPORTS.get(
    "/me/submissions.csv", response_class=Response, responses={**_CSV, **refusals(400, 401, 404, 422, 429)}
)
async def own(request: Request, competition: Here, team: Ours) -> Response:
    """Submissions of the team as CSV."""
    content = await boards_of(request).run(submissions_table, competition, team.id)
    return table_of(content, f"{competition.slug}-submissions")


@EXPORTS.get(
    "/admin/submissions.csv",
    dependencies=[Admin],
    response_class=Response,
    responses={**_CSV, **refusals(400, 401, 404, 422, 429)},
)
async def everything(request: Request, competition: Here) -> Response:
    """All submissions as CSV, also while the competition is blind."""
    content = await boards_of(request).run(submissions_table, competition, None)
    return table_of(content, f"{competition.slug}-all-submissions")


def final_of(competition: Competition) -> list[FinalStanding]:
    """Final standings.

    Raises
    ------
    Problem
        If they are not made yet.
    """
    if not competition.status().final:
        raise Problem(404, "no_final", "the final standings are not made yet")
    return competition.final_standings()


def table_of(content: bytes, name: str) -> Response:
    """CSV that a browser keeps as a file."""
    named = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=named)


def submissions_table(competition: Competition, team_id: int | None) -> bytes:
    """Submissions of a team, as it may see them; of all teams with what is hidden."""
    reveal = team_id is None
    return submissions_csv(
        lambda after, most: competition.submissions(team_id, after=after, limit=most, reveal=reveal)
    )
