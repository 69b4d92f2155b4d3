"""Overfitting where it is watched: a decision tree grows, MLflow shows its training story and the holdout part ways.

Trees of more and more leaves are fitted to 2,000 rows of UCI Adult, which ships with the library, and each is put to a
guarded holdout with its score on those rows as the prior. As long as that story is true the answer repeats it. When the
tree begins to learn its rows by heart the holdout contradicts; each contradiction is a charge, and when they are spent
the guard halts. `track` logs it all to an MLflow server on this machine while the loop runs.

    python examples/mlflow_tracking.py                            # starts a server, waits until you have looked
    python examples/mlflow_tracking.py --screenshot picture.png   # needs playwright and chromium
    python examples/mlflow_tracking.py --quick                    # few trees, a database without a server
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from mlflow import MlflowClient
from numpy.typing import NDArray
from reusable_holdout_mlflow import best_run, track
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import ReusableHoldout
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.errors import Halted

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

EXPERIMENT = "census income"
CHARTS = ["holdout_answer", "holdout_prior", "holdout_gap", "holdout_low", "holdout_charges_left"]
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
SWITCHES += ["--disable-background-networking", "--disable-component-update"]


def split(seed: int) -> tuple[list[NDArray[np.float64]], list[NDArray[np.bool_]]]:
    """Training, holdout and fresh rows at random; texts become codes."""
    X, y = load_adult()
    codes = X.apply(
        lambda column: column if column.dtype.kind in "if" else column.astype("category").cat.codes
    )
    order = np.random.default_rng(seed).permutation(len(y))
    parts = np.split(order, [2_000, 17_000])
    return [codes.to_numpy(np.float64)[part] for part in parts], [y.to_numpy()[part] for part in parts]


def search(tracking_uri: str, folder: Path, *, trees: int, pause: float, seed: int) -> str:
    """Grow the tree, tracked, until the guard halts; id of the run."""
    (X, X_holdout, X_fresh), (y, y_holdout, y_fresh) = split(seed)
    guard = ReusableHoldout(
        X_holdout,
        y_holdout,
        metric="accuracy",
        queries=100,
        charges=5,
        estimate=0.85,
        ledger=folder / "guard.db",
        seed=seed,
    )
    print(
        f"{guard.plan.charges} charges, {guard.plan.queries} queries, intervals within {guard.plan.tolerance}"
    )
    tree = DecisionTreeClassifier()
    try:
        with track(guard, experiment=EXPERIMENT, tracking_uri=tracking_uri, run_name="growing tree") as run:
            for leaves in np.unique(np.geomspace(2, 600, trees).astype(int)):
                tree = DecisionTreeClassifier(max_leaf_nodes=int(leaves), random_state=seed).fit(X, y)
                answer = guard.evaluate(tree, prior=tree.score(X, y), name=f"{leaves} leaves")
                print(f"{leaves:4d} leaves: training {answer.prior:.4f}, holdout {answer}")
                time.sleep(pause)
    except Halted as halted:
        print(f"HALTED: {halted}")
    print(f"the last tree: training {tree.score(X, y):.4f}, fresh rows {tree.score(X_fresh, y_fresh):.4f}")
    return str(run.run_id)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """MLflow server on a free port of this machine, with its database and files in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    # without these it starts eight more processes, and counts its users
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)  # noqa: S603
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    for _ in range(400):
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - of this machine
                return
        except OSError:
            time.sleep(0.3)
        if process.poll() is not None:
            break
    raise SystemExit(f"the MLflow server did not start; its words are in {process.args}")


def screenshot(page_url: str, picture: Path) -> None:
    """Open the run's charts in a headless browser and keep what they show."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - needed for a picture alone

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(page_url)
        page.get_by_text("holdout_gap").first.wait_for()
        beside = page.get_by_text("MLflow Assistant")  # a panel that hides half of the charts
        if beside.count():
            beside.first.locator("xpath=ancestor::*[.//button][1]//button[last()]").click()
        page.wait_for_timeout(4_000)  # charts are drawn one by one
        page.screenshot(path=picture)
        browser.close()


def main(argv: list[str] | None = None) -> None:
    """Start a server, run the search, say where to look."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few trees, a database without a server")
    parser.add_argument("--seed", type=int, default=0, help="of the split, the trees and the guard's noise")
    parser.add_argument("--output", type=Path, default=Path("mlflow_tracking"), help="folder for everything")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="picture of the run's charts")
    options = parser.parse_args(argv)
    folder = options.output.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if options.quick:
        uri = f"sqlite:///{folder}/mlflow.db"
        MlflowClient(uri).create_experiment(EXPERIMENT, artifact_location=(folder / "artifacts").as_uri())
        run = search(uri, folder, trees=12, pause=0.0, seed=options.seed)
        report(uri, run)
        return
    with server(folder) as uri:
        run = search(uri, folder, trees=30, pause=0.2, seed=options.seed)
        report(uri, run)
        experiment = MlflowClient(uri).get_run(run).info.experiment_id
        address = f"{uri}/#/experiments/{experiment}/runs/{run}"
        print(f"\nlook at {address}/model-metrics")
        if options.screenshot is not None:
            screenshot(f"{address}/model-metrics", options.screenshot)
        elif sys.stdin.isatty():
            input("Enter stops the server ")


def report(uri: str, run: str) -> None:
    """Say what the server has."""
    tags = MlflowClient(uri).get_run(run).data.tags
    print(f"in MLflow: {tags['holdout_overfitting']}; {tags['holdout_budget']}")
    best = best_run(tags["reusable_holdout.digest"], tracking_uri=uri)
    print(f"best certified answer: query {best.query}, at least {best.low:.4f}")


if __name__ == "__main__":
    main()
