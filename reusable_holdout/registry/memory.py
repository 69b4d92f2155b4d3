"""Budgets in memory: each set of rows has one in this process, until it exits."""

from __future__ import annotations

import datetime
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import NamedTuple

from reusable_holdout.errors import LedgerMismatchError
from reusable_holdout.ledger import MemoryLedger
from reusable_holdout.registry.sketch import Sketch, Sketcher, overlap
from reusable_holdout.registry.store import VARIABLE, Budget

__all__ = ["InMemory", "registry_of_its_own"]


class _Kept(NamedTuple):
    sketch: Sketch
    ledger: MemoryLedger
    made: str


class _Table:
    """Budgets of this process; a forked child has those of its parent, whose ledgers refuse to be asked there."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self.kept: list[_Kept] = []
        self._locked = os.getpid(), threading.RLock()

    def lock(self) -> threading.RLock:
        """Lock of this process: that of a parent may be held by a thread that no child has."""
        if self._locked[0] != os.getpid():
            self._locked = os.getpid(), threading.RLock()
        return self._locked[1]


_TABLES = [_Table()]
"""The last one is in use."""


class InMemory:
    """Budget of one ledger in the memory of this process, kept as :class:`Registry` keeps those on disk.

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
        """Makes sketches under a key of this process."""
        return Sketcher(self._table.key)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make one guard at a time: of two threads that make the same one, the second finds the first."""
        with self._table.lock():
            yield

    @staticmethod
    @contextmanager
    def resumed() -> Iterator[None]:
        """Say of settings that do not fit a ledger in memory that it is one."""
        try:
            yield
        except LedgerMismatchError as error:
            raise LedgerMismatchError(
                f"{error}; this ledger is in memory: each process keeps one budget there for a set of rows, until it "
                "exits; make the guard with the settings that it has, and go on with it; a simulation sets "
                f"{VARIABLE}=off"
            ) from None

    def ledgers(self, sketch: Sketch) -> list[MemoryLedger]:
        """Ledgers of exactly these rows, in the order in which they were made, each at its last epoch."""
        same = (sketch.total, sketch.rows)
        return [
            one.ledger.latest() for one in self._table.kept if (one.sketch.total, one.sketch.rows) == same
        ]

    def claim(self, sketch: Sketch, ledger: str, *, insist: bool = False) -> list[Budget]:
        """Give rows a budget in the ledger, unless they have one; return what they, or some of them, have already."""
        found = self.known(sketch)
        if insist or not found:
            made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            self._table.kept.append(_Kept(sketch, self._ledger.latest(), made))
        return found

    def known(self, sketch: Sketch) -> list[Budget]:
        """Return what these rows, or some of them, have already, the largest share first."""
        shares = [(overlap(sketch, one.sketch), one) for one in self._table.kept]
        found = [
            Budget(one.ledger.place, one.made, one.sketch.rows, False, share)
            for share, one in shares
            if share
        ]
        return sorted(found, key=lambda budget: -budget.share)

    def budgets(self) -> list[_Kept]:
        """Return all that are kept."""
        return self._table.kept

    def release(self, sketch: Sketch, ledger: str) -> None:
        """Take back a claim that came to nothing."""
        self._table.kept = [one for one in self._table.kept if one.sketch is not sketch]


@contextmanager
def registry_of_its_own() -> Iterator[None]:
    """For a demonstration: until it ends no other budget is known, on disk or in memory, and nothing is left of it."""
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
