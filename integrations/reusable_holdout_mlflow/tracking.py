"""Tracking: every answer, charge and halt of a guard is logged to an MLflow server."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import mlflow
from mlflow.exceptions import MlflowException

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_mlflow.follower import Follower
from reusable_holdout_mlflow.identity import takes_answers
from reusable_holdout_mlflow.places import active_run, check_reachable
from reusable_holdout_mlflow.run_log import RunLog

__all__ = ["Tracked", "track"]


class Tracked:
    """The run that a guard is tracked in.

    Attributes
    ----------
    run_id : str or None
        The run; None as long as no server was reachable.
    tracking_uri : str
        The server.
    """

    def __init__(self, log: RunLog) -> None:
        self._log = log

    @property
    def run_id(self) -> str | None:
        """The run; None as long as no server was reachable."""
        return self._log.run_id

    @property
    def tracking_uri(self) -> str:
        """The server."""
        return self._log.tracking_uri

    def __repr__(self) -> str:
        return f"<Tracked: run {self.run_id}>"  # the server's address may hold a password


@checked_call
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
    """Log what a guard releases inside a ``with`` block.

    Nothing else about the holdout is known here: the log has what :meth:`ReusableHoldout.history` shows.

    Inside an active run the answers are that run's; else a run is made. A background thread reads new answers from the
    ledger, other processes' answers too, and logs them in one call. Each answer is a step, numbered by its query:
    `answer`, `prior`, `gap`, `low`, `high`, `charged`, `charges_left`, `queries_left`, `nats`, each with the prefix
    `holdout_`. Tags say in plain words whether the last model is overfitted, `holdout_overfitting`, and what is left,
    `holdout_budget`. The plan is logged as parameters, a halt as a tag, a metric and a note, the holdout as a dataset
    without rows. When the block ends, also by an exception or with the interpreter, the rest follows, with the history
    as a table and a picture.

    One more run is the holdout's page: all answers of all runs, and pictures. The experiment's note says, while the
    block runs, which run is overfitted and what is left, with a picture; what others wrote there stays.

    A server that cannot be reached is a warning, and is tried again later; what is missing after the block,
    :func:`sync` replays from the ledger.

    Parameters
    ----------
    guard : ReusableHoldout
        Open, and left open until the block ends.
    experiment : str, optional
        Experiment of a new run, made if it does not exist; by default MLflow's current one.
    tracking_uri : str, optional
        Server; MLflow's current one otherwise.
    run_name : str, optional
        Name of a new run.
    run : str, optional
        Id of a run to log to, which has no answers of another holdout, epoch or ledger; it is left open. By default the
        active run of this thread, if it is on the same server, has no other guard's answers, and neither an experiment
        nor a name is given; else a new one.
    live : bool
        Whether to log while the block runs; otherwise all at the end.

    Yields
    ------
    Tracked

    Raises
    ------
    Halted
        If the code in the block was halted: the halt is logged, and goes on. The run is FINISHED, for a halt is a
        result; after anything else that is raised it is FAILED.
    InputError
        If both a run and an experiment or a name are given, there is no such run, or it tracks another guard.
    """
    if run is not None and (experiment is not None or run_name is not None):
        raise InputError(
            "name a run or a new run's experiment and name, not both: a run has an experiment and a name already; "
            "nothing was logged"
        )
    uri = tracking_uri or mlflow.get_tracking_uri()
    if run is None and experiment is None and run_name is None:
        run = _active(guard, uri)
    log = RunLog(guard, uri, experiment=experiment, run_name=run_name, run=run)
    log.begin()
    follower = Follower(log.follow)
    if live:
        follower.start()

    def end(status: str = "FINISHED") -> None:
        follower.stop()
        log.finish(status)

    atexit.register(end)  # for a block that is never left, such as one of an ExitStack in a notebook
    try:
        yield Tracked(log)
    except BaseException as error:
        with suppress(RuntimeWarning):  # where warnings are errors, one must not replace a halt
            end("FINISHED" if isinstance(error, Halted) else "FAILED")
        raise
    else:
        end()
    finally:
        atexit.unregister(end)


def _active(guard: ReusableHoldout, tracking_uri: str) -> str | None:
    """Return the id of the active run, if it can have this guard's answers."""
    run = active_run(tracking_uri)
    if run is None:
        return None
    try:
        check_reachable(tracking_uri)
        tags = mlflow.get_run(run.info.run_id).data.tags  # the active run knows those it was started with
    except (OSError, MlflowException):  # the server is down, which does not stop a loop
        return str(run.info.run_id)
    return str(run.info.run_id) if takes_answers(tags, guard) else None
