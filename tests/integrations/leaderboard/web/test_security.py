"""What protects a server: tokens, forms, rates, sizes, times, and errors that say nothing."""

import contextlib
import functools
import logging
import socket
from urllib.parse import urlencode

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard import StoreError
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.security import Problem, Rates, Sessions, address_of
from reusable_holdout_leaderboard.web.services import problem_of
from starlette.requests import Request
from starlette.responses import Response

from reusable_holdout.errors import HoldoutError

get, post, request = (
    functools.partial(one, timeout=PATIENCE_SECONDS) for one in (httpx.get, httpx.post, httpx.request)
)

ADMIN = "rh_administrator"


@pytest.fixture
def serve(make_competition, folder, key_file):
    """A served competition: its server, itself, and a team's token."""
    with contextlib.ExitStack() as running:

        def start(**changes):
            competition = make_competition()
            given = {
                "folder": folder,
                "key_file": key_file,
                "admin_digest": digest_of(ADMIN).hex(),
                "answer_seconds": 0.0,
            }
            server = running.enter_context(served(Settings(**(given | changes))))
            return server, competition, competition.add_team("Blue")

        yield start


def error_of(response):
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"code", "message", "details"}
    return response.status_code, response.json()["error"]["code"]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


# ---- who


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer("x" * 10_000),
        bearer(ADMIN),
        {"Authorization": "Basic eDp5"},
        {"Authorization": "Bearer"},
        {b"Authorization": b"Bearer \xff\xfe"},
    ],
)
def test_nobody_submits_without_a_teams_token(serve, headers):
    server, _, _ = serve()

    for path in ("submissions", "evaluate"):
        answer = post(f"{server.url}/api/v1/{path}", headers=headers)
        assert error_of(answer) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_every_address_of_organisers_needs_their_token(serve):
    server, _, token = serve()
    paths = get(f"{server.url}/api/v1/openapi.json").json()["paths"]
    organising = [(path, method) for path, one in paths.items() if "/admin/" in path for method in one]

    assert len(organising) == 31
    for path, method in organising:
        address = server.url + path.format(slug="demo", team_id=1, name="x.csv")
        for headers in ({}, bearer(token), bearer("x")):
            assert error_of(request(method, address, headers=headers)) == (401, "unauthorized")


def test_where_there_is_no_administrator_nobody_is_one(serve):
    server, _, _ = serve(admin_digest="")

    for headers in ({}, bearer(ADMIN), {"Authorization": "Bearer"}):
        answer = get(f"{server.url}/api/v1/admin/status", headers=headers)
        assert error_of(answer) == (401, "unauthorized")


def test_a_session_cookie_does_not_open_the_api_for_forms_of_other_sites_to_use(serve):
    server, competition, token = serve()
    response = Response()
    session = competition.begin_session(token, seconds=1e9)
    server.app.state.boards.sessions.begin(request_with(), response, competition.slug, session)
    cookie = response.headers["set-cookie"].split(";")[0]

    answer = post(f"{server.url}/api/v1/submissions", headers={"Cookie": cookie})

    assert error_of(answer) == (401, "unauthorized")


# ---- how much, how long, how often


