"""Reader of the files ``samples_<task>_<time>.jsonl`` that lm-evaluation-harness writes with ``--log_samples``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.files import file_text, inside, json_lines, named, parsed, sources_of
from reusable_holdout_evals.readers.gathering import Gathering, Repeats, chosen_one, group_name

__all__ = ["read_lm_eval"]

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_LARGE = {"arguments", "doc", "resps", "filtered_resps"}  # not kept after a line is read
_NO_METRICS = _LARGE | {*("doc_hash", "doc_id", "filter", "metrics", "prompt_hash", "target", "target_hash")}


class _File(NamedTuple):
    """One file of samples.

    Attributes
    ----------
    path : Path
    task : str
        Name of the task, from the file's name.
    lines : list of dict
        The samples, without parts that are large and not needed.
    """

    path: Path
    task: str
    lines: list[dict[str, Any]]


@checked_call
def read_lm_eval(
    samples: str | Path | Sequence[str | Path],
    *,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 - the column's name in the harness's files
    id: str = "doc_id",  # noqa: A002 - as in the guard's tables
    groups: str | None = None,
    repeats: Repeats = "equal",
    missing: float | None = None,
) -> ScoreTable:
    """Read the scores in samples of lm-evaluation-harness, as ``--log_samples`` writes them.

    Parameters
    ----------
    samples : path or sequence of paths
        Files ``samples_*.jsonl`` of one model, or a folder that holds them. Several files of one task are repeats;
        files of several tasks are joined, with ids such as ``mmlu_law/17``.
    metric : str, optional
        Name of the metric, such as "acc"; needed if there are several.
    filter : str, optional
        Name of the harness's filter, such as "strict-match"; needed if there are several.
    id : str
        Key of a sample's id. Dots lead into nested objects, as in "doc.question_id". "doc_id" is the number
        of the row in the dataset. "doc_hash" stays the same if the dataset's order changes.
    groups : str, optional
        Key that names a row's group, such as "doc.passage"; "task" takes the name of the file's task.
    repeats : {"equal", "averaged"}
        "equal" refuses files whose rows have different numbers of repeats. "averaged" gives each row the mean over its
        repeats.
    missing : float, optional
        Score of a row for which the metric has no value, such as the lowest score; by default such files are refused.

    Returns
    -------
    ScoreTable
        The scores by id.

    Raises
    ------
    InputError
        If they are not such files, or are of several models; if ids come twice; or if rows have no score, or one that
        is no number: the first few are named.
    """
    paths = _paths(samples)
    _check_one_model(paths)
    gathering = Gathering(named(paths), repeats, missing, advice="choose a metric that is a mean over rows")
    large = _LARGE - {name.split(".")[0] for name in (id, groups or "")}
    files = [_file(path, large) for path in paths]
    lines = [(place, one, line) for place, one in enumerate(files) for line in one.lines]
    filters = dict.fromkeys(str(line.get("filter", "none")) for *_, line in lines)
    chosen = chosen_one(filter, filters, what="filter", where=gathering.where)
    kept = [one for one in lines if str(one[2].get("filter", "none")) == chosen]
    metrics = dict.fromkeys(name for *_, line in kept for name in _metrics(line))
    score = chosen_one(metric, metrics, what="metric", where=gathering.where)
    tasks = list(dict.fromkeys(one.task for one in files))
    for place, file, line in kept:
        row = _row(line, id, file.path)
        group = None if groups is None else _group(line, groups, file, row)
        nothing = "it has no value" if score in line else "the metric is not there"
        name = f"{file.task}/{row}" if len(tasks) > 1 else row
        gathering.add(name, place, line.get(score), group=group, nothing=nothing)
    others = {"filters": [*filters.keys() - {chosen}], "metrics": [*metrics.keys() - {score}]}
    left_out = [f"other {what}: {shown(sorted(names))}" for what, names in others.items() if names]
    return gathering.table(name=", ".join(tasks[:3]), metric=score, left_out=left_out)


# ---- files


def _paths(given: object) -> list[Path]:
    paths: list[Path] = []
    for path in sources_of(given):
        if not path.is_dir():
            paths.append(path)
            continue
        found = sorted(path.glob("samples_*.jsonl")) or sorted(path.glob("*/samples_*.jsonl"))
        if not found:
            raise InputError(
                f"the folder {path} must hold files samples_*.jsonl, as lm_eval --log_samples writes; it holds none"
            )
        folders = dict.fromkeys(one.parent.name for one in found)
        if len(folders) > 1:
            raise InputError(
                f"several files must be repeats of one model; the folder {path} holds the files of {shown(folders)}; "
                "name the folder of one model"
            )
        paths += found
    return paths


def _check_one_model(paths: Sequence[Path]) -> None:
    models = dict.fromkeys(filter(None, map(_model, paths)))
    if len(models) > 1:
        raise InputError(
            f"several files must be repeats of one model; these are of {shown(models)}; read them one by one"
        )


def _model(path: Path) -> str:
    """Return the model's name from the file of results beside the samples; an empty string if there is none."""
    matched = _NAME.fullmatch(path.name)
    results = path.with_name(f"results_{matched['time']}.json") if matched else path
    if results == path or not results.is_file():
        return ""
    text = file_text(results, what="results of lm-evaluation-harness")
    name = inside(parsed(text, str(results)), "model_name")
    return name if isinstance(name, str) else ""


def _file(path: Path, large: set[str]) -> _File:
    found = json_lines(file_text(path, what="samples of lm-evaluation-harness"), str(path))
    lines = [{key: value for key, value in one.items() if key not in large} for one in found]
    matched = _NAME.fullmatch(path.name)
    return _File(path, matched["task"] if matched else path.stem, lines)


# ---- one line


def _metrics(line: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of a sample's metrics.

    Older versions of the harness do not list them; then every key that is not known as something else is a metric.
    """
    listed = line.get("metrics")
    names = listed if isinstance(listed, list) else [name for name in line if name not in _NO_METRICS]
    return (name for name in names if isinstance(name, str))


def _row(line: Mapping[str, Any], column: str, path: Path) -> Any:
    found = _inside(line, column)
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise InputError(
            f"each line of {path} must have an id, text or a whole number, under {shown([column])}; one has "
            f"{'none' if found is None else type(found).__name__}; name another key with id="
        )
    return found


def _inside(line: Mapping[str, Any], column: str) -> Any:
    return line[column] if column in line else inside(line, *column.split("."))


def _group(line: Mapping[str, Any], column: str, file: _File, row: Any) -> str:
    value = file.task if column == "task" and column not in line else _inside(line, column)
    return group_name(value, where=f"{shown([column])} in {file.path}", row=row)
