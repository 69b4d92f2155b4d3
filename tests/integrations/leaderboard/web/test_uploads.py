"""Bodies: the server knows the sender first, and reads up to the limit of the route then."""

import contextlib
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from board_servers import ADMIN, PATIENCE_SECONDS
from reusable_holdout_leaderboard.actions import ACTIONS
from reusable_holdout_leaderboard.web.intake import Intake
from starlette import formparsers
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

CONNECTIONS, LARGEST = 90, 2 << 20
MOST = 50 << 20  # of all of them together
FORMS = [name for name in ACTIONS if name not in {"status", "change"}]
PAGES = ["submit", "login", "logout", "join", "team/picks"]
PAGES += [f"organise/{name}" for name in ("login", "logout", "change", *FORMS)]


@pytest.fixture
def site(serve):
    settings = {"max_body_bytes": LARGEST + 4096, "newcomers_per_minute": 0}
    return serve(sign_up="open", most_teams=200, settings=settings)


@pytest.fixture
def taken(monkeypatch):
    """Count the bytes of bodies that the application took, and those that it spooled to memory or a file."""
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


def keys_of(site):
    """Return the cookie of a visitor, and the keys of the forms of teams and organisers."""
    client = site.client(pages=True)
    pages = [client.get(f"/c/demo/{name}").text for name in ("login", "organise")]
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return cookie, [re.search(r"\?form=(\w+)", page).group(1) for page in pages]


def head_of(path, length, *, cookie="", key="", kind="multipart/form-data; boundary=x", method="POST"):
    lines = [f"{method} {path}{f'?form={key}' * bool(key)} HTTP/1.1", "Host: x", f"Content-Length: {length}"]
    lines += [f"Content-Type: {kind}", f"Cookie: {cookie}"]
    return "\r\n".join([*lines, "", ""]).encode()


def form_of(size, name="file"):
    """Return a form with a file of some size."""
    head = f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="a.csv"\r\n\r\n'.encode()
    return head + b"7" * size + b"\r\n--x--\r\n"


def connect(site):
    return socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE_SECONDS)


def status_of(site, head, body):
    """Return the status of a request that is sent as far as the server takes it; None if the server hangs up."""
    with connect(site) as connection:
        connection.sendall(head)
        with contextlib.suppress(OSError):
            connection.sendall(body)
        with contextlib.suppress(OSError):
            return int(connection.recv(64).split()[1])
    return None


@pytest.mark.parametrize("may_have_forms", [False, True], ids=["without a form", "with a form's key"])
def test_ninety_anonymous_uploads_of_the_largest_form_are_not_read(site, taken, may_have_forms):
    body = form_of(LARGEST)
    cookie, (key, organisers) = keys_of(site) if may_have_forms else ("", ("", ""))
    heads = [
        head_of(
            f"/c/demo/{page}", len(body), cookie=cookie, key=organisers if page.startswith("org") else key
        )
        for page in PAGES
    ]
    taken.update(read=0, spooled=0)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        numbers = range(CONNECTIONS)
        statuses = set(pool.map(lambda number: status_of(site, heads[number % len(heads)], body), numbers))
    assert taken["read"] + taken["spooled"] < MOST
    assert taken["spooled"] == 0
    assert statuses <= {401, 403, 413, 429, 303, None}
    assert site.competition.teams() == []
    assert site.public.get("/status").status_code == 200


def test_a_file_in_a_form_without_files_is_refused_before_it_is_stored(site, taken):
    cookie, (key, organisers) = keys_of(site)
    body = form_of(1000)
    for path, own in (("login", key), ("join", key), ("organise/login", organisers)):
        assert status_of(site, head_of(f"/c/demo/{path}", len(body), cookie=cookie, key=own), body) == 400
    assert taken["spooled"] == 0


def bodies_of(site):
    """Return every address that takes a body, with its method."""
    paths = site.public.get("/openapi.json").json()["paths"]
    routes = [
        (path, method) for path, of in paths.items() for method, one in of.items() if "requestBody" in one
    ]
    pages = [one for one in site.server.app.router.routes if type(one) is Route]
    routes += [(one.path, method) for one in pages for method in one.methods or () if method == "POST"]
    filled = {"slug": "demo", "name": "x"}
    routes = [(path, action, method) for path, method in routes for action in FORMS if action]
    return sorted({(path.format(action=action, **filled), method.upper()) for path, action, method in routes})


def test_no_address_waits_for_a_strangers_large_body(site):
    cookie, (key, organisers) = keys_of(site)
    asked = bodies_of(site)
    assert {path for path, _ in asked if "/api/" not in path} == {f"/c/demo/{page}" for page in PAGES}
    assert len(asked) > 40
    for path, method in asked:
        own = organisers if "/organise" in path else key
        kind = "application/json" if "/api/" in path else "multipart/form-data; boundary=x"
        with connect(site) as connection:
            connection.sendall(head_of(path, LARGEST, cookie=cookie, key=own, kind=kind, method=method))
            status = int(connection.recv(64).split()[1])
        logs_out = path.endswith("/logout")
        assert status in ({303} if logs_out else {401, 413}), path


@pytest.mark.parametrize(
    ("who", "path"), [("team", "submit"), ("organiser", "organise/attach"), ("organiser", "organise/rotate")]
)
def test_a_few_large_forms_of_a_sender_are_in_memory_and_the_others_wait(site, monkeypatch, who, path):
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
    page, login, token = ("login", "login", site.token)
    if who == "organiser":
        page, login, token = ("organise", "organise/login", ADMIN)
    client = site.client(pages=True)
    client.follow_redirects = True
    key = re.search(r"\?form=(\w+)", client.get(f"/c/demo/{page}").text).group(1)
    inside = client.post(f"/c/demo/{login}", params={"form": key}, data={"token": token})
    key = re.search(rf'{path}\?form=(\w+)"', inside.text).group(1)
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    body = form_of(1000)
    head = head_of(f"/c/demo/{path}", len(body), cookie=cookie, key=key)
    with contextlib.ExitStack() as held:
        connections = [held.enter_context(connect(site)) for _ in range(20)]
        for one in connections:
            one.sendall(head + body[:-20])
        assert room.wait(PATIENCE_SECONDS)
        for one in connections:
            one.sendall(body[-20:])
        for one in connections:
            assert one.recv(64).startswith(b"HTTP/1.1 ")
    assert most[0] == 4


@pytest.mark.parametrize("page", [False, True], ids=["API", "page"])
def test_sign_ups_are_limited_by_address_and_in_total(serve, page):
    settings = {"newcomers_per_minute": 2, "trusted_proxies": ("127.0.0.1",)}
    site = serve(sign_up="open", most_teams=200, settings=settings)
    cookie, (key, _) = keys_of(site)

    def sign_up(number, address):
        headers = {"X-Forwarded-For": f"192.0.2.{address}"}
        if page:
            sent = {"params": {"form": key}, "data": {"name": f"Number {number} {page}"}}
            sent["headers"] = headers | {"Cookie": cookie}
            return httpx.post(f"{site.url}/c/demo/join", timeout=PATIENCE_SECONDS, **sent).status_code
        return site.public.post("/teams", json={"name": f"Number {number}"}, headers=headers).status_code

    assert [sign_up(number, 1) for number in range(3)] == [201, 201, 429]
    assert {sign_up(number, number) for number in range(3, 80)} == {201, 429}  # twenty a minute in all
    assert 20 <= len(site.competition.teams()) < 79
