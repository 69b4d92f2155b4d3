"""Connections: who may hold one open, so many of one address, and how long each is waited for."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from reusable_holdout_leaderboard.web.security import Networks, network_of

__all__ = ["Door", "PromptProtocol"]

_RESERVED_FILES = 256  # for databases, what is listened on, and connections that are just being accepted


class Door:
    """Open connections of one process.

    When there is no room for a newcomer, who has been waited for longest makes some: of the newcomer's own address if
    that has too many, else of the address that has most. So a thousand requests that never end keep nobody else out.
    Who is being answered is left alone.

    Parameters
    ----------
    per_address : int
        Connections of one address.
    trusted : sequence of str
        Addresses and networks of proxies, which may have any number.
    """

    def __init__(self, *, per_address: int, trusted: Sequence[str] = ()) -> None:
        self._per_address, self._trusted = per_address, Networks(trusted)
        self._of: dict[str, dict[PromptProtocol, None]] = {}  # the oldest first
        self._homes: dict[PromptProtocol, str] = {}

    def __len__(self) -> int:
        return len(self._homes)

    def enter(self, guest: PromptProtocol, host: str) -> None:
        """Count a connection; perhaps another one is closed for it, or it itself."""
        home = network_of(host)
        own = self._of.setdefault(home, {})
        own[guest], self._homes[guest] = None, home
        if len(own) > self._per_address and host not in self._trusted:
            self._make_room(own, guest)
        elif len(self._homes) > most_connections():
            self._make_room(self._of[max(self._of, key=self._held)], guest)

    def leave(self, guest: PromptProtocol) -> None:
        """Count it no more; nothing happens if it was turned out."""
        home = self._homes.pop(guest, None)
        if home is None:
            return
        del self._of[home][guest]
        if not self._of[home]:
            del self._of[home]

    def _held(self, home: str) -> int:
        return len(self._of[home])

    def _make_room(self, among: Iterable[PromptProtocol], newcomer: PromptProtocol) -> None:
        out = next((one for one in among if one is not newcomer and one.owes), newcomer)
        self.leave(out)
        out.turn_out()


def most_connections() -> int:
    """Connections that leave enough of the open files this process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 20
    return max(limit - _RESERVED_FILES, limit // 2)


class PromptProtocol(H11Protocol):
    """HTTP/1.1 without Nagle's delay, and with an end to waiting.

    Asyncio turns the delay off for sockets it makes itself, but several worker processes share one that uvicorn made:
    there the body of each answer would wait some 40 ms for the client to acknowledge the headers.

    Uvicorn waits for ever for the rest of a request's head, and for what is left of a body that nobody reads any more.
    Here a whole head must come in some seconds from when the connection was opened or the last answer was given. The
    body of a request that is being answered has the time that its reader gives it.

    Parameters
    ----------
    door : Door
        Of all connections of this process.
    head_seconds : float
    """

    def __init__(self, *args: Any, door: Door, head_seconds: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._door, self._head_seconds = door, head_seconds
        self._patience: asyncio.TimerHandle | None = None

    @property
    def owes(self) -> bool:
        """Whether the next step is the client's."""
        return self._asks_nothing or self.cycle.more_body

    def turn_out(self) -> None:
        """Close at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._wait()
        self._door.enter(self, self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        """End it."""
        self._door.leave(self)
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        if self._asks_nothing:
            self._wait()  # not anew: what comes drop by drop is not waited for longer
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        super().on_response_complete()
        if self._asks_nothing and not self.transport.is_closing():
            self._wait()

    @property
    def _asks_nothing(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self._head_seconds, self.turn_out)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
