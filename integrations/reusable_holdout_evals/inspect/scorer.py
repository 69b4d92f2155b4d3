"""A scorer that passes the scores of single samples to the guard, and never to Inspect."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
import numpy as np
from inspect_ai.hooks import Hooks, TaskStart, hooks
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import registry_info
from numpy.typing import NDArray

from reusable_holdout import Answer
from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout.metrics import Metric as GuardMetric
from reusable_holdout.metrics import ScoreTable
from reusable_holdout_evals.guards import ask, numbers_of
from reusable_holdout_evals.inspect.hidden import Failed, score_hidden
from reusable_holdout_evals.readers.gathering import number_of
from reusable_holdout_evals.redaction import WITHHELD

__all__ = ["WITHHELD", "Private", "Question", "as_number", "name_of", "withholding"]


_E = TypeVar("_E", bound=BaseException)
_NAMED = 3  # number of ids that a message names
_NOTHING = "; nothing was asked and nothing was charged"


class Private(NamedTuple):
    """The parts of a sample that only the scorer may see: its target and private metadata."""

    target: list[str]
    metadata: Mapping[str, Any]

    def __repr__(self) -> str:
        return "<a withheld target>"


class _Kept(NamedTuple):
    """The score of one sample in one epoch, kept only in this process's memory.

    Attributes
    ----------
    id, epoch : str or int, int
        Id of the sample, and number of the epoch.
    score : float or None
        The score; None if the scorer gave no number.
    failed : str
        Name of the scorer's error; empty if it did not fail.
    """

    id: str | int
    epoch: int
    score: float | None
    failed: str = ""

    def __repr__(self) -> str:
        return "<a withheld score>"


@dataclass(frozen=True, eq=False)
class _Run:
    """One evaluation of one task.

    Attributes
    ----------
    ids : frozenset of str
        Ids of the samples that the evaluation will run.
    task_metrics : bool
        True if the task has metrics of its own, which Inspect would compute in place of the scorers' metrics.
    flow : int
        Id of the asynchronous task (anyio) that runs the whole evaluation; each sample has a task of its own.
    """

    ids: frozenset[str]
    task_metrics: bool
    flow: int


_RUN: ContextVar[_Run | None] = ContextVar("reusable_holdout_run", default=None)


class _Scored(NamedTuple):
    kept: _Kept
    run: _Run | None

    def __repr__(self) -> str:
        return "<a withheld score>"


_SCORED: dict[str, _Scored] = {}
"""The scores by random token. The log has only tokens; Inspect passes back the tokens of scores that count."""


def withholding(
    inner: Scorer, question: Question, privates: Mapping[str, Private], number: Callable[[Any], float | None]
) -> Scorer:
    """Make a scorer that withholds the scores of another scorer, with a metric that asks the guard.

    Parameters
    ----------
    inner : Scorer
        The scorer whose scores are withheld.
    question : Question
        The question to the guard.
    privates : mapping of str to Private
        The private parts of each sample, by its id.
    number : callable
        Function that turns the value of a score into a number, or into None if it is no score.

    Returns
    -------
    Scorer
        A scorer whose name in the log is ``guarded_`` and the inner scorer's name.
    """
    _watch_runs()

    @metric(name="holdout", scores="unreduced")  # type: ignore[untyped-decorator]
    def holdout() -> Metric:
        def told(scores: list[SampleScore]) -> Value:  # Inspect reads these type hints
            return _told(question, scores)

        return told

    @scorer(metrics=[holdout()], name=f"guarded_{name_of(inner)}")  # type: ignore[untyped-decorator]
    def guarded() -> Scorer:
        async def score(state: TaskState, _: Target) -> Score:
            _check_run(question)
            private = privates[str(state.sample_id)]
            found = await score_hidden(inner, state, Target(private.target), private.metadata, number)
            if isinstance(found, Failed) and found.cancelled is not None:
                raise _bare(found.cancelled)
            return _withheld(state, found)

        return score

    made: Scorer = guarded()
    return made


def as_number(value: Any) -> float | None:
    """Return a score's value as a number, as :func:`reusable_holdout_evals.read_inspect` does; None if it is no score.

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
    """Return the name of a scorer, without the name of its package."""
    return str(registry_info(one).name).rpartition("/")[2]


