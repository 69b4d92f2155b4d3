"""Certified ties: intervals leave neighbours tied, and their files may decide.

A certified pair is a fact beside the intervals, and all facts hold together. So every conclusion from them is certified
too: if A is better than B, and B is better than C, then A is better than C.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Places", "Ties", "key_in_tie", "places_of", "ties_of"]

_PASSES = 32  # most boards need one or two; a pair that is never compared stays tied


class Places(NamedTuple):
    """The first and the last place that a team can have."""

    rank: int
    rank_last: int


class Ties(NamedTuple):
    """The order of a board.

    Attributes
    ----------
    order : list of int
        Numbers of its rows, the first row first.
    places : list of Places
        By number.
    better_than_next : set of int
        Numbers of the rows that are certified to be better than the next one in the order.
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
    """Return the places that teams can have, by their intervals and by pairs whose first team is better.

    If all intervals contain the population values, and all pairs are right, every team's true place is among its
    places.

    Parameters
    ----------
    intervals : sequence of (low, high)
        One for each team.
    greater_is_better : bool
    pairs : sequence of (int, int)
        Numbers of the better team and the other one; without a circle.

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
    """Return places by everything that follows from intervals and pairs.

    One team is better than another by pairs alone, or by a chain in which one interval lies above another. In such a
    chain the largest lower end of the teams below lies above the smallest upper end of the teams above.
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
    """Return for each number the numbers that are worse by pairs alone, and those that are better."""
    worse: dict[int, set[int]] = {}
    for first, second in pairs:
        worse.setdefault(first, set()).add(second)
    below: dict[int, set[int]] = {}
    for number in TopologicalSorter(worse).static_order():  # the worse ones come first
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
    """Return the key that orders the rows of a board: the smallest key stands first.

    The best possible place decides first. Among rows with the same one the measured lead stands first, then the better
    value: the measured value, or else the accepted claim. Of equal values a measured one stands above a claim. Time
    decides last.

    Parameters
    ----------
    rank : float
        Best place that the row can have.
    leads : bool
        True for the row with the best measured value.
    worth : float
        Value of the row; negated if smaller values are better.
    measured : bool
        True if the value was measured.
    at : float
        Arrival of the row's best submission.
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
    """Return the order of a board: by intervals, and neighbours change places if the lower one is certified better.

    Neighbours that intervals leave tied are compared, and then their new neighbours, until nothing changes. The result
    depends on intervals and files alone, not on who looks or when. No other row moves. A row that is known to be a
    little worse than the first stands above rows of which only wide intervals are known, though these might be first.

    Parameters
    ----------
    intervals : sequence of (low, high)
    greater_is_better : bool
    key : callable
        Key of a row's number, given the places that intervals leave it.
    better : callable, optional
        True if the first of two rows is certified to be better than the second.
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
    """Return pairs whose first is better, of all that become neighbours; the order is changed in place."""
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
