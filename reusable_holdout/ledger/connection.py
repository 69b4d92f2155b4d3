"""The connection of a ledger: one for all threads of a process, and none that crosses a fork.

SQLite counts a process's file locks in the process's memory, and a fork copies the count but not the locks. A child
that opens the ledger again would then trust locks it does not have: when the parent closes, the write-ahead log is
deleted under the child, and what the child commits from then on is lost. Nothing the child does can mend that, so the
parent closes its connections before it forks; both open new ones when they next need them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError, MissingExtraError
from reusable_holdout.ledger.failures import failure, gone, misuse, reason, rolled_back, rotated
from reusable_holdout.ledger.location import check_file, engine_of, resolved, shown
from reusable_holdout.ledger.records import Tail, genesis, plain
from reusable_holdout.ledger.schema import (
    METADATA,
    MIGRATIONS,
    SCHEMA,
    Statements,
    check_known,
    create_tables,
    statements,
)
from reusable_holdout.witness import Head, Witness
from reusable_holdout.witness import head as heads

__all__ = ["Connected", "file_identity"]

_T = TypeVar("_T")

_PATIENCE_SECONDS = 10.0  # for the transactions of other threads, which last milliseconds
_PAUSE_SECONDS = 0.001

_LEDGERS: weakref.WeakSet[Connected] = weakref.WeakSet()
_ORPHANED: set[str] = set()  # URLs that the parent used when this process was forked: it cannot do so safely


class Connected:
    """A ledger's database, its connection and its lock."""

    _active: object | None  # the transaction that is open
    _connection: Any = None
    _lock: threading.RLock
    user: int  # thread that uses the connection now; 0 for none

    def __init__(self, location: str | Path, *, must_exist: bool = False) -> None:
        self.url, self.path = resolved(location)
        if self.path is not None:
            check_file(self.path, must_exist=must_exist)
        self.closed = False
        self.last_values: dict[tuple[int, str, int], tuple[int, bytes, float | None]] = {}
        self.witness: Witness | None = None
        self._file: tuple[int, int] | None = None
        self.begin_afresh()
        problem = ""
        _watch_forks()
        _LEDGERS.add(self)
        self._acquire()
        try:
            self._engine = engine_of(self.url, is_sqlite=self.path is not None)
            self._sql = statements(self._engine, 1)
            self._prepare()
            self._file = self._identity()
        except BaseException as error:
            self.drop()
            problem = reason(error) or (type(error).__name__ if isinstance(error, ImportError) else "")
            if not problem or isinstance(error, MissingExtraError):
                raise
        finally:
            self._release()
        if problem:
            raise failure(self, "opened", problem)

    def __repr__(self) -> str:
        return f"<SqlLedger: {shown(self.url)}>"

    @property
    def place(self) -> str:
        """The ledger's file, or its URL without a password."""
        return shown(self.url) if self.path is None else str(self.path)

    @property
    def epoch(self) -> int:
        """Epoch it stands at."""
        return self._sql.epoch

    def _sql_of(self, epoch: int | None) -> Statements:
        return self._sql if epoch is None else statements(self._engine, epoch)

    def _read(self, work: Callable[[Any], _T]) -> _T:
        self._acquire()
        try:
            connection = self._connected()
            cursor = connection.cursor()
            found = work(cursor)
            cursor.close()
            connection.rollback()
        except BaseException as error:
            self.drop()
            problem = reason(error)
            if problem is None:
                raise
        else:
            return found
        finally:
            self._release()
        raise failure(self, "read", problem)

    def _acquire(self) -> None:
        """Wait for the other threads; refuse this one if it holds the ledger already."""
        self._lock.acquire()
        if self.closed or self._active is not None or self.url in _ORPHANED:
            kind = "closed" if self.closed else "orphaned" if self._active is None else "nested"
            self._lock.release()
            raise misuse(kind)
        _begin_use(self)

    def _release(self) -> None:
        self._active = None
        self.user = 0
        self._lock.release()

    def _connected(self) -> Any:
        """Connection to the file that was opened: an answer in one that was deleted or replaced would be lost."""
        if self._file is not None and self._identity() != self._file:
            raise gone(self.place)
        if self._connection is None:
            connection = self._engine.raw_connection()
            if self._sql.reads_alone:
                connection.driver_connection.autocommit = True  # type: ignore[union-attr]
            self._at_the_end = weakref.finalize(self, connection.close)  # a cycle would leave it open
            self._at_the_end.atexit = False  # a forked child's end must not close what is its parent's
            self._connection = connection
        return self._connection

    def _identity(self) -> tuple[int, int] | None:
        return None if self.path is None else file_identity(self.path)

    def begin_afresh(self) -> None:
        """Hold no lock and no connection: of a new ledger, and in a child after a fork."""
        self._lock = threading.RLock()
        self._active = None  # one that was open at a fork is the parent's
        self._forget_connection()
        self.user = 0

    def drop(self) -> None:
        """Forget a connection that failed, with all it has not committed; the next use makes another."""
        connection = self._forget_connection()
        if connection is not None:
            with contextlib.suppress(Exception):  # the failure that led here is the one to report
                connection.close()

    def close(self) -> None:
        """Close the connection; later use raises LedgerError."""
        with self._lock:
            if self._active is not None:
                raise misuse("nested")
            _begin_use(self)
            self.closed = True
            self.drop()
            self.user = 0

    def _forget_connection(self) -> Any:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._at_the_end.detach()
        return connection

    def _stored(self, cursor: Any) -> str | None:
        cursor.execute(self._sql.configuration)
        found = cursor.fetchone()
        return None if found is None else str(found[0])

    def _tail(self, cursor: Any, *, writing: bool = False) -> Tail:
        cursor.execute(self._sql.tail)
        found = cursor.fetchone()
        if found is None:
            if writing:
                cursor.execute(self._sql.latest)
                self._check_is_last(cursor.fetchone()[0])
            return Tail.before(self._stored(cursor) or "")
        query, charges, nats, asked, kind, sealed, last_charged, last_charge, latest = found
        if writing:
            self._check_is_last(latest)
        sealed = plain(sealed)
        if type(sealed) is not bytes:
            raise LedgerError(
                "the ledger's last row must be sealed; it is not: rows were added or removed; verify it"
            )
        return Tail(query, charges, nats, asked, kind, sealed, plain(last_charged) or b"", last_charge or 0)

    def _check_is_last(self, latest: int | None) -> None:
        if latest is not None and latest != self.epoch:
            raise rotated(self.epoch, latest)

    # ---- the witness

    def head_at(self, query: int, sealed: bytes, *, epoch: int | None = None) -> Head:
        """Head that a witness is told of, of this epoch by default."""
        return heads.Head(self.epoch if epoch is None else epoch, query, sealed)

    def check_goes_on(self, cursor: Any, here: Head, seen: Head) -> None:
        """Refuse a ledger in which the witness's head does not stand: it may be ahead of that, never behind.

        The ledger's own head was read before; a RolledBackError says that the other's does not stand in it.
        """
        if seen == here:
            return
        sql = self._sql_of(seen.epoch)  # perhaps a later one than here: others rotate
        if seen.query:
            cursor.execute(sql.seal_at, (seen.query,))
        else:
            cursor.execute(sql.configuration)
        (found,) = cursor.fetchone() or (None,)
        known = plain(found) if seen.query or found is None else genesis(found)
        if known != seen.seal:
            raise rolled_back(self.place, here, seen)

    def tell(self, head: Head, seen: Head | None) -> None:
        """Tell the witness of a head that is committed, after the one that it was seen to hold.

        A RolledBackError says that it has been told of another meanwhile that is not of this ledger.
        """
        if self.witness is None:
            return
        held = self.witness.advance(head, after=seen)
        while held != head:  # another process of this ledger told it of its own, or a copy of the ledger did

            def work(cursor: Any, held: Head = held) -> None:
                tail = self._tail(cursor)
                self.check_goes_on(cursor, self.head_at(tail.query, tail.seal), held)

            self._read(work)
            if not head.is_later_than(held):
                return
            held = self.witness.advance(head, after=held)

    # ---- schema

    def _prepare(self) -> None:
        """Make the tables if there are none, bring older ones to this schema, and refuse what is no ledger."""
        if not self._has_tables(sa.inspect(self._engine)):
            self._make_tables()
        with contextlib.closing(self._connected().cursor()) as cursor:
            cursor.execute(self._sql.schema)
            found = cursor.fetchone()
            if found is not None and found[0] != SCHEMA:
                self._upgrade(cursor, found[0])
            cursor.execute(self._sql.latest)
            latest = cursor.fetchone()[0]
        self._connection.rollback()
        if latest not in {None, 1}:
            self._sql = statements(self._engine, int(latest))

    def _upgrade(self, cursor: Any, schema: Any) -> None:
        """Bring the tables to this schema, once also if several processes try at the same moment."""
        library = ""
        if isinstance(schema, int) and schema > SCHEMA:
            cursor.execute(self._sql.library)
            library = cursor.fetchone()[0]
        check_known(self, schema, library)
        for statement in self._sql.begin:
            cursor.execute(statement)
        cursor.execute(self._sql.schema)
        for number in range(cursor.fetchone()[0], SCHEMA):  # another process may have done it meanwhile
            MIGRATIONS[number](cursor)
        cursor.execute(self._sql.upgraded, (SCHEMA,))
        if self.path is None:
            self._connection.commit()
        else:
            cursor.execute("COMMIT")

    def _make_tables(self) -> None:
        """Make them once, also if several processes try at the same moment."""
        try:
            with self._engine.connect() as connection:
                if self.path is not None:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                if not self._has_tables(sa.inspect(connection)):
                    create_tables(connection)
                connection.commit()
        except sa.exc.DBAPIError:  # a server has nothing to lock yet: of those that race, one succeeds
            if self.path is not None or not self._has_tables(sa.inspect(self._engine)):
                raise

    def _has_tables(self, inspector: sa.Inspector) -> bool:
        present, ours = set(inspector.get_table_names()), set(METADATA.tables)
        if present and not ours <= present and (self.path is not None or ours & present):
            raise LedgerError(
                f"{self!r} must be a ledger or empty; it is another database; name another file"
            )
        return ours <= present


