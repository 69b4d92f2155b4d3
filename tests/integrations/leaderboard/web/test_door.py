"""Connections that are kept open or closed, and proxies that are trusted."""

import asyncio
import contextlib
import fcntl
import functools
import os
import re
import resource
import socket
from types import SimpleNamespace

import httpx
import pytest
from board_servers import PATIENCE_SECONDS
from reusable_holdout_leaderboard.web import door as door_module
from reusable_holdout_leaderboard.web.door import Door, PromptProtocol
from reusable_holdout_leaderboard.web.server import clear_away
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

get = functools.partial(httpx.get, timeout=PATIENCE_SECONDS)
SOON = 0.5  # seconds; bytes that are sent at once arrive sooner, also on busy cores
HALF_HEAD = b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n"


class Guest:
    def __init__(self, *, owes=True):
        self.owes, self.out = owes, False

    def turn_out(self):
        self.out = True


def half_body(site):
    """Return half a form of a browser that was sent the form."""
    page = get(f"{site.url}/c/demo/login")
    cookie, key = page.headers["set-cookie"].partition(";")[0], re.search(r"\?form=(\w+)", page.text).group(1)
    return (
        f"POST /c/demo/login?form={key} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken="
    ).encode()


# ---- connections

BUSY, IDLE = False, True


@pytest.mark.parametrize(
    ("per_address", "room", "guests", "closed"),
    [
        # an address with too many loses the connection that has kept the server waiting longest
        (3, 99, [("192.0.2.9", IDLE), ("192.0.2.1", BUSY), *[("192.0.2.1", IDLE)] * 3], [2]),
        (2, 99, [("192.0.2.1", BUSY)] * 3, [2]),  # a new one, if all others are being answered
        (1, 99, [("2001:db8::1", IDLE), ("2001:db8::2", IDLE)], [0]),  # one network of IPv6 is one address
        (1, 4, [("10.1.2.3", IDLE)] * 5, [0]),  # a trusted proxy may have any number while there is room
        # without room the address with most connections loses one
        (9, 3, [("192.0.2.1", IDLE), ("192.0.2.2", IDLE), ("192.0.2.2", IDLE), ("192.0.2.3", IDLE)], [1]),
    ],
)
def test_connections_are_closed_for_new_ones(monkeypatch, per_address, room, guests, closed):
    monkeypatch.setattr(door_module, "most_connections", lambda: room)
    door = Door(per_address=per_address, trusted=["10.0.0.0/8"])
    entered = [Guest(owes=owes) for _, owes in guests]
    for guest, (host, _) in zip(entered, guests, strict=True):
        door.enter(guest, host)
    assert [number for number, guest in enumerate(entered) if guest.out] == closed
    assert len(door) == len(guests) - len(closed)


def test_a_connection_that_has_left_is_not_counted():
    door = Door(per_address=1)
    first, second = Guest(), Guest()
    door.enter(first, "192.0.2.1")
    door.leave(first)
    door.leave(first)
    door.enter(second, "192.0.2.1")
    assert (first.out, second.out, len(door)) == (False, False, 1)


