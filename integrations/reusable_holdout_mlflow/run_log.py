"""The log of one guard's answers in one MLflow run."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from mlflow.entities import Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.slips import warn
from reusable_holdout_mlflow.answers import log_answers, log_halt, log_missing, log_tags
from reusable_holdout_mlflow.guard_calls import released
from reusable_holdout_mlflow.identity import log_dataset, params_of, tag, tags_of, takes_answers, user
from reusable_holdout_mlflow.page import HoldoutPage
from reusable_holdout_mlflow.pictures import write_files
from reusable_holdout_mlflow.places import check_reachable, experiment_id
from reusable_holdout_mlflow.words import BUDGET, budget_in_words, words_of

__all__ = ["RunLog", "told"]

_SHORTEST_PAUSE = 30.0  # seconds after a failure in which the server is not called
_PAUSE_PER_FAILURE = 10.0  # times the failed call's duration: failures take at most a tenth of the time


class RunLog:
    """A writer of a guard's released answers to one run, and to the holdout's page.

    It reads only released answers. Answers that the server did not take are read from the ledger again later.

    Parameters
    ----------
    guard : ReusableHoldout
    tracking_uri : str
        Address of the tracking server.
    experiment, run_name : str, optional
        Experiment and name of a new run.
    run : str, optional
        Id of an existing run; it is not ended here.
    first : int, optional
        Number of the first query whose answer the run gets; by default the guard's next query. If the run has an
        earlier first query, that one stays.
    """

    def __init__(
        self,
        guard: ReusableHoldout,
        tracking_uri: str,
        *,
        experiment: str | None = None,
        run_name: str | None = None,
        run: str | None = None,
        first: int | None = None,
    ) -> None:
        self.tracking_uri, self.run_id = tracking_uri, run
        self._guard, self._client = guard, MlflowClient(tracking_uri)
        self._page = HoldoutPage(guard, self._client)
        self._experiment, self._run_name, self._owned = experiment, run_name, run is None
        self._first = guard.answered + 1 if first is None else first
        self._logged = self._first - 1  # the run has the answers up to this query
        self._opened = self._warned = self._finished = False
        self._place, self._quiet_until = "", 0.0
        self._process, self._lock = os.getpid(), threading.Lock()

    def begin(self) -> None:
        """Open the run: make it, or look up the existing one, and describe the guard in it.

        Raises
        ------
        InputError
            If the named run does not exist, or tracks another guard.
        """
        with self._lock:
            self._while_running(self._open, refusal=InputError)

    def follow(self) -> None:
        """Log the ledger's new answers and update the page. A background thread calls it, so it raises no error."""

        def step() -> None:
            self._open()
            self._log_new()
            self._page.refresh_if_new(self._place)

        with self._lock, suppress(RuntimeWarning):  # if warnings are errors, a thread must raise none
            if not self._finished and time.monotonic() >= self._quiet_until:
                self._while_running(step)

    def finish(self, status: str) -> None:
        """Log missing answers, the table and the pictures, and end the run if it was made here.

        Later calls do nothing.
        """
        if os.getpid() != self._process:
            return  # a forked process has a copy of this object, but the run is its parent's
        with self._lock:
            if self._finished:
                return
            self._finished = True
            started, problems = time.monotonic(), []
            for step in (self._catch_up, self._log_files, lambda: self._end(status)):
                try:
                    check_reachable(self.tracking_uri)
                    self._open()
                    step()
                except Exception as error:
                    problems.append(error)
                    if self.run_id is None or time.monotonic() - started > _SHORTEST_PAUSE:
                        break
        if problems:
            lost = (
                "guard.history() has every answer"
                if self._guard.ledger is None
                else "the ledger has every answer, and sync(guard) brings it to the server"
            )
            warn(
                f"the run in MLflow is not complete ({told(problems[0])}); nothing was lost: {lost}",
                RuntimeWarning,
            )

    def replay(self, last: int, status: str | None) -> int:
        """Complete the run from the ledger, and raise every failure.

        Parameters
        ----------
        last : int
            Number of the last query whose answer belongs to the run.
        status : str or None
            MLflow's status with which the run is ended; None leaves the run open.

        Returns
        -------
        int
            Number of answers that were missing.
        """
        self._open()
        added = self._catch_up(last)
        self._log_files()
        if status is not None:
            self._client.set_terminated(self.run_id, status=status)
        return added

    def _while_running(self, step: Callable[[], None], *, refusal: type[Exception] | tuple[()] = ()) -> None:
        """Run a function that calls the server; if it fails, warn the first time, and pause the calls for a while."""
        started = time.monotonic()
        try:
            check_reachable(self.tracking_uri)
            step()
        except refusal:
            raise
        except Exception as error:
            now = time.monotonic()
            self._quiet_until = now + max(_SHORTEST_PAUSE, _PAUSE_PER_FAILURE * (now - started))
            if not self._warned:
                self._warned = True
                warn(
                    f"MLflow did not take what the guard released ({told(error)}); the guard goes on, and what is "
                    "missing is logged at the end of the block",
                    RuntimeWarning,
                )

    # ---- the run

    def _open(self) -> None:
        """Make or find the run, and log plan, tags and dataset of the guard; later calls do nothing."""
        if self._opened:
            return
        before: dict[str, str] = {}
        params = params_of(self._guard)
        if self.run_id is not None:
            self._place, before, known = self._named_run()
            params = {name: value for name, value in params.items() if name not in known}
        elif not self._place:
            self._place = experiment_id(self._client, self._experiment, self.tracking_uri)
        page = self._page.find(self._place)
        if self.run_id is None:
            name = self._run_name or f"guard of {self._guard.metric.name}"
            made = self._client.create_run(self._place, run_name=name, tags={tag("owned"): "true"})
            self.run_id = str(made.info.run_id)
        started = before.get(tag("first_query"), "")
        if started.isdecimal():
            self._first = min(self._first, int(started))
        tags = {tag("page_run"): page, tag("first_query"): str(self._first), tag("last_query"): ""}
        if not self._guard.halted:
            tags[BUDGET] = budget_in_words(self._guard)
        if not before.get("mlflow.user"):
            tags["mlflow.user"] = user()
        entities = [Param(key, value) for key, value in params.items()]
        self._client.log_batch(self.run_id, params=entities, synchronous=True)
        log_tags(self._client, self.run_id, tags_of(self._guard) | tags)
        log_dataset(self._client, self.run_id, self._guard)
        self._opened = True
        log_halt(self._client, self.run_id, self._guard)

    def _named_run(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """Return experiment, tags and parameters of the named run; refuse a run that has another guard's answers."""
        try:
            run = self._client.get_run(self.run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise InputError(
                f"run must be the id of a run on the tracking server; there is no run {self.run_id!r}; leave it out "
                "for a new one; nothing was logged"
            ) from None
        if not takes_answers(run.data.tags, self._guard):
            raise InputError(
                f"one run tracks one guard; run {self.run_id!r} has the answers of another holdout, epoch or ledger; "
                "leave run out to make a new one; nothing was logged"
            )
        return str(run.info.experiment_id), dict(run.data.tags), dict(run.data.params)

    def _end(self, status: str) -> None:
        if self._owned:
            self._client.set_terminated(self.run_id, status=status)

    # ---- answers and files

    def _log_new(self) -> None:
        """Log all answers in the ledger that this object has not logged, also those of other processes."""
        if self._guard.answered > self._logged:
            rows = released(self._guard, first=self._logged + 1)
            log_answers(self._client, self.run_id or "", rows, queries=self._guard.plan.queries)
            self._say(rows)

    def _catch_up(self, last: int | None = None) -> int:
        """Log the answers that the run lacks, tag the run as complete, and return the number of missing answers."""
        rows = log_missing(self._client, self.run_id or "", self._guard, first=self._first, last=last)
        self._say(rows)
        end = self._guard.answered if last is None else last
        self._client.set_tag(self.run_id, tag("last_query"), str(end))
        return len(rows)

    def _say(self, rows: pd.DataFrame) -> None:
        """Write tags that say in words what the last of the new answers means."""
        words = words_of(self._guard, rows)
        if words:
            log_tags(self._client, self.run_id or "", words)
            self._logged = max(self._logged, int(rows["query"].iloc[-1]))
        log_halt(self._client, self.run_id or "", self._guard)

    def _log_files(self) -> None:
        """Log the table of answers and the pictures as files of the run and of the holdout's page."""
        with tempfile.TemporaryDirectory() as folder:
            files = write_files(self._guard, folder)
            for path in files.for_a_run():
                self._client.log_artifact(self.run_id, str(path))
            self._page.refresh(self._place, files)


def told(error: Exception) -> str:
    """Return an error's message, shortened and without a password that a server's address may hold."""
    text = re.sub(r"//[^/@\s]+@", "//", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}"
