"""A competition: one guard for all teams, one store for all workers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout_leaderboard.competition.agreement import check_agreement
from reusable_holdout_leaderboard.competition.attachments import Attachments
from reusable_holdout_leaderboard.competition.epoch import (
    check_ids,
    completed,
    head_of,
    make_epoch,
    open_epoch,
)
from reusable_holdout_leaderboard.competition.final import check_also
from reusable_holdout_leaderboard.competition.organising import Organising
from reusable_holdout_leaderboard.competition.place import Place, check_database, schema_of
from reusable_holdout_leaderboard.competition.scoring import Scoring
from reusable_holdout_leaderboard.competition.teams import Teams
from reusable_holdout_leaderboard.files.forms import MAX_BYTES
from reusable_holdout_leaderboard.files.labels import save_labels, take_labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.store import Store

__all__ = ["Competition"]


class Competition(Scoring, Organising, Attachments, Teams):
    """A leaderboard whose every score comes from one guarded holdout.

    With the rules' confidence, all intervals shown in an epoch contain the population values together, whatever the
    teams send and whatever they make of the answers: the guard is pooled, for validity needs that, and limits for each
    team come on top. Made by :meth:`create` and :meth:`open`; safe for several threads, and for several processes that
    open the same folder and database.

    A submission is reserved in the store, asked of the guard, and recorded in the store. A worker that dies on the way
    loses nothing and charges nothing twice: the same predictions sent again replay the guard's answer free, and
    :meth:`settle` finds the answers of those that are not sent again.

    Attributes
    ----------
    rules : Rules
        As they are now, with classes and columns filled in.
    slug : str
    metric : Metric
    expected : Expected
        Form of a submission, of the epoch it stands at.

    Notes
    -----
    Policy "ladder": a submission is compared with its team's best so far, and told only if it improves on it by a step.
    Policy "thresholdout": with the validation score its team claims, else its best, else the middle of the metric's
    range. The value of an answer that agrees with a claim is the claim, so claims can be too high by the threshold: its
    interval says so, and ties follow the intervals.

    What is private lies in a folder of its own: labels, noise key and, with SQLite, the ledger. With SQLite the board
    lies beside them; on a server the board and the ledger are there.
    """

    def __repr__(self) -> str:
        return f"<Competition: {self.slug}, {self.metric.name}, epoch {self._epoch.number}>"

    # ---- made and opened

    @classmethod
    def create(
        cls,
        folder: str | Path,
        rules: Rules,
        labels_file: str | Path,
        *,
        database: str | None = None,
        fresh_labels_file: str | Path | None = None,
        key_file: Path | None = None,
        witness: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Make a competition.

        Parameters
        ----------
        folder : str or Path
            Of all competitions; made if it is not there. This one's labels and key get a folder in it.
        rules : Rules
        labels_file : str or Path
            CSV with a header, or Parquet: one column of labels, and the column of ids that the rules name. It is
            copied.
        database : str, optional
            SQLAlchemy URL of a PostgreSQL server; by default SQLite files in the folder.
        fresh_labels_file : str or Path, optional
            Labels for the final standings: other rows of the same population. A submission then predicts both.
        key_file : Path, optional
            Noise key; by default it lies in the folder.
        witness : str, optional
            What remembers outside the folder how far the ledger has come, so that an older copy of the folder is
            refused: a file of another owner, ``git:repository`` or a URL.
        clock : callable
            Seconds since 1970, UTC.

        Raises
        ------
        InputError
            If rules and labels do not fit, or there is a competition of this slug.
        PlanError
            If the labels are too few for the rules.
        StoreError, LedgerError
            If database or ledger cannot be used.
        """
        rules.check()
        metric = rules.made_metric()
        labels = take_labels(Path(labels_file), id_column=rules.id_column, metric=metric)
        fresh = None
        if fresh_labels_file is not None:
            fresh = take_labels(Path(fresh_labels_file), id_column=rules.id_column, metric=metric)
        check_ids(labels, fresh, rules)
        rules = completed(rules, labels)
        check_also(rules, fresh)
        place = Place.of(Path(folder), rules.slug, database=database, key_file=key_file, witness=witness)
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.ExitStack() as undone:
            store = undone.enter_context(contextlib.closing(_store(Path(folder), database)))
            if rules.slug in store.slugs():
                raise InputError(
                    f"there is a competition {rules.slug!r} already; open it, or name another slug"
                )
            if database is not None:
                with store.database.writing() as connection:
                    connection.execute(sa.schema.CreateSchema(schema_of(rules.slug), if_not_exists=True))
            epoch = make_epoch(place, rules, labels, fresh)
            undone.callback(epoch.close)
            save_labels(place.labels(1), labels)
            place.fresh_labels.unlink(missing_ok=True)  # of somebody who died here before
            if fresh is not None:
                save_labels(place.fresh_labels, fresh)
            number = store.create_competition(rules, at=clock())  # last: before this, there is no competition
            store.keep_head(number, head_of(epoch.ledger))
            row = store.competition(rules.slug)
            assert row is not None  # noqa: S101 - it was written above
            undone.pop_all()
        return cls(place, store, row, epoch, clock)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        slug: str | None = None,
        *,
        database: str | None = None,
        key_file: Path | None = None,
        witness: str | None = None,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open a competition that was made, in this process or another.

        Parameters
        ----------
        folder, database, key_file, clock
            As for :meth:`create`.
        slug : str, optional
            By default that of the only competition there is.
        witness : str, optional
            By default the one that the competition was made with; else one that watches it from now on.
        max_bytes : int
            Of a submitted file.

        Raises
        ------
        InputError
            If there is none, or several and none is named.
        RolledBackError
            If the ledger is an older copy than the board, or than its witness has seen.
        StoreError
            If the board is an older copy than the ledger.
        """
        known = cls.slugs(folder, database=database)
        if slug is None and len(known) == 1:
            slug = known[0]
        if slug not in known:
            if not known:
                raise InputError(
                    f"a competition must be made first; there is none in {folder}; make one, as with serve "
                    "--labels, or name another folder"
                )
            raise InputError(
                f"a competition must be one of {', '.join(known)}; got {slug!r}; name one of them"
            )
        with contextlib.ExitStack() as undone:
            store = undone.enter_context(contextlib.closing(_store(Path(folder), database)))
            row = store.competition(slug)
            assert row is not None  # noqa: S101 - it is known, and none is ever removed
            place = Place.of(
                Path(folder), row.rules.slug, database=database, key_file=key_file, witness=witness
            )
            check_agreement(store, row.id, place.ledger)
            epoch = open_epoch(place, row.rules, max_bytes=max_bytes)
            undone.callback(epoch.close)
            store.keep_head(row.id, head_of(epoch.ledger))
            store.go_on_to(row.id, epoch.number, at=clock())  # who rotated may have died before noting so
            competition = cls(place, store, row, epoch, clock)
            competition.settle()
            undone.pop_all()
        return competition

    @staticmethod
    def slugs(folder: str | Path, *, database: str | None = None) -> list[str]:
        """Competitions of a folder and database, the oldest first."""
        if database is None and not (Path(folder) / "board.db").exists():
            return []
        store = _store(Path(folder), database)
        try:
            return store.slugs()
        finally:
            store.close()

    def close(self) -> None:
        """Close ledger and database; it can be opened again."""
        for epoch in (*self._past, self._epoch):
            epoch.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _store(folder: Path, database: str | None) -> Store:
    check_database(database)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Store(folder / "board.db" if database is None else database)
