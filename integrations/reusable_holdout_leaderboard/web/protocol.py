"""HTTP over connections that send at once."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["PromptProtocol"]


class PromptProtocol(H11Protocol):
    """HTTP/1.1 without Nagle's delay.

    Asyncio turns it off for sockets it makes itself, but several worker processes share one that uvicorn made: there
    the body of each answer would wait some 40 ms for the client to acknowledge the headers.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
