"""The class :class:`Competition`: one guard answers all teams, and one database serves all worker processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.predictions import is_public
from reusable_holdout_leaderboard.competition.attachments import Attachments
from reusable_holdout_leaderboard.competition.base import epoch_of_guard, open_epoch, order_of
from reusable_holdout_leaderboard.competition.final import check_also
from reusable_holdout_leaderboard.competition.guarding import Guard, Place, check_agreement
from reusable_holdout_leaderboard.competition.organising import Organising
from reusable_holdout_leaderboard.competition.submitting import Submitting
from reusable_holdout_leaderboard.competition.teams import Teams
from reusable_holdout_leaderboard.competition.views import Views
from reusable_holdout_leaderboard.files.forms import MAX_BYTES
from reusable_holdout_leaderboard.files.labels import Labels, save_labels, take_labels
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.database import Database, create_competition, find

__all__ = ["Competition"]


class Competition(Submitting, Views, Organising, Attachments, Teams):
    """A leaderboard whose every score comes from one guarded holdout.

    All intervals that are shown in an epoch contain their population values at the same time, with the confidence that
    the rules state. This holds whatever the teams send, and however they use the answers. For this, one guard
    answers all teams; the limits of each team are additional.

    Make a competition with :meth:`create`, and open it later with :meth:`open`. Several threads may use it, and several
    processes may open the same folder and database.

    A submission is reserved in the database, then the guard is asked, then the answer is recorded in the database. If
    a worker dies between these steps, nothing is lost and nothing is charged twice. A team that sends the same
    predictions again gets the guard's answer free. If the team does not, :meth:`settle` records the answer later.

    Attributes
    ----------
    rules : Rules
        Current rules, with the classes and columns filled in.
    slug : str
    metric : Metric
    expected : Expected
        Form that a submission must have in the current epoch.

    Notes
    -----
    Each competition has a folder for its private files: the labels, the noise key and, with SQLite, the ledger. With
    SQLite, the board's database is a file beside that folder. With PostgreSQL, both the board and the ledger are in the
    database on the server.
    """

    def __repr__(self) -> str:
        return f"<Competition: {self.slug}, {self.metric.name}, epoch {self._epoch.number}>"

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
            Folder that contains all competitions. It is made if it does not exist. The labels and the key of this
            competition get a folder of their own in it.
        rules : Rules
        labels_file : str or Path
            CSV file with a header, or Parquet file. It has one column of labels, and the column of ids that the rules
            name. The labels are copied.
        database : str, optional
            SQLAlchemy URL of a PostgreSQL server. By default, SQLite files in the folder are used.
        fresh_labels_file : str or Path, optional
            Labels for the final standings, of other rows from the same population. A submission then predicts both
            sets of rows.
        key_file : Path, optional
            Noise key. By default, it is in the folder.
        witness : str, optional
            Witness outside the folder: a file of another owner, or ``git:repository``. With a witness, an older
            copy of the folder is refused.
        clock : callable
            Returns the time in seconds since 1970, UTC.

        Raises
        ------
        InputError
            If rules and labels do not fit, or there is a competition with this slug.
        PlanError
            If the labels are too few for the rules.
        StoreError, LedgerError
            If database or ledger cannot be used.
        """
        metric = rules.check().made_metric()
        labels, fresh = (
            None if path is None else take_labels(Path(path), id_column=rules.id_column, metric=metric)
            for path in (labels_file, fresh_labels_file)
        )
        assert labels is not None  # noqa: S101 - only the fresh ones may be missing
        order_of(labels, fresh, rules)
        rules = completed(rules, labels)
        check_also(rules, fresh)
        place = place_of(Path(folder), rules.slug, database, key_file=key_file, witness=witness)
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.ExitStack() as undone:
            board = undone.enter_context(contextlib.closing(_database(Path(folder), database)))
            with board.reading() as connection:
                if find(connection, rules.slug) is not None:
                    raise InputError(
                        f"there is a competition {rules.slug!r} already; nothing was made; open it, or name "
                        "another slug"
                    )
            if database is not None:
                with board.writing() as connection:
                    connection.execute(sa.schema.CreateSchema(_schema_of(rules.slug), if_not_exists=True))
            guard = Guard.make(place, rules, labels.y)
            undone.callback(guard.close)
            epoch = epoch_of_guard(guard, rules, labels, fresh, max_bytes=MAX_BYTES)
            save_labels(place.labels(1), labels)
            place.fresh_labels.unlink(missing_ok=True)  # a process that died here may have left it
            if fresh is not None:
                save_labels(place.fresh_labels, fresh)
            with board.writing() as connection:  # the last step: the competition exists from here on
                create_competition(connection, rules, guard.head(), at=clock())
                state = find(connection, rules.slug)
                assert state is not None  # noqa: S101 - it was written above
            undone.pop_all()
        return cls(place, board, state, epoch, clock)

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
        """Open an existing competition, in this process or another.

        Parameters
        ----------
        folder, database, key_file, clock
            As for :meth:`create`.
        slug : str, optional
            Name of the competition. By default, the only one in the folder.
        witness : str, optional
            Witness that watches the ledger from now on. By default, the one that the competition was made with.
        max_bytes : int
            Largest size of a submitted file.

        Raises
        ------
        InputError
            If there is no such competition, or there are several and `slug` names none.
        RolledBackError
            If the ledger lacks answers that the board or the witness has seen, because an older copy was restored.
        StoreError
            If the board lacks submissions that the ledger has answered, because an older copy was restored.
        """
        known = cls.slugs(folder, database=database)
        if slug is None and len(known) == 1:
            slug = known[0]
        if slug not in known:
            if not known:
                raise InputError(
                    f"a competition must be made first; there is none in {folder}; make one, as with board serve "
                    "--labels, or name another folder"
                )
            raise InputError(
                f"a competition must be one of {', '.join(known)}; got {slug!r}; name one of them"
            )
        with contextlib.ExitStack() as undone:
            board = undone.enter_context(contextlib.closing(_database(Path(folder), database)))
            with board.reading() as connection:
                state = find(connection, slug)
            assert state is not None  # noqa: S101 - it is known, and competitions are never removed
            place = place_of(Path(folder), slug, database, key_file=key_file, witness=witness)
            check_agreement(place, state.head, lambda: _numbers_given(board))
            epoch = open_epoch(place, state.rules, max_bytes=max_bytes)
            undone.callback(epoch.guard.close)
            competition = cls(place, board, state, epoch, clock)
            competition._go_on_to(epoch)  # a worker may have died before it recorded its rotation
            competition.settle()
            undone.pop_all()
        return competition

    @staticmethod
    def slugs(folder: str | Path, *, database: str | None = None) -> list[str]:
        """Return the names of all competitions in a folder and database, the oldest first."""
        if database is None and not (Path(folder) / "board.db").exists():
            return []
        with contextlib.closing(_database(Path(folder), database)) as board, board.reading() as connection:
            return lists.slugs(connection)

    def close(self) -> None:
        """Close the ledger and the database. The competition can be opened again."""
        for epoch in (*self._past, self._epoch):
            epoch.guard.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _numbers_given(board: Database) -> int:
    with board.reading() as connection:
        return lists.numbers_given(connection)


