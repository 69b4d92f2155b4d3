"""A ledger in memory: one process, gone with it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.records import Row, Tail, check_follows, genesis, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MemoryLedger"]


class MemoryLedger:
    """Ledger of this process alone, shared by its threads.

    Examples
    --------
    >>> ledger = MemoryLedger()
    >>> ledger.create("{}")
    '{}'
    >>> ledger.tail().query
    0
    """

    url = None
    path = None

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._configuration: str | None = None
        self._rows: list[Row] = []
        self._places: dict[bytes, int] = {}
        self._seals: list[tuple[int, bytes]] = []
        self.closed = False
        self._process = os.getpid()

    def create(self, configuration: str) -> str:
        """Store a configuration if there is none; return the stored one."""
        with self._open():
            if self._configuration is None:
                self._configuration = configuration
            return self._configuration

    def configuration(self) -> str | None:
        """Stored configuration."""
        with self._open():
            return self._configuration

    @contextmanager
    def transaction(self) -> Iterator[_MemoryTransaction]:
        """Begin; rows appended are in the ledger when the block is left without an exception."""
        with self._open():
            transaction = _MemoryTransaction(self._tail(), self._rows, self._places)
            yield transaction
            if transaction.appended:
                for row in transaction.appended:
                    self._places[row.digest] = len(self._rows)
                    self._rows.append(row)
                sealed = seal(transaction.tail.seal, transaction.appended)
                self._seals.append((transaction.appended[-1].query, sealed))

    def tail(self) -> Tail:
        """End of the ledger."""
        with self._open():
            return self._tail()

    def rows(self, after: int = 0) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        with self._open():
            return self._rows[after:]

    def seals(self) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        with self._open():
            return list(self._seals)

    def close(self) -> None:
        """Forget everything."""
        self.closed = True

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._process != os.getpid():  # before the lock, which another thread may have held at the fork
            raise LedgerError(
                "a budget in memory belongs to the process that made it; this is a fork of it; nothing was asked; "
                "use a ledger on disk to share a budget"
            )
        with self._lock:
            if self.closed:
                raise LedgerError(
                    "the ledger must be open; it is closed; nothing was asked; open the guard again"
                )
            yield

    def _tail(self) -> Tail:
        start = genesis(self._configuration or "")
        if not self._rows:
            return Tail(0, 0, 0.0, start)
        last = self._rows[-1]
        return Tail(last.query, last.charges, last.spent_nats, self._seals[-1][1])


class _MemoryTransaction:
    def __init__(self, tail: Tail, rows: list[Row], places: dict[bytes, int]) -> None:
        self.tail = tail
        self.appended: list[Row] = []
        self._rows, self._places = rows, places

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Rows of the questions that were answered before."""
        return {digest: self._rows[self._places[digest]] for digest in digests if digest in self._places}

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, once at most."""
        if self.appended:
            raise LedgerError("a transaction appends once at most; it was asked twice; nothing was written")
        check_follows(self.tail, rows)
        if len({row.digest for row in rows} - self._places.keys()) != len(rows):
            raise LedgerError("a question is answered once; a row repeats one; nothing was written")
        self.appended = list(rows)