@cache
def _watch_runs() -> None:
    """Register a hook that Inspect calls when an evaluation begins, with the ids of its samples."""

    @hooks(name="runs", description="Asks a guarded holdout when all samples are scored")
    class _Runs(Hooks):  # type: ignore[misc] # its type is not looked into
        async def on_task_start(self, data: TaskStart) -> None:
            ids = frozenset(str(one) for one in data.spec.dataset.sample_ids or ())
            _RUN.set(_Run(ids, bool(data.spec.metrics), anyio.get_current_task().id))


def _check_run(question: Question) -> None:
    """Refuse an evaluation that the guard cannot be asked about, before the other samples cost tokens."""
    run = _RUN.get()
    if run is None:
        return
    if run.task_metrics:
        raise InputError(
            "a task with a guarded scorer must have no metrics of its own, because they would replace the guard's "
            "answer; leave metrics= out; nothing was asked"
        )
    if run.ids:
        question.check_ids(run.ids)


def _withheld(state: TaskState, found: float | Failed | None) -> Score:
    """Keep a score, or the fact that there is none, and return a withheld score that looks the same in both cases."""
    score, failed = (None, found.name) if isinstance(found, Failed) else (found, "")
    token = secrets.token_hex(8)
    _SCORED[token] = _Scored(_Kept(state.sample_id, state.epoch, score, failed), _RUN.get())
    return Score(value=WITHHELD, metadata={WITHHELD: token})


def _told(question: Question, scores: Sequence[SampleScore]) -> Value:
    """Return the guard's answer if all samples are done.

    Inspect also calls a metric while samples run, to show intermediate results; then nothing is returned.
    """
    run = _RUN.get()
    if run is not None and anyio.get_current_task().id != run.flow:
        return {}
    tokens = [(one.score.metadata or {}).get(WITHHELD) for one in scores]
    if run is None and any(token in _SCORED and _SCORED[token].run is not None for token in tokens):
        return {}  # called from outside of an evaluation that still runs
    found = _ask(question, tokens)
    if isinstance(found, HoldoutError | Halted):
        raise found
    return found


def _ask(question: Question, tokens: Sequence[str | None]) -> dict[str, float] | HoldoutError | Halted:
    if any(token not in _SCORED for token in tokens):
        return InputError(
            "withheld scores are lost when their process ends, so samples of an earlier log cannot be used again; "
            "run the whole evaluation again; nothing was asked and nothing was charged"
        )
    if not tokens:
        return {}
    answer = question.ask([_SCORED[str(token)].kept for token in tokens])
    if isinstance(answer, HoldoutError | Halted):
        return answer
    for token in tokens:
        del _SCORED[str(token)]
    return numbers_of(answer)


# ---- the question


