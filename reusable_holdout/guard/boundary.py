"""The boundary that nothing private crosses by accident, and every halt does.

An exception carries its frames, and frames carry local variables: a crash report or a rich traceback would print the
holdout. So no exception leaves a public method with the frames, the context or, if it is not ours, the words it
was raised with.

A halt is no `Exception`, so that no loop swallows it; but a worker of `multiprocessing.pool` takes exceptions and
nothing else to whoever waits, and dies of what is none: its task would be lost, and whoever waits for the task would
wait for ever. Whatever leaves a task has every loop inside it behind it, so there, and only there, halts are taken to
be what a worker carries.

Whoever gets a halt ends the pool, and a pool ends its workers by a signal, whatever they do. One that is ended while it
writes a result takes the lock of all writers with it, and the pool waits for that lock for ever; as a halt comes to all
workers at about the same time, this happens. So a worker that has a guard writes to the end.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from reusable_holdout.errors import Halted, HoldoutError, Refused
from reusable_holdout.slips import misfit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["attempt", "let_pools_carry_halts", "quiet", "sealed", "write_to_the_end"]

_POOLS = (
    "multiprocessing.pool",
    "multiprocess.pool",
    "billiard.pool",
)  # the standard library's, and its forks
_PATIENCE_SECONDS = 5.0  # with a pipe that nobody reads any more
_PAUSE_SECONDS = 0.005

_P = ParamSpec("_P")
_R = TypeVar("_R")


def sealed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let only what this library raises pass, without frames and context.

    Anything else becomes a :class:`HoldoutError` whose words tell only where it happened; an interrupt stays an
    interrupt. Arguments that the method does not take are an :class:`InputError` that names them. Whether numbers
    underflow or overflow on the way may depend on the holdout: it is not told, whatever the caller's `numpy.errstate`.
    """

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        failure: BaseException
        try:
            with np.errstate(all="ignore"):
                return method(*args, **kwargs)
        except (HoldoutError, Halted) as error:
            failure = error
        except KeyboardInterrupt:
            failure = KeyboardInterrupt()
        except SystemExit:
            failure = SystemExit(1)
        except MemoryError:
            failure = MemoryError(f"{method.__name__} ran out of memory; nothing was answered")
        except TypeError:
            failure = misfit(method, args, kwargs) or _withheld(method)
        except BaseException:  # its words and its type may depend on the holdout
            failure = _withheld(method)
        del args, kwargs  # they are the holdout, when a guard is made
        failure.__cause__ = failure.__context__ = None
        if isinstance(failure, Halted):
            let_pools_carry_halts()
        raise failure.with_traceback(None)

    return call


def _withheld(method: Callable[..., Any]) -> HoldoutError:
    return HoldoutError(
        f"{method.__name__} failed inside the guard; its words are withheld, for they may quote the holdout; nothing "
        "was answered that is not in history()"
    )


def attempt(call: Callable[[], _R]) -> _R | None:
    """Run the analyst's code on the holdout; None if it fails, whatever it raises, for that may quote the holdout."""
    try:
        with quiet():
            return call()
    except KeyboardInterrupt:  # the user's, not the model's
        raise
    except BaseException:  # even an exit or a forged halt would be a message
        return None


class _Silence:
    """The process's one set of streams and filters: the first thread that needs silence makes it, the last ends it.

    Threads do not wait for one another: one that waits would hold a worker that the other's rows are read on.
    """

    def __init__(self) -> None:
        self._process: int | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        if self._process != os.getpid():  # a fork may have happened while another thread was silent
            self._process, self._lock, self._threads = os.getpid(), threading.Lock(), 0
            self._restore = contextlib.ExitStack()

    def __enter__(self) -> None:
        import logging  # noqa: PLC0415 - who asks with predictions needs no silence

        self._begin_anew()
        with self._lock:
            if self._threads == 0:
                sink = io.StringIO()
                self._restore.enter_context(warnings.catch_warnings())
                self._restore.enter_context(contextlib.redirect_stdout(sink))
                self._restore.enter_context(contextlib.redirect_stderr(sink))
                self._restore.callback(logging.disable, logging.root.manager.disable)
                warnings.simplefilter("ignore")
                logging.disable(sys.maxsize)
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._restore.close()


_SILENCE = _Silence()


def quiet() -> _Silence:
    """Swallow warnings, prints and log records: those of a model on the holdout may quote it.

    While it lasts, those of other threads are lost too.
    """
    return _SILENCE


# ---- halts in the workers of pools


def let_pools_carry_halts() -> None:
    """Make the workers of this process's pools, if there are any, hand on a halt as they hand on exceptions.

    A worker says ``except Exception``, where the name is looked up in its module at the time: that module gets a
    name `Exception` of its own, which stands for the builtin and for what this library raises outside of it.
    """
    for name in _POOLS:
        module = sys.modules.get(name)
        if module is not None:
            vars(module)["Exception"] = (Exception, Halted, Refused)
    write_to_the_end()


def write_to_the_end() -> None:
    """See to it that this process, if it is a worker of a pool of processes, is not ended while it writes a result."""
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
    """In a process that a worker forks: a signal to it must not be told to the worker, whose pipe it has."""
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _end(_: int, frame: FrameType | None) -> None:
    if not _is_writing(frame):
        os._exit(1)  # as the signal does that no one handles


def _end_when_told(pipe: int) -> None:
    """The same when it has written, or when the main thread is in compiled code, where no handler runs."""
    while signal.SIGTERM not in os.read(pipe, 1) or signal.getsignal(signal.SIGTERM) is not _end:
        pass  # another handler has come since: it says what becomes of the worker
    deadline = time.monotonic() + _PATIENCE_SECONDS
    main = threading.main_thread().ident or 0
    while _is_writing(sys._current_frames().get(main)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    os._exit(1)


def _is_writing(frame: FrameType | None) -> bool:
    """Whether a worker is handing on a result: it calls its queue's `put`."""
    called = _called_by_worker(frame)
    return called is not None and called.f_code.co_name == "put"


def _called_by_worker(frame: FrameType | None) -> FrameType | None:
    """Frame of what the worker's loop calls; None if there is no such loop below."""
    workers = [getattr(module, "worker", None) for module in map(sys.modules.get, _POOLS)]
    loops = [worker.__code__ for worker in workers if worker is not None]
    while frame is not None and (frame.f_back is None or frame.f_back.f_code not in loops):
        frame = frame.f_back
    return frame
