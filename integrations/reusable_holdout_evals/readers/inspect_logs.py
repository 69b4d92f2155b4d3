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
from reusable_holdout_evals.readers.files import file_text, named, sources_of, text_of
from reusable_holdout_evals.readers.gathering import Gathering, Repeats, chosen_one, group_name
from reusable_holdout_evals.readers.inspect_results import check_count, check_means, metrics_of
from reusable_holdout_evals.readers.pieces import Pieces, inside

__all__ = ["read_inspect"]

_HEADER, _SUMMARIES = "header.json", "summaries.json"
_CUT = 1_000  # characters of a text that Inspect's summaries keep, about
_REMOVED = "Key removed from summary (> 1k)"


class _Sample(NamedTuple):
    """One epoch of one sample; of its scores the value and the reason alone.

    Attributes
    ----------
    id, epoch : object
    scores : dict of str to (object, object)
        Value, and reason why it was not scored, by scorer.
    metadata : Mapping
    failed : bool
    """

    id: object
    epoch: object
    scores: dict[str, tuple[Any, object]]
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
    """Read the scores in a log of Inspect, ``.eval`` or ``.json``; epochs are repeats.

    Of an ``.eval`` log only the summaries are read, so that a log of any size takes a second or two. Their number and
    their mean must be those that the header states. Inspect need not be installed.

    Parameters
    ----------
    log : path or sequence of paths
        Logs of finished runs. Several logs of one task, model and solver are further repeats.
    scorer : str, optional
        Needed where there are several.
    key : str, optional
        Key of a scorer that gives each sample a dict.
    groups : str, optional
        Key of the samples' metadata that names their group; by default the key that the scorer's standard error is
        clustered by, if there is one.
    repeats : {"equal", "averaged"}
        What to do where samples have unequally many epochs: refuse, or average those that are there.
    missing : float, optional
        Number that counts where a sample failed or was not scored, such as the lowest one; by default that is refused.

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
        If the log is packed with Zstandard, as newer versions do, and neither zstandard nor pyarrow is installed.
    """
    paths = sources_of(log)
    gathering = Gathering(named(paths), repeats, missing, advice="take another scorer or key")
    notes, systems = dict[str, None](), dict[str, dict[str, None]]()
    for place, path in enumerate(paths):
        found = _log(path)
        _check_one_system(found.header, systems)
        names = (name for sample in found.samples for name in sample.scores)
        scorer = chosen_one(scorer, names, what="scorer", where=str(path))
        cluster = groups or _cluster(found.header, scorer, path)
        _add(gathering, found, scorer, key, cluster, place, path)
        notes |= dict.fromkeys(_notes(found, scorer))
    score = str(scorer) if key is None else f"{scorer}[{key}]"
    return gathering.table(name=next(iter(systems["task"])), metric=score, left_out=notes)


# ---- the content of a log


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
        header, summaries = (
            Pieces(text_of(archive.read(name), where=f"{name} in {path}"), str(path))
            for name in (_HEADER, _SUMMARIES)
        )
    found = header.value()
    if not isinstance(found, dict):
        raise InputError(f"{_HEADER} in {path} must be a JSON object; it is something else")
    samples = list(_samples(summaries.elements(), path))
    summaries.end()
    return _Log(found, samples)


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
            raise InputError(f"each sample in {path} must be a JSON object; one is something else")
        scores = one.get("scores")
        if scores is None and "score" in one:  # the first versions wrote one scorer so
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


def _given(score: Any) -> tuple[Any, object]:
    return (score.get("value"), score.get("reason")) if isinstance(score, dict) else (score, None)


def _check_one_system(header: Mapping[str, Any], systems: dict[str, dict[str, None]]) -> None:
    """Refuse logs of several systems: logs are repeats if task, model and solver are the same."""
    for what in ("task", "model", "solver"):
        name = header["eval"].get(what)
        names = systems.setdefault(what, {})
        names[name if isinstance(name, str) else ""] = None
        if len(names) > 1:
            raise InputError(
                f"several logs are repeats of one {what}; these are of {shown(names)}; read them one by one"
            )


# ---- scorer and groups


def _cluster(header: Mapping[str, Any], scorer: str, path: Path) -> str | None:
    """Return the key of metadata by which the scorer's standard error is clustered."""
    keys = {
        cluster
        for _, metric in metrics_of(header, scorer)
        for options in ("params", "options")
        if isinstance(cluster := inside(metric, options, "cluster"), str)
    }
    if len(keys) > 1:
        raise InputError(
            f"one key of metadata must be named with groups=; in {path} the metrics of {shown([scorer])} are clustered "
            f"by {shown(sorted(keys))}"
        )
    return next(iter(keys), None)


def _notes(log: _Log, scorer: str) -> list[str]:
    others = dict.fromkeys(name for sample in log.samples for name in sample.scores if name != scorer)
    notes = [f"other scorers: {shown(others)}"] if others else []
    reducers = inside(log.header, "eval", "config", "epochs_reducer")
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
        if isinstance(sample.epoch, bool) or not isinstance(sample.epoch, int):
            raise InputError(f"epochs must be whole numbers; {path} has another for {shown([sample.id])}")
        group = None if cluster is None else _group(sample, cluster, path)
        value, nothing = _value(sample, scorer, key, path)
        score = gathering.add(sample.id, (place, sample.epoch), value, group=group, nothing=nothing)
        scores.setdefault(sample.id, []).extend([] if score is None else [score])
    check_means(log.header, scores, scorer=scorer, key=key, path=path)


def _value(sample: _Sample, scorer: str, key: str | None, path: Path) -> tuple[Any, str]:
    """Return what the scorer gave, and why it is no score if it is none."""
    if scorer not in sample.scores:  # a sample that failed and was scored all the same counts, as in Inspect
        return None, "the sample failed" if sample.failed else "there is no score"
    value, reason = sample.scores[scorer]
    if isinstance(value, dict):
        if key is None or key not in value:
            raise InputError(
                f"the score of {shown([scorer])} for {shown([sample.id])} in {path} has the keys {shown(value)}; name "
                f"one of them with key=; got {key!r}"
            )
        value = value[key]
    elif key is not None and value == value:  # noqa: PLR0124 - NaN, of an unscored sample, has no keys
        raise InputError(
            f"the scores of {shown([scorer])} in {path} must have keys for key=; they are no dicts; leave it out"
        )
    return value, f"it was not scored{f' ({shown([reason])})' if isinstance(reason, str) else ''}"


def _group(sample: _Sample, cluster: str, path: Path) -> str:
    value = sample.metadata.get(cluster)
    if value == _REMOVED or (isinstance(value, str) and len(value) > _CUT):
        raise InputError(
            f"the metadata {shown([cluster])} must be short to name groups, under 1,000 characters; in {path} that of "
            f"{shown([sample.id])} is longer"
        )
    return group_name(value, where=f"the metadata {shown([cluster])} in {path}", row=sample.id)
