"""The board of a thousand teams as it is served: real files over HTTP, and what everyone reads of it at the end.

The same seasons as thousand_teams.py, in the same order: each submission is a CSV file that its team sends with its
token to the real server, on loopback. With `--directly` the guard itself is asked about the same season as well.

    python examples/leaderboard/thousand_teams_over_http.py            # 100 teams x 5 on 20,000 labels, a minute
    python examples/leaderboard/thousand_teams_over_http.py --full     # 1,000 teams x 10 on 100,000 labels
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil
from reusable_holdout_leaderboard import Competition, Rules

sys.path.append(str(Path(__file__).parent))
from collections.abc import Iterator, Sequence

from served import Served, served
from thousand_teams import BOARDS, FULL, HEAD, OFF, Board, Season, Sent, Size, Told, play, row_of

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

SMALL = Size(teams=100, submissions=5, rows=20_000)
SLUG, NEWS = "teams", 10
READS = {
    "page": f"/c/{SLUG}",
    "board": "/api/v1/board",
    "rank history": "/api/v1/rank-history",
}


class Read(NamedTuple):
    """What one address costs after news."""

    what: str
    kilobytes: float
    processor_ms: float


class Shown(NamedTuple):
    """The board as everyone can read it.

    Attributes
    ----------
    certified : int
        Teams that are listed with a certified score.
    unjust : int
        Pairs of which one has the better place although the other's true score is better by more than its interval.
    lead : str
        Who leads: "honest", "a spoiler" or "nobody".
    """

    certified: int
    unjust: int
    lead: str


class Files:
    """Makes a CSV file of predictions: only the digits differ, so that a file takes no time."""

    def __init__(self, rows: int) -> None:
        lines = [f"{row},0\n".encode() for row in range(rows)]
        head = b"id,prediction\n"
        self._bytes = np.frombuffer(head + b"".join(lines), np.uint8).copy()
        self._places = len(head) + np.cumsum([len(line) for line in lines]) - 2

    def of(self, predictions: np.ndarray) -> bytes:
        """The file."""
        self._bytes[self._places] = predictions + ord("0")
        return self._bytes.tobytes()


class Teams:
    """All teams' browsers, in one process."""

    def __init__(self, server: Served, tokens: Sequence[str], rows: int, *, together: int) -> None:
        self._tokens, self._files = tokens, Files(rows)
        self._client = httpx.Client(base_url=server.url, timeout=150.0)
        self._pool = ThreadPoolExecutor(together)
        self.refusals = 0

    def ask(self, sent: Sequence[Sent]) -> list[Told]:
        """Send them at the same time; the answers, in their order."""
        files = [self._files.of(one.predictions) for one in sent]
        return list(self._pool.map(self._post, sent, files))

    def _post(self, sent: Sent, content: bytes) -> Told:
        answer = self._client.post(
            f"/api/v1/c/{SLUG}/submissions",
            files={"file": ("votes.csv", content)},
            data={"claimed": repr(sent.asked.claim)},
            headers={"Authorization": f"Bearer {self._tokens[sent.team]}"},
        )
        answer.raise_for_status()
        found = answer.json()
        return Told(*(found[name] for name in Told._fields))

    def get(self, path: str) -> httpx.Response:
        """Read what everyone may."""
        answer = self._client.get(path)
        answer.raise_for_status()
        return answer

    def close(self) -> None:
        """Close all."""
        self._pool.shutdown()
        self._client.close()


@contextlib.contextmanager
def made(season: Season, *, workers: int) -> Iterator[tuple[Served, list[str]]]:
    """A served competition on a season's labels, and its teams' tokens."""
    size = season.size
    rules = Rules(
        slug=SLUG,
        title="A thousand teams",
        queries=size.queries,
        prior_error=OFF,
        submissions_per_team=size.submissions,
    )
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        labels = folder / "labels.csv"
        rows = enumerate(season.labels.tolist())
        labels.write_text("id,label\n" + "".join(f"{row},{label}\n" for row, label in rows))
        with Competition.create(folder / "board", rules, labels) as competition:
            tokens = [competition.add_team(f"Team {number}") for number in range(size.teams)]
        with served(folder / "board", workers=workers) as server:
            yield server, tokens


