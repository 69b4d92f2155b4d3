"""A check of a log of Inspect: its samples must be those from which the results in its header were computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.ids import shown
from reusable_holdout_evals.readers.pieces import dicts_in, inside

__all__ = ["check_count", "check_means", "metrics_of"]

_MEANS = ("accuracy", "mean")  # Inspect's own metrics that are the mean score
_CLOSE = 1e-6
_ADVICE = "the log was changed or is not whole; copy it anew, or let Inspect score it anew (inspect score)"


def metrics_of(
    header: Mapping[str, Any], scorer: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each metric of a scorer in the results, after the entry of the results that has it."""
    for one in dicts_in(inside(header, "results", "scores")):
        if one.get("scorer", one.get("name")) == scorer:
            yield from ((one, metric) for metric in dicts_in(inside(one, "metrics")))


def check_count(header: Mapping[str, Any], samples: int, path: Path) -> None:
    """Raise an InputError if a log has another number of samples than its header says."""
    stated = inside(header, "results", "logged_samples")
    stated = inside(header, "results", "total_samples") if stated is None else stated
    if not isinstance(stated, int) or not stated:
        return
    stopped = inside(header, "results", "early_stopping") is not None and samples < stated
    if samples != stated and not stopped:
        raise InputError(
            f"a log must hold the samples that its header counts; {path} says {stated:,} and holds {samples:,}; "
            f"{_ADVICE}"
        )


def check_means(
    header: Mapping[str, Any],
    scores: Mapping[object, Sequence[float]],
    *,
    scorer: str,
    key: str | None,
    path: Path,
) -> None:
    """Raise an InputError if the mean of the scores is not the accuracy, or the mean, that the header states.

    `scores` has those of each sample, of all epochs that have one. Only Inspect's own two metrics are compared, with
    epochs reduced to their mean.
    """
    found = [list(one) for one in scores.values() if one]
    if not found:
        return
    every = [score for one in found for score in one]
    means = (
        math.fsum(math.fsum(one) / len(one) for one in found) / len(found),
        math.fsum(every) / len(every),
    )
    for entry, metric in metrics_of(header, scorer):
        stated, name = metric.get("value"), metric.get("name")
        if not _is_comparable(header, entry, metric, key) or not isinstance(stated, int | float):
            continue
        if not any(abs(stated - mean) <= _CLOSE * max(1.0, abs(mean)) for mean in means):
            raise InputError(
                f"a log's scores must have the {name} that its header states; in {path} the header says {stated:.6g} "
                f"of {shown([scorer])}, and the samples' scores have {means[0]:.6g}; {_ADVICE}"
            )


def _is_comparable(
    header: Mapping[str, Any], entry: Mapping[str, Any], metric: Mapping[str, Any], key: str | None
) -> bool:
    """Return True if a metric is Inspect's own mean of these scores, of epochs that were reduced to their mean."""
    if metric.get("name") not in _MEANS or metric.get("params") or metric.get("options"):
        return False
    reducers = inside(header, "eval", "config", "epochs_reducer")
    if entry.get("reducer") not in {None, "mean"} or reducers not in (None, [], ["mean"]):
        return False
    own = {name for name in _names(header) if name.rpartition("/")[2] == metric["name"]}
    is_inspects = not own or own == {f"inspect_ai/{metric['name']}"}
    return is_inspects and (key is None or entry.get("name") == key)


def _names(header: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all metrics of the scorers that were declared, which may be nested."""
    declared = dicts_in(inside(header, "eval", "scorers"))
    stack = [*(one.get("metrics") for one in declared), inside(header, "eval", "metrics")]
    while stack:
        one = stack.pop()
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"]
        elif isinstance(one, dict | list):
            stack += one.values() if isinstance(one, dict) else one
