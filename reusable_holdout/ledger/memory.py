"""A ledger in memory: one process, gone with it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.failures import misuse
from reusable_holdout.ledger.records import Row, Tail, check_follows, genesis, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MemoryLedger"]


class MemoryLedger:
    """Ledger of this process alone, shared by its threads.

    A forked child cannot use it: its copy would be a second budget.

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
        self._process = os.getpid()
        self._configuration: str | None = None
        self._rows: list[Row] = []
        self._places: dict[bytes, int] = {}
        self._seals: list[tuple[int, bytes]] = []
        self._active: _MemoryTransaction | None = None
        self.closed = False

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
            transaction = self._active = _MemoryTransaction(self)
            try:
                yield transaction
                if transaction.appended:
                    self._commit(transaction)
            finally:
                self._active = None

    def tail(self) -> Tail:
        """End of the ledger."""
        with self._open():
            return self._tail()

    def find(self, digest: bytes) -> Row | None:
        """Row of a question; None if it was not answered yet."""
        with self._open():
            place = self._places.get(digest)
            return None if place is None else self._rows[place]

    def rows(self, after: int = 0) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        with self._open():
            return self._rows[max(after, 0) :]

    def seals(self) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        with self._open():
            return list(self._seals)

    def close(self) -> None:
        """Forget everything."""
        if self._process != os.getpid():  # the lock may be one that no thread of a child can release
            return
        with self._lock:
            if self._active is not None:
                raise misuse("nested")
            self.closed = True

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise LedgerError(
                "a budget in memory belongs to the process that made it; this is a fork of it; nothing was asked; "
                "use a ledger on disk to share a budget"
            )
        with self._lock:
            if self.closed:
                raise misuse("closed")
            if self._active is not None:
                raise misuse("nested")
            yield

    def _tail(self) -> Tail:
        if not self._rows:
            return Tail(0, 0, 0.0, genesis(self._configuration or ""))
        last = self._rows[-1]
        return Tail(last.query, last.charges, last.spent_nats, self._seals[-1][1], last.value)

    def _commit(self, transaction: _MemoryTransaction) -> None:
        if self._process != os.getpid():
            raise misuse("over")
        rows = transaction.appended
        self._places.update((row.digest, row.query - 1) for row in rows)
        self._rows += rows
        self._seals.append((rows[-1].query, transaction.sealed))


class _MemoryTransaction:
    def __init__(self, ledger: MemoryLedger) -> None:
        self.tail = ledger._tail()
        self.appended: list[Row] = []
        self.sealed = b""
        self._ledger = ledger

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Rows of the questions that were answered before."""
        rows, places = self._open()._rows, self._ledger._places
        return {digest: rows[places[digest]] for digest in digests if digest in places}

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, once at most."""
        ledger = self._open()
        if self.appended:
            raise misuse("twice")
        if not rows:
            return
        if ledger._configuration is None:
            raise misuse("unconfigured")
        check_follows(self.tail, rows)
        sealed = seal(self.tail.seal, rows)
        if len({row.digest for row in rows} - ledger._places.keys()) != len(rows):
            raise LedgerError("a question is answered once; a row repeats one; nothing was written")
        self.appended, self.sealed = list(rows), sealed

    def _open(self) -> MemoryLedger:
        if self._ledger._active is not self:
            raise misuse("over")
        return self._ledger
