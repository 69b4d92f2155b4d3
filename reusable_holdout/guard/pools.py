"""Halts in the workers of pools of processes.

A halt is no `Exception`, so that no loop swallows it. But a worker of `multiprocessing.pool` hands on exceptions only,
and it dies of anything else: the task would be lost, and the caller would wait for ever. An error that leaves a task
has left every loop inside it. So there, and only there, a worker hands on halts as it does exceptions.

A caller that gets a halt ends the pool, and a pool ends its workers by a signal. A worker that is ended while it writes
a result keeps the lock of all writers, and the pool waits for that lock for ever. A halt comes to all workers at about
the same time, so this happens. Therefore a worker that has a guard finishes writing first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

from reusable_holdout.errors import Halted, Refused

# the standard library's, and its forks
_POOLS = ("multiprocessing.pool", "multiprocess.pool", "billiard.pool")
_PATIENCE_SECONDS = 5.0  # for a pipe without a reader
_PAUSE_SECONDS = 0.005


def let_pools_carry_halts() -> None:
    """Make the workers of this process's pools, if there are any, hand on a halt as they hand on exceptions.

    A worker says ``except Exception``, and the name is looked up in its module at that time. So that module gets a name
    `Exception` of its own: the builtin, and the errors of this library that are outside of it.
    """
    for name in _POOLS:
        module = sys.modules.get(name)
        if module is not None:
            vars(module)["Exception"] = (Exception, Halted, Refused)
    write_to_the_end()


def write_to_the_end() -> None:
    """Let this process, if it is a worker of a pool of processes, finish writing a result before it is ended."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        or _called_by_worker(sys._getframe(1)) is None
    ):
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, _end)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_when_told, args=(reading,), daemon=True).start()


def _begin_anew() -> None:
    """Reset the signal handling in a process that a worker forks.

    The child has the worker's pipe: a signal to the child must not reach the worker.
    """
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _end(_: int, frame: FrameType | None) -> None:
    if not _is_writing(frame):
        os._exit(1)  # as the signal does by default


def _end_when_told(pipe: int) -> None:
    """End this process when the worker has written, also if the main thread is in compiled code.

    No signal handler runs while the main thread is in compiled code.
    """
    while signal.SIGTERM not in os.read(pipe, 1) or signal.getsignal(signal.SIGTERM) is not _end:
        pass  # another handler has come since: it says what becomes of the worker
    deadline = time.monotonic() + _PATIENCE_SECONDS
    main = threading.main_thread().ident or 0
    while _is_writing(sys._current_frames().get(main)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    os._exit(1)


def _is_writing(frame: FrameType | None) -> bool:
    """Return True if a worker is handing on a result: it calls its queue's `put`."""
    called = _called_by_worker(frame)
    return called is not None and called.f_code.co_name == "put"


def _called_by_worker(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the function that the worker's loop calls; None if there is no such loop below."""
    workers = [getattr(module, "worker", None) for module in map(sys.modules.get, _POOLS)]
    loops = [worker.__code__ for worker in workers if worker is not None]
    while frame is not None and (frame.f_back is None or frame.f_back.f_code not in loops):
        frame = frame.f_back
    return frame
