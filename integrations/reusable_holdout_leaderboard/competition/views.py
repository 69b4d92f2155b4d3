"""The public views of a competition, and the same with hidden numbers for its organisers."""

from __future__ import annotations

from functools import partial
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout_leaderboard.competition.base import Base
from reusable_holdout_leaderboard.competition.rank_history import RankHistory
from reusable_holdout_leaderboard.competition.standings import Neighbours, board_of, hidden_board_of
from reusable_holdout_leaderboard.competition.submitting import hidden
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.entries import closed_reason
from reusable_holdout_leaderboard.store.records import Event, RankPoint, Standing, Status, Submission

__all__ = ["Views"]


class Views(Base):
    """The part of a competition that is read.

    While it is blind, everyone sees the teams and how often they have sent, and no number that came from the guard.
    `reveal` is for its organisers.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._histories: dict[int, RankHistory] = {}
        self._neighbours: dict[int, Neighbours] = {}

    @property
    def compares_neighbours(self) -> bool:
        """True if neighbours on the board are compared row by row where their intervals overlap."""
        return self._current().guard.pairs is not None

    def board(self, *, epoch: int | None = None, reveal: bool = False) -> list[Standing]:
        """Return the standings, the best first; while blind, in the order of the teams' names.

        The cost depends on the number of teams, not of submissions.

        Parameters
        ----------
        epoch : int, optional
            Label set, from 1; by default the present one.
        reveal : bool
            True to show hidden numbers.
        """
        state, now = self._state(), self._current()
        bests = self._read(lists.standings, self._number, now.number if epoch is None else epoch)
        if state.blind and not reveal:
            return hidden_board_of(bests)
        better = None
        if now.guard.pairs is not None and epoch in {None, now.number}:
            known = self._neighbours.get(now.number)
            if known is None:
                contents = partial(self._read, lists.compared_with)
                known = self._neighbours[now.number] = Neighbours(now.guard.pairs, contents)
            better = known.better(bests)
        return board_of(bests, greater_is_better=self.metric.greater_is_better, better=better)

    def submissions(
        self, team_id: int | None = None, *, reveal: bool = False, **page: Any
    ) -> list[Submission]:
        """Return submissions in pages.

        Parameters
        ----------
        team_id : int, optional
            Team whose submissions are returned; by default all.
        reveal : bool
            True to show hidden numbers.
        **page
            ``after`` and ``before``, numbers of submissions that limit the page; ``limit``, 100 by default; ``epoch``,
            a label set, by default all; ``newest_first``.
        """
        found = self._read(lists.submissions, self._number, team_id=team_id, **page)
        return [hidden(one) for one in found] if self._state().blind and not reveal else found

    def rank_history(
        self, *, epoch: int | None = None, team_id: int | None = None, reveal: bool = False
    ) -> list[RankPoint]:
        """Return places over time of the teams that are first now, a point for each change; empty while blind.

        Of many new bests only some are shown, always including the last.

        Parameters
        ----------
        epoch : int, optional
            Label set, from 1; by default the present one.
        team_id : int, optional
            One more team to show.
        reveal : bool
            True to show it while blind.
        """
        if self._state().blind and not reveal:
            return []
        now = self._current()
        number = now.number if epoch is None else epoch
        if number > now.number:
            return []
        changed = self._read(lists.last_change_of_teams, self._number)
        history = self._histories.get(number)
        if history is None or history.changed != changed:
            greater = self.metric.greater_is_better
            history = self._histories[number] = RankHistory(greater_is_better=greater, changed=changed)
        with history.lock:
            history.take(self._read(lists.improvements, self._number, number, after=history.seen))
            return history.points(team_id)

    def history(self, *, epoch: int | None = None, reveal: bool = False) -> pd.DataFrame:
        """Return everything that the guard has released, in order; empty while blind.

        Returns
        -------
        pandas.DataFrame
            As :meth:`reusable_holdout.ReusableHoldout.history`; names are those of the teams, with the numbers of their
            submissions.
        """
        history = self._current().guard.history(epoch)
        return history.iloc[:0] if self._state().blind and not reveal else history

    def status(self) -> Status:
        """Return the state of the competition."""
        now, state = self._current(), self._state()
        guard, queries = now.guard, now.guard.plan.queries
        asked, reason = guard.queries_asked, guard.halt_reason
        closed = closed_reason(state, self._clock())
        if reason is not None:
            closed = closed or "the guard has halted: nothing new is answered on this label set"
        return Status(
            epoch=now.number,
            rows=now.expected.rows,
            answered=guard.answered,
            queries_asked=asked,
            queries_left=queries - asked,
            charges=guard.plan.charges,
            halted=reason is not None,
            halt_reason=reason,
            blind=state.blind,
            frozen=state.frozen,
            open=not closed,
            closed_reason=closed,
            has_fresh_labels=bool(len(now.fresh)),
            final=state.final is not None,
            revision=state.revision,
            confidence=state.rules.confidence,
        )

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """Return the events after a revision, in order."""
        found: list[Event] = self._read(lists.events, self._number, after=after, limit=limit)
        return found

    def changes(self) -> list[Event]:
        """Return the changes that organisers made while the competition ran, in order."""
        found: list[Event] = self._read(lists.events, self._number, changes=True)
        return found

    @property
    def revision(self) -> int:
        """Number of the last event; cheap to poll."""
        return self._state().revision
