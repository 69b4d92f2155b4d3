"""The site in a real browser, opened from a file: it searches, it can be dark, and it asks nobody for anything."""

import re
import shutil

import pytest
from documents.site import ROOMS, build

playwright_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
SWITCHES += ["--disable-background-networking", "--disable-component-update"]

pytestmark = pytest.mark.long(*ROOMS)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("docs"))


@pytest.fixture
def page():
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def test_it_searches_and_turns_dark_and_nothing_is_fetched_from_elsewhere(site, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{site}/index.html")
    page.locator("input[name=query]").fill("witness")
    found = page.locator(".md-search-result__meta")
    playwright_api.expect(found).to_contain_text(re.compile(r"\d+ matching documents"))
    results = page.locator(".md-search-result__link")
    assert any("one-budget.html" in one.get_attribute("href") for one in results.all()[:20])
    page.keyboard.press("Escape")

    page.locator("label[for=__palette_1]").click()
    playwright_api.expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.goto(f"file://{site}/ways-to-ask.html")
    playwright_api.expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    drawn = page.locator("img[src='images/choose.svg']")
    assert drawn.evaluate("picture => picture.naturalWidth") > 100
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
