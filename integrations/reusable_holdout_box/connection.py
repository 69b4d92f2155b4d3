"""A client's connection to a box: asks again when that is safe, and raises what the guard has raised."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from numpy.typing import NDArray

from reusable_holdout.errors import BudgetError, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout_box.door import peer_of
from reusable_holdout_box.frames import LENGTHS, Message, lengths_of, packed, unpacked

__all__ = ["Connection", "HaltedThere"]

_ANSWER_SECONDS = 150.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 2.0
_MOST_REPLY = 64 << 20
_PIECE = 1 << 18
_KINDS: dict[str, type[HoldoutError]] = {
    "bad_input": InputError,
    "budget": BudgetError,
    "unavailable": LedgerError,
}


class Connection:
    """Connection to a box, opened when it is needed, and again when it broke.

    Every question may be asked twice: the second answer repeats the first, free.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``.
    patience_seconds : float
        How long to try again while nobody answers there.

    Attributes
    ----------
    server_uid : int
        User that runs the box, by the kernel's word; -1 before it was asked.
    """

    def __init__(self, url: str, *, patience_seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        path = unquote(parts.path)
        if (
            parts.scheme != "unix"
            or parts.netloc
            or not path.startswith("/")
            or parts.query
            or parts.fragment
        ):
            raise InputError(
                f"url must be unix:///path/of/socket, with three slashes; got {url!r}; nothing was asked"
            )
        self.url, self.server_uid = url, -1
        self._path, self._patience = Path(path), patience_seconds
        self._socket: socket.socket | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Connection: {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Message:
        """Send a message, and wait for the reply.

        Raises
        ------
        HaltedThere, HoldoutError
            As the box refused, or if nobody answers.
        """
        message = packed(head, arrays)
        self._after_fork()
        with self._lock:
            reply = self._sent(message)
        if "error" in reply.head:
            raise _raised(reply.head["error"])
        return reply

    # ---- inside

    def _after_fork(self) -> None:
        """A forked process shares its parent's connection, whose replies it must not take."""
        if self._process != os.getpid():
            self._process, self._lock, self._socket = os.getpid(), threading.Lock(), None

    def _sent(self, message: bytes) -> Message:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._try(message)
            except OSError as error:
                self.close()
                problem = error
            except BaseException:  # an interrupt: what is still to come must not be taken for another reply
                self.close()
                raise
            if isinstance(problem, PermissionError) or time.monotonic() + pause > deadline:
                raise LedgerError(
                    f"a box must answer at {self.url}; it does not ({problem.strerror or type(problem).__name__}); "
                    "its owner starts it with box run; what was sent may be sent again: it is charged once at most"
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _try(self, message: bytes) -> Message:
        if self._socket is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(_ANSWER_SECONDS)
            try:
                connection.connect(str(self._path))
            except BaseException:
                connection.close()
                raise
            self._socket, self.server_uid = connection, peer_of(connection).uid
        with contextlib.suppress(BrokenPipeError):  # refused at the door, perhaps in words
            self._socket.sendall(message)
        lengths = lengths_of(self._received(LENGTHS))
        if lengths.head + lengths.body > _MOST_REPLY:
            raise ConnectionError(0, "what answers there is no box")
        head = self._received(lengths.head)
        body = self._received(lengths.body)
        try:
            return unpacked(head, body, finite=False)
        except InputError:
            raise ConnectionError(0, "what answers there is no box") from None

    def _received(self, count: int) -> bytes:
        assert self._socket is not None  # noqa: S101 - for mypy
        found = bytearray()
        while len(found) < count:
            piece = self._socket.recv(min(_PIECE, count - len(found)))
            if not piece:
                raise ConnectionResetError(0, "it closed the connection")
            found += piece
        return bytes(found)


class HaltedThere(BaseException):
    """A halt as it travels; whoever asked makes a halt of it, which needs the history."""

    def __init__(self, message: str, reason: str, answers: list[dict[str, Any] | None]) -> None:
        super().__init__(message)
        self.reason, self.answers = reason, answers


def _raised(error: Mapping[str, Any]) -> BaseException:
    """What a local guard would have raised."""
    code, message, details = error["code"], error["message"], error["details"]
    if code == "halted":
        return HaltedThere(message, details["reason"], details["answers"])
    if code == "model":
        return ModelError(message, details.get("answers", ()))  # as they travel; a box of 0.2.0 sends none
    return _KINDS.get(code, HoldoutError)(message)
