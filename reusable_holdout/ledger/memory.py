"""A ledger in memory: of one process, gone with it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reusable_holdout.errors import LedgerError, LedgerKeyError, LedgerMismatchError
from reusable_holdout.ledger.failures import misuse, rotated
from reusable_holdout.ledger.records import Row, Tail, check_follows, seal

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
    place = "memory"

    def __init__(self) -> None:
        self._book = _Book()
        self.epoch = 1
        self.closed = False

    @property
    def beside(self) -> dict[Any, Any]:
        """Return facts that its guard keeps beside it, as the key lies in a file beside a ledger on the disk."""
        return self._book.beside

    def keep_key(self, found: tuple[bytes, Path | None], *, stated: bool) -> tuple[bytes, Path | None]:
        """Keep the key that is found first; a LedgerKeyError says that another one is stated, or none any more."""
        kept, was_stated = self.beside.setdefault("key", (found, stated))
        if stated != was_stated or (stated and found[0] != kept[0]):
            raise LedgerKeyError(
                "the budget that this process keeps of these rows must be made again with its own seed or key; got "
                "another one, or none where one was given; nothing was asked; pass the same seed= or key="
            )
        chosen: tuple[bytes, Path | None] = kept
        return chosen

    def keep_metric(self, content: bytes) -> None:
        """Keep the content of a user's own metric; a LedgerMismatchError says that another one has its name."""
        if self.beside.setdefault("metric", content) != content:
            raise LedgerMismatchError(
                "a metric must have the code that it had when its guard was made; it has other code, or refers to "
                "something else; nothing was asked; give the new metric another name"
            )

    def latest(self) -> MemoryLedger:
        """Same ledger, standing at its last epoch."""
        with self._open():
            ledger = MemoryLedger()
            ledger._book, ledger.epoch = self._book, len(self._book.epochs)
            return ledger

    def create(self, configuration: str, known_rows: bytes = b"") -> str:
        """Store a configuration if there is none; return the stored one."""
        with self._open():
            here = self._at()
            if here.configuration is None:
                here.configuration, here.known_rows = configuration, known_rows
            return here.configuration

    def configuration(self) -> str | None:
        """Stored configuration."""
        with self._open():
            return self._at().configuration

    def configurations(self) -> list[str]:
        """Configurations of all epochs, in order."""
        with self._open():
            stored = [epoch.configuration for epoch in self._book.epochs]
            return [text for text in stored if text is not None]

    def known_rows(self, epoch: int) -> bytes:
        """What an epoch's rows are known by; empty if nothing is kept of them."""
        with self._open():
            return self._at(epoch).known_rows

    @contextmanager
    def transaction(self) -> Iterator[_MemoryTransaction]:
        """Begin; rows appended are in the ledger when the block is left without an exception."""
        with self._open():
            if self.epoch != len(self._book.epochs):
                raise rotated(self.epoch, len(self._book.epochs))
            transaction = self._book.active = _MemoryTransaction(self._book, self._tail())
            try:
                yield transaction
                self._commit(transaction)
            finally:
                self._book.active = None

    def tail(self) -> Tail:
        """End of the ledger."""
        with self._open():
            return self._tail()

    def find(self, digest: bytes) -> Row | None:
        """Row of a question; None if it was not answered yet."""
        with self._open():
            place = self._at().places.get(digest)
            return None if place is None else self._at().rows[place]

    def rows(self, after: int = 0, *, epoch: int | None = None) -> list[Row]:
        """Rows with query numbers above `after`, in order."""
        with self._open():
            return self._at(epoch).rows[max(after, 0) :]

    def charged(self, most: int) -> list[int]:
        """Numbers of the first queries that were charged, so many at most."""
        return [row.query for row in self.rows() if row.charged][:most]

    def rows_of_kind(self, kind: str) -> list[Row]:
        """Rows of one way to ask, in order."""
        return [row for row in self.rows() if row.kind == kind]

    def seals(self, *, epoch: int | None = None) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""
        with self._open():
            return list(self._at(epoch).seals)

    def close(self) -> None:
        """Refuse to be used from now on; other objects of the same ledger can be."""
        if self._book.process != os.getpid():  # the lock may be one that no thread of a child can release
            return
        with self._book.lock:
            if self._book.active is not None:
                raise misuse("nested")
            self.closed = True

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._book.process != os.getpid():
            raise LedgerError(
                "a budget in memory belongs to the process that made it; this is a fork of it; nothing was asked; "
                "use a ledger on disk to share a budget"
            )
        with self._book.lock:
            if self.closed:
                raise misuse("closed")
            if self._book.active is not None:
                raise misuse("nested")
            yield

    def _at(self, epoch: int | None = None) -> _Epoch:
        number, epochs = self.epoch if epoch is None else epoch, self._book.epochs
        return epochs[number - 1] if 1 <= number <= len(epochs) else _Epoch()

    def _tail(self) -> Tail:
        here = self._at()
        if not here.rows:
            return Tail.before(here.configuration or "")
        return Tail.after(here.rows[-1], here.seals[-1][1], here.charged)

    def _commit(self, transaction: _MemoryTransaction) -> None:
        if self._book.process != os.getpid():
            raise misuse("over")
        here, rows = self._at(), transaction.appended
        if rows:
            here.places.update((row.digest, row.query - 1) for row in rows)
            here.rows += rows
            here.values.update(((row.kind, row.view, row.series), row.value) for row in rows)
            here.charged = next((row for row in reversed(rows) if row.charged), here.charged)
            here.seals.append((rows[-1].query, transaction.sealed))
        if transaction.next is not None:
            self._book.epochs.append(transaction.next)


