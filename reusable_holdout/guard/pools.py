"""Halts in the workers of `multiprocessing.pool`, which take an `Exception` and nothing else to whoever waits.

A halt is no `Exception`, so that no loop swallows it; one that left such a worker's task would end the worker, the task
would be lost, and whoever waits for it would wait for ever. So where it is about to leave a task, with every loop
inside that behind it, it becomes one that is an `Exception`, too: the pool carries it on.
"""

from __future__ import annotations

import sys
from dis import opname
from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import Halted, Refused

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["HaltedInPool", "carry_out_of_pool"]


class HaltedInPool(Halted, Exception):  # noqa: N818 - as its base
    """A halt on its way out of a worker of a pool; another process gets it as a plain :class:`Halted`."""


def carry_out_of_pool(stop: Halted | Refused) -> None:
    """See to it that what leaves a task of `multiprocessing.pool` reaches whoever waits; nothing elsewhere.

    The task's outermost frame is traced from now to its end: it is what the worker calls, and an exception is exchanged
    there when it leaves. For a task that deals with it itself nothing changes.
    """
    frame = _task_frame() if "multiprocessing.pool" in sys.modules else None
    if frame is None or frame.f_trace is not None:
        return
    before, leaving = sys.gettrace(), True

    def watch(_: FrameType, event: str, what: Any) -> Any:
        nonlocal leaving
        if event == "exception":  # the last one that came here, whether it is dealt with here or not
            leaving = isinstance(what[1], Halted | Refused)
        elif event == "return":
            frame.f_trace = None
            sys.settrace(before)
            if leaving and not _returns(frame):
                raise _carried(stop) from None
        return watch

    frame.f_trace_lines = False
    frame.f_trace = watch
    sys.settrace(lambda *_: None)  # frames are traced only while something is


def _carried(stop: Halted | Refused) -> Exception:
    if isinstance(stop, Refused):
        return stop.error
    return HaltedInPool(str(stop), reason=stop.reason, history=stop.history, answers=stop.answers)


def _returns(frame: FrameType) -> bool:
    """Whether a frame is left by its own return, and not by an exception."""
    return opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


def _task_frame() -> FrameType | None:
    """Outermost frame of the task of a pool's worker; None in no such task."""
    from multiprocessing import pool  # noqa: PLC0415 - whoever is in a worker has it

    worker: Any = pool.worker.__code__  # type: ignore[attr-defined]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_back is None or frame.f_back.f_code is not worker):
        frame = frame.f_back
    return frame
