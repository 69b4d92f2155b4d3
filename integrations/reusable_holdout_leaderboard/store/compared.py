"""Predictions for the holdout's rows of what teams' standings rest on, so that neighbours can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from reusable_holdout_leaderboard.store.tables import COMPARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout_leaderboard.store.database import Database
    from reusable_holdout_leaderboard.store.records import Submission

__all__ = ["Compared", "keep_compared"]

_ID = COMPARED.c.submission_id
_NEW = sa.insert(COMPARED)
_OLD = sa.delete(COMPARED).where(
    COMPARED.c.competition_id == sa.bindparam("number"),
    COMPARED.c.epoch == sa.bindparam("at_epoch"),
    COMPARED.c.team_id == sa.bindparam("team"),
)


class Compared:
    """What neighbours on a board are compared by."""

    database: Database

    def compared(self, submission_ids: Sequence[int]) -> dict[int, bytes]:
        """Predictions of those submissions that have some kept."""
        asked = sa.select(COMPARED).where(_ID.in_(list(submission_ids)))
        with self.database.reading() as connection:
            return {row.submission_id: bytes(row.content) for row in connection.execute(asked)}


def keep_compared(connection: sa.Connection, number: int, best: Submission, content: bytes) -> None:
    """Keep a team's new best in place of the one before: there are as many as there are standings, or a few more."""
    own = {"number": number, "at_epoch": best.epoch, "team": best.team_id}
    connection.execute(_OLD, own)
    row = {"competition_id": number, "epoch": best.epoch, "team_id": best.team_id}
    connection.execute(_NEW, row | {"submission_id": best.id, "content": content})