@dataclass
class _Epoch:
    configuration: str | None = None
    known_rows: bytes = b""
    rows: list[Row] = field(default_factory=list)
    places: dict[bytes, int] = field(default_factory=dict)
    seals: list[tuple[int, bytes]] = field(default_factory=list)
    values: dict[tuple[str, int, str], float] = field(default_factory=dict)  # the last of each series
    charged: Row | None = None  # the last one


@dataclass
class _Book:
    """What all ledgers on it share."""

    epochs: list[_Epoch] = field(default_factory=lambda: [_Epoch()])
    lock: threading.RLock = field(default_factory=threading.RLock)
    process: int = field(default_factory=os.getpid)
    beside: dict[Any, Any] = field(default_factory=dict)
    active: _MemoryTransaction | None = None


class _MemoryTransaction:
    """What :class:`Transaction` promises."""

    def __init__(self, book: _Book, tail: Tail) -> None:
        self.tail, self.sealed, self._book = tail, b"", book
        self.appended: list[Row] = []
        self.next: _Epoch | None = None

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        here = self._open()
        rows, places = here.rows, here.places
        return {digest: rows[places[digest]] for digest in digests if digest in places}

    def last_value(self, kind: str, view: int, series: str) -> float | None:
        return self._open().values.get((kind, view, series))

    def rows(self, after: int) -> list[Row]:
        return self._open().rows[after:]

    def append(self, rows: Sequence[Row]) -> None:
        here = self._open()
        if self.appended or self.next is not None:
            raise misuse("twice")
        if not rows:
            return
        if here.configuration is None:
            raise misuse("unconfigured")
        check_follows(self.tail, rows)
        sealed = seal(self.tail.seal, rows)
        if len({row.digest for row in rows} - here.places.keys()) != len(rows):
            raise LedgerError("a question is answered once; a row repeats one; nothing was written")
        self.appended, self.sealed = list(rows), sealed

    def rotate(self, configuration: str, known_rows: bytes = b"") -> None:
        here = self._open()
        if self.appended or self.next is not None:
            raise misuse("twice")
        if here.configuration is None:
            raise misuse("unconfigured")
        self.next = _Epoch(configuration, known_rows)

    def _open(self) -> _Epoch:
        """Epoch that is written to: the last."""
        if self._book.active is not self:
            raise misuse("over")
        return self._book.epochs[-1]
