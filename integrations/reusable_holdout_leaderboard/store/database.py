"""The board's database: connections and transactions, the state of each competition, and its events."""

from __future__ import annotations

import contextlib
import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout.ledger.connection import resolved, shown
from reusable_holdout.ledger.failures import reason
from reusable_holdout.ledger.sqlite import settle as make_durable
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import Event, StoreError
from reusable_holdout_leaderboard.store.tables import COMPETITIONS, EVENTS, FORMS, SECRETS, prepare_tables

__all__ = [
    "Database",
    "State",
    "as_moment",
    "create_competition",
    "find",
    "form_secret",
    "keep_head",
    "lock",
    "tell",
    "tell_answer",
    "update",
]

_BUSY_SECONDS = 60
_IDLE_SECONDS = 1.0  # a connection that was idle for longer may have been closed by the server
_TABLES_LOCK = 0x7268_6C62  # PostgreSQL: number of the lock under which one process creates the tables
_SOON = sa.text("SET LOCAL synchronous_commit = off")


class Database:
    """The database of all boards in a folder or on a PostgreSQL server.

    When a transaction has ended without an exception, its changes are on the disk (SQLite: WAL, synchronous=FULL),
    unless the caller allows a delay. On SQLite, only one transaction writes at a time (``BEGIN IMMEDIATE``). On
    PostgreSQL, a transaction that writes first locks the row of its competition.

    Parameters
    ----------
    location : str or Path
        SQLite file, or SQLAlchemy URL.

    Raises
    ------
    StoreError
        If the database cannot be opened, or another version of the library made it.
    """

    def __init__(self, location: str | Path) -> None:
        self.url, self.path = resolved(location)
        if self.path is not None:
            _make_private(self.path)
        self._engine = _engine(self.url, is_sqlite=self.path is not None)
        _OPEN.add(self)
        with contextlib.ExitStack() as undone:
            undone.callback(self.close)
            with self.writing() as connection:
                if self.path is None:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TABLES_LOCK)))
                prepare_tables(connection)
            undone.pop_all()

    def __repr__(self) -> str:
        return f"<Database: {shown(self.url)}>"

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection for reading. On PostgreSQL, a later statement may see newer data than an earlier one.

        Raises
        ------
        StoreError
            If the database fails.
        """
        with self._transaction(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[sa.Connection]:
        """Open a transaction that writes. It is rolled back if its block raises an exception.

        Parameters
        ----------
        lasting : bool
            True if the changes must be on the disk when the block ends. With False, they may be lost if the machine
            stops within a second; this is allowed if the ledger has the same content.

        Raises
        ------
        StoreError
            If the database fails. Nothing was written.
        """
        with self._transaction(writing=True, lasting=lasting) as connection:
            if not lasting and self.path is None:
                connection.execute(_SOON)
            yield connection

    def close(self) -> None:
        """Close all connections. New ones are opened if the database is used again."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _transaction(self, *, writing: bool, lasting: bool = True) -> Iterator[sa.Connection]:
        problem: str | None = None
        options: dict[str, Any] = {"writing": writing, "lasting": lasting}
        if self.path is None and not writing:
            options["isolation_level"] = "AUTOCOMMIT"  # otherwise each read takes three round trips
        try:
            with self._engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection
        except (sa.exc.SQLAlchemyError, OSError, ImportError) as error:
            problem = reason(error) or type(error).__name__  # a driver's message may quote a password
        if problem is not None:
            raise StoreError(
                f"the board's database must be {'writable' if writing else 'readable'}; it is not ({problem}); check "
                "the file, its folder and the disk, or the server"
            )


