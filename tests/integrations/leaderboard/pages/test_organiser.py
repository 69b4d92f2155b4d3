"""Pages of organisers, as a browser without scripts has them."""

import html
import re

import httpx
import pytest
from board_servers import PATIENCE_SECONDS

ADMIN = "rh_administrator"


class Browser:
    """One visitor, who sends forms as they are on the page."""

    def __init__(self, url):
        self.client = httpx.Client(base_url=url, follow_redirects=True, timeout=PATIENCE_SECONDS)
        self.page = None

    def get(self, path=""):
        self.page = self.client.get(f"/c/demo{path}")
        return self

    @property
    def text(self):
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.page.text)).split())

    def key(self, action):
        """Return the form key in the address of the page's form that goes there."""
        return {"form": re.search(rf'action="/c/demo{action}\?form=([0-9a-f]+)', self.page.text).group(1)}

    def form(self, action):
        """Fields of the page's form that goes to this address."""
        found = rf'<form[^>]*action="/c/demo{action}\?form=[^"]*"[^>]*>(.*?)</form>'
        (body,) = re.findall(found, self.page.text, re.S)
        fields = {}
        for tag in re.findall(r"<input[^>]*>", body):
            given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            if given.get("type") == "checkbox" and " checked" not in tag:
                continue
            fields[given["name"]] = html.unescape(given.get("value", ""))
        for name, text in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>\n?(.*?)</textarea>', body, re.S):
            fields[name] = html.unescape(text).replace("\n", "\r\n")
        for name, options in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', body, re.S):
            chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
            fields[name] = chosen.group(1)
        return fields

    def send(self, action, **changes):
        self.page = self.client.post(
            f"/c/demo{action}", params=self.key(action), data=self.form(action) | changes
        )
        return self


@pytest.fixture
def browser(organised):
    """A competition, its address, and browsers; closed when the test ends."""
    opened = []

    def start(**changes):
        competition, admin, _ = organised(**changes)
        url = str(admin.base_url).removesuffix("/api/v1/")
        opened.append(Browser(url))
        return competition, opened[-1]

    yield start
    for one in opened:
        one.client.close()


@pytest.fixture
def organiser(browser):
    def start(**changes):
        competition, visitor = browser(**changes)
        visitor.get("/organise").send("/organise/login", token=ADMIN)
        assert "What may change" in visitor.text
        return competition, visitor

    return start


def test_an_organiser_changes_rules_by_form_and_everyone_sees_it(organiser):
    competition, browser = organiser(description="Rows of\n\na table.", submissions_per_day=4)
    browser.send("/organise/rules", closes_at="2030-01-01T12:30", submissions_per_day="")
    assert browser.page.status_code == 200
    assert [one.detail["rule"] for one in competition.changes()] == ["closes_at", "submissions_per_day"]
    assert competition.rules.closes_at.isoformat() == "2030-01-01T12:30:00+00:00"
    assert competition.rules.submissions_per_day is None
    assert competition.rules.description == "Rows of\n\na table."
    assert browser.form("/organise/rules")["closes_at"] == "2030-01-01T12:30"
    for page in ("", "/rules"):
        shown = browser.get(page).text
        assert re.search(r"Submissions of a team a day \(UTC\) : from 4 → to none", shown)
    assert re.search(r"Closes : from none → to 2030-01-01 12:30 UTC", shown)


def test_an_organiser_names_other_metrics_of_the_final_by_form(organiser, fresh_labels_file):
    competition, browser = organiser(fresh=fresh_labels_file)
    browser.send("/organise/rules", also="f1, balanced_accuracy")
    assert competition.rules.also == ("f1", "balanced_accuracy")
    assert browser.form("/organise/rules")["also"] == "f1, balanced_accuracy"
    assert re.search(
        r"Other metrics in the final : from none → to f1, balanced_accuracy", browser.get("").text
    )
    browser.get("/organise").send("/organise/rules", also="roc_auc")
    assert browser.page.status_code == 422
    assert "what teams send" in browser.text
    browser.get("/organise").send("/organise/rules", also="")
    assert competition.rules.also == ()


def test_a_changed_description_keeps_what_it_was(organiser):
    _, browser = organiser(description="It was so.")
    browser.send("/organise/rules", description="It is so.")
    shown = browser.get("/rules").text
    assert "what it was before It was so." in shown
    assert "It is so." in shown


def test_a_form_sent_unchanged_changes_nothing(organiser):
    competition, browser = organiser(
        description="Lines\nand <b>marks</b> & more", closes_at=None, charges_per_team=3
    )
    browser.send("/organise/rules")
    assert competition.changes() == []