class _Gate:
    """Shut while a thread forks: who uses a ledger may end, but nobody begins."""

    lock = threading.Lock()


@lru_cache(maxsize=1)
def _watch_forks() -> None:
    """Close all ledgers' connections before every fork, from the first ledger on: an import alone does nothing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _begin_use(ledger: Connected) -> None:
    """Note that this thread uses the ledger's connection, until the ledger's `user` is 0 again."""
    with _Gate.lock:
        ledger.user = threading.get_ident()


def _before() -> None:
    """Wait until no other thread uses a ledger, and close each but one whose own transaction forks."""
    _Gate.lock.acquire()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for ledger in list(_LEDGERS):
        while ledger.user not in {0, threading.get_ident()} and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        if not ledger.user:
            ledger.drop()


def _in_parent() -> None:
    _Gate.lock.release()


def _in_child() -> None:
    _Gate.lock = threading.Lock()
    for ledger in list(_LEDGERS):
        if ledger.user:
            _ORPHANED.add(ledger.url)
            kept = ctypes.py_object(ledger._connection)  # even closing it would harm the parent
            ctypes.pythonapi.Py_IncRef(kept)
        ledger.begin_afresh()


def file_identity(path: str | Path) -> tuple[int, int] | None:
    """What changes when a file is replaced, and not when it grows; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - with every use of a ledger
    except OSError:
        return None
    return status.st_dev, status.st_ino
