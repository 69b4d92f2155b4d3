"""The server process of a box, with one thread that answers one question at a time, and limits for clients."""

from __future__ import annotations

import contextlib
import math
import selectors
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout_box.desk import Desk, refusal
from reusable_holdout_box.folder import OpenBox, open_box, private_of, socket_of
from reusable_holdout_box.frames import LENGTHS, lengths_of, unpacked
from reusable_holdout_box.wall import check_code, close_memory, only_one, opened_door, user_of

__all__ = ["Limits", "Server", "run_box"]

_LEAST_BYTES = 1 << 20  # smallest limit for a message's length
_QUESTIONS_TOGETHER = 8
_PIECE = 1 << 18
_ACCEPTED_TOGETHER = 16
_TURN_SECONDS = 0.5
_MESSAGES_TOGETHER = 4  # memory holds this many incomplete messages of the greatest length
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits for the clients of a box.

    Attributes
    ----------
    most_bytes : int
        Greatest length of a message.
    connections : int
        Number of connections at one time. If there are more, the user with the most connections loses the one that was
        idle longest.
    message_seconds : float
        Longest time for receiving a whole message, and longest pause while a client takes no bytes of its reply.
    idle_seconds : float
        Longest time between two messages of a connection.
    answer_seconds : float
        Replies are sent at multiples of this time after the question was read, so that the time of a reply tells
        nothing about the rows. 0 sends a reply as soon as the ledger has the answer.
    """

    most_bytes: int
    connections: int = 64
    message_seconds: float = 20.0
    idle_seconds: float = 600.0
    answer_seconds: float = 0.0


@dataclass(eq=False)
class _Caller:
    """One connection of a client: its user, the bytes received so far, and the bytes of the reply still to send."""

    socket: socket.socket
    user: int
    heard: float
    began: float | None = None
    came: bytearray = field(default_factory=bytearray)
    owed: memoryview = field(default_factory=lambda: memoryview(b""))
    ends: bool = False


class Server:
    """A loop that takes connections at a socket and replies to their messages.

    Parameters
    ----------
    door : socket
        A socket that listens and does not block.
    desk : Desk
        The object that makes the replies.
    limits : Limits
    peer_uids : collection of int
        Ids of the users who may ask. If it is empty, everyone who can open the socket may.
    """

    def __init__(
        self, door: socket.socket, desk: Desk, limits: Limits, peer_uids: Collection[int] = ()
    ) -> None:
        self._door, self._desk, self._limits = door, desk, limits
        self._peer_uids = frozenset(peer_uids)
        self._callers: dict[int, _Caller] = {}
        self._refused: set[int] = set()
        self._stops = False
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()

    def run(self) -> None:
        """Take connections and reply to messages until :meth:`stop` is called."""
        self._selector.register(self._door, _READ)
        self._selector.register(self._woken, _READ)
        try:
            while not self._stops:
                self._turn()
        finally:
            for caller in list(self._callers.values()):
                self._close(caller)
            for one in (self._selector, self._waker, self._woken):
                one.close()

    def stop(self) -> None:
        """End the loop after the question that is being answered; any thread or signal handler may call this."""
        self._stops = True
        with contextlib.suppress(OSError):
            self._waker.send(b"!")

    # ---- one turn

    def _turn(self) -> None:
        for key, events in self._selector.select(_TURN_SECONDS):
            caller = self._callers.get(key.fd)
            if key.fileobj is self._door:
                self._accept()
            elif caller is not None and caller is key.data:  # it may have been closed earlier in this turn
                self._serve(caller, events)
        now = time.monotonic()
        for caller in list(self._callers.values()):
            if now > self._given_until(caller):
                self._close(caller)

    def _given_until(self, caller: _Caller) -> float:
        if not caller.owed and caller.began is not None:
            return caller.began + self._limits.message_seconds
        return caller.heard + (self._limits.message_seconds if caller.owed else self._limits.idle_seconds)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_TOGETHER):
            try:
                connection, _address = self._door.accept()
            except BlockingIOError:  # nobody else is waiting
                return
            except OSError:  # the process has too many open files
                if self._callers:
                    self._close(self._least_needed())
                return
            connection.setblocking(False)
            user = user_of(connection)
            if self._peer_uids and user not in self._peer_uids:
                self._refuse(connection, user)
                continue
            while len(self._callers) >= self._limits.connections:
                self._close(self._least_needed())
            caller = _Caller(connection, user, time.monotonic())
            self._callers[connection.fileno()] = caller
            self._selector.register(connection, _READ, caller)

    def _refuse(self, connection: socket.socket, user: int) -> None:
        if user not in self._refused:  # one line for each user, so that nobody can fill the log
            self._refused.add(user)
            print(f"refused user {user}, who is not among --peer-uid", file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            connection.send(refusal("not_allowed", f"user {user} may not ask this box; its owner decides"))
        connection.close()

    def _least_needed(self) -> _Caller:
        """Return the connection to close if there are too many.

        Among the connections of the user who has the most, it is the one that was idle longest. Connections that still
        wait for their reply come last.
        """
        several = Counter(caller.user for caller in self._callers.values())
        (user, _count), *_others = several.most_common(1)
        own = (one for one in self._callers.values() if one.user == user)
        return min(own, key=lambda one: (bool(one.owed), one.heard))

    def _close(self, caller: _Caller) -> None:
        self._callers.pop(caller.socket.fileno(), None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(caller.socket)
        caller.socket.close()

    # ---- one connection

    def _serve(self, caller: _Caller, events: int) -> None:
        try:
            if events & _READ and not caller.owed:
                self._read(caller)
            if caller.owed:
                self._write(caller)
        except OSError:  # the client is gone; the ledger keeps the answer
            self._close(caller)

    def _read(self, caller: _Caller) -> None:
        try:
            piece = caller.socket.recv(_PIECE)
        except BlockingIOError:
            return
        caller.heard = time.monotonic()
        if not piece:
            raise ConnectionResetError
        caller.came += piece
        room = _MESSAGES_TOGETHER * self._limits.most_bytes
        while sum(len(one.came) for one in self._callers.values()) > room:
            self._close(max(self._callers.values(), key=lambda one: len(one.came)))
        if caller.socket.fileno() >= 0:
            self._answer_next(caller)

    def _answer_next(self, caller: _Caller) -> None:
        """Make the reply to the first message that was received completely, if there is one."""
        came, most = caller.came, self._limits.most_bytes
        if caller.began is None and came:
            caller.began = caller.heard
        if len(came) < LENGTHS:
            return
        start, end = LENGTHS + lengths_of(came)[0], LENGTHS + sum(lengths_of(came))
        if end > most:
            caller.ends = True
            words = f"a message must have at most {most:,} bytes; it has more; nothing was asked"
            caller.owed = memoryview(refusal("bad_input", words))
        elif len(came) >= end:
            head, body = bytes(came[LENGTHS:start]), bytes(came[start:end])
            del came[:end]
            caller.began = None
            caller.owed = memoryview(self._reply(head, body))

    def _reply(self, head: bytes, body: bytes) -> bytes:
        began, step = time.monotonic(), self._limits.answer_seconds
        try:
            reply = self._desk.answer(unpacked(head, body))
        except InputError as error:
            reply = refusal("bad_input", str(error))
        if step:
            passed = time.monotonic() - began
            time.sleep(math.ceil(passed / step) * step - passed)
        return reply

    def _write(self, caller: _Caller) -> None:
        try:
            sent = caller.socket.send(caller.owed)
        except BlockingIOError:
            sent = 0
        if sent:
            caller.heard = time.monotonic()
        caller.owed = caller.owed[sent:]
        if not caller.owed:
            if caller.ends:
                raise ConnectionResetError
            self._answer_next(caller)  # a second message may have come with the first
        self._selector.modify(caller.socket, _WRITE if caller.owed else _READ, caller)


@contextlib.contextmanager
def _told_to_end(stop: Callable[[], None]) -> Iterator[None]:
    """Make SIGTERM and SIGINT call `stop` during a ``with`` block, so that the current answer is completed."""
    before = {one: signal.signal(one, lambda *_: stop()) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


# ---- a box


def run_box(
    folder: Path,
    *,
    socket: Path | None = None,
    mode: int = 0o660,
    peer_uids: Collection[int] = (),
    answer_seconds: float = 0.0,
) -> None:
    """Answer questions at a box's socket until the process gets SIGTERM or SIGINT.

    Parameters
    ----------
    folder : Path
        Folder of the box.
    socket : Path, optional
        Path of the socket; by default ``folder/socket``.
    mode : int
        File mode of the socket; users who can write to it can ask.
    peer_uids : collection of int
        Ids of the users who may ask. If it is empty, everyone who can open the socket may.
    answer_seconds : float
        If not 0, replies are sent only at multiples of this time; see :class:`Limits`.

    Raises
    ------
    WallError
        If another user could change the code, or read or replace the folder or the socket.
    InputError, LedgerError
        If there is no box, it runs already, or the socket cannot be bound.
    """
    close_memory()
    check_code()
    box = open_box(folder)
    try:
        with only_one(private_of(folder)):
            limits = Limits(most_bytes=_most_bytes(box), answer_seconds=answer_seconds)
            where = socket_of(folder) if socket is None else socket
            with opened_door(where, mode=mode) as door:
                print(f"answering at unix://{where.absolute()}", file=sys.stderr, flush=True)
                server = Server(door, Desk(box, most_bytes=limits.most_bytes), limits, peer_uids)
                with _told_to_end(server.stop):
                    server.run()
                print("told to end; ended", file=sys.stderr, flush=True)
    finally:
        box.guard.close()


def _most_bytes(box: OpenBox) -> int:
    """Return the limit for a message's length, with room for 8 models' predictions, a number per row and class."""
    classes = box.guard.classes
    numbers = box.guard.rows * (1 if classes is None else len(classes))
    return max(_LEAST_BYTES, 8 * numbers * _QUESTIONS_TOGETHER)
