"""The outer layer of a server: limits on connections, requests and bodies, and headers of all responses."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.problems import Problem, problem_of

__all__ = ["Boundary", "Door", "Networks", "PromptProtocol", "Rates", "address_of"]

_LOG = logging.getLogger("reusable_holdout_leaderboard")
_RESERVED_FILES = 256  # for databases, listening sockets, and connections that are being accepted
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


# ---- addresses and rates


class Networks:
    """A set of addresses and networks, such as those of proxies whose forwarding headers are believed.

    Parameters
    ----------
    stated : sequence of str
        IP addresses and networks.

    Raises
    ------
    ValueError
        If a text is neither an address nor a network.
    """

    def __init__(self, stated: Sequence[str]) -> None:
        self._all = [ipaddress.ip_network(one, strict=False) for one in stated]
        self._known: dict[str, bool] = {}

    def __contains__(self, host: str) -> bool:
        known = self._known.get(host)
        if known is None:
            try:
                address = ipaddress.ip_address(host)
            except ValueError:
                return False
            known = any(address in one for one in self._all)
            if len(self._known) < 10_000:
                self._known[host] = known
        return known


def _network_of(host: str) -> str:
    """Return an IPv4 address unchanged, and for an IPv6 address its /64 network, which belongs to one customer."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def address_of(request: Request) -> str:
    """Return the address under which a request is counted.

    Uvicorn has already replaced the address of a trusted proxy by the one that the proxy forwards.
    """
    return _network_of(request.client.host if request.client else "")


