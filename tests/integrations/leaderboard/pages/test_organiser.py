"""The organisers' page in a browser without scripts: a form for every action."""

import re

import pytest
from board_servers import ADMIN
from reusable_holdout_leaderboard.actions import ACTIONS, File

FORMS = [one for name, one in ACTIONS.items() if name not in {"status", "change"}]


@pytest.fixture
def organiser(serve):
    """Serve a competition; return it and the browser of an organiser who is logged in."""

    def start(**changes):
        site = serve(**changes)
        browser = site.browser().organise()
        assert "Change the rules" in browser.text
        return site.competition, browser

    return start


# ---- rules


def test_an_organiser_changes_rules_by_form_publicly(organiser):
    competition, browser = organiser(description="Rows of\n\na table.", submissions_per_day=4)
    browser.send("/organise/change")
    assert competition.changes() == []  # an unchanged form changes nothing
    browser.send("/organise/change", closes_at="2030-01-01T12:30", submissions_per_day="")
    assert browser.page.status_code == 200
    assert [one.detail["rule"] for one in competition.changes()] == ["closes_at", "submissions_per_day"]
    assert competition.rules.closes_at.isoformat() == "2030-01-01T12:30:00+00:00"
    assert competition.rules.submissions_per_day is None
    assert competition.rules.description == "Rows of\n\na table."
    assert browser.form("/organise/change")["closes_at"] == "2030-01-01T12:30"
    for page in ("", "/rules"):
        shown = browser.get(page).text
        assert re.search(r"Submissions of a team a day \(UTC\) : from 4 → to none", shown)
    assert re.search(r"Closes : from none → to 2030-01-01 12:30 UTC", shown)
    assert '<time datetime="2030-01-01T12:30:00+00:00">2030-01-01 12:30 UTC</time>' in browser.page.text
    browser.get("/organise").send("/organise/change", description="It is so.")
    shown = browser.get("/rules").text
    assert "see the earlier one Rows of a table." in shown
    assert "It is so." in shown


def test_an_organiser_names_other_metrics_of_the_final_by_form(organiser, fresh_labels_file):
    competition, browser = organiser(fresh=fresh_labels_file)
    browser.send("/organise/change", also="f1, balanced_accuracy")
    assert competition.rules.also == ("f1", "balanced_accuracy")
    assert browser.form("/organise/change")["also"] == "f1, balanced_accuracy"
    assert re.search(r"Other metrics in the final : from none → to f1, balanced_accuracy", browser.get().text)
    browser.get("/organise").send("/organise/change", also="")
    assert competition.rules.also == ()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("closes_at", "soon", "ISO 8601"),
        ("also", "f1", "need fresh labels"),
    ],
)
def test_an_impossible_rule_is_refused_on_a_page(organiser, field, value, words):
    competition, browser = organiser()
    browser.send("/organise/change", **{field: value})
    assert browser.page.status_code == 422
    assert words in browser.text
    assert competition.changes() == []


def test_a_form_that_is_older_than_the_rules_changes_nothing(organiser):
    competition, browser = organiser()
    competition.change_rules({"submissions_per_day": 7})
    browser.send("/organise/change", title="Another")
    assert browser.page.status_code == 409
    assert "load it again" in browser.text
    assert competition.rules.title == "Demo"


# ---- access


def test_only_an_organiser_acts(serve):
    site = serve()
    browser = site.browser().log_in(site.token).organise(site.token)
    assert browser.page.status_code == 401
    key = browser.key("/organise/login")
    for name in ("change", *(one.name for one in FORMS)):
        answer = browser.client.post(f"/c/demo/organise/{name}", params=key, data={"title": "X"})
        assert answer.status_code == 401, name
    browser.organise()
    kept, key = dict(browser.client.cookies), browser.key("/organise/change")
    browser.send("/organise/logout")
    browser.client.cookies.update(kept)
    assert "Change the rules" not in browser.get("/organise").text
    answer = browser.client.post("/c/demo/organise/freeze", params=key)
    assert answer.status_code == 401
    for name in ("status", "nothing"):
        assert browser.client.post(f"/c/demo/organise/{name}", params=key).status_code == 404
    assert [one.kind for one in site.competition.events()] == ["created", "team"]