def _engine(url: str, *, is_sqlite: bool) -> sa.Engine:
    if not is_sqlite:
        with of_extra("postgresql", "PostgreSQL"):
            engine = sa.create_engine(url, pool_size=5, max_overflow=20)
        _look_after_idling(engine)
        return engine
    engine = sa.create_engine(
        url,
        pool_size=5,
        max_overflow=-1,  # a thread always gets a connection; it may wait for the database's lock
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
    )

    @sa.event.listens_for(engine, "connect")
    def settle(connection: Any, _: Any) -> None:
        make_durable(connection)
        connection.execute("PRAGMA foreign_keys=ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        if options.get("writing", False):
            level = "FULL" if options.get("lasting", True) else "NORMAL"
            connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing", False) else "BEGIN")

    return engine


def _look_after_idling(engine: sa.Engine) -> None:
    """Make an engine check a connection before use if it was idle for some time.

    A check before every use would cost one more exchange with the server for each transaction.
    """

    @sa.event.listens_for(engine, "checkin")
    def leave(_: Any, record: Any) -> None:
        record.info["left_at"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def take(connection: Any, record: Any, _: Any) -> None:
        if time.monotonic() - record.info.get("left_at", time.monotonic()) < _IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            problem = sa.exc.DisconnectionError()  # the pool opens a new connection then
        else:
            return
        raise problem


def _make_private(path: Path) -> None:
    """Create the database file so that only its owner can read it, because it has the scores of blind competitions.

    An existing file is not opened. Closing it again would release the locks of all other connections of this process.
    Then the next process that ends could delete the write-ahead log that they are still using.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"the board's database {path} must be a writable file; {error.strerror}") from None


# ---- SQLite's locks do not survive a fork, so databases are closed before it: see reusable_holdout.ledger.connection

_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()


def _close_all() -> None:
    for database in list(_OPEN):
        database.close()


os.register_at_fork(before=_close_all)


# ---- rows of competitions


class State(NamedTuple):
    """The state of one competition, as the database stores it."""

    id: int
    rules: Rules
    epoch: int
    frozen: bool
    blind: bool
    revision: int
    final: list[dict[str, Any]] | None
    head: Head
    invitation: str


def as_moment(seconds: float) -> datetime:
    """Return a time that is given in seconds since 1970 as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


@lru_cache(maxsize=16)
def _rules(text: str) -> Rules:
    return Rules.from_json(text)


def _head(text: str) -> Head:
    head = Head.parse(text.encode())
    if head is None:
        raise StoreError("the board must hold its ledger's newest seal; it does not; restore a backup of it")
    return head


def _state(row: Any) -> State:
    return State(
        id=row.id,
        rules=_rules(row.rules),
        epoch=row.epoch,
        frozen=bool(row.frozen),
        blind=bool(row.blind),
        revision=row.revision,
        final=None if row.final is None else json.loads(row.final),
        head=_head(row.ledger_head),
        invitation=row.invitation or "",
    )


# ---- competitions. Statements that every request needs are built once: to build them takes longer than to run them.

_NAMED = sa.select(COMPETITIONS).where(COMPETITIONS.c.slug == sa.bindparam("slug"))
_LOCKED = sa.select(COMPETITIONS).where(COMPETITIONS.c.id == sa.bindparam("number")).with_for_update()


def create_competition(connection: sa.Connection, rules: Rules, head: Head, *, at: float) -> None:
    """Add a competition to the database, with the head of its ledger.

    Raises
    ------
    InputError
        If there is a competition with this slug already.
    """
    if find(connection, rules.slug) is not None:
        raise InputError(
            f"there is a competition {rules.slug!r} already; nothing was made; open it, or name another slug"
        )
    values = {"slug": rules.slug, "rules": rules.to_json(), "created_at": at, "blind": rules.blind}
    values |= {"epoch": 1, "frozen": False, "revision": 0, "ledger_head": _text(head)}
    (number,) = connection.execute(sa.insert(COMPETITIONS).values(values)).inserted_primary_key or (0,)
    tell(connection, int(number), "created", at)


def find(connection: sa.Connection, slug: str) -> State | None:
    """Return the state of the competition with this slug, or None if there is no such competition."""
    row = connection.execute(_NAMED, {"slug": slug}).first()
    return None if row is None else _state(row)


def lock(connection: sa.Connection, number: int) -> State:
    """Lock a competition until the transaction ends, and return its state.

    Other transactions that want to change the competition wait meanwhile. On SQLite, they wait at ``BEGIN`` already.

    Raises
    ------
    InputError
        If there is no competition with this number.
    """
    row = connection.execute(_LOCKED, {"number": number}).first()
    if row is None:
        raise InputError(f"there must be a competition of number {number}; there is none")
    return _state(row)


def update(connection: sa.Connection, number: int, **values: Any) -> None:
    """Set columns in the row of a competition to new values."""
    connection.execute(sa.update(COMPETITIONS).where(COMPETITIONS.c.id == number).values(values))


def form_secret(connection: sa.Connection) -> bytes:
    """Return the secret from which the keys of forms are made. All servers of this database share it."""
    return bytes(connection.execute(sa.select(SECRETS.c.value).where(SECRETS.c.name == FORMS)).scalar_one())


# ---- events

_EVENT = sa.insert(EVENTS)
_TOLD = (
    sa.update(COMPETITIONS)
    .where(COMPETITIONS.c.id == sa.bindparam("number"))
    .values(revision=sa.bindparam("at_revision"), ledger_head=sa.bindparam("head"))
)


def tell(
    connection: sa.Connection,
    number: int,
    kind: str,
    at: float,
    *,
    team_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Event:
    """Add an event to a competition that the transaction has locked, and return it."""
    update(connection, number, revision=COMPETITIONS.c.revision + 1)
    asked = sa.select(COMPETITIONS.c.revision).where(COMPETITIONS.c.id == number)
    revision = int(connection.execute(asked).scalar_one())
    _add_event(connection, number, revision, kind, at, team_id=team_id, detail=detail)
    return Event(revision, as_moment(at), kind, team_id, None, None if detail is None else dict(detail))


def tell_answer(
    connection: sa.Connection, state: State, team_id: int, submission_id: int, at: float, head: Head
) -> None:
    """Add the event that a submission was answered, and store the ledger's head if it is later than the stored one.

    This must be the first event that the transaction adds after :func:`lock` returned `state`.
    """
    revision = state.revision + 1
    kept = head if head.is_later_than(state.head) else state.head  # another worker may have a later one
    connection.execute(_TOLD, {"number": state.id, "at_revision": revision, "head": _text(kept)})
    _add_event(connection, state.id, revision, "submission", at, team_id=team_id, submission_id=submission_id)


def _add_event(
    connection: sa.Connection,
    number: int,
    revision: int,
    kind: str,
    at: float,
    *,
    team_id: int | None,
    submission_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    values = {
        "competition_id": number,
        "revision": revision,
        "at": at,
        "kind": kind,
        "team_id": team_id,
        "submission_id": submission_id,
        "detail": None if detail is None else json.dumps(detail, allow_nan=False),
    }
    connection.execute(_EVENT, values)


# ---- the ledger's head


def keep_head(connection: sa.Connection, state: State, head: Head) -> None:
    """Store the ledger's head of a locked competition, if it is later than the stored one."""
    if head.is_later_than(state.head):
        update(connection, state.id, ledger_head=_text(head))


def _text(head: Head) -> str:
    return head.record().decode()
