"""Small competitions that all tests of the leaderboard share: 600 rows, labels "0" and "1", a fixed noise key."""

import contextlib
import functools
import io
import json
import secrets
import ssl
from pathlib import Path

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, served
from children import Child
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout.errors import Halted
from reusable_holdout.ledger import create_key_file
from reusable_holdout.noise import key_from_seed

ROWS, FRESH_ROWS = 600, 300
RULES = {
    "slug": "demo",
    "title": "Demo",
    "policy": "thresholdout",
    "queries": 50,
    "tolerance": 0.3,
    "vacuous": True,
}


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Each of hundreds of HTTP clients would read those of all authorities, though none here asks for one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


def table(**columns):
    """CSV of columns of one length."""
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *rows, ""]).encode()


@pytest.fixture(scope="session")
def labels():
    """The holdout's labels, and those of the fresh rows after them."""
    return np.random.default_rng(0).integers(0, 2, ROWS + FRESH_ROWS)


@pytest.fixture(scope="session")
def ids():
    return [f"r{row}" for row in range(ROWS + FRESH_ROWS)]


@pytest.fixture
def labels_file(tmp_path, labels, ids):
    path = tmp_path / "labels.csv"
    path.write_bytes(table(id=ids[:ROWS], label=labels[:ROWS]))
    return path


@pytest.fixture
def fresh_labels_file(tmp_path, labels, ids):
    path = tmp_path / "fresh.csv"
    path.write_bytes(table(id=ids[ROWS:], label=labels[ROWS:]))
    return path


@pytest.fixture
def next_labels_file(tmp_path):
    """Labels of another epoch: 700 rows with ids of their own."""
    path = tmp_path / "next.csv"
    rng = np.random.default_rng(9)
    path.write_bytes(table(id=[f"n{row}" for row in range(700)], label=rng.integers(0, 2, 700)))
    return path


@pytest.fixture
def key_file(tmp_path):
    """A fixed key, so that what is charged is the same in every run."""
    path = tmp_path / "fixed.key"
    create_key_file(path, key=key_from_seed(1))
    return path


class Clock:
    """Time that passes when it is told to; 2026-03-01 12:00 UTC at first."""

    def __init__(self):
        self.now = 1_772_366_400.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "competitions"


@pytest.fixture
def make_competition(folder, labels_file, key_file, clock, closed_at_the_end):
    """Competitions, closed when the test ends."""

    def make(*, fresh=None, database=None, folder=folder, labels=labels_file, **changes):
        competition = Competition.create(
            folder,
            Rules(**{**RULES, **changes}),
            labels,
            fresh_labels_file=fresh,
            database=database,
            key_file=key_file,
            clock=clock,
        )
        return closed_at_the_end(competition)

    return make


@pytest.fixture
def reopen(folder, key_file, clock, closed_at_the_end):
    """The same competition once more, as another worker would have it; closed when the test ends."""

    def again(slug="demo", *, database=None):
        return closed_at_the_end(
            Competition.open(folder, slug, database=database, key_file=key_file, clock=clock)
        )

    return again


@pytest.fixture
def add_team():
    """Number of a new team."""

    def add(competition, name="Blue"):
        return competition.authenticate(competition.add_team(name)).id

    return add


@pytest.fixture
def predictions(labels):
    """Predictions of exactly this accuracy on the holdout's rows; `variant` gives others of the same accuracy."""

    def of(accuracy, variant=0, *, rows=ROWS):
        wrong = np.roll(np.arange(rows) >= round(accuracy * rows), variant)
        return np.where(wrong, 1 - labels[:rows], labels[:rows])

    return of


@pytest.fixture
def sheet(ids, predictions):
    """The same as a file."""

    def of(accuracy, variant=0, *, rows=ROWS):
        return table(id=ids[:rows], prediction=predictions(accuracy, variant, rows=rows))

    return of


@pytest.fixture
def parquet():
    """Parquet of columns of one length."""

    def of(**columns):
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        return buffer.getvalue()

    return of


@pytest.fixture
def competition(make_competition):
    return make_competition()


@pytest.fixture
def team(competition, add_team):
    return add_team(competition)


@pytest.fixture
def spend(sheet):
    """Submissions that are charged, for their claims are far too low."""

    def submit(competition, team, count, *, first=0):
        return [
            competition.submit(team, sheet(0.7, first + k), filename="low.csv", claimed=0.0)
            for k in range(count)
        ]

    return submit


@pytest.fixture
def exhaust(spend):
    """The same, until the guard halts."""

    def submit(competition, team):
        answered = []
        with pytest.raises(Halted):
            while True:
                answered += spend(competition, team, 1, first=len(answered))
        return answered

    return submit


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """Where the board lies: None for SQLite, a URL for PostgreSQL."""
    return None if request.param == "sqlite" else request.getfixturevalue("server_url")


_WORKER = """
import json, os, signal, sys
from pathlib import Path
from reusable_holdout_leaderboard import Competition, LimitError
from reusable_holdout_leaderboard.store.store import Store
from reusable_holdout import ReusableHoldout

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, database, key, team, claimed, killed, *files = json.loads(sys.argv[1])
competition = Competition.open(folder, "demo", database=database, key_file=Path(key))
if killed == "before the guard":
    ReusableHoldout.evaluate_predictions = die
if killed == "after the guard":
    Store.record = die
for file in files:
    try:
        competition.submit(team, Path(file).read_bytes(), filename=file, claimed=claimed)
    except LimitError:
        pass
"""


@pytest.fixture
def worker(folder, key_file, tmp_path):
    """Processes that submit files, perhaps until they are killed at some point; to be waited for."""

    def start(team, sheets, *, database=None, claimed=None, killed=""):
        files = []
        for sheet in sheets:
            files.append(str(tmp_path / f"{secrets.token_hex(8)}.csv"))
            Path(files[-1]).write_bytes(sheet)
        arguments = json.dumps([str(folder), database, str(key_file), team, claimed, killed, *files])
        return Child(_WORKER, arguments)

    return start


ADMIN = "rh_administrator"


@pytest.fixture
def organised(make_competition, folder, key_file):
    """Competitions that are served, with a client of the organiser's, one of nobody's, and those of teams."""
    with contextlib.ExitStack() as opened:

        def start(*, settings=None, **changes):
            competition = make_competition(**changes)
            given = {
                "folder": folder,
                "key_file": key_file,
                "admin_digest": digest_of(ADMIN).hex(),
                "answer_seconds": 0.0,
                "poll_seconds": 0.02,
            }
            server = opened.enter_context(served(Settings(**(given | (settings or {})))))

            def client(token=""):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                url = f"{server.url}/api/v1"
                return opened.enter_context(
                    httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_SECONDS)
                )

            return competition, client(ADMIN), client

        yield start
