"""Who may hold a connection open, for how long, and whose word is taken for whom he asks."""

import contextlib
import functools
import re
import resource
import socket
import ssl
import subprocess

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web import door as door_module
from reusable_holdout_leaderboard.web.door import Door
from reusable_holdout_leaderboard.web.security import Networks

from reusable_holdout.errors import InputError

get = functools.partial(httpx.get, timeout=PATIENCE_SECONDS)
SOON = 0.5  # seconds: what is sent at once comes before, also on busy cores
HALF_HEAD = b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def serve(make_competition, folder, key_file):
    with contextlib.ExitStack() as running:

        def start(*, root_path="", **changes):
            competition = make_competition()
            given = {"folder": folder, "key_file": key_file, "answer_seconds": 0.0}
            server = running.enter_context(served(Settings(**(given | changes)), root_path=root_path))
            return server, competition

        yield start


class Guest:
    def __init__(self, *, owes=True):
        self.owes, self.out = owes, False

    def turn_out(self):
        self.out = True


def half_body(server):
    """Half a form of a browser that was sent the form."""
    page = get(f"{server.url}/c/demo/login")
    cookie, key = page.headers["set-cookie"].partition(";")[0], re.search(r"\?form=(\w+)", page.text).group(1)
    return (
        f"POST /c/demo/login?form={key} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken="
    ).encode()


# ---- connections


def test_an_address_with_too_many_connections_loses_the_one_waited_for_longest():
    door = Door(per_address=3)
    busy, *idle = [Guest(owes=False), Guest(), Guest(), Guest()]
    other = Guest()
    door.enter(other, "192.0.2.9")
    for guest in (busy, *idle):
        door.enter(guest, "192.0.2.1")
    assert [one.out for one in (other, busy, *idle)] == [False, False, True, False, False]
    assert len(door) == 4


def test_who_comes_when_all_others_of_his_address_are_being_answered_is_turned_out():
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


def test_where_there_is_no_room_the_address_that_has_most_makes_some(monkeypatch):
    monkeypatch.setattr(door_module, "most_connections", lambda: 3)
    door = Door(per_address=10)
    many, few, newcomer = [Guest(), Guest()], Guest(), Guest()
    door.enter(few, "192.0.2.1")
    for guest in many:
        door.enter(guest, "192.0.2.2")
    door.enter(newcomer, "192.0.2.3")
    assert [one.out for one in (few, *many, newcomer)] == [False, True, False, False]


def test_who_leaves_is_counted_no_more():
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


def connected(server, content, *, source="127.0.0.1"):
    connection = socket.create_connection(
        ("127.0.0.1", server.port), timeout=PATIENCE_SECONDS, source_address=(source, 0)
    )
    connection.sendall(content)
    return connection


def told(connection, words, *, came=b""):
    """What has come when these words have: they may come in pieces, and with what comes after them."""
    for _ in range(1_000):
        if words in came:
            return came
        part = connection.recv(65536)
        assert part, came
        came += part
    raise AssertionError(came)


def rest_of(connection):
    """What comes until the server closes."""
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
def test_a_head_that_does_not_come_is_not_waited_for(serve, sent):
    server, _ = serve(head_seconds=SOON)
    with connected(server, sent) as connection:
        assert rest_of(connection).count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n")


def test_a_head_that_comes_drop_by_drop_is_waited_for_no_longer(serve):
    server, _ = serve(head_seconds=SOON)
    with connected(server, HALF_HEAD) as connection, contextlib.suppress(OSError):
        connection.settimeout(0.02)
        for _ in range(3_000):  # a minute of drops
            connection.sendall(b"X: y\r\n")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    return
        raise AssertionError("it was waited for")


def test_a_body_that_nobody_reads_any_more_is_not_waited_for(serve):
    server, _ = serve(head_seconds=SOON)
    head = b"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"
    with connected(server, head) as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 401")


