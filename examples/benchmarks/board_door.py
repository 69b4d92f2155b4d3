"""Costs of a leaderboard's door for honest visitors while others misbehave.

The real server, on loopback, over HTTP:

- half-sent requests: 1,100 connections are opened and sent half a head (and then half a form each), while each process
  of the server may have 1,024 open files; meanwhile others ask for the status, one after the other;
- strange uploads: the largest files, with cells and rows that nobody expects, one after the other; the most memory that
  the server took beyond its memory before;
- visitors behind a proxy: 300 visitors and 20 teams, through one address, in one minute;
- the page after news: 1,000 teams with 10,000 submissions, a new one, and then what everyone reads;
- a million rows: processor seconds for one CSV file;
- a submission of 10,000 rows: processor milliseconds of the server and all its processes.

    python examples/benchmarks/board_door.py            # some minutes
    python examples/benchmarks/board_door.py --quick

Submissions per second are measured by leaderboard.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import resource
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from reusable_holdout_leaderboard import Competition, Expected, Rules, parse_submission
from reusable_holdout_leaderboard.app import create_app
from reusable_holdout_leaderboard.settings import Settings

sys.path.append(str(Path(__file__).parent.parent / "leaderboard"))
from collections.abc import Iterator

from served import Served, served

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

ROWS = 10_000
OPEN_FILES, HALF_SENT = 1_024, 1_100
VISITORS, TEAMS = 300, 20
MEGABYTE = 1 << 20
PATIENCE_SECONDS = 60
HALF_HEAD = b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n"


class Row(dict[str, Any]):
    """A line of the report."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the teams and submissions")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        token = make_board(folder / "door")
        with served(folder / "door", workers=1) as server:
            halves = {"half a head": HALF_HEAD, "half a form": half_form(server)}
            found["half-sent requests"] = [half_sent(server, *half) for half in halves.items()]
            found["a submission"] = [submitted(server, token)]
            found["strange uploads"] = [strange(server, token, *upload) for upload in uploads()]
        found["behind a proxy"] = [behind(folder / "door", trusted=trusted) for trusted in (True, False)]
        found["after news"] = after_news(folder / "news", few=options.quick)
        found["a million rows"] = [
            million(shuffled=shuffled, begins=begins) for begins in ("", "row-") for shuffled in (False, True)
        ]
    report(found, as_json=options.json)
    return 0


def make_board(folder: Path, rows: int = ROWS) -> str:
    """A competition on labels of fair coins; a team's token."""
    folder.mkdir(parents=True)
    labels = folder / "labels.csv"
    coins = enumerate(np.random.default_rng(0).integers(0, 2, rows).tolist())
    labels.write_text("id,label\n" + "".join(f"{row},{label}\n" for row, label in coins))
    rules = Rules(
        slug="door",
        title="Door",
        queries=1_000_000,
        submissions_per_team=1_000_000,
        charges=500,
        prior_error=0.02,
        vacuous=True,
        prediction_columns=("prediction",),
    )
    with Competition.create(folder, rules, labels) as competition:
        return competition.add_team("Blue")


# ---- half-sent requests


def half_form(server: Served) -> bytes:
    """Return half a form of a visitor who was sent its page, and so has its key."""
    page = httpx.get(f"{server.url}/c/door/login", timeout=PATIENCE_SECONDS)
    cookie, key = page.headers["set-cookie"].partition(";")[0], re.search(r"\?form=(\w+)", page.text).group(1)
    return (
        f"POST /c/door/login?form={key} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken="
    ).encode()


