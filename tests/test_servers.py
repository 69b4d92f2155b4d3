"""A server of a test run is started by whoever needs it first and stopped by the last who used it."""

import multiprocessing
import os
import signal
import sys
import time

import pytest
from servers import run_folder, shared

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
FORKS = multiprocessing.get_context("fork")


def _note(folder, what):
    with (folder / "notes").open("a") as notes:
        notes.write(f"{what}\n")


def _use(folder, entered, leave):
    """Use the server until told to leave."""

    def start():
        time.sleep(0.1)  # a server takes a while, and the others wait for it
        _note(folder, "start")
        return {"started by": os.getpid()}

    with shared(
        folder, "server", start, lambda served: _note(folder, f"stop {served['started by']}")
    ) as served:
        entered.put(served["started by"])
        leave.wait(30)


@pytest.fixture
def users(tmp_path):
    """Starts processes that use one server; returns each and how to let it leave."""
    started = []

    def start(count):
        entered, leaves = FORKS.Queue(), [FORKS.Event() for _ in range(count)]
        processes = [FORKS.Process(target=_use, args=(tmp_path, entered, leave)) for leave in leaves]
        for process in processes:
            process.start()
        started.extend(processes)
        return processes, leaves, [entered.get(timeout=30) for _ in processes]

    yield start
    for process in started:
        process.kill()
        process.join()


def _leave(process, leave):
    leave.set()
    process.join(30)
    assert process.exitcode == 0


def _notes(folder):
    return (folder / "notes").read_text().splitlines()


def test_one_starts_all_use_and_the_last_stops(users, tmp_path):
    processes, leaves, servers = users(3)
    assert len(set(servers)) == 1
    for process, leave in zip(processes, leaves, strict=True):
        assert _notes(tmp_path) == ["start"]
        _leave(process, leave)
    assert _notes(tmp_path) == ["start", f"stop {servers[0]}"]


def test_after_the_last_has_left_the_next_starts_anew(users, tmp_path):
    for _ in range(2):
        (process,), (leave,), _ = users(1)
        _leave(process, leave)
    assert [note.split()[0] for note in _notes(tmp_path)] == ["start", "stop"] * 2


def test_the_dead_use_nothing(users, tmp_path):
    processes, leaves, servers = users(2)
    os.kill(processes[0].pid, signal.SIGKILL)
    processes[0].join()
    _leave(processes[1], leaves[1])
    assert _notes(tmp_path) == ["start", f"stop {servers[0]}"]


def test_the_workers_of_a_run_have_one_folder(monkeypatch, tmp_path):
    class Factory:
        @staticmethod
        def getbasetemp():
            return tmp_path / "popen-gw1"

    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    assert run_folder(Factory()) == tmp_path
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    assert run_folder(Factory()) == tmp_path / "popen-gw1"
