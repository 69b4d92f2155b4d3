"""No connection to a ledger crosses a fork.

SQLite counts a process's file locks in the process's memory, and a fork copies the count but not the locks. A child
that opens the ledger again would then trust locks it does not have: when the parent closes, the write-ahead log is
deleted under the child, and what the child commits from then on is lost. Nothing the child does can mend that, so the
parent closes its connections before it forks; both open new ones when they next need them.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reusable_holdout.ledger.storage import SqlLedger

__all__ = ["begin_use", "orphaned", "watch"]

_PATIENCE_SECONDS = 10.0  # for the transactions of other threads, which last milliseconds
_PAUSE_SECONDS = 0.001

_LEDGERS: weakref.WeakSet[SqlLedger] = weakref.WeakSet()
_ORPHANED: set[str] = set()  # URLs that this process, a child, must not open


class _Gate:
    """Shut while a thread forks: who uses a ledger may end, but nobody begins."""

    lock = threading.Lock()


def watch(ledger: SqlLedger) -> None:
    """Close the ledger's connection before every fork from now on."""
    _register()
    _LEDGERS.add(ledger)


@lru_cache(maxsize=1)
def _register() -> None:
    """Watch forks, from the first ledger on: importing the library does nothing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def begin_use(ledger: SqlLedger) -> None:
    """Note that this thread uses the ledger's connection, until the ledger's `user` is 0 again."""
    with _Gate.lock:
        ledger.user = threading.get_ident()


def orphaned(url: str) -> bool:
    """Say whether this process was forked while its parent used the ledger: then it cannot use it safely."""
    return url in _ORPHANED


def _before() -> None:
    """Wait until no other thread uses a ledger, and close each but one whose own transaction forks."""
    _Gate.lock.acquire()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for ledger in list(_LEDGERS):
        while ledger.user not in {0, threading.get_ident()} and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        if not ledger.user:
            ledger.drop()


def _in_parent() -> None:
    _Gate.lock.release()


def _in_child() -> None:
    _Gate.lock = threading.Lock()
    for ledger in list(_LEDGERS):
        if ledger.user:
            _ORPHANED.add(ledger.url)
            ctypes.pythonapi.Py_IncRef(
                ctypes.py_object(ledger._connection)
            )  # even closing it would harm the parent
        ledger.begin_afresh()