def test_a_form_that_is_older_than_the_rules_changes_nothing(organiser):
    competition, browser = organiser()
    competition.change_rules({"submissions_per_day": 7})
    browser.send("/organise/rules", title="Another")
    assert browser.page.status_code == 409
    assert "load it again" in browser.text
    assert competition.rules.title == "Demo"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("submissions_per_day", "0", "1 or more"),
        ("closes_at", "soon", "ISO 8601"),
        ("title", " ", "not empty"),
    ],
)
def test_what_a_rule_cannot_be_is_said_on_a_page(organiser, field, value, words):
    competition, browser = organiser()
    browser.send("/organise/rules", **{field: value})
    assert browser.page.status_code == 422
    assert words in browser.text
    assert competition.changes() == []


def test_nobody_else_changes_anything(browser):
    competition, visitor = browser()
    token = competition.add_team("Blue")
    visitor.get("/login").send("/login", token=token)
    visitor.get("/organise").send("/organise/login", token=token)
    assert visitor.page.status_code == 401
    key = visitor.key("/organise/login")
    answer = visitor.client.post("/c/demo/organise/rules", params=key, data={"title": "X"})
    assert answer.status_code == 401
    assert competition.changes() == []


def test_an_organisers_form_from_elsewhere_is_refused_and_a_session_ends(organiser):
    competition, browser = organiser()
    form = browser.form("/organise/rules") | {"title": "X"}
    key = browser.key("/organise/rules")
    answer = browser.client.post("/c/demo/organise/rules", params={"form": "0" * 64}, data=form)
    assert answer.status_code == 403
    answer = browser.client.post(
        "/c/demo/organise/rules", params=key, data=form, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 403
    browser.send("/organise/logout")
    assert browser.client.post("/c/demo/organise/rules", data=form).status_code == 403
    assert competition.changes() == []


def test_teams_are_renamed_merged_disqualified_and_put_back(organiser, add_team, predictions):
    competition, browser = organiser()
    _, red, _ = (add_team(competition, name) for name in ("Blue Sky", "Red", "Green"))
    competition.submit_predictions(red, predictions(0.9), claimed=0.9)
    browser.send("/organise/teams/rename", team="blue sky", name="Azure")  # as it looks is enough
    browser.send("/organise/teams/disqualify", team="Green")
    assert "Disqualified Green Put back" in browser.text
    assert {one.name: one.disqualified for one in competition.teams()} == {
        "Azure": False,
        "Red": False,
        "Green": True,
    }
    assert "/organise/teams/disqualify" in browser.page.text
    answer = browser.client.post(
        "/c/demo/organise/teams/disqualify",
        params=browser.key("/organise/teams/rename"),
        data={"team": "Green", "on": "no"},
    )
    assert "Put back" not in answer.text
    browser.get("/organise").send("/organise/teams/merge", team="Azure", other="Red", sure="yes")
    assert [one.name for one in competition.teams()] == ["Azure", "Green"]
    assert [(row.team, row.submissions) for row in competition.board()] == [("Azure", 1)]
    assert [one.kind for one in competition.changes()] == ["rename", "disqualify", "reinstate", "merge"]


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        ("rename", {"team": "Nobody", "name": "X"}, "There must be a team of this name"),
        ("rename", {"team": "Red", "name": "BIue"}, "or one that looks the same"),
        ("merge", {"team": "Blue", "other": "Nobody", "sure": "yes"}, "There must be a team of this name"),
        ("merge", {"team": "Blue", "other": "Red"}, "cannot be undone"),
        ("merge", {"team": "Blue", "other": "Blue", "sure": "yes"}, "Two teams are merged"),
        ("disqualify", {"team": ""}, "There must be a team of this name"),
    ],
)
def test_what_cannot_be_done_to_teams_changes_nothing(organiser, add_team, action, fields, said):
    competition, browser = organiser()
    for name in ("Blue", "Red"):
        add_team(competition, name)
    key = browser.key("/organise/teams/rename")
    browser.page = browser.client.post(f"/c/demo/organise/teams/{action}", params=key, data=fields)
    assert browser.page.status_code == 422
    assert said in browser.text
    assert competition.changes() == []
    browser.get("/organise").send("/organise/logout")
    answer = browser.client.post(f"/c/demo/organise/teams/{action}", params=key, data=fields)
    assert answer.status_code == 403


def test_who_kept_the_cookie_of_an_organiser_that_signed_out_is_none(organiser):
    _, browser = organiser()
    kept = dict(browser.client.cookies)
    browser.send("/organise/logout")
    browser.client.cookies.update(kept)
    browser.get("/organise")
    assert "What may change" not in browser.text


