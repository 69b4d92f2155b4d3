"""Bodies: first it is known who sends one, then it is read, up to the limit of its route."""

import contextlib
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.requests import Intake
from starlette import formparsers
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

ADMIN = "rh_administrator"
CONNECTIONS, LARGEST = 90, 2 << 20
MOST = 50 << 20  # of all of them together
PAGES = (
    "submit",
    "login",
    "logout",
    "join",
    "team/picks",
    "organise/login",
    "organise/logout",
    "organise/rules",
)
PAGES += ("organise/files", "organise/files/remove", "organise/invitation", "organise/teams/rename")
PAGES += ("organise/teams/merge", "organise/teams/disqualify")


@pytest.fixture
def serve(make_competition, folder, key_file):
    with contextlib.ExitStack() as running:

        def start(**settings):
            competition = make_competition(sign_up="open", most_teams=200)
            given = {"folder": folder, "key_file": key_file, "answer_seconds": 0.0}
            given |= {"admin_digest": digest_of(ADMIN).hex(), "max_body_bytes": LARGEST + 4096}
            return running.enter_context(served(Settings(**(given | settings)))), competition

        yield start


@pytest.fixture
def taken(monkeypatch):
    """Bytes that the application took of bodies, and bytes that were spooled: to memory first, then to a file."""
    counts, lock = {"read": 0, "spooled": 0}, threading.Lock()
    receive, spool = RequestResponseCycle.receive, formparsers.SpooledTemporaryFile

    async def counted(self):
        message = await receive(self)
        with lock:
            counts["read"] += len(message.get("body", b""))
        return message

    class Counted(spool):
        def write(self, content):
            with lock:
                counts["spooled"] += len(content)
            return super().write(content)

    monkeypatch.setattr(RequestResponseCycle, "receive", counted)
    monkeypatch.setattr(formparsers, "SpooledTemporaryFile", Counted)
    return counts


def keys(server):
    """Cookie of a visitor who may have any form, and what stands in the address of each scope's forms."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        pages = [client.get(f"/c/demo/{name}").text for name in ("login", "organise")]
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return cookie, [re.search(r"\?form=(\w+)", page).group(1) for page in pages]


def head_of(path, length, *, cookie="", key="", kind="multipart/form-data; boundary=x", method="POST"):
    lines = [f"{method} {path}{f'?form={key}' * bool(key)} HTTP/1.1", "Host: x", f"Content-Length: {length}"]
    lines += [f"Content-Type: {kind}", f"Cookie: {cookie}"]
    return "\r\n".join([*lines, "", ""]).encode()


def form_of(size):
    """The largest form: a file of this size."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    return head + b"7" * size + b"\r\n--x--\r\n"


