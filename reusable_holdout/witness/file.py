"""A witness that is a file, best with another owner: it is only ever appended to."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness.head import RECORD_BYTES, Head, highest

if TYPE_CHECKING:
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
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            return self._last(descriptor)
        finally:
            os.close(descriptor)

    def advance(self, head: Head, *, after: Head | None) -> Head:
        """Append a head if the last one is that which was seen; others wait meanwhile."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            last = self._last(descriptor)
            if last is not None and last != after:
                return last
            rest = os.fstat(descriptor).st_size % RECORD_BYTES  # of a line that a dying process began
            os.write(descriptor, b"\n".rjust(RECORD_BYTES - rest) * bool(rest) + head.record())
        except OSError as error:
            raise self._unreachable(error) from None
        finally:
            os.close(descriptor)
        return head

    def _last(self, descriptor: int) -> Head | None:
        size = os.fstat(descriptor).st_size // RECORD_BYTES * RECORD_BYTES
        start = max(0, size - 2 * RECORD_BYTES)  # before a line that was not finished there is one that was
        records = os.pread(descriptor, size - start, start)
        if len(records) > RECORD_BYTES and Head.parse(records[-RECORD_BYTES:]) is None:
            records = records[:RECORD_BYTES]
        return highest(records, self.place)

    def _unreachable(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"the ledger's witness must be a file that can be read and appended to; {self._path} cannot be "
            f"({error.strerror}); ask its owner to let you, and ask again"
        )
