"""A ledger in a database, and its transactions, which every answer runs through."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from reusable_holdout.errors import LedgerError, RolledBackError
from reusable_holdout.ledger.connection import Connection, Epoch, fetch
from reusable_holdout.ledger.failures import refusal
from reusable_holdout.ledger.records import Row, Tail, check_follows, seal
from reusable_holdout.witness import Head, Witness

_T = TypeVar("_T")
# Head of a ledger without a configuration.
_NOTHING = Head(0, 0, b"")


class Ledger:
    """An append-only record of the answers that one guard released, in epochs: one for each holdout.

    An object uses the epoch that was the last when it was made, except where a method names another one; numbers and
    sums begin anew with each epoch. Once there is a later epoch, the object's transactions raise RotatedError.

    When the ``with`` statement of a transaction is left, its rows are durable; if it is left by an exception, or the
    process dies in it, they are not recorded. While a transaction is open, its thread must use the ledger only through
    it: any other use raises LedgerError and leaves the transaction as it was.

    Attributes
    ----------
    url : str or None
        Address by which other processes find it; None if they cannot.
    path : Path or None
        Its file, if it is one.
    place : str
        Its file, or its URL without a password, for people to read.
    epoch : int
        Number of the object's epoch, from 1.
    witness : Witness or None
        Its witness, if it has one.
    """

    witness: Witness | None = None

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sql = connection, connection.sql
        self.url, self.path, self.place = connection.url, connection.path, connection.place
        self.epoch = connection.run("opened", connection.prepare)
        self._here = Epoch(self.epoch, connection.sql)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.place}>"

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._connection.refused == "closed"

    def latest(self) -> Self:
        """Return an object for the last epoch of the same ledger, with the same witness."""
        ledger = copy.copy(self)
        Ledger.__init__(ledger, self._connection.another())
        return ledger

    def close(self) -> None:
        """Release files and connections; later use raises LedgerError."""
        self._connection.close()

    def create(self, configuration: str, known_rows: bytes = b"") -> str:
        """Store a configuration if there is none; return the stored one.

        Parameters
        ----------
        configuration : str
        known_rows : bytes
            Data by which the epoch's rows are recognised; the hash chain covers it if the configuration has its digest.
        """
        if self.configuration() is None:
            with self.transaction() as transaction:
                transaction.create(configuration, known_rows)
        return self.configuration() or ""

    def configuration(self) -> str | None:
        """Return the stored configuration; None if there is none."""
        return self._connection.run("read", self._here.texts).get(self.epoch)

    def configurations(self) -> list[str]:
        """Return the configurations of all epochs, in order."""
        return list(self._connection.run("read", self._here.texts).values())

    def known_rows(self, epoch: int) -> bytes:
        """Return the data by which an epoch's rows are recognised; empty if none is kept."""
        found = self._fetched(self._sql.known_rows, epoch)
        return found[0][0] if found and type(found[0][0]) is bytes else b""

    def look(self, question: bytes = b"") -> tuple[Tail, Row | None]:
        """Return the end of the ledger, and the row of a question if it was answered, without waiting for writers."""
        return self._connection.run("read", self._here.look, question)[1:]

    def tail(self) -> Tail:
        """Return the end of the ledger."""
        return self.look()[0]

    def find(self, question: bytes) -> Row | None:
        """Return the row of a question; None if it was not answered yet."""
        return self.look(question)[1]

    def rows(self, after: int = 0, *, kind: str | None = None, epoch: int | None = None) -> list[Row]:
        """Return rows with query numbers above `after`, in order; if `kind` is given, only rows of this way to ask."""
        return self._connection.run("read", Epoch(epoch or self.epoch, self._sql).rows, after, kind)

    def charged(self, most: int) -> list[int]:
        """Return the numbers of the first `most` queries that were charged."""
        return [query for (query,) in self._fetched(self._sql.charged, self.epoch, most)]

    def seals(self, *, epoch: int | None = None) -> list[tuple[int, bytes]]:
        """Return the query number of each commit's last row, with the commit's seal."""
        return self._fetched(self._sql.seals, epoch or self.epoch)

    def transaction(self, question: bytes = b"") -> Transaction:
        """Return a transaction for a with statement; if the digest of a question is given, it looks up its row."""
        return Transaction(self, question)

    def watched_by(self, witness: Witness, *, may_begin: bool) -> None:
        """Check the ledger against the head that a witness holds, and tell the witness of every new head from now on.

        Parameters
        ----------
        witness : Witness
        may_begin : bool
            True to accept a witness that has seen nothing yet, although the ledger has answers.

        Raises
        ------
        RolledBackError
            If the ledger does not go on from the witness's head, or the witness has seen nothing and may not begin.
        """
        seen = witness.read()
        here = self._connection.run("read", self._checked, witness, seen, may_begin)
        self.witness = witness
        if here.epoch and here != seen:
            self._tell(witness, here, seen)

    def _fetched(self, statement: str, *parameters: Any) -> list[Any]:
        return self._connection.run("read", fetch, statement, *parameters)

    def _checked(self, cursor: Any, witness: Witness, seen: Head | None, may_begin: bool) -> Head:
        """Return the ledger's head; a RolledBackError refuses a ledger that does not hold its witness's head.

        The ledger may be ahead of its witness, never behind. Without a configuration its head is the head of epoch 0.
        """
        latest, tail, _ = self._here.look(cursor, b"")
        here = _NOTHING if latest is None else Head(self.epoch, tail.query, tail.seal)
        if seen is None and here.has_answers() and not may_begin:
            raise refusal("lost", place=self.place, witness=witness.place)
        if seen is not None and seen != here and not self._here.stands(cursor, seen):
            raise refusal("rolled back", place=self.place, here=here, seen=seen)
        return here

    def _tell(self, witness: Witness, head: Head, seen: Head | None) -> None:
        """Tell the witness of a committed head, given the head that it was seen to hold.

        A RolledBackError says that the witness has meanwhile been told of another head, which is not of this ledger.
        """
        try:
            held = witness.advance(head, after=seen)
            # another process of this ledger may have told it of its own head, or a copy of the ledger did
            while held != head:
                self._connection.run("read", self._checked, witness, held, True)
                if not head.is_later_than(held):
                    return
                held = witness.advance(head, after=held)
        except RolledBackError:
            raise
        except LedgerError as error:
            raise LedgerError(
                f"{error}; the answer is recorded, and held back until the witness can be reached: ask again then, free"
            ) from None


