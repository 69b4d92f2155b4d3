"""A real tracking server on loopback, and guards to track."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

from reusable_holdout import ReusableHoldout


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    command += [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        f"{folder}/artifacts",
    ]
    environment = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder
    )
    uri = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{uri}/health", process, folder / "server.log")
        yield uri, folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        log.close()


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
def labels():
    return np.random.default_rng(0).integers(0, 2, 4_000)


@pytest.fixture
def make_guard(labels, tmp_path):
    def make(**settings):
        defaults = {"tolerance": 0.1, "queries": 30, "ledger": tmp_path / "guard.db", "seed": 0}
        return ReusableHoldout(None, labels, **{**defaults, **settings})

    return make


@pytest.fixture
def questions(labels):
    """Predictions of known accuracies, with honest priors but for every fourth, which is charged."""
    rng = np.random.default_rng(1)
    asked = []
    for number in range(8):
        predictions = np.where(rng.random(len(labels)) < 0.1, 1 - labels, labels)
        asked.append((predictions, 0.99 if number % 4 == 3 else 0.9 + number / 1_000))
    return asked