# ---- rules that are filled in from the labels


def completed(rules: Rules, labels: Labels) -> Rules:
    """Return the rules with the classes and prediction columns filled in from the labels.

    Raises
    ------
    InputError
        If the classes or columns do not fit the metric.
    """
    metric = rules.made_metric()
    if metric.response == "values":
        if rules.classes is not None:
            raise InputError(
                f"{metric.name} measures values, so there are no classes; nothing was made; leave classes out"
            )
        classes = None
    else:
        classes = tuple(sorted(_found(labels) if rules.classes is None else rules.classes))
    of_each_class = metric.response == "probabilities" and classes is not None
    columns = rules.prediction_columns
    if not columns:
        columns = tuple(map(str, classes or ())) if of_each_class else ("prediction",)
    right = {1}
    if of_each_class and classes is not None:
        right = {1, 2} if len(classes) == 2 else {len(classes)}
    if len(columns) not in right:
        raise InputError(
            f"prediction_columns must be {' or '.join(map(str, sorted(right)))} for {metric.name} on these labels; "
            f"got {len(columns)}; nothing was made"
        )
    return replace(rules, classes=classes, prediction_columns=columns).check()


def _found(labels: Labels) -> set[Any]:
    """Return the distinct labels, which become public as the classes of the competition.

    Raises
    ------
    InputError
        If there are so many distinct labels that publishing them could give the answers away.
    """
    found = set(labels.y.tolist())
    kind = "text" if labels.y.dtype.kind == "U" else "numbers"
    if len(found) > 1 and not is_public(len(found), len(labels.y), kind):  # type: ignore[arg-type]
        raise InputError(
            f"the classes of a competition are public, and its {len(labels.y):,} rows have {len(found):,} distinct "
            "labels, which could be the answers themselves; nothing was made; if everyone may know the "
            "labels, list in classes all that may occur"
        )
    return found


# ---- files and databases


def place_of(
    folder: Path,
    slug: str,
    database: str | None = None,
    *,
    key_file: Path | None = None,
    witness: str | None = None,
) -> Place:
    """Return the locations of a competition's files and of its ledger.

    On a PostgreSQL server, each ledger has a schema of its own.

    Raises
    ------
    InputError
        If the witness is in the folder, so that both would be restored together.
    """
    if witness and _lies_in(witness, folder):
        raise InputError(
            "a board's witness must be outside its folder, because an older copy of the folder would bring an older "
            f"witness; got {witness}; nothing was made; name a file of another owner, or git:repository"
        )
    own = folder.absolute() / slug
    ledger = str(own / "ledger.db")
    if database is not None:
        _check_database(database)
        url = sa.make_url(database)
        options = f"{url.query.get('options', '')} -csearch_path={_schema_of(slug)}".strip()
        ledger = url.update_query_dict({"options": options}).render_as_string(hide_password=False)
    key = own / "ledger.key" if key_file is None else key_file.absolute()
    return Place(own, ledger, key, witness or None)


def _lies_in(witness: str, folder: Path) -> bool:
    """Return True if a witness is a file or a local repository inside a folder."""
    path = witness.removeprefix("git:")
    if path != witness and "@" in path:
        return False
    return Path(path.partition("#")[0]).resolve().is_relative_to(folder.resolve())


def _check_database(database: str) -> None:
    """Refuse a database that is not PostgreSQL. The message leaves out the URL, which may hold a password."""
    try:
        backend = sa.make_url(database).get_backend_name()
    except (sa.exc.ArgumentError, ValueError, AttributeError):
        backend = "something else"
    if backend != "postgresql":
        raise InputError(
            f"database must be the URL of a PostgreSQL server; got {backend}; nothing was made; leave it out "
            "for SQLite files in the folder"
        )


def _schema_of(slug: str) -> str:
    return f"board_{slug.replace('-', '_')}"


def _database(folder: Path, database: str | None) -> Database:
    if database is not None:
        _check_database(database)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Database(folder / "board.db" if database is None else database)