def test_tables_of_submissions_need_their_session(serve, send):
    site = serve(blind=True)
    assert site.token
    send(site.competition, "Blue", 0.9, claimed=0.8)
    browser = site.browser().organise()
    assert ",scored," in browser.get("/organise/submissions.csv").page.text
    assert browser.get("/team/submissions.csv").page.status_code == 401
    assert ",received," in browser.log_in(site.token).get("/team/submissions.csv").page.text
    browser.get("/organise").send("/organise/logout")
    assert browser.get("/organise/submissions.csv").page.status_code == 401


# ---- actions


@pytest.mark.parametrize("action", FORMS, ids=lambda action: action.name)
def test_every_action_has_an_accessible_form(organiser, action):
    _, browser = organiser()
    (body,) = re.findall(
        rf'<form[^>]*action="/c/demo/organise/{action.name}\?[^>]*>(.*?)</form>', browser.page.text, re.DOTALL
    )
    for one in action.fields:
        (tag,) = re.findall(rf'<input[^>]*name="{one.name}"[^>]*>', body)
        (number,) = re.findall(r'id="([^"]*)"', tag)
        assert f'<label for="{number}">' in body
        assert (" required" in tag) == (one.default is ...)
        assert ('type="file"' in tag) == (one.kind is File)
    assert ('name="sure"' in body) == bool(action.final)
    assert f'<a href="#{action.name}">' in browser.page.text


def test_teams_are_added_renamed_and_disqualified(organiser):
    competition, browser = organiser()
    for name in ("Blue Sky", "Red", "Green"):
        browser.send("/organise/add-team", team=name)
        (token,) = re.findall(r"<code>(rh_[\w-]+)</code>", browser.page.text)
        assert competition.authenticate(token).name == name
    browser.get("/organise").send(
        "/organise/rename-team", team="blue sky", name="Azure"
    )  # a look-alike is enough
    browser.send("/organise/disqualify", team="Green")
    assert "Disqualified: Green" in browser.text
    browser.send("/organise/disqualify", team="Green", off="yes")
    assert "Disqualified: Green" not in browser.text
    assert [one.name for one in competition.teams()] == ["Azure", "Red", "Green"]
    assert [one.kind for one in competition.changes()] == ["rename", "disqualify", "reinstate"]


@pytest.mark.parametrize(
    ("action", "fields", "words"),
    [
        ("rename-team", {"team": "Nobody", "name": "X"}, "There must be a team of this name"),
        ("rename-team", {"team": "Red", "name": "BIue"}, "or one that looks the same"),
        ("rename-team", {"team": "Red", "name": ""}, "Field required"),
        ("renew-token", {"team": "Blue"}, "cannot be undone"),
        ("unblind", {}, "cannot be undone"),
    ],
)
def test_an_impossible_action_changes_nothing(organiser, add_team, action, fields, words):
    competition, browser = organiser()
    for name in ("Blue", "Red"):
        add_team(competition, name)
    browser.send(f"/organise/{action}", **fields)
    assert browser.page.status_code == 422
    assert words.lower() in browser.text.lower()
    assert competition.changes() == []


def test_a_competition_is_frozen_unblinded_rotated_and_finished_by_form(
    organiser, next_labels_file, fresh_labels_file, send_whole, folder
):
    competition, browser = organiser(blind=True, fresh=fresh_labels_file)
    send_whole(competition, "Blue", 0.9)
    browser.send("/organise/unblind", sure="yes").send("/organise/freeze")
    assert (competition.status().blind, competition.status().frozen) == (False, True)
    browser.send("/organise/final", sure="yes")
    assert competition.status().final
    labels = {"labels": ("next.csv", next_labels_file.read_bytes())}
    browser.send("/organise/rotate", labels, sure="yes", early="yes")
    assert browser.page.status_code == 409  # after the final nothing is rotated
    assert not list(folder.glob("uploaded-*"))
    assert competition.status().epoch == 1
    assert ADMIN not in browser.page.text
