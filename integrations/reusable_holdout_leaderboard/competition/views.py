"""What a competition shows: to everyone, or with what is hidden while it is blind to its organisers."""

from __future__ import annotations

from collections.abc import Callable

from reusable_holdout.deferred import pandas as pd
from reusable_holdout_leaderboard.competition.epoch import Epoch, Epochs
from reusable_holdout_leaderboard.competition.neighbours import Neighbours
from reusable_holdout_leaderboard.competition.place import Place
from reusable_holdout_leaderboard.competition.rank_history import RankHistory
from reusable_holdout_leaderboard.competition.standings import board_of, hidden_board_of
from reusable_holdout_leaderboard.store.records import Event, RankPoint, Standing, Status, Submission, Team
from reusable_holdout_leaderboard.store.rows import CompetitionRow, as_moment
from reusable_holdout_leaderboard.store.store import Store

__all__ = ["Views", "hidden"]


class Views(Epochs):
    """What can be read of a competition.

    While it is blind, everyone sees who takes part and how often, and no number that came from the guard; `reveal` is
    for its organisers.
    """

    def __init__(
        self, place: Place, store: Store, row: CompetitionRow, epoch: Epoch, clock: Callable[[], float]
    ) -> None:
        super().__init__(place, store, row, epoch, clock)
        self._histories: dict[int, RankHistory] = {}
        self._neighbours: dict[int, Neighbours] = {}

    @property
    def compares_neighbours(self) -> bool:
        """Whether neighbours on the board are compared row by row, where their intervals leave them tied."""
        return self._current().pairs is not None

    def board(self, *, epoch: int | None = None, reveal: bool = False) -> list[Standing]:
        """Standings, the best first; blind, in the order of the teams' names.

        It costs as many rows as there are teams, however many submissions there are.

        Parameters
        ----------
        epoch : int, optional
            Label set, from 1; by default the present one.
        reveal : bool
            Whether to show what is hidden.
        """
        row, now = self._row(), self._current()
        bests = self._store.standings(self._number, now.number if epoch is None else epoch)
        if row.blind and not reveal:
            return hidden_board_of(bests)
        better = None
        if now.pairs is not None and epoch in {None, now.number}:
            known = self._neighbours.get(now.number)
            if known is None:
                known = self._neighbours[now.number] = Neighbours(now.pairs, self._store.compared)
            better = known.better(bests)
        return board_of(
            bests,
            greater_is_better=now.guard.metric.greater_is_better,
            claims=now.guard.policy == "claims",
            better=better,
        )

    def submissions(
        self,
        team_id: int | None = None,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        epoch: int | None = None,
        newest_first: bool = False,
        reveal: bool = False,
    ) -> list[Submission]:
        """Submissions with numbers above `after`, and below `before`.

        Parameters
        ----------
        team_id : int, optional
            Of one team; by default of all.
        after, before, limit : int
            For pages: pass the last number that was seen.
        epoch : int, optional
            Of one label set; by default of all.
        newest_first : bool
        reveal : bool
            Whether to show what is hidden.
        """
        found = self._store.submissions(
            self._number,
            team_id=team_id,
            after=after,
            before=before,
            limit=limit,
            epoch=epoch,
            newest_first=newest_first,
        )
        blind = self._row().blind and not reveal
        return [hidden(one) for one in found] if blind else found

    def picks(self, team_id: int) -> list[Submission]:
        """Submissions of the present label set that a team has picked for the final standings."""
        found = self._store.submissions(
            self._number, team_id=team_id, epoch=self._current().number, picked=True
        )
        return [self._shown(one) for one in found]

    def rank_history(
        self, *, epoch: int | None = None, team_id: int | None = None, reveal: bool = False
    ) -> list[RankPoint]:
        """Places over time of the teams that are first now: a point for each change; empty while blind.

        Of many new bests every so many-th is shown, and the last.

        Parameters
        ----------
        epoch : int, optional
            Label set, from 1; by default the present one.
        team_id : int, optional
            One more team to show.
        reveal : bool
            Whether to show what is hidden.
        """
        if self._row().blind and not reveal:
            return []
        now = self._current()
        number = now.number if epoch is None else epoch
        if number > now.number:
            return []
        changed = self._store.last_change_of_teams(self._number)
        history = self._histories.get(number)
        if history is None or history.changed != changed:
            guard = now.guard
            history = self._histories[number] = RankHistory(
                greater_is_better=guard.metric.greater_is_better,
                claims=guard.policy == "claims",
                changed=changed,
            )
        with history.lock:
            history.take(self._store.improvements(self._number, number, after=history.seen))
            return history.points(team_id)

    def paid_queries(self) -> list[int]:
        """Numbers of the questions that took a charge, in order; empty while blind."""
        if self._row().blind:
            return []
        return self._store.paid_queries(self._number, self._current().number)

    def history(self, *, epoch: int | None = None, reveal: bool = False) -> pd.DataFrame:
        """All that the guard has released, in order; empty while blind.

        Returns
        -------
        pandas.DataFrame
            As :meth:`reusable_holdout.ReusableHoldout.history`; names are those of the teams, with the numbers of their
            submissions.
        """
        guard = self._current().guard
        history = guard.history() if epoch is None else guard.history(epoch=epoch)
        return history.iloc[:0] if self._row().blind and not reveal else history

    def status(self, *, reveal: bool = False) -> Status:
        """State of the competition.

        Parameters
        ----------
        reveal : bool
            Whether to show what is hidden.
        """
        now, row = self._current(), self._row()
        guard, plan = now.guard, now.guard.plan
        asked, reason = guard.queries_asked, guard.halt_reason
        closed = (
            "the competition is frozen" if row.frozen else row.rules.closed_reason(as_moment(self._clock()))
        )
        if reason is not None:
            closed = closed or "the guard has halted: nothing new is answered on this label set"
        return Status(
            epoch=now.number,
            rows=now.expected.rows,
            answered=guard.answered,
            queries_asked=asked,
            queries_left=plan.queries - asked,
            charges=plan.charges,
            charges_left=guard.charges_left
            if plan.policy != "claims" and (reveal or not row.blind)
            else None,
            halted=reason is not None,
            halt_reason=reason,
            blind=row.blind,
            frozen=row.frozen,
            open=not closed,
            closed_reason=closed,
            has_fresh_labels=bool(len(now.fresh)),
            final=row.final is not None,
            revision=row.revision,
            confidence=row.rules.confidence,
            tolerance=plan.tolerance,
        )

    def charges_left_of(self, team_id: int) -> int | None:
        """Charges that a team has left: of claims its own, else those of all together; None while blind."""
        guard = self._current().guard
        if self._row().blind:
            return None
        return guard.charges_left_of(self._store.series_of(self._number, team_id))

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """What happened since a revision, in order."""
        return self._store.events(self._number, after=after, limit=limit)

    def changes(self) -> list[Event]:
        """What was changed while it ran, in order."""
        return self._store.changes(self._number)

    @property
    def revision(self) -> int:
        """Number of the last event; cheap, for those who poll."""
        return self._row().revision

    def teams(self) -> list[Team]:
        """All teams, the oldest first."""
        return self._store.teams(self._number)

    def _shown(self, submission: Submission) -> Submission:
        return hidden(submission) if self._row().blind else submission


def hidden(submission: Submission) -> Submission:
    """Submission as a blind competition shows it."""
    return submission._replace(
        state="pending" if submission.query is None else "received",
        value=None,
        low=None,
        high=None,
        charged=None,
        threshold=None,
        prior=None,
        query=None,
        told=None,
        improved=None,
    )
