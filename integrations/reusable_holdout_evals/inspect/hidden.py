"""A hidden run of a scorer: Inspect records no events, no log lines, no usage, and no change of the sample."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from inspect_ai.log._samples import _sample_active
from inspect_ai.log._transcript import Transcript, _transcript
from inspect_ai.model._model import (
    role_usage_context_var,
    sample_model_fallbacks_context_var,
    sample_model_usage_context_var,
    sample_role_usage_context_var,
)
from inspect_ai.scorer import Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.solver._task_state import _sample_state
from inspect_ai.util._limit import suspend_token_limit, suspend_turn_limit
from inspect_ai.util._store import _subtask_store

__all__ = ["Failed", "score_hidden"]

_HIDDEN: ContextVar[bool] = ContextVar("reusable_holdout_hidden", default=False)


class Failed:
    """The reason why a scorer gave no score: a cancellation, or an error.

    Only the error's name is kept, because its message may quote the target.
    """

    def __init__(self, error: BaseException) -> None:
        self.name = type(error).__name__
        self.cancelled = None if isinstance(error, Exception) else error


async def score_hidden(
    scorer: Scorer,
    state: TaskState,
    target: Target,
    metadata: Mapping[str, Any],
    number: Callable[[Any], float | None],
) -> float | Failed | None:
    """Score a sample so that Inspect records nothing of it.

    Parameters
    ----------
    scorer : Scorer
    state : TaskState
        State of the sample. The scorer gets a copy of it, with the target and the private metadata added.
    target : Target
        The sample's true target.
    metadata : mapping
        Metadata of the sample that only the scorer may see.
    number : callable
        Function that turns the value of a score into a number, or into None if it is no score.

    Returns
    -------
    float, Failed or None
        The score, the reason of a failure, or None if the scorer gave no number. Nothing is raised, because the
        frames of a traceback would hold the target.
    """
    try:
        private = deepcopy(state)
        private.metadata = {**private.metadata, **metadata}
        vars(private)["_target"] = target  # TaskState has no setter for it
        with _hidden(private):
            score = await scorer(private, target)
            return None if score is None else number(score.value)
    except BaseException as error:  # the caller raises a cancellation again
        return Failed(error)


@contextmanager
def _hidden(state: TaskState) -> Iterator[None]:
    """Give the code in a ``with`` block its own transcript, usage counters and store, and suppress its log lines."""
    _silence_handlers()
    own: list[tuple[ContextVar[Any], Any]] = [
        (_HIDDEN, True),
        (_transcript, Transcript()),
        (_sample_active, None),  # hooks, displays and waiting times use it
        (_sample_state, state),
        (_subtask_store, state.store),
        (sample_model_usage_context_var, {}),
        (sample_role_usage_context_var, {}),
        (role_usage_context_var, {}),
        (sample_model_fallbacks_context_var, {}),
    ]
    with ExitStack() as undo:
        undo.enter_context(suspend_token_limit())  # what counts towards a limit would be in the log
        undo.enter_context(suspend_turn_limit())
        for variable, value in own:
            undo.callback(variable.reset, variable.set(value))
        yield


class _Silence(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _HIDDEN.get()


_SILENCE = _Silence()


def _silence_handlers() -> None:
    """Suppress hidden log lines in Inspect's handlers (console, trace file, transcript).

    It is called again and again, because Inspect may add handlers at any time.
    """
    for logger in (logging.getLogger(), logging.getLogger("inspect_ai")):
        for handler in logger.handlers:
            if _SILENCE not in handler.filters:
                handler.addFilter(_SILENCE)
