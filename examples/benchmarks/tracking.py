"""What it costs a loop of 1,000 answers to be tracked in MLflow, as ratios to the same loop untracked.

A tracking server of its own is started on loopback. Each ratio compares loops that take turns in one run, because
machines are noisy; the medians over rounds are shown. Run with ``python examples/benchmarks/tracking.py``; ``--json``
for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mlflow import MlflowClient
from reusable_holdout_mlflow import track
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout

Ask = Callable[[ReusableHoldout, int], object]

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_ROWS, _FEATURES, _TRAINING = 10_000, 20, 2_000
_PATIENCE = 120  # seconds for the server to start


class Cost(NamedTuple):
    """One kind of loop: seconds, medians over rounds.

    Attributes
    ----------
    question : str
        What is done for each answer.
    untracked, tracked : float
        The loop, and the loop inside ``track``.
    loop : float
        Ratio of the two, the median of the rounds' own.
    before_and_after : float
        What the block takes before the loop and after it: page and run, the last answers, table and pictures.
    whole : float
        Ratio of block and untracked loop.
    processor : float
        The same of processor time of the analyst's process, which a busy machine does not disturb.
    """

    question: str
    untracked: float
    tracked: float
    loop: float
    before_and_after: float
    whole: float
    processor: float


class Spent(NamedTuple):
    """Seconds of one block: its loop, the rest of it, and processor time of this process in both."""

    loop: float
    rest: float
    processor: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer answers, one round")
    options = parser.parse_args()
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    answers, rounds = (100, 1) if options.quick else (1_000, 3)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, tracking_server(Path(folder)) as uri:
        bench = Bench(Path(folder), uri, answers=answers, rounds=rounds)
        costs = [
            bench.measure("predictions that exist", bench.ask_predictions),
            bench.measure("a model is fitted, and evaluated", bench.ask_model),
        ]
    if options.json:
        print(json.dumps([cost._asdict() for cost in costs], indent=2))
        return
    print(
        f"| {answers:,} answers; for each question | untracked loop | tracked loop | ratio | before and after "
        "| ratio of all | of processor time |\n|---|---|---|---|---|---|---|"
    )
    for cost in costs:
        print(
            f"| {cost.question} | {cost.untracked:.2f} s | {cost.tracked:.2f} s | {cost.loop:.2f} | "
            f"{cost.before_and_after:.2f} s | {cost.whole:.2f} | {cost.processor:.2f} |"
        )


class Bench:
    """The same questions to fresh guards, with and without a tracker.

    Parameters
    ----------
    folder : Path
        Of the ledgers.
    uri : str
        Of the tracking server.
    answers, rounds : int
    """

    def __init__(self, folder: Path, uri: str, *, answers: int, rounds: int) -> None:
        self._folder, self._uri, self._answers, self._rounds = folder, uri, answers, rounds
        rng = np.random.default_rng(0)
        X = rng.normal(size=(_ROWS + _TRAINING, _FEATURES))
        y = (X @ rng.normal(size=_FEATURES) + 3 * rng.normal(size=len(X)) > 0).astype(int)
        self._X, self._y, self._X_train, self._y_train = X[:_ROWS], y[:_ROWS], X[_ROWS:], y[_ROWS:]
        wrong = rng.random((answers, _ROWS)) < 0.1
        self._predictions = np.where(wrong, 1 - self._y, self._y)
        self._ledgers = 0

    def measure(self, question: str, ask: Ask) -> Cost:
        """Take turns."""
        self._tracked(ask)  # imports
        rounds = [(self._untracked(ask), self._tracked(ask)) for _ in range(self._rounds)]

        def median(number: Callable[[Spent, Spent], float]) -> float:
            return statistics.median(number(bare, tracked) for bare, tracked in rounds)

        return Cost(
            question,
            untracked=median(lambda bare, _: bare.loop),
            tracked=median(lambda _, tracked: tracked.loop),
            loop=median(lambda bare, tracked: tracked.loop / bare.loop),
            before_and_after=median(lambda _, tracked: tracked.rest),
            whole=median(lambda bare, tracked: (tracked.loop + tracked.rest) / bare.loop),
            processor=median(lambda bare, tracked: tracked.processor / bare.processor),
        )

    def ask_predictions(self, guard: ReusableHoldout, number: int) -> object:
        """Nothing but the answer."""
        return guard.evaluate(self._predictions[number], prior=0.9)

    def ask_model(self, guard: ReusableHoldout, number: int) -> object:
        """A small search: fit with another strength and another half of the training rows, score, ask."""
        half = np.random.default_rng(number).permutation(_TRAINING)[: _TRAINING // 2]
        X, y = self._X_train[half], self._y_train[half]
        model = LogisticRegression(C=10 ** (number % 7 - 3)).fit(X, y)
        return guard.evaluate(model, prior=float(model.score(X, y)))

    def _untracked(self, ask: Ask) -> Spent:
        with self._guard() as guard:
            worked = time.process_time()
            return Spent(self._loop(guard, ask), 0.0, time.process_time() - worked)

    def _tracked(self, ask: Ask) -> Spent:
        with self._guard() as guard:
            started, worked = time.perf_counter(), time.process_time()
            with track(guard, experiment="benchmark", tracking_uri=self._uri) as tracked:
                loop = self._loop(guard, ask)
            rest = time.perf_counter() - started - loop
            spent = Spent(loop, rest, time.process_time() - worked)
        logged = MlflowClient(self._uri).get_metric_history(tracked.run_id, "holdout_answer")
        assert len(logged) == self._answers
        return spent

    def _loop(self, guard: ReusableHoldout, ask: Ask) -> float:
        started = time.perf_counter()
        for number in range(self._answers):
            ask(guard, number)
        return time.perf_counter() - started

    def _guard(self) -> ReusableHoldout:
        self._ledgers += 1
        ledger = self._folder / f"{self._ledgers}.db"
        return ReusableHoldout(self._X, self._y, tolerance=0.1, queries=2_000, ledger=ledger)


@contextlib.contextmanager
def tracking_server(folder: Path) -> Iterator[str]:
    """Address of a tracking server on loopback, with SQLite behind it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder.absolute()}/mlflow.db"]
    command += ["--artifacts-destination", str(folder.absolute() / "artifacts")]
    environment = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(  # noqa: S603 - a command of constants
        command, env=environment, start_new_session=True, cwd=folder, **quiet
    )
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _answers(f"http://127.0.0.1:{port}/health"):
            assert server.poll() is None, "the tracking server did not start"
            assert time.monotonic() < deadline, "the tracking server is not healthy"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:  # noqa: S310 - the server above
            return bool(reply.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    main()
