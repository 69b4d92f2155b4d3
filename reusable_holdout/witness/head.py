"""What a witness remembers: the head of a ledger."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

from reusable_holdout.errors import LedgerError

__all__ = ["RECORD_BYTES", "Head", "Witness", "highest"]

RECORD_BYTES = 97


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
        return head if head.record() == record else None

    def is_later_than(self, other: Head) -> bool:
        """Whether it is that of more answers, or of a later epoch."""
        return (self.epoch, self.query) > (other.epoch, other.query)


class Witness(Protocol):
    """Holds the highest head of one ledger; what it holds can only grow."""

    @property
    def place(self) -> str:
        """Where it is, as :func:`witness_at` takes it."""
        ...

    def read(self) -> Head | None:
        """Highest head it has seen; None if it has seen none.

        Raises
        ------
        LedgerError
            If it cannot be reached.
        """
        ...

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
        ...


def highest(records: bytes, place: str) -> Head | None:
    """Last of some records; a last line that was not written to its end does not count.

    Raises
    ------
    LedgerError
        If they are something else.
    """
    whole = records[: len(records) // RECORD_BYTES * RECORD_BYTES]
    if not whole and not records:
        return None
    head = Head.parse(whole[-RECORD_BYTES:])
    if head is None:
        raise LedgerError(
            f"a witness must be a file that a guard wrote; {place} is something else; nothing was asked; name another "
            "file, or restore it"
        )
    return head
