"""Child processes that run a script as ``python -c`` would, forked from a warm parent: an interpreter costs a second.

For tests about what several processes do to one ledger, or about their deaths; what is about how an interpreter begins
or ends needs one of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

__all__ = ["Child"]

_PATIENCE_SECONDS = 120
_WARM = [
    "reusable_holdout.guard.guard",
    "reusable_holdout.ledger.storage",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
]


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
        self._process = context.Process(target=_run, args=(script, texts, folder, child_in, child_out))
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
    script: str, arguments: list[str], folder: Path | None, given: Connection, printed: Connection
) -> None:
    os.chdir(folder or ".")
    for connection, number in ((given, 0), (printed, 1)):
        os.dup2(connection.fileno(), number)
        connection.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - as at a start
    sys.argv = ["-c", *arguments]
    exec(script, {"__name__": "__main__"})
    sys.stdout.flush()
