"""Places on a board: ties are shown as ties."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout_leaderboard.store.records import Standing
from reusable_holdout_leaderboard.store.rows import as_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout_leaderboard.store.rows import Best

__all__ = ["Places", "board_of", "hidden_board_of", "places_of"]


class Places(NamedTuple):
    """First and last place a team can have."""

    rank: int
    rank_last: int


def places_of(intervals: Sequence[tuple[float, float]], *, greater_is_better: bool) -> list[Places]:
    """Places that teams can have, by their intervals.

    If all intervals contain the population values, every team's true place is among those it gets.

    Parameters
    ----------
    intervals : sequence of (low, high)
        One for each team.
    greater_is_better : bool

    Examples
    --------
    >>> places_of([(0.8, 0.9), (0.5, 0.6), (0.55, 0.85)], greater_is_better=True)
    [Places(rank=1, rank_last=2), Places(rank=2, rank_last=3), Places(rank=1, rank_last=3)]
    """
    if not greater_is_better:
        intervals = [(-high, -low) for low, high in intervals]
    lows, highs = (sorted(ends) for ends in zip(*intervals, strict=True)) if intervals else ([], [])
    teams = len(intervals)
    return [
        Places(1 + teams - bisect_right(lows, high), teams - bisect_left(highs, low))
        for low, high in intervals
    ]


def board_of(bests: Sequence[Best], *, greater_is_better: bool) -> list[Standing]:
    """Board: the best value first, of equal ones the earlier."""
    better = -1 if greater_is_better else 1
    rows = sorted(bests, key=lambda one: (better * one.value, one.best_at, one.submission_id))
    places = places_of([(one.low, one.high) for one in rows], greater_is_better=greater_is_better)
    return [
        Standing(
            rank=place.rank,
            rank_last=place.rank_last,
            team=one.team,
            team_id=one.team_id,
            value=one.value,
            low=one.low,
            high=one.high,
            submissions=one.submissions,
            charges=one.charges,
            best_at=as_moment(one.best_at),
            query=one.query,
            submission_id=one.submission_id,
        )
        for place, one in zip(places, rows, strict=True)
    ]


def hidden_board_of(bests: Sequence[Best]) -> list[Standing]:
    """Board of a blind competition: who takes part, by name, and how often."""
    nothing = dict.fromkeys(
        ("rank", "rank_last", "value", "low", "high", "charges", "best_at", "query", "submission_id")
    )
    rows = sorted(bests, key=lambda one: one.team.casefold())
    return [
        Standing(team=one.team, team_id=one.team_id, submissions=one.submissions, **nothing) for one in rows
    ]
