"""Takes note of which functions a test calls, in its process and in those it starts.

The sources of a watched copy of the tree call :func:`called`. It writes each name once per process and test, at once,
so that nothing is lost when a process is killed.
"""

from __future__ import annotations

import os

__all__ = ["FILE", "TEST", "begin", "called"]

FILE, TEST = "MUTATION_CALLS", "MUTATION_TEST"  # of the environment, so that child processes know them

_seen: set[str] = set()


def called(name: str) -> None:
    """Take note that a function is called."""
    if name not in _seen:
        _write(name)


def begin(test: str) -> None:
    """Let the calls from now on be those of a test."""
    _seen.clear()
    os.environ[TEST] = test


def _write(name: str) -> None:
    _seen.add(name)
    if FILE in os.environ:
        line = f"{os.environ[TEST]}\t{name}\n".encode()
        file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line)
        finally:
            os.close(file)
