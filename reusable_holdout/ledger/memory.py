"""A ledger in the memory of one process; it ends with the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reusable_holdout.errors import LedgerKeyError, LedgerMismatchError
from reusable_holdout.ledger.connection import Connection
from reusable_holdout.ledger.failures import refusal
from reusable_holdout.ledger.storage import Ledger


class MemoryLedger(Ledger):
    """A ledger of this process alone, shared by its threads.

    A forked child cannot use it: its copy would be a second budget.

    Attributes
    ----------
    beside : dict
        Facts that its guard keeps with it, such as the noise key, which is in a separate file for a ledger on disk.

    Examples
    --------
    >>> ledger = MemoryLedger()
    >>> ledger.create("{}")
    '{}'
    >>> ledger.tail().query
    0
    """

    def __init__(self) -> None:
        super().__init__(Connection(None))
        self.beside: dict[Any, Any] = {}

    def close(self) -> None:
        """Close this object; other objects of the same ledger can still be used."""
        with self._connection.lock:
            if self._connection.active is not None:
                raise refusal("nested")
            self._connection = Connection(None)
            self._connection.close()

    def keep_key(self, found: tuple[bytes, Path | None], *, stated: bool) -> tuple[bytes, Path | None]:
        """Keep the first key and return it; a LedgerKeyError refuses another stated key, or none after a stated one."""
        kept, was_stated = self.beside.setdefault("key", (found, stated))
        if stated != was_stated or (stated and found[0] != kept[0]):
            raise LedgerKeyError(
                "these rows have a budget in this process, and it must be made again with its own seed or key; got "
                "another, or none although it has one; nothing was asked; pass the same seed= or key="
            )
        chosen: tuple[bytes, Path | None] = kept
        return chosen

    def keep_metric(self, content: bytes) -> None:
        """Keep the content of a user's own metric; a LedgerMismatchError says that it has changed since."""
        if self.beside.setdefault("metric", content) != content:
            raise LedgerMismatchError(
                "a metric must have the code that it had when its guard was made; it has other code, or refers to "
                "something else; nothing was asked; give the new metric another name"
            )
