"""A thread that follows a ledger while the analyst's loop goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["Follower"]

_REST = 1.0  # seconds between steps, at least
_REST_PER_WORK = 20.0  # times a step's processor time, so that the loop, in the same interpreter, keeps 95%


class Follower:
    """A thread that takes one step again and again, each after a rest.

    Nothing is queued: a step looks into the ledger for what is new, so neither a slow server nor a long loop fills the
    memory, and a rest that is long makes a batch that is large.

    Parameters
    ----------
    step : callable
        Raises nothing.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        self._step, self._ended = step, threading.Event()
        self._process = os.getpid()  # a fork has no such thread
        self._thread = threading.Thread(target=self._run, name="reusable-holdout-mlflow", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Wait for the step that is being taken, and take no more."""
        self._ended.set()
        if self._process == os.getpid() and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        rest = _REST
        while not self._ended.wait(rest):
            worked = time.thread_time()
            self._step()
            rest = max(_REST, _REST_PER_WORK * (time.thread_time() - worked))
