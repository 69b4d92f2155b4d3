"""A scorer whose scores of single samples reach the guard, and never Inspect."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import anyio
from inspect_ai.hooks import Hooks, TaskStart, hooks
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import registry_info

from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout_evals.guards import numbers_of
from reusable_holdout_evals.inspect.hidden import Failed, score_hidden
from reusable_holdout_evals.inspect.question import Kept, Question, bare
from reusable_holdout_evals.readers.gathering import number_of
from reusable_holdout_evals.redaction import WITHHELD

__all__ = ["WITHHELD", "Private", "as_number", "name_of", "withholding"]


class Private(NamedTuple):
    """The part of a sample that only the scorer may see."""

    target: list[str]
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return "<a withheld target>"


@dataclass(frozen=True, eq=False)
class _Run:
    """One evaluation of one task.

    Attributes
    ----------
    ids : frozenset of str
        Ids of the samples that it will run.
    task_metrics : bool
        True if the task has metrics of its own, which stand in the place of a scorer's.
    flow : int
        Task of anyio that began it and will end it; each sample has a task of its own.
    """

    ids: frozenset[str]
    task_metrics: bool
    flow: int


_RUN: ContextVar[_Run | None] = ContextVar("reusable_holdout_run", default=None)


class _Scored(NamedTuple):
    kept: Kept
    run: _Run | None

    def __repr__(self) -> str:
        return "<a withheld score>"


_SCORED: dict[str, _Scored] = {}
"""Scores by the token that stands in the log: so Inspect decides which of them count."""


def withholding(
    inner: Scorer,
    question: Question,
    privates: Mapping[str, Private],
    number: Callable[[Any], float | None],
) -> Scorer:
    """Make a scorer that withholds scores, with a metric that asks the guard.

    Parameters
    ----------
    inner : Scorer
    question : Question
    privates : mapping of str to Private
        By ids, the parts that were taken off the samples; of other samples the scorer gets their own target.
    number : callable
        Makes a number of a score's value, or None if it is none.

    Returns
    -------
    Scorer
        In the log it is called ``guarded_`` and the inner one's name.
    """
    _watch_runs()

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
                raise bare(found.cancelled)
            return _withheld(state, found)

        return score

    made: Scorer = guarded()
    return made


def as_number(value: Any) -> float | None:
    """Read a score's value as :func:`reusable_holdout_evals.read_inspect` does; None if it is no score.

    Examples
    --------
    >>> as_number("C"), as_number("P"), as_number("No"), as_number(True), as_number("0.25"), as_number({"a": 1})
    (1.0, 0.5, 0.0, 1.0, 0.25, None)
    """
    try:
        return number_of(value)
    except ValueError:
        return None


def name_of(one: Scorer) -> str:
    """Return the name of a scorer, without its package's."""
    return str(registry_info(one).name).rpartition("/")[2]


@cache
def _watch_runs() -> None:
    """Have Inspect tell of every evaluation that begins."""

    @hooks(name="runs", description="Asks a guarded holdout when all samples are scored")
    class _Runs(Hooks):  # type: ignore[misc] # its type is not looked into
        async def on_task_start(self, data: TaskStart) -> None:
            ids = frozenset(str(one) for one in data.spec.dataset.sample_ids or ())
            _RUN.set(_Run(ids, bool(data.spec.metrics), anyio.get_current_task().id))


def _check_run(question: Question) -> None:
    """Refuse before all samples have cost their tokens."""
    run = _RUN.get()
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
    token = secrets.token_hex(8)
    _SCORED[token] = _Scored(Kept(state.sample_id, state.epoch, score, failed), _RUN.get())
    return Score(value=WITHHELD, metadata={WITHHELD: token})


def _told(question: Question, scores: Sequence[SampleScore]) -> Value:
    """Return the guard's answer when all samples are done; nothing before, when Inspect shows how far it is."""
    run = _RUN.get()
    if run is not None and anyio.get_current_task().id != run.flow:
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