def test_a_form_that_does_not_come_in_time_is_not_waited_for(serve):
    server, _ = serve(head_seconds=SOON)
    with connected(server, half_body(server)) as connection:
        assert told(connection, b"\r\n").startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("half_of", [lambda _: HALF_HEAD, half_body], ids=["heads", "bodies"])
def test_half_sent_requests_keep_nobody_out(serve, half_of):
    server, _ = serve(connections_per_address=20)
    half = half_of(server)
    with contextlib.ExitStack() as held:
        for number in range(100):
            held.enter_context(connected(server, half, source=f"127.0.0.{2 + number % 5}"))
        assert get(f"{server.url}/api/v1/status").status_code == 200
        with connected(server, HALF_HEAD + b"\r\n", source="127.0.0.2") as another:  # of a busy address
            assert told(another, b"\r\n").startswith(b"HTTP/1.1 200")


def test_event_streams_are_answers_and_are_left_alone(serve):
    server, _ = serve(connections_per_address=2)
    ask = b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
    with contextlib.ExitStack() as held:
        streams = [held.enter_context(connected(server, ask)) for _ in range(2)]
        begun = [told(stream, b"\r\n\r\n") for stream in streams]  # and perhaps news, where they are quick
        assert all(one.startswith(b"HTTP/1.1 200") for one in begun)
        with connected(server, HALF_HEAD) as third:
            assert rest_of(third) == b""
        for stream, came in zip(streams, begun, strict=True):
            told(stream, b"revision", came=came)


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


def status_of(server, **headers):
    return get(f"{server.url}/api/v1/status", headers=headers).status_code


def test_visitors_behind_a_trusted_proxy_have_rates_of_their_own(serve):
    server, _ = serve(requests_per_minute=4, trusted_proxies=("127.0.0.1",))
    for visitor in range(5):
        assert status_of(server, **{"X-Forwarded-For": f"192.0.2.{visitor}"}) == 200
        assert status_of(server, **{"X-Forwarded-For": f"192.0.2.{visitor}"}) == 429


def test_a_visitor_cannot_invent_addresses_before_his_own(serve):
    server, _ = serve(requests_per_minute=4, trusted_proxies=("127.0.0.1", "10.0.0.1"))
    told = [
        status_of(server, **{"X-Forwarded-For": f"198.51.100.{number}, 192.0.2.1, 10.0.0.1"})
        for number in range(2)
    ]
    assert told == [200, 429]


def test_a_trusted_proxy_that_does_not_say_for_whom_is_not_counted(serve):
    server, _ = serve(requests_per_minute=4, trusted_proxies=("127.0.0.1",))
    assert {status_of(server) for _ in range(20)} == {200}


def test_nobody_else_is_believed(serve):
    server, _ = serve(requests_per_minute=4, trusted_proxies=("10.0.0.1",))
    assert [status_of(server, **{"X-Forwarded-For": f"192.0.2.{number}"}) for number in range(2)] == [
        200,
        429,
    ]


@pytest.mark.parametrize("trusted", [(), ("127.0.0.1",)])
def test_who_came_to_the_proxy_by_https_sees_https_and_gets_secure_cookies(serve, trusted):
    server, _ = serve(trusted_proxies=trusted)
    page = get(f"{server.url}/c/demo/rules", headers={"X-Forwarded-Proto": "https", "Host": "board.example"})
    scheme = "https" if trusted else "http"
    assert f"{scheme}://board.example" in page.text
    assert ("Secure" in page.headers["set-cookie"]) == bool(trusted)


def test_a_server_may_be_shown_below_a_path(serve):
    server, _ = serve(root_path="/board")
    page = get(f"{server.url}/c/demo").text  # the proxy has stripped the path
    assert 'href="/board/static/board.css' in page
    assert 'href="/c/demo' not in page
    assert get(f"{server.url}/").headers["location"] == "/board/c/demo"


def test_a_server_may_speak_https_itself(make_competition, folder, key_file, tmp_path):
    from board_servers import served_by_processes

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
