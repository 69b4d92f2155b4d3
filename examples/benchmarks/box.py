"""The time that a box adds to an answer, and the times of different answers.

A guard in this process and a box in another process, with the same labels, get the same questions in pairs of changing
order. Both store each answer, and tell a witness, before they return it. Then a box gets predictions whose score is
near the prior, nearly too far from it, and far off, and one question again.

    python examples/benchmarks/box.py            # half a minute on an idle machine
    python examples/benchmarks/box.py --quick
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reusable_holdout_box import NoWallWarning, RemoteHoldout, make_box

from reusable_holdout import ReusableHoldout

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets
warnings.simplefilter("ignore", NoWallWarning)  # one user is enough to measure time

CASES = [("accuracy", 2_000), ("accuracy", 10_000), ("brier", 2_000), ("brier", 10_000)]
WARM = 10
PATIENCE_SECONDS = 60


class Added(NamedTuple):
    """Milliseconds of an answer: medians, and of the differences of pairs the median and the 95th percentile."""

    metric: str
    rows: int
    questions: int
    here: float
    box: float
    added: float
    added_p95: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer questions")
    options = parser.parse_args()
    questions = 100 if options.quick else 500
    found = [added(metric, rows, questions) for metric, rows in CASES]
    times = told_by_time(questions)
    if options.json:
        print(json.dumps({"added": [one._asdict() for one in found], "times": times}, indent=2))
        return
    print(
        "| metric | rows | here, ms | box, ms | added, ms | 95th percentile | goal |\n|---|---|---|---|---|---|---|"
    )
    for one in found:
        print(
            f"| {one.metric} | {one.rows:,} | {one.here:.2f} | {one.box:.2f} | {one.added:.2f} | {one.added_p95:.2f} "
            "| <= 2 |"
        )
    print("\n| answer of a box, 10,000 rows | brier: 10th, 50th and 90th percentile, ms |\n|---|---|")
    for name, (low, middle, high) in times.items():
        print(f"| {name} | {low:.2f}, {middle:.2f}, {high:.2f} |")


@contextlib.contextmanager
def box_of(folder: Path, labels: NDArray[np.int64], **wish: Any) -> Iterator[RemoteHoldout]:
    """Run a box in another process."""
    file = folder / "labels.csv"
    file.write_text("y\n" + "".join(f"{one}\n" for one in labels))
    make_box(folder / "box", file, **wish)
    command = [sys.executable, "-m", "reusable_holdout", "box", "serve", str(folder / "box")]
    # a box refuses to start in a folder that others may write to
    with subprocess.Popen(command, cwd="/", stderr=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        try:
            with RemoteHoldout(f"unix://{folder}/box/socket", patience_seconds=PATIENCE_SECONDS) as remote:
                yield remote
        finally:
            process.terminate()


def timed(guard: Any, predictions: NDArray[Any], prior: float) -> float:
    """Return the milliseconds of a question."""
    began = time.perf_counter()
    guard.evaluate(predictions, prior=prior)
    return 1_000 * (time.perf_counter() - began)


def asked_about(rng: np.random.Generator, labels: NDArray[np.int64], metric: str) -> NDArray[Any]:
    """Return predictions that are right on about eight of ten rows."""
    right = rng.random(len(labels)) < 0.8
    guess = np.where(right, labels, 1 - labels)
    return guess if metric == "accuracy" else 0.1 + 0.8 * guess + rng.uniform(-0.05, 0.05, len(labels))


def added(metric: str, rows: int, questions: int) -> Added:
    """Ask both, in pairs."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows)
    prior = 0.8 if metric == "accuracy" else 0.17
    wish = {"metric": metric, "queries": questions + WARM, "charges": 5, "seed": 1}
    pairs = []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        witnessed = {"ledger": folder / "here.db", "witness": folder / "here.heads"}
        here = ReusableHoldout(None, labels, **wish, **witnessed, allow={"vacuous"})
        with here, box_of(folder, labels, **wish, vacuous=True) as box:
            for number in range(questions + WARM):
                one = asked_about(rng, labels, metric)
                both = [here, box] if number % 2 else [box, here]
                took = {id(guard): timed(guard, one, prior) for guard in both}
                pairs.append((took[id(here)], took[id(box)]))
    local, remote = np.array(pairs[WARM:]).T
    more = remote - local
    middles = [float(np.median(one)) for one in (local, remote, more)]
    return Added(metric, rows, questions, *middles, float(np.percentile(more, 95)))


def told_by_time(questions: int) -> dict[str, list[float]]:
    """Return percentiles of the time of several kinds of answers, asked in turn."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 10_000)
    truths = {
        "agrees, score at the prior": 0.8,
        "agrees, score a little off": 0.79,
        "deviates, and is charged": 0.5,
    }
    took: dict[str, list[float]] = {name: [] for name in (*truths, "asked before")}
    wish = {
        "metric": "brier",
        "queries": 4 * questions,
        "charges": questions + 10,
        "vacuous": True,
        "seed": 1,
    }
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, box_of(Path(name), labels, **wish) as box:
        for _ in range(questions // 2):
            for kind, share in truths.items():
                right = rng.random(len(labels)) < share
                one = 0.1 + 0.8 * np.where(right, labels, 1 - labels)
                took[kind].append(timed(box, one, 0.17))
            took["asked before"].append(timed(box, one, 0.17))
    return {kind: np.percentile(some[5:], [10, 50, 90]).tolist() for kind, some in took.items()}


if __name__ == "__main__":
    main()
