"""The process that runs a box: one thread, one answer at a time, and bounds on everybody who knocks."""

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

from reusable_holdout.errors import InputError
from reusable_holdout_box.desk import Desk, refusal
from reusable_holdout_box.door import Peer, peer_of
from reusable_holdout_box.frames import LENGTHS, lengths_of, unpacked

__all__ = ["Limits", "Server", "told_to_end"]

_PIECE = 1 << 18
_ACCEPTED_TOGETHER = 16
_TURN_SECONDS = 0.5
_MESSAGES_TOGETHER = 4  # of the longest, that are kept while they are not whole
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on those who ask.

    Attributes
    ----------
    most_bytes : int
        Of one message.
    connections : int
        At one time; of more, the one that was idle longest is closed, of the user who has most.
    message_seconds : float
        From the first byte of a message to its last, and of a reply.
    idle_seconds : float
        Between messages.
    answer_seconds : float
        An answer leaves at a multiple of this, counted from when its question was read, so that its time tells nothing;
        0 for as soon as it is durable.
    """

    most_bytes: int
    connections: int = 64
    message_seconds: float = 20.0
    idle_seconds: float = 600.0
    answer_seconds: float = 0.0


@dataclass(eq=False)
class _Caller:
    """One connection."""

    socket: socket.socket
    peer: Peer
    heard: float
    began: float | None = None
    came: bytearray = field(default_factory=bytearray)
    owed: memoryview = field(default_factory=lambda: memoryview(b""))
    ends: bool = False

    @property
    def waits_since(self) -> tuple[bool, float]:
        """Order in which connections are given up: one that is owed a reply last."""
        return bool(self.owed), self.heard


class Server:
    """Answers who knocks at a door.

    Parameters
    ----------
    door : socket
        Listening, non-blocking.
    desk : Desk
    limits : Limits
    peer_uids : collection of int
        Users who may ask; empty for all who can open the socket.
    """

    def __init__(
        self, door: socket.socket, desk: Desk, limits: Limits, *, peer_uids: Collection[int] = ()
    ) -> None:
        self._door, self._desk, self._limits = door, desk, limits
        self._peer_uids = frozenset(peer_uids)
        self._callers: dict[int, _Caller] = {}
        self._refused: Counter[int] = Counter()
        self._stops = False
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()

    def run(self) -> None:
        """Answer until :meth:`stop`."""
        self._selector.register(self._door, _READ)
        self._selector.register(self._woken, _READ)
        try:
            while not self._stops:
                self._turn()
        finally:
            for caller in list(self._callers.values()):
                self._close(caller)
            self._selector.close()
            self._waker.close()
            self._woken.close()

    def stop(self) -> None:
        """Answer nothing more; the question that is being answered is answered. From any thread, or a signal."""
        self._stops = True
        with contextlib.suppress(OSError):
            self._waker.send(b"!")

    # ---- one turn

    def _turn(self) -> None:
        for key, events in self._selector.select(_TURN_SECONDS):
            caller = self._callers.get(key.fd)
            if key.fileobj is self._door:
                self._accept()
            elif caller is not None and caller is key.data:  # not one that was closed in this turn
                self._serve(caller, events)
        now = time.monotonic()
        for caller in list(self._callers.values()):
            if now > self._given_until(caller):
                self._close(caller)

    def _given_until(self, caller: _Caller) -> float:
        if caller.owed or caller.began is None:
            return caller.heard + (self._limits.message_seconds if caller.owed else self._limits.idle_seconds)
        return caller.began + self._limits.message_seconds

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_TOGETHER):
            try:
                connection, _address = self._door.accept()
            except BlockingIOError:  # nobody is left
                return
            except OSError:  # no file is
                if self._callers:
                    self._close(self._least_needed())
                return
            connection.setblocking(False)
            peer = peer_of(connection)
            if self._peer_uids and peer.uid not in self._peer_uids:
                self._refuse(connection, peer)
                continue
            while len(self._callers) >= self._limits.connections:
                self._close(self._least_needed())
            caller = _Caller(connection, peer, time.monotonic())
            self._callers[connection.fileno()] = caller
            self._selector.register(connection, _READ, caller)

    def _refuse(self, connection: socket.socket, peer: Peer) -> None:
        self._refused[peer.uid] += 1
        if self._refused[peer.uid] == 1:  # once, or whoever knocks fills the log
            sys.stderr.write(f"refused user {peer.uid}, who is not among --peer-uid\n")
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            connection.send(
                refusal("not_allowed", f"user {peer.uid} may not ask this box; its owner names who may")
            )
        connection.close()

    def _least_needed(self) -> _Caller:
        several = Counter(caller.peer.uid for caller in self._callers.values())
        (uid, _count), *_others = several.most_common(1)
        return min(
            (one for one in self._callers.values() if one.peer.uid == uid), key=lambda one: one.waits_since
        )

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
        except OSError:  # the other end is gone; what was answered is in the ledger
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
        while (
            sum(len(one.came) for one in self._callers.values())
            > _MESSAGES_TOGETHER * self._limits.most_bytes
        ):
            self._close(max(self._callers.values(), key=lambda one: len(one.came)))
        if caller.socket.fileno() >= 0:
            self._answer_next(caller)

    def _answer_next(self, caller: _Caller) -> None:
        """Answer the first message that has come whole, if one has."""
        came = caller.came
        if caller.began is None and came:
            caller.began = caller.heard
        if len(came) < LENGTHS:
            return
        lengths = lengths_of(came)
        end = LENGTHS + lengths.head + lengths.body
        if end > self._limits.most_bytes:
            caller.ends = True
            caller.owed = memoryview(
                refusal(
                    "bad_input",
                    f"a message must have at most {self._limits.most_bytes:,} bytes; it has more; nothing was asked",
                )
            )
            return
        if len(came) < end:
            return
        head, body = bytes(came[LENGTHS : LENGTHS + lengths.head]), bytes(came[LENGTHS + lengths.head : end])
        del came[:end]
        caller.began = None
        caller.owed = memoryview(self._reply(head, body))

    def _reply(self, head: bytes, body: bytes) -> bytes:
        began = time.monotonic()
        try:
            reply = self._desk.answer(unpacked(head, body))
        except InputError as error:
            reply = refusal("bad_input", str(error))
        if self._limits.answer_seconds:
            time.sleep(_until_next(self._limits.answer_seconds, time.monotonic() - began))
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
            self._answer_next(caller)  # one that came with the message before
        self._selector.modify(caller.socket, _WRITE if caller.owed else _READ, caller)


def _until_next(step: float, passed: float) -> float:
    return math.ceil(passed / step) * step - passed


@contextlib.contextmanager
def told_to_end(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT end the loop after the answer that is being made."""

    def told(*_: object) -> None:
        stop()

    before = {one: signal.signal(one, told) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
