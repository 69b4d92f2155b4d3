"""Worker processes, each in a copy of the tree of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from mutation.project import Project
from mutation.tree import copy_tree

__all__ = ["Worker", "in_parallel", "workers"]

_T = TypeVar("_T")
_R = TypeVar("_R")
_HERE = Path(__file__).resolve().parents[1]  # of the module "mutation"


class Worker:
    """One process, started in a copy; see :mod:`mutation.worker`.

    Attributes
    ----------
    passed, doubted : set of str
        Tests that the original passed alone, and that it did not, or not in time.
    """

    def __init__(self, copy: Path, temporary: Path, libraries: Iterable[str]) -> None:
        self.passed: set[str] = set()
        self.doubted: set[str] = set()
        folders = [copy, copy / "integrations", _HERE]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mutation.worker", *libraries],
            cwd=copy,
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(map(str, folders)),
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "",  # tests are compiled once
                "TMPDIR": str(temporary),
                "OMP_NUM_THREADS": "1",
                "MPLBACKEND": "agg",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Answer to a job; waits for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            code = self._process.wait()
            raise RuntimeError(
                f"a worker must answer; it ended with {code}; its error is above; run it again"
            )
        found: dict[str, Any] = json.loads(answer)
        return found

    def end(self) -> None:
        """Let it end."""
        self._process.communicate()


@contextlib.contextmanager
def workers(
    project: Project, count: int, *, change: Callable[[str, str], str] | None = None
) -> Iterator[list[Worker]]:
    """Some workers; their copies are gone when the block is left."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder, contextlib.ExitStack() as stack:
        Path(folder).chmod(0o755)  # a database server runs as somebody else
        started = []
        for number in range(count):
            copy, temporary = Path(folder, f"copy{number}"), Path(folder, f"temporary{number}")
            temporary.mkdir()
            temporary.chmod(0o777)
            copy_tree(project.top, copy, project.package, change=change)
            started.append(Worker(copy, temporary, project.libraries))
            stack.callback(started[-1].end)
        yield started


def in_parallel(
    started: list[Worker], work: Callable[[Worker, _T], _R], items: Iterable[_T]
) -> Iterator[tuple[_T, _R]]:
    """Each item with what ``work(worker, item)`` gives, as they are done; a worker does one at a time."""
    free: queue.Queue[Worker] = queue.Queue()
    for worker in started:
        free.put(worker)

    def with_a_worker(item: _T) -> _R:
        worker = free.get()
        try:
            return work(worker, item)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(started)) as threads:
        places = {threads.submit(with_a_worker, item): item for item in items}
        try:
            for done in as_completed(places):
                yield places[done], done.result()
        finally:
            threads.shutdown(cancel_futures=True)
