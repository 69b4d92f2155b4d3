"""The page of a holdout: one run that gathers all queries of all runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from mlflow.entities import Metric, Param, RunTag

from reusable_holdout import ReusableHoldout
from reusable_holdout_mlflow.answers import log_answers, milliseconds, released, steps_in
from reusable_holdout_mlflow.dataset import log_dataset
from reusable_holdout_mlflow.identity import ledger_identity, params_of, tag, tags_of, user
from reusable_holdout_mlflow.note import write_note
from reusable_holdout_mlflow.pictures import Files, write_files
from reusable_holdout_mlflow.search import experiments, pages_of, runs_of
from reusable_holdout_mlflow.words import BUDGET, NOTE, budget_in_words, halt_note, is_halted, noted

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

__all__ = ["HoldoutPage", "runs_table"]

_NOTE = (
    "All queries of all runs to one holdout: metrics, history.csv and the pictures show what was released, runs.csv "
    "who asked. The holdout itself is not here."
)


class HoldoutPage:
    """Page of one guard's holdout, found by the holdout's digest, and its part of the experiment's note.

    It shows what the guard's ledger shows and what the server's runs say of themselves; nothing else is known here.

    Parameters
    ----------
    guard : ReusableHoldout
    client : MlflowClient
    """

    def __init__(self, guard: ReusableHoldout, client: MlflowClient) -> None:
        self._guard, self._client = guard, client
        self._drawn = -1  # number of answers it was drawn with
        self._logged: int | None = None  # last query that the page surely has

    def find(self, experiment_id: str) -> str:
        """Id of the page's run, made in an experiment if there is none anywhere."""
        found = pages_of(self._client, self._guard.digest)
        own = None
        if not found:
            own = self._make(experiment_id)
            found = pages_of(self._client, self._guard.digest)
        # Of processes that race, all see the same oldest page, and each removes its own other one.
        page = str(found[0].info.run_id) if found else str(own)
        if own not in {None, page}:
            self._client.delete_run(own)
        return page

    def refresh_if_new(self, experiment_id: str) -> None:
        """Draw the page again if there are answers that it was not drawn with."""
        if self._guard.answered != self._drawn:
            with tempfile.TemporaryDirectory() as folder:
                self.refresh(experiment_id, write_files(self._guard, folder))

    def refresh(self, experiment_id: str, files: Files) -> None:
        """Bring the page and the note of the experiment that asks up to date.

        Parameters
        ----------
        experiment_id : str
        files : Files
            Table and pictures of the guard.
        """
        guard, client, page = self._guard, self._client, self.find(experiment_id)
        asked = guard.answered
        tags = client.get_run(page).data.tags
        identity = ledger_identity(guard)
        first = tags.get(tag("ledger")) == identity
        folder = None if first else f"ledger-{identity}"  # another budget for the same rows
        for path in (files.table, *files.pictures):
            client.log_artifact(page, str(path), folder)
        runs = runs_of(client, guard.digest)
        table = runs_table(client, guard, runs)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "runs.csv"
            table.to_csv(path, index=False)
            client.log_artifact(page, str(path))
        if first:
            self._log_answers(page, asked)
        self._log_numbers(page, tags, table, first=first)
        write_note(client, experiment_id, guard, runs, page)
        self._drawn = asked

    def _log_answers(self, page: str, last: int) -> None:
        """Give the page every answer of every run, each at its query."""
        rows = released(self._guard, first=1 if self._logged is None else self._logged + 1, last=last)
        if self._logged is None and len(rows):
            rows = rows[~rows["query"].isin(steps_in(self._client, page))]
        self._logged = None  # a call that fails may have been taken
        log_answers(self._client, page, rows, queries=self._guard.plan.queries)
        self._logged = last

    def _log_numbers(self, page: str, tags: dict[str, str], runs: pd.DataFrame, *, first: bool) -> None:
        guard = self._guard
        numbers = {
            "holdout_runs": int(runs["runs"].sum()),
            "holdout_users": runs["user"].nunique(),
            "holdout_experiments": runs["experiment"].nunique(),
        }
        history, new = guard.history(), {}
        if first:
            numbers |= self._budget(history)
            new = {BUDGET: budget_in_words(guard)}
        reason = guard.halt_reason
        if first and reason is not None and not is_halted(tags):
            new |= noted(tags, halt_note(guard, reason), first=True)
        when = milliseconds(history["asked_at"].iloc[-1]) if len(history) else _now()
        step = int(history["query"].iloc[-1]) if len(history) else 0
        self._client.log_batch(
            page,
            metrics=[Metric(name, float(value), when, step) for name, value in numbers.items()],
            tags=[RunTag(name, value) for name, value in new.items()],
            synchronous=True,
        )

    def _make(self, experiment_id: str) -> str:
        guard = self._guard
        tags = tags_of(guard) | {
            tag("page"): guard.digest,
            BUDGET: budget_in_words(guard),
            NOTE: _NOTE,
            "mlflow.user": user(),
        }
        name = f"holdout {guard.digest[:8]} ({guard.metric.name})"
        page = str(self._client.create_run(experiment_id, run_name=name, tags=tags).info.run_id)
        params = [Param(key, value) for key, value in params_of(guard).items()]
        self._client.log_batch(page, params=params, synchronous=True)
        log_dataset(self._client, page, guard)
        self._client.update_run(page, status="FINISHED")  # no process stands behind it
        return page

    def _budget(self, history: pd.DataFrame) -> dict[str, int]:
        charges, asked = self._guard.plan.charges, int(history["asked"].max()) if len(history) else 0
        return {
            "holdout_queries_asked": asked,
            "holdout_queries_left": self._guard.plan.queries - asked,
            "holdout_charges_spent": int(history["charged"].sum()),
            "holdout_charges_left": int(history["charges_left"].iloc[-1]) if len(history) else charges,
            "holdout_halted": int(self._guard.halted),
        }


def runs_table(client: MlflowClient, guard: ReusableHoldout, runs: Sequence[Run]) -> pd.DataFrame:
    """Who asked a holdout in some runs.

    Returns
    -------
    pandas.DataFrame
        Columns user, experiment, runs, queries (that the runs cover; one that parallel runs share counts for each),
        first_started, last_started (UTC).
    """
    names = {identity: one.name for identity, one in experiments(client).items()}
    rows = []
    for run in runs:
        tags = run.data.tags
        first, last = tags.get(tag("first_query"), ""), tags.get(tag("last_query"), "")
        open_end = guard.answered if tags.get(tag("ledger")) == ledger_identity(guard) else 0
        end = int(last) if last.isdecimal() else open_end
        rows.append(
            {
                "user": tags.get("mlflow.user") or "unknown",
                "experiment": names.get(str(run.info.experiment_id), str(run.info.experiment_id)),
                "queries": max(0, end - int(first) + 1) if first.isdecimal() else 0,
                "started": pd.Timestamp(run.info.start_time, unit="ms", tz="UTC"),
            }
        )
    columns = ["user", "experiment", "queries", "started"]
    grouped = pd.DataFrame(rows, columns=columns).groupby(["user", "experiment"])
    return grouped.agg(
        runs=("queries", "size"),
        queries=("queries", "sum"),
        first_started=("started", "min"),
        last_started=("started", "max"),
    ).reset_index()


def _now() -> int:
    return int(time.time() * 1_000)
