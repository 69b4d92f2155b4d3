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

from reusable_holdout.errors import Halted, HoldoutError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["quiet", "sealed", "withheld"]

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


def withheld(call: Callable[[], _R], *, what: str) -> _R:
    """Run the analyst's code on the holdout; if it raises, say that it did and nothing else."""
    try:
        with quiet():
            return call()
    except Exception:  # noqa: S110 - anything a model may raise
        pass
    raise ModelError(
        f"{what} raised on the holdout; its words are withheld, for they may quote the holdout; "
        "nothing was asked and nothing was charged; try it on training rows with the same columns"
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallow warnings and prints: those of a model on the holdout may quote it."""
    sink = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        warnings.simplefilter("ignore")
        yield