def raw(server, content):
    """First line of the answer to bytes that are sent as they are, the connection held open."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(content)
        with connection.makefile("rb") as answer:
            return answer.readline().rstrip(b"\r\n")


def test_a_body_that_is_too_large_is_refused_before_it_comes(serve):
    server, _, token = serve(max_body_bytes=1000)
    head = f"POST /api/v1/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"

    assert b" 413 " in raw(server, f"{head}Content-Length: 1001\r\n\r\n".encode())


def test_a_body_of_unknown_size_is_read_no_further_than_allowed(serve):
    server, competition, token = serve(max_body_bytes=1000)
    sent = []

    def endless():
        for _ in range(1_000):
            sent.append(1)
            yield b"x" * 100

    headers = bearer(token) | {"Content-Type": "application/json"}
    with contextlib.suppress(httpx.WriteError, httpx.ReadError):  # it may hang up before we are done
        answer = post(f"{server.url}/api/v1/evaluate", content=endless(), headers=headers)
        assert error_of(answer) == (413, "too_large")
    head = f"POST /api/v1/evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in raw(server, head.encode() + b"7d0\r\n" + b" " * 2000 + b"\r\n")
    assert competition.status().queries_asked == 0


def test_a_packed_body_is_refused_and_not_unpacked(serve):
    server, _, token = serve()
    for path, kind in (("evaluate", "application/json"), ("submissions", "multipart/form-data; boundary=x")):
        for encoding in ("gzip", "br", "deflate, gzip"):
            headers = bearer(token) | {"Content-Type": kind, "Content-Encoding": encoding}
            answer = post(f"{server.url}/api/v1/{path}", content=b"\x1f\x8b", headers=headers)
            assert error_of(answer) == (415, "media_type")


def test_the_largest_file_is_that_of_the_largest_request(serve):
    server, _, _ = serve(max_body_bytes=2_000_000)
    assert get(f"{server.url}/api/v1/competition").json()["submission"]["max_bytes"] == 2_000_000


def test_a_file_that_lies_about_its_size_is_refused_and_charged_to_nobody(serve, ids, parquet):
    import pyarrow as pa

    server, competition, token = serve()
    rows = 600
    one = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * (8 << 20)]))
    content = parquet(id=ids[:rows], prediction=one)
    answer = post(
        f"{server.url}/api/v1/submissions", files={"file": ("x.parquet", content)}, headers=bearer(token)
    )
    assert error_of(answer) == (422, "bad_submission")
    assert competition.status().queries_asked == 0
    assert "this one takes more" in answer.json()["error"]["message"]


def test_who_sends_no_token_is_refused_before_the_body_comes(serve):
    server, _, _ = serve()
    head = b"POST /api/v1/evaluate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

    assert b" 401 " in raw(server, head + b"Content-Length: 1000\r\n\r\n")


def test_a_body_that_does_not_come_in_time_is_not_waited_for(serve):
    server, _, token = serve(body_seconds=0.1)
    for path, kind in (
        ("evaluate", "application/json"),
        ("submissions", "multipart/form-data; boundary=x"),
    ):
        head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        assert b" 408 " in raw(server, f"{head}Content-Type: {kind}\r\nContent-Length: 10\r\n\r\n".encode())


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x", "text/csv"])
def test_a_body_that_is_no_form_is_refused(serve, kind):
    server, _, token = serve()
    headers = bearer(token) | {"Content-Type": kind}

    for content in (b"", b"nonsense", b"--x\r\n", b'--x\r\nContent-Disposition: form-data; name="file"'):
        answer = post(f"{server.url}/api/v1/submissions", headers=headers, content=content)
        assert answer.status_code in {400, 415, 422}
        error_of(answer)


def test_a_form_of_many_files_or_fields_is_refused(serve):
    server, competition, token = serve()
    url, headers = f"{server.url}/api/v1/submissions", bearer(token)

    many = post(url, headers=headers, files=[("file", (f"{n}.csv", b"x")) for n in range(3)])
    fields = post(url, headers=headers, files={"file": b"x"}, data={str(n): "x" for n in range(20)})
    large = post(url, headers=headers, files={"file": b"x"}, data={"claimed": "1" * 100_000})

    for answer in (many, fields, large):
        assert error_of(answer) == (400, "bad_request")
    assert competition.status().queries_asked == 0


def test_requests_of_one_address_are_limited(serve):
    server, _, _ = serve(requests_per_minute=12)  # a bucket of 3

    answers = [get(f"{server.url}/api/v1/status") for _ in range(4)]

    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert error_of(answers[3]) == (429, "rate")
    assert 1 <= int(answers[3].headers["retry-after"]) <= 5


def test_submissions_of_one_team_are_limited_and_a_batch_counts_as_many(serve, predictions):
    server, competition, token = serve(submissions_per_minute=12)
    red = competition.add_team("Red")

    def ask(token, shifts):
        batch = {
            "batch": [predictions(0.9, shift).tolist() for shift in shifts],
            "priors": [0.9] * len(shifts),
        }
        return post(f"{server.url}/api/v1/evaluate", headers=bearer(token), json=batch).status_code

    assert ask(token, [0, 1, 2]) == 200
    assert ask(token, [3]) == 429
    assert ask(red, [4]) == 200


def test_a_bucket_refills_steadily_and_is_never_fuller_than_full():
    now = [0.0]
    rates = Rates(60, clock=lambda: now[0])  # one a second, fifteen at once
    taken = []

    def take():
        try:
            rates.take("a")
        except Problem as problem:
            taken.append(problem.headers["Retry-After"])
            return False
        return True

    assert [take() for _ in range(16)] == [True] * 15 + [False]
    now[0] += 1.0
    assert [take(), take()] == [True, False]
    now[0] += 1_000.0
    assert [take() for _ in range(16)] == [True] * 15 + [False]
    assert taken == ["2"] * 3


def test_buckets_that_were_asked_least_recently_are_forgotten():
    rates = Rates(4, most=2, clock=lambda: 0.0)  # one at once
    for key in ("a", "b", "c"):
        rates.take(key)

    rates.take("a")  # it was forgotten
    for key in ("a", "c"):
        with pytest.raises(Problem, match="too many requests"):
            rates.take(key)


def test_a_rate_of_zero_is_no_limit():
    rates = Rates(0)
    for _ in range(10_000):
        rates.take("a")


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_rates_go_by_address_and_headers_of_proxies_are_not_believed(host, counted):
    request = Request(
        {"type": "http", "client": (host, 1), "headers": [(b"x-forwarded-for", b"198.51.100.1")]}
    )
    assert address_of(request) == counted


# ---- what leaves


def test_all_answers_have_the_headers_that_protect_a_browser(serve):
    server, _, _ = serve()

    for path in ("/", "/api/v1/status", "/api/v1/me", "/nothing", "/static/nothing", "/c/demo"):
        headers = get(server.url + path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers
        if "/api/" in path:
            assert headers["cache-control"] == "no-store"


def test_a_failure_inside_the_server_is_one_constant_answer_and_logs_no_words(serve, monkeypatch, caplog):
    server, _, token = serve()
    secret = "the label of r7 is 1"

    def fail(*_, **__):
        raise RuntimeError(secret)

    boards = server.app.state.boards
    monkeypatch.setattr(type(boards.competition()), "board", fail)
    monkeypatch.setattr(type(boards.competition()), "submit_predictions", fail)
    with caplog.at_level(logging.DEBUG):
        answers = [
            get(f"{server.url}/api/v1/board"),
            post(f"{server.url}/api/v1/evaluate", headers=bearer(token), json={"predictions": [1] * 600}),
        ]

    assert [error_of(one) for one in answers] == [(500, "internal")] * 2
    assert answers[0].text == answers[1].text
    assert all("content-security-policy" in one.headers for one in answers)
    assert "RuntimeError in reusable_holdout_leaderboard" in caplog.text
    assert secret not in caplog.text
    assert get(f"{server.url}/api/v1/status").status_code == 200


@pytest.mark.parametrize(
    "error", [StoreError("/srv/secret/board.db"), HoldoutError("postgresql://me:word@x")]
)
def test_what_fails_inside_does_not_say_where_it_lies(error):
    problem = problem_of(error)

    assert problem.status in {500, 503}
    assert "secret" not in problem.message
    assert "word" not in problem.message


# ---- browsers


SETTINGS = {"folder": "unused"}


def request_with(response=None, key=None, **headers):
    """Request of a browser that kept the cookies of a response, perhaps with the key of a form."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    if response is not None:
        cookies = [value.split(";")[0] for name, value in response.headers.items() if name == "set-cookie"]
        given.append((b"cookie", "; ".join(cookies).encode()))
    scope = {"type": "http", "headers": given, "scheme": "http", "path": "/", "server": ("x", 80)}
    query = b"" if key is None else urlencode({"form": key}).encode()
    return Request(scope | {"query_string": query})


