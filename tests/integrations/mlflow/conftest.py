"""A real tracking server on loopback, and guards to track."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import matplotlib as mpl
import mlflow
import numpy as np
import pytest
from made_guards import made_guard, right_in
from mlflow import MlflowClient
from servers import free_port, run_folder, shared

# what `mlflow server` starts: its own process takes as long again, only to start this one
_SERVER = """
import os, sys
import uvicorn
from mlflow import server

port, database, artifacts = sys.argv[1:]
os.environ |= {
    server.BACKEND_STORE_URI_ENV_VAR: database,
    server.REGISTRY_STORE_URI_ENV_VAR: database,
    server.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
    server.ARTIFACTS_DESTINATION_ENV_VAR: artifacts,
    server.SERVE_ARTIFACTS_ENV_VAR: "true",
}
uvicorn.run("mlflow.server.fastapi_app:app", host="127.0.0.1", port=int(port))
"""


class TrackingServer:
    """A tracking server whose data lie in a folder; it can be killed and started again at the same address."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self):
        """Start it and wait until it answers."""
        command = [sys.executable, "-c", _SERVER, str(self.port), f"sqlite:///{self.folder}/mlflow.db"]
        command += [str(self.folder / "artifacts")]
        environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )
        _wait_for(f"{self.uri}/health", self.process, self.folder / "server.log")

    def kill(self):
        """Kill it, as a crash of its machine does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="session")
def tracking_server(tmp_path_factory, empty_database):
    """A server that all tests of a process share; one that kills it starts it again."""
    server = TrackingServer(tmp_path_factory.mktemp("mlflow"))
    shutil.copy(empty_database, server.folder / "mlflow.db")
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def server(tracking_server):
    return tracking_server.uri, tracking_server.folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """File of a tracking database with nothing in it: making its tables takes seconds, copying it does not."""
    folder = run_folder(tmp_path_factory)

    def make():
        path = folder / "mlflow.db"
        MlflowClient(f"sqlite:///{path}").search_experiments()
        return str(path)

    with shared(folder, "mlflow", make, os.unlink) as path:
        yield path


@pytest.fixture
def database(tmp_path, monkeypatch, empty_database):
    """A tracking database without a server: the same client, faster."""
    monkeypatch.chdir(tmp_path)  # where runs without an experiment put their files
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    MlflowClient(uri).create_experiment("churn", artifact_location=(tmp_path / "artifacts").as_uri())
    return uri


@pytest.fixture
def client(database):
    return MlflowClient(database)


@pytest.fixture(autouse=True)
def pictures_without_labels():
    """Every run has two pictures, and their labels take most of the time that drawing takes."""
    labels = ("xtick.labelbottom", "ytick.labelleft", "xtick.bottom", "ytick.left")
    with mpl.rc_context(dict.fromkeys(labels, False)):
        yield


def _wait_for(url, process, log):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
        if process.poll() is not None:
            break
    pytest.fail(f"the tracking server did not start: {log.read_text()[-2000:]}")


@pytest.fixture
def current(database):
    """A client of the database, which is MLflow's current one; runs are made in the experiment "churn"."""
    mlflow.set_tracking_uri(database)
    mlflow.set_experiment("churn")
    yield MlflowClient(database)
    mlflow.set_tracking_uri(None)


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, 4_000)


@pytest.fixture
def make_guard(labels, tmp_path):
    def make(**settings):
        defaults = {"tolerance": 0.1, "queries": 30, "ledger": tmp_path / "guard.db", "seed": 0}
        return made_guard(None, labels, **{**defaults, **settings})

    return make


@pytest.fixture
def questions(labels):
    """Predictions of known accuracies, with honest priors but for every fourth, which is charged."""
    priors = [0.99 if number % 4 == 3 else 0.9 + number / 1_000 for number in range(8)]
    return [(right_in(labels, 0.9, number), prior) for number, prior in enumerate(priors)]
