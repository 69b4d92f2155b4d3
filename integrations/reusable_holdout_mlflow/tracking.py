"""Log every answer, charge and halt of a guard to an MLflow tracking server."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import mlflow

from reusable_holdout import Halted, InputError
from reusable_holdout_mlflow.run_log import RunLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reusable_holdout import ReusableHoldout

__all__ = ["Tracked", "track"]


class Tracked:
    """Where a guard is tracked.

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

    Nothing else about the holdout is known here: what is logged is what :meth:`ReusableHoldout.history` shows.

    Each answer is a step, numbered by its query: `answer`, `prior`, `gap`, `low`, `high`, `charged`, `charges_left`,
    `queries_left`, each with the prefix `holdout_`. The plan is logged as parameters, a halt as tags, a metric and a
    note. At the end, answers that other processes got from the same ledger are added, with the history as a table and
    a picture. A server that cannot be reached is a warning, and is tried again at the end.

    Parameters
    ----------
    guard : ReusableHoldout
        Open, and left open until the block ends.
    experiment : str, optional
        Experiment, made if it does not exist; by default the active run's, or MLflow's current one.
    tracking_uri : str, optional
        Server; MLflow's current one otherwise.
    run_name : str, optional
        Name of the run.
    run : str, optional
        Id of a run to log to, which is left open; by default a new one, nested in the active run if there is one on
        the same server.
    live : bool
        Whether to log each answer at once; otherwise all at the end, which is faster.

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
    log = RunLog(guard, uri, experiment=experiment, run_name=run_name, run=run)
    log.begin()
    unsubscribe = guard.subscribe(log.tell) if live else lambda: None
    try:
        yield Tracked(log)
    except BaseException as error:
        unsubscribe()
        with suppress(RuntimeWarning):  # where warnings are errors, one must not replace a halt
            log.finish("FINISHED" if isinstance(error, Halted) else "FAILED")
        raise
    unsubscribe()
    log.finish("FINISHED")
