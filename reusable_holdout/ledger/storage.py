"""The durable ledger: SQLAlchemy over SQLite, or another database by its URL."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.records import Row, Tail, check_follows, genesis, seal
from reusable_holdout.ledger.schema import CHUNK, METADATA, SCHEMA, Statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SqlLedger"]

_BUSY_SECONDS = 60


class SqlLedger:
    """Ledger in a database: shared by processes, survives them.

    A committed row is on the disk (SQLite: WAL, synchronous=FULL); writers take turns (SQLite: ``BEGIN IMMEDIATE``;
    else a lock on the configuration row).

    Parameters
    ----------
    location : str or Path
        SQLite file, or a SQLAlchemy URL.
    must_exist : bool
        Whether to refuse to make a new SQLite file.

    Raises
    ------
    LedgerError
        If it cannot be opened, is no ledger, or was written by a newer version.
    """

    def __init__(self, location: str | Path, *, must_exist: bool = False) -> None:
        self.url, self.path = _resolved(location)
        if self.path is not None:
            _check_file(self.path, must_exist=must_exist)
        self._lock = threading.RLock()
        self.closed = False
        self._process = os.getpid()
        self._genesis: bytes | None = None
        with self._translated("opened"):
            self._engine = _engine(self.url, is_sqlite=self.path is not None)
            self._sql = Statements(self._engine)
            self._connection = self._connect()
            self._prepare()

    def __repr__(self) -> str:
        return f"<SqlLedger: {sa.make_url(self.url).render_as_string(hide_password=True)}>"

    # ---- the contract

    def create(self, configuration: str) -> str:
        """Store a configuration if there is none; return the stored one."""
        with self.transaction() as transaction:
            return transaction.create(configuration)

    def configuration(self) -> str | None:
        """Stored configuration."""
        with self._reading() as cursor:
            return self._stored(cursor)

    def transaction(self) -> SqlTransaction:
        """Begin; the rows appended are durable when the block is left without an exception."""
        return SqlTransaction(self)

    def tail(self) -> Tail:
        """End of the ledger."""
        with self._reading() as cursor:
            return self._tail(cursor)

    def rows(self, after: int = 0) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        with self._reading() as cursor:
            cursor.execute(self._sql.rows, (after,))
            return [_row(values) for values in cursor.fetchall()]

    def seals(self) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        with self._reading() as cursor:
            cursor.execute(self._sql.seals)
            return [(query, bytes(sealed)) for query, sealed in cursor.fetchall()]

    def close(self) -> None:
        """Close the connection; later use raises LedgerError."""
        with self._own():
            if not self.closed:
                self._connection.close()
                self._engine.dispose()
            self.closed = True

    # ---- connections

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._translated("read"), self._own():
            connection = self._usable()
            cursor = connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()
                connection.rollback()

    def _usable(self) -> Any:
        if self.closed:
            raise LedgerError(
                "the ledger must be open; it is closed; nothing was asked; open the guard again"
            )
        return self._connection

    def _own(self) -> threading.RLock:
        """Lock of this process. Neither locks nor connections survive a fork: the child begins afresh."""
        if self._process != os.getpid():
            self._lock, self._process = threading.RLock(), os.getpid()
            if not self.closed:
                self._engine.dispose(close=False)
                self._engine = _engine(self.url, is_sqlite=self.path is not None)
                self._connection = self._connect()
        return self._lock

    def _connect(self) -> Any:
        return self._engine.raw_connection()

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        """Turn database errors into ours."""
        problem = None
        try:
            yield
        except Exception as error:
            problem = _reason(error)
            if problem is None:
                raise
        if problem is not None:
            raise self._failure(done, problem)

    def _failure(self, done: str, problem: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self!r} must be a ledger that can be {done}; it could not be ({problem}); nothing was "
            "answered and nothing was charged; check the file, its folder's permissions and the disk"
        )

    # ---- schema and rows

    def _prepare(self) -> None:
        """Make the tables if there are none, and refuse what is not a ledger of this schema."""
        if not self._has_tables(sa.inspect(self._engine)):
            with self._engine.connect() as connection:
                if self.path is not None:
                    connection.exec_driver_sql(
                        "BEGIN IMMEDIATE"
                    )  # of two processes that race, one makes them
                if not self._has_tables(sa.inspect(connection)):
                    METADATA.create_all(connection)
                connection.commit()
        cursor = self._connection.cursor()
        cursor.execute(self._sql.schema)
        found = cursor.fetchone()
        cursor.close()
        self._connection.rollback()
        if found is not None and found[0] != SCHEMA:
            raise LedgerError(
                f"{self!r} must have schema {SCHEMA}; it has {found[0]}; use the version of the library that wrote it"
            )

    def _has_tables(self, inspector: sa.Inspector) -> bool:
        present, ours = set(inspector.get_table_names()), set(METADATA.tables)
        if present and not ours <= present and (self.path is not None or ours & present):
            raise LedgerError(
                f"{self!r} must be a ledger or empty; it is another database; name another file"
            )
        return ours <= present

    def _stored(self, cursor: Any) -> str | None:
        cursor.execute(self._sql.configuration)
        found = cursor.fetchone()
        return None if found is None else str(found[0])

    def _tail(self, cursor: Any) -> Tail:
        cursor.execute(self._sql.tail)
        found = cursor.fetchone()
        if found is not None:
            query, charges, nats, sealed = found
            if sealed is None:
                raise LedgerError(
                    "the ledger's last row must be sealed; it is not: rows were added or removed; verify it"
                )
            return Tail(query, charges, nats, bytes(sealed))
        return Tail(0, 0, 0.0, genesis(self._stored(cursor) or ""))


class SqlTransaction:
    """One writing transaction, from the beginning of its ``with`` block to the end.

    A class and not a generator, and with one ``try``: every answer runs through it.
    """

    tail: Tail

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._sql = ledger._sql
        self._cursor: Any = None
        self._appended = False

    def __enter__(self) -> Self:
        ledger = self._ledger
        self._lock = ledger._own()
        self._lock.acquire()
        try:
            self._connection = ledger._usable()
            self._cursor = self._connection.cursor()
            for statement in self._sql.begin:
                self._cursor.execute(statement)
            self.tail = ledger._tail(self._cursor)
        except BaseException as error:
            self._undo()
            problem = _reason(error)
            if problem is None:
                raise
        else:
            return self
        raise ledger._failure("written", problem)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        problem = None if error is None else _reason(error)
        if error is None:
            try:
                self._connection.commit()
                self._cursor.close()
                self._lock.release()
            except BaseException as failed:
                self._undo()
                problem = _reason(failed)
                if problem is None:
                    raise
            else:
                return
        else:
            self._undo()
        if problem is not None:
            raise self._ledger._failure("written", problem)

    def _undo(self) -> None:
        """Leave nothing behind; the failure that led here is the one to report."""
        try:
            if self._cursor is not None:
                with contextlib.suppress(Exception):
                    self._connection.rollback()
                    self._cursor.close()
        finally:
            self._lock.release()

    def create(self, configuration: str) -> str:
        """Store a configuration if there is none; return the stored one."""
        stored = self._ledger._stored(self._cursor)
        if stored is None:
            self._cursor.execute(self._sql.create, (1, SCHEMA, configuration))
            return configuration
        return stored

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Rows of the questions that were answered before."""
        if self.tail.query == 0:
            return {}
        cursor = self._cursor
        if len(digests) == 1:
            cursor.execute(self._sql.one, (digests[0],))
            return {row.digest: row for row in map(_row, cursor.fetchall())}
        found: dict[bytes, Row] = {}
        if self.tail.query < len(digests):  # fewer rows than questions: looking at all rows is cheaper
            cursor.execute(self._sql.digests)
            digests = list({bytes(digest) for (digest,) in cursor.fetchall()}.intersection(digests))
        for start in range(0, len(digests), CHUNK):
            chunk = list(digests[start : start + CHUNK])
            chunk += [chunk[0]] * (CHUNK - len(chunk))  # one statement for all lengths
            cursor.execute(self._sql.chunk, chunk)
            found.update((row.digest, row) for row in map(_row, cursor.fetchall()))
        return found

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, once at most."""
        if self._appended:
            raise LedgerError("a transaction appends once at most; it was asked twice; nothing was written")
        check_follows(self.tail, rows)
        self._appended = True
        sealed = seal(self.tail.seal, rows)
        if len(rows) > 1:
            self._cursor.executemany(self._sql.insert, map(tuple, rows[:-1]))  # plain tuples bind faster
        self._cursor.execute(self._sql.insert_sealed, (*rows[-1], sealed))


def _row(values: Sequence[Any]) -> Row:
    row = Row(*values)
    return row._replace(digest=bytes(row.digest)) if isinstance(row.digest, memoryview) else row


def _resolved(location: str | Path) -> tuple[str, Path | None]:
    """URL of a ledger, and its file if it is SQLite."""
    if isinstance(location, str) and "://" in location:
        try:
            url = sa.make_url(location)
        except sa.exc.ArgumentError:
            raise LedgerError(
                "a ledger must be a file or a SQLAlchemy URL; got a URL that cannot be read"
            ) from None
        if url.get_backend_name() != "sqlite":
            return location, None
        if not url.database or url.database == ":memory:":
            raise LedgerError("a ledger in memory is ledger=None; got a SQLite URL without a file")
        location = url.database
    if not isinstance(location, str | Path) or not str(location):
        raise LedgerError(f"a ledger must be a file or a SQLAlchemy URL; got {type(location).__name__}")
    path = Path(location).absolute()
    return sa.URL.create("sqlite", database=str(path)).render_as_string(), path


def _check_file(path: Path, *, must_exist: bool) -> None:
    if path.is_dir():
        raise LedgerError(f"a ledger must be a file; {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; {path.parent} does not; make it first")
    if must_exist and not path.exists():
        raise LedgerError(
            f"there is no ledger at {path}; make a guard with ReusableHoldout(X, y, ledger=...)"
        )


def _engine(url: str, *, is_sqlite: bool) -> sa.Engine:
    if not is_sqlite:
        return sa.create_engine(url)
    engine = sa.create_engine(
        url,
        poolclass=sa.NullPool,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
    )

    @sa.event.listens_for(engine, "connect")
    def durable(connection: Any, _: Any) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                break
            except (
                connection.OperationalError
            ):  # changing the mode does not wait for others: SQLite says busy
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous=FULL")

    return engine


def _reason(error: BaseException) -> str | None:
    """Kind of a database failure, without the driver's words, which may quote rows; None for other errors."""
    if isinstance(error, LedgerError):
        return None
    if isinstance(error, sa.exc.SQLAlchemyError):
        error = getattr(error, "orig", None) or error
        return getattr(error, "sqlite_errorname", None) or type(error).__name__
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    # PEP 249 names the classes of drivers' errors, and no two drivers share them
    if any(cls.__name__ in {"DatabaseError", "InterfaceError"} for cls in type(error).__mro__):
        return getattr(error, "sqlite_errorname", None) or type(error).__name__
    return None
