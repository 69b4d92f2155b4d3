"""Places on a board: ties are shown as ties."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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


def board_of(bests: Sequence[Best], *, greater_is_better: bool, claims: bool = False) -> list[Standing]:
    """Board: the best value first, of equal ones the earlier.

    Of claims nobody is above others for what he claims: whoever can have the better place comes first, of those that
    can have the same the one that leads, then the earlier; and last whoever is not certified.
    """
    better = -1 if greater_is_better else 1
    certified = [one for one in bests if one.certified is not False]
    ends = [(one.low, one.high) for one in certified]
    places = dict(
        zip(
            (one.team_id for one in certified),
            places_of(ends, greater_is_better=greater_is_better),
            strict=True,
        )
    )
    measured = [one for one in bests if claims and one.measured is not None]
    lead = min(measured, key=lambda one: better * cast("float", one.measured)).team_id if measured else None

    def order(one: Best) -> tuple[float, ...]:
        if not claims:
            return (better * one.value, one.best_at, one.submission_id)
        place = places.get(one.team_id)
        rank = len(bests) if place is None else place.rank
        return (place is None, rank, one.team_id != lead, one.best_at, one.submission_id)

    rows = sorted(bests, key=order)
    return [
        Standing(
            rank=None if place is None else place.rank,
            rank_last=None if place is None else place.rank_last,
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
            certified=place is not None,
            leads=one.team_id == lead,
        )
        for one in rows
        for place in [places.get(one.team_id)]
    ]


def hidden_board_of(bests: Sequence[Best]) -> list[Standing]:
    """Board of a blind competition: who takes part, by name, and how often."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("rank", "rank_last", "value", "low", "high", "charges", "best_at", "query", "submission_id")
    )
    rows = sorted(bests, key=lambda one: one.team.casefold())
    return [
        Standing(team=one.team, team_id=one.team_id, submissions=one.submissions, **nothing) for one in rows
    ]
