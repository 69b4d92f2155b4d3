"""Takes note of which blocks of code a test reaches, in its process and in those it starts.

The sources of a watched copy of the tree call :func:`reached`. It writes each name once per process and test, at once,
so that nothing is lost when a process is killed.
"""

from __future__ import annotations

import os

__all__ = ["FILE", "TEST", "begin", "reached", "seen"]

FILE, TEST = "MUTATION_REACHED", "MUTATION_TEST"  # of the environment, so that child processes know them

seen: set[str] = set()


def reached(name: str) -> None:
    """Take note that a block is reached; what is in `seen` need not be told again."""
    seen.add(name)
    if FILE in os.environ:
        line = f"{os.environ[TEST]}\t{name}\n".encode()
        file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def begin(test: str) -> None:
    """Let what is reached from now on be reached by a test."""
    seen.clear()
    os.environ[TEST] = test
