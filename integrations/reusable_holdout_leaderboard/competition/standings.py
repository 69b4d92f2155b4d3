"""Places on a board: ties are shown as ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from reusable_holdout_leaderboard.competition.ties import Places, key_in_tie, ties_of
from reusable_holdout_leaderboard.store.records import Standing
from reusable_holdout_leaderboard.store.rows import Best, as_moment

__all__ = ["board_of", "hidden_board_of"]


def board_of(
    bests: Sequence[Best],
    *,
    greater_is_better: bool,
    claims: bool = False,
    better: Callable[[Best, Best], bool] | None = None,
) -> list[Standing]:
    """Return the board: the best value first, of equal ones the earlier.

    A board of claims is in the order of its certified ties; :func:`key_in_tie` says what decides inside a tie. So no
    claim stands above the measured lead that it is tied with. Teams that are not certified come last. Neighbours whose
    intervals overlap are compared by `better`, which is true if the first is certified to be better.
    """
    sign = -1 if greater_is_better else 1
    measured = [one for one in bests if claims and one.measured is not None]
    lead = min(measured, key=lambda one: sign * cast("float", one.measured)).team_id if measured else None

    def order(one: Best, place: Places | None) -> tuple[float, ...]:
        if not claims:
            return (sign * one.value, one.best_at, one.submission_id)
        return key_in_tie(
            0 if place is None else place.rank,
            leads=one.team_id == lead,
            worth=-sign * one.value,
            measured=one.measured == one.value,
            at=one.best_at,
            submission_id=one.submission_id,
        )

    certified = [one for one in bests if one.certified is not False]
    ties = ties_of(
        [(one.low, one.high) for one in certified],
        greater_is_better=greater_is_better,
        key=lambda number, place: order(certified[number], place),
        better=None if better is None else lambda one, other: better(certified[one], certified[other]),
    )
    rows = [
        _standing(certified[number], ties.places[number])._replace(
            leads=certified[number].team_id == lead, better_than_next=number in ties.better_than_next
        )
        for number in ties.order
    ]
    others = sorted((one for one in bests if one.certified is False), key=lambda one: order(one, None))
    return rows + [_standing(one, None) for one in others]


def _standing(one: Best, place: Places | None) -> Standing:
    return Standing(
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
    )


def hidden_board_of(bests: Sequence[Best]) -> list[Standing]:
    """Board of a blind competition: who takes part, by name, and how often."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("rank", "rank_last", "value", "low", "high", "charges", "best_at", "query", "submission_id")
    )
    rows = sorted(bests, key=lambda one: one.team.casefold())
    return [
        Standing(team=one.team, team_id=one.team_id, submissions=one.submissions, **nothing) for one in rows
    ]
