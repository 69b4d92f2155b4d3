"""Scores in logs of Inspect, which is not imported: ``.eval`` archives and ``.json`` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.archives import Archive
from reusable_holdout_evals.readers.gathering import (
    Gathering,
    Missing,
    Repeats,
    Table,
    chosen_one,
    group_name,
    score_of,
)
from reusable_holdout_evals.readers.inspect_results import check_count, check_means, metrics_of
from reusable_holdout_evals.readers.json_files import Pieces, file_text, text_of
from reusable_holdout_evals.readers.sources import named, sources_of

__all__ = ["read_inspect"]

_HEADER, _SUMMARIES = "header.json", "summaries.json"
_CUT = 1_000  # characters: from about here on a summary of Inspect's keeps a text's beginning alone
_REMOVED = "Key removed from summary (> 1k)"


class _Given(NamedTuple):
    """What a scorer gave; explanations and edits are let go at once.

    Attributes
    ----------
    value, reason : object
    """

    value: Any
    reason: object


class _Sample(NamedTuple):
    """One epoch of one sample.

    Attributes
    ----------
    id, epoch : object
    scores : dict of str to _Given
        By scorer.
    metadata : Mapping
    failed : bool
    """

    id: object
    epoch: object
    scores: dict[str, _Given]
    metadata: Mapping[str, Any]
    failed: bool


class _Log(NamedTuple):
    """One log.

    Attributes
    ----------
    header : dict
        All but the samples.
    samples : list of _Sample
    """

    header: dict[str, Any]
    samples: list[_Sample]


@checked_call
def read_inspect(
    log: str | Path | Sequence[str | Path],
    *,
    scorer: str | None = None,
    key: str | None = None,
    groups: str | None = None,
    repeats: Repeats = "equal",
    missing: float | None = None,
) -> ScoreTable:
    """Scores in a log of Inspect, ``.eval`` or ``.json``; epochs are repeats.

    Of an ``.eval`` log its summaries alone are read, so that a log of any size takes a second or two; their number and
    their mean must be those that the header states. Inspect is not needed for that.

    Parameters
    ----------
    log : path or sequence of paths
        Of finished runs. Several logs of one task, model and solver are further repeats.
    scorer : str, optional
        Needed where there are several.
    key : str, optional
        Of a scorer that gives each sample a dict: which of its values.
    groups : str, optional
        Which of the samples' metadata says what they belong to; by default what the scorer's standard error is
        clustered by, if it is.
    repeats : {"equal", "averaged"}
        What to do where samples have unequally many epochs: refuse, or average those that are there.
    missing : float, optional
        What counts where a sample failed or was not scored, such as the lowest score; by default that is refused.

    Returns
    -------
    ScoreTable
        C, P, I and N (correct, partial, incorrect, no answer) are 1, 0.5, 0 and 0, as in Inspect.

    Raises
    ------
    InputError
        If it is no such log, was not finished, or its samples are not those that its header counts and averages; if
        logs are of several models; or if samples have no score, or no number: the first few are named.
    MissingExtraError
        If the log is packed with Zstandard, as newer versions do, and neither zstandard nor pyarrow is there.
    """
    wish = Table(repeats, missing)
    wish.check()
    paths = sources_of(log)
    gathering, notes, systems = Gathering(named(paths)), dict[str, None](), dict[str, dict[str, None]]()
    for place, path in enumerate(paths):
        found = _log(path)
        for what, name in _system(found.header).items():
            systems.setdefault(what, {})[name] = None
        _check_one(systems)
        scorer = _scorer(found, scorer, path)
        cluster = groups or _cluster(found.header, scorer, path)
        _add(gathering, found, scorer, key, cluster, place, path)
        notes |= dict.fromkeys(_notes(found, scorer))
    score = str(scorer) if key is None else f"{scorer}[{key}]"
    return gathering.table(wish, name=next(iter(systems["task"])), metric=score, left_out=notes)


# ---- what is in a log


def _log(path: Path) -> _Log:
    found = _from_json(path) if path.suffix == ".json" else _from_archive(path)
    if not isinstance(found.header.get("eval"), dict):
        raise InputError(f"{path} must be a log of Inspect; it does not say what was evaluated")
    status = found.header.get("status")
    if status != "success" or found.header.get("invalidated"):
        came = "was invalidated" if status == "success" else f"has the status {shown([status])}"
        raise InputError(
            f"a log must be of a finished run, for rows that are left out of a mean change it; {path} {came}; go on "
            "with inspect eval-retry, or run it anew"
        )
    return found


def _from_archive(path: Path) -> _Log:
    with Archive(path) as archive:
        if _HEADER not in archive or _SUMMARIES not in archive:
            raise InputError(
                f"{path} must be the log of a finished run, with {_HEADER} and {_SUMMARIES}; go on with inspect "
                "eval-retry; a log of an older Inspect is written anew by inspect log convert"
            )
        header = Pieces(text_of(archive.read(_HEADER), where=f"{_HEADER} in {path}"), str(path)).value()
        text = text_of(archive.read(_SUMMARIES), where=f"{_SUMMARIES} in {path}")
    if not isinstance(header, dict):
        raise InputError(f"{_HEADER} in {path} must be a JSON object; it is none")
    pieces = Pieces(text, str(path))
    samples = list(_samples(pieces.elements(), path))
    pieces.end()
    return _Log(header, samples)


def _from_json(path: Path) -> _Log:
    pieces = Pieces(file_text(path, what="a log of Inspect"), str(path))
    header: dict[str, Any] = {}
    samples: list[_Sample] = []
    for key in pieces.members():
        if key == "samples":
            samples += _samples(pieces.elements(), path)
        else:
            header[key] = pieces.value()
    pieces.end()
    return _Log(header, samples)


def _samples(found: Iterator[Any], path: Path) -> Iterator[_Sample]:
    for one in found:
        if not isinstance(one, dict):
            raise InputError(f"each sample in {path} must be a JSON object; one is none")
        scores = one.get("scores")
        if scores is None and "score" in one:  # of one scorer alone, as the first versions wrote it
            scores = {"score": one["score"]}
        metadata = one.get("metadata")
        yield _Sample(
            one.get("id"),
            one.get("epoch", 1),
            {name: _given(score) for name, score in scores.items() if score is not None}
            if isinstance(scores, dict)
            else {},
            metadata if isinstance(metadata, dict) else {},
            one.get("error") is not None,
        )


def _given(score: Any) -> _Given:
    return _Given(score.get("value"), score.get("reason")) if isinstance(score, dict) else _Given(score, None)


def _system(header: Mapping[str, Any]) -> dict[str, str]:
    """Return task, model and solver of a log: several logs are repeats if all three are the same."""
    names = {what: header["eval"].get(what) for what in ("task", "model", "solver")}
    return {what: name if isinstance(name, str) else "" for what, name in names.items()}


def _check_one(systems: Mapping[str, Mapping[str, None]]) -> None:
    for what, names in systems.items():
        if len(names) > 1:
            raise InputError(
                f"several logs are repeats of one {what}; these are of {shown(names)}; read them one by one"
            )


# ---- which of it


def _scorer(log: _Log, scorer: str | None, path: Path) -> str:
    names = (name for sample in log.samples for name in sample.scores)
    return chosen_one(scorer, names, what="scorer", option="scorer", where=str(path))


def _cluster(header: Mapping[str, Any], scorer: str, path: Path) -> str | None:
    """What the scorer's standard error is clustered by."""
    named = {
        cluster
        for _, metric in metrics_of(header, scorer)
        for options in (metric.get("params"), metric.get("options"))
        if isinstance(options, dict) and isinstance(cluster := options.get("cluster"), str)
    }
    if len(named) > 1:
        raise InputError(
            f"one key of metadata must be named with groups=; in {path} the metrics of {shown([scorer])} are clustered "
            f"by {shown(sorted(named))}"
        )
    return next(iter(named), None)


