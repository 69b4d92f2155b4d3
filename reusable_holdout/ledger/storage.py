"""The durable ledger: SQLAlchemy over SQLite, or another database by its URL."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError, MissingExtraError
from reusable_holdout.ledger.connection import Connected, begin_use, watch
from reusable_holdout.ledger.failures import failure, lost, misuse, reason
from reusable_holdout.ledger.location import check_file, engine_of, resolved, shown
from reusable_holdout.ledger.records import as_row, plain
from reusable_holdout.ledger.schema import (
    METADATA,
    MIGRATIONS,
    SCHEMA,
    check_known,
    create_tables,
    statements,
)
from reusable_holdout.ledger.transaction import SqlTransaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reusable_holdout.ledger.records import Row, Tail
    from reusable_holdout.witness import Head, Witness

__all__ = ["SqlLedger"]


class SqlLedger(Connected):
    """Ledger in a database: shared by processes, survives them.

    A committed row is on the disk (SQLite: WAL, synchronous=FULL); writers take turns (SQLite: ``BEGIN IMMEDIATE``;
    else a lock on the configuration row). One connection and one lock serve all threads of a process; none of it
    crosses a fork: see `connection`.

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
        self.url, self.path = resolved(location)
        if self.path is not None:
            check_file(self.path, must_exist=must_exist)
        self.closed = False
        self.witness: Witness | None = None
        self._file: tuple[int, int] | None = None
        self.begin_afresh()
        problem = ""
        watch(self)
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

    # ---- the contract

    def create(self, configuration: str, known_rows: bytes = b"") -> str:
        """Store a configuration if there is none; return the stored one."""
        stored = self.configuration()
        if stored is not None:
            return stored
        try:
            with self.transaction() as transaction:
                return transaction.create(configuration, known_rows)
        except LedgerError:  # a server has no row to lock yet: of two processes that race, one inserts
            stored = self.configuration()
            if stored is None:
                raise
        return stored

    def configuration(self) -> str | None:
        """Stored configuration."""
        return self._read(self._stored)

    def configurations(self) -> list[str]:
        """Configurations of all epochs, in order."""
        return [str(text) for (text,) in self._fetched(self._sql.configurations)]

    def known_rows(self, epoch: int) -> bytes:
        """What an epoch's rows are known by; empty if nothing is kept of them."""
        stored = self._fetched(self._sql_of(epoch).known_rows)
        known = plain(stored[0][0]) if stored else None
        return known if type(known) is bytes else b""

    def transaction(self) -> SqlTransaction:
        """Begin; the rows appended are durable when the block is left without an exception."""
        return SqlTransaction(self)

    def tail(self) -> Tail:
        """End of the ledger."""
        return self._read(self._tail)

    def find(self, digest: bytes) -> Row | None:
        """Row of a question, without waiting for writers; None if it was not answered yet."""
        found = self._fetched(self._sql.one, (digest,))
        return as_row(found[0]) if found else None

    def rows(self, after: int = 0, *, epoch: int | None = None) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        return [as_row(values) for values in self._fetched(self._sql_of(epoch).rows, (after,))]

    def seals(self, *, epoch: int | None = None) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        return [(query, plain(sealed)) for query, sealed in self._fetched(self._sql_of(epoch).seals)]

    def _fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        def work(cursor: Any) -> list[Any]:
            cursor.execute(statement, parameters)
            found: list[Any] = cursor.fetchall()
            return found

        return self._read(work)

    def close(self) -> None:
        """Close the connection; later use raises LedgerError."""
        with self._lock:
            if self._active is not None:
                raise misuse("nested")
            begin_use(self)
            self.closed = True
            self.drop()
            self.user = 0

    def latest(self) -> SqlLedger:
        """Same ledger, standing at its last epoch, with the same witness."""
        ledger = SqlLedger(self.url if self.path is None else self.path, must_exist=True)
        ledger.witness = self.witness
        return ledger

    def watched_by(self, witness: Witness, *, may_begin: bool) -> None:
        """Let a witness hold the highest head from now on.

        Parameters
        ----------
        witness : Witness
        may_begin : bool
            Whether it may have seen nothing yet, though the ledger has answers.

        Raises
        ------
        RolledBackError
            If the ledger does not go on from what it has seen, or it has seen nothing and may not begin.
        """
        seen = witness.read()
        made = self._read(self._stored) is not None

        def work(cursor: Any) -> Head:
            tail = self._tail(cursor)
            here = self.head_at(tail.query, tail.seal) if made else self.head_at(0, b"", epoch=0)
            if seen is not None:
                self.check_goes_on(cursor, here, seen)
            elif here.has_answers() and not may_begin:
                raise lost(self.place, witness.place)
            return here

        here = self._read(work)
        self.witness = witness
        if made and here != seen:
            self.tell(here, seen)

    # ---- schema and rows

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
