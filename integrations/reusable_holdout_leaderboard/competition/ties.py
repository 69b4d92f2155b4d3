"""The ranks that certified intervals allow, and the order of the board.

Two teams are tied if their intervals overlap. A comparison of their files row by row may still certify that one of them
is better. Intervals and such comparisons all hold at the same time, with the stated confidence. So a conclusion from
them is certified, too: if A is better than B, and B is better than C, then A is better than C.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Places", "Ties", "key_in_tie", "places_of", "ties_of"]

_PASSES = 32  # most boards need one or two passes; neighbours that are never compared stay tied


class Places(NamedTuple):
    """The best and the worst rank that a team can have."""

    rank: int
    rank_last: int


class Ties(NamedTuple):
    """The order of a board's rows, and the ranks that they can have.

    Attributes
    ----------
    order : list of int
        Indices of the rows, from the top of the board to the bottom.
    places : list of Places
        Possible ranks of each row, by its index.
    better_than_next : set of int
        Indices of the rows that are certified to be better than the next row of the board.
    """

    order: list[int]
    places: list[Places]
    better_than_next: set[int]


def places_of(
    intervals: Sequence[tuple[float, float]],
    *,
    greater_is_better: bool,
    pairs: Sequence[tuple[int, int]] = (),
) -> list[Places]:
    """Return the best and the worst rank that each team can have.

    If all intervals contain the population values, and all pairs are right, the true rank of every team lies between
    these two ranks.

    Parameters
    ----------
    intervals : sequence of (low, high)
        Certified interval of each team.
    greater_is_better : bool
    pairs : sequence of (int, int)
        Indices of two teams; the first team is certified to be better. The pairs must not form a circle.

    Examples
    --------
    >>> places_of([(0.8, 0.9), (0.5, 0.6), (0.55, 0.85)], greater_is_better=True)
    [Places(rank=1, rank_last=2), Places(rank=2, rank_last=3), Places(rank=1, rank_last=3)]
    >>> places_of([(0.8, 0.9), (0.5, 0.6), (0.55, 0.85)], greater_is_better=True, pairs=[(0, 2)])
    [Places(rank=1, rank_last=1), Places(rank=2, rank_last=3), Places(rank=2, rank_last=3)]
    """
    if not greater_is_better:
        intervals = [(-high, -low) for low, high in intervals]
    if pairs:
        return _by_all(intervals, pairs)
    lows, highs = (sorted(ends) for ends in zip(*intervals, strict=True)) if intervals else ([], [])
    teams = len(intervals)
    return [
        Places(1 + teams - bisect_right(lows, high), teams - bisect_left(highs, low))
        for low, high in intervals
    ]


def _by_all(intervals: Sequence[tuple[float, float]], pairs: Sequence[tuple[int, int]]) -> list[Places]:
    """Return the possible ranks that follow from intervals and certified pairs together.

    One team is better than another if a chain of steps leads down to the other. A step follows a certified pair or goes
    from an interval to one that lies below it. To follow these chains, the lower end of a team's interval is raised to
    the largest lower end of the teams that pairs put below it. Its upper end is lowered to the smallest upper end of
    the teams that pairs put above it. Then intervals and pairs are compared without chains.
    """
    teams = len(intervals)
    below, above = _chains(pairs)
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    for number, others in below.items():
        lows[number] = max(intervals[one][0] for one in {number, *others})
    for number, others in above.items():
        highs[number] = min(intervals[one][1] for one in {number, *others})
    by_low, by_high = sorted(lows), sorted(highs)
    places = []
    for number in range(teams):
        better = teams - bisect_right(by_low, highs[number])
        better += sum(lows[one] <= highs[number] for one in above.get(number, ()))
        worse = bisect_left(by_high, lows[number])
        worse += sum(highs[one] >= lows[number] for one in below.get(number, ()))
        places.append(Places(1 + better, teams - worse))
    return places


def _chains(pairs: Sequence[tuple[int, int]]) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return, by team, the teams that chains of certified pairs put below it, and the teams that they put above it."""
    worse: dict[int, set[int]] = {}
    for first, second in pairs:
        worse.setdefault(first, set()).add(second)
    below: dict[int, set[int]] = {}
    for number in TopologicalSorter(worse).static_order():  # worse teams come first
        others = worse.get(number, set())
        below[number] = others.union(*(below[one] for one in others))
    above: dict[int, set[int]] = {number: set() for number in below}
    for first, ones in below.items():
        for one in ones:
            above[one].add(first)
    return below, above


