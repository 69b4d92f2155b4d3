"""A run and its figures as a user sees them, in a real browser."""

import shutil

import pytest
from mlflow import MlflowClient
from pictures import browser
from reusable_holdout_mlflow import track

from reusable_holdout.errors import Halted

pytest.importorskip("playwright.sync_api")
if shutil.which("chromium") is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        page = opened.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(60_000)
        yield page


@pytest.fixture
def runs(server, make_guard, questions):
    """The address of the run list, in which one run has halted, and the id of that run."""
    uri, _ = server
    guard = make_guard(
        charges=1, tolerance=None, seed=11
    )  # a holdout, and so a page, of its own on the server
    with pytest.raises(Halted), track(guard, experiment="browser", tracking_uri=uri) as tracked:
        for predictions, prior in questions:
            guard.evaluate(predictions, prior=prior)
    experiment = MlflowClient(uri).get_run(tracked.run_id).info.experiment_id
    return f"{uri}/#/experiments/{experiment}/runs", tracked.run_id


def test_the_run_page_shows_the_answers_and_that_the_guard_has_halted(page, runs):
    page.goto("/".join(runs))
    for words in ("holdout_answer", "The guard has halted", "halted: budget spent"):
        page.get_by_text(words).first.wait_for()


def test_the_run_list_tells_the_overfitted_run_and_the_budget_without_a_click(page, runs):
    page.goto(runs[0])
    page.get_by_text("Overfitted: guard of accuracy by 0.").first.wait_for()
    page.get_by_text("0 of 1 charges left · halted: budget spent").first.wait_for()
    page.wait_for_function(
        "[...document.images].some(image => image.src.includes('gap_and_budget.png') && image.naturalWidth == 900)"
    )


def test_the_saved_view_has_the_columns(page, runs):
    page.goto(f"{runs[0]}?viewStateShareKey=reusable-holdout")
    cells = page.locator(".ag-cell")
    cells.get_by_text("overfitted by 0.").first.wait_for()
    cells.get_by_text("halted: budget spent").first.wait_for()
    page.get_by_text("holdout_answer").first.wait_for()
