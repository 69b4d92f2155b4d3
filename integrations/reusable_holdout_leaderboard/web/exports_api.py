"""The API of tables: boards and submissions as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import FinalStanding, Standing, Submission
from reusable_holdout_leaderboard.web.requests import Admin, Epoch, Here, Ours, boards_of, refusals
from reusable_holdout_leaderboard.web.security import Problem

__all__ = ["EXPORTS", "final_csv", "final_of", "submissions_table", "table_of"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for more than text
_PAGE = 5_000
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


# ---- tables


def board_csv(standings: Sequence[Standing]) -> bytes:
    """Board in its order; what is hidden is empty."""
    return _table(Standing._fields, standings)


def final_csv(standings: Sequence[FinalStanding], also: Sequence[str]) -> bytes:
    """Final standings in their order, each of the other metrics with its interval."""
    names = [name for name in FinalStanding._fields if name != "also"]
    others = [(name, end) for name in also for end in ("value", "low", "high")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, *(name if end == "value" else f"{name}_{end}" for name, end in others)])
    for one in standings:
        shown = [one.also.get(name, {}).get(end) for name, end in others]
        writer.writerow([*(_cell(getattr(one, name)) for name in names), *map(_cell, shown)])
    return text.getvalue().encode()


def submissions_csv(page: Callable[[int, int], Sequence[Submission]]) -> bytes:
    """Submissions, the oldest first.

    Parameters
    ----------
    page : callable
        Submissions after a number, so many at most.
    """
    rows: list[Submission] = []
    while found := page(rows[-1].id if rows else 0, _PAGE):
        rows += found
    return _table([name for name in Submission._fields if name != "replayed"], rows)


def _table(names: Sequence[str], rows: Sequence[Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(getattr(row, name)) for name in names] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Value of a cell: none is empty, times are ISO 8601, and no name is a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