def test_a_browser_gives_back_the_number_of_its_session():
    sessions = Sessions(Settings(**SETTINGS))
    response = Response()
    sessions.begin(request_with(), response, "demo", "number")

    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert sessions.of(request_with(response), "demo") == "number"
    assert sessions.of(request_with(response), "other") is None
    assert sessions.of(request_with(), "demo") is None


def test_cookies_go_by_https_alone_where_they_are_told_to():
    response = Response()
    Sessions(Settings(**SETTINGS, secure_cookies=True)).begin(request_with(), response, "demo", "number")

    assert "Secure" in response.headers["set-cookie"]


SECRET = b"s" * 32


def test_a_form_is_taken_from_the_browser_it_was_made_for_alone():
    sessions = Sessions(Settings(**SETTINGS))
    ours, theirs = Response(), Response()
    key = sessions.form_key(request_with(), ours, "demo", SECRET)
    other = sessions.form_key(request_with(), theirs, "demo", SECRET)

    sessions.check_form(request_with(ours, key), "demo", SECRET)
    for request, scope, secret in (
        (request_with(ours, other), "demo", SECRET),
        (request_with(theirs, key), "demo", SECRET),
        (request_with(None, key), "demo", SECRET),
        (request_with(ours, key), "other", SECRET),
        (request_with(ours, key), "demo", b"t" * 32),
        (request_with(ours, ""), "demo", SECRET),
        (request_with(ours), "demo", SECRET),
        (request_with(ours, "\u00ff"), "demo", SECRET),
        (request_with(ours, key, sec_fetch_site="cross-site"), "demo", SECRET),
        (request_with(ours, key, sec_fetch_site="same-site"), "demo", SECRET),
    ):
        with pytest.raises(Problem, match="the form") as refused:
            sessions.check_form(request, scope, secret)
        assert refused.value.status == 403


def test_a_form_from_before_signing_in_is_void_after():
    sessions = Sessions(Settings(**SETTINGS))
    visit = Response()
    key = sessions.form_key(request_with(), visit, "demo", SECRET)
    sessions.begin(request_with(), visit, "demo", "number")

    with pytest.raises(Problem, match="the form"):
        sessions.check_form(request_with(visit, key), "demo", SECRET)


def test_a_form_is_taken_by_another_server_of_the_database_and_after_a_restart(
    make_competition, reopen, folder, database
):
    first = make_competition(database=database)
    page = Response()
    ours = Sessions(Settings(folder=folder))
    key = ours.form_key(request_with(), page, first.slug, first.form_secret)
    another = reopen(database=database)
    theirs = Sessions(Settings(folder=folder))
    theirs.check_form(request_with(page, key), another.slug, another.form_secret)
