"""Python programs in processes of their own, forked from one that has loaded the library already.

For tests of what several processes do, be they killed or not. What is to run as users start it, a program or a package
that is imported anew, is started with subprocess.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Child", "start"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["reusable_holdout", "reusable_holdout_leaderboard"])


def start(code: str, *arguments: str, folder: Path | None = None) -> Child:
    """Run code as ``python -c`` would, with these arguments, perhaps in a folder."""
    return Child(code, arguments, folder)


class Child:
    """A process that runs.

    Attributes
    ----------
    pid : int
    """

    def __init__(self, code: str, arguments: tuple[str, ...], folder: Path | None) -> None:
        self._process = _CONTEXT.Process(target=_run, args=(code, arguments, folder))
        self._process.start()
        self.pid = self._process.pid

    def wait(self, seconds: float = 60.0) -> int | None:
        """Status at its end, negative for the signal that killed it; None if it still runs."""
        self._process.join(seconds)
        return self._process.exitcode


def _run(code: str, arguments: tuple[str, ...], folder: Path | None) -> None:
    os.chdir(folder or ".")
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<child>", "exec"), {"__name__": "__main__"})