def half_sent(server: Served, half: str, content: bytes) -> Row:
    """Longest that others waited while a thousand requests are half sent."""
    processes = [server.process.pid, *server.workers()]
    for number in processes:
        resource.prlimit(number, resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(own, 2 * HALF_SENT), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    host, port = server.url.removeprefix("http://").split(":")
    httpx.get(f"{server.url}/c/door", timeout=PATIENCE_SECONDS)  # which opens the competition
    waited: list[float] = []
    failed, over = [], threading.Event()

    def others() -> None:
        while not over.is_set():
            began = time.perf_counter()
            connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_SECONDS)
            try:
                connection.request("GET", "/api/v1/status")
                status = connection.getresponse().status
                failed.extend([status] if status != 200 else [])
            except (OSError, http.client.HTTPException) as error:
                failed.append(type(error).__name__)
            finally:
                connection.close()
            waited.append(time.perf_counter() - began)

    asking = threading.Thread(target=others)
    with contextlib.ExitStack() as held:
        asking.start()
        for number in range(HALF_SENT):  # of eleven addresses
            source = (f"127.0.0.{10 + number % 11}", 0)
            connection = held.enter_context(
                socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS, source_address=source)
            )
            with contextlib.suppress(ConnectionError):
                connection.sendall(content)
        time.sleep(3.0)  # they are all there, and stay
        over.set()
        asking.join()
    return Row(
        sent=half, count=HALF_SENT, answered=len(waited), failed=len(failed), longest_seconds=max(waited)
    )


# ---- honest submissions


def submitted(server: Served, token: str) -> Row:
    """Measure the server's processor time for one submission of random votes."""
    rng, count = np.random.default_rng(2), 150
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
        for k in range(count + 10):
            votes = rng.integers(0, 2, ROWS).tolist()
            if k == 10:
                began, clock = processor_seconds(server.process.pid), time.perf_counter()
            lines = "".join(f"{row},{vote}\n" for row, vote in enumerate(votes))
            files = {"file": ("votes.csv", f"id,prediction\n{lines}".encode())}
            answer = client.post("/api/v1/submissions", files=files, data={"claimed": "0.5"})
            answer.raise_for_status()
    spent, passed = processor_seconds(server.process.pid) - began, time.perf_counter() - clock
    return Row(processor_ms=1_000 * spent / count, clock_ms=1_000 * passed / count)


# ---- strange uploads


def uploads() -> Iterator[tuple[str, bytes]]:
    """Yield files of about the largest size."""
    head = b"id,prediction\n"
    yield "one cell of 15 MiB", head + b"1," + b"9" * (15 * MEGABYTE)
    yield "one row of empty cells", head + b"," * (15 * MEGABYTE)
    yield "empty rows", head + b",\n" * (7 * MEGABYTE)
    yield "quoted rows", head + b'"",""\n' * (15 * MEGABYTE // 6)
    yield "different labels", head + b"".join(b"1,%d\n" % row for row in range(MEGABYTE))
    yield "zip", b"PK\x03\x04" + bytes(MEGABYTE)


def strange(server: Served, token: str, name: str, content: bytes) -> Row:
    """Measure the most memory that one upload took of the server and all its processes."""
    root = psutil.Process(server.process.pid)
    before, peak, over = memory(root), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            peak[0] = max(peak[0], memory(root))

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.perf_counter()
    sent = {"files": {"file": ("mine.csv", content)}, "data": {"claimed": "0.5"}}
    sent["headers"] = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"{server.url}/api/v1/submissions", timeout=PATIENCE_SECONDS, **sent)
    seconds = time.perf_counter() - began
    over.set()
    watching.join()
    return Row(
        upload=name,
        kilobytes=len(content) // 1_000,
        status=answer.status_code,
        seconds=seconds,
        mebibytes=(peak[0] - before) // MEGABYTE,
    )


def memory(root: psutil.Process) -> int:
    """Bytes that a process and all it started have in memory."""
    found = 0
    for one in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += one.memory_info().rss
    return found


# ---- visitors behind a proxy