def test_times_are_elements_that_name_their_zone(organiser):
    _, browser = organiser()
    browser.send("/organise/rules", closes_at="2030-01-01T12:30")
    element = '<time datetime="2030-01-01T12:30:00+00:00">2030-01-01 12:30 UTC</time>'
    assert element in browser.get().page.text
    assert element in browser.get("/rules").page.text


# ---- sign-up


def test_a_link_of_the_organisers_lets_a_team_in_and_shows_its_token_once(organiser):
    competition, ours = organiser()
    ours.send("/organise/rules", sign_up="code")
    ours.send("/organise/invitation")
    (path,) = re.findall(r"/c/demo(/join\?code=[\w-]+)<", ours.page.text)
    theirs = Browser(str(ours.client.base_url))
    with theirs.client:
        assert "Sign up" in theirs.get().text
        theirs.get(path).send("/join", name="Blue")
        assert theirs.page.status_code == 201
        (token,) = re.findall(r"<code>(rh_[\w-]+)</code>", theirs.page.text)
        assert competition.authenticate(token).name == "Blue"
        assert "As Blue" in theirs.get().text
        assert token not in theirs.page.text


def test_a_wrong_code_or_a_closed_sign_up_is_explained(organiser):
    competition, browser = organiser(sign_up="code")
    competition.invite()
    browser.get("/join").send("/join", name="Blue", code="wrong")
    assert browser.page.status_code == 401
    assert "ask them for it" in browser.text
    form, key = browser.get("/join").form("/join"), browser.key("/join")
    competition.change_rules({"sign_up": "closed"})
    assert "made by the organisers" in browser.get("/join").text
    answer = browser.client.post("/c/demo/join", params=key, data=form | {"name": "Blue"})
    assert answer.status_code == 409
    assert competition.teams() == []


# ---- picks


def test_a_team_picks_for_the_final_by_form(browser, fresh_labels_file, sheet):
    competition, visitor = browser(fresh=fresh_labels_file)
    token = competition.add_team("Blue")
    team = competition.authenticate(token)
    for variant in range(2):
        competition.submit(team.id, sheet(0.8, variant, rows=900), filename="x.csv", claimed=0.8)
    visitor.get("/login").send("/login", token=token)
    visitor.get("/team").send("/team/picks", **{"pick-2": "on"})
    assert [one.id for one in competition.picks(team.id)] == [2]
    assert re.search(r'name="pick-2"[^>]* checked', visitor.page.text)
    assert not re.search(r'name="pick-1"[^>]* checked', visitor.page.text)
    visitor.send("/team/picks", **{"pick-1": "on", "pick-2": "on"})
    assert visitor.page.status_code == 422
    assert "may pick 1" in visitor.text


# ---- files and tables


def test_files_are_given_by_form_and_found_on_the_rules_page(organiser):
    competition, browser = organiser()
    key, files = browser.key("/organise/files"), {"file": ("train.csv", b"a\n1\n")}
    browser.page = browser.client.post("/c/demo/organise/files", params=key, files=files)
    assert browser.page.status_code == 200
    assert "train.csv 4 bytes" in browser.get("/rules").text
    (address,) = re.findall(r'href="([^"]*/files/train.csv)"', browser.page.text)
    assert browser.client.get(address).content == b"a\n1\n"
    browser.get("/organise").send("/organise/files/remove")
    assert competition.public_files() == []


def test_tables_of_submissions_need_their_session(organiser, sheet):
    competition, browser = organiser(blind=True)
    token = competition.add_team("Blue")
    competition.submit(competition.authenticate(token).id, sheet(0.9), filename="x.csv", claimed=0.8)
    assert ",scored," in browser.get("/organise/submissions.csv").page.text
    assert browser.get("/team/submissions.csv").page.status_code == 401
    browser.get("/login").send("/login", token=token)
    assert ",received," in browser.get("/team/submissions.csv").page.text
    browser.get("/organise").send("/organise/logout")
    assert browser.get("/organise/submissions.csv").page.status_code == 401


def test_a_team_turns_the_pages_of_its_history(browser, sheet, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.pages.teams._MOST_SUBMISSIONS", 2)
    competition, visitor = browser()
    token = competition.add_team("Blue")
    for variant in range(5):
        competition.submit(
            competition.authenticate(token).id, sheet(0.9, variant), filename=f"{variant}.csv", claimed=0.9
        )
    visitor.get("/login").send("/login", token=token)
    visitor.get("/team")
    seen = []
    while True:
        seen.append(re.findall(r'class="name">(\d)\.csv', visitor.page.text))
        older = re.search(r'href="/c/demo/team(\?before=\d+)"', visitor.page.text)
        if not older:
            break
        visitor.get(f"/team{older.group(1)}")
    assert seen == [["4", "3"], ["2", "1"], ["0"]]
