"""Predictions that are kept: for the fresh rows, which the final is of; and of bests, to compare neighbours by."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.records import ClosedError, Submission
from reusable_holdout_leaderboard.store.rows import (
    Finalist,
    as_submission,
    lock_competition,
    of_team,
    select_submissions,
)
from reusable_holdout_leaderboard.store.tables import COMPARED, PREDICTIONS, SUBMISSIONS, TEAMS

__all__ = ["Kept", "keep_compared"]

_ENTRY = SUBMISSIONS.c
_NEW = sa.insert(COMPARED)
_OLD = sa.delete(COMPARED).where(
    COMPARED.c.competition_id == sa.bindparam("number"),
    COMPARED.c.epoch == sa.bindparam("at_epoch"),
    COMPARED.c.team_id == sa.bindparam("team"),
)


class Kept:
    """Submissions that are entered for the final standings, and what neighbours on a board are compared by."""

    database: Database

    def pick(self, number: int, team_id: int, epoch: int, submission_ids: Sequence[int]) -> None:
        """Enter these submissions of a team and no others; none for its best ones.

        Raises
        ------
        InputError
            If they are too many, another team's, of another label set, or not scored.
        ClosedError
            If the final standings are made.
        """
        picked = set(submission_ids)
        own = (_ENTRY.competition_id == number) & of_team(team_id) & (_ENTRY.epoch == epoch)
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            if row.final is not None:
                raise ClosedError("the final standings are made, so nothing can be picked any more")
            if len(picked) > row.rules.final_picks:
                raise InputError(
                    f"a team may pick {row.rules.final_picks} for the final; got {len(picked)}; nothing was changed"
                )
            kept = sa.select(PREDICTIONS.c.submission_id)
            scored = sa.select(_ENTRY.id).where(own, _ENTRY.query.is_not(None), _ENTRY.id.in_(kept))
            unknown = sorted(picked - set(connection.scalars(scored)))
            if unknown:
                raise InputError(
                    "a pick must be a submission of the team's own, scored on the present label set, whose predictions "
                    f"for the final were kept; {unknown[0]} is none; nothing was changed"
                )
            connection.execute(sa.update(SUBMISSIONS).where(own).values(picked=_ENTRY.id.in_(picked)))

    def finalists(self, number: int, epoch: int, *, most: int, better: int) -> list[Finalist]:
        """What the teams enter: their picks, or as many of their best ones as they may pick.

        Parameters
        ----------
        number, epoch : int
        most : int
            That a team may pick.
        better : int
            1 if larger values are better, else -1.
        """
        here = (_ENTRY.competition_id == number) & (_ENTRY.epoch == epoch) & _ENTRY.query.is_not(None)
        here &= ~TEAMS.c.disqualified
        kept = _ENTRY.id.in_(sa.select(PREDICTIONS.c.submission_id))
        with self.database.reading() as connection:
            found = [as_submission(row) for row in connection.execute(select_submissions(here, kept))]
        entered: list[Finalist] = []
        for team_id in sorted({one.team_id for one in found}):
            own = [one for one in found if one.team_id == team_id]
            own.sort(key=lambda one: (-better * (one.value or 0.0), one.id))
            chosen = [one for one in own if one.picked] or own
            entered += [
                Finalist(one.team_id, one.team, one.id, one.value or 0.0, one.at.timestamp())
                for one in chosen[:most]
            ]
        return entered

    def contents(self, submission_ids: Sequence[int]) -> dict[int, bytes]:
        """Predictions for the fresh rows."""
        asked = sa.select(PREDICTIONS).where(PREDICTIONS.c.submission_id.in_(list(submission_ids)))
        with self.database.reading() as connection:
            return {row.submission_id: bytes(row.content) for row in connection.execute(asked)}

    # ---- neighbours

    def compared(self, submission_ids: Sequence[int]) -> dict[int, bytes]:
        """Predictions of those submissions that have some kept."""
        asked = sa.select(COMPARED).where(COMPARED.c.submission_id.in_(list(submission_ids)))
        with self.database.reading() as connection:
            return {row.submission_id: bytes(row.content) for row in connection.execute(asked)}


def keep_compared(connection: sa.Connection, number: int, best: Submission, content: bytes) -> None:
    """Keep a team's new best in place of the one before: there are as many as there are standings, or a few more."""
    own = {"number": number, "at_epoch": best.epoch, "team": best.team_id}
    connection.execute(_OLD, own)
    row = {"competition_id": number, "epoch": best.epoch, "team_id": best.team_id}
    connection.execute(_NEW, row | {"submission_id": best.id, "content": content})
