"""The boundary that nothing private crosses by accident.

An exception carries its frames, and frames carry local variables: a crash report or a rich traceback would print the
holdout. So no exception leaves a public method with the frames, the context or, if it is not ours, the words it
was raised with.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from reusable_holdout.errors import Halted, HoldoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["attempt", "quiet", "sealed"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def sealed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let only what this library raises pass, without frames and context.

    Anything else becomes a :class:`HoldoutError` whose words tell only where it happened; an interrupt stays an
    interrupt.
    """

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        failure: BaseException
        try:
            return method(*args, **kwargs)
        except (HoldoutError, Halted) as error:
            failure = error
        except KeyboardInterrupt:
            failure = KeyboardInterrupt()
        except SystemExit:
            failure = SystemExit(1)
        except MemoryError:
            failure = MemoryError(f"{method.__name__} ran out of memory; nothing was answered")
        except BaseException:  # its words and its type may depend on the holdout
            failure = HoldoutError(
                f"{method.__name__} failed inside the guard; its words are withheld, for they may quote the holdout; "
                "nothing was answered that is not in history()"
            )
        del args, kwargs  # they are the holdout, when a guard is made
        failure.__cause__ = failure.__context__ = None
        raise failure.with_traceback(None)

    return call


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
    """The process's one set of streams and filters: one thread at a time may exchange them."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def lock(self) -> threading.RLock:
        """Lock of this process; a fork may have happened while another thread held it."""
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        return self._lock


_SILENCE = _Silence()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallow warnings, prints and log records: those of a model on the holdout may quote it.

    While it lasts, log records of other threads are lost too, and other models wait.
    """
    sink = io.StringIO()
    with (
        _SILENCE.lock(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        level = logging.root.manager.disable
        warnings.simplefilter("ignore")
        logging.disable(sys.maxsize)
        try:
            yield
        finally:
            logging.disable(level)
