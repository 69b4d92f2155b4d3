"""What a witness remembers, the head of a ledger, and the plainest one: a file, which is only ever appended to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from reusable_holdout.errors import LedgerError

__all__ = ["FileWitness", "Head", "Witness", "alone", "highest"]

_RECORD_BYTES = 97
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


def _may_begin_one(text: bytes) -> bool:
    """Whether some bytes are the beginning of a record, or one that was filled up with blanks."""
    begun = text.rstrip(b" \n")
    kinds = ("0123456789" if one == "0" else "0123456789abcdef" if one == "f" else one for one in _LINE)
    return len(begun) <= _RECORD_BYTES and all(
        chr(byte) in kind for byte, kind in zip(begun, kinds, strict=False)
    )


def highest(records: bytes, place: str) -> Head | None:
    """Last of some records; None if one was begun at most, and a LedgerError if they are something else."""
    last = records[-_RECORD_BYTES:]
    head = Head.parse(last)
    if head is None and not _may_begin_one(last):
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


class FileWitness:
    """File of all heads, one to a line.

    It is not forced to the disk with each answer, as the ledger is: after a power failure it may be behind the ledger
    by a few, which is no rollback, and catches up at the next answer.

    Parameters
    ----------
    path : Path
        Made if there is none; may be one that its owner lets us append to, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    @property
    def place(self) -> str:
        """The file."""
        return str(self._path)

    def read(self) -> Head | None:
        """Highest head it has seen; None if there is no file, or an empty one."""
        last = None
        with suppress(FileNotFoundError), self._opened(os.O_RDONLY) as descriptor:
            last = self._last(descriptor)
        return last

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Append a head if it is later than the last one, and that is the one which was seen; others wait meanwhile."""
        with self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor, alone(descriptor):
            last = self._last(descriptor)
            if last is not None and (last != after or not head.is_later_than(last)):
                return last
            rest = os.fstat(descriptor).st_size % _RECORD_BYTES  # of a line that a dying process began
            line = b"\n".rjust(_RECORD_BYTES - rest) * bool(rest) + head.record()
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return head

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Descriptor of the file; whatever fails is a LedgerError, but that there is none which would not be made."""
        try:
            # to open a pipe would wait for its other end
            descriptor = os.open(self._path, flags | os.O_NONBLOCK, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(errno.EINVAL, "it is no plain file")
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not flags & os.O_CREAT:
                raise
            raise LedgerError(
                f"the ledger's witness must be a file that can be read and appended to; {self._path} cannot be "
                f"({error.strerror}); ask its owner to let you, and ask again"
            ) from None

    def _last(self, descriptor: int) -> Head | None:
        """Last line that was written to its end: before one that a process died in there is another."""
        size = os.fstat(descriptor).st_size
        records = os.pread(descriptor, size, 0) if size < _RECORD_BYTES else b""
        for end in range(size // _RECORD_BYTES, 0, -1):
            records = os.pread(descriptor, _RECORD_BYTES, (end - 1) * _RECORD_BYTES)
            if Head.parse(records) is not None or not _may_begin_one(records):
                break
        return highest(records, self.place)
