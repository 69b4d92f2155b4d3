"""The JSON API on a real server: for teams, for everyone, for organisers."""

import csv
import io
import threading

import pytest
from board_servers import PATIENCE_SECONDS, refused
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.actions import ACTIONS
from reusable_holdout_leaderboard.files import forms

from reusable_holdout import Plan

# ---- teams


def test_a_submitted_file_is_answered_by_the_guard_and_moves_the_board(serve, sheet):
    site = serve(submissions_per_team=2)
    answer = site.send(sheet(0.9), name="mine.csv")
    assert answer.status_code == 201
    told = answer.json()
    assert (told["told"], told["charged"], told["name"], told["charges_left"]) == (
        "measured 0",
        False,
        "mine.csv",
        3,
    )
    (row,) = site.public.get("/board").json()
    assert (row["team"], row["value"], row["rank"]) == ("Blue", told["value"], 1)
    assert row["low"] < 0.9 < row["high"]
    again = site.send(sheet(0.9), claimed=0.6, name="other.csv").json()
    assert again == told | {"replayed": True}
    assert site.public.get("/status").json()["queries_asked"] == 1


def test_fields_of_a_submission(serve, sheet, predictions):
    site = serve()
    in_order = "prediction\n" + "".join(f"{one}\n" for one in predictions(0.8))
    files = {"file": ("x.csv", in_order.encode())}
    data = {"claimed": "0,1", "in_order": "yes", "name": "Mine"}
    first = site.team.post("/submissions", files=files, data=data).json()
    assert (first["name"], first["claimed"], first["charged"], first["charges_left"]) == (
        "Mine",
        0.1,
        True,
        2,
    )
    assert site.send(sheet(0.8), claimed=0.8).json()["replayed"]
    anew = site.send(sheet(0.8), claimed=0.8, anew="yes").json()
    assert (anew["replayed"], anew["query"], anew["charged"]) == (False, 2, False)
    refused(site.send(sheet(0.8), anew="true"), 422, "bad_input")
    for claim in ("", "x", "nan", "7", "1,000.5"):
        answer = site.team.post("/submissions", files=files, data=data | {"claimed": claim})
        refused(answer, 422, "bad_submission")
    assert site.public.get("/status").json()["queries_asked"] == 2


def test_a_file_that_does_not_fit_is_explained_and_costs_nothing(serve, sheet):
    site = serve()
    error = refused(site.send(sheet(0.9).replace(b"r7,", b"r5,")), 422, "bad_submission")
    assert error["details"]["problems"] == ["1 id more than once: 'r5'", "1 id missing: 'r7'"]
    assert site.public.get("/status").json()["queries_asked"] == 0


def test_limits_and_halts_are_refusals_of_their_own(serve, sheet, exhaust):
    site = serve(queries=4, submissions_per_team=1)
    site.send(sheet(0.9))
    assert "all are used" in refused(site.send(sheet(0.8)), 429, "limit")["message"]
    site.competition.change_rules({"submissions_per_team": 50})
    exhaust(site.competition)
    assert refused(site.send(sheet(0.6)), 409, "halted")["details"] == {"reason": "queries"}
    status = site.public.get("/status").json()
    assert (status["halted"], status["open"]) == (True, False)


def test_a_team_sees_its_own_submissions_in_pages(serve, send):
    site = serve()
    send(site.competition, "Red", 0.7)
    assert site.team.get("/me").json()["name"] == "Blue"
    for variant in range(3):
        send(site.competition, "Blue", 0.9, variant, name=f"{variant}.csv")
    first = site.team.get("/me/submissions", params={"limit": 2}).json()
    rest = site.team.get("/me/submissions", params={"after": first[-1]["id"]}).json()
    assert [one["name"] for one in first + rest] == ["0.csv", "1.csv", "2.csv"]


def test_a_team_signs_up_with_a_code_and_submits_with_its_token(serve, sheet):
    site = serve()
    refused(site.public.post("/teams", json={"name": "Blue"}), 409, "closed")
    site.competition.change_rules({"sign_up": "code", "most_teams": 1})
    code = site.admin.post("/admin/invite").json()["code"]
    refused(site.public.post("/teams", json={"name": "Blue", "code": "x"}), 401, "invitation")
    made = site.public.post("/teams", json={"name": "Blue", "code": code})
    assert (made.status_code, made.json()["team"]) == (201, "Blue")
    team = site.client(made.json()["token"])
    files, data = {"file": ("x.csv", sheet(0.9))}, {"claimed": "0.9"}
    assert team.post("/submissions", files=files, data=data).status_code == 201
    refused(site.public.post("/teams", json={"name": "Red", "code": code}), 429, "limit")
    site.competition.change_rules({"most_teams": 9})
    refused(site.public.post("/teams", json={"name": "blue", "code": code}), 422, "bad_input")
    refused(site.public.post("/teams", data={"name": "Red", "code": code}), 415, "media_type")


