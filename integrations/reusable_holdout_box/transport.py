"""Transports that send questions to a guard in another process: their protocol, and the transport to a box."""

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
"""Group of the entry points with which other packages add transports.

An entry point's name is the scheme of its addresses. It loads a class that takes address, token and patience.
"""

_ANSWER_SECONDS = 150.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 2.0
_MOST_REPLY = 64 << 20
_PIECE = 1 << 18
_KINDS = {"bad_input": InputError, "budget": BudgetError, "unavailable": LedgerError}


class Transport(Protocol):
    """A connection to one guard in another process.

    Sending a message twice is safe: the second reply repeats the first answer and is free.

    The value of "ask" in a message is its kind. The reply to "about" holds public facts that do not change, and the
    reply to "status" those that do, such as the charges left. The reply to "history" or "ids" is one page: the entries
    after number "after". Questions are "evaluate", "many" (a list of evaluations), "compare", "gate", "reveal",
    "choose" and "final"; their predictions are sent as arrays, and the reply is ``{"answers": [...]}``.
    """

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Mapping[str, Any]:
        """Send a message, and return the reply.

        Raises
        ------
        Halted, ModelError
            If the guard raised it. Its answers are still dicts, as they were in the reply.
        HoldoutError
            If the question is refused, or nobody answers.
        """

    def close(self) -> None:
        """Close the connection."""


class NoWallWarning(UserWarning):
    """Warns that the asking user can read the labels: the box runs as this user, or this user is root."""


class BoxTransport:
    """A connection to a box. It is opened at the first message, and opened again if it breaks.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``.
    token : str
        Must be empty, because the kernel tells the box which user asks.
    patience_seconds : float
        Time for which to try again while nobody answers.

    Raises
    ------
    InputError
        If the address is not of this form, or a token is given.
    """

    def __init__(self, url: str, token: str = "", patience_seconds: float = 60.0) -> None:
        parts = urlsplit(url)
        self._path = unquote(parts.path)
        if parts.netloc or parts.query or parts.fragment or not self._path.startswith("/"):
            raise InputError(f"url must be unix:///path/of/socket; got {url!r}; nothing was asked")
        if token:
            raise InputError("a box takes no token: the kernel tells it which user asks; leave it out")
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
        """Send a message, and return the reply; see :meth:`Transport.ask`."""
        message = packed(head, arrays)
        if self._process != os.getpid():  # a forked process must not take its parent's replies
            self._process, self._lock, self._socket = os.getpid(), threading.Lock(), None
        with self._lock:
            reply = self._sent(message).head
        if "error" in reply:
            raise _raised(reply["error"])
        if head["ask"] == "about" and self._socket is not None:  # warn once, not at each reconnection
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
        with contextlib.suppress(BrokenPipeError):  # the box may have sent a refusal
            connection.sendall(message)
        lengths = lengths_of(_received(connection, LENGTHS))
        if sum(lengths) > _MOST_REPLY:
            raise ConnectionError(0, "something that is not a box answers there")
        head, body = (_received(connection, length) for length in lengths)
        try:
            return unpacked(head, body, finite=False)
        except InputError:
            raise ConnectionError(0, "something that is not a box answers there") from None

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
            "as different users, and this process not as root",
            NoWallWarning,
        )


def _raised(error: Mapping[str, Any]) -> BaseException:
    """Return the exception that a guard in this process would have raised."""
    code, message, details = error["code"], error["message"], error["details"]
    if code == "halted":
        untold: Any = None  # RemoteHoldout adds the history
        return Halted(message, reason=details["reason"], history=untold, answers=details["answers"])
    if code == "model":
        return ModelError(message, details["answers"])
    return _KINDS.get(code, HoldoutError)(message)


def transport_to(url: object, token: str, patience_seconds: float) -> Transport:
    """Return the transport for an address.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``, or an address with a scheme for which an installed package has a transport.
    token : str
        Token for a leaderboard; empty for a box.
    patience_seconds : float
        Time for which to try again while nobody answers.

    Raises
    ------
    InputError
        If there is no transport for the scheme.
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
