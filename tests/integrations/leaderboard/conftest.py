"""Small competitions for all tests of the leaderboard: 600 rows, labels 0 and 1, a fixed noise key."""

import contextlib
import functools
import json
import secrets
import ssl
from pathlib import Path

import numpy as np
import pytest
from board_servers import ADMIN, Site, served
from children import Child
from made_guards import right_in
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.competition.base import digest_of
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout.errors import Halted
from reusable_holdout.ledger import create_key_file
from reusable_holdout.noise import key_from_seed

ROWS, FRESH_ROWS = 600, 300
RULES = {
    "slug": "demo", "title": "Demo", "queries": 50, "submissions_per_team": 50, "charges": 3,
    "prior_error": 0.05, "vacuous": True,
}  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Hundreds of HTTP clients would each read the certificates of all authorities, and none needs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


def table(**columns):
    """Return CSV of columns of one length."""
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *rows, ""]).encode()


@pytest.fixture(scope="session")
def labels():
    """Labels of the holdout, and then of the fresh rows."""
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
    """Labels of another epoch: 700 rows with other ids."""
    path = tmp_path / "next.csv"
    rng = np.random.default_rng(9)
    path.write_bytes(table(id=[f"n{row}" for row in range(700)], label=rng.integers(0, 2, 700)))
    return path


@pytest.fixture
def key_file(tmp_path):
    """A fixed key, so that every run has the same noise."""
    path = tmp_path / "fixed.key"
    create_key_file(path, key=key_from_seed(1))
    return path


class Clock:
    """Clock that a test sets; 2026-03-01 12:00 UTC at first."""

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
    """Make competitions that are closed when the test ends."""

    def make(*, fresh=None, labels=labels_file, database=None, witness=None, **changes):
        competition = Competition.create(
            folder,
            Rules(**{**RULES, **changes}),
            labels,
            fresh_labels_file=fresh,
            database=database,
            witness=witness,
            key_file=key_file,
            clock=clock,
        )
        return closed_at_the_end(competition)

    return make


@pytest.fixture
def reopen(folder, key_file, clock, closed_at_the_end):
    """Open the same competition again, as another worker would."""

    def again(slug="demo", *, database=None):
        return closed_at_the_end(
            Competition.open(folder, slug, database=database, key_file=key_file, clock=clock)
        )

    return again


@pytest.fixture
def add_team():
    """Add a team; return its number."""

    def add(competition, name="Blue"):
        return competition.authenticate(competition.add_team(name)).id

    return add


@pytest.fixture
def predictions(labels):
    """Return predictions of an exact accuracy on the holdout's rows; `variant` gives different ones."""

    def of(accuracy, variant=0, *, rows=ROWS):
        return right_in(labels[:rows], accuracy, variant)

    return of


@pytest.fixture
def sheet(ids, predictions):
    """Return the same predictions as a file."""

    def of(accuracy, variant=0, *, rows=ROWS):
        return table(id=ids[:rows], prediction=predictions(accuracy, variant, rows=rows))

    return of


@pytest.fixture
def competition(make_competition):
    return make_competition()


@pytest.fixture
def team(competition, add_team):
    return add_team(competition)


@pytest.fixture
def send(add_team, predictions):
    """Send predictions of some accuracy for a team, which is made if needed; honest unless a claim is named."""

    def submit(competition, team, accuracy, variant=0, *, claimed=None, **more):
        known = {one.name: one.id for one in competition.teams()}
        return competition.submit_predictions(
            known.get(team) or add_team(competition, team),
            predictions(accuracy, variant),
            claimed=accuracy if claimed is None else claimed,
            **more,
        )

    return submit


@pytest.fixture
def send_whole(labels, ids, predictions, add_team):
    """Send a file of one accuracy on the holdout's rows and another on the fresh rows."""

    def submit(competition, team, public, fresh=1.0, variant=0, *, claimed=None):
        known = {one.name: one.id for one in competition.teams()}
        whole = np.concatenate([predictions(public, variant), labels[ROWS:]])
        wrong = ROWS + np.arange(round((1 - fresh) * FRESH_ROWS))
        whole[wrong] = 1 - whole[wrong]
        return competition.submit(
            known.get(team) or add_team(competition, team),
            table(id=ids, prediction=whole),
            filename="x.csv",
            claimed=public if claimed is None else claimed,
        )

    return submit


@pytest.fixture
def exhaust(send):
    """Send until the guard halts, and return the answers."""

    def submit(competition, team="Blue"):
        answered = []
        with pytest.raises(Halted):
            while True:
                answered.append(send(competition, team, 0.7, len(answered)))
        return answered

    return submit


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """Database of the board: None for SQLite, a URL for PostgreSQL."""
    return None if request.param == "sqlite" else request.getfixturevalue("server_url")


_WORKER = """
import json, os, signal, sys
from pathlib import Path
from reusable_holdout_leaderboard import Competition, LimitError
from reusable_holdout_leaderboard.competition.guarding import Guard

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

folder, database, key, team, claimed, killed, *files = json.loads(sys.argv[1])
competition = Competition.open(folder, "demo", database=database, key_file=Path(key))
if killed == "before the guard":
    Guard.ask = die
if killed == "after the guard":
    Competition._record = die
for file in files:
    try:
        competition.submit(team, Path(file).read_bytes(), filename=file, claimed=claimed)
    except LimitError:
        pass
"""


@pytest.fixture
def worker(folder, key_file, tmp_path):
    """Start processes that submit files, perhaps until they are killed at some point."""

    def start(team, sheets, *, database=None, claimed=0.7, killed=""):
        files = []
        for sheet in sheets:
            files.append(str(tmp_path / f"{secrets.token_hex(8)}.csv"))
            Path(files[-1]).write_bytes(sheet)
        arguments = json.dumps([str(folder), database, str(key_file), team, claimed, killed, *files])
        return Child(_WORKER, arguments)

    return start


@pytest.fixture
def serve(make_competition, folder, key_file):
    """Serve a competition with some settings and rules; return a :class:`Site`."""
    with contextlib.ExitStack() as opened:

        def start(*, settings=None, root_path="", **rules):
            competition = make_competition(**rules)
            given = {
                "folder": folder, "key_file": key_file, "admin_digest": digest_of(ADMIN).hex(),
                "answer_seconds": 0.0, "submissions_per_minute": 0,
            }  # fmt: skip
            server = opened.enter_context(served(Settings(**(given | (settings or {}))), root_path=root_path))
            return Site(server, competition, opened)

        yield start
