"""The page of a holdout: one run in MLflow that shows the answers of all runs that asked about this holdout."""

from __future__ import annotations

import tempfile
import time

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout_mlflow.answers import log_halt, log_missing, log_tags, milliseconds
from reusable_holdout_mlflow.identity import ledger_identity, log_dataset, params_of, tag, tags_of, user
from reusable_holdout_mlflow.note import write_note
from reusable_holdout_mlflow.pictures import Files, write_files
from reusable_holdout_mlflow.search import pages_of, runs_of
from reusable_holdout_mlflow.words import BUDGET, NOTE, budget_in_words

__all__ = ["HoldoutPage"]

_NOTE = (
    "All queries of all runs to one holdout: metrics, history.csv and the pictures show what was released. The holdout "
    "itself is not here."
)


class HoldoutPage:
    """A writer of the page of one guard's holdout, and of the part of the experiment's note about this holdout.

    The page is found by the holdout's digest. It shows released answers from the guard's ledger, and tags of the
    server's runs, and nothing else.

    Parameters
    ----------
    guard : ReusableHoldout
    client : MlflowClient
    """

    def __init__(self, guard: ReusableHoldout, client: MlflowClient) -> None:
        self._guard, self._client = guard, client
        self._drawn = -1  # number of answers when the page was last drawn
        self._next = 1  # first query that the page may lack

    def find(self, experiment_id: str) -> str:
        """Return the id of the page's run; if the server has no page of this holdout, make one in the experiment."""
        found = pages_of(self._client, self._guard.digest)
        own = None
        if not found:
            own = self._make(experiment_id)
            found = pages_of(self._client, self._guard.digest)
        # If several processes made a page at the same time, all of them use the oldest, and delete their own.
        page = str(found[0].info.run_id) if found else str(own)
        if own not in {None, page}:
            self._client.delete_run(own)
        return page

    def refresh_if_new(self, experiment_id: str) -> None:
        """Draw the page again if the guard has given answers since it was last drawn."""
        if self._guard.answered != self._drawn:
            with tempfile.TemporaryDirectory() as folder:
                self.refresh(experiment_id, write_files(self._guard, folder))

    def refresh(self, experiment_id: str, files: Files) -> None:
        """Update the page, and the note of the experiment in which the guard is asked.

        Parameters
        ----------
        experiment_id : str
            Id of that experiment.
        files : Files
            Table and pictures of the guard's answers.
        """
        guard, client, page = self._guard, self._client, self.find(experiment_id)
        asked, identity = guard.answered, ledger_identity(guard)
        first = client.get_run(page).data.tags.get(tag("ledger")) == identity
        folder = None if first else f"ledger-{identity}"  # the page shows another ledger of the same rows
        for path in (files.table, *files.pictures):
            client.log_artifact(page, str(path), folder)
        runs = runs_of(client, guard.digest)
        if first:
            log_missing(client, page, guard, first=self._next, last=asked)
            self._next = asked + 1
        self._log_numbers(page, len(runs), first=first)
        write_note(client, experiment_id, guard, runs, page)
        self._drawn = asked

    def _log_numbers(self, page: str, runs: int, *, first: bool) -> None:
        """Log the number of runs. If `first` is true, the page is this ledger's, and its budget is logged, too."""
        guard, numbers, history = self._guard, {"holdout_runs": runs}, self._guard.history()
        last = None if history.empty else history.iloc[-1]
        if first:
            asked = 0 if last is None else int(history["asked"].max())
            numbers |= {
                "holdout_queries_asked": asked,
                "holdout_queries_left": guard.plan.queries - asked,
                "holdout_charges_spent": int(history["charged"].sum()),
                "holdout_charges_left": guard.plan.charges if last is None else int(last["charges_left"]),
            }
            log_halt(self._client, page, guard)
        when = int(time.time() * 1_000) if last is None else milliseconds(last["asked_at"])
        step = 0 if last is None else int(last["query"])
        metrics = [Metric(name, float(value), when, step) for name, value in numbers.items()]
        log_tags(self._client, page, {BUDGET: budget_in_words(guard)} if first else {}, metrics)

    def _make(self, experiment_id: str) -> str:
        """Make the page's run, and return its id."""
        guard = self._guard
        tags = tags_of(guard) | {tag("page"): guard.digest, NOTE: _NOTE, "mlflow.user": user()}
        name = f"holdout {guard.digest[:8]} ({guard.metric.name})"
        page = str(self._client.create_run(experiment_id, run_name=name, tags=tags).info.run_id)
        params = [Param(key, value) for key, value in params_of(guard).items()]
        self._client.log_batch(page, params=params, synchronous=True)
        log_dataset(self._client, page, guard)
        self._client.update_run(page, status="FINISHED")  # no process runs it
        return page