class SqlLedger(Ledger):
    """A ledger in a file or on a server: shared by processes, survives them.

    A committed row is on the disk (SQLite: WAL, synchronous=FULL); writers take turns (SQLite: ``BEGIN IMMEDIATE``;
    PostgreSQL: locks). One connection and one lock serve all threads of a process; a forked child uses neither: see
    `connection`.

    Parameters
    ----------
    location : str or Path
        SQLite file, or URL of a PostgreSQL server.
    must_exist : bool
        True to refuse a SQLite file that does not exist yet.

    Raises
    ------
    LedgerError
        If it cannot be opened, is no ledger, or was written by a newer version.
    """

    def __init__(self, location: str | Path, *, must_exist: bool = False) -> None:
        super().__init__(Connection(location, must_exist=must_exist))


class Transaction:
    """One writing transaction: no other thread or process commits between its reads and its append.

    It is a class and not a generator, for speed: every answer runs through it. Once the database has failed in it, it
    can only be rolled back: nothing half-written is committed, even if the failure is caught inside the block.

    Attributes
    ----------
    tail : Tail
        The end of the ledger, before this transaction.
    row : Row or None
        The row of the question that the transaction was begun for, if it was answered before.
    """

    tail: Tail
    row: Row | None

    def __init__(self, ledger: Ledger, question: bytes) -> None:
        self._ledger, self._connection, self._here = ledger, ledger._connection, ledger._here
        self._question, self._witness = question, ledger.witness
        self._failed: BaseException | None = None
        self._is_done = False
        self._head: Head = _NOTHING
        self._seen: Head | None = None

    def __enter__(self) -> Self:
        self._connection.acquire()
        try:
            self._connection.attempt("written", self._begin)
        except BaseException:
            self._connection.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        connection = self._connection
        if connection.active is not self:  # a forked child leaves its parent's block
            if error is None:
                raise refusal("over")
            return
        try:
            if error is None and self._failed is None:
                # unlike the driver's commit(), this statement fails if SQLite has rolled back by itself
                connection.attempt("committed", self._cursor.execute, "COMMIT")
            else:
                connection.roll_back()
        finally:
            connection.release()
        if error is not None:
            return
        if self._failed is not None:
            raise self._failed
        if self._witness is not None and self._head.epoch and self._head != self._seen:
            self._ledger._tell(self._witness, self._head, self._seen)

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Return the rows of the questions that were answered before."""
        return self._run(self._here.find, digests, self.tail.query)

    def rows(self, after: int = 0, *, kind: str | None = None) -> list[Row]:
        """Return rows with query numbers above `after`, in order, without the rows that this transaction has added."""
        return self._run(self._here.rows, after, kind)

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, sealed as one commit; a transaction can do this once.

        Raises
        ------
        LedgerError
            If they do not continue the ledger, or a question was answered before. Once the database has refused rows,
            the transaction is rolled back, even if the error is caught.
        """
        self._begin_writing()
        if not rows:
            return
        check_follows(self.tail, rows)
        self._head = self._run(self._here.append, rows, seal(self.tail.seal, rows))

    def create(self, configuration: str, known_rows: bytes = b"") -> None:
        """Store the first configuration, unless there is one; see :meth:`Ledger.create`."""
        if self._latest is None:
            if self.tail.query:
                raise refusal("bereft")
            self._head = self._run(self._here.begin, configuration, known_rows)

    def rotate(self, configuration: str, known_rows: bytes = b"") -> None:
        """End this epoch and begin the next, which has no rows; `Ledger.latest` returns an object for it.

        Parameters
        ----------
        configuration : str
        known_rows : bytes
            As for :meth:`Ledger.create`.

        Raises
        ------
        LedgerError
            If this transaction has appended rows, or the ledger has no configuration yet.
        """
        self._begin_writing()
        later = Epoch(self._here.number + 1, self._here.sql)
        self._head = self._run(later.begin, configuration, known_rows)

    def _begin(self) -> None:
        self._cursor = cursor = self._connection.cursor()
        cursor.execute(self._here.sql.begin)
        self._latest, self.tail, self.row = self._here.look(cursor, self._question)
        if self._latest not in {None, self._here.number}:
            raise refusal("rotated", epoch=self._here.number, latest=self._latest)
        if self._witness is not None:
            self._seen = self._witness.read()
            self._head = self._ledger._checked(cursor, self._witness, self._seen, False)
        self._connection.active = self

    def _begin_writing(self) -> None:
        if self._is_done:
            raise refusal("twice")
        if self._latest is None:
            raise refusal("unconfigured")
        self._is_done = True

    def _run(self, work: Callable[..., _T], *arguments: Any) -> _T:
        """Call `work` with the cursor; refuse that outside the block, and once the database has failed inside it."""
        if self._connection.active is not self:
            raise refusal("over")
        if self._failed is not None:
            raise self._failed
        try:
            return self._connection.attempt("written", work, self._cursor, *arguments)
        except BaseException as error:
            self._failed = error
            raise
