"""Logging of the answers that are in the ledger, but not yet on the MLflow server."""

from __future__ import annotations

from typing import NamedTuple

import mlflow
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_mlflow.identity import ledger_identity, tag
from reusable_holdout_mlflow.places import check_reachable
from reusable_holdout_mlflow.run_log import RunLog, told
from reusable_holdout_mlflow.search import runs_of

__all__ = ["Synced", "sync"]


class Synced(NamedTuple):
    """Result of :func:`sync`: which runs it completed, and how many answers it added.

    Attributes
    ----------
    runs : tuple of str
        Ids of the runs that were completed or made.
    added : int
        Number of answers that the server lacked and that are there now.
    """

    runs: tuple[str, ...]
    added: int


class _Span(NamedTuple):
    """The queries whose answers belong to a run, from `first` to `last`, both included."""

    run: str
    first: int
    last: int
    complete: bool
    open: bool  # made by `track` and never ended


@checked_call
def sync(guard: ReusableHoldout, *, experiment: str | None = None, tracking_uri: str | None = None) -> Synced:
    """Log the answers in the ledger that MLflow lacks, for instance after a crash of the server or of the process.

    Afterwards each released answer is in exactly one run, as :meth:`ReusableHoldout.history` shows it.

    A run that was cut off gets the answers from its first query up to the next run's first query; if `track` had made
    it, it is ended. Answers that belong to no run get a new run. The holdout's page is updated.

    Parameters
    ----------
    guard : ReusableHoldout
        An open guard with the holdout and the ledger that were tracked.
    experiment : str, optional
        Experiment of a new run for answers that belong to no run; the default is that of :func:`track`.
    tracking_uri : str, optional
        Address of the tracking server; by default MLflow's current one. The runs of this holdout and ledger are found
        by their tags.

    Returns
    -------
    Synced
        The runs that were completed or made, and the number of answers added.

    Raises
    ------
    InputError
        If the server cannot be reached.

    Notes
    -----
    An answer is logged with the time at which the ledger recorded it. A server with MLflow's own database recognises an
    answer that it has already and does not store it twice, even if another process logs to the same run meanwhile.
    """
    uri = tracking_uri or mlflow.get_tracking_uri()
    try:
        check_reachable(uri)
    except OSError as error:
        raise InputError(
            f"the tracking server must be reachable; it is not ({told(error)}); nothing was lost; try again later"
        ) from None
    asked, runs, added = guard.answered, [], 0
    spans = _spans(runs_of(MlflowClient(uri), guard.digest), ledger_identity(guard), asked)
    work = [(span.run, span.first, span.last, span.open) for span in spans if span.open or not span.complete]
    for run, first, last, ends in [*work, *((None, *gap, True) for gap in _gaps(spans, asked))]:
        log = RunLog(guard, uri, experiment=experiment, run=run, first=first)
        added += log.replay(last, "FINISHED" if ends else None)
        runs.append(str(log.run_id))
    return Synced(tuple(runs), added)


def _spans(runs: list[Run], ledger: str, asked: int) -> list[_Span]:
    """Return the first and the last query of each run of a ledger.

    A run that was cut off gets all queries before the first query of the next run.
    """
    own = [run for run in runs if run.data.tags.get(tag("ledger")) == ledger]
    started = [run for run in own if run.data.tags.get(tag("first_query"), "").isdecimal()]
    firsts = sorted({int(run.data.tags[tag("first_query")]) for run in started})
    spans = []
    for run in started:
        tags = run.data.tags
        first, last = int(tags[tag("first_query")]), tags.get(tag("last_query"), "")
        following = [one for one in firsts if one > first]
        end = int(last) if last.isdecimal() else min([asked, *(one - 1 for one in following)])
        left_open = run.info.status == "RUNNING" and tags.get(tag("owned")) == "true"
        spans.append(_Span(run.info.run_id, first, end, last.isdecimal(), left_open))
    return spans


def _gaps(spans: list[_Span], asked: int) -> list[tuple[int, int]]:
    """Return the first and the last query of each stretch of queries that belong to no run."""
    gaps, reached = [], 0
    for span in sorted(spans, key=lambda one: one.first):
        if span.first > reached + 1:
            gaps.append((reached + 1, span.first - 1))
        reached = max(reached, span.last)
    return gaps if reached >= asked else [*gaps, (reached + 1, asked)]
