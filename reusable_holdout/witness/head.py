"""The head of a ledger, which a witness remembers, and the simplest witness: an append-only file."""

from __future__ import annotations

import errno
import operator
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from reusable_holdout.errors import LedgerError

_RECORD_BYTES = 97
_MOST_EPOCHS, _MOST_QUERIES = 1 << 31, 1 << 63
_KINDS = ["0123456789"] * 10 + [" "] + ["0123456789"] * 20 + [" "] + ["0123456789abcdef"] * 64 + ["\n"]


class Head(NamedTuple):
    """The end of a ledger after a commit; a later one of the same ledger is greater.

    Attributes
    ----------
    epoch : int
    query : int
        Number of its last answer; 0 for none.
    seal : bytes
        Seal of the commit, 32 bytes; in an epoch without answers the seal of its configuration.
    """

    epoch: int
    query: int
    seal: bytes

    def record(self) -> bytes:
        """Return one line of fixed width."""
        return f"{self.epoch:010d} {self.query:020d} {self.seal.hex()}\n".encode()

    @classmethod
    def parse(cls, record: bytes) -> Self | None:
        """Read a line that :meth:`record` wrote; None if it is something else."""
        try:
            epoch, query, seal = record.decode().split()
            head = cls(int(epoch), int(query), bytes.fromhex(seal))
        except (ValueError, UnicodeDecodeError):
            return None
        known = 0 <= head.epoch < _MOST_EPOCHS and 0 <= head.query < _MOST_QUERIES
        return head if known and head.record() == record else None

    def has_answers(self) -> bool:
        """Return True if the ledger had answers; False for the head of a new ledger."""
        return self.query > 0 or self.epoch > 1

    def is_later_than(self, other: Head) -> bool:
        """Return True if the ledger had more answers than at the other head, or a later epoch."""
        return (self.epoch, self.query) > (other.epoch, other.query)

    def may_replace(self, held: Head | None, *, after: Head | None) -> bool:
        """Return True if a witness that holds `held` may take this head from a ledger that last saw it hold `after`."""
        return held is None or (held == after and self.is_later_than(held))


class Witness(Protocol):
    """A record of the highest head of one ledger, kept outside of the ledger; it can only advance."""

    @property
    def place(self) -> str:
        """Address of the witness, as :func:`witness_at` takes it."""

    def read(self) -> Head | None:
        """Return the highest head that it has seen; None if it has seen none.

        Raises
        ------
        LedgerError
            If it cannot be reached.
        """

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Store a head, if the stored head is still `after`, which the caller has seen.

        Returns
        -------
        Head
            The head that is stored now: this one, or another that was stored meanwhile.

        Raises
        ------
        LedgerError
            If it cannot be reached.
        """


def highest(records: bytes, place: str) -> Head | None:
    """Return the head in the last of some records; None if there is at most the beginning of a record.

    A LedgerError says that the bytes are something else.
    """
    last = records[-_RECORD_BYTES:]
    head = Head.parse(last)
    if head is None and not _may_begin_one(last):
        raise LedgerError(
            f"a witness must be a file that a guard wrote; {place} is something else; nothing was asked; name another "
            "file, or restore it"
        )
    return head


def _may_begin_one(text: bytes) -> bool:
    """Return True for the beginning of a record, also if it was filled up with blanks."""
    begun = text.rstrip(b" \n").decode("latin-1")
    return len(begun) <= _RECORD_BYTES and all(map(operator.contains, _KINDS, begun))


@contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file, and wait for it first.

    The lock is released explicitly: if the file were only closed, children forked meanwhile would keep the lock.
    """
    import fcntl  # noqa: PLC0415 - POSIX alone has it

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path, unusable: Callable[[str], LedgerError]) -> Iterator[None]:
    """Hold the lock of a file, which is made if it is missing; if it cannot be opened, raise `unusable`'s error."""
    with ExitStack() as held:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            held.callback(os.close, descriptor)
            held.enter_context(_alone(descriptor))
        except OSError as error:
            raise unusable(str(error.strerror)) from None
        yield


class FileWitness:
    """A file of all heads, one to a line.

    It is not forced to the disk with each answer, as the ledger is: after a power failure it may be behind the ledger
    by a few answers. That does not count as a rollback, and the next answer makes up for it.

    Parameters
    ----------
    path : Path
        Created if it is missing. Its owner may allow this process to read it and append to it, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.place = str(self._path)

    def read(self) -> Head | None:
        """Return the highest head that it has seen; None if there is no file, or an empty one."""
        with suppress(FileNotFoundError), self._opened(os.O_RDONLY) as descriptor:
            return self._last(descriptor)
        return None

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Append a head if it may replace the last one; others wait meanwhile."""
        with self._opened(os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor, _alone(descriptor):
            last = self._last(descriptor)
            if last is not None and not head.may_replace(last, after=after):
                return last
            rest = os.fstat(descriptor).st_size % _RECORD_BYTES  # of a line that a dying process began
            line = b"\n".rjust(_RECORD_BYTES - rest) * bool(rest) + head.record()
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return head

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Open the file; FileNotFoundError if it is missing and `flags` do not create it, else LedgerError."""
        try:
            # without the last flag a pipe would wait for its other end
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
                f"({error.strerror}); get access to it from its owner, and ask again"
            ) from None

    def _last(self, descriptor: int) -> Head | None:
        """Return the last complete line; a process may have died in the lines after it."""
        size = os.fstat(descriptor).st_size
        records = os.pread(descriptor, size, 0) if size < _RECORD_BYTES else b""
        for end in range(size // _RECORD_BYTES, 0, -1):
            records = os.pread(descriptor, _RECORD_BYTES, (end - 1) * _RECORD_BYTES)
            if Head.parse(records) is not None or not _may_begin_one(records):
                break
        return highest(records, self.place)
