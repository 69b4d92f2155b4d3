"""Pictures of MLflow for docs/mlflow.md: ``python tests/integrations/mlflow/take_pictures.py FOLDER``.

Four searches on UCI Adult ask one holdout; each is a run. The pictures are of MLflow's own pages in Chromium.
"""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from made_guards import made_guard
from mlflow import MlflowClient
from reusable_holdout_mlflow import track
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout.errors import Halted

sys.path.extend(str(Path(__file__).parents[3] / place) for place in ("examples", "docs/site"))
from mlflow_tracking import EXPERIMENT, server, split
from pictures import browser, made_small

os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"


def search(uri, folder):
    """Ask about honest models and about one that learns its rows by heart."""
    (X, held, _), (y, labels, _) = split(0)
    wish = {"queries": 100, "charges": 6, "estimate": 0.85, "seed": 0, "unwitnessed": True}
    guard = made_guard(held, labels, ledger=folder / "guard.db", **wish)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    runs = {
        "logistic regression": [linear.set_params(logisticregression__C=C) for C in (0.01, 0.1)],
        "small trees": [tree(leaves) for leaves in (4, 8, 12)],
        "stumps": [tree(2), tree(3)],
        "growing tree": [tree(int(leaves)) for leaves in np.geomspace(8, 400, 7)],
    }
    for name, models in runs.items():
        with suppress(Halted), track(guard, experiment=EXPERIMENT, tracking_uri=uri, run_name=name):
            for model in models:
                guard.evaluate(model.fit(X, y), prior=model.score(X, y))


def tree(leaves):
    return DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)


def opened(chromium, address, height=640):
    """Page of a user who has never been here, beside the panel of MLflow's assistant, which is closed."""
    page = chromium.new_context(viewport={"width": 1_400, "height": height}).new_page()
    page.goto(address)
    page.get_by_text("Run Name").first.wait_for()
    assistant = page.locator("[data-component-id='mlflow.assistant.chat_panel.close']")
    assistant.wait_for()
    assistant.evaluate("button => button.click()")
    page.wait_for_timeout(3_000)  # charts are drawn one by one
    return page


def main(folder):
    """Start a server, ask, take pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, server(Path(place)) as uri, browser() as chromium:
        search(uri, Path(place))
        runs = (
            f"{uri}/#/experiments/{MlflowClient(uri).get_experiment_by_name(EXPERIMENT).experiment_id}/runs"
        )
        view = f"{runs}?viewStateShareKey=reusable-holdout"
        opened(chromium, runs).screenshot(path=folder / "mlflow-list.png")
        opened(chromium, view).screenshot(path=folder / "mlflow-columns.png")
        opened(chromium, f"{view}&compareRunsMode=CHART", 1_000).screenshot(path=folder / "mlflow-charts.png")
        page = opened(chromium, runs, 900)
        page.get_by_text("charges left").first.locator("xpath=following::button[2]").click()
        page.wait_for_timeout(1_000)
        page.screenshot(path=folder / "mlflow-note.png")
    for picture in folder.glob("mlflow-*.png"):
        made_small(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
