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
from cases import refuses
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.settings import Settings
from servers import new_database, restart_postgresql, start_postgresql, stop_postgresql, why_no_postgresql

from reusable_holdout.errors import RolledBackError
from reusable_holdout.guard import verify

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

NUMBER, CLIENTS, KILLS = 24, 3, 2


@pytest.fixture
def season(make_competition, sheet):
    """Make a competition; return a token, and numbered files with claims, of which every other one is wrong."""

    def made(database=None):
        competition = make_competition(database=database, queries=300, submissions_per_team=300, charges=300)
        token = competition.add_team("Blue")
        competition.close()
        return token, [(n, sheet(0.9, n), 0.9 if n % 2 else 0.0) for n in range(NUMBER)]

    return made


@pytest.fixture
def served_twice(folder, key_file, tmp_path):
    """Serve with several processes."""

    def start(place, workers=2, **changes):
        given = {"answer_seconds": 0.0, "submissions_per_minute": 0, "requests_per_minute": 0}
        settings = Settings(folder=folder, key_file=key_file, **(given | changes))
        return served_by_processes(settings, tmp_path / place, workers=workers)

    return start


def post(url, token, file, claim):
    return httpx.post(
        f"{url}/api/v1/submissions",
        headers={"Authorization": f"Bearer {token}"},
        files={"file": ("votes.csv", file)},
        data={"claimed": repr(claim)},
        timeout=PATIENCE_SECONDS,
    )


def send(url, token, files, told, *, until=None, before_last=None):
    """Send files until they are answered, or an event is set; an event may have to be set before the last one."""
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    for number, file, claim in files:
        if before_last is not None and len(told) == len(files) - 1:
            before_last.wait(PATIENCE_SECONDS)
        while number not in told and not (until is not None and until.is_set()):
            assert time.monotonic() < deadline, sorted(told)
            with contextlib.suppress(httpx.TransportError):
                answer = post(url, token, file, claim)
                assert answer.status_code in {201, 503}, answer.text
                if answer.status_code == 201:
                    told[number] = answer.json()
                    continue
            time.sleep(0.05)
    return told


