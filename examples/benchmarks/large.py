"""What a guard of 100 million rows costs: time beside a plain pass over the same arrays, and peak memory.

Labels and predictions are zeros and ones. First all lie in memory, then features and labels in Parquet files that are
written for the purpose to a temporary folder (about 0.5 GB) and removed. Ratios compare what is measured in turn in one
run; medians over rounds are shown. Each part runs in a process of its own, so that its peak is its own.

Run with ``python examples/benchmarks/large.py``; ``--rows`` for fewer, ``--json`` for programs.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ParquetRows, ReusableHoldout

_ROWS = 100_000_000
_ROUNDS = 5
_GROUP = 1 << 20  # rows of a row group
_SETTINGS: dict[str, Any] = {"queries": 100, "charges": 5, "seed": 1}


class Threshold:
    """A cheap model: one comparison for each row."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """1 where the only column is larger."""
        return X["x"].to_numpy() > self.threshold


def main() -> None:
    """Run the parts and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=_ROWS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=["memory", "parquet"], help="one part, in this process")
    options = parser.parse_args()
    if options.part:
        print(json.dumps({"memory": in_memory, "parquet": in_parquet}[options.part](options.rows)))
        return
    found = {part: _in_a_process(part, options.rows) for part in ("memory", "parquet")}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for part, numbers in found.items():
        print(f"{part}, {options.rows:,} rows")
        for what, number in numbers.items():
            print(f"    {what:52s}{number:10.2f}")


def in_memory(rows: int) -> dict[str, float]:
    """Labels and predictions of one byte each, in memory."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows, dtype=np.uint8)
    predictions = labels.copy()
    copy, seconds = np.empty_like(labels), _seconds
    making, guard = _made(lambda: ReusableHoldout(None, labels, **_SETTINGS))
    answers, passes, copies = [], [], []
    for turn in range(_ROUNDS):
        predictions[turn :: _ROUNDS * 4] ^= 1  # another question, whose score is known
        prior = 1 - (turn + 1) / (_ROUNDS * 4)
        answers.append(seconds(lambda prior=prior: guard.evaluate(predictions, prior=prior)))
        passes.append(seconds(lambda: np.count_nonzero(labels == predictions)))
        copies.append(seconds(lambda: np.copyto(copy, predictions)))
    return {
        "guard made, s": making,
        "one answer, ms": 1e3 * statistics.median(answers),
        "np.count_nonzero(labels == predictions), ms": 1e3 * statistics.median(passes),
        "np.copyto(copy, predictions), ms": 1e3 * statistics.median(copies),
        "answer / plain pass": _ratio(answers, passes),
        "answer / copy": _ratio(answers, copies),
        "predictions per second of an answer, GB/s": rows / 1e9 / statistics.median(answers),
        "peak memory, GiB": _peak(),
    }


def in_parquet(rows: int) -> dict[str, float]:
    """One float32 column and the label in Parquet files, predicted by a model on two threads."""
    with tempfile.TemporaryDirectory() as folder, joblib.parallel_config("threading", n_jobs=2):
        _write(Path(folder), rows)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        making, guard = _made(
            lambda: ReusableHoldout(ParquetRows(f"{folder}/*.parquet"), "label", **_SETTINGS)
        )
        answers, passes = [], []
        for turn in range(3):
            model = Threshold(0.5 + 0.01 * turn)
            scores: list[float] = []
            passes.append(
                _seconds(lambda model=model, scores=scores: scores.append(_plain_score(Path(folder), model)))
            )
            (score,) = scores
            answers.append(_seconds(lambda model=model, score=score: guard.evaluate(model, prior=score)))
    return {
        "files, GB": size / 1e9,
        "guard made (labels read, digest), s": making,
        "one answer, s": statistics.median(answers),
        "files read, predicted and compared, no guard, s": statistics.median(passes),
        "answer / no guard": _ratio(answers, passes),
        "million rows per second of an answer": rows / 1e6 / statistics.median(answers),
        "peak memory, GiB": _peak(),
    }


def _write(folder: Path, rows: int) -> None:
    """Write ten files, a row group at a time."""
    import pyarrow as pa  # noqa: PLC0415 - the other part does without it, in less memory
    import pyarrow.parquet as pq  # noqa: PLC0415

    rng = np.random.default_rng(0)
    schema = pa.schema([("x", pa.float32()), ("label", pa.uint8())])
    for file in range(10):
        with pq.ParquetWriter(folder / f"part{file}.parquet", schema, use_dictionary=["label"]) as writer:
            for size in _groups(rows // 10):
                x = rng.random(size, dtype=np.float32)
                label = (x + rng.normal(0, 0.2, size) > 0.5).astype(np.uint8)
                writer.write_table(pa.table({"x": x, "label": label}, schema=schema))


def _groups(rows: int) -> Iterator[int]:
    for start in range(0, rows, _GROUP):
        yield min(_GROUP, rows - start)


def _plain_score(folder: Path, model: Threshold) -> float:
    """The same work without a guard: on two threads, too."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    def of_file(path: Path) -> tuple[int, int]:
        right = rows = 0
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1 << 18, use_threads=False):
                frame = batch.to_pandas()
                right += np.count_nonzero(model.predict(frame[["x"]]) == frame["label"].to_numpy())
                rows += len(frame)
        return right, rows

    found = joblib.Parallel()(joblib.delayed(of_file)(path) for path in sorted(folder.iterdir()))
    return sum(right for right, _ in found) / sum(rows for _, rows in found)


def _in_a_process(part: str, rows: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--part", part, "--rows", str(rows)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this script
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def _made(make: Callable[[], ReusableHoldout]) -> tuple[float, ReusableHoldout]:
    start = time.perf_counter()
    guard = make()
    return time.perf_counter() - start, guard


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def _peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / (1 << 30)


if __name__ == "__main__":
    main()
