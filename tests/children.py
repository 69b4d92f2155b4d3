"""Child processes that run a script as ``python -c`` would, forked from a warm parent: an interpreter costs a second.

For tests about what several processes do to one ledger, or about their deaths; what is about how an interpreter begins
or ends needs one of its own. Joblib's workers come from the same parent: a pool dies with the first error in it, and
the next one would import scikit-learn anew. For what is about workers that begin as a user's do, there are fresh ones.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.context import set_start_method

__all__ = ["Child", "fork_workers", "fresh_workers"]

_PATIENCE_SECONDS = 120
_WARM = [  # what scripts and workers import, at once or with their first answer; what is not installed is passed over
    "joblib.externals.loky.process_executor",
    "numpy.random",
    "reusable_holdout.guard.guard",
    "reusable_holdout.ledger.storage",
    "reusable_holdout_leaderboard.competition.competition",
    "reusable_holdout_sklearn.scorer",
    "reusable_holdout_sklearn.search",
    "scipy.special",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "sqlite3",
]


def fork_workers() -> None:
    """From now on the workers of joblib's own pool are forked from the warm parent too."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(_WARM)
    set_start_method("forkserver", force=True)


@contextlib.contextmanager
def fresh_workers() -> Iterator[None]:
    """In the ``with`` block they are interpreters that have imported nothing, as they are by default."""
    _end_pool()
    set_start_method("loky", force=True)
    try:
        yield
    finally:
        _end_pool()
        fork_workers()


def _end_pool() -> None:
    """The next one has other workers."""
    get_reusable_executor().shutdown(kill_workers=True)


class Child:
    """A running script, with the face of ``subprocess.Popen``: text in `stdin` and `stdout`.

    Parameters
    ----------
    script : str
        What it runs; it may import what tests import.
    *arguments : object
        Its ``sys.argv[1:]``, as text.
    folder : Path, optional
        Where it works.
    """

    def __init__(self, script: str, *arguments: object, folder: Path | None = None) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_WARM)
        child_in, our_in = context.Pipe(duplex=False)
        our_out, child_out = context.Pipe(duplex=False)
        texts = [str(argument) for argument in arguments]
        given = script, texts, folder, dict(os.environ), child_in, child_out
        self._process = context.Process(target=_run, args=given)
        self._process.start()
        child_in.close(), child_out.close()
        self.stdin = os.fdopen(os.dup(our_in.fileno()), "w")
        self.stdout = os.fdopen(os.dup(our_out.fileno()))
        our_in.close(), our_out.close()

    @property
    def pid(self) -> int:
        """Of the process that runs the script, which is nobody's child here."""
        pid = self._process.pid
        assert pid is not None
        return pid

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        self._process.kill()

    def communicate(self) -> str:
        """All that it still prints; then it has ended."""
        self.stdin.close()
        with self.stdout:
            printed = self.stdout.read()
        self._process.join(_PATIENCE_SECONDS)
        return printed

    def wait(self) -> int | None:
        """Its status when it has ended; what it prints is lost."""
        self.communicate()
        return self.returncode

    @property
    def returncode(self) -> int | None:
        """As that of ``subprocess.Popen``: the negative signal if one killed it."""
        return self._process.exitcode


def _run(
    script: str,
    arguments: list[str],
    folder: Path | None,
    environment: dict[str, str],
    given: Connection,
    printed: Connection,
) -> None:
    os.chdir(folder or ".")
    os.environ.clear()  # the server of forks has the environment of the test that began it
    os.environ.update(environment)
    for connection, number in ((given, 0), (printed, 1)):
        os.dup2(connection.fileno(), number)
        connection.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - as at a start
    sys.argv = ["-c", *arguments]
    exec(script, {"__name__": "__main__"})
    sys.stdout.flush()
