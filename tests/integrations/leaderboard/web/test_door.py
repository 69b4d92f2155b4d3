"""Connections that are kept open or closed, and proxies that are trusted."""

import contextlib
import functools
import re
import resource
import socket
import ssl
import subprocess

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served_by_processes
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web import door as door_module
from reusable_holdout_leaderboard.web.door import Door, Networks

from reusable_holdout.errors import InputError

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


def test_an_address_with_too_many_connections_loses_the_one_that_has_kept_the_server_waiting_longest():
    door = Door(per_address=3)
    busy, *idle = [Guest(owes=False), Guest(), Guest(), Guest()]
    other = Guest()
    door.enter(other, "192.0.2.9")
    for guest in (busy, *idle):
        door.enter(guest, "192.0.2.1")
    assert [one.out for one in (other, busy, *idle)] == [False, False, True, False, False]
    assert len(door) == 4


def test_a_new_connection_is_closed_if_all_others_of_its_address_are_being_answered():
    door = Door(per_address=2)
    guests = [Guest(owes=False) for _ in range(3)]
    for guest in guests:
        door.enter(guest, "192.0.2.1")
    assert [one.out for one in guests] == [False, False, True]


def test_networks_of_ipv6_customers_count_as_one_address():
    door = Door(per_address=1)
    guests = [Guest(), Guest()]
    for guest, host in zip(guests, ("2001:db8::1", "2001:db8::2"), strict=True):
        door.enter(guest, host)
    assert [one.out for one in guests] == [True, False]


def test_a_trusted_proxy_may_have_any_number_until_there_is_no_room(monkeypatch):
    monkeypatch.setattr(door_module, "most_connections", lambda: 4)
    door = Door(per_address=1, trusted=["10.0.0.0/8"])
    guests = [Guest() for _ in range(5)]
    for guest in guests:
        door.enter(guest, "10.1.2.3")
    assert [one.out for one in guests] == [True, False, False, False, False]


def test_without_room_the_address_with_most_connections_loses_one(monkeypatch):
    monkeypatch.setattr(door_module, "most_connections", lambda: 3)
    door = Door(per_address=10)
    many, few, newcomer = [Guest(), Guest()], Guest(), Guest()
    door.enter(few, "192.0.2.1")
    for guest in many:
        door.enter(guest, "192.0.2.2")
    door.enter(newcomer, "192.0.2.3")
    assert [one.out for one in (few, *many, newcomer)] == [False, True, False, False]


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


def test_a_form_that_does_not_arrive_in_time_is_not_waited_for(serve):
    site = serve(settings={"head_seconds": SOON})
    with connected(site, half_body(site)) as connection:
        assert told(connection, b"\r\n").startswith(b"HTTP/1.1 408")


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


def test_addresses_and_networks_are_trusted_as_stated():
    trusted = Networks(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"])
    for host in ("127.0.0.1", "10.200.1.1", "2001:db8::7"):
        assert host in trusted
        assert host in trusted
    for host in ("127.0.0.2", "11.0.0.1", "testclient", "", "2001:db9::"):
        assert host not in trusted


@pytest.mark.parametrize("stated", ["*", "proxy.example", "10.0.0.0/99", ""])
def test_a_proxy_is_an_address_or_a_network(tmp_path, stated):
    with pytest.raises(InputError, match="a trusted proxy must be an IP address or a network"):
        Settings(folder=tmp_path, trusted_proxies=(stated,))


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


def test_a_server_may_serve_https_itself(make_competition, folder, key_file, tmp_path):
    make_competition()
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    told = f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run(["openssl", *asked.split(), *told.split()], check=True, capture_output=True)
    settings = Settings(folder=folder, key_file=key_file)
    tls = {"tls_certificate": str(certificate), "tls_key": str(key)}
    with served_by_processes(settings, tmp_path / "server", workers=1, **tls) as (url, _):
        page = get(f"{url}/c/demo", verify=ssl.create_default_context(cafile=certificate))
        assert url.startswith("https://")
        assert page.status_code == 200
        assert "Secure" in page.headers["set-cookie"]
