"""The JSON API on a real server: submissions, what everyone sees, what organisers do."""

import contextlib
import itertools
import re
import threading
import time

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings

ADMIN = "rh_administrator"


@pytest.fixture
def serve(folder, key_file):
    """Servers of the folder, ended with the test."""
    with contextlib.ExitStack() as running:

        def start(**changes):
            given = {
                "folder": folder,
                "key_file": key_file,
                "admin_digest": digest_of(ADMIN).hex(),
                "answer_seconds": 0.0,
                "poll_seconds": 0.02,
            }
            return running.enter_context(served(Settings(**(given | changes))))

        yield start


@pytest.fixture
def board(make_competition, serve):
    """A served competition: clients of a team, of everyone, and of its organiser."""
    with contextlib.ExitStack() as opened:

        def start(*, settings=None, **changes):
            competition = make_competition(**changes)
            token = competition.add_team("Blue")
            server = serve(**(settings or {}))

            def client(given):
                headers = {"Authorization": f"Bearer {given}"} if given else {}
                url = f"{server.url}/api/v1"
                return opened.enter_context(
                    httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS)
                )

            return competition, client(token), client(""), client(ADMIN)

        yield start


def send(team, content, name="mine.csv", **fields):
    return team.post("/submissions", files={"file": (name, content)}, data=fields)


