"""The rows of a board. Teams that cannot be told apart are shown as tied; neighbours are compared row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from reusable_holdout.guard.boards import Pairs
from reusable_holdout_leaderboard.competition.ties import Places, key_in_tie, ties_of
from reusable_holdout_leaderboard.files.forms import differing_rows
from reusable_holdout_leaderboard.store.database import as_moment
from reusable_holdout_leaderboard.store.lists import Best
from reusable_holdout_leaderboard.store.records import Standing

__all__ = ["Neighbours", "board_of", "hidden_board_of"]

_MOST_COUNTED = 100  # pairs of files that are compared for one view of the board; the next view continues
_MOST_KEPT = 20_000  # comparisons of pairs that stay in memory


def board_of(
    bests: Sequence[Best], *, greater_is_better: bool, better: Callable[[Best, Best], bool] | None = None
) -> list[Standing]:
    """Return the rows of the board, the best first.

    Teams are ordered by the best rank that their intervals allow. Among teams with the same best rank,
    :func:`key_in_tie` decides. So a team with an accepted claim never stands above the measured lead that it is tied
    with. Teams that are not certified come last.

    Parameters
    ----------
    bests : sequence of Best
    greater_is_better : bool
    better : callable, optional
        Function of two neighbours whose intervals overlap. It returns True if the first one is nevertheless certified
        to be better.
    """
    sign = -1 if greater_is_better else 1
    measured = [one for one in bests if one.measured is not None]
    lead = min(measured, key=lambda one: sign * cast("float", one.measured)).team_id if measured else None

    def order(one: Best, place: Places | None) -> tuple[float, ...]:
        return key_in_tie(
            0 if place is None else place.rank,
            leads=one.team_id == lead,
            worth=-sign * one.value,
            measured=one.measured == one.value,
            at=one.best_at,
            submission_id=one.submission_id,
        )

    certified = [one for one in bests if one.certified]
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
    others = sorted((one for one in bests if not one.certified), key=lambda one: order(one, None))
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
    """Return the rows of a blind competition's board: teams sorted by name, with only their numbers of submissions."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("rank", "rank_last", "value", "low", "high", "charges", "best_at", "query", "submission_id")
    )
    rows = sorted(bests, key=lambda one: one.team.casefold())
    return [
        Standing(team=one.team, team_id=one.team_id, submissions=one.submissions, **nothing) for one in rows
    ]


class Neighbours:
    """Comparisons of neighbours on the board.

    Two submissions are compared by the guard's answers and by the number of rows that they predict differently. The
    fewer rows differ, the smaller a certified difference can be. The number is computed once for each pair in a
    process.

    Parameters
    ----------
    pairs : Pairs
        Certified comparisons, from the guard.
    contents : callable
        Returns the stored predictions of submissions, by number.
    """

    def __init__(self, pairs: Pairs, contents: Callable[[Sequence[int]], dict[int, bytes]]) -> None:
        self._pairs, self._contents = pairs, contents
        self._counts: dict[tuple[int, int], int | None] = {}

    def better(self, bests: Sequence[Best]) -> Callable[[Best, Best], bool]:
        """Return a function of two standings, which returns True if the first one is certified to be better.

        Stored predictions are read only if the answers alone leave the result open.

        Parameters
        ----------
        bests : sequence of Best
            All standings that the function may be called with.
        """
        told = self._pairs.reached([one.query for one in bests])
        known = {one.submission_id: ends for one, ends in zip(bests, told, strict=True)}
        left, pairs = _MOST_COUNTED, self._pairs

        def is_better(first: Best, second: Best) -> bool:
            nonlocal left
            one, other = known[first.submission_id], known[second.submission_id]
            if one is None or other is None or not pairs.apart(one, other) or not pairs.may_lead(one, other):
                return False
            names = (first.submission_id, second.submission_id)
            names = names if names[0] < names[1] else names[::-1]
            if names not in self._counts:
                if not left:
                    return False
                left -= 1
                self._count(names)
            rows = self._counts[names]
            return rows is not None and pairs.leads(one, other, rows)

        return is_better

    def _count(self, names: tuple[int, int]) -> None:
        if len(self._counts) >= _MOST_KEPT:
            self._counts.clear()
        found = self._contents(names)
        both = [found[name] for name in names if name in found]
        self._counts[names] = differing_rows(*both) if len(both) == 2 else None
