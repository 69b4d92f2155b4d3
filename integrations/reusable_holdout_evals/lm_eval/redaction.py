"""A developer's folder of a full one: what was generated, the guard's answer, and no score."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers import read_lm_eval
from reusable_holdout_evals.readers.json_files import file_text

__all__ = ["redact", "samples_of"]

_STAMP = re.compile(r"_(\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl$")
_OF_THE_RUN = ("date", "lm_eval_version", "model_name", "model_source")
_OF_ITS_CONFIG = ("batch_size", "gen_kwargs", "limit", "model", "model_args")
_OF_A_TASK = ("n-samples", "n-shot", "versions")


@checked_call
def redact(
    folder: str | Path,
    out: str | Path,
    *,
    guard: ReusableHoldout,
    task: str,
    prior: float | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 - the column's name in the harness's files
    id: str = "doc_id",  # noqa: A002 - as in the guard's tables
    incumbent: Any = None,
    show: Collection[str] = (),
) -> Answer:
    """Ask a guard about one task's samples, and write a folder for the developer.

    It has ``results_*.json``, with the guard's answer in the place of the task's metrics, and ``samples_*.jsonl`` with
    ids and generated text, but no id that is a hash: who knows a question finds the target whose hash it is by trying.
    Log-likelihoods stay behind: of a task with one continuation they are its score. So do
    documents, but for what is named, targets, their hashes, prompts, which may end with the target, and other tasks.

    Parameters
    ----------
    folder : str or Path
        What ``lm_eval --log_samples --output_path`` wrote, on the trusted side.
    out : str or Path
        Folder to be made.
    guard : ReusableHoldout
        With metric "score", and the samples' ids as text.
    task : str
    prior : float, optional
        The developer's own estimate; with an incumbent, of the difference.
    metric, filter, id
        As for :func:`reusable_holdout_evals.readers.read_lm_eval`.
    incumbent : table or path, optional
        Another folder or file of the same task: then the question is how much better this one is.
    show : collection of str
        Keys of the documents that the developer may see, such as "question".

    Returns
    -------
    Answer

    Raises
    ------
    Halted
        If a budget has run out and the question is new; nothing was written.
    InputError
        If the files or the guard do not fit; nothing was asked, and nothing was written.

    Notes
    -----
    A list of what is kept, and not of what is taken away: what a later version adds to its files stays behind.
    """
    place = Path(out)
    if place.exists():
        raise InputError(f"the developer's folder must be a new one; {place} is there; nothing was asked")
    samples = samples_of(Path(folder), task)
    table = read_lm_eval(samples, metric=metric, filter=filter, id=id)
    if incumbent is None:
        answer = guard.evaluate_predictions(table, prior=prior, name=f"{task} {table.metric}")
    else:
        other = incumbent
        if isinstance(incumbent, str | Path):
            other = read_lm_eval(samples_of(Path(incumbent), task), metric=metric, filter=filter, id=id)
        answer = guard.compare_predictions(table, other, prior=prior, name=f"{task} {table.metric}")
    place.mkdir(parents=True)
    for path in samples:
        lines = [json.dumps(one, ensure_ascii=False) for one in _public(path, filter, id, set(show))]
        (place / path.name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    named = _STAMP.search(samples[-1].name)
    results = place / (f"results_{named[1]}.json" if named else "results.json")
    results.write_text(
        json.dumps(_results(samples, task, table.metric, filter, answer), indent=2), encoding="utf-8"
    )
    return answer


def samples_of(folder: Path, task: str) -> list[Path]:
    """Files of one task's samples, in a folder that ``lm_eval --output_path`` named.

    Raises
    ------
    InputError
        If there are none.
    """
    if folder.is_file():
        return [folder]
    found = sorted(folder.rglob("samples_*.jsonl"))
    of_task = [path for path in found if _STAMP.sub("", path.name) == f"samples_{task}"]
    if not of_task:
        raise InputError(
            f"the folder {folder} must hold samples of {task!r}; it holds {len(found):,} files of others; evaluate "
            "with --log_samples; nothing was asked"
        )
    return of_task


def _public(path: Path, chosen: str | None, column: str, show: set[str]) -> Iterator[dict[str, Any]]:
    """What the developer sees of each line."""
    for text in file_text(path, what="samples of lm-evaluation-harness").split("\n"):
        if not text.strip():
            continue
        line = json.loads(text)
        if chosen is not None and line.get("filter", "none") != chosen:
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
    """Whether responses are text: only a generation has settings for a second argument, others a continuation."""
    calls = list(arguments.values()) if isinstance(arguments, dict) else []
    return bool(calls) and all(isinstance(one, dict) and isinstance(one.get("arg_1"), dict) for one in calls)


def _results(
    samples: list[Path], task: str, metric: str, chosen: str | None, answer: Answer
) -> dict[str, Any]:
    """What the harness's own file of results has, with the guard's answer for its metrics."""
    full: Mapping[str, Any] = {}
    for path in sorted(samples[-1].parent.glob("results_*.json")):
        full = json.loads(file_text(path, what="results of lm-evaluation-harness"))
    end = chosen or "none"
    gate = answer.kind.startswith("gate")  # its value repeats the prior
    what = f"{metric}_difference" if answer.paired else metric
    numbers = {
        f"{what}_accepted" if gate else what: answer.charged if gate else answer.value,
        f"{what}_low": answer.low,
        f"{what}_high": answer.high,
        "prior": answer.prior,
        "charged": answer.charged,
        "charges_left": answer.charges_left,
        "replayed": answer.replayed,
    }
    kept: dict[str, Any] = {key: full[key] for key in _OF_THE_RUN if key in full}
    config = full.get("config")
    if isinstance(config, dict):
        kept["config"] = {key: config[key] for key in _OF_ITS_CONFIG if key in config}
    for key in _OF_A_TASK:
        if isinstance(full.get(key), dict) and task in full[key]:
            kept[key] = {task: full[key][task]}
    guarded = {f"{name},{end}": value for name, value in numbers.items()}
    return {"results": {task: {"alias": task, **guarded}}, "guarded": True, **kept}
