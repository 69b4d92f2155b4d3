"""Pages in Chromium: live, by keyboard, on a phone, in the dark, without requests to other hosts."""

import contextlib
import re
from shutil import which
from urllib.parse import urlsplit

import pytest
from board_servers import ADMIN, PATIENCE_SECONDS, served
from pictures import browser
from reusable_holdout_leaderboard.competition.base import digest_of
from reusable_holdout_leaderboard.settings import Settings

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PHONE = {"width": 360, "height": 740}

pytestmark = [
    pytest.mark.skipif(which("chromium") is None, reason="Chromium is not installed"),
    pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout"),
]


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


@pytest.fixture
def open_page(chromium, folder, key_file):
    """Open pages of one server; at the end no other host was asked, and there were no errors."""
    wrong, hosts = [], set()

    def is_expected(message):  # the browser reports refusals
        return re.search(r"status of 4\d\d", message.text)

    with contextlib.ExitStack() as opened:
        servers = []

        def open_(path="/c/demo", **options):
            if not servers:
                settings = Settings(folder=folder, key_file=key_file, admin_digest=digest_of(ADMIN).hex())
                servers.append(opened.enter_context(served(settings)))
            context = chromium.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
            opened.callback(context.close)
            context.set_default_timeout(1_000 * PATIENCE_SECONDS)
            context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
            context.on("weberror", lambda error: wrong.append(str(error.error)))
            context.on(
                "console",
                lambda message: (
                    wrong.append(message.text)
                    if message.type in {"error", "warning"} and not is_expected(message)
                    else None
                ),
            )
            page = context.new_page()
            page.goto(servers[0].url + path)
            return page

        yield open_
    assert wrong == []
    assert hosts == {"127.0.0.1"}


@pytest.fixture
def team_page(competition, open_page):
    """A competition, and its page for a team that is logged in."""
    token = competition.add_team("Blue")
    page = open_page()
    log_in(page, token)
    return competition, page


def log_in(page, token):
    page.get_by_label("Team token").fill(token)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Submit").wait_for()


def organise(page):
    """Log in as organiser."""
    page.goto(f"{page.url.split('/c/')[0]}/c/demo/organise")
    page.get_by_label("Administrator").fill(ADMIN)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Rules", exact=True).wait_for()


def upload(page, content, *, name="mine.csv", claimed="0.9"):
    page.get_by_label("Predictions", exact=True).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    page.get_by_label("Your validation score").fill(claimed)
    page.get_by_role("button", name="Submit").click()


def board(page):
    return page.locator("#board tbody tr").evaluate_all(
        "rows => rows.map(row => [row.dataset.name, row.dataset.rank, row.dataset.value])"
    )


def width_of(page):
    return page.evaluate("document.documentElement.scrollWidth")


# ---- live


def test_a_submission_moves_the_board_of_everyone_without_a_reload(team_page, open_page, sheet):
    _, page = team_page
    watcher = open_page()
    for one in (page, watcher):
        one.evaluate("window.same = true")
    assert board(watcher) == []

    upload(page, sheet(0.9))

    page.locator(".result.best").wait_for()
    value = page.locator(".result strong").inner_text()
    for one in (page, watcher):
        one.locator('#board tr[data-name="Blue"]').wait_for()
        assert board(one) == [["Blue", "1", value]]
        assert one.evaluate("window.same")
        one.locator(".chart .team").wait_for()
    assert watcher.locator("#announcer").inner_text() == f"Board updated. Blue: {value}, rank 1."
    assert page.locator("#board tr.own").count() == 1
    assert watcher.locator("#board tr.own").count() == 0


def test_a_bad_file_is_explained_and_the_board_stays(team_page):
    competition, page = team_page
    upload(page, b"id,prediction\nr1,1\nr1,7\nx,0\n")
    page.locator(".result.bad").wait_for()
    problems = page.locator(".result.bad li").all_inner_texts()
    assert any("1 id unknown: 'x'" in one for one in problems)
    assert any("missing" in one and "and 594 more" in one for one in problems)
    assert page.evaluate("document.activeElement.className") == "result bad"
    assert board(page) == []
    assert page.get_by_role("button", name="Submit").is_enabled()
    assert competition.status().queries_asked == 0


def test_a_halt_arrives_on_open_pages(make_competition, open_page, exhaust):
    competition = make_competition(queries=3)
    token, page = competition.add_team("Blue"), open_page()
    log_in(page, token)
    assert page.locator(".banner").count() == 0
    exhaust(competition)
    banner = page.get_by_role("alert")
    banner.wait_for()
    assert "Halted" in banner.inner_text()
    box = banner.bounding_box()
    assert box["width"] == 1280
    assert box["y"] < 100
    assert page.get_by_role("button", name="Look up an earlier file").is_visible()
    page.locator("#budget dd", has_text=re.compile("^0$")).wait_for()


def test_rank_history_shows_the_places_that_a_team_can_have(competition, open_page, send):
    for name, accuracy in (("Low", 0.05), ("Mid", 0.9), ("High", 0.95)):
        send(competition, name, accuracy)
    page = open_page()
    page.locator(".chart .team").first.wait_for()
    places = {one.team: (one.rank, one.rank_last) for one in competition.board()}
    first = competition.board()[0].team
    lit = page.locator(".chart .team.lit")
    assert lit.get_attribute("aria-label") == f"{first}: rank {places[first][0]} to {places[first][1]}"
    page.locator('.chart .team[aria-label^="Low"]').focus()
    assert lit.get_attribute("aria-label") == "Low: rank 3"
    page.get_by_text("As a table").click()
    assert page.locator("#moves tbody tr").count() == len(competition.rank_history())


