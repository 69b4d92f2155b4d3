"""Pages in a browser without scripts: released values, forms, and nothing from other hosts."""

import itertools
import re

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, Browser, served
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.settings import Settings

TO = "\N{EN DASH}"
PAGES = ("", "/rules", "/team", "/login", "/join", "/organise")


@pytest.fixture
def entered(serve):
    """Serve a competition; return it and the browser of a team that is logged in."""

    def enter(**changes):
        site = serve(**changes)
        browser = site.browser().log_in(site.token)
        assert browser.page.status_code == 200
        return site.competition, browser

    return enter


# ---- content


@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "brier", "roc_auc", "balanced_accuracy", "rmse"])
def test_every_page_of_any_metric_is_shown(entered, metric, fresh_labels_file):
    bounds = {"metric_parameters": {"lower": 0.0, "upper": 200.0}} if metric == "rmse" else {}
    competition, browser = entered(metric=metric, prior_error=None, fresh=fresh_labels_file, **bounds)
    assert browser.submit(competition.expected.sample(), claimed="0.5").page.status_code == 200
    for path in PAGES:
        assert browser.get(path).page.status_code == 200, path


def test_the_board_shows_released_values_and_ties(serve, send):
    site = serve()
    for name, accuracy in (("Low", 0.05), ("Mid", 0.9), ("High", 0.95)):
        send(site.competition, name, accuracy)
    standings, browser = site.competition.board(), site.browser().get()
    found = r"<tr[^>]*data-name=\"(\w+)\" data-rank=\"([^\"]*)\" data-value=\"([^\"]*)\""
    places = [
        f"{one.rank}" if one.rank == one.rank_last else f"{one.rank}{TO}{one.rank_last}" for one in standings
    ]
    assert f"1{TO}2" in places
    rows = [(one.team, place, f"{one.value:.4f}") for one, place in zip(standings, places, strict=True)]
    assert re.findall(found, browser.page.text) == rows
    for one in standings:
        assert f"{one.low:.4f} to {one.high:.4f}" in browser.text


def test_certified_neighbours_are_marked_in_words(serve, send):
    site = serve(prior_error=0.002)
    for name, accuracy in (("Low", 0.3), ("Mid", 0.7), ("High", 0.85)):
        send(site.competition, name, accuracy)
    standings, browser = site.competition.board(), site.browser().get()
    marked = [one.team for one in standings if one.better_than_next]
    assert marked == ["High", "Mid"]
    assert any(one.better_than_next and one.low <= other.high for one, other in itertools.pairwise(standings))
    for name in ("High", "Mid", "Low"):
        row = re.search(rf'<tr[^>]*data-name="{name}".*?</tr>', browser.page.text, re.DOTALL).group()
        assert ("better than the next" in row) == (name in marked)
    assert "unless the files of neighbours show which is better" in browser.text
    assert "Neighbours are also compared row by row" in browser.get("/rules").text
    table = site.public.get("/board.csv").text.splitlines()
    assert table[0].endswith("better_than_next")
    assert [line.endswith("true") for line in table[1:]] == [True, True, False]


def test_boards_that_compare_nothing_do_not_mention_it(serve):
    browser = serve(metric="f1").browser()
    assert "files of neighbours" not in browser.get().text
    assert "row by row" not in browser.get("/rules").text


def test_the_final_shows_the_other_metrics_that_the_rules_announce(entered, send_whole, fresh_labels_file):
    competition, browser = entered(fresh=fresh_labels_file, also=("f1", "balanced_accuracy"))
    assert "The final standings also show F1, Balanced accuracy" in browser.get("/rules").text
    send_whole(competition, "Blue", 0.9, 0.8)
    competition.freeze()
    (one,) = competition.final_standings()
    browser.get()
    for found in one.also.values():
        assert f"{found['low']:.4f} to {found['high']:.4f}" in browser.text
    assert "The same submissions by other metrics" in browser.text
    assert browser.client.get("/api/v1/final").json()[0]["also"] == one.also
    columns = ",".join(
        f"{name}{end}" for name in ("f1", "balanced_accuracy") for end in ("", "_low", "_high")
    )
    assert browser.client.get("/api/v1/final.csv").text.splitlines()[0].endswith(columns)