def test_a_team_picks_its_submission_for_the_final(serve, fresh_labels_file, send_whole):
    site = serve(fresh=fresh_labels_file)
    assert site.team.get("/me/picks").json() == []
    sent = send_whole(site.competition, "Blue", 0.9)
    (picked,) = site.team.post("/me/picks", json={"submissions": [sent.id]}).json()
    assert (picked["id"], picked["picked"], picked["value"]) == (sent.id, True, sent.value)
    assert site.team.get("/me/picks").json() == [picked]
    refused(site.team.post("/me/picks", json={"submissions": [sent.id, 77]}), 422, "bad_input")
    refused(site.public.post("/me/picks", json={"submissions": []}), 401, "unauthorized")


# ---- everyone


def test_a_blind_competition_shows_no_number_of_the_guard(serve, sheet):
    site = serve(blind=True)
    answer = site.send(sheet(0.9), claimed=0.5).json()
    hidden = ("value", "low", "high", "charged", "threshold", "prior", "query", "improved", "charges_left")
    assert answer["state"] == "received"
    assert [answer.pop(name) for name in hidden] == [None] * len(hidden)
    assert answer.items() <= site.team.get("/me/submissions").json()[0].items()
    (row,) = site.public.get("/board").json()
    assert [row[name] for name in ("rank", "value", "low", "high", "charges", "query")] == [None] * 6
    assert site.team.get("/me").json()["charges_left"] is None
    for path in ("/history", "/rank-history"):
        assert site.public.get(path).json() == []
    assert [one["value"] for one in rows_of(site.public.get("/board.csv"))] == [""]
    assert [one["value"] for one in rows_of(site.admin.get("/admin/submissions.csv"))] != [""]
    known = site.competition.board(reveal=True)[0].value
    assert site.admin.post("/admin/status").json()["board"][0]["value"] == known
    assert site.admin.post("/admin/unblind").json()["blind"] is False
    assert site.public.get("/board").json()[0]["value"] == known


def test_the_history_has_everything_released_in_pages(serve, send):
    site = serve()
    for variant in range(3):
        send(site.competition, "Blue", 0.9, variant)
    first = site.public.get("/history", params={"limit": 2}).json()
    rest = site.public.get("/history", params={"after": first[-1]["query"]}).json()
    assert [one["query"] for one in first + rest] == [1, 2, 3]
    assert [one["value"] for one in first + rest] == site.competition.history()["value"].tolist()
    assert site.public.get("/rank-history").json()[0]["place"] == 1
    refused(site.public.get("/history", params={"epoch": 9}), 422, "bad_input")


def test_the_description_of_a_competition_is_complete(serve):
    site = serve()
    about = site.public.get("/competition").json()
    assert Plan.kept(about["plan"]) == site.competition.plan
    assert about["rules"] == site.competition.rules.as_dict()
    assert about["submission"]["columns"] == ["id", "prediction"]
    assert about["metric"]["name"] == "accuracy"


def test_the_sample_fits_and_comes_in_pages(serve, monkeypatch):
    monkeypatch.setattr(forms, "_SAMPLE_BYTES", 3_000)
    site = serve()
    pages, where = [], "/sample"
    while where:
        answer = site.public.get(where)
        pages.append(answer.text)
        assert len(answer.content) <= 3_000
        found = answer.links.get("next")
        where = f"/sample{found['url']}" if found else None
    lines = [line for page in pages for line in page.splitlines()[1:]]
    assert len(pages) > 1
    assert [line.split(",")[0] for line in lines] == [f"r{row}" for row in range(600)]
    assert answer.headers["content-type"].startswith("text/csv")
    whole = "\n".join(["id,prediction", *lines]).encode()
    assert site.send(whole, claimed=0.5).status_code == 201


def test_a_competition_has_its_own_address_and_tokens(make_competition, serve):
    token = make_competition(slug="other").add_team("Blue")
    site = serve()
    get = site.client(token).get
    assert get("/c/other/competition").json()["rules"]["slug"] == "other"
    assert get("/c/other/me").status_code == 200
    refused(get("/c/demo/me"), 401, "unauthorized")
    for path in ("/c/three/board", "/board"):
        refused(get(path), 404, "no_competition")
    refused(get("/nothing"), 404, "not_found")
    refused(site.public.put("/c/demo/board"), 405, "method")
    refused(get("/c/demo/history", params={"limit": "x"}), 422, "bad_input")


def test_answers_to_readers_are_made_once_for_each_revision(serve, send, monkeypatch):
    site, made = serve(), []
    original = Competition.history
    monkeypatch.setattr(
        Competition, "history", lambda self, **given: made.append(given) or original(self, **given)
    )
    send(site.competition, "Blue", 0.9)
    for _ in range(3):
        assert len(site.public.get("/history").json()) == 1
    assert made == [{"epoch": None}]
    send(site.competition, "Blue", 0.8)
    assert len(site.public.get("/history").json()) == 2
    assert len(site.public.get("/history", params={"epoch": 1}).json()) == 2
    assert len(made) == 3


