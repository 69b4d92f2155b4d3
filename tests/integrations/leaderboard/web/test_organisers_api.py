"""What organisers change over HTTP while a competition runs."""


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
