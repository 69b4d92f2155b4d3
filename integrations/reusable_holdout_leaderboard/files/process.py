"""The process that reads strangers' files: little memory, little time, no secrets. Ended by the end of its input."""

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
from reusable_holdout_leaderboard.files.messages import received, sent
from reusable_holdout_leaderboard.files.predictions import decoded
from reusable_holdout_leaderboard.files.questions import Question, read_question

__all__ = ["main"]


def main(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more: a form to read files by, then files.

    The address space is limited to what it was before the first file, and some room; processor time for each file. Who
    goes beyond them ends the process, and with it nothing else.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server's to end
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold a team's file
    pa.set_memory_pool(pa.system_memory_pool())  # others reserve address space beforehand
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    head, bodies = received(requests)
    form = _form(head["form"], bodies)
    room, seconds = int(head["room"]), float(head["seconds"])
    most = _address_space() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    sent(answers, {})  # ready
    while True:
        head, (content,) = received(requests)
        _limit_time(seconds)
        try:
            if "filename" in head:
                values = np.ascontiguousarray(decoded(content, head["filename"], form))
                sent(answers, {"dtype": values.dtype.str}, values.data)
            else:
                sent(answers, *_told(read_question(content, form)))
        except SubmissionError as error:
            sent(answers, {"problems": error.problems})


def _form(fields: dict[str, Any], bodies: list[bytes]) -> Form:
    ids = None
    if bodies:
        buffers = [None, *map(pa.py_buffer, bodies)]
        ids = pa.Array.from_buffers(pa.string(), fields["rows"], buffers)
    lists = {name: tuple(fields[name]) for name in ("columns", "classes")}
    return Form(**{**fields, **lists, "ids": ids})


def _told(asked: Question) -> tuple[Any, ...]:
    values = asked.values
    head = {"dtype": values.dtype.str, "coded": asked.coded, "several": asked.several, "anew": asked.anew}
    width = values.shape[2] if values.ndim == 3 else None
    rest = json.dumps({"priors": asked.priors, "names": asked.names}).encode()
    return head | {"width": width}, values.data, rest


def _limit_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _address_space() -> int:
    """Bytes of address space in use; where the system does not say, what the libraries need at most."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 1 << 30


if __name__ == "__main__":
    try:
        main(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, OSError, MemoryError):  # who asked sees that it has ended
        os._exit(1)