def key_in_tie(
    rank: float, *, leads: bool, worth: float, measured: bool, at: float, submission_id: int
) -> tuple[float, ...]:
    """Return the key that orders the rows of a board. The row with the smallest key stands on top.

    The best possible rank decides first. Among rows with the same best rank, the measured lead stands first. Then the
    better value decides, which is either a measured value or an accepted claim. If two values are equal, a measured one
    stands above a claim. If all this is equal, the earlier submission stands above.

    Parameters
    ----------
    rank : float
        Best rank that the row can have.
    leads : bool
        True for the row with the best measured value.
    worth : float
        Value of the row, negated if smaller values are better.
    measured : bool
        True if the value was measured.
    at : float
        Time at which the row's best submission arrived, in seconds since 1970.
    submission_id : int
    """
    return (rank, not leads, -worth, not measured, at, submission_id)


def ties_of(
    intervals: Sequence[tuple[float, float]],
    *,
    greater_is_better: bool,
    key: Callable[[int, Places], tuple[float, ...]],
    better: Callable[[int, int], bool] | None = None,
) -> Ties:
    """Return the order of a board and the possible ranks of its rows.

    Rows are first ordered by their intervals. Then the files of neighbours whose intervals overlap are compared. If
    the lower one is certified to be better, the two change places, and each is compared with its new neighbour, until
    nothing changes. No other rows change places. The result depends only on the intervals and the files, not on who
    looks at the board or when.

    So a row that is certified to be a little worse than the first may stand above a row with a wide interval, although
    the row with the wide interval could be the best one.

    Parameters
    ----------
    intervals : sequence of (low, high)
    greater_is_better : bool
    key : callable
        Function of a row's index and its possible ranks, which returns its sort key; see :func:`key_in_tie`.
    better : callable, optional
        Function of the indices of two rows. It returns True if the first row is certified to be better.
    """
    places = places_of(intervals, greater_is_better=greater_is_better)
    order = sorted(range(len(intervals)), key=lambda number: key(number, places[number]))
    pairs: set[tuple[int, int]] = set()
    if better is not None:
        pairs = _compared(order, intervals, better)
    if pairs:
        places = places_of(intervals, greater_is_better=greater_is_better, pairs=sorted(pairs))
    certified = {
        first
        for first, second in pairwise(order)
        if (first, second) in pairs or not _overlap(intervals[first], intervals[second])
    }
    return Ties(order, places, certified)


def _compared(
    order: list[int], intervals: Sequence[tuple[float, float]], better: Callable[[int, int], bool]
) -> set[tuple[int, int]]:
    """Compare all rows that become neighbours, and return the pairs whose first row is certified to be better.

    The list `order` is changed in place: the better row of a pair moves above the other.
    """
    pairs: set[tuple[int, int]] = set()
    compared: set[tuple[int, int]] = set()
    for _ in range(_PASSES):
        moved = False
        for place in range(len(order) - 1):
            first, second = order[place], order[place + 1]
            two = (first, second) if first < second else (second, first)
            if two not in compared:
                compared.add(two)
                if not _overlap(intervals[first], intervals[second]):
                    continue
                if better(first, second):
                    pairs.add((first, second))
                elif better(second, first):
                    pairs.add((second, first))
            if (second, first) in pairs:
                order[place], order[place + 1] = second, first
                moved = True
        if not moved:  # all neighbours are compared
            break
    return pairs


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
