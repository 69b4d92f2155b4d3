"""The boundary of the public methods: no exception takes private data across it, and every halt crosses it (`pools`).

An exception carries its frames, and frames carry local variables: a crash report or a rich traceback would print the
holdout. So an exception leaves a public method without its frames and its context. If it is not one of this library's,
it also loses its message.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from reusable_holdout import misfits
from reusable_holdout.errors import Halted, HoldoutError
from reusable_holdout.guard import pools

_P = ParamSpec("_P")
_R = TypeVar("_R")


def sealed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let only errors of this library pass, without frames and context.

    Any other error becomes a :class:`HoldoutError` whose message says only where it happened; an interrupt stays an
    interrupt. Arguments that the method does not take are an :class:`InputError` that names them. Underflow and
    overflow may depend on the holdout: they are not reported, for any setting of the caller's `numpy.errstate`.
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
            failure = misfits.misfit(method, args, kwargs) or _withheld(method)
        except BaseException:  # its words and its type may depend on the holdout
            failure = _withheld(method)
        del args, kwargs  # they are the holdout, when a guard is made
        failure.__cause__ = failure.__context__ = None
        if isinstance(failure, Halted):
            pools.let_pools_carry_halts()
        raise failure.with_traceback(None)

    return call


def _withheld(method: Callable[..., Any]) -> HoldoutError:
    return HoldoutError(
        f"{method.__name__} failed inside the guard; its words are withheld, because they may quote the holdout; "
        "nothing was answered that is not in history()"
    )


def attempt(call: Callable[[], _R]) -> _R | None:
    """Run the analyst's code on the holdout; return None if it raises, because an error may quote the holdout."""
    with interrupts() as came:
        try:
            with quiet():
                return call()
        except BaseException:  # even an exit or a forged halt could carry a message
            if came:
                raise KeyboardInterrupt from None
            return None


@contextlib.contextmanager
def interrupts() -> Iterator[list[int]]:
    """Note the user's interrupts while the analyst's code runs.

    If the analyst's code raises a KeyboardInterrupt itself, it is a failure like any other.
    """
    came: list[int] = []
    handler: Any = signal.getsignal(signal.SIGINT)

    def noted(number: int, frame: Any) -> None:
        came.append(number)
        handler(number, frame)

    arrives = callable(handler) and threading.current_thread() is threading.main_thread()
    if arrives:
        signal.signal(signal.SIGINT, noted)
    try:
        yield came
    finally:
        if arrives:
            signal.signal(signal.SIGINT, handler)


class _Silence:
    """The silence of a whole process: the first thread that needs it begins it, and the last thread ends it."""

    def __init__(self) -> None:
        self._process: int | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        if self._process != os.getpid():  # a fork may have happened while another thread was silent
            self._process, self._lock, self._threads = os.getpid(), threading.Lock(), 0
            self._restore = contextlib.ExitStack()

    def __enter__(self) -> None:
        import logging  # noqa: PLC0415 - questions about predictions need no silence

        self._begin_anew()
        with self._lock:
            if self._threads == 0:
                sink = io.StringIO()
                self._restore.enter_context(warnings.catch_warnings())
                self._restore.enter_context(contextlib.redirect_stdout(sink))
                self._restore.enter_context(contextlib.redirect_stderr(sink))
                self._restore.callback(logging.disable, logging.root.manager.disable)
                warnings.simplefilter("ignore")
                warnings.filterwarnings("always", _OF_NAMES, UserWarning)
                warnings.showwarning = lambda message, *_: getattr(_HEARD, "words", []).append(str(message))
                logging.disable(sys.maxsize)
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                self._restore.close()


_SILENCE = _Silence()
_OF_NAMES = r"X (has|does not have valid) feature names, but \w+ was fitted with(out)? feature names$"  # scikit-learn's
_HEARD = threading.local()


@contextlib.contextmanager
def quiet_but_for_names(words: list[str]) -> Iterator[None]:
    """Swallow all but scikit-learn's warnings of feature names, which are added to `words`; for public rows alone."""
    _HEARD.words = words
    try:
        with quiet():
            yield
    finally:
        del _HEARD.words


def quiet() -> _Silence:
    """Swallow warnings, prints and log records, because those of a model may quote the holdout.

    Meanwhile, the output of other threads is lost too.
    """
    return _SILENCE
