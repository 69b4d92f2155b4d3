"""Strangers' files are read where they can do no harm: small CSV and JSON here, all else in a process with limits."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import HoldoutError, of_extra
from reusable_holdout_leaderboard.files.forms import Expected, Form, SubmissionError, is_parquet
from reusable_holdout_leaderboard.files.messages import received, sent
from reusable_holdout_leaderboard.files.questions import Question, read_question

__all__ = ["Decoder", "DecoderError", "parse_submission"]

_Read = TypeVar("_Read")
_LOG = logging.getLogger("reusable_holdout_leaderboard")
_SMALL_BYTES = 1 << 20  # what it takes to read them is nothing
_MEGABYTE = 1 << 20
_ROOM_BYTES = 96 * _MEGABYTE
_ROOM_FOR_EACH_BYTE = 6  # of the largest file: read, as columns, and in the order of the rows
_SECONDS, _ROWS_A_SECOND = 3.0, 500_000
_WAIT = 10  # as long on the clock as on the processor, on a busy machine
_MOST_PROBLEMS, _LONGEST_PROBLEM = 50, 10_000
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_PROGRAM = "reusable_holdout_leaderboard.files.process"


def parse_submission(content: bytes, filename: str, expected: Expected) -> NDArray[Any]:
    r"""Predictions of a submitted file, in the order of the rows.

    All that is known here of the labels is public: ids, number of rows, classes. So messages may quote the file, and a
    file that does not fit costs nothing. Of strangers' files, which may unpack to any size, it is called in a process
    of its own: see :class:`Decoder`.

    Parameters
    ----------
    content : bytes
        CSV with a header, in UTF-8, separated by commas or semicolons; or Parquet.
    filename : str
        Says which: Parquet if it ends in ".parquet" or ".pq", or if the content does.
    expected : Expected

    Returns
    -------
    numpy.ndarray of shape (rows,) or (rows, classes)
        Class labels, or float64.

    Raises
    ------
    SubmissionError
        Listing what does not fit, the first offenders of each kind.

    Examples
    --------
    >>> from reusable_holdout_leaderboard import Expected
    >>> expected = Expected(ids=("a", "b"), rows=2, id_column="id", columns=("prediction",), response="scores")
    >>> parse_submission(b"id,prediction\nb,0.5\na,1", "mine.csv", expected)
    array([1. , 0.5])
    """
    with of_extra("leaderboard", "a submitted file"):
        from reusable_holdout_leaderboard.files.predictions import decoded  # noqa: PLC0415 - Arrow is large

    return expected.decoded(decoded(content, filename, expected.form))


class DecoderError(HoldoutError):
    """The process that reads files cannot be started; nothing was asked and nothing was charged."""


class _Process(NamedTuple):
    process: subprocess.Popen[bytes]
    form: Form
    seconds: float


class Decoder:
    """Reads submitted files, whatever is in them, in bounded memory and time.

    A CSV file takes memory in proportion to its size, so a small one is read at once. Larger ones, and Parquet, of
    which a few bytes may stand for gigabytes, go to one process, one after the other: its address space and its
    processor time are limited, it is given none of the server's secrets, and what it answers is checked. If a file ends
    it the file is refused, and the next one gets another process. It is started, not forked, with the first file.

    Beyond what the process begins with it has 96 MiB and six times the largest file; for one file, 3 s of the processor
    and 2 s more for each million rows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _Process | None = None

    def decode(self, content: bytes, filename: str, expected: Expected) -> NDArray[Any]:
        """As :func:`parse_submission`; safe for several threads.

        Raises
        ------
        SubmissionError
            If the file does not fit, or takes too much.
        DecoderError
            If no process can be started.
        """
        small = len(content) <= _SMALL_BYTES and not is_parquet(content, filename)
        if small or len(content) > expected.max_bytes:  # which is said without being sent
            return parse_submission(content, filename, expected)
        form = expected.form
        with self._lock:
            read = self._asked({"filename": filename}, content, form, partial(_array, form=form))
        return expected.decoded(read)

    def question(self, content: bytes, expected: Expected) -> Question:
        """As :func:`~reusable_holdout_leaderboard.files.questions.read_question`; safe for several threads.

        Raises
        ------
        SubmissionError
            If the body does not fit, or takes too much.
        DecoderError
            If no process can be started.
        """
        form = expected.form
        if len(content) <= _SMALL_BYTES:
            return read_question(content, form)
        with self._lock:
            return self._asked({}, content, form, partial(_question, form=form, most=len(content)))

    def close(self) -> None:
        """End the process; the next file starts another."""
        with self._lock:
            self._end()

    def _asked(
        self, head: dict[str, Any], content: bytes, form: Form, checked: Callable[[_Said], _Read]
    ) -> _Read:
        """What the process makes of a file or body, once it is checked."""
        running = self._ready(form)
        process = running.process
        answer: _Read | SubmissionError | None = None
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
        timer = threading.Timer(running.seconds * _WAIT, process.kill)
        timer.start()
        try:
            sent(process.stdin, head, content)
            said = received(process.stdout, most_bytes=_most_bytes(form, content))
            answer = _problems(said) or checked(said)
        except (OSError, EOFError, ValueError, TypeError):
            pass
        finally:
            timer.cancel()
        if answer is None:
            self._end()
            _LOG.warning(
                "a submitted file ended the process that read it (%s); it is refused", process.returncode
            )
            raise SubmissionError(
                [
                    "a file must be read within some seconds and some memory; this one takes more; write it again with "
                    "its own columns alone, or send CSV"
                ]
            )
        if isinstance(answer, SubmissionError):
            raise answer
        return answer

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
        sent(process.stdin, {"form": fields, "room": room, "seconds": seconds}, *_buffers(form))
        received(process.stdout, most_bytes=0)
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


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    few = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}  # what threads reserve would count
    return kept | few | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _buffers(form: Form) -> list[Any]:
    if form.ids is None:
        return []
    _, offsets, data = form.ids.buffers()
    return [offsets, data if data is not None else b""]