@pytest.mark.parametrize("path", ["/sample", "/board", "/rank-history"])
def test_unchanged_answers_are_sent_once(serve, send, path):
    site = serve()
    send(site.competition, "Blue", 0.9)
    first = site.public.get(path)
    tag = first.headers["etag"]
    again = site.public.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    send(site.competition, "Red", 0.8)
    changed = site.public.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == (304 if path == "/sample" else 200)


def test_submissions_of_dead_workers_are_settled_from_time_to_time(serve, monkeypatch):
    settled = threading.Event()
    monkeypatch.setattr("reusable_holdout_leaderboard.web.boards._SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(Competition, "settle", lambda self: settled.set())
    serve().public.get("/status")
    assert settled.wait(PATIENCE_SECONDS)


# ---- organisers


def test_every_action_of_organisers_is_an_address_and_refuses_everyone_else(serve):
    site = serve()
    others = (site.public, site.team, site.client("x"))
    for name in ACTIONS:
        for one in others:
            refused(one.post(f"/admin/{name}"), 401, "unauthorized")
            refused(one.post(f"/c/demo/admin/{name}"), 401, "unauthorized")
        answer = site.admin.post(f"/admin/{name}", json={"unknown": 1})
        assert answer.status_code in ({200, 409, 422} if not ACTIONS[name].fields else {415, 422}), name
    assert site.public.get("/admin/status").status_code in {401, 405}


def test_an_organiser_rotates_and_the_uploaded_labels_are_stored_nowhere_else(
    serve, folder, next_labels_file, sheet
):
    site = serve()
    site.send(sheet(0.9))
    files = {"labels": ("next.csv", next_labels_file.read_bytes())}
    for data in ({}, {"early": "perhaps"}):  # it has not halted
        refused(site.admin.post("/admin/rotate", files=files, data=data), 422, "bad_input")
    refused(site.admin.post("/admin/rotate", files={}, data={"early": "true"}), 422, "bad_input")
    rotated = site.admin.post("/admin/rotate", files=files, data={"early": "true", "queries": "40"}).json()
    assert (rotated["epoch"], rotated["queries_left"]) == (2, 40)
    assert site.public.get("/board").json() == []
    assert len(site.public.get("/board", params={"epoch": 1}).json()) == 1
    assert not list(folder.glob("uploaded-*"))
    assert site.send(site.public.get("/sample").content, claimed=0.5).json()["epoch"] == 2


# ---- tables


def rows_of(response):
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"].startswith("attachment;")
    return list(csv.DictReader(io.StringIO(response.text)))


def test_board_and_submissions_are_tables_without_formulas(serve, send, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.web.tables._PAGE", 2)
    site = serve()
    assert site.token
    for variant, name in enumerate(("Blue", "=1+1", "Blue", "=1+1", "Blue")):
        send(site.competition, name, 0.9, variant, name=f"{name}.csv")
    board = rows_of(site.public.get("/board.csv"))
    everything = rows_of(site.admin.get("/admin/submissions.csv"))
    assert {one["team"] for one in board} == {"Blue", "'=1+1"}
    assert [one["id"] for one in everything] == list("12345")
    assert [one["name"] for one in everything][:2] == ["Blue.csv", "'=1+1.csv"]
    assert everything[0]["at"].endswith("+00:00")
    refused(site.team.get("/admin/submissions.csv"), 401, "unauthorized")


# ---- public files


def test_an_organiser_gives_everyone_files(serve):
    site = serve()
    made = site.admin.post("/admin/attach", files={"file": ("train.csv", b"a,b\n1,2\n")})
    assert made.json() == {"name": "train.csv", "bytes": 8}
    assert site.public.get("/files").json() == [made.json()]
    got = site.public.get("/files/train.csv")
    assert got.content == b"a,b\n1,2\n"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == 'attachment; filename="train.csv"'
    assert got.headers["x-content-type-options"] == "nosniff"
    (event,) = site.competition.changes()
    assert (event.kind, event.detail["file"], event.detail["bytes"]) == ("attach", "train.csv", 8)
    assert "train.csv 8 bytes" in site.browser().get("/rules").text
    assert site.admin.post("/admin/detach", json={"name": "train.csv"}).json() == []
    refused(site.public.get("/files/train.csv"), 404, "no_file")
    refused(site.admin.post("/admin/detach", json={"name": "train.csv"}), 422, "bad_input")


def test_no_name_of_a_file_leads_elsewhere(serve, folder):
    site = serve()
    (folder / "demo" / "public").mkdir()
    (folder / "demo" / "public" / "link").symlink_to(folder / "demo")
    for name in ("..", ".hidden", "a/b", "a b", "x" * 101, "\u00e9.csv", ""):
        answer = site.admin.post("/admin/attach", files={"file": (name, b"x")})
        assert answer.status_code in {400, 422}
    for path in ("..%2Flabels-1.parquet", "%2e%2e", "..%5cledger.db", "link", "labels-1.parquet", ".x"):
        assert site.public.get(f"/files/{path}").status_code == 404
    assert site.competition.public_files() == []
