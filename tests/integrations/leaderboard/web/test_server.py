"""Servers with several processes: killed, stopped, and sending at once."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import threading
import time
from types import SimpleNamespace

import psutil
import pytest
from board_servers import PATIENCE_SECONDS, served_by_processes
from reusable_holdout_leaderboard import RemoteHoldout
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.door import Door, PromptProtocol
from reusable_holdout_leaderboard.web.server import clear_away
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from reusable_holdout.guard import verify

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

CLIENTS = 3


def ask_all(url, token, questions, answers, all_killed):
    with RemoteHoldout(url, token) as holdout:
        for number, (predictions, prior) in questions:
            if len(answers) == len(questions) - 1:  # the last one is asked after all kills
                all_killed.wait(PATIENCE_SECONDS)
            answers[number] = holdout.evaluate_predictions(predictions, prior=prior)


@pytest.mark.parametrize(
    ("database", "number", "kills"),
    [("sqlite", 48, 2), ("postgresql", 48, 2)],
    indirect=["database"],
)
def test_workers_that_are_killed_under_load_lose_and_double_nothing(
    make_competition, folder, key_file, database, predictions, tmp_path, number, kills
):
    competition = make_competition(database=database, queries=300, submissions_per_team=300, charges=300)
    token = competition.add_team("Blue")
    settings = Settings(
        folder=folder,
        database=database,
        key_file=key_file,
        answer_seconds=0.03,
        submissions_per_minute=0,
        requests_per_minute=0,
    )
    # every other claim is wrong, and charged; every client asks all questions in an order of its own
    questions = [(n, (predictions(0.9, n), 0.9 if n % 2 else 0.0)) for n in range(number)]
    told = [{} for _ in range(CLIENTS)]
    killed, all_killed = 0, threading.Event()
    with served_by_processes(settings, tmp_path / "server", workers=2) as (url, watcher):
        shifts = [k * number // CLIENTS for k in range(CLIENTS)]
        turned = [questions[shift:] + questions[:shift] for shift in shifts]
        threads = [
            threading.Thread(target=ask_all, args=(url, token, own, answers, all_killed))
            for own, answers in zip(turned, told, strict=True)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
            # spread over the answers, not over time
            due = (killed + 1) * number * CLIENTS // (kills + 1)
            workers = [one for one in psutil.Process(watcher).children() if is_worker(one)]
            if killed < kills and workers and sum(map(len, told)) >= due:
                os.kill(workers[killed % len(workers)].pid, signal.SIGKILL)
                killed += 1
            if killed == kills:
                all_killed.set()
        for thread in threads:
            thread.join()
    competition.settle(older_seconds=-1e9)
    history = competition.history()
    charged = int(history["charged"].sum())

    assert killed == kills
    for answers in told:  # each client got the same answer to each question
        assert sorted(answers) == list(range(number))
        assert {n: one.query for n, one in answers.items()} == {n: one.query for n, one in told[0].items()}
    assert sorted(one.query for one in told[0].values()) == list(range(1, number + 1))
    assert sum(one.charged for one in told[0].values()) == charged == number // 2
    assert competition.status().queries_asked == len(history) == number
    assert competition.board()[0].charges == charged
    assert competition.board()[0].submissions == number
    assert {one.state for one in competition.submissions(limit=1_000)} == {"scored"}
    if database is None:
        assert verify(folder / "demo" / "ledger.db").sound


def is_worker(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        return "spawn_main" in " ".join(process.cmdline())
    return False


@pytest.mark.parametrize(
    ("stop", "workers"),
    [(signal.SIGTERM, 1), (signal.SIGTERM, 2), (signal.SIGINT, 1), (signal.SIGINT, 2)],
)
def test_a_server_that_is_stopped_leaves_no_settings_behind(
    make_competition, folder, key_file, tmp_path, stop, workers
):
    make_competition()
    settings = Settings(folder=folder, key_file=key_file)
    with served_by_processes(settings, tmp_path / "server", workers=workers) as (_, number):
        assert len(list(folder.glob("server-*.json"))) == 1
        process = psutil.Process(number)
        process.send_signal(stop)
        process.wait(PATIENCE_SECONDS)

    assert not list(folder.glob("server-*.json"))


def test_no_connection_waits_with_the_rest_of_an_answer(monkeypatch, closed_at_the_end):
    begun = []
    monkeypatch.setattr(H11Protocol, "connection_made", lambda self, transport: begun.append(transport))
    config = Config(app=None, log_config=None)
    loop = closed_at_the_end(asyncio.new_event_loop())
    protocol = PromptProtocol(config, ServerState(), {}, loop, door=Door(per_address=1), head_seconds=1.0)
    kinds = [(socket.AF_INET, socket.IPPROTO_TCP), (socket.AF_UNIX, 0)]
    for family, level in kinds:
        with socket.socket(family) as connection:
            transport = SimpleNamespace(get_extra_info={"socket": connection}.get)
            protocol.connection_made(transport)
            assert begun[-1] is transport
            if level:
                assert connection.getsockopt(level, socket.TCP_NODELAY)


def test_files_of_dead_servers_are_removed_and_others_stay(tmp_path):
    (tmp_path / "demo").mkdir()
    names = {
        "server-dead.json": False,
        "server-alive.json": True,
        "admin.token": True,
        "admin.token.0123456789abcdef": False,
        "demo/labels-1.parquet": True,
        "demo/labels-1.parquet.0123456789abcdef": False,
        "demo/labels-2.parquet.0123456789abcdef": True,  # just now
    }
    for name in names:
        (tmp_path / name).write_text("x")
        if "labels-2" not in name:
            os.utime(tmp_path / name, (0, 0))
    with (tmp_path / "server-alive.json").open("rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_SH)
        clear_away(tmp_path)
    assert {name: (tmp_path / name).exists() for name in names} == names
