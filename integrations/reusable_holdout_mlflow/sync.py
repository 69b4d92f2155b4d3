"""Synchronisation: answers in the ledger that the MLflow server lacks are brought there."""

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
    """The answers that were brought to the server.

    Attributes
    ----------
    runs : tuple of str
        Ids of the runs that were completed or made.
    added : int
        Answers that were missing, and are there now.
    """

    runs: tuple[str, ...]
    added: int


class _Span(NamedTuple):
    """Queries whose answers belong to a run, both ends included."""

    run: str
    first: int
    last: int
    complete: bool
    open: bool  # made by `track` and never ended


@checked_call
def sync(guard: ReusableHoldout, *, experiment: str | None = None, tracking_uri: str | None = None) -> Synced:
    """Replay answers from the ledger that MLflow lacks, for instance after a crash of the server or of the process.

    Afterwards each released answer is in a run, once, as :meth:`ReusableHoldout.history` shows it.

    A run that was cut off gets the answers from its first query on, up to the first of the next run; it is ended if
    `track` had made it. Answers that no run holds get one of their own. The holdout's page is brought up to date.

    Parameters
    ----------
    guard : ReusableHoldout
        Open; the same holdout and ledger as when it was tracked.
    experiment : str, optional
        Where a run for answers that no run holds is made; by default as in :func:`track`.
    tracking_uri : str, optional
        Server; MLflow's current one otherwise. The runs of this holdout and ledger are found by tags.

    Returns
    -------
    Synced

    Raises
    ------
    InputError
        If the server cannot be reached.

    Notes
    -----
    An answer is logged with the time at which the ledger recorded it. So a server with MLflow's own database drops an
    answer that it has already, even if a process logs to the same run at this moment.
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
    """Return the queries of each run of a ledger; a run that was cut off has the queries before the next run."""
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
    """Return the first and the last query of each stretch that no run holds."""
    gaps, reached = [], 0
    for span in sorted(spans, key=lambda one: one.first):
        if span.first > reached + 1:
            gaps.append((reached + 1, span.first - 1))
        reached = max(reached, span.last)
    return gaps if reached >= asked else [*gaps, (reached + 1, asked)]
