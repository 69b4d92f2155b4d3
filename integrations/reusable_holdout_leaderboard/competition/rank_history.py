"""The ranks of teams over time, for a chart. A point in time is a submission that became its team's best."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

from reusable_holdout_leaderboard.competition.ties import Places, key_in_tie, places_of
from reusable_holdout_leaderboard.store.database import as_moment
from reusable_holdout_leaderboard.store.lists import Improvement
from reusable_holdout_leaderboard.store.records import RankPoint

__all__ = ["RankHistory"]

_MOST_STEPS = 32  # points in time that are kept; if there are more, every second, fourth, ... is kept
_MOST_TEAMS = 12  # teams in the chart: those that are on top of the board now


class _Place(NamedTuple):
    rank: int
    rank_last: int
    place: int
    best: Improvement


class _Step(NamedTuple):
    number: int
    moved: Improvement
    places: dict[int, _Place]


class RankHistory:
    """The ranks of all teams after each submission that became its team's best.

    Only some of these points in time are kept. The choice depends on their number alone, so every process keeps the
    same ones. The cost of adding a point does not depend on the number of earlier points. To use a history from several
    threads, hold its `lock`.

    Parameters
    ----------
    greater_is_better : bool
    changed : int
        Revision of the board at which a team was last renamed, disqualified or reinstated. After another such change,
        the caller makes a new history.

    Attributes
    ----------
    seen : int
        Revision of the last submission that was added.
    """

    def __init__(self, *, greater_is_better: bool, changed: int = 0) -> None:
        self.seen, self.changed = 0, changed
        self.lock = threading.Lock()
        self._greater = greater_is_better
        self._bests: dict[int, Improvement] = {}
        self._leads: dict[int, float] = {}  # by team: its best measured value
        self._count, self._stride = 0, 1
        self._steps: list[_Step] = []
        self._last: _Step | None = None

    def take(self, improvements: Sequence[tuple[int, Improvement]]) -> None:
        """Add submissions that became their team's best, with their revisions, in order.

        Submissions that were added before are skipped.
        """
        fresh = [(revision, one) for revision, one in improvements if revision > self.seen]
        total = self._count + len(fresh)
        while total // self._stride > _MOST_STEPS:
            self._stride *= 2
        self._steps = [step for step in self._steps if step.number % self._stride == 0]
        for revision, one in fresh:
            self.seen, self._count = revision, self._count + 1
            if _is_lead(one):
                self._leads[one.team_id] = max(self._value(one), self._leads.get(one.team_id, -math.inf))
            known = self._bests.get(one.team_id)
            if known is None or self._least(one) > self._least(known):
                self._bests[one.team_id] = one
            if self._count % self._stride == 0 or self._count == total:
                self._last = self._step(one)
            if self._count % self._stride == 0 and self._last is not None:
                self._steps.append(self._last)

    def points(self, also: int | None = None) -> list[RankPoint]:
        """Return one point for each change of a rank or value, for the teams that are on top of the board now.

        The team with the number `also` is included, too.
        """
        if self._last is None:
            return []
        latest = self._last
        first = {team for team, one in latest.places.items() if one.place <= _MOST_TEAMS} | {also}
        before: dict[int, tuple[int, int, int, float]] = {}
        points: list[RankPoint] = []
        steps = self._steps if self._steps and self._steps[-1] is latest else [*self._steps, latest]
        for step in steps:
            shown = [step.places[team] for team in first if team in step.places]
            for one in sorted(shown, key=lambda one: one.place):
                now = (*one[:3], one.best.value)
                if before.get(one.best.team_id) != now:
                    before[one.best.team_id] = now
                    points.append(_point(step, one))
        return points

    def _least(self, one: Improvement) -> float:
        """Return the worst value inside the certified interval, negated if smaller values are better.

        The best submission of a team is the one for which this number is largest.
        """
        return one.low if self._greater else -one.high

    def _value(self, one: Improvement) -> float:
        return one.value if self._greater else -one.value

    def _step(self, moved: Improvement) -> _Step:
        rows = list(self._bests.values())
        places = places_of([(one.low, one.high) for one in rows], greater_is_better=self._greater)
        lead = max(self._leads, key=lambda team: self._leads[team], default=None)

        def order(row: tuple[Places, Improvement]) -> tuple[float, ...]:
            ranks, one = row
            return key_in_tie(
                ranks.rank,
                leads=one.team_id == lead,
                worth=self._value(one),
                measured=_is_lead(one),
                at=one.at,
                submission_id=one.submission_id,
            )

        ranked = sorted(zip(places, rows, strict=True), key=order)
        shown = {
            one.team_id: _Place(*ranks, place, one) for place, (ranks, one) in enumerate(ranked, start=1)
        }
        return _Step(self._count, moved, shown)


def _is_lead(one: Improvement) -> bool:
    """Return True if the guard measured this submission and it took the lead, free of charge."""
    return one.told.startswith("measured") and not one.charged


def _point(step: _Step, place: _Place) -> RankPoint:
    best = place.best
    return RankPoint(
        at=as_moment(step.moved.at),
        submission_id=step.moved.submission_id,
        team=best.team,
        team_id=best.team_id,
        rank=place.rank,
        rank_last=place.rank_last,
        place=place.place,
        value=best.value,
        low=best.low,
        high=best.high,
    )