def over_http(
    name: str, season: Season, *, workers: int, together: int
) -> tuple[Board, Shown, list[Read], float]:
    """Play a season on a server; what its teams were told, what is shown, what reading costs, submissions a second."""
    with made(season, workers=workers) as (server, tokens):
        teams = Teams(server, tokens, season.size.rows, together=together)
        began, count = time.perf_counter(), season.left - NEWS
        season.play(teams.ask, count, together=together)
        rate = count / (time.perf_counter() - began)
        reads = after_news(season, server, teams)
        shown = shown_of(season, teams.get("/api/v1/board").json())
        teams.close()
    return season.board(name), shown, reads, rate


def after_news(season: Season, server: Served, teams: Teams) -> list[Read]:
    """Send the last submissions, and after each of them read what everyone reads."""
    for path in 4 * list(READS.values()):  # so that every worker has drawn them once
        teams.get(path)
    spent, sizes = dict.fromkeys(READS, 0.0), dict.fromkeys(READS, 0)
    while season.left:
        season.play(teams.ask, 1)
        for what, path in READS.items():
            before = processor_seconds(server)
            sizes[what] = len(teams.get(path).content)
            spent[what] += processor_seconds(server) - before
    return [Read(what, sizes[what] / 1_000, 1_000 * spent[what] / NEWS) for what in READS]


def processor_seconds(server: Served) -> float:
    """That the server and all it started have taken."""
    root = psutil.Process(server.process.pid)
    return sum(sum(one.cpu_times()[:2]) for one in (root, *root.children(recursive=True)))


def shown_of(season: Season, rows: Sequence[dict[str, Any]]) -> Shown:
    """The board that everyone sees, beside the truth."""
    listed = [row for row in rows if row["certified"]]
    numbers = [int(str(row["team"]).removeprefix("Team ")) for row in listed]
    truths = np.array([season.standing[number][2] for number in numbers])
    widths = np.array([row["high"] - row["low"] for row in listed])
    ranks = np.array([row["rank"] for row in listed])
    above = ranks[:, None] < ranks[None, :]
    unjust = int((above & (truths[None, :] - truths[:, None] > widths[:, None])).sum())
    leads = [season.spoils(number) for number, row in zip(numbers, listed, strict=True) if row["leads"]]
    lead = "nobody" if not leads else "a spoiler" if leads[0] else "honest"
    return Shown(len(listed), unjust, lead)


def main() -> None:
    """Print a row for each board, and what reading the last one costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="1,000 teams x 10 on 100,000 labels")
    parser.add_argument("--boards", type=int, nargs="*", help="numbers of the boards, from 0 (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--together", type=int, default=1, help="submissions at the same time (default 1)")
    parser.add_argument("--directly", action="store_true", help="ask the guard itself about the same, too")
    given = parser.parse_args()
    size = FULL if given.full else SMALL
    print(f"{size.teams:,} teams x {size.submissions}, {size.rows:,} labels, honest claims off by {OFF}")
    print(
        f"{HEAD} on the page: certified, unjust, lead | a second |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    reads: list[Read] = []
    for number in range(len(BOARDS)) if given.boards is None else given.boards:
        name, style, piled = BOARDS[number]
        season = Season(style, size, piled=piled, seed=0)
        one, shown, reads, rate = over_http(name, season, workers=given.workers, together=given.together)
        print(
            f"{row_of(one)} {shown.certified:,}, {shown.unjust}, {shown.lead} | {rate:.0f} |",
            flush=True,
        )
        if given.directly:
            same = play(f"{name}, the guard itself", style, piled=piled, size=size)
            print(f"{row_of(same)} | |", flush=True)
    print("\n| read after news | kB | processor ms |\n|---|---|---|")
    for read in reads:
        print(f"| {read.what} | {read.kilobytes:.0f} | {read.processor_ms:.0f} |")


if __name__ == "__main__":
    main()
