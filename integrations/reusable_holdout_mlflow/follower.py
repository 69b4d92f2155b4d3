"""A background thread that logs new answers from a ledger while the analyst's loop goes on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["Follower"]

_REST = 1.0  # seconds between steps, at least
_REST_PER_WORK = 20.0  # pause for each second of processor time, so that the analyst's loop keeps 95%


class Follower:
    """A thread that calls a function again and again, with a pause before each call.

    There is no queue of answers. Each call reads the new answers from the ledger, so a slow server or a long loop does
    not fill the memory; after a long pause there are only more answers to log at once.

    Parameters
    ----------
    step : callable
        The function. It must not raise exceptions.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        self._step, self._ended = step, threading.Event()
        self._process = os.getpid()  # a forked process does not have the thread
        self._thread = threading.Thread(target=self._run, name="reusable-holdout-mlflow", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Wait until the current call has ended, and end the thread."""
        self._ended.set()
        if self._process == os.getpid() and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        rest = _REST
        while not self._ended.wait(rest):
            worked = time.thread_time()
            self._step()
            rest = max(_REST, _REST_PER_WORK * (time.thread_time() - worked))
