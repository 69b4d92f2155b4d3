"""Reader of the scores in logs of Inspect, ``.eval`` archives and ``.json`` files; Inspect is not imported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.archives import Archive
from reusable_holdout_evals.readers.files import (
    dicts_in,
    file_text,
    inside,
    named,
    parsed,
    sources_of,
    text_of,
)
from reusable_holdout_evals.readers.gathering import Gathering, Repeats, chosen_one, group_name

__all__ = ["read_inspect"]

_HEADER, _SUMMARIES = "header.json", "summaries.json"
_CUT = 1_000  # Inspect's summaries cut texts off at about this number of characters
_REMOVED = "Key removed from summary (> 1k)"
_MEANS = ("accuracy", "mean")  # Inspect's own metrics that are the mean of the scores
_CLOSE = 1e-6
_ADVICE = "the log was changed or is incomplete; copy it again, or score it again with inspect score"


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
    """Read the scores in a log of Inspect, ``.eval`` or ``.json``; the epochs of a sample are its repeats.

    From an ``.eval`` log only the summaries are read, so a log of any size takes a second or two. The number of the
    summaries and the mean of their scores must agree with the log's header. Inspect need not be installed.

    Parameters
    ----------
    log : path or sequence of paths
        Logs of finished runs. Several logs of one task, model and solver count as further repeats.
    scorer : str, optional
        Name of the scorer; needed if the log has several.
    key : str, optional
        Key to read if the scorer gives each sample a dict of scores.
    groups : str, optional
        Key of the samples' metadata that names their group; by default the key that the scorer's standard error is
        clustered by, if there is one.
    repeats : {"equal", "averaged"}
        "equal" refuses a log whose samples have different numbers of epochs. "averaged" gives each sample the mean over
        its epochs.
    missing : float, optional
        Score of a sample that failed or was not scored, such as the lowest possible one; by default such a log is
        refused.

    Returns
    -------
    ScoreTable
        The scores by sample id. C, P, I and N (correct, partial, incorrect, no answer) become 1, 0.5, 0 and 0, as in
        Inspect.

    Raises
    ------
    InputError
        If it is not such a log, the run was not finished, or the samples do not agree with the log's header; if the
        logs are of several models; or if samples have no score, or one that is no number: the first few are named.
    MissingExtraError
        If the log is packed with Zstandard, as newer versions of Inspect do, and neither zstandard nor pyarrow is
        installed.
    """
    paths = sources_of(log)
    gathering = Gathering(named(paths), repeats, missing, advice="choose another scorer or key")
    notes, systems = dict[str, None](), dict[str, dict[str, None]]()
    for place, path in enumerate(paths):
        found = _Log(path)
        found.check_system(systems)
        scorer = found.scorer = chosen_one(scorer, found.scorers, what="scorer", where=str(path))
        found.check_count()
        cluster = groups or found.cluster()
        scores: dict[object, list[float]] = {}
        for sample in found.samples:
            row, epoch = sample.get("id"), sample.get("epoch", 1)
            if isinstance(epoch, bool) or not isinstance(epoch, int):
                raise InputError(f"epochs must be whole numbers; {path} has another value for {shown([row])}")
            group = None if cluster is None else found.group(sample, cluster)
            value, nothing = found.value(sample, key)
            score = gathering.add(row, (place, epoch), value, group=group, nothing=nothing)
            scores.setdefault(row, []).extend([] if score is None else [score])
        found.check_means(list(filter(None, scores.values())), key)
        notes |= dict.fromkeys(found.notes())
    metric = str(scorer) if key is None else f"{scorer}[{key}]"
    return gathering.table(name=next(iter(systems["task"])), metric=metric, left_out=notes)


class _Log:
    """The content of one log, from which the scores of one scorer are read.

    Attributes
    ----------
    header : dict
        Everything in the log except the samples.
    samples : list of dict
        The samples, or their summaries.
    scorers : iterable of str
        Names of all scorers.
    scorer : str
        Name of the scorer whose scores are read; empty until it is chosen.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.scorer = path, ""
        self.header, self.samples = _from_json(path) if path.suffix == ".json" else _from_archive(path)
        if not isinstance(inside(self.header, "eval"), dict) or not isinstance(self.samples, list):
            raise InputError(f"{path} must be a log of Inspect; it lacks the evaluation or its samples")
        status = self.header.get("status")
        if status != "success" or self.header.get("invalidated"):
            came = "was invalidated" if status == "success" else f"has the status {shown([status])}"
            raise InputError(
                f"a log must be of a finished run, because missing rows would change the mean; {path} {came}; continue "
                "it with inspect eval-retry, or run it again"
            )
        if not all(isinstance(one, dict) for one in self.samples):
            raise InputError(f"each sample in {path} must be a JSON object; one is something else")
        self.scorers = dict.fromkeys(name for sample in self.samples for name in _scores_of(sample))

    def check_system(self, systems: dict[str, dict[str, None]]) -> None:
        """Refuse several logs that differ in task, model or solver, because they are no repeats of one evaluation."""
        for what in ("task", "model", "solver"):
            name = inside(self.header, "eval", what)
            names = systems.setdefault(what, {})
            names[name if isinstance(name, str) else ""] = None
            if len(names) > 1:
                raise InputError(
                    f"several logs must be repeats of one {what}; these are of {shown(names)}; read them one by one"
                )

    def cluster(self) -> str | None:
        """Return the key of metadata by which the scorer's standard error is clustered."""
        options = (inside(metric, name) for _, metric in self._metrics() for name in ("params", "options"))
        keys = {key for one in options if isinstance(key := inside(one, "cluster"), str)}
        if len(keys) > 1:
            raise InputError(
                f"one key of metadata must be named with groups=; in {self.path} the metrics of {shown([self.scorer])} "
                f"are clustered by {shown(sorted(keys))}"
            )
        return next(iter(keys), None)

    def notes(self) -> list[str]:
        """Return notes for the table about scorers and reducers of the log that are left out."""
        others = [name for name in self.scorers if name != self.scorer]
        notes = [f"other scorers: {shown(others)}"] if others else []
        reducers = inside(self.header, "eval", "config", "epochs_reducer")
        if isinstance(reducers, list) and reducers and reducers != ["mean"]:
            notes.append(f"the log's own results reduce epochs by {shown(reducers)}; here are the epochs")
        return notes

    # ---- one sample

    def value(self, sample: Mapping[str, Any], key: str | None) -> tuple[Any, str]:
        """Return the value that the scorer gave a sample, and the reason to report if this value is no score."""
        given = _scores_of(sample).get(self.scorer)
        if given is None:  # a failed sample that has a score counts, as in Inspect
            return None, "there is no score" if sample.get("error") is None else "the sample failed"
        value, reason = (
            (inside(given, "value"), inside(given, "reason")) if isinstance(given, dict) else (given, "")
        )
        if isinstance(value, dict):
            if key is None or key not in value:
                raise InputError(
                    f"the score of {shown([self.scorer])} for {shown([sample.get('id')])} in {self.path} has the keys "
                    f"{shown(value)}; name one of them with key=; got {key!r}"
                )
            value = value[key]
        elif key is not None and value == value:  # noqa: PLR0124 - NaN, of an unscored sample, has no keys
            raise InputError(
                f"the scores of {shown([self.scorer])} in {self.path} have no keys; leave key= out"
            )
        return value, f"it was not scored{f' ({shown([reason])})' if isinstance(reason, str) else ''}"

    def group(self, sample: Mapping[str, Any], cluster: str) -> str:
        """Return the name of a sample's group, from its metadata."""
        value, where = inside(sample, "metadata", cluster), f"the metadata {shown([cluster])} in {self.path}"
        row = sample.get("id")
        if value == _REMOVED or (isinstance(value, str) and len(value) > _CUT):
            raise InputError(
                f"groups must have names under 1,000 characters; {where} is longer for {shown([row])}"
            )
        return group_name(value, where=where, row=row)

    # ---- checks that the samples agree with the results in the header

    def check_count(self) -> None:
        """Refuse a log whose number of samples is not the number in its header."""
        stated, samples = inside(self.header, "results", "logged_samples"), len(self.samples)
        stated = inside(self.header, "results", "total_samples") if stated is None else stated
        if not isinstance(stated, int) or not stated:
            return
        stopped = inside(self.header, "results", "early_stopping") is not None and samples < stated
        if samples != stated and not stopped:
            raise InputError(
                f"a log must hold the number of samples that its header states; {self.path} states {stated:,} and "
                f"holds {samples:,}; {_ADVICE}"
            )

    def check_means(self, scores: Sequence[Sequence[float]], key: str | None) -> None:
        """Refuse a log if its header states an "accuracy" or "mean" that is not the mean of the scores.

        `scores` has, for each sample, the scores of all epochs that have one. Only Inspect's own metrics "accuracy" and
        "mean" are compared, and only if epochs are reduced to their mean.
        """
        every = [score for one in scores for score in one]
        of_samples = [math.fsum(one) / len(one) for one in scores]
        means = [math.fsum(some) / len(some) for some in (of_samples, every) if some]
        for entry, metric in self._metrics() if means else ():
            stated, name = metric.get("value"), metric.get("name")
            if not self._is_comparable(entry, metric, key) or not isinstance(stated, int | float):
                continue
            if not any(abs(stated - mean) <= _CLOSE * max(1.0, abs(mean)) for mean in means):
                raise InputError(
                    f"a log's scores must have the {name} that its header states; in {self.path} the header states "
                    f"{stated:.6g} for {shown([self.scorer])}, but the samples give {means[0]:.6g}; {_ADVICE}"
                )

    def _metrics(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each metric that the log's results state for the scorer, as a pair: the entry, and a metric in it."""
        for one in dicts_in(inside(self.header, "results", "scores")):
            if one.get("scorer", one.get("name")) == self.scorer:
                yield from ((one, metric) for metric in dicts_in(inside(one, "metrics")))

    def _is_comparable(self, entry: Mapping[str, Any], metric: Mapping[str, Any], key: str | None) -> bool:
        """Return True if a metric must equal the mean of these scores.

        It must if it is Inspect's own "accuracy" or "mean", and epochs were reduced to their mean.
        """
        if metric.get("name") not in _MEANS or metric.get("params") or metric.get("options"):
            return False
        reducers = inside(self.header, "eval", "config", "epochs_reducer")
        if entry.get("reducer") not in {None, "mean"} or reducers not in (None, [], ["mean"]):
            return False
        own = {name for name in self._names() if name.rpartition("/")[2] == metric["name"]}
        is_inspects = not own or own == {f"inspect_ai/{metric['name']}"}
        return is_inspects and (key is None or entry.get("name") == key)

    def _names(self) -> Iterator[str]:
        """Yield the names of all metrics that the log's header declares for scorers; declarations may be nested."""
        declared = dicts_in(inside(self.header, "eval", "scorers"))
        stack = [*(one.get("metrics") for one in declared), inside(self.header, "eval", "metrics")]
        while stack:
            one = stack.pop()
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                yield one["name"]
            elif isinstance(one, dict | list):
                stack += one.values() if isinstance(one, dict) else one


def _from_json(path: Path) -> tuple[Any, Any]:
    header = parsed(file_text(path, what="a log of Inspect"), str(path))
    return header, inside(header, "samples")


def _from_archive(path: Path) -> tuple[Any, Any]:
    with Archive(path) as archive:
        if _HEADER not in archive or _SUMMARIES not in archive:
            raise InputError(
                f"{path} must be the log of a finished run, with {_HEADER} and {_SUMMARIES}; continue the run with "
                "inspect eval-retry; convert a log of an older Inspect with inspect log convert"
            )
        texts = [text_of(archive.read(name), where=f"{name} in {path}") for name in (_HEADER, _SUMMARIES)]
    header, samples = (parsed(text, str(path)) for text in texts)
    return header, samples


def _scores_of(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample's scores by scorer; the first versions of Inspect wrote a single score."""
    scores = sample.get("scores")
    if scores is None and "score" in sample:
        scores = {"score": sample["score"]}
    return {name: one for name, one in scores.items() if one is not None} if isinstance(scores, dict) else {}
