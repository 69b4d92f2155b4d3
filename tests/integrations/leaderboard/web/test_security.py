"""Protection of a server: tokens, forms, rates, sizes, times, and errors that tell nothing."""

import asyncio
import contextlib
import logging
import socket
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest
from board_servers import ADMIN, PATIENCE_SECONDS, refused
from cases import refuses
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard import Competition, StoreError
from reusable_holdout_leaderboard.pages.sessions import ORGANISER, Sessions
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.boards import Boards, until_next
from reusable_holdout_leaderboard.web.door import Rates
from reusable_holdout_leaderboard.web.problems import Problem, problem_of
from scipy.stats import mannwhitneyu
from starlette.requests import Request
from starlette.responses import Response

from reusable_holdout.errors import HoldoutError

FORM = "multipart/form-data; boundary=x"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


# ---- tokens


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
def test_only_a_teams_token_submits(serve, headers):
    answer = serve().public.post("/submissions", headers=headers)
    refused(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_without_an_administrator_nobody_is_one(serve):
    site = serve(settings={"admin_digest": ""})
    for headers in ({}, bearer(ADMIN), {"Authorization": "Bearer"}):
        refused(site.public.post("/admin/status", headers=headers), 401, "unauthorized")


def test_a_session_cookie_does_not_open_the_api(serve):
    site = serve()
    for scope in ("demo", ORGANISER):
        session = site.competition.begin_session(site.token, seconds=1e9)
        cookie = {"Cookie": f"rh_session_{scope}={session}"}
        for path in ("/submissions", "/admin/status"):
            refused(site.public.post(path, headers=cookie), 401, "unauthorized")


# ---- sizes and times


def first_line(site, content):
    """Return the first line of the answer to bytes, while the connection is held open."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(content)
        with connection.makefile("rb") as answer:
            return answer.readline().rstrip(b"\r\n")


def head_of(site, path="submissions", *, token=True, kind=FORM, more="Content-Length: 1000"):
    given = f"Authorization: Bearer {site.token}\r\n" if token else ""
    lines = f"POST /api/v1/{path} HTTP/1.1\r\nHost: x\r\n{given}Content-Type: {kind}\r\n{more}\r\n\r\n"
    return lines.encode()


def test_a_body_is_refused_before_it_arrives_if_it_is_too_large_or_a_strangers(serve):
    site = serve(settings={"max_body_bytes": 1000})
    assert site.public.get("/competition").json()["submission"]["max_bytes"] == 1000
    assert b" 413 " in first_line(site, head_of(site, more="Content-Length: 1001"))
    assert b" 401 " in first_line(site, head_of(site, token=False))


def test_a_body_of_unknown_size_is_read_no_further_than_allowed(serve):
    site = serve(settings={"max_body_bytes": 1000})

    def endless():
        for _ in range(1_000):
            yield b"x" * 100

    headers = {"Content-Type": FORM}
    with contextlib.suppress(httpx.WriteError, httpx.ReadError):  # the server may hang up before the end
        refused(site.team.post("/submissions", content=endless(), headers=headers), 413, "too_large")
    for path, kind in (("submissions", FORM), ("me/picks", "application/json")):
        chunked = head_of(site, path, kind=kind, more="Transfer-Encoding: chunked")
        assert b" 413 " in first_line(site, chunked + b"7d0\r\n" + b" " * 2000 + b"\r\n")
    assert site.competition.status().queries_asked == 0


def test_a_packed_body_is_refused_and_not_unpacked(serve):
    site = serve()
    for path, kind in (("me/picks", "application/json"), ("submissions", FORM)):
        for encoding in ("gzip", "br", "deflate, gzip"):
            headers = {"Content-Type": kind, "Content-Encoding": encoding}
            refused(site.team.post(f"/{path}", content=b"\x1f\x8b", headers=headers), 415, "media_type")


def test_a_body_that_does_not_arrive_in_time_is_not_waited_for(serve):
    site = serve(settings={"body_seconds": 0.1})
    for path, kind in (("me/picks", "application/json"), ("submissions", FORM)):
        assert b" 408 " in first_line(site, head_of(site, path, kind=kind))


def test_a_form_with_many_files_or_fields_is_refused(serve):
    site = serve()
    for sent in (
        {"files": [("file", (f"{n}.csv", b"x")) for n in range(3)]},
        {"files": {"file": b"x"}, "data": {str(n): "x" for n in range(20)}},
        {"files": {"file": b"x"}, "data": {"claimed": "1" * 100_000}},
    ):
        refused(site.team.post("/submissions", **sent), 400, "bad_request")
    assert site.competition.status().queries_asked == 0


# ---- rates


def test_requests_of_one_address_are_limited(serve):
    site = serve(settings={"requests_per_minute": 12})  # a bucket of 3
    answers = [site.public.get("/status") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    refused(answers[3], 429, "rate")
    assert 1 <= int(answers[3].headers["retry-after"]) <= 5


def test_submissions_of_one_team_are_limited(serve, sheet):
    site = serve(settings={"submissions_per_minute": 12})
    red = site.client(site.competition.add_team("Red"))
    assert [site.send(sheet(0.9, n)).status_code for n in range(4)] == [201, 201, 201, 429]
    sent = {"files": {"file": ("x.csv", sheet(0.9, 4))}, "data": {"claimed": "0.9"}}
    assert red.post("/submissions", **sent).status_code == 201


def test_a_bucket_refills_steadily_up_to_its_size():
    now, waits = [0.0], []
    rates = Rates(60, clock=lambda: now[0])  # one a second, fifteen at once

    def take():
        try:
            rates.take("a")
        except Problem as problem:
            waits.append(problem.headers["Retry-After"])
            return False
        return True

    assert [take() for _ in range(16)] == [True] * 15 + [False]
    now[0] += 1.0
    assert [take(), take()] == [True, False]
    now[0] += 1_000.0
    assert [take() for _ in range(16)] == [True] * 15 + [False]
    assert waits == ["2"] * 3


def test_buckets_that_were_used_least_recently_are_forgotten_and_zero_is_no_limit():
    rates, unlimited = Rates(4, most=2, clock=lambda: 0.0), Rates(0)  # one at once
    for key in ("a", "b", "c", "a"):  # the first one is forgotten
        rates.take(key)
    for key in ("a", "c"):
        refuses(Problem, "too many requests", rates.take, key)
    for _ in range(10_000):
        unlimited.take("a")


# ---- answers


def test_all_answers_have_the_headers_that_protect_a_browser(serve):
    pages = serve().client(pages=True)
    for path in ("/", "/api/v1/status", "/api/v1/me", "/nothing", "/static/nothing", "/c/demo"):
        headers = pages.get(path).headers
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


def test_a_failure_inside_the_server_is_one_constant_answer_and_its_message_is_not_logged(
    serve, sheet, monkeypatch, caplog
):
    site, secret = serve(), "the label of r7 is 1"

    def fail(*_, **__):
        raise RuntimeError(secret)

    assert site.team.get("/status").status_code == 200
    for name in ("board", "submit"):
        monkeypatch.setattr(Competition, name, fail)
    with caplog.at_level(logging.DEBUG):
        answers = [site.public.get("/board"), site.send(sheet(0.9))]
    for one in answers:
        refused(one, 500, "internal")
        assert "content-security-policy" in one.headers
    assert answers[0].text == answers[1].text
    assert "RuntimeError in reusable_holdout_leaderboard" in caplog.text
    assert secret not in caplog.text
    assert site.public.get("/status").status_code == 200


@pytest.mark.parametrize(
    "error", [StoreError("/srv/secret/board.db"), HoldoutError("postgresql://me:word@x")]
)
def test_a_failure_does_not_name_files_and_servers(error):
    problem = problem_of(error)
    assert problem.status in {500, 503}
    assert "secret" not in problem.message
    assert "word" not in problem.message


# ---- forms


def request_with(cookies=None, key=None, **headers):
    """Return a request of a browser with cookies, perhaps with the key of a form."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    if cookies:
        given.append((b"cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()))
    scope = {"type": "http", "headers": given, "scheme": "http", "path": "/", "server": ("x", 80)}
    query = b"" if key is None else urlencode({"form": key}).encode()
    return Request(scope | {"query_string": query})


SECRET = b"s" * 32


def sessions(**settings):
    return Sessions(SimpleNamespace(settings=Settings(folder="unused", **settings)))


def visited(secret=SECRET):
    """Return the cookies of a new visitor, and the key of the forms on the page."""
    response = Response()
    key = sessions().form_key(request_with(), response, "demo", secret)
    name, _, rest = response.headers["set-cookie"].partition("=")
    return {name: rest.partition(";")[0]}, key


def test_a_form_is_taken_only_from_the_browser_it_was_made_for():
    (ours, key), (theirs, other) = visited(), visited()
    check = sessions().check_form
    check(request_with(ours, key), "demo", SECRET)
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
        (request_with(ours | {"rh_session_demo": "number"}, key), "demo", SECRET),  # from before the log-in
    ):
        problem = refuses(Problem, "the form", check, request, scope, secret)
        assert problem.status == 403


def test_a_form_is_taken_by_another_server_of_the_database_and_after_a_restart(
    make_competition, reopen, database
):
    cookies, key = visited(make_competition(database=database).form_secret)
    sessions().check_form(request_with(cookies, key), "demo", reopen(database=database).form_secret)


@pytest.mark.parametrize("secure", [False, True])
def test_scripts_and_other_sites_get_no_cookie(serve, secure):
    site = serve(settings={"secure_cookies": secure})
    browser = site.client(pages=True)
    page = browser.get("/c/demo/login")
    key = page.text.split("?form=")[1][:64]
    login = httpx.post(
        f"{site.url}/c/demo/login?form={key}",
        data={"token": site.token},
        headers={"Cookie": page.headers["set-cookie"].partition(";")[0]},
        timeout=PATIENCE_SECONDS,
    )
    assert login.status_code == 303
    for answer in (page, login):
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert ("Secure" in cookie) == secure


# ---- times of answers

QUANTUM = 0.05
FALSE_ALARM = 1e-9


@pytest.fixture
def boards(tmp_path):
    return Boards(Settings(folder=tmp_path, answer_seconds=QUANTUM))


def elapsed(boards, call):
    async def run():
        began = time.monotonic()
        with contextlib.suppress(Problem):
            await boards.padded(call)
        return time.monotonic() - began

    return asyncio.run(run())


@given(seconds=st.floats(0, 100), quantum=st.floats(0.001, 1))
def test_an_answer_leaves_at_a_multiple_of_the_quantum(seconds, quantum):
    leaves = (seconds + until_next(quantum, seconds)) / quantum

    assert leaves >= 1 - 1e-9
    assert leaves == pytest.approx(round(leaves), abs=1e-6)
    assert 0 <= until_next(quantum, seconds) <= quantum * (1 + 1e-9)


def test_an_answer_and_a_refusal_take_a_quantum(boards):
    def refuse():
        raise Problem(422, "bad_input", "it does not fit")

    assert elapsed(boards, lambda: None) >= QUANTUM
    assert elapsed(boards, refuse) >= QUANTUM


def alarm(one, other):
    """Return the probability that two samples of the same distribution differ as much, in rank or in spread."""
    centre = np.median(np.concatenate([one, other]))
    return min(mannwhitneyu(one, other).pvalue, mannwhitneyu(abs(one - centre), abs(other - centre)).pvalue)


def test_the_comparison_of_times_finds_differences_and_invents_none():
    rng = np.random.default_rng(0)
    noise = [rng.exponential(0.001, 150) for _ in range(3)]

    assert alarm(noise[0], noise[1]) > FALSE_ALARM
    assert alarm(noise[0], noise[2] + 0.002) < FALSE_ALARM


@pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")
def test_free_and_charged_answers_take_equally_long(serve, sheet):
    """Measured by a client that alternates, so that the load of the machine affects both alike."""
    site = serve(queries=200, submissions_per_team=200, charges=200, settings={"answer_seconds": QUANTUM})
    times = {True: [], False: []}
    for number in range(160):
        content = sheet(0.95, number)
        began = time.perf_counter()
        answer = site.send(content, claimed=0.95 if number % 2 else 0.0)
        seconds = time.perf_counter() - began
        times[answer.json()["charged"]].append(seconds)
    free, charged = np.array(times[False]), np.array(times[True])
    assert min(len(free), len(charged)) >= 70
    assert alarm(free, charged) > FALSE_ALARM
