"""One MLflow run that follows one guard."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from reusable_holdout import InputError
from reusable_holdout_mlflow.places import active_run, check_reachable, experiment_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reusable_holdout import Answer, ReusableHoldout

__all__ = ["RunLog"]

_METRICS_OF_A_CALL = 1_000  # MLflow's limit
_KINDS = ("holdout", "difference")  # of scores, and of comparisons of two models
_METRICS_OF_AN_ANSWER = 8
_PREFIX = "reusable_holdout"
_NOTE = "mlflow.note.content"
_SHORTEST_PAUSE = 30.0  # seconds in which a server that failed is left alone
_PAUSE_PER_FAILURE = 10.0  # times as long as the failure took: a tenth of the loop's time at most


class RunLog:
    """Log what a guard releases to one run.

    Only what the guard released is known here. What fails is tried again at the end, from the ledger.

    Parameters
    ----------
    guard : ReusableHoldout
    tracking_uri : str
    experiment, run_name : str, optional
        Of a new run.
    run : str, optional
        Id of a run that exists; it is not ended here.
    """

    def __init__(
        self,
        guard: ReusableHoldout,
        tracking_uri: str,
        *,
        experiment: str | None,
        run_name: str | None,
        run: str | None,
    ) -> None:
        self.tracking_uri, self.run_id = tracking_uri, run
        self._guard, self._client = guard, MlflowClient(tracking_uri)
        self._experiment, self._run_name, self._owned = experiment, run_name, run is None
        self._first = guard.queries_asked + 1
        self._opened = self._halt_logged = self._warned = self._finished = False
        self._quiet_until = 0.0
        self._process, self._lock = os.getpid(), threading.Lock()

    def begin(self) -> None:
        """Open the run.

        Raises
        ------
        InputError
            If it was named and does not exist, or tracks another guard.
        """
        with self._lock:
            self._while_running(self._open, refusal=InputError)

    def tell(self, answers: Sequence[Answer]) -> None:
        """Log new answers; the guard calls this after each commit."""
        if os.getpid() != self._process:
            return  # a fork has a copy of this listener; its answers are added at the end, from the ledger
        with self._lock:
            if not self._finished and time.monotonic() >= self._quiet_until:
                self._while_running(lambda: self._log_live(answers))

    def finish(self, status: str) -> None:
        """Add what is missing, table and picture, and end the run if it was made here."""
        with self._lock:
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
            where = "guard.history()" if self._guard.ledger is None else "the ledger"
            warnings.warn(
                f"the run in MLflow is not complete ({_told(problems[0])}); nothing was lost: {where} has every "
                "answer",
                RuntimeWarning,
                stacklevel=4,
            )

    # ---- failures

    def _while_running(self, step: Callable[[], None], *, refusal: type[Exception] | tuple[()] = ()) -> None:
        """Take a step; if it fails, warn once and leave the server alone for a while."""
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
                warnings.warn(
                    f"MLflow did not take what the guard released ({_told(error)}); the guard goes on, and what is "
                    "missing is logged at the end of the block",
                    RuntimeWarning,
                    stacklevel=5,
                )

    # ---- the run

    def _open(self) -> None:
        """Make or find the run and describe the guard, once."""
        if self._opened:
            return
        params = self._params()
        tags: dict[str, str] = {"policy": self._guard.policy, "mechanism": self._guard.plan.mechanism}
        if self.run_id is None:
            self.run_id = self._new_run()
        elif not self._owned:
            self._halt_logged = self._resumes(params)
        if not self._halt_logged:
            tags |= {"halted": "false", "halt_reason": ""}
        self._client.log_batch(
            self.run_id,
            params=[Param(key, value) for key, value in params.items()],
            tags=[RunTag(f"{_PREFIX}.{key}", value) for key, value in tags.items()],
            synchronous=True,
        )
        self._opened = True
        self._log_halt()

    def _new_run(self) -> str:
        identity = experiment_id(self._client, self._experiment, self.tracking_uri)
        active = active_run(self.tracking_uri)
        tags = {} if active is None else {"mlflow.parentRunId": active.info.run_id}
        name = self._run_name or f"guard of {self._guard.metric.name}"
        return str(self._client.create_run(identity, run_name=name, tags=tags).info.run_id)

    def _params(self) -> dict[str, str]:
        plan = self._guard.plan
        numbers = plan.record()
        lower, upper = numbers.pop("bounds")
        numbers |= {"lower": lower, "upper": upper, "threshold": plan.threshold, "epsilon": plan.epsilon}
        numbers["metric"] = self._guard.metric.name
        return {f"{_PREFIX}.{name}": str(value) for name, value in numbers.items()}

    def _resumes(self, params: dict[str, str]) -> bool:
        """Whether the named run has this guard's halt already; refuse it if it cannot be used."""
        try:
            data = self._client.get_run(self.run_id).data
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise InputError(
                f"run must be the id of a run on the tracking server; there is no run {self.run_id!r}; leave it out "
                "for a new one; nothing was logged"
            ) from None
        if any(data.params.get(key, value) != value for key, value in params.items()):
            raise InputError(
                f"one run tracks one guard; run {self.run_id!r} has another guard's plan; leave run out for a new "
                "one; nothing was logged"
            )
        return bool(data.tags.get(f"{_PREFIX}.halted") == "true")

    def _end(self, status: str) -> None:
        if self._owned:
            self._client.set_terminated(self.run_id, status=status)

    # ---- answers

    def _log_live(self, answers: Sequence[Answer]) -> None:
        self._open()
        now = _milliseconds(time.time())
        self._log((answer, now) for answer in answers)
        last = answers[-1]
        if last.charges_left == 0 or last.query >= self._guard.plan.queries:
            self._log_halt()

    def _catch_up(self) -> None:
        """Log what is in the ledger and not in the run: other processes may log to it too, so the server is asked."""
        history = self._guard.history()
        rows = history[history["query"] >= self._first]
        if len(rows):
            steps = {
                metric.step
                for kind in _KINDS
                for metric in self._client.get_metric_history(self.run_id, f"{kind}_answer")
            }
            missing: Iterable[Any] = rows[~rows["query"].isin(steps)].itertuples(index=False)
            self._log((row, _milliseconds(row.asked_at.timestamp())) for row in missing)
        self._log_halt()

    def _log(self, answers: Iterable[tuple[Any, int]]) -> None:
        """Log answers or rows of the history with their times, in as few calls as MLflow allows."""
        metrics = [metric for answer, when in answers for metric in self._metrics(answer, when)]
        each = _METRICS_OF_A_CALL - _METRICS_OF_A_CALL % _METRICS_OF_AN_ANSWER  # no answer is torn apart
        for start in range(0, len(metrics), each):
            self._client.log_batch(self.run_id, metrics=metrics[start : start + each], synchronous=True)

    def _metrics(self, answer: Any, when: int) -> list[Metric]:
        query = int(answer.query)
        kind = _KINDS[answer.paired]
        values = {
            f"{kind}_answer": answer.value,
            f"{kind}_prior": answer.prior,
            f"{kind}_gap": answer.prior - answer.value,
            f"{kind}_low": answer.low,
            f"{kind}_high": answer.high,
            "holdout_charged": answer.charged,
            "holdout_charges_left": answer.charges_left,
            "holdout_queries_left": self._guard.plan.queries - query,
        }
        return [Metric(name, float(value), when, query) for name, value in values.items()]

    def _log_halt(self) -> None:
        """Log the halt, once, if there is one."""
        reason = None if self._halt_logged else self._guard.halt_reason
        if reason is None:
            return
        before = self._client.get_run(self.run_id).data.tags
        # Another process may have logged it, or a call of ours that seemed to fail.
        if before.get(f"{_PREFIX}.halted") != "true":
            last = self._guard.queries_asked
            note = (
                f"**The guard has halted** ({reason}) after query {last}: nothing new will be learnt from this "
                "holdout. What was released stays valid."
            )
            own = before.get(_NOTE)  # the analyst's
            tags = {"halted": "true", "halt_reason": reason}
            self._client.log_batch(
                self.run_id,
                metrics=[Metric("holdout_halted", 1.0, _milliseconds(time.time()), last)],
                tags=[
                    RunTag(_NOTE, f"{own}\n\n{note}" if own else note),
                    *(RunTag(f"{_PREFIX}.{key}", value) for key, value in tags.items()),
                ],
                synchronous=True,
            )
        self._halt_logged = True

    # ---- files

    def _log_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table, picture = Path(folder) / "history.csv", Path(folder) / "history.png"
            self._guard.history().to_csv(table, index=False)
            self._client.log_artifact(self.run_id, str(table))
            if self._draw(picture):
                self._client.log_artifact(self.run_id, str(picture))

    def _draw(self, path: Path) -> bool:
        """Draw the history, if matplotlib is there; not through pyplot, whose windows belong to the main thread."""
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 - optional
        except ImportError:
            return False
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        self._guard.plot(figure.subplots())
        figure.savefig(path, dpi=120)
        return True


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1_000)


def _told(error: Exception) -> str:
    """Error in short, without the password that a server's address may hold."""
    text = re.sub(r"//[^/@\s]+@", "//", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}"
