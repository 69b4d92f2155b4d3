"""Boards, final standings and submissions as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.store.records import FinalStanding, Standing, Submission
from reusable_holdout_leaderboard.web.problems import Problem

__all__ = ["board_csv", "download", "final_csv", "final_of", "submissions_csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet evaluates text that begins with one of these
_PAGE = 5_000


def download(content: bytes, name: str) -> Response:
    """Return a response with a CSV file, which a browser saves under a name."""
    named = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=named)


def board_csv(competition: Competition, epoch: int | None = None) -> bytes:
    """Return the rows of the board as CSV. Numbers that a blind competition hides are empty."""
    return _table(Standing._fields, (one._asdict() for one in competition.board(epoch=epoch)))


def final_of(competition: Competition) -> list[FinalStanding]:
    """Return the stored final standings.

    Raises
    ------
    Problem
        404 if the final standings have not been made yet.
    """
    if not competition.status().final:
        raise Problem(404, "no_final", "the final standings are not made yet")
    return competition.final_standings()


def final_csv(competition: Competition) -> bytes:
    """Return the final standings as CSV, with a value and an interval for each additional metric."""
    names = [name for name in FinalStanding._fields if name != "also"]
    names += [f"{name}{end}" for name in competition.rules.also for end in ("", "_low", "_high")]
    return _table(names, map(_flat, final_of(competition)))


def _flat(one: FinalStanding) -> dict[str, Any]:
    flat = one._asdict()
    for name, found in one.also.items():
        flat |= {name: found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
    return flat


def submissions_csv(competition: Competition, team_id: int | None) -> bytes:
    """Return the submissions of a team as CSV, or those of all teams, the oldest first.

    A team does not see numbers that a blind competition hides. The list of all teams, for organisers, has them.
    """
    found: list[Submission] = []
    while page := competition.submissions(
        team_id, after=found[-1].id if found else 0, limit=_PAGE, reveal=team_id is None
    ):
        found += page
    names = [name for name in Submission._fields if name != "replayed"]
    return _table(names, (one._asdict() for one in found))


def _table(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a value as it is written to a cell.

    Times are written in ISO 8601. Text that a spreadsheet would evaluate as a formula gets an apostrophe in front.
    """
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
