"""The context manager `track`, which logs every answer, charge and halt of a guard to an MLflow server."""

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
        Id of the run; None as long as the server could not be reached.
    tracking_uri : str
        Address of the tracking server.
    """

    def __init__(self, log: RunLog) -> None:
        self._log = log

    @property
    def run_id(self) -> str | None:
        """Id of the run; None as long as the server could not be reached."""
        return self._log.run_id

    @property
    def tracking_uri(self) -> str:
        """Address of the tracking server."""
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
    """Log to MLflow all answers that a guard gives inside a ``with`` block.

    The log holds only what was released, that is, what :meth:`ReusableHoldout.history` shows.

    **The run.** Inside an active run the answers are logged to that run; else a run is made. A background thread reads
    new answers from the ledger, also those of other processes, and logs them together. The metrics of an answer are
    `answer`, `prior`, `gap`, `low`, `high`, `charged`, `charges_left`, `queries_left`, `nats` and, unless the rows only
    agreed, `measured`, each with the prefix `holdout_`; their step is the number of the query. The tag
    `holdout_overfitting` says in words whether the last model is overfitted, and the tag `holdout_budget` what is left.
    The plan is logged as parameters, a halt as a tag, a metric and a note, and the holdout as a dataset without rows.
    When the block ends, by an exception and at the end of the interpreter, too, the missing answers are logged, and the
    history as a table and a picture.

    **The holdout's page.** One more run shows the answers of all runs about this holdout, with pictures. While the
    block runs, the experiment's note is updated: it says which run is overfitted and what is left, and shows a picture.
    Text that others wrote in the note stays.

    **Failures.** If the server cannot be reached, there is a warning, and it is tried again later. Answers that are
    still missing after the block can be logged from the ledger with :func:`sync`.

    Parameters
    ----------
    guard : ReusableHoldout
        An open guard; it must stay open until the block ends.
    experiment : str, optional
        Experiment of a new run, made if it does not exist; by default MLflow's current one.
    tracking_uri : str, optional
        Address of the tracking server; by default MLflow's current one.
    run_name : str, optional
        Name of a new run.
    run : str, optional
        Id of a run to log to. It must have no answers of another holdout, epoch or ledger, and it is not ended here. By
        default the active run of this thread is used, if it is on the same server, has no other guard's answers, and
        neither `experiment` nor `run_name` is given; else a new run is made.
    live : bool
        True to log while the block runs, False to log everything at its end.

    Yields
    ------
    Tracked
        The run's id and server.

    Raises
    ------
    Halted
        If code in the block raises it: the halt is logged and raised again. The run's status is then FINISHED, because
        a halt is a result. After any other exception it is FAILED.
    InputError
        If both a run and an experiment or a name are given, there is no such run, or it tracks another guard.
    """
    if run is not None and (experiment is not None or run_name is not None):
        raise InputError(
            "pass run=, or experiment= and run_name= of a new run, not both: a run has an experiment and a name "
            "already; nothing was logged"
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
        with suppress(RuntimeWarning):  # if warnings are errors, a warning must not replace a halt
            end("FINISHED" if isinstance(error, Halted) else "FAILED")
        raise
    else:
        end()
    finally:
        atexit.unregister(end)


def _active(guard: ReusableHoldout, tracking_uri: str) -> str | None:
    """Return the id of the active run, if it can take this guard's answers; else None."""
    run = active_run(tracking_uri)
    if run is None:
        return None
    try:
        check_reachable(tracking_uri)
        tags = mlflow.get_run(run.info.run_id).data.tags  # the active run's object lacks later tags
    except (OSError, MlflowException):  # a server that is down must not stop the analyst's loop
        return str(run.info.run_id)
    return str(run.info.run_id) if takes_answers(tags, guard) else None
