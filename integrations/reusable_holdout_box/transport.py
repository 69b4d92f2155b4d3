"""The way to a guard that lives elsewhere: one protocol, the transport to a box, and the choice by an address."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from numpy.typing import NDArray

from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout.slips import warn
from reusable_holdout_box.frames import LENGTHS, Message, lengths_of, packed, unpacked
from reusable_holdout_box.wall import user_of

__all__ = ["BoxTransport", "NoWallWarning", "Transport", "transport_to"]

_GROUP = "reusable_holdout.transports"
"""Entry points of other packages' transports, named by their schemes: classes that take address, token and patience."""

_ANSWER_SECONDS = 150.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 2.0
_MOST_REPLY = 64 << 20
_PIECE = 1 << 18
_KINDS = {"bad_input": InputError, "budget": BudgetError, "unavailable": LedgerError}


class Transport(Protocol):
    """A way to one guard. Sending a message twice is safe: the second answer repeats the first, free.

    Messages are those of a box. ``{"ask": "about"}`` gets what is public and fixed; "status" what was asked and what is
    left; "history" and "ids" one page after a number; "evaluate", "many", "compare", "reveal", "choose" and "final"
    get ``{"answers": [...]}``, with the arrays of predictions beside the message.
    """

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Mapping[str, Any]:
        """Send a message, and return the reply.

        Raises
        ------
        Halted, ModelError
            As the guard did; the answers in them are as they travel.
        HoldoutError
            If the question is refused, or nobody answers.
        """

    def close(self) -> None:
        """Close the connection."""


class NoWallWarning(UserWarning):
    """The box runs as the user who asks, or that user is root: then nothing keeps this user from the labels."""


class BoxTransport:
    """A connection to a box. It is opened when it is needed, and again when it broke.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``.
    token : str
        Refused: the kernel tells the box who asks.
    patience_seconds : float
        How long to try again while nobody answers.

    Raises
    ------
    InputError
        If the address is none, or a token came.
    """

    def __init__(self, url: str, token: str = "", patience_seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        self._path = unquote(parts.path)
        if parts.netloc or parts.query or parts.fragment or not self._path.startswith("/"):
            raise InputError(f"url must be unix:///path/of/socket; got {url!r}; nothing was asked")
        if token:
            raise InputError("a box takes no token, for the kernel tells it which user asks; leave it out")
        self.url, self._patience = url, patience_seconds
        self._socket: socket.socket | None = None
        self._process, self._lock = os.getpid(), threading.Lock()

    def __repr__(self) -> str:
        return f"<BoxTransport: {self.url}>"

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Mapping[str, Any]:
        """Send a message, and return the reply; as :meth:`Transport.ask`."""
        message = packed(head, arrays)
        if self._process != os.getpid():  # a forked process must not take its parent's replies
            self._process, self._lock, self._socket = os.getpid(), threading.Lock(), None
        with self._lock:
            reply = self._sent(message).head
        if "error" in reply:
            raise _raised(reply["error"])
        if head["ask"] == "about" and self._socket is not None:  # once, and not at each reconnection
            _warn_of_no_wall(user_of(self._socket))
        return reply

    # ---- inside

    def _sent(self, message: bytes) -> Message:
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._try(message)
            except OSError as error:
                self.close()
                problem = error
            except BaseException:  # an interrupt: a later question must not get the reply to this one
                self.close()
                raise
            if isinstance(problem, PermissionError) or time.monotonic() + pause > deadline:
                raise LedgerError(
                    f"a box must answer at {self.url}; it does not ({problem.strerror or type(problem).__name__}); "
                    "its owner starts it with box serve; the question may be asked again: it is charged once at most"
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _try(self, message: bytes) -> Message:
        connection = self._socket or self._connected()
        with contextlib.suppress(BrokenPipeError):  # the box may have refused in words
            connection.sendall(message)
        lengths = lengths_of(_received(connection, LENGTHS))
        if sum(lengths) > _MOST_REPLY:
            raise ConnectionError(0, "what answers there is no box")
        head, body = (_received(connection, length) for length in lengths)
        try:
            return unpacked(head, body, finite=False)
        except InputError:
            raise ConnectionError(0, "what answers there is no box") from None

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_ANSWER_SECONDS)
        try:
            connection.connect(self._path)
        except BaseException:
            connection.close()
            raise
        self._socket = connection
        return connection


def _received(connection: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        piece = connection.recv(min(_PIECE, count - len(found)))
        if not piece:
            raise ConnectionResetError(0, "it closed the connection")
        found += piece
    return bytes(found)


def _warn_of_no_wall(server: int) -> None:
    if os.geteuid() in {0, server} and server >= 0:
        warn(
            f"the box runs as user {server} and this process as user {os.geteuid()}, who can read its labels; run them "
            "as different users, and not the one who asks as root",
            NoWallWarning,
        )


def _raised(error: Mapping[str, Any]) -> BaseException:
    """Return what a local guard would have raised."""
    code, message, details = error["code"], error["message"], error["details"]
    if code == "halted":
        untold: Any = None  # RemoteHoldout adds the history
        return Halted(message, reason=details["reason"], history=untold, answers=details["answers"])
    if code == "model":
        return ModelError(message, details["answers"])
    return _KINDS.get(code, HoldoutError)(message)


def transport_to(url: object, token: str, patience_seconds: float) -> Transport:
    """Return the transport of an address.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``, or an address whose scheme an installed package serves.
    token : str
    patience_seconds : float
        How long to try again while nobody answers.

    Raises
    ------
    InputError
        If no transport has this scheme.
    """
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    if scheme == "unix":
        return BoxTransport(str(url), token, patience_seconds)
    for found in entry_points(group=_GROUP, name=scheme):
        transport: Transport = found.load()(url, token, patience_seconds)
        return transport
    raise InputError(
        "url must be unix:///path/of/socket for a box, or http://host:port or https://host for a leaderboard; got "
        f"{url!r}; nothing was asked"
    )