def _notes(log: _Log, scorer: str) -> list[str]:
    others = list(dict.fromkeys(name for sample in log.samples for name in sample.scores if name != scorer))
    notes = [f"other scorers: {shown(others)}"] if others else []
    config = log.header["eval"].get("config")
    reducers = config.get("epochs_reducer") if isinstance(config, dict) else None
    if isinstance(reducers, list) and reducers and reducers != ["mean"]:
        notes.append(
            f"the log's own results reduce epochs by {shown(reducers)}; here are the epochs themselves"
        )
    return notes


# ---- scores of samples


def _add(
    gathering: Gathering, log: _Log, scorer: str, key: str | None, cluster: str | None, place: int, path: Path
) -> None:
    check_count(log.header, len(log.samples), path)
    scores: dict[object, list[float]] = {}
    for sample in log.samples:
        group = None if cluster is None else _group(sample, cluster, path)
        score = _score(sample, scorer, key, path)
        gathering.add(sample.id, _repeat(sample, place, path), score, group)
        scores.setdefault(sample.id, []).extend([] if isinstance(score, Missing) else [score])
    check_means(log.header, scores, scorer=scorer, key=key, path=path)


def _repeat(sample: _Sample, place: int, path: Path) -> tuple[int, int]:
    if isinstance(sample.epoch, bool) or not isinstance(sample.epoch, int):
        raise InputError(f"epochs must be whole numbers; {path} has another for {shown([sample.id])}")
    return place, sample.epoch


def _score(sample: _Sample, scorer: str, key: str | None, path: Path) -> float | Missing:
    given = sample.scores.get(scorer)
    if given is None:  # one that failed and was scored all the same counts, as in Inspect
        return Missing("the sample failed" if sample.failed else "there is no score")
    value = given.value
    if isinstance(value, dict):
        if key is None or key not in value:
            raise InputError(
                f"the score of {shown([scorer])} for {shown([sample.id])} in {path} has the keys {shown(value)}; name "
                f"one of them with key=; got {key!r}"
            )
        value = value[key]
    elif key is not None and value == value:  # noqa: PLR0124 - NaN, that is unscored, has no keys
        raise InputError(
            f"the scores of {shown([scorer])} in {path} must have keys for key=; they are no dicts; leave it out"
        )
    number = score_of(
        value,
        must=lambda: (
            f"scores must be numbers, C, P, I or N, also that of {shown([scorer])} for {shown([sample.id])} in {path}"
        ),
        advice="take another scorer or key",
    )
    if number is None:
        why = f" ({shown([given.reason])})" if isinstance(given.reason, str) else ""
        return Missing(f"it was not scored{why}")
    return number


def _group(sample: _Sample, cluster: str, path: Path) -> str:
    value = sample.metadata.get(cluster)
    if value == _REMOVED or (isinstance(value, str) and len(value) > _CUT):
        raise InputError(
            f"the metadata {shown([cluster])} must be short to name groups, under 1,000 characters; in {path} that of "
            f"{shown([sample.id])} is longer"
        )
    return group_name(value, where=f"the metadata {shown([cluster])} in {path}", row=sample.id)
