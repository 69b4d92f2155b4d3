"""A run and its figures as a user sees them, in a real browser; screenshots become artifacts of the run."""

import shutil

import pytest
from mlflow import MlflowClient
from reusable_holdout_mlflow import track

from reusable_holdout.errors import Halted

playwright_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
SWITCHES += ["--disable-background-networking", "--disable-component-update"]


pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")


@pytest.fixture(scope="module")
def browser():
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    return page


@pytest.fixture
def run(server, make_guard, questions):
    """A halted run, with its client and the run's address."""
    uri, _ = server
    guard = make_guard(
        charges=1, tolerance=None, seed=11
    )  # a holdout, and so a page, of its own on the server
    with pytest.raises(Halted), track(guard, experiment="browser", tracking_uri=uri) as tracked:
        for predictions, prior in questions:
            guard.evaluate_predictions(predictions, prior=prior)
    client = MlflowClient(uri)
    experiment = client.get_run(tracked.run_id).info.experiment_id
    return client, tracked.run_id, f"{uri}/#/experiments/{experiment}/runs/{tracked.run_id}"


@pytest.fixture
def keep(page, run, request, tmp_path):
    """Keep a screenshot as an artifact when the test has seen what it waited for."""
    yield
    client, run_id, _ = run
    picture = tmp_path / f"{request.node.name}.png"
    page.screenshot(path=picture)
    client.log_artifact(run_id, str(picture), "screenshots")


@pytest.mark.usefixtures("keep")
def test_the_run_page_shows_the_answers_and_that_the_guard_has_halted(page, run):
    page.goto(run[2])
    for words in ("holdout_answer", "The guard has halted", "halted: budget spent"):
        page.get_by_text(words).first.wait_for()


@pytest.mark.usefixtures("keep")
def test_the_run_list_tells_the_overfitted_run_and_the_budget_without_a_click(page, run):
    page.goto(run[2].partition("/runs/")[0] + "/runs")
    page.get_by_text("Overfitted: guard of accuracy by 0.").first.wait_for()
    page.get_by_text("0 of 1 charges left · halted: budget spent").first.wait_for()
    page.wait_for_function(
        "[...document.images].some(image => image.src.includes('gap_and_budget.png') && image.naturalWidth == 900)"
    )


@pytest.mark.usefixtures("keep")
def test_the_saved_view_has_the_columns(page, run):
    page.goto(run[2].partition("/runs/")[0] + "/runs?viewStateShareKey=reusable-holdout")
    cells = page.locator(".ag-cell")
    cells.get_by_text("overfitted by 0.").first.wait_for()
    cells.get_by_text("halted: budget spent").first.wait_for()
    page.get_by_text("holdout_answer").first.wait_for()


@pytest.mark.usefixtures("keep")
def test_the_metrics_page_draws_the_released_gap(page, run):
    page.goto(f"{run[2]}/model-metrics")
    for metric in ("holdout_gap", "holdout_low", "holdout_charges_left"):
        page.get_by_text(metric).first.wait_for()
    page.locator(".js-plotly-plot, canvas, svg").first.wait_for()


@pytest.mark.usefixtures("keep")
def test_the_picture_of_the_history_is_drawn(page, run):
    page.goto(f"{run[2]}/artifacts/history.png")
    picture = page.locator("img[src*='history.png'], img[src^='blob:']").first
    picture.wait_for()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [900, 450]
