"""Budgets in memory: each set of rows has one in this process, until it exits."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import NamedTuple

from reusable_holdout.errors import LedgerMismatchError
from reusable_holdout.ledger import MemoryLedger
from reusable_holdout.registry.sketch import Sketch, Sketcher
from reusable_holdout.registry.store import VARIABLE, Budget, now, shared


class _Kept(NamedTuple):
    budget: Budget
    sketch: Sketch
    ledger: MemoryLedger


class _Table:
    """The budgets of this process. A forked child inherits them, but their ledgers refuse to answer in the child."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self.kept: list[_Kept] = []
        self._locked = os.getpid(), threading.RLock()

    def lock(self) -> threading.RLock:
        """Return a lock made in this process: after a fork, a thread that only the parent has may hold the parent's."""
        if self._locked[0] != os.getpid():
            self._locked = os.getpid(), threading.RLock()
        return self._locked[1]


# The registries in memory; the last one is in use.
_TABLES = [_Table()]


class InMemory:
    """The budget of one ledger in this process's memory; it behaves as :class:`Registry` does for those on disk.

    Parameters
    ----------
    ledger : MemoryLedger
    """

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger, self._table = ledger, _TABLES[-1]

    @staticmethod
    def is_off() -> bool:
        """Return True if the environment says that no budget is remembered, as simulations need."""
        return os.environ.get(VARIABLE) == "off"

    def sketcher(self) -> Sketcher:
        """Return a maker of sketches under a key of this process."""
        return Sketcher(self._table.key)

    def alone(self) -> contextlib.AbstractContextManager[object]:
        """Return a lock, held while a guard is made: a second thread that makes the same guard finds the first one."""
        return self._table.lock()

    @staticmethod
    @contextlib.contextmanager
    def resumed() -> Iterator[None]:
        """Extend the error for settings that do not fit a ledger: say that the ledger is in memory, and what to do."""
        try:
            yield
        except LedgerMismatchError as error:
            raise LedgerMismatchError(
                f"{error}; this ledger is in memory: each process keeps one budget there for a set of rows, until it "
                "exits; to go on, make the guard with the settings of this ledger; for a simulation set "
                f"{VARIABLE}=off"
            ) from None

    def ledgers(self, sketch: Sketch) -> list[MemoryLedger]:
        """Return the ledgers of exactly these rows, in the order in which they were made, each at its last epoch."""
        same = [one for one in self._table.kept if one.sketch[:2] == sketch[:2]]
        return [one.ledger.latest() for one in same]

    def claim(self, sketch: Sketch, ledger: str, *, insist: bool = False) -> list[Budget]:
        """Give rows a budget in the ledger, unless they have one; return the earlier budgets of any of these rows."""
        found = self.known(sketch)
        if insist or not found:
            self._table.kept.append(_Kept(Budget(ledger, now(), sketch.rows), sketch, self._ledger.latest()))
        return found

    def known(self, sketch: Sketch) -> list[Budget]:
        """Return the budgets of these rows, or of some of them, the largest share first."""
        return shared(sketch, [one[:2] for one in self._table.kept])

    def budgets(self) -> list[Budget]:
        """Return all budgets, in the order in which they were made."""
        return [one.budget for one in self._table.kept]

    def release(self, sketch: Sketch, ledger: str) -> None:
        """Remove a claim for which no guard was made."""
        self._table.kept = [one for one in self._table.kept if one.sketch is not sketch]


@contextlib.contextmanager
def registry_of_its_own() -> Iterator[None]:
    """Use an empty, temporary registry on disk and in memory until the block ends; for demonstrations."""
    before = os.environ.get(VARIABLE)
    with TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        _TABLES.append(_Table())
        try:
            yield
        finally:
            _TABLES.pop()
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before
