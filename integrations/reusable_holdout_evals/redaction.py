"""Redaction of an evaluation: the developer gets inputs and outputs and the guard's answer, but no target and no score.

The code lists the parts that are kept, not the parts that are removed. So a part that a later version of a tool adds is
removed, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError, of_extra
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.guards import ask, check_judged, numbers_of, open_guard_of
from reusable_holdout_evals.readers import read_inspect, read_lm_eval, read_scores
from reusable_holdout_evals.readers.files import file_text

__all__ = ["WITHHELD", "redact_inspect", "redact_lm_eval", "samples_of", "scores_of"]

WITHHELD = "withheld"
"""The text that replaces scores and targets in a log."""

_OF_THE_RUN = {
    *(
        "created",
        "dataset",
        "eval_id",
        "model",
        "model_args",
        "model_generate_config",
        "packages",
        "revision",
    ),
    *("run_id", "task", "task_file", "task_id", "task_version"),
}
_STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl$")
_OF_THE_HARNESS = ("date", "lm_eval_version", "model_name", "model_source")
_OF_ITS_CONFIG = ("batch_size", "gen_kwargs", "limit", "model", "model_args")
_OF_A_TASK = ("n-samples", "n-shot", "versions")


def scores_of(incumbent: Any, scorer: str) -> Any:
    """Return an incumbent's scores, read from a file of scores or a log of Inspect; a table is returned as it is."""
    if not isinstance(incumbent, str | Path):
        return incumbent
    if Path(incumbent).suffix in {".eval", ".json"}:
        return read_inspect(incumbent, scorer=scorer)
    return read_scores(incumbent)


def _guard_of(guard: ReusableHoldout | None, ledger: str | Path | None, table: ScoreTable) -> ReusableHoldout:
    if (guard is None) == (ledger is None):
        raise InputError("name guard= or ledger=, one of them; nothing was asked")
    found = open_guard_of(str(ledger), table) if guard is None else guard
    check_judged(found)
    return found


def _check_new(out: str | Path, what: str) -> None:
    if Path(out).exists():
        raise InputError(f"the developer's {what} must be a new one; {out} exists already; nothing was asked")


# ---- Inspect


@checked_call
def redact_inspect(
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
    """Ask a guard about a full log of Inspect, and write a log that the developer may see.

    The developer's log has the id, epoch, input, choices and output of each sample, and what `show` and `messages`
    name. Its results are the guard's answer. It has no timings, no token counts and no events, because events contain
    every target and score.

    Parameters
    ----------
    log : str or Path
        Full log of a finished evaluation, which only the holdout's keeper has.
    out : str or Path
        New file for the developer, ``.eval`` or ``.json``.
    prior : float, optional
        The developer's own estimate of the score; with an incumbent, of the difference.
    guard : ReusableHoldout, optional
        A guard with the metric "score" and the samples' ids. Give either `guard` or `ledger`.
    ledger : str or Path, optional
        Ledger of a guard that :func:`reusable_holdout_evals.inspect.new_guard` made.
    scorer, key, groups, missing
        Arguments of :func:`reusable_holdout_evals.read_inspect`. Scores of other scorers are withheld, too.
    incumbent : table or path, optional
        Scores of another system; see :func:`reusable_holdout_evals.inspect.guarded_task`.
    show : collection of str
        Keys of the samples' metadata that the developer may see.
    messages : bool
        True to show the conversations. Leave it False if scorers write into them.

    Returns
    -------
    Answer
        The guard's answer.

    Raises
    ------
    Halted
        If a budget has run out and the question is new; nothing was written.
    InputError
        If the log or the guard does not fit; nothing was asked, and nothing was written.

    Notes
    -----
    Inspect logs a sample in the state in which its scorers left it. If a scorer has written into the text of the output
    or the input, the developer sees that text.
    """
    with of_extra("inspect", "the redaction of a log"):
        from inspect_ai.log import read_eval_log, write_eval_log  # noqa: PLC0415 - slow to import

    _check_new(out, "log")
    table = read_inspect(log, scorer=scorer, key=key, groups=groups, missing=missing)
    full = read_eval_log(str(log), resolve_attachments=True)
    other = scores_of(incumbent, scorer or table.metric)
    answer = ask(_guard_of(guard, ledger, table), table, other, prior=prior, name=table.metric)
    write_eval_log(_public_log(full, f"guarded_{table.metric}", answer, show, messages=messages), str(out))
    return answer


def _public_log(full: Any, name: str, answer: Answer, show: Collection[str], *, messages: bool) -> Any:
    from inspect_ai import log  # noqa: PLC0415 - slow to import

    metrics = {key: log.EvalMetric(name=key, value=value) for key, value in numbers_of(answer).items()}
    counted = full.results
    results = log.EvalResults(
        total_samples=counted.total_samples if counted else len(full.samples or ()),
        completed_samples=counted.completed_samples if counted else len(full.samples or ()),
        scores=[log.EvalScore(name=name, scorer=name, metrics=metrics)],
    )
    hidden = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(full.eval).model_fields.items()
        if key not in _OF_THE_RUN and not field.is_required()
    }
    return log.EvalLog(
        status=full.status,
        eval=full.eval.model_copy(update=hidden),
        results=results,
        stats=log.EvalStats(started_at=full.stats.started_at, completed_at=full.stats.completed_at),
        samples=[_public_sample(one, name, show, messages=messages) for one in full.samples or ()],
    )


