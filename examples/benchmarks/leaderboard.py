"""Submissions per second of the served leaderboard, and what a worker that is killed under load costs.

The real server, two worker processes, is asked by 1, 2 and 4 clients at the same time, each a process of its own that
sends its next submission of 10,000 rows, a CSV file, when the last one is answered. The board is in SQLite files, and,
if PostgreSQL and psycopg are installed, on a server with its default durability, on loopback. Answers leave at once
(`--answer-seconds` of the server is 0), and there are no rate limits. Beside it is the processor time of the server for
each submission, which others on the same cores change less, and the number of rows that a bare loop commits to the same
database, one by one.

Then four clients send submissions of which every tenth is charged, and meanwhile workers are killed (SIGKILL), one
every other second. Each submission must be answered, and ledger and board must hold each of them once; otherwise the
exit status is 1.

    python examples/benchmarks/leaderboard.py            # about a minute
    python examples/benchmarks/leaderboard.py --quick
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import sqlalchemy as sa
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.competition.competition import place_of

from reusable_holdout import verify

sys.path.append(str(Path(__file__).parent.parent.parent / "tests"))
sys.path.append(str(Path(__file__).parent.parent / "leaderboard"))
from collections.abc import Iterator, Sequence

from served import Served, served
from servers import new_database, postgresql, why_no_postgresql

Client = subprocess.Popen[str]

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

CLIENTS = [1, 2, 4]
ROWS = 10_000
LINES = [[f"{row},{vote}\n" for vote in (0, 1)] for row in range(ROWS)]
CHARGED_EACH, MOST_KILLS = 10, 4
RULES = Rules(
    slug="load",
    title="Load",
    queries=1_000_000,
    submissions_per_team=1_000_000,
    charges=500,
    vacuous=True,
    prediction_columns=("prediction",),
)


class Rate(NamedTuple):
    """What one number of clients got from one database."""

    database: str
    clients: int
    submissions_per_second: float
    median_ms: float
    p95_ms: float
    processor_ms: float


class Bare(NamedTuple):
    """What one process commits to a database in a loop that does nothing else."""

    database: str
    commits_per_second: float


class Survival(NamedTuple):
    """What was counted after workers were killed under load."""

    database: str
    kills: int
    sent: int
    answered: int
    in_ledger: int
    charges_told: int
    charges_in_ledger: int
    on_board: int

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, and nothing came twice."""
        counts = {self.sent, self.answered, self.in_ledger, self.on_board}
        return len(counts) == 1 and self.charges_told == self.charges_in_ledger


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a second for each number of clients")
    parser.add_argument("--seconds", type=float, help="for each number of clients")
    parser.add_argument("--sent", type=int, help="by each client while workers are killed")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client is not None:
        send_for_ever(options.client)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped
    seconds = options.seconds or (0.7 if options.quick else 1.5)
    sent = options.sent or (40 if options.quick else 75)
    missing = why_no_postgresql()
    rates, survivals, bare = [], [], []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, contextlib.ExitStack() as stack:
        pool = stack.enter_context(clients(max(CLIENTS)))
        databases: dict[str, str | None] = {"SQLite files": None}
        if missing:
            print(f"{missing}: only SQLite is measured", file=sys.stderr)
        else:
            databases["PostgreSQL server"] = new_database(stack.enter_context(postgresql(durable=True)))
        for name, database in databases.items():
            board = Board(Path(folder) / name.split()[0], database)
            bare.append(Bare(name, commits_per_second(board, seconds=min(seconds, 1.0))))
            with served(board.folder, workers=options.workers, database=database) as server:
                rates += measured(name, board, pool, server, seconds)
                survivals.append(survived(name, board, pool, server, sent))
    report(rates, bare, survivals, as_json=options.json)
    return 0 if all(one.sound for one in survivals) else 1


