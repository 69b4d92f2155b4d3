"""The process that reads strangers' files: little memory, little time, no secrets. It ends with its input.

Each message is a line of JSON, followed by bytes whose sizes the line states.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError
from reusable_holdout_leaderboard.files.predictions import decoded

__all__ = ["main", "receive", "send"]

_LONGEST_LINE = 1 << 20


def send(pipe: IO[bytes], head: dict[str, Any], *bodies: Any) -> None:
    """Send a message.

    Raises
    ------
    OSError
        If nobody reads.
    """
    sizes = [memoryview(body).nbytes for body in bodies]
    pipe.write(json.dumps(head | {"sizes": sizes}).encode() + b"\n")
    for body in bodies:
        pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes], *, most_bytes: int | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Receive the next message.

    Parameters
    ----------
    pipe : file
    most_bytes : int, optional
        Limit of the bytes after the line.

    Raises
    ------
    EOFError
        If there is none, or it does not have this form.
    """
    line = pipe.readline(_LONGEST_LINE)
    try:
        head = json.loads(line)
        sizes = [int(size) for size in head.pop("sizes")]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise EOFError from None
    if most_bytes is not None and (min(sizes, default=0) < 0 or sum(sizes) > most_bytes):
        raise EOFError
    bodies = [pipe.read(size) for size in sizes]
    if [len(body) for body in bodies] != sizes:
        raise EOFError
    return head, bodies


def main(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more: first the form of the files, then files.

    The address space is limited to its size before the first file and some room, and processor time is limited for each
    file. A file that exceeds them ends this process and nothing else.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would hold a team's file
    pa.set_memory_pool(pa.system_memory_pool())  # other pools reserve address space in advance
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    head, bodies = receive(requests)
    form = _form(head["form"], bodies)
    room, seconds = int(head["room"]), float(head["seconds"])
    most = _address_space() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    send(answers, {})  # ready
    while True:
        head, (content,) = receive(requests)
        _limit_time(seconds)
        try:
            values = np.ascontiguousarray(decoded(content, head["filename"], form))
            send(answers, {"dtype": values.dtype.str}, values.data)
        except SubmissionError as error:
            send(answers, {"problems": error.problems})


def _form(fields: dict[str, Any], bodies: list[bytes]) -> Form:
    ids = None
    if bodies:
        buffers = [None, *map(pa.py_buffer, bodies)]
        ids = pa.Array.from_buffers(pa.string(), fields["rows"], buffers)
    lists = {name: tuple(fields[name]) for name in ("columns", "classes")}
    return Form(**{**fields, **lists, "ids": ids})


def _limit_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _address_space() -> int:
    """Return the bytes of address space in use, or an upper bound if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 1 << 30


if __name__ == "__main__":
    try:
        main(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, OSError, MemoryError):  # the server notices that the process has ended
        os._exit(1)