def _public_sample(full: Any, name: str, show: Collection[str], *, messages: bool) -> Any:
    """Return a sample for the developer: without scores and target, and with an output without metadata."""
    from inspect_ai.log import EvalSample  # noqa: PLC0415 - slow to import
    from inspect_ai.scorer import Score  # noqa: PLC0415

    choices = [
        one.model_copy(update={"message": one.message.model_copy(update={"metadata": None})})
        for one in full.output.choices
    ]
    nothing = dict.fromkeys(("usage", "time", "metadata", "error"))
    return EvalSample(
        id=full.id,
        epoch=full.epoch,
        input=full.input,
        choices=full.choices,
        target=WITHHELD,
        output=full.output.model_copy(update={"choices": choices, **nothing}),
        messages=full.messages if messages else [],
        metadata={key: value for key, value in full.metadata.items() if key in show},
        scores={name: Score(value=WITHHELD)},
    )


# ---- lm-evaluation-harness


@checked_call
def redact_lm_eval(
    folder: str | Path,
    out: str | Path,
    *,
    task: str,
    prior: float | None = None,
    guard: ReusableHoldout | None = None,
    ledger: str | Path | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 - the column's name in the harness's files
    id: str = "doc_id",  # noqa: A002 - as in the guard's tables
    incumbent: Any = None,
    show: Collection[str] = (),
) -> Answer:
    """Ask a guard about one task's samples, and write a folder that the developer may see.

    The folder has ``results_*.json``, with the guard's answer in place of the task's metrics, and ``samples_*.jsonl``
    with ids and generated text. These parts are left out:

    - targets and their hashes, and prompts, because a prompt may end with the target
    - ids that are hashes, because a reader who knows a question could try targets until the hash fits
    - log-likelihoods, because in a task with one continuation they are the score
    - documents, except for the keys in `show`
    - other tasks

    Parameters
    ----------
    folder : str or Path
        Folder that ``lm_eval --log_samples --output_path`` wrote, which only the holdout's keeper has.
    out : str or Path
        New folder for the developer.
    task : str
        Name of the task.
    prior : float, optional
        The developer's own estimate of the score; with an incumbent, of the difference.
    guard : ReusableHoldout, optional
        A guard with the metric "score" and the samples' ids, sorted as text. Give either `guard` or `ledger`.
    ledger : str or Path, optional
        Ledger of such a guard.
    metric, filter, id
        Arguments of :func:`reusable_holdout_evals.read_lm_eval`.
    incumbent : table or path, optional
        Folder or file of another system on the same task. Then the guard is asked how much better this system is.
    show : collection of str
        Keys of the documents that the developer may see, such as "question".

    Returns
    -------
    Answer
        The guard's answer.

    Raises
    ------
    Halted
        If a budget has run out and the question is new; nothing was written.
    InputError
        If the files or the guard do not fit; nothing was asked, and nothing was written.
    """
    place = Path(out)
    _check_new(place, "folder")
    samples = samples_of(Path(folder), task)
    chosen: dict[str, Any] = {"metric": metric, "filter": filter, "id": id}
    table, other = read_lm_eval(samples, **chosen), incumbent
    if isinstance(incumbent, str | Path):
        other = read_lm_eval(samples_of(Path(incumbent), task), **chosen)
    answer = ask(_guard_of(guard, ledger, table), table, other, prior=prior, name=f"{task} {table.metric}")
    place.mkdir(parents=True)
    for path in samples:
        lines = [json.dumps(one, ensure_ascii=False) for one in _public_lines(path, filter, id, set(show))]
        (place / path.name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    stamp = _STAMP.search(samples[-1].name)
    results = _results(samples, task, table.metric, filter, answer)
    file = place / (f"results_{stamp[1]}.json" if stamp else "results.json")
    file.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return answer


def samples_of(folder: Path, task: str) -> list[Path]:
    """Return the files of one task's samples in a folder of the harness; raise InputError if there are none."""
    if folder.is_file():
        return [folder]
    found = sorted(folder.rglob("samples_*.jsonl"))
    of_task = [path for path in found if _STAMP.sub("", path.name) == f"samples_{task}"]
    if not of_task:
        raise InputError(
            f"the folder {folder} must hold samples of {task!r}; it holds {len(found):,} files of other "
            "tasks; evaluate with --log_samples; nothing was asked"
        )
    return of_task


def _public_lines(path: Path, chosen: str | None, column: str, show: set[str]) -> Iterator[dict[str, Any]]:
    """Yield, for each sample, the parts that the developer may see."""
    for text in file_text(path, what="samples of lm-evaluation-harness").split("\n"):
        line = json.loads(text) if text.strip() else None
        if line is None or (chosen is not None and line.get("filter", "none") != chosen):
            continue
        named = ("doc_id", "filter") if column.endswith("_hash") else ("doc_id", column, "filter")
        kept = {key: line[key] for key in named if key in line}
        document = line.get("doc")
        if show and isinstance(document, dict):
            kept["doc"] = {key: value for key, value in document.items() if key in show}
        if _is_generated(line.get("arguments")):
            kept |= {key: line[key] for key in ("resps", "filtered_resps") if key in line}
        yield kept


def _is_generated(arguments: Any) -> bool:
    """Return True if a sample's responses are generated text, not log-likelihoods.

    Only a request for generated text has settings as its second argument.
    """
    calls = list(arguments.values()) if isinstance(arguments, dict) else []
    return bool(calls) and all(isinstance(one, dict) and isinstance(one.get("arg_1"), dict) for one in calls)


def _results(
    samples: list[Path], task: str, metric: str, chosen: str | None, answer: Answer
) -> dict[str, Any]:
    """Return the content of the harness's file of results, with the guard's answer in place of the metrics."""
    full: Mapping[str, Any] = {}
    for path in sorted(samples[-1].parent.glob("results_*.json")):
        full = json.loads(file_text(path, what="results of lm-evaluation-harness"))
    end = chosen or "none"
    what = f"{metric}_difference" if answer.paired else metric
    names = {"answer": what, "difference": what}
    names |= {name: f"{what}_{name}" for name in ("accepted", "low", "high")}
    guarded = {f"{names.get(name, name)},{end}": value for name, value in numbers_of(answer).items()}
    kept: dict[str, Any] = {key: full[key] for key in _OF_THE_HARNESS if key in full}
    config = full.get("config")
    if isinstance(config, dict):
        kept["config"] = {key: config[key] for key in _OF_ITS_CONFIG if key in config}
    for key in _OF_A_TASK:
        if isinstance(full.get(key), dict) and task in full[key]:
            kept[key] = {task: full[key][task]}
    return {"results": {task: {"alias": task, **guarded}}, "guarded": True, **kept}