class Board:
    """A competition on labels of fair coins, and tokens of its teams."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.folder, self.database = folder, database
        folder.mkdir()
        labels = folder / "labels.csv"
        rows = enumerate(np.random.default_rng(0).integers(0, 2, ROWS).tolist())
        labels.write_text("id,label\n" + "".join(f"{row},{label}\n" for row, label in rows))
        with Competition.create(folder, RULES, labels, database=database) as competition:
            self.tokens = [competition.add_team(f"Team {number}") for number in range(max(CLIENTS))]

    def counted(self) -> tuple[int, int, int]:
        """Answers and charges in the ledger, whose seals and bounds are checked, and submissions on the board."""
        found = verify(place_of(self.folder, RULES.slug, self.database).ledger)
        assert found.sound, found.problems
        with Competition.open(self.folder, RULES.slug, database=self.database) as competition:
            return found.queries, found.charges, sum(row.submissions for row in competition.board())


def measured(name: str, board: Board, pool: Sequence[Client], server: Served, seconds: float) -> list[Rate]:
    """Measure the rates of all numbers of clients."""
    rates = []
    tell(pool, board, server, {"count": 3})  # a worker's first submission takes longer
    heard(pool)
    for count in CLIENTS:
        began = processor_seconds(server)
        tell(pool[:count], board, server, {"seconds": seconds})
        told = heard(pool[:count])
        spent = processor_seconds(server) - began
        times = np.concatenate([one["milliseconds"] for one in told])
        rate = sum(len(one["milliseconds"]) / one["seconds"] for one in told)
        middle, late = np.quantile(times, [0.5, 0.95]).tolist()
        rates.append(Rate(name, count, rate, middle, late, 1_000 * spent / len(times)))
    return rates


def processor_seconds(server: Served) -> float:
    """That the server and all it started have taken; a database that is a server of its own is not among them."""
    root = psutil.Process(server.process.pid)
    return sum(sum(one.cpu_times()[:2]) for one in (root, *root.children(recursive=True)))


def commits_per_second(board: Board, seconds: float) -> float:
    """Rows that a loop commits to the board's kind of database, each on the disk before the next."""
    url = f"sqlite:///{board.folder}/bare.db" if board.database is None else board.database
    engine = sa.create_engine(url)
    with contextlib.closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        if board.database is None:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("CREATE TABLE bare (value INTEGER)")
        connection.commit()
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            cursor.execute("INSERT INTO bare VALUES (1)")
            connection.commit()
            count += 1
        took = time.perf_counter() - began
        cursor.execute("DROP TABLE bare")
        connection.commit()
    engine.dispose()
    return count / took


def survived(name: str, board: Board, pool: Sequence[Client], server: Served, sent: int) -> Survival:
    """Kill workers while all clients send, and count."""
    asked, charges, shown = board.counted()
    tell(pool, board, server, {"count": sent, "charged_each": CHARGED_EACH})
    kills = killed(pool, server)
    told = heard(pool)
    asked_now, charges_now, shown_now = board.counted()
    return Survival(
        database=name,
        kills=kills,
        sent=sent * len(told),
        answered=len({query for one in told for query in one["queries"]}),
        in_ledger=asked_now - asked,
        charges_told=sum(one["charges"] for one in told),
        charges_in_ledger=charges_now - charges,
        on_board=shown_now - shown,
    )


def killed(pool: Sequence[Client], server: Served) -> int:
    """Kill a worker every other second, until it is enough or all clients are done; return how many."""
    kills, rng, last = 0, np.random.default_rng(1), time.monotonic() - 1.9
    while not all(done(client) for client in pool):
        workers = server.workers()
        if time.monotonic() - last > 2.0 and workers and kills < MOST_KILLS:
            os.kill(int(rng.choice(workers)), signal.SIGKILL)
            kills, last = kills + 1, time.monotonic()
        time.sleep(0.02)
    return kills


