"""The door of a server: every connection, request and response passes it."""

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
    """Addresses whose forwarding headers are believed.

    Parameters
    ----------
    stated : sequence of str
        IP addresses and networks.

    Raises
    ------
    ValueError
        If one is neither.
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
    """Return an IPv4 address itself, and of IPv6 the network of 64 bits, which belongs to one customer."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def address_of(request: Request) -> str:
    """Return the address that a request is counted to; uvicorn believes forwarding headers of trusted proxies alone."""
    return _network_of(request.client.host if request.client else "")


class Rates:
    """Rate limits of many senders; each has a bucket that refills steadily.

    They belong to one process, so several workers together allow several times as much. The buckets that were used
    least recently are forgotten, so memory is bounded.

    Parameters
    ----------
    per_minute : int
        0 for any number.
    burst : float, optional
        Size of a bucket; a quarter of a minute's worth by default.
    most : int
        Number of buckets that are kept.
    clock : callable
        Seconds.
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
        """Take one from a bucket.

        Raises
        ------
        Problem
            429, with the time to wait.
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
    """Open connections of one process.

    If there is no room for a new connection, the one that has kept the server waiting longest is closed: of the same
    address if that has too many, otherwise of the address that has most. So requests that never end keep nobody out.
    Connections that are being answered are left alone.

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
        """Count a connection; this may close another one, or the new one itself."""
        home = _network_of(host)
        own = self._of.setdefault(home, {})
        own[guest], self._homes[guest] = None, home
        if len(own) > self._per_address and host not in self._trusted:
            self._make_room(own, guest)
        elif len(self._homes) > most_connections():
            self._make_room(self._of[max(self._of, key=lambda one: len(self._of[one]))], guest)

    def leave(self, guest: PromptProtocol) -> None:
        """Stop counting a connection."""
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
    """Return the number of connections that leaves enough open files for everything else."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 20
    return max(limit - _RESERVED_FILES, limit // 2)


class PromptProtocol(H11Protocol):
    """HTTP/1.1 without Nagle's delay, and with a limit on waiting.

    Asyncio turns the delay off for sockets that it makes itself, but several workers share one that uvicorn made. There
    the body of each answer would wait about 40 ms for the client to acknowledge the headers.

    Uvicorn waits for ever for the rest of a request's head, and for the rest of a body that nobody reads. Here a whole
    head must arrive within some seconds after the connection was opened or the last answer was given. The body of a
    request that is being answered has the time that its reader gives it.

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
        """True if the next step is the client's."""
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
        """Take the next bytes."""
        super().data_received(data)
        if self._asks_nothing:
            self._wait()  # the timer is not restarted, so slow drops do not extend it
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
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
    """Middleware that counts requests, limits bodies, adds headers, and gives every failure one constant answer.

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
            # a trusted proxy that names no client is not counted
            if request.client is None or request.client.host not in self._proxies:
                self._rates.take(address_of(request))
            self._check_length(request.headers.get("content-length"))
            await self._app(scope, exchange.receive, exchange.send)
            problem = _too_large(self._most) if exchange.too_large else None
        except Problem as found:
            problem = found
        except Exception as error:  # a mistake of the server; errors of the library became answers before
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
    """One request and its response."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._left = receive, send, most
        self._started = False
        self.too_large = False

    async def receive(self) -> Message:
        """Return the next part of the body; after too much of it, the client seems to have gone."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.too_large = self.too_large or self._left < 0
        return {"type": "http.disconnect"} if self.too_large else message

    async def send(self, message: Message) -> None:
        """Send the next part of the response, with all headers."""
        if self.too_large and not self._started:
            return
        if message["type"] == "http.response.start":
            self._started = True
            known = {name.lower() for name, _ in message["headers"]}
            more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message["headers"], *(one for one in more if one[0] not in known)]
        await self._send(message)

    async def refuse(self, problem: Problem, scope: Scope) -> None:
        """Answer with an error, if nothing was answered yet."""
        if self._started:
            return
        self.too_large = False
        # the rest of the body is not waited for
        headers = problem.headers | ({"Connection": "close"} if problem.status in {400, 413} else {})
        await JSONResponse(problem.as_dict(), problem.status, headers)(scope, self._receive, self.send)


def _too_large(most: int) -> Problem:
    return Problem(413, "too_large", f"a request must be at most {most:,} bytes; nothing was asked")


def _where(error: BaseException) -> str:
    """Return the kind and place of a failure; its message is withheld, because it may quote anything."""
    trace, place = error.__traceback__, "unknown"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith("reusable_holdout_leaderboard"):
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"
