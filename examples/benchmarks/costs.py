"""What a durable, certified answer costs, as ratios to the least it could cost on this machine.

Each ratio compares two things measured in turn in one run, because machines are noisy: it is the median of the ratios
of neighbours, for a disk that others use is now fast and now slow. The times are medians, too.
Run with ``python examples/benchmarks/costs.py``; ``--json`` for programs, ``--quick`` for a rough look.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from operator import truediv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.guard.transcript import rows_of_batch
from reusable_holdout.ledger import Row
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.metrics import resolve_metric
from reusable_holdout.ways.check import Asked

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

_ROWS = 10_000
_MANY = 10_000
_WARM = 600
_CHARGES = 20


class Cost(NamedTuple):
    """One comparison."""

    what: str
    ours: str
    least: str
    ratio: float
    goal: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    rounds, late = (3, 100_000) if options.quick else (9, 1_000_000)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        costs = [
            one_answer(Path(folder), rounds=rounds),
            witnessed_answer(Path(folder), rounds=rounds),
            batch(Path(folder), rounds=rounds),
            scoring(rounds=rounds),
            *(
                late_answer(Path(folder), rounds=rounds, late=late, charged=charged)
                for charged in (0, _CHARGES)
            ),
        ]
    if options.json:
        print(json.dumps([cost._asdict() for cost in costs], indent=2))
        return
    print("| what | measured | compared with | ratio | goal |\n|---|---|---|---|---|")
    for cost in costs:
        print(f"| {cost.what} | {cost.ours} | {cost.least} | {cost.ratio:.2f} | <= {cost.goal} |")


def one_answer(folder: Path, *, rounds: int) -> Cost:
    """One durable answer against a bare durable insert of the same row."""
    labels, predictions = _questions(500 * rounds)
    guard = _guard(labels, folder / "one.db")
    bare = _bare(folder / "one_bare.db")
    values = (*_sample_row(1), b"s" * 32)
    priors = np.random.default_rng(2).uniform(0.87, 0.93, len(predictions))
    digests = np.random.default_rng(1).integers(0, 256, (len(predictions), 32), dtype=np.uint8)
    guard.evaluate(labels, prior=0.9)  # the thresholds of this state are computed once

    def insert(query: int) -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute(_INSERT, (query, query, bytes(digests[query - 1]), *values[3:]))
        bare.execute("COMMIT")

    ours, least = [], []
    for query, one in enumerate(predictions, start=1):  # in turn, for a disk is faster when it is kept busy
        prior = float(priors[query - 1])
        ours.append(_seconds(lambda one=one, prior=prior: guard.evaluate(one, prior=prior)))
        least.append(_seconds(lambda query=query: insert(query)))
    return _cost(
        "one durable answer",
        ours,
        least,
        "bare BEGIN IMMEDIATE; INSERT; COMMIT",
        goal=2.0,
        unit=1e3,
        name="ms",
    )


def witnessed_answer(folder: Path, *, rounds: int) -> Cost:
    """One durable answer of a ledger with a witness, a file, against one without."""
    labels, predictions = _questions(500 * rounds)
    with_witness = _guard(labels, folder / "watched.db", witness=folder / "heads")
    without = _guard(labels, folder / "unwatched.db")
    priors = np.random.default_rng(2).uniform(0.87, 0.93, len(predictions))
    times: dict[ReusableHoldout, list[float]] = {with_witness: [], without: []}
    for guard in times:
        guard.evaluate(labels, prior=0.9)
    for one, prior in zip(predictions, priors.tolist(), strict=True):
        for guard, seconds in times.items():
            ask = partial(guard.evaluate, one, prior=prior)
            seconds.append(_seconds(ask))
    return _cost(
        "one durable answer with a witness",
        times[with_witness],
        times[without],
        "without one",
        goal=1.2,
        unit=1e3,
        name="ms",
    )


def batch(folder: Path, *, rounds: int) -> Cost:
    """A batch of 10,000 answers, once its predictions are scored, against a bare executemany of the same rows."""
    rng = np.random.default_rng(0)
    ours, least = [], []
    for turn in range(rounds):
        labels = rng.integers(0, 2, 1_000)
        guard = _guard(labels, folder / f"batch{turn}.db")
        guard.evaluate(labels, prior=0.9)
        priors = rng.uniform(0.85, 0.95, _MANY)
        scores = np.array([[guard._view.ways.check.grid(prior)] for prior in priors.tolist()])
        digests = [bytes(digest) for digest in rng.integers(0, 256, (_MANY, 32), dtype=np.uint8)]
        nothing = np.zeros(_MANY)
        asked = Asked(digests, priors, None, scores, nothing.astype(bool), nothing)
        ours.append(_seconds(partial(_after_scoring, guard, asked)))
        rows = SqlLedger(folder / f"batch{turn}.db").rows(after=1)
        values = [(*row, None) for row in rows]
        least.append(_seconds(partial(_insert_many, _bare(folder / f"batch_bare{turn}.db"), values)))
    cost = _cost(
        "batch of 10,000 durable answers", ours, least, "bare executemany", goal=2.5, unit=1e3, name="ms"
    )
    return cost._replace(ours=f"{cost.ours} ({_MANY / statistics.median(ours):,.0f} answers/s)")


def _after_scoring(guard: ReusableHoldout, asked: Asked) -> list[object]:
    """Decide, certify and commit a batch, as the guard does once its predictions are scored; and answer it."""
    view, way = guard._view, guard._view.ways.check
    transcript, left = view.transcript, guard.charges_left
    with transcript.ledger.transaction(asked.digests[0]) as transaction:
        transaction.find(asked.digests)
        state = transcript.state_at(transaction.tail)
        decided = way.decide(asked, state)
        rows = rows_of_batch(way, decided, asked.digests, asked.priors, [""] * _MANY, state, None)
        transaction.append(rows)
    return [transcript.answer(row, view.unit, left, replayed=False) for row in rows]


def scoring(*, rounds: int) -> Cost:
    """Scores of 1,000 predictions on 10,000 rows against NumPy's count of equal labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, _ROWS).astype(np.uint8)
    predictions = rng.integers(0, 2, (1_000, _ROWS)).astype(np.uint8)
    bound = resolve_metric("accuracy").bind(labels)
    prepared = bound.prepare_many(predictions)
    ours, least = [], []
    for _ in range(3 * rounds):
        ours.append(_seconds(lambda: bound.score(prepared)))
        least.append(_seconds(lambda: np.count_nonzero(predictions == labels, axis=1)))
    return _cost(
        "scores of 1,000 predictions on 10,000 rows",
        ours,
        least,
        "np.count_nonzero(P == y, axis=1)",
        goal=1.5,
        unit=1e3,
        name="ms",
    )


