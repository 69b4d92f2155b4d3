"""HTTP over connections that send at once, and are not waited for for ever."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from reusable_holdout_leaderboard.web.door import Door

__all__ = ["PromptProtocol"]


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