class Rates:
    """Rate limits for many senders. Each sender has a bucket of tokens, which refills steadily.

    The buckets belong to one process, so several workers together allow several times as many requests. Only a limited
    number of buckets is kept; the buckets that were used least recently are deleted.

    Parameters
    ----------
    per_minute : int
        Number of requests that a sender may make in a minute. 0 for any number.
    burst : float, optional
        Number of requests that a sender may make at once. By default, a quarter of `per_minute`.
    most : int
        Number of buckets that are kept.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        burst: float | None = None,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._size = per_minute / 60, max(1.0, per_minute / 4 if burst is None else burst)
        self._most, self._clock, self._lock = most, clock, Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Count one request of a sender.

        Raises
        ------
        Problem
            429, with the time to wait, if the sender has made too many requests.
        """
        if not self._rate:
            return
        now = self._clock()
        with self._lock:
            left, before = self._buckets.pop(key, (self._size, now))
            left = min(self._size, left + (now - before) * self._rate)
            enough = left >= 1.0
            self._buckets[key] = (left - 1.0 if enough else left, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        if not enough:
            seconds = int((1.0 - left) / self._rate) + 1
            raise Problem(
                429,
                "rate",
                f"too many requests; nothing was asked and nothing was charged; wait {seconds} s",
                headers={"Retry-After": str(seconds)},
            )


# ---- connections


class Door:
    """The open connections of one process.

    If there are too many connections, the oldest one whose client keeps the server waiting is closed. It is one of the
    new connection's address if that address has too many, otherwise one of the address with the most connections. So
    clients that never finish their requests cannot keep others out. Connections that are being answered stay open.

    Parameters
    ----------
    per_address : int
        Largest number of connections from one address.
    trusted : sequence of str
        Addresses and networks of proxies, which may have any number of connections.
    """

    def __init__(self, *, per_address: int, trusted: Sequence[str] = ()) -> None:
        self._per_address, self._trusted = per_address, Networks(trusted)
        self._of: dict[str, dict[PromptProtocol, None]] = {}  # the oldest first
        self._homes: dict[PromptProtocol, str] = {}

    def __len__(self) -> int:
        return len(self._homes)

    def enter(self, guest: PromptProtocol, host: str) -> None:
        """Add a new connection. If there are too many then, another one or the new one itself is closed."""
        home = _network_of(host)
        own = self._of.setdefault(home, {})
        own[guest], self._homes[guest] = None, home
        if len(own) > self._per_address and host not in self._trusted:
            self._make_room(own, guest)
        elif len(self._homes) > most_connections():
            self._make_room(self._of[max(self._of, key=lambda one: len(self._of[one]))], guest)

    def leave(self, guest: PromptProtocol) -> None:
        """Remove a connection that has ended."""
        home = self._homes.pop(guest, None)
        if home is None:
            return
        del self._of[home][guest]
        if not self._of[home]:
            del self._of[home]

    def _make_room(self, among: Iterable[PromptProtocol], newcomer: PromptProtocol) -> None:
        out = next((one for one in among if one is not newcomer and one.owes), newcomer)
        self.leave(out)
        out.turn_out()


def most_connections() -> int:
    """Return the largest number of connections that still leaves enough open files for everything else."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 20
    return max(limit - _RESERVED_FILES, limit // 2)


class PromptProtocol(H11Protocol):
    """The HTTP/1.1 protocol of uvicorn, without Nagle's delay and with a time limit for the head of a request.

    Asyncio turns Nagle's delay off for sockets that it makes itself. But several workers share one socket that uvicorn
    made, on which the body of each answer would wait about 40 ms for the client to acknowledge the headers.

    Uvicorn has no time limit for the rest of a request's head, nor for the rest of a body that nobody reads. Here, the
    whole head must arrive within `head_seconds` after the connection was opened or the last answer was given. For the
    body of a request, its reader sets the time limit.

    Parameters
    ----------
    door : Door
        All connections of this process.
    head_seconds : float
        Longest time for the head of a request to arrive.
    """

    def __init__(self, *args: Any, door: Door, head_seconds: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._door, self._head_seconds = door, head_seconds
        self._patience: asyncio.TimerHandle | None = None

    @property
    def owes(self) -> bool:
        """True if the server is waiting for the client."""
        return self._asks_nothing or self.cycle.more_body

    def turn_out(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Set up a new connection, and start its time limit."""
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._wait()
        self._door.enter(self, self.client[0] if self.client else "")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended."""
        self._door.leave(self)
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the next bytes from the client."""
        super().data_received(data)
        if self._asks_nothing:
            self._wait()  # a running timer is not restarted, so a client that sends slowly gains no time
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Start the time limit for the next request."""
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


# ---- requests and responses


class Boundary:
    """Middleware that limits requests and bodies, adds headers, and answers every failure with a constant message.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._most = app, settings.max_body_bytes
        self._proxies, self._rates = Networks(settings.trusted_proxies), Rates(settings.requests_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - of ASGI
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange, request = _Exchange(receive, send, self._most), Request(scope)
        try:
            # requests of a trusted proxy that forwards no client's address are not counted
            if request.client is None or request.client.host not in self._proxies:
                self._rates.take(address_of(request))
            self._check_length(request.headers.get("content-length"))
            await self._app(scope, exchange.receive, exchange.send)
            problem = _too_large(self._most) if exchange.too_large else None
        except Problem as found:
            problem = found
        except Exception as error:  # a defect of the server; the library's exceptions were handled before
            _LOG.error("a request failed inside the server: %s %s", scope["method"], _where(error))
            problem = problem_of(error)
        if problem is not None:
            await exchange.refuse(problem, scope)

    def _check_length(self, stated: str | None) -> None:
        if stated is not None and not (stated.isascii() and stated.isdigit() and len(stated) < 20):
            raise Problem(400, "bad_request", "Content-Length must be a whole number")
        if stated is not None and int(stated) > self._most:
            raise _too_large(self._most)


class _Exchange:
    """One request and its response, with a limit on the size of the body."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._left = receive, send, most
        self._started = False
        self.too_large = False

    async def receive(self) -> Message:
        """Return the next part of the body. When the body is too large, report that the client has disconnected."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.too_large = self.too_large or self._left < 0
        return {"type": "http.disconnect"} if self.too_large else message

    async def send(self, message: Message) -> None:
        """Send the next part of the response, and add the security headers to its first part."""
        if self.too_large and not self._started:
            return
        if message["type"] == "http.response.start":
            self._started = True
            known = {name.lower() for name, _ in message["headers"]}
            more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message["headers"], *(one for one in more if one[0] not in known)]
        await self._send(message)

    async def refuse(self, problem: Problem, scope: Scope) -> None:
        """Send an error as the response, if no response was begun yet."""
        if self._started:
            return
        self.too_large = False
        # the server does not wait for the rest of the body
        headers = problem.headers | ({"Connection": "close"} if problem.status in {400, 413} else {})
        await JSONResponse(problem.as_dict(), problem.status, headers)(scope, self._receive, self.send)


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"a request must be at most {most:,} bytes; nothing was asked")


def _where(error: BaseException) -> str:
    """Return the class of an exception and the line that raised it. Its message is left out: it may quote anything."""
    trace, place = error.__traceback__, "unknown"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith("reusable_holdout_leaderboard"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"