def late_answer(folder: Path, *, rounds: int, late: int, charged: int) -> Cost:
    """One answer after a million others, the first of which were charged, against one after a thousand.

    The others are written as chained rows, 50,000 in a commit, with digests as they would have: at random places of
    the index. Then real questions are asked until the write-ahead log has its size.
    """
    labels, predictions = _questions(2 * 200 * rounds)
    asked, guards = iter(predictions), []
    for answers in (1_000, late):
        path = folder / f"late-{charged}-{answers}.db"
        guard = _guard(labels, path, queries=2 * late, charges=2 * _CHARGES)
        _fill(guard, answers - _WARM, charged)
        for prior in np.linspace(0.8, 0.9, _WARM).tolist():
            guard.evaluate(labels, prior=prior)
        guards.append(guard)
    times: list[list[float]] = [[], []]
    for turn in range(200 * rounds):
        for place in (0, 1) if turn % 2 else (1, 0):
            ask = partial(guards[place].evaluate, next(asked), prior=0.9)
            times[place].append(_seconds(ask))
    for guard in guards:
        guard.close()
    before = "nothing charged" if charged == 0 else f"{charged} charges long ago"
    what = f"one durable answer after {late:,}, {before}"
    return _cost(what, times[1], times[0], "after 1,000", goal=1.05, unit=1e3, name="ms")


def _insert_many(bare: sqlite3.Connection, values: list[tuple[object, ...]]) -> None:
    bare.execute("BEGIN IMMEDIATE")
    bare.executemany(_INSERT, values)
    bare.execute("COMMIT")


_COLUMNS = (*Row._fields, "seal")
_INSERT = f"INSERT INTO answers VALUES ({', '.join('?' for _ in _COLUMNS)})"


def _bare(path: Path) -> sqlite3.Connection:
    """The same table with the same durability, and nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    columns = ", ".join(f'"{name}"' for name in _COLUMNS)
    columns = columns.replace('"query"', '"query" INTEGER PRIMARY KEY').replace(
        '"digest"', '"digest" BLOB UNIQUE'
    )
    connection.execute(f"CREATE TABLE answers ({columns})")
    return connection


def _guard(
    labels: np.ndarray,
    path: Path,
    queries: int = 100_000,
    witness: Path | None = None,
    charges: int = _CHARGES,
) -> ReusableHoldout:
    return ReusableHoldout(
        None,
        labels,
        ledger=path,
        seed=0,
        witness=witness,
        plan=Plan(queries=queries, charges=charges, threshold=0.4, noise=0.001),
        allow={"vacuous"} if witness else {"vacuous", "no witness"},
    )


def _questions(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, _ROWS).astype(np.uint8)
    return labels, (rng.random((count, _ROWS), dtype=np.float32) < 0.1).astype(np.uint8) ^ labels


def _sample_row(query: int) -> Row:
    return Row(
        query=query,
        batch=query,
        digest=b"d" * 32,
        prior=0.9,
        value=0.9,
        charged=0,
        threshold=0.04,
        tolerance=0.0,
        low=0.85,
        high=0.95,
        nats=0.0,
        charges=0,
        spent_nats=0.0,
        asked=query,
        asked_at=time.time(),
        view=0,
        kind="check",
        told="agreed",
        name="",
    )


def _fill(guard: ReusableHoldout, count: int, charged: int) -> None:
    """Put so many earlier answers into the ledger, the first of them charged."""
    first = _sample_row(1)
    for start in range(0, count, 50_000):
        rows = [
            first._replace(
                query=query,
                batch=start + 1,
                digest=hashlib.blake2b(query.to_bytes(8, "big"), digest_size=32).digest(),
                charged=int(query <= charged),
                charges=min(query, charged),
                asked=query,
            )
            for query in range(start + 1, min(start + 50_000, count) + 1)
        ]
        with guard._view.ledger.transaction() as transaction:
            transaction.append(rows)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _cost(
    what: str, ours: list[float], least: list[float], compared: str, *, goal: float, unit: float, name: str
) -> Cost:
    mine, other = statistics.median(ours), statistics.median(least)
    ratio = statistics.median(map(truediv, ours, least))
    return Cost(what, f"{mine * unit:.3g} {name}", f"{compared}: {other * unit:.3g} {name}", ratio, goal)


if __name__ == "__main__":
    main()