def test_a_metric_that_the_fresh_rows_do_not_define_is_shown_without_a_number(
    entered, send_whole, fresh_labels_file
):
    header, *rows = fresh_labels_file.read_text().splitlines()
    path = fresh_labels_file.with_name("one_class.csv")
    path.write_text("\n".join([header, *(f"{row.split(',')[0]},0" for row in rows)]))
    competition, browser = entered(fresh=path, also=("balanced_accuracy",))
    send_whole(competition, "Blue", 0.9, 0.8)
    competition.freeze()
    (one,) = competition.final_standings()
    assert one.also == {}
    assert "not defined on the fresh rows" in browser.get().text
    lines = browser.client.get("/api/v1/final.csv").text.splitlines()
    assert lines[0].endswith("balanced_accuracy,balanced_accuracy_low,balanced_accuracy_high")
    assert lines[1].endswith(",,,")


def test_without_submissions_two_label_sets_have_the_same_pages(tmp_path, ids, key_file):
    texts = []
    for seed in (1, 2):
        labels = np.random.default_rng(seed).integers(0, 2, 600)
        path = tmp_path / f"labels{seed}.csv"
        rows = zip(ids[:600], labels, strict=True)
        path.write_text("id,label\n" + "".join(f"{one},{y}\n" for one, y in rows))
        folder = tmp_path / str(seed)
        Competition.create(
            folder, Rules(slug="demo", title="Demo", vacuous=True), path, key_file=key_file
        ).close()
        with (
            served(Settings(folder=folder, key_file=key_file)) as server,
            httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
        ):
            pages = [client.get(f"/c/demo{page}").text for page in PAGES] + [
                client.get("/api/v1/sample").text
            ]
        texts.append([re.sub(r"(form=[0-9a-f]{64}|127\.0\.0\.1:\d+)", "", page) for page in pages])
    assert texts[0] == texts[1]


def test_pages_of_a_blind_competition_hold_no_number_of_the_guard(entered, sheet):
    competition, browser = entered(blind=True)
    shown = browser.submit(sheet(0.7), claimed="0.1").text
    assert "Received" in shown
    shown += browser.get().text
    assert "Blind" in shown
    (private,) = competition.board(reveal=True)
    for number in (private.value, private.low, private.high):
        assert f"{number:.4f}" not in shown
    competition.unblind()
    assert f"{private.value:.4f}" in browser.get().text


def test_a_halt_is_announced_until_the_final_standings(entered, send_whole, fresh_labels_file):
    competition, browser = entered(fresh=fresh_labels_file, queries=1, charges=1)
    send_whole(competition, "Blue", 1.0)
    browser.get()
    assert 'role="alert"' in browser.page.text
    assert "Halted: all questions are asked" in browser.text
    assert "Look up an earlier file" in browser.text
    competition.freeze()
    assert "The competition is frozen." in browser.get().text
    competition.final_standings()
    assert "Final standings" in browser.get().text
    assert "Halted:" not in browser.text


def test_the_rules_state_the_competitions_own_numbers(serve):
    site = serve(submissions_per_day=7, description="First.\n\nSecond, longer.", queries=1234)
    text, plan = site.browser().get("/rules").text, site.competition.plan
    for words in (
        "Questions, all teams together 1,234",
        f"Charges of each team {plan.charges}",
        f"A claim stands within {plan.threshold:.4f}",
        "Confidence of all intervals together 95%",
        "Submissions of a team a day (UTC) 7",
        "Second, longer.",
    ):
        assert words in text


def test_names_are_text_and_never_markup(serve, send):
    site, name = serve(), '<img src=x onerror="alert(1)">&{{7*7}}'
    send(site.competition, name, 0.9, name="<b>.csv")
    browser = site.browser().get()
    assert "<img" not in browser.page.text
    assert name in browser.text


def test_pages_hold_nothing_inline_and_nothing_from_elsewhere(entered, sheet):
    _, browser = entered()
    browser.submit(sheet(0.9), claimed="0.9")
    for page in (*PAGES, "/nothing"):
        text = browser.get(page).page.text
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", text)
        assert all(re.search(r"\ssrc=", tag) for tag in re.findall(r"<script[^>]*>", text))
        addresses = re.findall(r'(?:href|src|action)="([^"]*)"', text)
        assert not [one for one in addresses if not re.match(r"[/#]", one)]
        assert "unsafe" not in browser.page.headers["content-security-policy"]
        assert browser.page.headers["cache-control"] == "no-store"


