"""Views of a competition for everyone, and views with the hidden scores of a blind competition for its organisers."""

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
    """The part of a competition that shows its board, submissions, history and state.

    While the competition is blind, everyone sees the teams and their numbers of submissions, but no number that came
    from the guard. With `reveal`, which is for organisers, the hidden numbers are included.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._histories: dict[int, RankHistory] = {}
        self._neighbours: dict[int, Neighbours] = {}

    @property
    def compares_neighbours(self) -> bool:
        """True if neighbours whose intervals overlap are also compared by the rows that they predict differently."""
        return self._current().guard.pairs is not None

    def board(self, *, epoch: int | None = None, reveal: bool = False) -> list[Standing]:
        """Return the standings, the best team first. While the competition is blind, they are sorted by team name.

        The cost depends on the number of teams, and not on the number of submissions.

        Parameters
        ----------
        epoch : int, optional
            Number of the epoch, from 1. By default, the current one.
        reveal : bool
            True to show the hidden numbers of a blind competition.
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
        """Return one page of the submissions.

        Parameters
        ----------
        team_id : int, optional
            Team whose submissions are returned. By default, those of all teams.
        reveal : bool
            True to show the hidden numbers of a blind competition.
        **page
            ``after`` and ``before``: only submissions with numbers between these two. ``limit``: the largest number of
            submissions, 100 by default. ``epoch``: only submissions of this epoch. ``newest_first``: True for the
            newest submission first.
        """
        found = self._read(lists.submissions, self._number, team_id=team_id, **page)
        return [hidden(one) for one in found] if self._state().blind and not reveal else found

    def rank_history(
        self, *, epoch: int | None = None, team_id: int | None = None, reveal: bool = False
    ) -> list[RankPoint]:
        """Return the ranks over time of the teams that are on top of the board now, one point for each change.

        The list is empty while the competition is blind. If many submissions have improved a team's best, only some of
        these points in time are shown, always including the last one.

        Parameters
        ----------
        epoch : int, optional
            Number of the epoch, from 1. By default, the current one.
        team_id : int, optional
            Number of one more team to show.
        reveal : bool
            True to show the ranks of a blind competition.
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
        """Return all answers that the guard has released, in order. The table is empty while the competition is blind.

        Returns
        -------
        pandas.DataFrame
            Table with the columns of :meth:`reusable_holdout.ReusableHoldout.history`. The name of an answer is the
            name of the team, with the number of its submission.
        """
        history = self._current().guard.history(epoch)
        return history.iloc[:0] if self._state().blind and not reveal else history

    def status(self) -> Status:
        """Return the state of the competition: its epoch, its budget, and whether it takes submissions."""
        now, state = self._current(), self._state()
        guard, queries = now.guard, now.guard.plan.queries
        asked, reason = guard.queries_asked, guard.halt_reason
        closed = closed_reason(state, self._clock())
        if reason is not None:
            closed = closed or "the guard has halted: nothing new is answered in this round"
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
        """Return the events with revisions above `after`, in order."""
        found: list[Event] = self._read(lists.events, self._number, after=after, limit=limit)
        return found

    def changes(self) -> list[Event]:
        """Return the events that record a change by the organisers, such as new rules or a renamed team, in order."""
        found: list[Event] = self._read(lists.events, self._number, changes=True)
        return found

    @property
    def revision(self) -> int:
        """Number of the last event. It changes with everything that is shown, and it is cheap to read often."""
        return self._state().revision