@pytest.mark.parametrize(("limit", "most"), [(1_024, 768), (100, 50), (resource.RLIM_INFINITY, 1_048_320)])
def test_connections_leave_files_for_databases(monkeypatch, limit, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert door_module.most_connections() == most


def test_no_connection_waits_with_the_rest_of_an_answer(monkeypatch, closed_at_the_end):
    begun = []
    monkeypatch.setattr(H11Protocol, "connection_made", lambda self, transport: begun.append(transport))
    config = Config(app=None, log_config=None)
    loop = closed_at_the_end(asyncio.new_event_loop())
    protocol = PromptProtocol(config, ServerState(), {}, loop, door=Door(per_address=1), head_seconds=1.0)
    kinds = [(socket.AF_INET, socket.IPPROTO_TCP), (socket.AF_UNIX, 0)]
    for family, level in kinds:
        with socket.socket(family) as connection:
            transport = SimpleNamespace(get_extra_info={"socket": connection}.get)
            protocol.connection_made(transport)
            assert begun[-1] is transport
            if level:
                assert connection.getsockopt(level, socket.TCP_NODELAY)


# ---- time


def connected(site, content, *, source="127.0.0.1"):
    connection = socket.create_connection(
        ("127.0.0.1", site.port), timeout=PATIENCE_SECONDS, source_address=(source, 0)
    )
    connection.sendall(content)
    return connection


def told(connection, words, *, came=b""):
    """Return everything that has arrived when some words have."""
    for _ in range(1_000):
        if words in came:
            return came
        part = connection.recv(65536)
        assert part, came
        came += part
    raise AssertionError(came)


def rest_of(connection):
    """Return everything that arrives until the server closes."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET", HALF_HEAD, HALF_HEAD + b"\r\n" + HALF_HEAD],
    ids=["nothing", "a word", "half a head", "half a second head"],
)
def test_a_head_that_does_not_arrive_is_not_waited_for(serve, sent):
    site = serve(settings={"head_seconds": SOON})
    with connected(site, sent) as connection:
        assert rest_of(connection).count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n")


def test_a_head_that_arrives_in_drops_is_waited_for_no_longer(serve):
    site = serve(settings={"head_seconds": SOON})
    with connected(site, HALF_HEAD) as connection, contextlib.suppress(OSError):
        connection.settimeout(0.02)
        for _ in range(3_000):  # a minute of drops
            connection.sendall(b"X: y\r\n")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    return
        raise AssertionError("it was waited for")


def test_a_body_that_nobody_reads_is_not_waited_for(serve):
    site = serve(settings={"head_seconds": SOON})
    head = b"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"
    with connected(site, head) as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("half_of", [lambda _: HALF_HEAD, half_body], ids=["heads", "bodies"])
def test_half_sent_requests_keep_nobody_out(serve, half_of):
    site = serve(settings={"connections_per_address": 20})
    half = half_of(site)
    with contextlib.ExitStack() as held:
        for number in range(100):
            held.enter_context(connected(site, half, source=f"127.0.0.{2 + number % 5}"))
        assert get(f"{site.url}/api/v1/status").status_code == 200
        with connected(site, HALF_HEAD + b"\r\n", source="127.0.0.2") as another:  # of a busy address
            assert told(another, b"\r\n").startswith(b"HTTP/1.1 200")


# ---- proxies


@pytest.fixture
def statuses(serve):
    """Return the statuses of requests with these forwarded addresses, four a minute, one at once."""

    def of(trusted, *forwarded):
        site = serve(settings={"requests_per_minute": 4, "trusted_proxies": trusted})
        headers = [{"X-Forwarded-For": one} if one else {} for one in forwarded]
        return [site.public.get("/status", headers=one).status_code for one in headers]

    return of


@pytest.mark.parametrize(
    ("trusted", "forwarded", "found"),
    [
        (("127.0.0.1",), ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"], [200, 429, 200, 429]),
        (  # a visitor cannot invent addresses before its own
            ("127.0.0.1", "10.0.0.1"),
            [f"198.51.100.{number}, 192.0.2.1, 10.0.0.1" for number in range(2)],
            [200, 429],
        ),
        (("127.0.0.1",), [""] * 20, [200] * 20),  # a trusted proxy that names no visitor is not counted
        (("10.0.0.1",), ["192.0.2.1", "192.0.2.2"], [200, 429]),  # nobody else is believed
    ],
)
def test_rates_believe_only_trusted_proxies(statuses, trusted, forwarded, found):
    assert statuses(trusted, *forwarded) == found


@pytest.mark.parametrize("trusted", [(), ("127.0.0.1",)])
def test_a_visitor_by_https_of_a_trusted_proxy_sees_https_and_gets_secure_cookies(serve, trusted):
    site = serve(settings={"trusted_proxies": trusted})
    page = get(f"{site.url}/c/demo/rules", headers={"X-Forwarded-Proto": "https", "Host": "board.example"})
    scheme = "https" if trusted else "http"
    assert f"{scheme}://board.example" in page.text
    assert ("Secure" in page.headers["set-cookie"]) == bool(trusted)


def test_a_server_may_be_shown_below_a_path(serve):
    site = serve(root_path="/board")
    page = get(f"{site.url}/c/demo").text  # the proxy has removed the path
    assert 'href="/board/static/board.css' in page
    assert 'href="/c/demo' not in page
    assert get(f"{site.url}/").headers["location"] == "/board/c/demo"


# ---- files of servers


def test_files_of_dead_servers_are_removed_and_others_stay(tmp_path):
    (tmp_path / "demo").mkdir()
    names = {
        "server-dead.json": False,
        "server-alive.json": True,
        "admin.token": True,
        "admin.token.0123456789abcdef": False,
        "demo/labels-1.parquet": True,
        "demo/labels-1.parquet.0123456789abcdef": False,
        "demo/labels-2.parquet.0123456789abcdef": True,  # just now
    }
    for name in names:
        (tmp_path / name).write_text("x")
        if "labels-2" not in name:
            os.utime(tmp_path / name, (0, 0))
    with (tmp_path / "server-alive.json").open("rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_SH)
        clear_away(tmp_path)
    assert {name: (tmp_path / name).exists() for name in names} == names