@dataclass(frozen=True, repr=False, kw_only=True)
class Question:
    """A question to the guard about the scores of one scorer.

    Attributes
    ----------
    guard : ReusableHoldout or RemoteHoldout
    prior : float or None
        The developer's own estimate of the mean score or, with an incumbent, of the difference.
    name : str
        Name of the question in the guard's history.
    ids : frozenset of str
        Ids of all samples of the holdout.
    incumbent : table, or None
        The incumbent's scores.
    keep : Path, or None
        File to which the scores are written, readable by its owner alone.
    failed : float, or None
        Score of a sample for which the scorer gave none; if it is None, nothing is asked in that case.
    """

    guard: Any
    prior: float | None
    name: str
    ids: frozenset[str]
    incumbent: Any = None
    keep: Path | None = None
    failed: float | None = None

    def __repr__(self) -> str:
        return f"<question {self.name!r}>"

    def check_ids(self, ids: frozenset[str]) -> None:
        """Refuse an evaluation that leaves out samples of the holdout."""
        left_out = sorted(self.ids - ids)
        if left_out:
            raise InputError(
                f"a question needs all {len(self.ids):,} samples of the holdout; this evaluation leaves out "
                f"{_some(left_out)}; run it without --limit and --sample-id{_NOTHING}"
            )

    def ask(self, kept: Sequence[_Kept]) -> Answer | HoldoutError | Halted:
        """Ask the guard about these scores.

        Returns
        -------
        Answer, HoldoutError or Halted
            The answer, or an exception. The caller raises it, so that the traceback has no frames that hold scores.
        """
        try:
            return self._answer(kept)
        except (HoldoutError, Halted) as error:
            return _bare(error)
        except Exception as error:
            kind = type(error).__name__
        return InputError(
            f"the guard could not be asked: {kind}; the error's text is withheld, because it may hold scores"
        )

    def _answer(self, kept: Sequence[_Kept]) -> Answer:
        self.check_ids(frozenset(str(one.id) for one in kept))
        if self.failed is None:
            _check_all_scored(kept)
        table = _table(kept, self.name, self.failed)
        fits, must = _fitting(table.scores, self.guard.metric)
        if self.failed is not None:
            table = ScoreTable(table.ids, np.where(fits, table.scores, self.failed), metric=self.name)
        elif not fits.all():
            raise InputError(
                f"every score must {must}; some do not, and naming them would reveal holdout data; try the scorer on "
                f"other samples{_NOTHING}"
            )
        if self.keep is not None:
            _keep(table, self.keep)
        return ask(self.guard, table, self.incumbent, prior=self.prior, name=self.name)


def _bare(error: _E) -> _E:
    """Return an exception without its traceback and context, which may hold targets and scores."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _check_all_scored(kept: Sequence[_Kept]) -> None:
    """Refuse scores if the scorer failed on a sample; the message names no sample, because that would tell about it."""
    failed = sorted({one.failed for one in kept if one.failed})
    if failed:
        raise InputError(
            f"the scorer failed with {', '.join(failed)}; the error's text and the sample are withheld, because they "
            f"could reveal a target; try the scorer on other samples{_NOTHING}"
        )
    if any(one.score is None for one in kept):
        raise InputError(
            "a scorer must give every sample a number, C, I, P or N; it gave something else; pass to_number=, a "
            f"function that turns a score's value into a number{_NOTHING}"
        )


def _table(kept: Sequence[_Kept], name: str, failed: float | None) -> ScoreTable:
    """Return the table of scores, sorted by the samples' ids, with a column for each epoch."""
    scores: dict[str, dict[int, float]] = {}
    for one in kept:
        score = failed if one.failed or one.score is None else one.score
        scores.setdefault(str(one.id), {})[one.epoch] = float(score or 0)
    epochs = sorted({one.epoch for one in kept})
    incomplete = sorted(sample for sample, found in scores.items() if len(found) < len(epochs))
    if incomplete:
        raise InputError(
            f"every sample must be scored in each of {len(epochs)} epochs; {_some(incomplete)} were not, because "
            f"of errors or limits{_NOTHING}"
        )
    order = sorted(scores)
    values = np.array([[scores[sample][epoch] for epoch in epochs] for sample in order])
    return ScoreTable(order, values, metric=name)


def _fitting(scores: NDArray[np.float64], metric: GuardMetric) -> tuple[NDArray[np.bool_], str]:
    """Return which scores the metric accepts, and the rule in words.

    This is checked before the guard is asked, because the guard's own message would name rows.
    """
    if metric.name.startswith("pass"):
        return np.isin(scores, (0, 1)), "be 0 or 1"
    return (scores >= metric.lower) & (scores <= metric.upper), f"lie in [{metric.lower:g}, {metric.upper:g}]"


def _keep(table: ScoreTable, place: Path) -> None:
    """Write a table of scores to a file that only its owner can read."""
    place.unlink(missing_ok=True)  # an older file would keep its permissions
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        table.frame().to_csv(file, index=False)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more
