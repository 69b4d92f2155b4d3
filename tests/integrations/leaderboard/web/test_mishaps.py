"""Servers that are killed, or lose disk or database, while teams send: no answer is lost or charged twice."""

import contextlib
import os
import resource
import signal
import threading
import time

import httpx
import psutil
import pytest
from board_servers import PATIENCE_SECONDS, served, served_by_processes
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.settings import Settings
from servers import (
    new_database,
    restart_postgresql,
    start_postgresql,
    stop_postgresql,
    why_no_postgresql,
)

from reusable_holdout.errors import RolledBackError
from reusable_holdout.guard import verify

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

NUMBER = 24


@pytest.fixture
def season(make_competition, sheet):
    """A competition, a team's token, and files with claims, of which every other one is wrong and charged."""

    def made(database=None):
        competition = make_competition(database=database, queries=300, submissions_per_team=300, charges=300)
        token = competition.add_team("Blue")
        competition.close()
        return token, [(sheet(0.9, n), 0.9 if n % 2 else 0.0) for n in range(NUMBER)]

    return made


@pytest.fixture
def settings(folder, key_file):
    def made(**changes):
        given = {"answer_seconds": 0.0, "submissions_per_minute": 0, "requests_per_minute": 0}
        return Settings(folder=folder, key_file=key_file, **(given | changes))

    return made


def post(url, token, file, claim):
    return httpx.post(
        f"{url}/api/v1/submissions",
        headers={"Authorization": f"Bearer {token}"},
        files={"file": ("votes.csv", file)},
        data={"claimed": repr(claim)},
        timeout=PATIENCE_SECONDS,
    )


def sent(url, token, files, told, *, until=None):
    """Send files, each until it is answered or, with `until`, that event is set; the answers go to `told`."""
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    for number, (file, claim) in enumerate(files):
        while number not in told and not (until is not None and until.is_set()):
            assert time.monotonic() < deadline, sorted(told)
            with contextlib.suppress(httpx.TransportError):
                answer = post(url, token, file, claim)
                assert answer.status_code in {201, 503}, answer.text
                if answer.status_code == 201:
                    told[number] = answer.json()
                    continue
            time.sleep(0.05)


def begun(told, *sending):
    """Wait until a quarter is answered."""
    while len(told) < NUMBER // 4:
        assert any(thread.is_alive() for thread in sending)
        time.sleep(0.002)


def again(url, token, files):
    """Send all files once more; return their answers."""
    told = {}
    sent(url, token, files, told)
    return told


def check(competition, told, first):
    """Check that each file has one answer, to its team before and after, in the ledger and on the board."""
    assert 0 < len(first) < NUMBER  # it happened in the middle
    competition.settle(older_seconds=-1e9)
    history = competition.history()
    charged = int(history["charged"].sum())
    assert {n: told[n]["query"] for n in first} == {n: one["query"] for n, one in first.items()}
    assert {n: told[n]["value"] for n in first} == {n: one["value"] for n, one in first.items()}
    assert sorted(one["query"] for one in told.values()) == list(range(1, NUMBER + 1))
    assert sum(one["charged"] for one in told.values()) == charged == NUMBER // 2
    assert competition.status().queries_asked == len(history) == NUMBER
    (row,) = competition.board()
    assert (row.submissions, row.charges) == (NUMBER, charged)
    assert {one.state for one in competition.submissions(limit=1_000)} == {"scored"}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_a_server_that_is_killed_as_a_whole_while_it_answers(season, settings, database, tmp_path, reopen):
    token, files = season(database)
    first, over = {}, threading.Event()
    with served_by_processes(settings(database=database), tmp_path / "one", workers=2) as (url, watcher):
        sending = [
            threading.Thread(target=sent, args=(url, token, turned, told), kwargs={"until": over})
            for turned, told in (
                (files[:-1], first),
                (files[::-1], {}),
            )  # of the first, one is never the last
        ]
        for thread in sending:
            thread.start()
        begun(first, *sending)
        processes = [psutil.Process(watcher), *psutil.Process(watcher).children(recursive=True)]
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
        over.set()
        for thread in sending:
            thread.join()
    known = dict(first)
    with served_by_processes(settings(database=database), tmp_path / "two", workers=2) as (url, _):
        told = again(url, token, files)
    check(reopen(database=database), told, known)


def test_a_full_disk(season, settings, folder, tmp_path, reopen):
    token, files = season()
    with served_by_processes(settings(), tmp_path / "server", workers=1) as (url, process):
        first = {}
        sent(url, token, files[:6], first)
        largest = max(path.stat().st_size for path in folder.rglob("*.db*"))
        _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (largest, most))
        refused = [post(url, token, *one) for one in files[6:]]
        assert refused[-1].status_code == 503
        assert all("sent again" in one.text for one in refused if one.status_code == 503)
        assert httpx.get(
            f"{url}/api/v1/board", timeout=PATIENCE_SECONDS
        ).is_success  # answers are still shown
        first |= {6 + n: one.json() for n, one in enumerate(refused) if one.status_code == 201}
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))
        told = again(url, token, files)
    check(reopen(), told, first)
    assert verify(folder / "demo" / "ledger.db").sound


@pytest.mark.skipif(bool(why_no_postgresql()), reason=why_no_postgresql() or "it is there")
def test_a_database_that_stops_at_once_and_starts_again(season, settings, tmp_path, reopen):
    server = start_postgresql(durable=True)
    try:
        database = new_database(server["url"])
        token, files = season(database)
        told = {}
        with served_by_processes(settings(database=database), tmp_path / "server", workers=2) as (url, _):
            sending = threading.Thread(target=sent, args=(url, token, files[:-1], told))
            sending.start()
            begun(told, sending)
            known = dict(told)
            restart_postgresql(server)
            sending.join()
            sent(url, token, files, told)
            assert again(url, token, files).keys() == told.keys()
        competition = reopen(database=database)
        check(competition, told, known)
        competition.close()
    finally:
        stop_postgresql(server)


def test_an_older_ledger_answers_nothing_and_the_newest_goes_on(season, settings, folder, tmp_path, reopen):
    token, files = season()
    ledger, kept = folder / "demo" / "ledger.db", tmp_path / "kept"
    first = {}
    with served(settings()) as server:
        sent(server.url, token, files[:3], first)
    older = ledger.read_bytes()
    with served(settings()) as server:
        sent(server.url, token, files[:6], first)
    kept.write_bytes(ledger.read_bytes())
    ledger.write_bytes(older)
    with served(settings()) as server:
        answer = post(server.url, token, *files[6])
        assert answer.status_code == 503
        assert "ledger" not in answer.text  # its message is only in the log
        with pytest.raises(RolledBackError, match="older copy was restored"):
            Competition.open(folder)
        ledger.write_bytes(kept.read_bytes())
        told = again(server.url, token, files)
    check(reopen(), told, first)
