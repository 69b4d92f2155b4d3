"""Durable answers per second of 1, 2 and 4 processes that share one ledger: a SQLite file, or a PostgreSQL server.

Every answer is a question of its own, committed to disk before it is told. Where PostgreSQL and psycopg are installed,
a server with its default durability is started on loopback, by the code the tests use, and stopped at the end. Each
number is divided by that of rows as large inserted by one process through the bare driver just before and just after,
for the disk decides, and its mood changes; medians over rounds are shown.

    python examples/benchmarks/throughput.py            # a minute or two on an idle machine
    python examples/benchmarks/throughput.py --quick
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reusable_holdout import Plan, ReusableHoldout, verify

sys.path.append(str(Path(__file__).parent.parent.parent / "tests"))
from collections.abc import Iterator

from servers import new_database, postgresql, why_no_postgresql

Worker = subprocess.Popen[str]

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

PROCESSES = [1, 2, 4]
ROWS = 1_000


class Rate(NamedTuple):
    """Durable answers per second of one database, of all processes together, and over the bare inserts of one."""

    ledger: str
    processes: int
    answers_per_second: float
    over_bare_inserts: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer questions and rounds")
    parser.add_argument("--questions", type=int, help="of each process, per round")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is stopped
    questions = options.questions or (100 if options.quick else 200)
    rounds = 1 if options.quick else 5
    missing = why_no_postgresql()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, pool(max(PROCESSES)) as workers:
        rates = measured(workers, Path(folder), None, questions=questions, rounds=rounds)
        if missing:
            print(f"{missing}: only SQLite is measured", file=sys.stderr)
        else:
            with postgresql(durable=True) as server:
                rates += measured(workers, Path(folder), server, questions=questions, rounds=rounds)
    if options.json:
        print(json.dumps([rate._asdict() for rate in rates], indent=2))
        return
    print("| ledger | processes | durable answers/s | over bare inserts of one process |\n|---|---|---|---|")
    for rate in rates:
        print(
            f"| {rate.ledger} | {rate.processes} | {rate.answers_per_second:,.0f} | {rate.over_bare_inserts:.2f} |"
        )


def measured(
    workers: list[Worker], folder: Path, server: str | None, *, questions: int, rounds: int
) -> list[Rate]:
    """Medians over rounds; in each, every number of processes gets a new ledger, and the bare driver new tables."""
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in PROCESSES}
    for turn in range(rounds):
        before = bare_inserts(folder / f"bare{turn}.db", server, questions)
        for count in PROCESSES:
            ledger = str(folder / f"{turn}-{count}.db") if server is None else new_database(server)
            rate = answers(workers[:count], ledger, folder / "guard.key", questions)
            after = bare_inserts(folder / f"bare{turn}-{count}.db", server, questions)
            found[count].append((rate, 2 * rate / (before + after)))
            before = after
    name = "SQLite file" if server is None else "PostgreSQL server"
    return [
        Rate(name, count, *(statistics.median(column) for column in zip(*rates, strict=True)))
        for count, rates in found.items()
    ]


def answers(workers: list[Worker], ledger: str, key: Path, questions: int) -> float:
    """Answers per second of all processes together, from the moment when all are ready."""
    guard_of(ledger, key).close()
    for worker in workers:
        tell(worker, json.dumps([ledger, str(key), questions]))
    for worker in workers:
        expect(worker, "ready")
    began = time.perf_counter()
    for worker in workers:
        tell(worker, "go")
    for worker in workers:
        expect(worker, "done")
    seconds = time.perf_counter() - began
    found = verify(ledger)
    assert found.sound
    assert found.queries == len(workers) * questions
    return found.queries / seconds


@contextmanager
def pool(count: int) -> Iterator[list[Worker]]:
    """Processes of this script that ask when they are told to."""
    command, pipes = (
        [sys.executable, __file__, "--worker"],
        {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
    )
    workers = [subprocess.Popen([*command, str(number)], text=True, **pipes) for number in range(count)]  # noqa: S603
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def tell(worker: Worker, line: str) -> None:
    worker.stdin.write(line + "\n")
    worker.stdin.flush()


def expect(worker: Worker, line: str) -> None:
    assert worker.stdout.readline() == line + "\n"


def guard_of(ledger: str, key: Path) -> ReusableHoldout:
    """One guard for all processes."""
    labels = np.random.default_rng(0).integers(0, 2, ROWS)
    return ReusableHoldout(
        None,
        labels,
        ledger=ledger,
        key=key,
        plan=Plan(queries=1_000_000, charges=10, threshold=0.2),
        allow={"no witness", "vacuous"},
    )


def work(number: int) -> None:
    """One process: questions of its own, made before the clock runs."""
    for line in sys.stdin:
        ledger, key, questions = json.loads(line)
        guard, rng = guard_of(ledger, Path(key)), np.random.default_rng([1, number])
        asked, priors = rng.integers(0, 2, (questions, ROWS)), rng.uniform(0.49, 0.51, questions).tolist()
        print("ready", flush=True)
        sys.stdin.readline()
        for predictions, prior in zip(asked, priors, strict=True):
            guard.evaluate(predictions, prior=prior)
        print("done", flush=True)
        guard.close()


def bare_inserts(path: Path, server: str | None, count: int) -> float:
    """Rows of an answer's size committed one by one, per second."""
    row = (*[0.5] * 8, "", b"s" * 32)
    if server is None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        blob, begin, mark = "BLOB", "BEGIN IMMEDIATE", "?"
    else:
        import psycopg  # noqa: PLC0415 - SQLite is measured without it

        connection = psycopg.connect(new_database(server).replace("+psycopg", ""), autocommit=True)
        blob, begin, mark = "BYTEA", "BEGIN", "%s"
    numbers = ", ".join(f"n{place} DOUBLE PRECISION" for place in range(8))
    connection.execute(
        f"CREATE TABLE answers (query INTEGER PRIMARY KEY, digest {blob} UNIQUE, {numbers}, name TEXT, seal {blob})"
    )
    insert = f"INSERT INTO answers VALUES ({', '.join([mark] * (2 + len(row)))})"
    digests = np.random.default_rng(2).integers(0, 256, (count, 32), dtype=np.uint8)
    began = time.perf_counter()
    for query in range(count):
        connection.execute(begin)
        connection.execute(insert, (query, digests[query].tobytes(), *row))
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return count / seconds


if __name__ == "__main__":
    main()
