"""The boundary that nothing private crosses by accident.

An exception carries its frames, and frames carry local variables: a crash report or a rich traceback would print the
holdout. So no exception leaves a public method with the frames, the context or, if it is not ours, the words it
was raised with.
"""

from __future__ import annotations

import contextlib
import functools
import io
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
        except (HoldoutError, Halted, KeyboardInterrupt, SystemExit) as error:
            failure = error
        except MemoryError:
            failure = MemoryError(f"{method.__name__} ran out of memory; nothing was answered")
        except BaseException:
            failure = HoldoutError(
                f"{method.__name__} failed inside the guard; its words are withheld, for they may quote the holdout; "
                "nothing was answered that is not in history()"
            )
        failure.__cause__ = failure.__context__ = None
        raise failure.with_traceback(None)

    return call


def attempt(call: Callable[[], _R]) -> _R | None:
    """Run the analyst's code on the holdout; None if it fails, for its words may quote the holdout."""
    try:
        with quiet():
            return call()
    except Exception:  # anything a model may raise
        return None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallow warnings and prints: those of a model on the holdout may quote it."""
    sink = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        warnings.simplefilter("ignore")
        yield
