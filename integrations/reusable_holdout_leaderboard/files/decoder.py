"""A reader of strangers' files in a process of its own, with limited memory and time."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import HoldoutError
from reusable_holdout_leaderboard.files.forms import Form, SubmissionError
from reusable_holdout_leaderboard.files.process import receive, send

__all__ = ["Decoder", "DecoderError"]

_LOG = logging.getLogger("reusable_holdout_leaderboard")
_ROOM_BYTES = 96 << 20
_ROOM_FOR_EACH_BYTE = 6  # of the largest file: as read, as columns, and in the order of the rows
_SECONDS, _ROWS_A_SECOND = 3.0, 500_000
_WAIT = 10  # a busy machine may need so many times longer on the clock than on the processor
_MOST_PROBLEMS, _LONGEST_PROBLEM = 50, 10_000
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_PROGRAM = "reusable_holdout_leaderboard.files.process"
_Said = tuple[dict[str, Any], list[bytes]]


class DecoderError(HoldoutError):
    """The process that reads files cannot be started; nothing was asked and nothing was charged."""


class _Process(NamedTuple):
    process: subprocess.Popen[bytes]
    form: Form
    seconds: float


class Decoder:
    """A reader of submitted files that needs bounded memory and time, whatever they contain.

    One process reads them, one after the other. Its address space and processor time are limited, it gets none of the
    server's secrets, and its answers are checked. A file that ends the process is refused, and the next file gets
    another process. The process is started, not forked, with the first file.

    Beyond its size at the start it has 96 MiB and six times the largest file. For one file it has 3 seconds of the
    processor, and 2 more for each million rows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _Process | None = None

    def decode(self, content: bytes, filename: str, form: Form) -> NDArray[Any]:
        """Return the predictions of a file in canonical form; safe for several threads.

        Raises
        ------
        SubmissionError
            If the file does not fit, or takes too much.
        DecoderError
            If the process cannot be started.
        """
        with self._lock:
            running = self._ready(form)
            answer = _asked(running, content, filename)
            if answer is None:
                self._end()
                _LOG.warning("a submitted file ended the process that read it; it is refused")
                answer = SubmissionError(
                    [
                        "a file must be readable within some seconds and some memory; this one takes more; write it "
                        "again with its own columns alone, or send CSV"
                    ]
                )
        if isinstance(answer, SubmissionError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process; the next file starts another."""
        with self._lock:
            self._end()

    # ---- the process

    def _ready(self, form: Form) -> _Process:
        running = self._running
        if running is not None and running.form is form and running.process.poll() is None:
            return running
        self._end()
        try:
            return self._started(form)
        except (OSError, EOFError) as error:
            problem = error
        self._end()
        _LOG.error("the process that reads files cannot be started: %s", type(problem).__name__)
        raise DecoderError(
            "the process that reads files must start; it did not; nothing was asked; send it again"
        )

    def _started(self, form: Form) -> _Process:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=_environment(),
        )
        seconds = _SECONDS + form.rows / _ROWS_A_SECOND
        room = _ROOM_BYTES + _ROOM_FOR_EACH_BYTE * form.max_bytes
        running = self._running = _Process(process, form, seconds)
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
        fields = form._asdict() | {"ids": None}
        send(process.stdin, {"form": fields, "room": room, "seconds": seconds}, *_buffers(form))
        receive(process.stdout, most_bytes=0)
        return running

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        process = running.process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # it was made with pipes
        process.wait()


def _asked(running: _Process, content: bytes, filename: str) -> NDArray[Any] | SubmissionError | None:
    """Return the checked answer of the process; None if it ended or its answer has another form."""
    process, form = running.process, running.form
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
    timer = threading.Timer(running.seconds * _WAIT, process.kill)
    timer.start()
    try:
        send(process.stdin, {"filename": filename}, content)
        said = receive(process.stdout, most_bytes=8 * form.rows * max(1, len(form.columns)))
        return _problems(said) or _predictions(said, form)
    except (OSError, EOFError, ValueError, TypeError):
        return None
    finally:
        timer.cancel()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    few = {
        "MALLOC_ARENA_MAX": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }  # address space reserved by threads would count
    return kept | few | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _buffers(form: Form) -> list[Any]:
    if form.ids is None:
        return []
    _, offsets, data = form.ids.buffers()
    return [offsets, data if data is not None else b""]


# ---- a file may have taken the process over, so its answers are checked


def _problems(said: _Said) -> SubmissionError | None:
    problems = said[0].get("problems")
    if problems is None:
        return None
    if not isinstance(problems, list) or not all(isinstance(one, str) for one in problems):
        raise ValueError("problems must be sentences")
    return SubmissionError([one[:_LONGEST_PROBLEM] for one in problems[:_MOST_PROBLEMS]])


def _predictions(said: _Said, form: Form) -> NDArray[Any]:
    (head, (body,)) = said
    shape = (form.rows,) if len(form.columns) == 1 else (form.rows, len(form.columns))
    if head.get("dtype") != ("<i8" if form.labels else "<f8"):
        raise ValueError("predictions must have their type")
    values = np.frombuffer(body, head["dtype"]).reshape(shape)
    if form.labels and not ((values >= 0) & (values < len(form.classes))).all():
        raise ValueError("labels must be among the classes")
    return values
