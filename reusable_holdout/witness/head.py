"""What a witness remembers, the head of a ledger, and how one of many processes at a time writes it."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from reusable_holdout.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RECORD_BYTES", "Head", "Witness", "alone", "highest", "may_begin_one"]

RECORD_BYTES = 97
_MOST_EPOCHS, _MOST_QUERIES = 1 << 31, 1 << 63
_LINE = "0" * 10 + " " + "0" * 20 + " " + "f" * 64 + "\n"


class Head(NamedTuple):
    """End of a ledger after a commit; a later one of the same ledger is greater.

    Attributes
    ----------
    epoch : int
    query : int
        Number of its last answer; 0 for none.
    seal : bytes
        Of the commit, 32 bytes; of an epoch without answers that of its configuration.
    """

    epoch: int
    query: int
    seal: bytes

    def record(self) -> bytes:
        """One line of fixed width."""
        return f"{self.epoch:010d} {self.query:020d} {self.seal.hex()}\n".encode()

    @classmethod
    def parse(cls, record: bytes) -> Self | None:
        """Read what :meth:`record` wrote; None if it is something else."""
        try:
            epoch, query, seal = record.decode().split()
            head = cls(int(epoch), int(query), bytes.fromhex(seal))
        except (ValueError, UnicodeDecodeError):
            return None
        known = 0 <= head.epoch < _MOST_EPOCHS and 0 <= head.query < _MOST_QUERIES
        return head if known and head.record() == record else None

    def has_answers(self) -> bool:
        """Whether something was answered up to it: else it is that of a new ledger."""
        return self.query > 0 or self.epoch > 1

    def is_later_than(self, other: Head) -> bool:
        """Whether it is that of more answers, or of a later epoch."""
        return (self.epoch, self.query) > (other.epoch, other.query)


class Witness(Protocol):
    """Remembers how far one ledger has come, its highest head, outside the ledger: what it remembers can only grow."""

    @property
    def place(self) -> str:
        """Where it is, as :func:`witness_at` takes it."""

    def read(self) -> Head | None:
        """Highest head it has seen; None if it has seen none.

        Raises
        ------
        LedgerError
            If it cannot be reached.
        """

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Hold a head, if the one that is held is still that which was seen.

        Returns
        -------
        Head
            The one that is held now: this one, or another that somebody told of meanwhile.

        Raises
        ------
        LedgerError
            If it cannot be reached.
        """


def may_begin_one(text: bytes) -> bool:
    """Whether some bytes are the beginning of a record, or one that was filled up with blanks."""
    begun = text.rstrip(b" \n")
    kinds = ("0123456789" if one == "0" else "0123456789abcdef" if one == "f" else one for one in _LINE)
    return len(begun) <= RECORD_BYTES and all(
        chr(byte) in kind for byte, kind in zip(begun, kinds, strict=False)
    )


def highest(records: bytes, place: str) -> Head | None:
    """Last of some records; None if one was begun at most, and a LedgerError if they are something else."""
    last = records[-RECORD_BYTES:]
    head = Head.parse(last)
    if head is None and not may_begin_one(last):
        raise LedgerError(
            f"a witness must be a file that a guard wrote; {place} is something else; nothing was asked; name another "
            "file, or restore it"
        )
    return head


@contextmanager
def alone(descriptor: int) -> Iterator[None]:
    """Hold a file's lock, and wait for it meanwhile.

    It is given back in so many words: closing would leave it with children that were forked meanwhile.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
