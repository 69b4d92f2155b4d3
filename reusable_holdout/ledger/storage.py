"""The durable ledger: SQLAlchemy over SQLite, or another database by its URL; and its transactions, the hot path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, cast

from reusable_holdout.errors import LedgerError, RolledBackError
from reusable_holdout.ledger.connection import Connected
from reusable_holdout.ledger.failures import failure, lost, misuse, reason
from reusable_holdout.ledger.records import Row, Tail, as_row, check_follows, genesis, plain, seal
from reusable_holdout.ledger.schema import CHUNK, SCHEMA
from reusable_holdout.version import __version__
from reusable_holdout.witness import Head, Witness

__all__ = ["SqlLedger", "SqlTransaction"]

_Method = TypeVar("_Method", bound="Callable[..., Any]")
_FEW = 2  # digests that are looked up one by one
_UNKNOWN = "whether its rows were recorded is unknown until the server is back; ask again: recorded answers replay free"


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

    def charged(self, most: int) -> list[int]:
        """Numbers of the first queries that were charged, so many at most."""
        return [int(query) for (query,) in self._fetched(self._sql.charged, (most,))]

    def rows_of_kind(self, kind: str) -> list[Row]:
        """Rows of one way to ask, in order."""
        return [as_row(values) for values in self._fetched(self._sql.rows_of_kind, (kind,))]

    def seals(self, *, epoch: int | None = None) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        return [(query, plain(sealed)) for query, sealed in self._fetched(self._sql_of(epoch).seals)]

    def _fetched(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        def work(cursor: Any) -> list[Any]:
            cursor.execute(statement, parameters)
            found: list[Any] = cursor.fetchall()
            return found

        return self._read(work)

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


def _inside(method: _Method) -> _Method:
    """Let a method use the database inside its transaction's block alone, and not once it has failed there."""

    @functools.wraps(method)
    def use(self: SqlTransaction, *args: Any, **kwargs: Any) -> Any:
        if self._ledger._active is not self:
            raise misuse("over")
        if self._problem:
            raise failure(self._ledger, "written", self._problem)
        try:
            return method(self, *args, **kwargs)
        except BaseException as error:
            problem = None if isinstance(error, LedgerError) else reason(error)
            self._problem = problem or type(error).__name__
            if problem is None:
                raise
        raise failure(self._ledger, "written", problem)

    return cast("_Method", use)


