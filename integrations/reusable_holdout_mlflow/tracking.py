"""Log every answer, charge and halt of a guard to an MLflow tracking server."""

from __future__ import annotations

import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import mlflow
from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from reusable_holdout import Halted, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reusable_holdout import Answer, ReusableHoldout

__all__ = ["Tracked", "track"]

_MOST_METRICS = 1_000  # of one log_batch, says MLflow
_PREFIX = "reusable_holdout"


class Tracked(NamedTuple):
    """Where a guard is tracked.

    Attributes
    ----------
    run_id : str or None
        The run; None if no server was reachable.
    tracking_uri : str
        The server.
    """

    run_id: str | None
    tracking_uri: str


@contextmanager
def track(
    guard: ReusableHoldout,
    *,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    run_name: str | None = None,
    run: str | None = None,
    live: bool = True,
) -> Iterator[Tracked]:
    """Log what a guard releases inside a ``with`` block: nothing else about the holdout is known here.

    Each answer is a step, numbered by its query: `answer`, `prior`, `gap`, `low`, `high`, `charged`, `charges_left`,
    `queries_left`. The plan is logged as parameters, a halt as tags and a note. At the end, answers that other
    processes got from the same ledger are added, with the history as a table and a picture. A server that cannot be
    reached is a warning: the ledger has everything.

    Parameters
    ----------
    guard : ReusableHoldout
        Open.
    experiment : str, optional
        Experiment, made if it does not exist; MLflow's default one otherwise.
    tracking_uri : str, optional
        Server; MLflow's current one otherwise.
    run_name : str, optional
        Name of the run.
    run : str, optional
        Id of a run to log to; by default a new one, nested in the active run if there is one.
    live : bool
        Whether to log each answer at once; otherwise all at the end, which is faster.

    Yields
    ------
    Tracked

    Raises
    ------
    Halted
        If the code in the block was halted: the halt is logged, and goes on.
    InputError
        If both a run and an experiment are named.
    """
    if run is not None and experiment is not None:
        raise InputError("name a run or an experiment, not both: a run belongs to an experiment already")
    uri = tracking_uri or mlflow.get_tracking_uri()
    log = _Log(guard, uri, experiment=experiment, run_name=run_name, run=run)
    log.start()
    unsubscribe = guard.subscribe(log.answers) if live else lambda: None
    status = "FAILED"
    try:
        yield Tracked(log.run_id, uri)
        status = "FINISHED"
    except Halted:
        status = "FINISHED"  # a halt is a result
        raise
    finally:
        unsubscribe()
        log.finish(status)


class _Log:
    """One run. What fails is tried again at the end, from the ledger."""

    def __init__(
        self,
        guard: ReusableHoldout,
        tracking_uri: str,
        *,
        experiment: str | None,
        run_name: str | None,
        run: str | None,
    ) -> None:
        self._guard = guard
        self._client = MlflowClient(tracking_uri)
        self._experiment, self._run_name = experiment, run_name
        self._owned = run is None
        self.run_id = run
        self._first = guard.queries_asked + 1
        self._logged: set[int] = set()
        self._described = False
        self._warned = False

    def start(self) -> None:
        """Make the run and describe the guard."""
        try:
            self._begin()
        except Exception as error:
            self._warn(error)

    def answers(self, answers: Sequence[Answer]) -> None:
        """Log new answers."""
        if self._warned:
            return  # the end catches up: waiting for a dead server at every question would stop the loop
        try:
            self._log([answer._asdict() for answer in answers])
        except Exception as error:
            self._warn(error)

    def finish(self, status: str) -> None:
        """Catch up with the ledger, add table and picture, and close the run."""
        try:
            self._begin()
            history = self._guard.history()
            missing = history[(history["query"] >= self._first) & ~history["query"].isin(self._logged)]
            self._log(missing.to_dict("records"))
            self._log_halt()
            self._log_files(history)
            if self._owned:
                self._client.set_terminated(self.run_id, status=status)
        except Exception as error:
            self._warned = False
            self._warn(error)

    def _begin(self) -> None:
        if self.run_id is None:
            self.run_id = self._new_run()
        if not self._described:
            self._describe()
            self._described = True

    def _new_run(self) -> str:
        active = mlflow.active_run()
        tags = {} if active is None else {"mlflow.parentRunId": active.info.run_id}
        if self._experiment is not None:
            found = self._client.get_experiment_by_name(self._experiment)
            identity = found.experiment_id if found else self._client.create_experiment(self._experiment)
        else:
            identity = "0" if active is None else active.info.experiment_id
        name = self._run_name or f"guard of {self._guard.metric.name}"
        made = self._client.create_run(identity, run_name=name, tags=tags)
        return str(made.info.run_id)

    def _describe(self) -> None:
        plan = self._guard.plan
        numbers = plan.record() | {"threshold": plan.threshold, "epsilon": plan.epsilon}
        params = [Param(f"{_PREFIX}.{name}", str(value)) for name, value in numbers.items()]
        params.append(Param(f"{_PREFIX}.metric", self._guard.metric.name))
        tags = {"policy": "thresholdout", "mechanism": "numeric-sparse", "halted": "false"}
        self._client.log_batch(
            self.run_id,
            params=params,
            tags=[RunTag(f"{_PREFIX}.{key}", value) for key, value in tags.items()],
        )

    def _log(self, answers: Sequence[Any]) -> None:
        """Log answers given as mappings, in as few calls as MLflow allows."""
        metrics: list[Metric] = []
        now = int(time.time() * 1_000)
        for answer in answers:
            query = int(answer["query"])
            values = {
                "answer": answer["value"],
                "prior": answer["prior"],
                "gap": answer["prior"] - answer["value"],
                "low": answer["low"],
                "high": answer["high"],
                "charged": float(answer["charged"]),
                "charges_left": answer["charges_left"],
                "queries_left": self._guard.plan.queries - query,
            }
            metrics += [Metric(f"holdout_{name}", float(value), now, query) for name, value in values.items()]
        each = _MOST_METRICS - _MOST_METRICS % 8
        for start in range(0, len(metrics), each):
            block = metrics[start : start + each]
            self._client.log_batch(self.run_id, metrics=block)
            self._logged |= {metric.step for metric in block}

    def _log_halt(self) -> None:
        reason = self._guard.halt_reason
        if reason is None:
            return
        last = self._guard.queries_asked
        note = (
            f"**The guard has halted** ({reason}) after query {last}: nothing new will be learnt from this holdout. "
            "What was released stays valid."
        )
        tags = {f"{_PREFIX}.halted": "true", f"{_PREFIX}.halt_reason": reason, "mlflow.note.content": note}
        self._client.log_batch(
            self.run_id,
            metrics=[Metric("holdout_halted", 1.0, int(time.time() * 1_000), last)],
            tags=[RunTag(key, value) for key, value in tags.items()],
        )

    def _log_files(self, history: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "history.csv"
            history.to_csv(table, index=False)
            self._client.log_artifact(self.run_id, str(table))
            try:
                from reusable_holdout.plotting import save_picture  # noqa: PLC0415

                picture = Path(folder) / "history.png"
                save_picture(self._guard.plot(), picture)
            except InputError:
                return  # no matplotlib, no picture
            self._client.log_artifact(self.run_id, str(picture))

    def _warn(self, error: Exception) -> None:
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"MLflow could not be reached ({type(error).__name__}): the guard goes on, and nothing is lost, for the "
            "ledger has it; it is tried again at the end of the block",
            RuntimeWarning,
            stacklevel=3,
        )