# ---- for everyone


def test_everything_can_be_done_by_keyboard(competition, open_page, sheet, tmp_path):
    token = competition.add_team("Blue")
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to content"
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "token":
            break
    page.keyboard.type(token)
    page.keyboard.press("Enter")
    page.locator("#file").focus()
    path = tmp_path / "mine.csv"
    path.write_bytes(sheet(0.9))
    page.locator("#file").set_input_files(path)
    page.locator("#claimed").focus()
    page.keyboard.type("0.9")
    for _ in range(2):  # past the box for asking anew
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Submit"
    page.keyboard.press("Enter")
    page.locator(".result.best").wait_for()


def test_on_a_phone_nothing_scrolls_sideways(competition, open_page, send):
    for name in ("A name of one word after another, as long as names can be, to it", "W" * 64):
        send(competition, name, 0.9)
    page = open_page(viewport=PHONE)
    token = competition.add_team("Blue")
    send(competition, "Blue", 0.8)
    log_in(page, token)
    upload(page, b"id,prediction\n" + b"x" * 60 + b",1\n")
    page.locator(".result.bad").wait_for()
    assert width_of(page) == PHONE["width"]
    organise(page)
    competition.change_rules(
        {"description": "x" * 500, "sign_up": "code", "closes_at": "2030-01-01T12:00+00:00"}
    )
    for path in ("", "/rules", "/team", "/login", "/join", "/organise"):
        page.goto(f"{page.url.split('/c/')[0]}/c/demo{path}")
        assert width_of(page) == PHONE["width"], path


def test_times_are_shown_in_the_visitors_zone_and_without_scripts_in_utc(competition, open_page):
    competition.change_rules({"closes_at": "2030-01-01T12:00+00:00"})
    page = open_page(timezone_id="Asia/Tokyo", locale="en-GB")
    shown = page.locator(".state time")
    assert shown.inner_text() == "1 Jan 2030, 21:00 GMT+9"
    assert shown.get_attribute("title") == "2030-01-01 12:00 UTC"
    page.evaluate("window.same = true")
    competition.change_rules({"closes_at": "2030-01-02T12:00+00:00"})
    page.locator(".state time", has_text="2 Jan 2030, 21:00 GMT+9").wait_for()
    assert page.evaluate("window.same")
    plain = open_page(java_script_enabled=False, timezone_id="Asia/Tokyo")
    assert plain.locator(".state time").inner_text() == "2030-01-02 12:00 UTC"


CONTRAST = """() => {
  const light = (text) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((one) => one / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$/.test(colour)) return colour;
    }
    return "white";
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !one.checkVisibility() || one.closest("script, :disabled")) continue;
    const style = getComputedStyle(one);
    const pair = [light(one instanceof SVGElement ? style.fill : style.color), light(ground(one))];
    found.push([(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), walker.currentNode.data.trim()]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_contrast_and_fit_a_phone(
    make_competition, open_page, send_whole, fresh_labels_file, scheme
):
    also = ("f1", "balanced_accuracy", "matthews_corrcoef", "precision", "recall")
    rules = {"queries": 3, "prior_error": 0.002, "sign_up": "code", "also": also}
    competition = make_competition(fresh=fresh_labels_file, **rules)
    for name, accuracy in (("Low", 0.3), ("M" * 64, 0.7), ("High", 0.85)):
        send_whole(competition, name, accuracy)
    page = open_page(color_scheme=scheme, viewport=PHONE)
    log_in(page, competition.add_team("Blue"))
    is_dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 19, 21)"
    assert is_dark == (scheme == "dark")
    competition.change_rules({"title": "Another", "submissions_per_day": 3})
    organise(page)
    for final in (False, True):
        if final:
            competition.freeze()
            competition.final_standings()
        for path in ("", "/rules", "/team", "/join", "/organise"):
            page.goto(f"{page.url.split('/c/')[0]}/c/demo{path}")
            found = page.evaluate(CONTRAST)
            assert len(found) > 12
            assert [one for one in found if one[0] < 4.5] == []
            assert width_of(page) == PHONE["width"], path
    page.goto(f"{page.url.split('/c/')[0]}/c/demo")
    assert page.get_by_text("better than the next", exact=True).count() >= 1
    assert page.get_by_role("region", name="The same submissions by other metrics").is_visible()


def test_the_switch_overrules_the_scheme_and_is_remembered(competition, open_page):
    page = open_page(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch = page.get_by_role("button", name="Dark", exact=True)
    assert switch.get_attribute("aria-pressed") == "false"
    switch.click()
    assert switch.get_attribute("aria-pressed") == "true"
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark


def test_nothing_moves_for_visitors_who_want_no_motion(competition, send, open_page):
    page = open_page(reduced_motion="reduce")
    send(competition, "Blue", 0.9)
    page.locator('#board tr[data-name="Blue"]').wait_for()
    assert page.evaluate("document.getAnimations().length") == 0