class SqlTransaction:
    """One writing transaction, from the beginning of its ``with`` block to the end.

    A class and not a generator, for every answer runs through it. Once the database has failed in it, it can only be
    rolled back: nothing half-written is committed, even if the failure is caught inside the block.
    """

    tail: Tail

    def __init__(self, ledger: Connected) -> None:
        self._ledger, self._sql = ledger, ledger._sql
        self._cursor: Any = None
        self._appended = self._rotated = False
        self._problem = ""
        self._witness: Witness | None = None
        self._head: Head | None = None
        self._seen: Head | None = None

    def __enter__(self) -> Self:
        ledger = self._ledger
        ledger._acquire()
        try:
            self._connection = ledger._connected()
            self._cursor = self._connection.cursor()
            for statement in self._sql.begin:
                self._cursor.execute(statement)
            self.tail = ledger._tail(self._cursor, writing=True)
            self._witness = ledger.witness
            if self._witness is not None:
                self._check_witness(self._witness)
            ledger._active = self
        except BaseException as error:
            ledger.drop()
            ledger._release()
            problem = reason(error)
            if problem is None:
                raise
        else:
            return self
        raise failure(ledger, "written", problem)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        ledger, outcome = self._ledger, ""
        if ledger._active is not self:  # a forked child leaves its parent's block
            if error is None:
                raise misuse("over")
            return
        problem: str | None = self._problem
        try:
            if error is None and not problem:
                self._commit()
            else:
                self._connection.rollback()
        except BaseException as failed:
            ledger.drop()
            problem = reason(failed)
            if problem is None:
                raise
            outcome = "" if error or ledger.path is not None else _UNKNOWN
        finally:
            ledger._release()
        if error is None and problem:
            raise failure(ledger, "written", problem, outcome=outcome)
        if error is None and self._head is not None and self._head != self._seen:
            self._tell(self._head)

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, once at most."""
        if self._appended or self._rotated:
            raise misuse("twice")
        if not rows:
            return
        check_follows(self.tail, rows)
        sealed = seal(self.tail.seal, rows)
        self._appended = True
        self._stand_at(self._sql.epoch, rows[-1].query, sealed)
        self._insert(rows, sealed)

    def rotate(self, configuration: str, known_rows: bytes = b"") -> None:
        """End this epoch and begin the next, once at most."""
        if self._appended or self._rotated:
            raise misuse("twice")
        self._begin(configuration, known_rows)

    # ---- the witness

    def _stand_at(self, epoch: int, query: int, sealed: bytes) -> None:
        """Note the head that a witness is told of."""
        if self._witness is not None:
            self._head = self._ledger.head_at(query, sealed, epoch=epoch)

    def _check_witness(self, witness: Witness) -> None:
        here = self._head = self._ledger.head_at(self.tail.query, self.tail.seal)
        self._seen = witness.read()
        if self._seen is not None:
            self._ledger.check_goes_on(self._cursor, here, self._seen)
        elif here.has_answers():
            raise lost(self._ledger.place, witness.place)

    def _tell(self, here: Head) -> None:
        """Tell the witness what was committed, before anything of it leaves."""
        try:
            self._ledger.tell(here, self._seen)
            return
        except RolledBackError:
            raise
        except LedgerError as error:
            why = str(error)
        raise LedgerError(
            f"{why}; what was asked is recorded, and told once the witness can be told: ask again, it replays free"
        )

    # ---- the database

    def _commit(self) -> None:
        if self._ledger.path is None:
            self._connection.commit()
        else:  # unlike the driver's commit(), it fails if the database has rolled back by itself
            self._cursor.execute("COMMIT")
        self._cursor.close()

    @_inside
    def create(self, configuration: str, known_rows: bytes) -> str:
        """Store a configuration if there is none; return the stored one."""
        stored = self._ledger._stored(self._cursor)
        if stored is not None:
            return stored
        if self.tail.query:
            raise LedgerError(
                "a ledger with rows must have the configuration they were sealed with; it is gone; nothing was "
                "written; restore the ledger whole"
            )
        self._configure(self._sql.epoch, configuration, known_rows)
        self.tail = Tail.before(configuration)
        return configuration

    @_inside
    def _begin(self, configuration: str, known_rows: bytes) -> None:
        if self._ledger._stored(self._cursor) is None:
            raise misuse("unconfigured")
        self._configure(self._sql.epoch + 1, configuration, known_rows)
        self._rotated = True

    def _configure(self, epoch: int, configuration: str, known_rows: bytes) -> None:
        values = (epoch, SCHEMA, __version__, configuration, known_rows or None)
        self._cursor.execute(self._sql.create, values)
        self._stand_at(epoch, 0, genesis(configuration))

    @_inside
    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Rows of the questions that were answered before."""
        if self.tail.query == 0:
            return {}
        cursor = self._cursor
        found: dict[bytes, Row] = {}
        if len(digests) <= _FEW:
            for digest in digests:
                cursor.execute(self._sql.one, (digest,))
                found.update((row.digest, row) for row in map(as_row, cursor.fetchall()))
            return found
        if self.tail.query < len(digests):  # fewer rows than questions: looking at all rows is cheaper
            cursor.execute(self._sql.digests)
            digests = list({plain(digest) for (digest,) in cursor.fetchall()}.intersection(digests))
        else:
            digests = sorted(digests)  # neighbours lie on the same pages of the index
        for start in range(0, len(digests), CHUNK):
            chunk = digests[start : start + CHUNK]
            chunk += [chunk[0]] * (CHUNK - len(chunk))  # one statement for all lengths
            cursor.execute(self._sql.chunk, chunk)
            found.update((row.digest, row) for row in map(as_row, cursor.fetchall()))
        return found

    @_inside
    def rows(self, after: int) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        self._cursor.execute(self._sql.rows, (after,))
        return [as_row(values) for values in self._cursor.fetchall()]

    @_inside
    def last_value(self, kind: str, view: int, series: str) -> float | None:
        """Last value that was released of a view's series, asked in this way; None if there is none.

        No index finds it where there is no series, so a process reads each row once for it at most. It goes on from
        where it looked last, if the seal there still stands: then all rows before it are the same.
        """
        cursor = self._cursor
        if series:
            cursor.execute(self._sql.last_in_series, (series, kind, view))
            found = cursor.fetchone()
            return None if found is None else float(found[0])
        known, place = self._ledger.last_values, (self._sql.epoch, kind, view)
        after, sealed, value = known.get(place, (0, b"", None))
        if after:
            cursor.execute(self._sql.seal_at, (after,))
            found = cursor.fetchone()
            if found is None or plain(found[0]) != sealed:
                after, value = 0, None
        cursor.execute(self._sql.last_value, (after, kind, view))
        found = cursor.fetchone()
        value = value if found is None else float(found[0])
        known[place] = (self.tail.query, self.tail.seal, value)
        return value

    @_inside
    def _insert(self, rows: Sequence[Row], sealed: bytes) -> None:
        if self.tail.query == 0 and self._ledger._stored(self._cursor) is None:
            raise misuse("unconfigured")
        if len(rows) > 1:
            self._cursor.executemany(self._sql.insert, map(tuple, rows[:-1]))  # plain tuples bind faster
        self._cursor.execute(self._sql.insert_sealed, (*rows[-1], sealed))