def sent(server, head, body):
    """Status of the answer to a request that is sent as far as the server takes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(head)
        with contextlib.suppress(OSError):  # it may hang up before we are done
            connection.sendall(body)
        with contextlib.suppress(OSError):
            return int(connection.recv(64).split()[1])
    return None


@pytest.mark.parametrize("may_have_forms", [False, True], ids=["without a form", "with a form's key"])
def test_ninety_anonymous_uploads_of_the_largest_form_are_not_read(serve, taken, may_have_forms):
    server, competition = serve()
    body = form_of(LARGEST)
    cookie, (key, organisers) = keys(server) if may_have_forms else ("", ("", ""))
    heads = [
        head_of(
            f"/c/demo/{page}", len(body), cookie=cookie, key=organisers if page.startswith("org") else key
        )
        for page in PAGES
    ]
    taken.update(read=0, spooled=0)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        told = pool.map(lambda number: sent(server, heads[number % len(heads)], body), range(CONNECTIONS))
        statuses = set(told)
    assert taken["read"] + taken["spooled"] < MOST
    assert taken["spooled"] == 0
    assert statuses <= {401, 403, 413, 429, 303, None}
    assert competition.teams() == []
    assert httpx.get(f"{server.url}/api/v1/status", timeout=PATIENCE_SECONDS).status_code == 200


def test_a_file_in_a_form_that_needs_none_is_refused_before_it_is_kept(serve, taken):
    server, _ = serve()
    cookie, (key, organisers) = keys(server)
    body = form_of(1000)
    for path, own in (("login", key), ("join", key), ("organise/login", organisers)):
        assert sent(server, head_of(f"/c/demo/{path}", len(body), cookie=cookie, key=own), body) == 400
    assert taken["spooled"] == 0


def bodies_of(server):
    """Every address that takes a body, with its method."""
    paths = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=PATIENCE_SECONDS).json()["paths"]
    routes = [(path, method) for path, of in paths.items() for method in of]
    pages = [one for one in server.app.router.routes if type(one) is Route]
    routes += [(one.path, method) for one in pages for method in one.methods or ()]
    filled = {(path.format(slug="demo", name="x", team_id=1), method.upper()) for path, method in routes}
    return sorted(one for one in filled if one[1] not in {"GET", "HEAD"})


def test_no_address_waits_for_the_body_of_a_stranger_that_is_large(serve):
    server, _ = serve(newcomers_per_minute=0)
    cookie, (key, organisers) = keys(server)
    asked = bodies_of(server)
    assert len([path for path, _ in asked if "/api/" not in path]) == len(PAGES)
    assert len(asked) > 40
    for path, method in asked:
        own = organisers if "/organise" in path else key
        kind = "application/json" if "/api/" in path else "multipart/form-data; boundary=x"
        head = head_of(path, LARGEST, cookie=cookie, key=own, kind=kind, method=method)
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(head)
            status = int(connection.recv(64).split()[1])
        logs_out = path.endswith("/logout") and "/api/" not in path
        assert status in ({303} if logs_out else {401, 413}), path


@pytest.mark.parametrize("who", ["team", "organiser"])
def test_of_one_sender_a_few_large_forms_are_in_memory_and_the_others_wait(
    serve, monkeypatch, who, labels_file
):
    server, competition = serve()
    now, most, lock, room = [0], [0], threading.Lock(), threading.Event()
    read = Intake.form

    async def counted(self, request, sender, *, files=0):
        if not files:
            return await read(self, request, sender, files=files)
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
            if now[0] >= 4:
                room.set()
        try:
            return await read(self, request, sender, files=files)
        finally:
            with lock:
                now[0] -= 1

    monkeypatch.setattr(Intake, "form", counted)
    token, login, path = (
        (competition.add_team("Blue"), "login", "submit")
        if who == "team"
        else (ADMIN, "organise/login", "organise/files")
    )
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, follow_redirects=True) as client:
        page = "/c/demo/organise" if who == "organiser" else "/c/demo/login"
        key = re.search(r"\?form=(\w+)", client.get(page).text).group(1)
        inside = client.post(f"/c/demo/{login}", params={"form": key}, data={"token": token})
        key = re.search(rf'{path}\?form=(\w+)"', inside.text).group(1)
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    body = form_of(1000)
    head = head_of(f"/c/demo/{path}", len(body), cookie=cookie, key=key)
    with contextlib.ExitStack() as held:
        connections = [
            held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS))
            for _ in range(20)
        ]
        for one in connections:
            one.sendall(head + body[:-20])
        assert room.wait(PATIENCE_SECONDS)
        for one in connections:
            one.sendall(body[-20:])
        for one in connections:
            assert one.recv(64).startswith(b"HTTP/1.1 ")
    assert most[0] == 4


@pytest.mark.parametrize("page", [False, True], ids=["API", "page"])
def test_sign_ups_are_limited_by_address_and_by_total(serve, page):
    server, competition = serve(newcomers_per_minute=2, trusted_proxies=("127.0.0.1",))
    cookie, (key, _) = keys(server)

    def sign_up(number, address):
        headers = {"X-Forwarded-For": f"192.0.2.{address}"}
        if page:
            sent = {"params": {"form": key}, "data": {"name": f"Number {number} {page}"}}
            sent["headers"] = headers | {"Cookie": cookie}
            return httpx.post(f"{server.url}/c/demo/join", timeout=PATIENCE_SECONDS, **sent).status_code
        sent = {"json": {"name": f"Number {number}"}, "headers": headers}
        return httpx.post(f"{server.url}/api/v1/teams", timeout=PATIENCE_SECONDS, **sent).status_code

    assert [sign_up(number, 1) for number in range(3)] == [201, 201, 429]
    assert {sign_up(number, number) for number in range(3, 80)} == {201, 429}  # twenty a minute in all
    assert 20 <= len(competition.teams()) < 79
