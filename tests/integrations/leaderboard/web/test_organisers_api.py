"""What organisers change over HTTP while a competition runs, and what everyone gets of it."""

import csv
import io


def problem(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    return error["message"]


def test_an_organiser_changes_rules_and_everyone_sees_what_from_and_to(organised):
    _, admin, client = organised(submissions_per_day=1)
    everyone = client()

    told = admin.post(
        "/admin/rules", json={"changes": {"submissions_per_day": 3, "closes_at": "2030-01-01T00:00:00+00:00"}}
    ).json()

    assert [one["detail"]["rule"] for one in told] == ["submissions_per_day", "closes_at"]
    assert everyone.get("/competition").json()["rules"]["submissions_per_day"] == 3
    events = [one for one in everyone.get("/events").json() if one["kind"] == "rules"]
    assert events == told
    assert events[0]["detail"] == {"rule": "submissions_per_day", "from": 1, "to": 3}


def test_what_the_guard_rests_on_is_refused_over_http_too(organised):
    competition, admin, _ = organised()

    message = problem(
        admin.post("/admin/rules", json={"changes": {"metric": "f1", "title": "X"}}), 422, "bad_input"
    )

    assert "metric cannot be changed" in message
    assert "another competition" in message
    assert competition.rules.title == "Demo"
    problem(admin.post("/admin/rules", json={"changes": {}}), 422, "bad_input")


def test_nobody_but_the_organiser_changes_rules(organised):
    competition, _, client = organised()
    for one in (client(), client(competition.add_team("Blue"))):
        problem(one.post("/admin/rules", json={"changes": {"title": "X"}}), 401, "unauthorized")


def test_a_team_signs_up_with_a_code_and_submits_with_its_token(organised, sheet):
    _, admin, client = organised(sign_up="code")
    everyone = client()
    code = admin.post("/admin/invitation").json()["code"]

    problem(everyone.post("/teams", json={"name": "Blue", "code": "x"}), 401, "invitation")
    made = everyone.post("/teams", json={"name": "Blue", "code": code})

    assert made.status_code == 201
    assert made.json()["team"] == "Blue"
    sent = client(made.json()["token"]).post("/submissions", files={"file": ("x.csv", sheet(0.9))})
    assert sent.status_code == 201
    problem(everyone.post("/teams", json={"name": "blue", "code": code}), 422, "bad_input")
    problem(everyone.post("/teams", data={"name": "Red", "code": code}), 415, "media_type")
    problem(everyone.post("/admin/invitation"), 401, "unauthorized")


def test_sign_up_is_closed_or_full_in_words_of_its_own(organised):
    _, admin, client = organised()
    problem(client().post("/teams", json={"name": "Blue"}), 409, "closed")
    admin.post("/admin/rules", json={"changes": {"sign_up": "open", "most_teams": 1}})
    assert client().post("/teams", json={"name": "Blue"}).status_code == 201
    problem(client().post("/teams", json={"name": "Red"}), 429, "limit")


def test_a_team_picks_its_submission_for_the_final(organised, fresh_labels_file, sheet):
    competition, _, client = organised(fresh=fresh_labels_file)
    team = client(competition.add_team("Blue"))
    sent = team.post("/submissions", files={"file": ("x.csv", sheet(0.9, rows=900))}).json()

    assert team.get("/me/picks").json() == []
    (picked,) = team.post("/me/picks", json={"submissions": [sent["id"]]}).json()

    assert picked == sent | {"picked": True, "replayed": False}
    assert team.get("/me/picks").json() == [picked]
    problem(team.post("/me/picks", json={"submissions": [sent["id"], 77]}), 422, "bad_input")
    problem(client().post("/me/picks", json={"submissions": []}), 401, "unauthorized")


# ---- tables


def rows_of(response):
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"].startswith("attachment;")
    return list(csv.DictReader(io.StringIO(response.text)))


def test_the_board_and_submissions_are_had_as_csv(organised, sheet):
    competition, admin, client = organised()
    tokens = {name: competition.add_team(name) for name in ("Blue", "=1+1")}
    for variant, (name, token) in enumerate(tokens.items()):
        team = competition.authenticate(token).id
        competition.submit(team, sheet(0.9, variant), filename=f"{name}.csv", claimed=0.9)

    board = rows_of(client().get("/board.csv"))
    everything = rows_of(admin.get("/admin/submissions.csv"))
    own = rows_of(client(tokens["Blue"]).get("/me/submissions.csv"))

    assert [(one["team"], float(one["value"])) for one in board] == [("Blue", 0.9), ("'=1+1", 0.9)]
    assert [one["name"] for one in everything] == ["Blue.csv", "'=1+1.csv"]
    assert own == everything[:1]
    assert own[0]["at"].endswith("+00:00")
    problem(client().get("/me/submissions.csv"), 401, "unauthorized")
    problem(client(tokens["Blue"]).get("/admin/submissions.csv"), 401, "unauthorized")


def test_tables_of_a_blind_competition_tell_no_number_but_to_the_organiser(organised, sheet):
    competition, admin, client = organised(blind=True)
    token = competition.add_team("Blue")
    competition.submit(competition.authenticate(token).id, sheet(0.9), filename="x.csv", claimed=0.8)

    for one in (client().get("/board.csv"), client(token).get("/me/submissions.csv")):
        assert [row["value"] for row in rows_of(one)] == [""]
    assert [row["value"] for row in rows_of(admin.get("/admin/submissions.csv"))] != [""]


def test_a_table_has_all_pages(organised, sheet, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.web.exports_api._PAGE", 2)
    competition, admin, _ = organised()
    team = competition.authenticate(competition.add_team("Blue")).id
    for variant in range(5):
        competition.submit(team, sheet(0.9, variant), filename="x.csv", claimed=0.9)
    assert [one["id"] for one in rows_of(admin.get("/admin/submissions.csv"))] == list("12345")


# ---- files


def test_an_organiser_gives_everyone_files(organised):
    competition, admin, client = organised()
    made = admin.post("/admin/files", files={"file": ("train.csv", b"a,b\n1,2\n")})
    assert (made.status_code, made.json()) == (201, {"name": "train.csv", "bytes": 8})

    assert client().get("/files").json() == [{"name": "train.csv", "bytes": 8}]
    got = client().get("/files/train.csv")
    assert got.content == b"a,b\n1,2\n"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == 'attachment; filename="train.csv"'
    assert got.headers["x-content-type-options"] == "nosniff"
    (event,) = competition.changes()
    assert (event.kind, event.detail["file"], event.detail["bytes"]) == ("attach", "train.csv", 8)

    assert admin.post("/admin/files/train.csv/remove").json() == []
    problem(client().get("/files/train.csv"), 404, "no_file")
    problem(admin.post("/admin/files/train.csv/remove"), 422, "bad_input")


def test_no_file_has_a_name_that_leads_elsewhere(organised, folder):
    competition, admin, client = organised()
    (folder / "demo" / "public").mkdir()
    (folder / "demo" / "public" / "link").symlink_to(folder / "demo")
    for name in ("..", ".hidden", "a/b", "a b", "x" * 101, "\u00e9.csv", ""):
        refused = admin.post("/admin/files", files={"file": (name, b"x")})
        assert refused.status_code in {400, 422}
    for path in ("..%2Flabels-1.parquet", "%2e%2e", "..%5cledger.db", "link", "labels-1.parquet", ".x"):
        assert client().get(f"/files/{path}").status_code == 404
    assert competition.public_files() == []


def test_nobody_but_the_organiser_attaches(organised):
    competition, _, client = organised()
    for one in (client(), client(competition.add_team("Blue"))):
        problem(one.post("/admin/files", files={"file": ("x.csv", b"x")}), 401, "unauthorized")
        problem(one.post("/admin/files/x.csv/remove"), 401, "unauthorized")


# ---- teams


def test_an_organiser_renames_merges_and_disqualifies(organised):
    competition, admin, client = organised()
    blue, red, green = (
        competition.authenticate(competition.add_team(one)).id for one in ("Blue", "Red", "Green")
    )

    renamed = admin.post(f"/admin/teams/{blue}/name", json={"name": "Azure"}).json()
    merged = admin.post(f"/admin/teams/{blue}/merge", json={"other": red}).json()
    judged = admin.post(f"/admin/teams/{green}/disqualify", json={}).json()

    assert [one["name"] for one in renamed] == ["Azure", "Red", "Green"]
    assert [one["name"] for one in merged] == ["Azure", "Green"]
    assert [one["disqualified"] for one in judged] == [False, True]
    kinds = [one["kind"] for one in client().get("/events").json() if one["detail"]]
    assert kinds == ["rename", "merge", "disqualify"]
    problem(admin.post(f"/admin/teams/{red}/name", json={"name": "X"}), 422, "bad_input")
    problem(client().post(f"/admin/teams/{blue}/name", json={"name": "X"}), 401, "unauthorized")
