"""What every ledger can do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from reusable_holdout.ledger.records import Row, Tail

__all__ = ["Ledger", "Transaction"]


class Transaction(Protocol):
    """Exclusive hold of a ledger: no other thread or process commits between its reads and its append."""

    @property
    def tail(self) -> Tail:
        """The end of the ledger, before this transaction."""

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Row]:
        """Rows of the questions that were answered before."""

    def last_value(self, kind: str, view: int, series: str) -> float | None:
        """Last value that was released of a view's series, asked in this way; None if there is none."""

    def rows(self, after: int) -> list[Row]:
        """Rows with query numbers above `after`, in order; without those of this transaction."""

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, sealed as one commit; once at most.

        Raises
        ------
        LedgerError
            If they do not continue the ledger, or a question was answered before; what is caught inside the block
            does not make half a commit.
        """

    def rotate(self, configuration: str, known_rows: bytes = b"") -> None:
        """End this epoch and begin the next, which has no rows; `Ledger.latest` stands at it.

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


class Ledger(Protocol):
    """Append-only record of what one guard released, in epochs: one for each holdout.

    An object stands at the epoch that was the last when it was made, and everything is about that epoch unless another
    is named; numbers and sums begin anew with each. Once there is a later one, its transactions raise RotatedError.

    When the ``with`` statement of a transaction is left, its rows are durable; if it is left by an exception, or the
    process dies in it, they never were. While one is open, its thread uses the ledger through it alone: anything else
    raises LedgerError and leaves the transaction as it was.
    """

    @property
    def url(self) -> str | None:
        """Where other processes find it; None if they cannot."""

    @property
    def path(self) -> Path | None:
        """File, if it is one."""

    @property
    def place(self) -> str:
        """Where it lies, for people: its file, or its URL without a password."""

    @property
    def epoch(self) -> int:
        """Epoch it stands at, from 1."""

    def latest(self) -> Ledger:
        """Same ledger, standing at its last epoch."""

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    def create(self, configuration: str, known_rows: bytes = b"") -> str:
        """Store a configuration if there is none; return the stored one.

        Parameters
        ----------
        configuration : str
        known_rows : bytes
            By which the epoch's rows are known again; it is in the hash chain if the configuration has its digest.
        """

    def configuration(self) -> str | None:
        """Stored configuration."""

    def configurations(self) -> list[str]:
        """Configurations of all epochs, in order."""

    def known_rows(self, epoch: int) -> bytes:
        """What an epoch's rows are known by; empty if nothing is kept of them."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin; commit at the end."""

    def tail(self) -> Tail:
        """End of the ledger."""

    def find(self, digest: bytes) -> Row | None:
        """Row of a question, without waiting for writers; None if it was not answered yet."""

    def rows(self, after: int = 0, *, epoch: int | None = None) -> list[Row]:
        """Rows with query numbers above `after`, in order."""

    def charged(self, most: int) -> list[int]:
        """Numbers of the first queries that were charged, so many at most."""

    def rows_of_kind(self, kind: str) -> list[Row]:
        """Rows of one way to ask, in order."""

    def seals(self, *, epoch: int | None = None) -> list[tuple[int, bytes]]:
        """Query number of each commit's last row, with the commit's seal."""

    def close(self) -> None:
        """Release files and connections; later use raises LedgerError."""
