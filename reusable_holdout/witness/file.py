"""A witness that is a file, best with another owner: it is only ever appended to."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import RECORD_BYTES, Head, alone, highest, may_begin_one

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FileWitness"]


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
            rest = os.fstat(descriptor).st_size % RECORD_BYTES  # of a line that a dying process began
            line = b"\n".rjust(RECORD_BYTES - rest) * bool(rest) + head.record()
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
        records = os.pread(descriptor, size, 0) if size < RECORD_BYTES else b""
        for end in range(size // RECORD_BYTES, 0, -1):
            records = os.pread(descriptor, RECORD_BYTES, (end - 1) * RECORD_BYTES)
            if Head.parse(records) is not None or not may_begin_one(records):
                break
        return highest(records, self.place)
