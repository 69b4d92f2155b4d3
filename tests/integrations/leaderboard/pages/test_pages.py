"""Pages as a browser without scripts has them: released values, forms, and nothing from elsewhere."""

import contextlib
import html
import itertools
import re

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard import Competition, Expected, Rules, Standing
from reusable_holdout_leaderboard.pages.charts import burn_down_of
from reusable_holdout_leaderboard.pages.content import Row, part_of
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout.scales import decimals_of, scale_of

TO = "\N{EN DASH}"
PAGES = ("", "/rules", "/team", "/login")


@pytest.fixture
def visit(folder, key_file):
    """Browsers without scripts: each follows redirects and keeps its cookies."""
    with contextlib.ExitStack() as opened:
        servers = []

        def open_(path="/c/demo", **settings):
            if not servers:
                given = {"folder": folder, "key_file": key_file, "answer_seconds": 0.0} | settings
                servers.append(opened.enter_context(served(Settings(**given))))
            browser = Browser(f"{servers[0].url}", path)
            opened.callback(browser.client.close)
            return browser

        yield open_


class Browser:
    """One visitor."""

    def __init__(self, url, path):
        self.client = httpx.Client(base_url=url, follow_redirects=True, timeout=PATIENCE_SECONDS)
        self.path = path
        self.page = None

    def get(self, path=""):
        self.page = self.client.get(self.path + path)
        return self.page

    @property
    def key(self):
        """Form key in the address of the page's forms."""
        return {"form": re.search(r'action="[^"]*\?form=([0-9a-f]+)"', self.page.text).group(1)}

    @property
    def text(self):
        """What the page says, without its tags."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.page.text)).split())

    def login(self, token):
        self.get()
        self.page = self.client.post(f"{self.path}/login", params=self.key, data={"token": token})
        return self.page

    def submit(self, content, *, name="mine.csv", headers=None, **fields):
        self.page = self.client.post(
            f"{self.path}/submit",
            params=self.key,
            data=fields,
            files={"file": (name, content)},
            headers=headers or {},
        )
        return self.page


@pytest.fixture
def entered(make_competition, visit):
    """A competition, and a browser of a team that is logged in."""

    def enter(**changes):
        competition = make_competition(**changes)
        browser = visit()
        assert browser.login(competition.add_team("Blue")).status_code == 200
        return competition, browser

    return enter


# ---- what is shown


def test_every_page_of_a_board_of_claims_is_shown_to_who_is_logged_in(entered, sheet, fresh_labels_file):
    competition, browser = entered(
        policy="claims", queries=200, tolerance=None, prior_error=0.05, fresh=fresh_labels_file, final_picks=2
    )
    for path in PAGES:
        assert browser.get(path).status_code == 200, path
        assert "What you believe it is worth" in browser.text or path in {"/rules", "/login"}
    browser.get()
    assert browser.submit(sheet(0.9, rows=900), claimed="0.9").status_code == 200
    assert browser.submit(sheet(0.3, rows=900), claimed="0.95").status_code == 200
    assert "Pick mine.csv for the final" in browser.page.text
    assert [one.charged for one in competition.submissions()] == [False, True]


def test_the_board_shows_what_was_released_and_ties_as_ties(competition, add_team, sheet, visit):
    for name, accuracy in (("Low", 0.1), ("Mid", 0.85), ("High", 0.9)):
        competition.submit(add_team(competition, name), sheet(accuracy), filename="a.csv", claimed=accuracy)
    standings = competition.board()
    browser = visit()
    browser.get()
    rows = re.findall(
        r"<tr[^>]*data-name=\"(\w+)\" data-rank=\"([^\"]*)\" data-value=\"([^\"]*)\"", browser.page.text
    )
    places = [
        f"{one.rank}" if one.rank == one.rank_last else f"{one.rank}{TO}{one.rank_last}" for one in standings
    ]
    assert f"1{TO}2" in places
    assert rows == [
        (one.team, place, f"{one.value:.4f}") for one, place in zip(standings, places, strict=True)
    ]
    for one in standings:
        assert f"{one.low:.4f} to {one.high:.4f}" in browser.text


def test_neighbours_that_are_certified_are_marked_in_words(make_competition, add_team, predictions, visit):
    competition = make_competition(
        policy="claims", tolerance=None, prior_error=0.002, queries=50, submissions_per_team=9
    )
    for name, accuracy in (("Low", 0.3), ("Mid", 0.7), ("High", 0.85)):
        competition.submit_predictions(
            add_team(competition, name), predictions(accuracy), claimed=accuracy, name="a"
        )
    standings = competition.board()
    marked = [one.team for one in standings if one.better_than_next]
    assert marked == ["High", "Mid"]
    assert any(one.better_than_next and one.low <= other.high for one, other in itertools.pairwise(standings))
    browser = visit()
    browser.get()
    for name in ("High", "Mid", "Low"):
        row = re.search(rf'<tr[^>]*data-name="{name}".*?</tr>', browser.page.text, re.DOTALL).group()
        assert ("better than the next" in row) == (name in marked)
    assert "but where the files of neighbours say who is better" in browser.text
    browser.get("/rules")
    assert "Neighbours are also compared file by file" in browser.text
    assert "With 95% confidence all of these marks are right, and all intervals with them" in browser.text
    table = browser.client.get("/api/v1/board.csv").text.splitlines()
    assert table[0].endswith("better_than_next")
    assert [line.endswith("true") for line in table[1:]] == [True, True, False]


def test_boards_that_compare_nothing_say_nothing_of_it(make_competition, visit):
    make_competition()
    browser = visit()
    assert "files of neighbours" not in browser.get().text
    assert "file by file" not in browser.get("/rules").text


def test_the_final_shows_the_other_metrics_and_the_rules_say_them_before(entered, sheet, fresh_labels_file):
    competition, browser = entered(fresh=fresh_labels_file, also=("f1", "balanced_accuracy"))
    browser.get("/rules")
    assert "The final standings also show F1, Balanced accuracy of the submissions" in browser.text
    assert "Accuracy alone ranks" in browser.text
    browser.get()
    assert browser.submit(sheet(0.9, rows=900), claimed="0.9").status_code == 200
    competition.freeze()
    (one,) = competition.final_standings()
    browser.get()
    for found in one.also.values():
        assert f"{found['low']:.4f} to {found['high']:.4f}" in browser.text
    assert "The same submissions by other metrics" in browser.text
    assert browser.client.get("/api/v1/final").json()[0]["also"] == one.also
    table = browser.client.get("/api/v1/final.csv").text.splitlines()
    assert table[0].endswith(
        "f1,f1_low,f1_high,balanced_accuracy,balanced_accuracy_low,balanced_accuracy_high"
    )


def test_without_submissions_two_label_sets_have_the_same_pages(tmp_path, ids, visit, key_file):
    texts = []
    for seed in (1, 2):
        labels = np.random.default_rng(seed).integers(0, 2, 600)
        path = tmp_path / f"labels{seed}.csv"
        path.write_text(
            "id,label\n" + "".join(f"{one},{y}\n" for one, y in zip(ids[:600], labels, strict=True))
        )
        folder = tmp_path / str(seed)
        rules = Rules(slug="demo", title="Demo", policy="ladder", queries=50, tolerance=0.3, vacuous=True)
        with Competition.create(folder, rules, path, key_file=key_file):
            pass
        with (
            served(Settings(folder=folder, key_file=key_file)) as server,
            httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
        ):
            pages = [client.get(f"/c/demo{page}").text for page in (*PAGES, "/sample.csv")]
        texts.append([re.sub(r"(form=[0-9a-f]{64}|127\.0\.0\.1:\d+)", "", page) for page in pages])
    assert texts[0] == texts[1]


def test_while_it_is_blind_the_pages_hold_no_number_of_the_guard(entered, sheet):
    competition, browser = entered(blind=True)
    browser.submit(sheet(0.7), claimed="0.1")
    assert "Received" in browser.text
    shown = browser.text
    browser.get()
    shown += browser.text
    assert "Blind" in shown
    assert "charges are hidden while blind" in shown
    (private,) = competition.board(reveal=True)
    for number in (private.value, private.low, private.high):
        assert f"{number:.4f}" not in shown
    competition.unblind()
    assert f"{private.value:.4f}" in browser.get().text


def test_a_halt_cannot_be_missed_and_ends_with_the_final_standings(
    make_competition, fresh_labels_file, visit, labels, ids
):
    competition = make_competition(fresh=fresh_labels_file, queries=1)
    token = competition.add_team("Blue")
    team = competition.authenticate(token).id
    predictions = {one: int(y) for one, y in zip(ids, labels, strict=True)}
    right = np.array([predictions[one] for one in competition.expected.ids])
    competition.submit_predictions(team, right, claimed=1.0)
    browser = visit()
    browser.login(token)
    assert 'role="alert"' in browser.page.text
    assert "Halted: all questions are asked" in browser.text
    assert "Look up an earlier file" in browser.text
    competition.freeze()
    competition.final_standings()
    browser.get()
    assert "Final standings" in browser.text
    assert "Halted:" not in browser.text


def test_a_frozen_competition_says_so(entered):
    competition, browser = entered()
    competition.freeze()
    browser.get()
    assert "Frozen" in browser.text
    assert "The competition is frozen." in browser.text


@pytest.mark.parametrize("policy", ["ladder", "thresholdout"])
def test_the_rules_tell_the_competitions_own_numbers(make_competition, visit, policy):
    competition = make_competition(
        policy=policy, submissions_per_day=7, description="First.\n\nSecond, longer.", queries=1234
    )
    browser = visit()
    browser.get("/rules")
    plan = competition.plan
    assert "Questions, all teams together 1,234" in browser.text
    assert f"Charges, all teams together {plan.charges}" in browser.text
    assert f"Tolerance {plan.tolerance:.4f}" in browser.text
    assert f"at first {plan.threshold:.4f}" in browser.text
    assert "Confidence of all intervals together 95%" in browser.text
    assert "Submissions of a team a day (UTC) 7" in browser.text
    assert "Second, longer." in browser.text
    assert ("no new best" in browser.text) == (policy == "ladder")


@pytest.mark.parametrize("metric", ["log_loss", "brier", "roc_auc", "balanced_accuracy", "f1", "rmse"])
def test_any_metric_has_its_pages(folder, labels_file, key_file, visit, metric):
    bounded = (
        {"metric_parameters": {"lower": 0.0, "upper": 200.0}, "tolerance": 100.0} if metric == "rmse" else {}
    )
    wish = {
        "tolerance": None,
        "charges": 2,
        "queries": 50,
        "policy": "thresholdout",
        "vacuous": True,
    } | bounded
    if bounded:
        wish["charges"] = None
    rules = Rules(slug="demo", title="Demo", metric=metric, **wish)
    with Competition.create(folder, rules, labels_file, key_file=key_file) as competition:
        token = competition.add_team("Blue")
        team = competition.authenticate(token).id
        competition.submit(team, competition.expected.sample(), filename="s.csv")
    browser = visit()
    assert browser.login(token).status_code == 200
    for page in PAGES:
        assert browser.get(page).status_code == 200


def test_names_are_text_and_never_markup(competition, add_team, sheet, visit):
    name = '<img src=x onerror="alert(1)">&{{7*7}}'
    competition.submit(add_team(competition, name), sheet(0.9), filename="<b>.csv", claimed=0.9)
    browser = visit()
    assert "<img" not in browser.get().text
    assert name in browser.text


def test_pages_hold_nothing_inline_and_nothing_from_elsewhere(entered, sheet):
    _, browser = entered()
    browser.submit(sheet(0.9), claimed="0.9")
    for page in (*PAGES, "/nothing"):
        text = browser.get(page).text
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", text)
        assert all(re.search(r"\ssrc=", tag) for tag in re.findall(r"<script[^>]*>", text))
        assert not [
            one for one in re.findall(r'(?:href|src|action)="([^"]*)"', text) if not re.match(r"[/#]", one)
        ]
        policy = browser.page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert browser.page.headers["cache-control"] == "no-store"


# ---- forms


def test_a_submission_by_form_is_told_and_moves_the_board(entered, sheet):
    _, browser = entered()
    answer = browser.submit(sheet(0.9), name="first.csv", claimed="0,9")  # as some countries write it
    assert [one.status_code for one in answer.history] == [303]
    assert "New best 0.9000" in browser.text
    assert "It agrees with your claim of 0.9000 within the threshold, so it took no charge." in browser.text
    assert "first.csv" in browser.text
    browser.submit(sheet(0.9), claimed="0.9")
    assert "sent before: this is the recorded answer, free" in browser.text
    assert 'data-name="Blue" data-rank="1" data-value="0.9000"' in browser.get().text


def test_of_a_ladder_a_submission_that_is_no_new_best_is_told_just_that(entered, sheet):
    _, browser = entered(policy="ladder")
    browser.submit(sheet(0.9))
    assert "New best" in browser.text
    browser.submit(sheet(0.7))
    assert "No new best" in browser.text
    assert "0.7000" not in browser.text


def test_a_bad_file_lists_its_first_offenders_and_costs_nothing(entered):
    competition, browser = entered()
    browser.submit(b"id,prediction\nr1,1\nr1,7\nx,0\n")
    assert browser.page.status_code == 422
    problems = [
        html.unescape(one) for one in re.findall(r"<p class=\"summary\">(.*?)</p>", browser.page.text)
    ]
    assert "This submission does not fit" in browser.text
    assert any("'x'" in one and "unknown" in one for one in problems)
    assert any("'r1'" in one and "more than once" in one for one in problems)
    assert any("missing" in one and "and 594 more" in one for one in problems)
    assert competition.status().queries_asked == 0


def test_a_claim_that_is_no_score_is_refused(entered, sheet):
    competition, browser = entered()
    for claimed in ("much", "nan", "7", "1e999"):
        browser.get()
        assert browser.submit(sheet(0.9), claimed=claimed).status_code == 422, claimed
        assert "A claimed score must be a number from 0 to 1" in browser.text, claimed
    assert competition.status().queries_asked == 0


def test_a_script_gets_the_part_of_the_page_that_it_asks_for(entered, sheet):
    _, browser = entered()
    key = browser.key
    answer = browser.submit(sheet(0.9), claimed="0.9", headers={"X-Part": "result"})
    assert answer.status_code == 200
    assert answer.text.strip().startswith('<div class="result')
    bad = browser.client.post(
        "/c/demo/submit",
        params=key,
        files={"file": ("a.csv", b"x\n1\n")},
        headers={"X-Part": "result"},
    )
    assert bad.status_code == 422
    assert bad.text.strip().startswith('<div class="result bad"')


def test_a_form_of_one_server_is_taken_by_another_of_the_same_board_and_after_a_restart(
    make_competition, folder, key_file, sheet
):
    competition = make_competition()
    token = competition.add_team("Blue")
    settings = Settings(folder=folder, key_file=key_file, answer_seconds=0.0)
    with served(settings) as first:
        browser = Browser(first.url, "/c/demo")
        with browser.client:
            browser.login(token)
            key, cookies = browser.key, dict(browser.client.cookies)
    with (
        served(settings) as second,
        httpx.Client(base_url=second.url, cookies=cookies, timeout=PATIENCE_SECONDS) as client,
    ):
        files = {"file": ("x.csv", sheet(0.9))}
        answer = client.post("/c/demo/submit", params=key, data={"claimed": "0.9"}, files=files)
    assert answer.status_code == 303
    assert competition.status().queries_asked == 1


def test_forms_of_other_sites_are_refused(entered, sheet, visit):
    competition, browser = entered()
    stranger = visit()
    stranger.get()
    files = {"file": ("a.csv", sheet(0.9))}
    for path, key in (
        ("submit", {}),
        ("submit", {"form": ""}),
        ("submit", stranger.key),
        ("logout", {"form": ""}),
        ("login", {"form": "\ud7ff"}),
    ):
        files_or_none = files if path == "submit" else None
        answer = browser.client.post(
            f"/c/demo/{path}", params=key, data={"csrf": browser.key["form"]}, files=files_or_none
        )
        assert answer.status_code == 403
        assert "Load the page again" in answer.text
    assert competition.status().queries_asked == 0


def test_without_a_session_nothing_is_scored(competition, sheet, visit):
    browser = visit()
    browser.get()
    assert browser.submit(sheet(0.9)).status_code == 401
    assert competition.status().queries_asked == 0


def test_a_session_begins_with_a_token_and_ends_with_the_form(entered):
    _, browser = entered()
    (cookie,) = [one for one in browser.client.cookies.jar if one.name.startswith("rh_session")]
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert "As Blue" in browser.text
    assert "rh_" not in cookie.value  # it is no token, and holds none
    browser.page = browser.client.post("/c/demo/logout", params=browser.key)
    assert "Take part" in browser.text
    kept = httpx.get(
        f"{browser.client.base_url}/c/demo",
        headers={"Cookie": f"{cookie.name}={cookie.value}"},
        timeout=PATIENCE_SECONDS,
    )
    assert "As Blue" not in kept.text  # who has copied the cookie is signed out as well
    assert browser.login("nobody's").status_code == 401
    assert "No team has this token" in browser.text


def test_a_new_token_signs_all_browsers_out(competition, visit):
    token = competition.add_team("Blue")
    browsers = [visit(), visit()]
    for browser in browsers:
        browser.get()
        browser.login(token)
        assert "As Blue" in browser.text
    competition.renew_token(competition.authenticate(token).id)
    for browser in browsers:
        browser.get()
        assert "As Blue" not in browser.text


def test_a_team_sees_its_own_submissions_alone(entered, add_team, sheet):
    competition, browser = entered()
    other = competition.submit(
        add_team(competition, "Red"), sheet(0.8), filename="red secret.csv", claimed=0.8
    )
    browser.submit(sheet(0.9), name="blue.csv", claimed="0.9")
    browser.get(f"/team?done={other.id}")
    assert "blue.csv" in browser.text
    assert "red secret.csv" not in browser.text
    assert "Agrees" not in browser.text


# ---- addresses


def test_the_only_competition_is_at_the_front_and_several_are_listed(make_competition, visit):
    make_competition()
    browser = visit(path="")
    assert browser.get("/").url.path == "/c/demo"
    assert browser.get("/competitions").status_code == 200
    assert "Demo" in browser.text


def test_what_is_not_there_is_a_page_too(competition, visit):
    browser = visit(path="/c/none")
    assert browser.get().status_code == 404
    assert "No such competition" in browser.text
    assert browser.get("/../../static/../endpoints.py").status_code == 404
    assert browser.client.get("/static/endpoints.py").status_code == 404


def test_styles_and_scripts_change_their_address_when_they_change(competition, visit):
    browser = visit()
    addresses = re.findall(r'(?:href|src)="(/static/[^"]*\?[^"]*)"', browser.get().text)
    assert len(addresses) == 3
    for address in addresses:
        answer = browser.client.get(address)
        assert answer.headers["content-type"].split(";")[0] in {"text/css", "text/javascript"}
        assert "immutable" in answer.headers["cache-control"]
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "")


def test_another_worker_is_seen_at_the_next_look(competition, add_team, sheet, visit, reopen):
    browser = visit()
    assert "No scores yet" in browser.get().text
    other = reopen()
    other.submit(add_team(other), sheet(0.7), filename="a.csv", claimed=0.1)
    browser.get()
    assert 'data-name="Blue"' in browser.page.text
    left = other.status().charges_left
    assert f"{left} of {competition.plan.charges} charges left" in browser.text


# ---- drawings


def test_a_scale_holds_all_values_in_their_order_with_few_round_ticks():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        upper = float(10.0 ** rng.integers(-1, 6))
        values = np.sort(rng.uniform(0, upper, rng.integers(1, 9))).tolist()
        scale = scale_of(values, lower=0.0, upper=upper)
        places = [scale.at(value) for value in values]
        assert places == sorted(places), seed
        assert 0 <= places[0] <= places[-1] <= 100, seed
        assert 1 <= len(scale.ticks) <= 6, seed
        for tick in scale.ticks:
            assert scale.at(float(tick.label)) == pytest.approx(tick.at, abs=1e-6), seed
        assert len({tick.label for tick in scale.ticks}) == len(scale.ticks), seed


def test_a_bar_that_leaves_the_scale_ends_at_its_edge():
    bar = scale_of([0.2, 0.4], lower=0.0, upper=1.0).bar(0.0, 1.0, 0.3)
    assert (bar.low, bar.width) == (0.0, 100.0)
    assert bar.at == pytest.approx(50.0)


def test_the_budget_goes_down_where_it_was_spent():
    drawn = burn_down_of([2, 3, 4], asked=4, left=0, charges=3)
    assert drawn.line == "0,0 50,0 50,33.333 75,33.333 75,66.667 100,66.667 100,100 100,100"
    assert (drawn.asked, drawn.left) == (4, 0)
    assert burn_down_of([], asked=0, left=3, charges=3).line == "0,0 100,0"
    assert [decimals_of(span) for span in (0.5, 1.0, 13.8, 1e7)] == [4, 4, 3, 0]


# ---- many teams


def rows_of(count):
    team = Standing(1, 1, "", 0, 0.5, 0.4, 0.6, 1, 0, None, 1, 1)
    return [Row(team._replace(team=f"Team {k}", team_id=k), None) for k in range(count)]


def test_a_board_of_many_teams_comes_page_by_page():
    rows = rows_of(120)
    for page, (number, first, shown) in {
        "": (1, 0, 50),
        "2": (2, 50, 50),
        "3": (3, 100, 20),
        "4": (3, 100, 20),
        "0": (1, 0, 50),
        "x": (1, 0, 50),
        "9" * 20: (1, 0, 50),
    }.items():
        part = part_of(rows, None, search="", page=page)
        assert (part.number, part.pages, part.rows[0].one.team_id, len(part.rows)) == (
            number,
            3,
            first,
            shown,
        )


def test_teams_are_found_by_a_part_of_their_names():
    part = part_of(rows_of(120), None, search=" tEAM 11", page="")
    assert [row.one.team_id for row in part.rows] == [11, *range(110, 120)]
    assert (part.found, part.pages) == (11, 1)
    assert part_of(rows_of(3), None, search="nobody", page="1") == ([], 1, 1, 0, "nobody")


def test_a_page_of_a_board_can_be_turned_and_searched_without_scripts(
    make_competition, visit, add_team, predictions
):
    competition = make_competition(queries=100, tolerance=0.9)
    for k in range(60):
        competition.submit_predictions(add_team(competition, f"Team {k}"), predictions(0.7, k), claimed=0.7)
    browser = visit()
    first = browser.get().text
    assert 'name="q"' in first
    assert "Page 1 of 2, 60 teams" in browser.text
    assert 'href="?q=&amp;page=2#board"' in first
    assert first.count("data-team=") == 50
    assert browser.get("?page=2").text.count("data-team=") == 10
    found = browser.get("?q=%22%3E%3Cscript%3E").text
    assert "><script>" not in found
    assert "No team" in found


def test_a_sample_of_many_rows_comes_page_by_page_and_once():
    expected = Expected(
        ids=tuple(f"row {k}" for k in range(20_000)),
        rows=20_000,
        id_column="id",
        columns=("score",),
        response="scores",
    )
    pages = [expected.sample(after=after) for after in range(0, 20_000, expected.sample_rows)]
    assert all(len(one) <= 100_000 for one in pages)
    assert len(pages) == 3
    assert [line for one in pages for line in one.decode().splitlines()[1:]] == [
        f"row {k},0" for k in range(20_000)
    ]
