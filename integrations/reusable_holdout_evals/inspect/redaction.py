"""A developer's log of a full one: what was asked and answered, the guard's answer, and no score."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai.log import (
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalStats,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.scorer import Score

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.inspect.question import check_judges, numbers_of
from reusable_holdout_evals.inspect.scorer import WITHHELD
from reusable_holdout_evals.inspect.tables import scores_of
from reusable_holdout_evals.readers import read_inspect

if TYPE_CHECKING:
    from inspect_ai.model import ModelOutput

__all__ = ["redact"]

_OF_A_SAMPLE = {"id", "epoch", "input", "choices"}
_OF_THE_RUN = {
    "created",
    "dataset",
    "eval_id",
    "model",
    "model_args",
    "model_generate_config",
    "packages",
    "revision",
    "run_id",
    "task",
    "task_file",
    "task_id",
    "task_version",
}


@checked_call
def redact(
    log: str | Path,
    out: str | Path,
    *,
    prior: float | None = None,
    guard: ReusableHoldout | None = None,
    ledger: str | Path | None = None,
    scorer: str | None = None,
    key: str | None = None,
    groups: str | None = None,
    missing: float | None = None,
    incumbent: Any = None,
    show: Collection[str] = (),
    messages: bool = False,
) -> Answer:
    """Ask a guard about a full log, and write a log for the developer.

    What the developer's log has of a sample is its id, epoch, input, choices and output, and what is named here; its
    results are the guard's answer. Events, which have every target and score, timings and token counts stay behind.

    Parameters
    ----------
    log : str or Path
        Of a finished evaluation, on the trusted side.
    out : str or Path
        ``.eval`` or ``.json``; it must not be there.
    prior : float, optional
        The developer's own estimate; with an incumbent, of the difference.
    guard : ReusableHoldout, optional
        With metric "score", and the samples' ids; or
    ledger : str or Path
        where that of :func:`new_guard` is.
    scorer, key, groups, missing
        As for :func:`reusable_holdout_evals.readers.read_inspect`. Other scorers' scores are withheld, too.
    incumbent : table or path, optional
        As for :func:`guarded_task`.
    show : collection of str
        Keys of the samples' metadata that the developer may see.
    messages : bool
        Whether the developer sees the conversations: not if scorers write into them.

    Returns
    -------
    Answer

    Raises
    ------
    Halted
        If a budget has run out and the question is new; nothing was written.
    InputError
        If the log or the guard does not fit; nothing was asked, and nothing was written.

    Notes
    -----
    A list of what is kept, and not of what is taken away: what a later version of Inspect adds to a log stays behind.
    Inspect logs a sample as its scorers left it: the text of one that writes into the output or the input is shown.
    """
    if _there(out):
        raise InputError(f"the developer's log must be a new file; there is one at {out}; nothing was asked")
    table = read_inspect(log, scorer=scorer, key=key, groups=groups, missing=missing)
    full = read_eval_log(str(log), resolve_attachments=True)
    answer = _asked(
        guard or _opened(ledger, table), table, prior, scores_of(incumbent, scorer or table.metric)
    )
    results = EvalResults(
        total_samples=full.results.total_samples if full.results else len(full.samples or ()),
        completed_samples=full.results.completed_samples if full.results else len(full.samples or ()),
        scores=[_score(table.metric, answer)],
    )
    spec = full.eval.model_copy(
        update={
            name: field.get_default(call_default_factory=True)
            for name, field in type(full.eval).model_fields.items()
            if name not in _OF_THE_RUN and not field.is_required()
        }
    )
    public = EvalLog(
        status=full.status,
        eval=spec,
        results=results,
        stats=EvalStats(started_at=full.stats.started_at, completed_at=full.stats.completed_at),
        samples=[_sample(one, table.metric, show, messages) for one in full.samples or ()],
    )
    write_eval_log(public, str(out))
    return answer


def _there(out: str | Path) -> bool:
    from pathlib import Path

    return Path(out).exists()


def _opened(ledger: str | Path | None, table: ScoreTable) -> ReusableHoldout:
    if ledger is None:
        raise InputError("name guard= or ledger=, one of them; nothing was asked")
    order = sorted(range(table.rows), key=lambda row: table.ids[row])
    groups = None if table.groups is None else [table.groups[row] for row in order]
    return ReusableHoldout.open(str(ledger), None, [table.ids[row] for row in order], groups=groups)


def _asked(guard: ReusableHoldout, table: ScoreTable, prior: float | None, incumbent: Any) -> Answer:
    check_judges(guard)
    if incumbent is None:
        return guard.evaluate_predictions(table, prior=prior, name=table.metric)
    return guard.compare_predictions(table, incumbent, prior=prior, name=table.metric)


def _score(metric: str, answer: Answer) -> EvalScore:
    metrics = {name: EvalMetric(name=name, value=value) for name, value in numbers_of(answer).items()}
    return EvalScore(name=f"guarded_{metric}", scorer=f"guarded_{metric}", metrics=metrics)


def _sample(full: EvalSample, metric: str, show: Collection[str], messages: bool) -> EvalSample:
    kept = {name: getattr(full, name) for name in _OF_A_SAMPLE}
    return EvalSample(
        **kept,
        target=WITHHELD,
        output=_output(full.output),
        messages=full.messages if messages else [],
        metadata={key: value for key, value in full.metadata.items() if key in show},
        scores={f"guarded_{metric}": Score(value=WITHHELD)},
    )


def _output(full: ModelOutput) -> ModelOutput:
    """What was answered, without what anybody attached to it."""
    choices = [
        one.model_copy(update={"message": one.message.model_copy(update={"metadata": None})})
        for one in full.choices
    ]
    nothing = dict.fromkeys(("usage", "time", "metadata", "error"))
    answered: ModelOutput = full.model_copy(update={"choices": choices, **nothing})
    return answered