def sending(*calls, **more):
    """Start threads that send."""
    threads = [threading.Thread(target=send, args=call, kwargs=more) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def await_answers(told, count, threads):
    while sum(map(len, told)) < count:
        assert any(thread.is_alive() for thread in threads)
        time.sleep(0.002)


def check(competition, told, first):
    """Check that each file has one answer, to its team before and after, in the ledger and on the board."""
    assert 0 < len(first) < NUMBER  # it happened in the middle
    competition.settle(older_seconds=-1e9)
    history = competition.history()
    charged = int(history["charged"].sum())
    for name in ("query", "value"):
        assert {n: told[n][name] for n in first} == {n: one[name] for n, one in first.items()}
    assert sorted(one["query"] for one in told.values()) == list(range(1, NUMBER + 1))
    assert sum(one["charged"] for one in told.values()) == charged == NUMBER // 2
    assert competition.status().queries_asked == len(history) == NUMBER
    (row,) = competition.board()
    assert (row.submissions, row.charges) == (NUMBER, charged)
    assert {one.state for one in competition.submissions(limit=1_000)} == {"scored"}
    ledger = competition.home / "demo" / "ledger.db"
    assert not ledger.exists() or verify(ledger).sound


def workers_of(watcher):
    """Return the worker processes of a server."""
    found = []
    for one in psutil.Process(watcher).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [one] if "spawn_main" in " ".join(one.cmdline()) else []
    return found


def test_workers_that_are_killed_one_by_one(season, served_twice, database, reopen):
    token, files = season(database)
    told, killed = [{} for _ in range(CLIENTS)], threading.Event()
    with served_twice("server", database=database, answer_seconds=0.03) as (url, watcher):
        shifts = [k * NUMBER // CLIENTS for k in range(CLIENTS)]
        calls = [(url, token, files[n:] + files[:n], own) for n, own in zip(shifts, told, strict=True)]
        threads = sending(*calls, before_last=killed)
        for number in range(KILLS):
            await_answers(told, (number + 1) * NUMBER * CLIENTS // (KILLS + 1), threads)
            while not (workers := workers_of(watcher)):
                time.sleep(0.01)
            os.kill(workers[number % len(workers)].pid, signal.SIGKILL)
            first = dict(told[0])
        killed.set()
        for thread in threads:
            thread.join()
    for own in told:
        check(reopen(database=database), own, first)


def test_a_server_that_is_killed_as_a_whole(season, served_twice, database, reopen):
    token, files = season(database)
    first, over = {}, threading.Event()
    with served_twice("one", database=database) as (url, watcher):
        threads = sending((url, token, files[:-1], first), (url, token, files[::-1], {}), until=over)
        await_answers([first], NUMBER // 4, threads)
        for process in (psutil.Process(watcher), *psutil.Process(watcher).children(recursive=True)):
            os.kill(process.pid, signal.SIGKILL)
        over.set()
        for thread in threads:
            thread.join()
    known = dict(first)
    with served_twice("two", database=database) as (url, _):
        told = send(url, token, files, {})
    check(reopen(database=database), told, known)


def test_a_full_disk(season, served_twice, folder, reopen):
    token, files = season()
    with served_twice("server", workers=1) as (url, process):
        first = send(url, token, files[:6], {})
        largest = max(path.stat().st_size for path in folder.rglob("*.db*"))
        _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (largest, most))
        refused = [post(url, token, *one) for _, *one in files[6:]]
        assert refused[-1].status_code == 503
        assert all("sent again" in one.text for one in refused if one.status_code == 503)
        assert httpx.get(f"{url}/api/v1/board", timeout=PATIENCE_SECONDS).is_success  # reading goes on
        first |= {6 + n: one.json() for n, one in enumerate(refused) if one.status_code == 201}
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))
        told = send(url, token, files, {})
    check(reopen(), told, first)


@pytest.mark.skipif(bool(why_no_postgresql()), reason=why_no_postgresql() or "it is there")
def test_a_database_that_stops_at_once_and_starts_again(season, served_twice, reopen):
    server = start_postgresql(durable=True)
    try:
        database = new_database(server["url"])
        token, files = season(database)
        told = {}
        with served_twice("server", database=database) as (url, _):
            threads = sending((url, token, files[:-1], told))
            await_answers([told], NUMBER // 4, threads)
            known = dict(told)
            restart_postgresql(server)
            threads[0].join()
            assert send(url, token, files, {}).keys() == {*range(NUMBER)} >= told.keys()
            told = send(url, token, files, {})
        competition = reopen(database=database)
        check(competition, told, known)
        competition.close()
    finally:
        stop_postgresql(server)


def test_an_older_ledger_answers_nothing_and_the_newest_goes_on(season, folder, key_file, tmp_path, reopen):
    token, files = season()
    ledger, kept = folder / "demo" / "ledger.db", tmp_path / "kept"
    settings = Settings(folder=folder, key_file=key_file, answer_seconds=0.0, submissions_per_minute=0)
    with served(settings) as server:
        first = send(server.url, token, files[:3], {})
    older = ledger.read_bytes()
    with served(settings) as server:
        send(server.url, token, files[:6], first)
    kept.write_bytes(ledger.read_bytes())
    ledger.write_bytes(older)
    with served(settings) as server:
        answer = post(server.url, token, *files[6][1:])
        assert answer.status_code == 503
        assert "ledger" not in answer.text  # its message is only in the log
        refuses(RolledBackError, "older copy was restored", Competition.open, folder)
        ledger.write_bytes(kept.read_bytes())
        told = send(server.url, token, files, {})
    check(reopen(), told, first)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_leaves_no_settings_behind(season, served_twice, folder, stop, workers):
    season()
    with served_twice("server", workers=workers) as (_, number):
        assert len(list(folder.glob("server-*.json"))) == 1
        process = psutil.Process(number)
        process.send_signal(stop)
        process.wait(PATIENCE_SECONDS)
    assert not list(folder.glob("server-*.json"))