# ---- submissions


def test_the_result_of_a_submission_is_explained(entered, sheet, send):
    competition, browser = entered(charges=1)
    send(competition, "Red", 0.6, claimed=0.1)
    for content, claimed, title, words in (
        (sheet(0.9), "0,9", "Measured: you lead 0.9", "It is the best measured score."),
        (sheet(0.9), "0.9", "Measured: you lead", "sent before: this is the recorded answer, free"),
        (sheet(0.6), "0.2", "does not stand", "contradicts your claim of 0.2000. Perhaps another team"),
        (sheet(0.8, 1), "0.8", "Your claim stands 0.8000", "The claim is certified, not measured."),
        (sheet(0.5, 2), "0.95", "Your claim does not stand", "from the claimed 0.9500, so this costs"),
        (sheet(0.5, 3), "0.95", "Not certified 0.9500", "you can pick it for the final"),
    ):
        text = browser.submit(content, claimed=claimed).text
        assert title in text
        assert words in text
    assert browser.page.history[0].status_code == 303
    assert "mine.csv" in browser.text


def test_a_script_gets_the_part_of_the_page_that_it_asks_for(entered, sheet):
    _, browser = entered()
    sent = {"params": browser.get().key("/submit"), "headers": {"X-Part": "result"}}
    for content, status, begins in (
        (sheet(0.9), 200, '<div class="result best"'),
        (b"x\n1\n", 422, '<div class="result bad"'),
    ):
        files = {"file": ("a.csv", content)}
        answer = browser.client.post("/c/demo/submit", data={"claimed": "0.9"}, files=files, **sent)
        assert answer.status_code == status
        assert answer.text.strip().startswith(begins)