def report(
    rates: Sequence[Rate], bare: Sequence[Bare], survivals: Sequence[Survival], *, as_json: bool
) -> None:
    """Print three tables."""
    if as_json:
        rows = {"rates": rates, "bare": bare, "survivals": survivals}
        print(json.dumps({name: [row._asdict() for row in some] for name, some in rows.items()}, indent=2))
        return
    print(
        "| database | clients | submissions/s | median ms | p95 ms | server's processor ms |\n"
        "|---|---|---|---|---|---|"
    )
    for rate in rates:
        numbers = f"{rate.submissions_per_second:.0f} | {rate.median_ms:.0f} | {rate.p95_ms:.0f}"
        print(f"| {rate.database} | {rate.clients} | {numbers} | {rate.processor_ms:.1f} |")
    print("\n| database | commits/s of a bare loop |\n|---|---|")
    for loop in bare:
        print(f"| {loop.database} | {loop.commits_per_second:.0f} |")
    print(
        "\n| database | killed | sent | answered | in the ledger | on the board | charges told | in the ledger |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for one in survivals:
        counts = f"{one.sent} | {one.answered} | {one.in_ledger} | {one.on_board}"
        print(f"| {one.database} | {one.kills} | {counts} | {one.charges_told} | {one.charges_in_ledger} |")


# ---- clients


@contextlib.contextmanager
def clients(count: int) -> Iterator[list[Client]]:
    """Processes of this script that send when they are told to."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, __file__, "--client"]
    pool = [subprocess.Popen([*command, str(number)], **pipes) for number in range(count)]  # noqa: S603 - our own
    try:
        heard(pool)
        yield pool
    finally:
        for client in pool:
            client.kill()
            client.communicate()


def tell(pool: Sequence[Client], board: Board, server: Served, order: dict[str, Any]) -> None:
    """Give all the same order, each for a team of its own."""
    for client, token in zip(pool, board.tokens, strict=False):
        client.stdin.write(json.dumps({"url": server.url, "token": token, **order}) + "\n")
        client.stdin.flush()


def heard(pool: Sequence[Client]) -> list[dict[str, Any]]:
    return [json.loads(client.stdout.readline()) for client in pool]


def done(client: Client) -> bool:
    """Whether it has answered, or ended."""
    readable, _, _ = select.select([client.stdout], [], [], 0)
    return bool(readable) or client.poll() is not None


def send_for_ever(number: int) -> None:
    """One client: it makes a submission, has it answered, makes the next one; only the answer is timed."""
    rng = np.random.default_rng([1, number])
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        with Connection(order["url"], order["token"]) as connection:
            connection.get("me")
            print(json.dumps(sent_as_told(connection, order, rng)), flush=True)


def sent_as_told(connection: Connection, order: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Send for so many seconds, or so many submissions."""
    times, queries, charges, began = [], [], 0, time.perf_counter()
    count, seconds = order.get("count", sys.maxsize), order.get("seconds", float("inf"))
    while len(times) < count and time.perf_counter() - began < seconds:
        deviates = len(times) % order.get("charged_each", sys.maxsize) == 1
        content = submission(rng, claimed=0.4 if deviates else 0.5)
        start = time.perf_counter()
        found = connection.post("submissions", repeatable=True, **content)
        times.append(1_000 * (time.perf_counter() - start))
        queries.append(found["query"])
        charges += found["charged"]
    took = time.perf_counter() - began
    return {"milliseconds": times, "seconds": took, "queries": queries, "charges": charges}


def submission(rng: np.random.Generator, *, claimed: float) -> dict[str, Any]:
    """Return random votes as a request sends them."""
    votes = rng.integers(0, 2, ROWS).tolist()
    table = "id,prediction\n" + "".join([lines[vote] for lines, vote in zip(LINES, votes, strict=True)])
    return {"files": {"file": ("votes.csv", table.encode())}, "data": {"claimed": repr(claimed)}}


if __name__ == "__main__":
    sys.exit(main())