# ---- what the process says is not believed


_Said = tuple[dict[str, Any], list[bytes]]


def _most_bytes(form: Form, content: bytes) -> int:
    return 8 * (form.rows * max(1, len(form.columns)) + len(content))


def _problems(said: _Said) -> SubmissionError | None:
    problems = said[0].get("problems")
    if problems is None:
        return None
    if not isinstance(problems, list) or not all(isinstance(one, str) for one in problems):
        raise ValueError("problems must be sentences")
    return SubmissionError([one[:_LONGEST_PROBLEM] for one in problems[:_MOST_PROBLEMS]])


def _array(said: _Said, *, form: Form) -> NDArray[Any]:
    """A file's predictions, of a process that the file may have taken over.

    Raises
    ------
    ValueError
        If they are none.
    """
    (head, (body,)) = said
    shape = (form.rows,) if len(form.columns) == 1 else (form.rows, len(form.columns))
    if head.get("dtype") != ("<i8" if form.labels else "<f8"):
        raise ValueError("predictions must have their type")
    values = np.frombuffer(body, head["dtype"]).reshape(shape)
    return _among(values, form) if form.labels else values


def _question(said: _Said, *, form: Form, most: int) -> Question:
    """The same of a question."""
    (head, (body, rest)) = said
    if head.get("dtype") not in {"<i8", "<f8"}:
        raise ValueError("predictions must be numbers")
    coded, several, anew = (bool(head.get(name)) for name in ("coded", "several", "anew"))
    asked = json.loads(rest)
    priors, names = asked["priors"], asked["names"]
    fits = len(priors) == len(names) <= most and all(isinstance(one, str) for one in names)
    if not fits or not all(one is None or type(one) in {int, float} for one in priors):
        raise ValueError("there must be a prior and a name for each")
    width = head.get("width")
    shape = (len(names), form.rows) if width is None else (len(names), form.rows, int(width))
    values = np.frombuffer(body, head["dtype"]).reshape(shape)
    return Question(_among(values, form) if coded else values, coded, several, priors, names, anew)


def _among(codes: NDArray[Any], form: Form) -> NDArray[Any]:
    if codes.dtype.kind != "i" or not ((codes >= 0) & (codes < len(form.classes))).all():
        raise ValueError("labels must be among the classes")
    return codes
