"""The store: competitions, teams, sessions, events, submissions and standings, shared by several worker processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.rules import WORDS, Rules
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.entries import Entries
from reusable_holdout_leaderboard.store.records import ClosedError, Event
from reusable_holdout_leaderboard.store.rows import (
    CompetitionRow,
    as_competition,
    as_event,
    as_moment,
    keep_head,
    lock_competition,
    tell,
)
from reusable_holdout_leaderboard.store.tables import COMPETITIONS, EVENTS, FORMS, SECRETS
from reusable_holdout_leaderboard.store.teams import Teams

__all__ = ["Store"]

_NAMED = sa.select(COMPETITIONS).where(COMPETITIONS.c.slug == sa.bindparam("slug"))  # every answer asks it


class Store(Entries, Teams):
    """Boards in a database, durable and shared; see :class:`~reusable_holdout_leaderboard.store.database.Database`.

    Parameters
    ----------
    location : str or Path
        SQLite file, or a SQLAlchemy URL.

    Raises
    ------
    StoreError
        Here and from every method, if the database fails; then nothing was written.
    """

    def __init__(self, location: str | Path) -> None:
        self.database = Database(location)

    def __repr__(self) -> str:
        return f"<Store: {self.database!r}>"

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    # ---- competitions

    def create_competition(self, rules: Rules, *, at: float) -> int:
        """Add a competition; return its number.

        Raises
        ------
        InputError
            If there is one of this slug.
        """
        values = {"slug": rules.slug, "rules": rules.to_json(), "created_at": at, "blind": rules.blind}
        state = {"epoch": 1, "frozen": False, "revision": 0}
        with self.database.writing() as connection:
            same = sa.select(COMPETITIONS.c.id).where(COMPETITIONS.c.slug == rules.slug)
            if connection.execute(same).first() is not None:
                raise InputError(
                    f"there is a competition {rules.slug!r} already; open it, or name another slug"
                )
            number = _added(connection.execute(sa.insert(COMPETITIONS).values(values | state)))
            tell(connection, number, "created", at)
        return number

    def slugs(self) -> list[str]:
        """All competitions, the oldest first."""
        with self.database.reading() as connection:
            return list(connection.scalars(sa.select(COMPETITIONS.c.slug).order_by(COMPETITIONS.c.id)))

    def competition(self, slug: str) -> CompetitionRow | None:
        """State of a competition; None if there is none."""
        with self.database.reading() as connection:
            row = connection.execute(_NAMED, {"slug": slug}).first()
        return None if row is None else as_competition(row)

    def change_rules(self, number: int, changes: Mapping[str, Any], *, at: float) -> list[Event]:
        """Change rules, each with an event of its own; return these.

        Raises
        ------
        InputError
            If one of them cannot be changed, or to this; nothing was changed.
        ClosedError
            If the final standings are made, which limits and dates have led to.
        """
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            before, after = row.rules, row.rules.changed(changes)
            names = [name for name in changes if getattr(before, name) != getattr(after, name)]
            if row.final is not None and set(names) - WORDS:
                raise ClosedError(
                    f"the final standings are made, so only {' and '.join(sorted(WORDS))} can be changed; nothing was "
                    "changed"
                )
            _update(connection, number, rules=after.to_json())
            was, now = before.as_dict(), after.as_dict()
            told = [{"rule": name, "from": was[name], "to": now[name]} for name in names]
            revisions = [tell(connection, number, "rules", at, detail=one) for one in told]
        return [
            Event(revision, as_moment(at), "rules", None, None, one)
            for revision, one in zip(revisions, told, strict=True)
        ]

    def note(self, number: int, kind: str, detail: Mapping[str, Any], *, at: float) -> None:
        """Add an event that changes nothing else."""
        with self.database.writing() as connection:
            lock_competition(connection, number)
            tell(connection, number, kind, at, detail=detail)

    def freeze(self, number: int, on: bool, *, at: float) -> None:
        """Freeze or unfreeze; nothing happens if it is so already.

        Raises
        ------
        ClosedError
            If it is to be unfrozen after the final standings.
        """
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            if row.final is not None and not on:
                raise ClosedError("the final standings are made, so the competition stays frozen")
            if on != row.frozen:
                _update(connection, number, frozen=on)
                tell(connection, number, "freeze" if on else "unfreeze", at)

    def unblind(self, number: int, *, at: float) -> None:
        """Show all scores from now on."""
        with self.database.writing() as connection:
            if lock_competition(connection, number).blind:
                _update(connection, number, blind=False)
                tell(connection, number, "unblind", at)

    def go_on_to(self, number: int, epoch: int, *, at: float) -> None:
        """Note that the guard has gone on to another label set; nothing happens if it is noted."""
        with self.database.writing() as connection:
            if lock_competition(connection, number).epoch < epoch:
                _update(connection, number, epoch=epoch)
                tell(connection, number, "rotate", at)

    def finish(self, number: int, final: Sequence[dict[str, Any]], *, at: float) -> list[dict[str, Any]]:
        """Keep the final standings; return those that were kept first.

        Raises
        ------
        ClosedError
            If the competition is not frozen.
        """
        with self.database.writing() as connection:
            row = lock_competition(connection, number)
            if row.final is not None:
                return row.final
            if not row.frozen:
                raise ClosedError("final standings are made of a frozen competition; freeze it first")
            _update(connection, number, final=json.dumps(list(final), allow_nan=False))
            tell(connection, number, "final", at)
        return list(final)

    def form_secret(self) -> bytes:
        """Return the secret that signs the keys of forms: one for all servers of this database."""
        asked = sa.select(SECRETS.c.value).where(SECRETS.c.name == FORMS)
        with self.database.reading() as connection:
            return bytes(connection.execute(asked).scalar_one())

    # ---- the ledger

    def ledger_head(self, number: int) -> Head | None:
        """Head of the ledger as it was last seen; None if it never was."""
        asked = sa.select(COMPETITIONS.c.ledger_head).where(COMPETITIONS.c.id == number)
        with self.database.reading() as connection:
            text = connection.execute(asked).scalar()
        return None if text is None else Head.parse(text.encode())

    def keep_head(self, number: int, head: Head) -> None:
        """Keep the ledger's head, if it is later than the one that is kept."""
        with self.database.writing() as connection:
            keep_head(connection, lock_competition(connection, number), head)

    def numbers_given(self) -> int:
        """Highest number that a submission of any competition was ever given."""
        asked = (
            "SELECT last_value FROM board_submissions_id_seq"
            if self.database.path is None
            else "SELECT seq FROM sqlite_sequence WHERE name = 'board_submissions'"
        )
        with self.database.reading() as connection:
            return int(connection.exec_driver_sql(asked).scalar() or 0)

    # ---- events

    def events(self, number: int, *, after: int = 0, limit: int = 100) -> list[Event]:
        """Events with revisions above `after`, in order."""
        here = (EVENTS.c.competition_id == number) & (EVENTS.c.revision > after)
        asked = sa.select(EVENTS).where(here).order_by(EVENTS.c.revision).limit(limit)
        with self.database.reading() as connection:
            found = connection.execute(asked).all()
        return [as_event(row) for row in found]

    def changes(self, number: int) -> list[Event]:
        """Events in which something was changed from one thing to another, in order."""
        here = (EVENTS.c.competition_id == number) & EVENTS.c.detail.is_not(None)
        with self.database.reading() as connection:
            found = connection.execute(sa.select(EVENTS).where(here).order_by(EVENTS.c.revision)).all()
        return [as_event(row) for row in found]


def _added(result: sa.CursorResult[Any]) -> int:
    (number,) = result.inserted_primary_key or (0,)
    return int(number)


def _update(connection: sa.Connection, number: int, **values: Any) -> None:
    connection.execute(sa.update(COMPETITIONS).where(COMPETITIONS.c.id == number).values(values))
