"""A scorer whose scores of single samples reach the guard, and Inspect never."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    PARTIAL,
    SampleScore,
    Score,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.util import registry_info

from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout_evals.inspect.hidden import Failed, score_hidden
from reusable_holdout_evals.inspect.question import Kept, Question, numbers_of
from reusable_holdout_evals.inspect.runs import Run, current_run, watch_runs

if TYPE_CHECKING:
    from inspect_ai.scorer import Metric, Scorer
    from inspect_ai.solver import TaskState

__all__ = ["WITHHELD", "Private", "as_number", "name_of", "withholding"]

WITHHELD = "withheld"
"""What stands in the log in the place of a score, and of a target."""

_WORDS = {
    CORRECT: 1.0,
    INCORRECT: 0.0,
    PARTIAL: 0.5,
    NOANSWER: 0.0,
    "yes": 1.0,
    "true": 1.0,
    "no": 0.0,
    "false": 0.0,
}


class Private(NamedTuple):
    """What only the scorer is to see of a sample."""

    target: list[str]
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return "<a withheld target>"


class _Scored(NamedTuple):
    kept: Kept
    run: Run | None

    def __repr__(self) -> str:
        return "<a withheld score>"


_SCORED: dict[str, _Scored] = {}
"""Scores by the token that stands in the log: so it is Inspect that says which of them count."""


def withholding(
    inner: Scorer,
    question: Question,
    privates: Mapping[str, Private],
    number: Callable[[Any], float | None],
) -> Scorer:
    """Scorer that withholds scores, with a metric that asks.

    Parameters
    ----------
    inner : Scorer
    question : Question
    privates : mapping of str to Private
        By ids, what was taken off the samples; without it the target is what the sample has.
    number : callable
        Makes a number of a score's value, or None of what is none.

    Returns
    -------
    Scorer
        In the log it is called ``guarded_`` and the inner one's name.
    """
    watch_runs()

    @metric(name="holdout", scores="unreduced")  # type: ignore[untyped-decorator]
    def holdout() -> Metric:
        def told(scores: list[SampleScore]) -> Value:  # Inspect reads the hints
            return _told(question, scores)

        return told

    @scorer(metrics=[holdout()], name=f"guarded_{name_of(inner)}")  # type: ignore[untyped-decorator]
    def guarded() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            _check_run(question)
            private = privates.get(str(state.sample_id)) or Private(list(target), {})
            found = await score_hidden(inner, state, Target(private.target), private.metadata, number)
            if isinstance(found, Failed) and found.cancelled is not None:
                raise _bare(found.cancelled)
            return _withheld(state, found)

        return score

    made: Scorer = guarded()
    return made


def as_number(value: Any) -> float | None:
    """Read a score's value as Inspect's metrics do; None where they would warn and count 0.

    Examples
    --------
    >>> as_number("C"), as_number("P"), as_number("No"), as_number(True), as_number("0.25"), as_number({"a": 1})
    (1.0, 0.5, 0.0, 1.0, 0.25, None)
    """
    if isinstance(value, str):
        known = _WORDS.get(value, _WORDS.get(value.lower()))
        if known is not None:
            return known
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found - found == 0 else None


def name_of(one: Scorer) -> str:
    """Name of a scorer, without its package's."""
    return str(registry_info(one).name).rpartition("/")[2]


def _check_run(question: Question) -> None:
    """Refuse before all samples have cost their tokens."""
    run = current_run()
    if run is None:
        return
    if run.task_metrics:
        raise InputError(
            "a task with a guarded scorer must have no metrics of its own, which would be computed in the guard's "
            "place; take metrics= away; nothing was asked"
        )
    if run.ids:
        question.check_ids(run.ids)


def _withheld(state: TaskState, found: float | Failed | None) -> Score:
    """Keep a score, or that there is none: in the log of a sample either looks the same."""
    score, failed = (None, found.name) if isinstance(found, Failed) else (found, "")
    kept = Kept(state.sample_id, state.epoch, score, failed)
    token = secrets.token_hex(8)
    _SCORED[token] = _Scored(kept, current_run())
    return Score(value=WITHHELD, metadata={WITHHELD: token})


def _bare(error: BaseException) -> BaseException:
    """Take away the frames that it came through."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _told(question: Question, scores: Sequence[SampleScore]) -> Value:
    """What the guard answers when all samples are done; nothing before, when Inspect shows how far it is."""
    run = current_run()
    if run is not None and not run.is_ending():
        return {}
    tokens = [(one.score.metadata or {}).get(WITHHELD) for one in scores]
    if run is None and any(token in _SCORED and _SCORED[token].run is not None for token in tokens):
        return {}  # somebody looks into a running evaluation
    found = _ask(question, tokens)
    if isinstance(found, HoldoutError | Halted):
        raise found
    return found


def _ask(question: Question, tokens: Sequence[str | None]) -> dict[str, float] | HoldoutError | Halted:
    if any(token not in _SCORED for token in tokens):
        return InputError(
            "scores that were withheld are gone with the process that had them: samples of an earlier log cannot be "
            "used again; run the evaluation anew; nothing was asked and nothing was charged"
        )
    if not tokens:
        return {}
    answer = question.ask([_SCORED[str(token)].kept for token in tokens])
    if isinstance(answer, HoldoutError | Halted):
        return answer
    for token in tokens:
        del _SCORED[str(token)]
    return numbers_of(answer)