def test_a_team_sees_only_its_own_submissions_in_pages(entered, send, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.pages.endpoints._MOST_SUBMISSIONS", 2)
    competition, browser = entered()
    other = send(competition, "Red", 0.8, name="red secret.csv")
    for variant in range(5):
        send(competition, "Blue", 0.9, variant, name=f"{variant}.csv")
    browser.get(f"/team?done={other.id}")
    assert "red secret.csv" not in browser.text
    assert "Your claim" not in browser.text
    seen = []
    while True:
        seen.append(re.findall(r'class="name">(\d)\.csv', browser.page.text))
        older = re.search(r'href="/c/demo/team(\?before=\d+)"', browser.page.text)
        if not older:
            break
        browser.get(f"/team{older.group(1)}")
    assert seen == [["4", "3"], ["2", "1"], ["0"]]


def test_a_team_picks_for_the_final_by_form(entered, fresh_labels_file, send_whole):
    competition, browser = entered(fresh=fresh_labels_file)
    for variant in range(2):
        team = send_whole(competition, "Blue", 0.8, variant=variant).team_id
    browser.get("/team").send("/team/picks", **{"pick-2": "on"})
    assert [one.id for one in competition.picks(team)] == [2]
    assert re.search(r'name="pick-2"[^>]* checked', browser.page.text)
    assert not re.search(r'name="pick-1"[^>]* checked', browser.page.text)
    browser.send("/team/picks", **{"pick-1": "on", "pick-2": "on"})
    assert browser.page.status_code == 422
    assert "may pick at most 1" in browser.text


# ---- sessions and forms


def test_forms_of_other_sites_are_refused(entered, sheet, serve):
    competition, browser = entered()
    stranger = Browser(httpx.Client(base_url=browser.client.base_url, timeout=PATIENCE_SECONDS))
    with stranger.client:
        other = stranger.get().key()
    key = browser.get().key("/submit")
    for path, given, headers in (
        ("submit", {}, {}),
        ("submit", {"form": ""}, {}),
        ("submit", other, {}),
        ("submit", key, {"Sec-Fetch-Site": "cross-site"}),
        ("logout", {"form": ""}, {}),
        ("login", {"form": "\ud7ff"}, {}),
        ("organise/freeze", key, {}),
    ):
        sent = {"params": given, "headers": headers, "data": {"csrf": key["form"], "claimed": "0.9"}}
        sent["files"] = {"file": ("a.csv", sheet(0.9))} if path == "submit" else None
        answer = browser.client.post(f"/c/demo/{path}", **sent)
        assert answer.status_code == 403
        assert "Load the page again" in answer.text
    assert competition.status().queries_asked == 0


def test_a_session_begins_with_a_token_and_ends_for_every_copy_of_its_cookie(entered, sheet):
    competition, browser = entered()
    (cookie,) = [one for one in browser.client.cookies.jar if one.name.startswith("rh_session")]
    assert "As Blue" in browser.get().text
    assert "rh_" not in cookie.value  # it is no token, and holds none
    key = browser.key("/submit")
    browser.send("/logout")
    assert "Take part" in browser.text
    browser.client.cookies.set(cookie.name, cookie.value)
    assert "As Blue" not in browser.get().text
    files = {"file": ("x.csv", sheet(0.9))}
    answer = browser.client.post("/c/demo/submit", params=key, data={"claimed": "0.9"}, files=files)
    assert answer.status_code == 401
    assert competition.status().queries_asked == 0
    assert browser.log_in("nobody's").page.status_code == 401
    assert "No team has this token" in browser.text


def test_a_link_of_the_organisers_lets_a_team_sign_up_and_shows_its_token_once(serve):
    site = serve(sign_up="code")
    ours, theirs = site.browser().organise(), site.browser()
    ours.send("/organise/invite")
    (path,) = re.findall(r"/c/demo(/join\?code=[\w-]+)<", ours.page.text)
    assert "Sign up" in theirs.get().text
    theirs.get(path).send("/join", name="Blue", code="wrong")
    assert theirs.page.status_code == 401
    assert "ask them for it" in theirs.text
    theirs.get(path).send("/join", name="Blue")
    assert theirs.page.status_code == 201
    (token,) = re.findall(r"<code>(rh_[\w-]+)</code>", theirs.page.text)
    assert site.competition.authenticate(token).name == "Blue"
    assert "As Blue" in theirs.get().text
    assert token not in theirs.page.text
    form, key = ours.get("/join").form("/join"), ours.key("/join")
    site.competition.change_rules({"sign_up": "closed"})
    assert "Only the organisers make teams" in ours.get("/join").text
    answer = ours.client.post("/c/demo/join", params=key, data=form | {"name": "Red"})
    assert answer.status_code == 409


# ---- addresses


def test_the_only_competition_is_at_the_front(serve):
    browser = serve().browser(home="")
    assert browser.get("/").page.url.path == "/c/demo"
    assert "Demo" in browser.get("/competitions").text


def test_missing_pages_are_pages_too(serve):
    browser = serve().browser(home="/c/none")
    assert browser.get().page.status_code == 404
    assert "No such competition" in browser.text
    assert browser.get("/../../static/../endpoints.py").page.status_code == 404
    assert browser.client.get("/static/endpoints.py").status_code == 404


def test_styles_and_scripts_change_their_addresses_when_they_change(serve):
    browser = serve().browser().get()
    addresses = re.findall(r'(?:href|src)="(/static/[^"]*\?[^"]*)"', browser.page.text)
    assert len(addresses) == 3
    for address in addresses:
        answer = browser.client.get(address)
        assert answer.headers["content-type"].split(";")[0] in {"text/css", "text/javascript"}
        assert "immutable" in answer.headers["cache-control"]
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_a_board_is_turned_and_searched_without_scripts(serve, send):
    site = serve(queries=100)
    for k in range(51):
        send(site.competition, f"Team {k}", 0.7, k)
    browser = site.browser().get()
    assert 'name="q"' in browser.page.text
    assert "Page 1 of 2, 51 teams" in browser.text
    assert 'href="?q=&amp;page=2#board"' in browser.page.text
    assert browser.page.text.count("data-team=") == 50
    for page, teams in (("page=2", 1), ("page=4", 1), ("page=0", 50), ("page=x", 50), ("q=+tEAM+4", 11)):
        assert browser.get(f"?{page}").page.text.count("data-team=") == teams, page
    found = browser.get("?q=%22%3E%3Cscript%3E").page.text
    assert "><script>" not in found
    assert "No team" in found