def behind(folder: Path, *, trusted: bool) -> Row:
    """How many of 300 visitors and 20 teams are refused, who all come from one address within a minute."""
    proxies = ("127.0.0.1",) if trusted else ()
    with Competition.open(folder) as competition:
        tokens = [competition.add_team(f"{trusted} {k}") for k in range(TEAMS)]
    refused = 0
    with (
        served(folder, workers=1, requests_per_minute=1_200, trusted_proxies=proxies) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
    ):
        for visitor in range(VISITORS + TEAMS):
            headers = {"X-Forwarded-For": f"198.51.{visitor // 250}.{visitor % 250}"}
            if visitor >= VISITORS:
                headers["Authorization"] = f"Bearer {tokens[visitor - VISITORS]}"
            paths = ("/c/door", "/static/board.css", "/api/v1/status")
            told = [client.get(path, headers=headers).status_code for path in paths]
            refused += any(status == 429 for status in told)
    return Row(proxy="trusted" if trusted else "not trusted", visitors=VISITORS + TEAMS, refused=refused)


# ---- the page after news


def after_news(folder: Path, *, few: bool) -> list[Row]:
    """What everyone reads, when a submission has come."""
    return asyncio.run(_after_news(folder, few=few))


async def _after_news(folder: Path, *, few: bool) -> list[Row]:
    """Processor milliseconds and bytes of what everyone reads, when a submission has come."""
    teams, submissions = (100, 1_000) if few else (1_000, 10_000)
    make_board(folder, rows=500)
    rng, labels = np.random.default_rng(1), np.random.default_rng(0).integers(0, 2, 500)
    with Competition.open(folder) as competition:
        numbers = [competition.authenticate(competition.add_team(f"Team {k}")).id for k in range(teams)]
        for k in range(submissions):
            share = 0.5 + 0.3 * k / submissions
            votes = np.where(rng.random(500) > share, 1 - labels, labels)
            competition.submit_predictions(numbers[k % teams], votes, claimed=share)
    paths = {"page": "/c/door", "rank history": "/api/v1/rank-history", "sample": "/api/v1/sample"}
    costs: dict[str, list[float]] = {name: [] for name in paths}
    sizes = {}
    app = create_app(Settings(folder=folder, requests_per_minute=0))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as client,
    ):
        competition = app.state.boards.competition("door")
        for k in range(10):
            competition.submit_predictions(numbers[k], rng.integers(0, 2, 500), claimed=0.5)
            for name, path in paths.items():
                began = time.process_time()
                answer = await client.get(path)
                costs[name].append(1_000 * (time.process_time() - began))
                sizes[name] = len(answer.content)
    return [
        Row(
            read=name,
            teams=teams,
            milliseconds=float(np.median(costs[name][1:])),
            kilobytes=sizes[name] / 1_000,
        )
        for name in paths
    ]


# ---- a million rows


def million(*, shuffled: bool, begins: str = "") -> Row:
    """Measure processor seconds for a CSV file of a million rows."""
    rows = 1_000_000
    expected = Expected(
        ids=tuple(f"{begins}{row}" for row in range(rows)),
        rows=rows,
        id_column="id",
        columns=("prediction",),
        response="labels",
        classes=(0, 1),
    )
    rng = np.random.default_rng(0)
    order = rng.permutation(rows) if shuffled else np.arange(rows)
    votes = rng.integers(0, 2, rows)
    lines = "".join(
        f"{begins}{row},{vote}\n" for row, vote in zip(order.tolist(), votes.tolist(), strict=True)
    )
    content = f"id,prediction\n{lines}".encode()
    parse_submission(content, expected)  # makes the column of ids
    began = processor_seconds()
    parse_submission(content, expected)
    order_said = "shuffled" if shuffled else "as expected"
    return Row(names=f"{begins}7", order=order_said, seconds=processor_seconds() - began)


def processor_seconds(number: int | None = None) -> float:
    """Of a process, by default this one, and those it started."""
    me = psutil.Process(number)
    return sum(sum(one.cpu_times()[:2]) for one in (me, *me.children(recursive=True)))


# ---- told


def report(found: dict[str, list[Row]], *, as_json: bool) -> None:
    """Print a table for each part."""
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for title, rows in found.items():
        print(f"{title}\n\n| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
        for row in rows:
            shown = (f"{one:.3g}" if isinstance(one, float) else str(one) for one in row.values())
            print(f"| {' | '.join(shown)} |")
        print()


if __name__ == "__main__":
    sys.exit(main())
