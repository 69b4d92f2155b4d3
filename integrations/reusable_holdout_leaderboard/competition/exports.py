"""Tables of boards and submissions as CSV."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reusable_holdout_leaderboard.store.records import FinalStanding, Standing, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["board_csv", "final_csv", "submissions_csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for more than text
_PAGE = 5_000


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
        writer.writerow([*(_plain(getattr(one, name)) for name in names), *map(_plain, shown)])
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
    writer.writerows([_plain(getattr(row, name)) for name in names] for row in rows)
    return text.getvalue().encode()


def _plain(value: Any) -> Any:
    """Value of a cell: none is empty, times are ISO 8601, and no name is a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