def problem(response, status, code):
    """The error, if it has the one shape of all errors."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    return error


# ---- submissions


def test_a_file_is_scored_through_the_guard_and_moves_the_board(board, sheet):
    _, team, public, _ = board()

    answer = send(team, sheet(0.9), claimed="0.9")

    assert answer.status_code == 201
    assert answer.json()["value"] == 0.9
    assert answer.json()["charged"] is False
    (row,) = public.get("/board").json()
    assert (row["team"], row["value"], row["rank"]) == ("Blue", 0.9, 1)
    assert row["low"] < 0.9 < row["high"]


def test_the_same_file_again_gets_the_same_answer_free(board, sheet):
    _, team, public, _ = board(submissions_per_team=1)
    first = send(team, sheet(0.9), claimed="0.5").json()

    again = send(team, sheet(0.9), "another.csv", claimed="0.6").json()

    assert again == first | {"replayed": True}
    assert public.get("/status").json()["queries_asked"] == 1


def test_a_file_that_does_not_fit_is_refused_with_its_first_offenders_and_costs_nothing(board, sheet):
    _, team, public, _ = board()

    error = problem(send(team, sheet(0.9).replace(b"r7,", b"r5,")), 422, "bad_submission")

    assert error["details"]["problems"] == ["1 id more than once: 'r5'", "1 id missing: 'r7'"]
    assert public.get("/status").json()["queries_asked"] == 0


def test_predictions_as_json_are_the_same_question_as_the_file(board, sheet, predictions):
    _, team, _, _ = board()
    first = send(team, sheet(0.9), claimed="0.9").json()

    reply = team.post("/evaluate", json={"predictions": predictions(0.9).tolist(), "prior": 0.9}).json()

    assert reply["submissions"] == [first | {"replayed": True}]
    assert reply["stopped"] is None
    assert reply["charges_left"] > 0


def test_a_batch_is_answered_up_to_the_halt(board, predictions):
    _, team, public, _ = board(queries=3)
    batch = [predictions(0.9, shift).tolist() for shift in range(5)]

    reply = team.post("/evaluate", json={"batch": batch, "priors": [0.9] * 5}).json()

    assert [one["value"] for one in reply["submissions"]] == [0.9] * 3
    assert reply["stopped"]["code"] == "halted"
    assert reply["stopped"]["details"] == {"reason": "queries"}
    status = public.get("/status").json()
    assert (status["halted"], status["open"]) == (True, False)
    error = problem(team.post("/evaluate", json={"predictions": batch[4], "prior": 0.9}), 409, "halted")
    assert error["details"] == {"reason": "queries"}


def test_of_a_batch_that_does_not_fit_nothing_is_asked(board, predictions):
    _, team, public, _ = board()

    problem(team.post("/evaluate", json={"batch": [predictions(0.9).tolist(), [1]]}), 422, "bad_submission")
    problem(
        team.post("/evaluate", json={"batch": [predictions(0.9).tolist()], "priors": [7.0]}),
        422,
        "bad_submission",
    )

    assert public.get("/status").json()["queries_asked"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"[" * 100_000,
        b'{"predictions": [1], "batch": [[1]]}',
        b'{"predictions": [NaN]}',
        b'{"predictions": [1e999]}',
        b'{"predictions": [' + b"9" * 5_000 + b"]}",
        b'{"predictions": [[0, 1], [1]]}',
        b'{"predictions": [true, null]}',
        b'{"predictions": []}',
        b'{"batch": []}',
        b'{"batch": [[1]], "priors": [1, 2]}',
        b'{"predictions": [1], "priors": [1]}',
        b'{"predictions": [1], "other": 1}',
        b'{"predictions": ["\\ud800"]}',
        b"\xff\xfe",
    ],
)
def test_any_body_is_answered_or_refused(board, body):
    _, team, public, _ = board()

    answer = team.post("/evaluate", content=body, headers={"Content-Type": "application/json"})

    problem(answer, 422, answer.json()["error"]["code"])
    assert public.get("/status").json()["queries_asked"] == 0


def test_limits_of_a_team_are_told(board, sheet):
    _, team, _, _ = board(submissions_per_team=1)
    send(team, sheet(0.9))

    assert "all are used" in problem(send(team, sheet(0.8)), 429, "limit")["message"]


def test_a_team_sees_its_own_submissions_page_by_page(board, sheet):
    competition, team, _, _ = board()
    competition.submit(
        competition.authenticate(competition.add_team("Red")).id, sheet(0.7), filename="theirs"
    )
    for shift in range(3):
        send(team, sheet(0.9, shift), f"{shift}.csv")

    first = team.get("/me/submissions", params={"limit": 2}).json()
    rest = team.get("/me/submissions", params={"after": first[-1]["id"]}).json()

    assert [one["name"] for one in first + rest] == ["0.csv", "1.csv", "2.csv"]
    assert team.get("/me").json()["name"] == "Blue"


# ---- what everyone sees


def test_a_blind_competition_tells_no_number_that_came_from_the_guard(board, sheet):
    competition, team, public, admin = board(blind=True)

    answer = send(team, sheet(0.9), claimed="0.5").json()

    hidden = ("value", "low", "high", "charged", "threshold", "prior", "query", "improved")
    assert answer["state"] == "received"
    assert [answer[name] for name in hidden] == [None] * len(hidden)
    assert team.get("/me/submissions").json() == [answer]
    (row,) = public.get("/board").json()
    assert [row[name] for name in ("rank", "value", "low", "high", "charges", "query")] == [None] * 6
    assert public.get("/status").json()["charges_left"] is None
    assert public.get("/history").json() == public.get("/rank-history").json() == []
    assert admin.get("/admin/status").json()["board"][0]["value"] == competition.board(reveal=True)[0].value

    assert admin.post("/admin/unblind").json()["blind"] is False
    assert public.get("/board").json()[0]["value"] == competition.board()[0].value


def test_the_history_has_everything_released_page_by_page(board, sheet):
    competition, team, public, _ = board()
    for shift in range(3):
        send(team, sheet(0.9, shift), claimed="0.9")

    first = public.get("/history", params={"limit": 2}).json()
    rest = public.get("/history", params={"after": first[-1]["query"]}).json()

    assert [one["query"] for one in first + rest] == [1, 2, 3]
    assert [one["value"] for one in first + rest] == competition.history()["value"].tolist()
    assert public.get("/rank-history").json()[0]["place"] == 1


def test_the_sample_is_a_submission_that_fits(board):
    _, team, public, _ = board()

    sample = public.get("/sample")

    assert sample.headers["content-type"].startswith("text/csv")
    assert send(team, sample.content).status_code == 201


def test_the_description_of_a_competition_makes_its_plan_again(board):
    from reusable_holdout import Plan

    competition, _, public, _ = board()

    about = public.get("/competition").json()

    assert Plan.from_record(about["plan"]) == competition.plan
    assert about["rules"] == competition.rules.as_dict()
    assert about["submission"]["columns"] == ["id", "prediction"]
    assert about["metric"]["name"] == "accuracy"


def test_events_can_be_polled_from_a_revision_on(board, sheet):
    _, team, public, _ = board()
    before = public.get("/status").json()["revision"]
    send(team, sheet(0.9))

    (event,) = public.get("/events", params={"after": before}).json()

    assert event["kind"] == "submission"
    assert public.get("/status").json()["revision"] == event["revision"] == before + 1


def test_a_stream_tells_the_revision_at_once_and_when_it_changes(board, sheet):
    _, team, public, _ = board()
    before = public.get("/status").json()["revision"]

    with public.stream("GET", "/events", headers={"Accept": "text/event-stream"}) as stream:
        lines = stream.iter_lines()
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert _next_data(lines) == before
        sending = threading.Thread(target=send, args=(team, sheet(0.9)))
        sending.start()
        assert _next_data(lines) == before + 1
        sending.join()  # its answer may come after the stream's


def _next_data(lines):
    some = itertools.islice(lines, 100)  # what has no news says so for ever
    return int(next(line for line in some if line.startswith("data: ")).removeprefix("data: "))


def test_more_streams_than_an_address_may_have_are_told_to_poll(board):
    _, _, public, _ = board(settings={"streams_per_address": 1})
    accept = {"Accept": "text/event-stream"}

    with public.stream("GET", "/events", headers=accept) as stream:
        lines = stream.iter_lines()
        next(lines)
        problem(public.get("/events", headers=accept), 429, "streams")


def test_a_stream_that_was_left_makes_room_for_another_and_an_idle_one_says_so(board, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.web.events._QUIET_SECONDS", 0.05)
    _, _, public, _ = board(settings={"streams_per_address": 1})
    accept = {"Accept": "text/event-stream"}

    for _ in range(3):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:  # the server learns a little later that we have gone
            with public.stream("GET", "/events", headers=accept) as stream:
                if stream.status_code == 200:
                    lines = stream.iter_lines()
                    some = itertools.islice(lines, 100)
                    assert next(line for line in some if line.startswith(":")) == ": nothing new"
                    break
            assert time.monotonic() < deadline


def test_what_a_worker_that_died_has_left_is_settled_now_and_then(board, monkeypatch):
    settled = threading.Event()
    monkeypatch.setattr("reusable_holdout_leaderboard.web.services._SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(Competition, "settle", lambda self: settled.set())
    _, _, public, _ = board()
    public.get("/status")

    assert settled.wait(PATIENCE_SECONDS)


def test_a_competition_has_its_own_address(make_competition, serve, sheet):
    for slug in ("one", "two"):
        make_competition(slug=slug).add_team("Blue")
    url = serve().url

    with httpx.Client(base_url=f"{url}/api/v1", timeout=PATIENCE_SECONDS) as client:
        assert client.get("/c/two/competition").json()["rules"]["slug"] == "two"
        problem(client.get("/c/three/board"), 404, "no_competition")
        problem(client.get("/board"), 404, "no_competition")
        problem(client.get("/nothing"), 404, "not_found")
        problem(client.put("/c/two/board"), 405, "method")
        problem(client.get("/c/two/history", params={"limit": "x"}), 422, "bad_input")


def test_the_token_of_one_competition_is_nobodys_in_another(make_competition, serve):
    tokens_of = {slug: make_competition(slug=slug).add_team("Blue") for slug in ("one", "two")}
    url = serve().url

    def me(slug, token):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{url}/api/v1/c/{slug}/me", headers=headers, timeout=PATIENCE_SECONDS)

    assert me("one", tokens_of["one"]).status_code == 200
    problem(me("one", tokens_of["two"]), 401, "unauthorized")


# ---- organisers


def test_an_organiser_adds_teams_and_renews_their_tokens(board):
    competition, team, _, admin = board()

    made = admin.post("/admin/teams", json={"name": "Red"})
    renewed = admin.post("/admin/teams/1/token")

    assert made.status_code == renewed.status_code == 201
    assert competition.authenticate(made.json()["token"]).name == "Red"
    assert competition.authenticate(renewed.json()["token"]).name == renewed.json()["team"] == "Blue"
    problem(team.get("/me"), 401, "unauthorized")
    problem(admin.post("/admin/teams", json={"name": "red "}), 422, "bad_input")
    problem(admin.post("/admin/teams/99/token"), 404, "no_team")


def test_a_frozen_competition_takes_nothing_new_until_it_is_unfrozen(board, sheet):
    _, team, public, admin = board()

    assert admin.post("/admin/freeze", json={"on": True}).json()["frozen"] is True
    problem(send(team, sheet(0.9)), 409, "closed")
    assert public.get("/status").json()["closed_reason"] == "the competition is frozen"
    admin.post("/admin/freeze", json={"on": False})
    assert send(team, sheet(0.9)).status_code == 201


def test_an_organiser_rotates_and_the_uploaded_labels_are_kept_nowhere_else(
    board, folder, next_labels_file, sheet
):
    _, team, public, admin = board()
    send(team, sheet(0.9))
    files = {"file": ("next.csv", next_labels_file.read_bytes())}

    problem(admin.post("/admin/rotate", files=files), 422, "bad_input")  # it has not halted
    rotated = admin.post("/admin/rotate", files=files, data={"early": "true", "queries": "40"})

    assert rotated.json()["epoch"] == 2
    assert rotated.json()["queries_left"] == 40
    assert public.get("/board").json() == []
    assert len(public.get("/board", params={"epoch": 1}).json()) == 1
    assert not list(folder.glob("uploaded-*"))
    assert send(team, public.get("/sample").content).json()["epoch"] == 2
    problem(admin.post("/admin/rotate", files=files, data={"early": "perhaps"}), 422, "bad_input")
    problem(admin.post("/admin/rotate", data={"early": "true"}), 422, "bad_input")


def test_final_standings_are_public_once_they_are_made(board, fresh_labels_file, sheet):
    _, team, public, admin = board(fresh=fresh_labels_file)
    assert send(team, sheet(0.9, rows=900)).status_code == 201

    problem(public.get("/final"), 404, "no_final")
    problem(public.get("/final.csv"), 404, "no_final")
    problem(admin.post("/admin/final"), 409, "closed")
    admin.post("/admin/freeze", json={})
    (made,) = admin.post("/admin/final").json()

    assert made["team"] == "Blue"
    assert public.get("/final").json() == [made]


def test_what_readers_get_is_made_once_for_each_revision(board, sheet, monkeypatch):
    _, team, public, _ = board()
    made = []
    original = Competition.history
    monkeypatch.setattr(
        Competition, "history", lambda self, **given: made.append(given) or original(self, **given)
    )

    send(team, sheet(0.9), claimed="0.9")
    for _ in range(3):
        assert len(public.get("/history").json()) == 1
    assert made == [{"epoch": None}]
    send(team, sheet(0.8), claimed="0.8")
    assert len(public.get("/history").json()) == 2
    assert len(public.get("/history", params={"epoch": 1}).json()) == 2
    assert len(made) == 3
    problem(public.get("/history", params={"epoch": 9}), 422, "bad_input")


def test_teams_that_send_at_once_all_get_their_turn(board, predictions):
    competition, team, _, _ = board(settings={"submissions_per_minute": 0})
    answers = []

    def ask(shift):
        body = {"predictions": predictions(0.9, shift).tolist(), "prior": 0.9}
        answers.append(
            team.post("/evaluate", json=body, timeout=PATIENCE_SECONDS).json()["submissions"][0]["query"]
        )

    threads = [threading.Thread(target=ask, args=(shift,)) for shift in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == list(range(1, 25))
    assert competition.status().queries_asked == 24


def test_a_board_comes_in_pages_to_who_asks_for_them(board, add_team, predictions):
    competition, _, public, _ = board(queries=300)
    numbers = [add_team(competition, f"Team {letter}") for letter in "ABCDE"]
    for k, number in enumerate(numbers):
        competition.submit_predictions(number, predictions(0.9 - 0.02 * k), claimed=0.9 - 0.02 * k)
    whole = public.get("/board").json()
    assert [row["team_id"] for row in whole] == numbers
    pages, following = [], "?limit=2"
    while following:
        answer = public.get(f"/board{following}")
        pages.append(answer.json())
        following = re.fullmatch('<(.*)>; rel="next"', answer.headers.get("link", '<>; rel="next"')).group(1)
    assert list(map(len, pages)) == [2, 2, 1]
    assert [row for page in pages for row in page] == whole
    assert public.get("/board", params={"after": 3}).json() == whole[3:]
    assert public.get("/board", params={"after": 9, "limit": 5}).json() == []
    assert public.get("/board", params={"team": numbers[3]}).json() == whole[3:4]
    problem(public.get("/board", params={"limit": 0}), 422, "bad_input")


@pytest.mark.parametrize("path", ["/sample", "/board", "/rank-history"])
def test_what_everyone_reads_is_sent_once(board, sheet, path):
    competition, team, public, _ = board()
    send(team, sheet(0.9))
    first = public.get(path)
    tag = first.headers["etag"]
    again = public.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    competition.submit_predictions(competition.authenticate(competition.add_team("Red")).id, [0] * 600)
    news = public.get(path, headers={"If-None-Match": tag})
    assert news.status_code == (304 if path == "/sample" else 200)


def test_the_next_page_of_a_sample_is_named(board, monkeypatch):
    from reusable_holdout_leaderboard.files import forms

    monkeypatch.setattr(forms, "_SAMPLE_BYTES", 3_000)
    _, _, public, _ = board()
    pages, where = [], "/sample"
    while where:
        answer = public.get(where)
        pages.append(answer.text)
        assert len(answer.content) <= 3_000
        found = answer.links.get("next")
        where = f"/sample{found['url']}" if found else None
    rows = [line for page in pages for line in page.splitlines()[1:]]
    assert len(pages) > 1
    assert [row.split(",")[0] for row in rows] == [f"r{row}" for row in range(600)]
