"""The contract on both backends, and what only a durable ledger can do."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from contracts.ledger_contract import LedgerContract, append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import MemoryLedger, SqlLedger


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):
        return MemoryLedger()


class TestSqlLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path):
        ledger = SqlLedger(tmp_path / "guard.db")
        yield ledger
        ledger.close()

    def test_commits_are_synchronous(self, ledger):
        connection = ledger._connection.driver_connection
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_another_ledger_object_sees_what_was_committed(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        other = SqlLedger(ledger.url, must_exist=True)
        assert other.rows() == ledger.rows()
        assert other.tail() == ledger.tail()
        other.close()

    def test_a_fork_opens_its_own_connection(self, ledger):
        ledger.create("{}")
        context = multiprocessing.get_context("fork")
        child = context.Process(target=append, args=(ledger, make_row(1)))
        child.start()
        child.join()
        assert child.exitcode == 0
        append(ledger, make_row(2))
        assert [row.query for row in ledger.rows()] == [1, 2]

    def test_database_errors_do_not_quote_rows(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        secret = make_row(2)._replace(digest=make_row(1).digest, value=0.123456789, name="a secret name")
        with pytest.raises(LedgerError) as caught:
            append(ledger, secret)
        assert "0.123456789" not in str(caught.value)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None


_APPEND_MANY = """
import sys
sys.path.insert(0, sys.argv[3])
from contracts.ledger_contract import make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
for _ in range(int(sys.argv[2])):
    with ledger.transaction() as transaction:
        query = transaction.tail.query + 1
        transaction.append([make_row(query)])
    print(query, flush=True)
"""


def _appending(path, count):
    tests = str(Path(__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-c", _APPEND_MANY, str(path), str(count), tests], stdout=subprocess.PIPE, text=True
    )


def test_processes_neither_skip_nor_double_a_number(tmp_path):
    children = [_appending(tmp_path / "guard.db", 200) for _ in range(3)]
    printed = [int(line) for child in children for line in child.communicate()[0].split()]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert sorted(printed) == list(range(1, 601))
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.tail().query == 600
    ledger.close()


def test_processes_that_make_the_same_ledger_at_once_all_succeed(tmp_path):
    script = (
        "import sys, time; from reusable_holdout.ledger import SqlLedger\n"
        "while time.time() < float(sys.argv[3]): pass\n"
        "ledger = SqlLedger(sys.argv[1]); print(ledger.create(sys.argv[2]), ledger.tail().query)"
    )
    for turn in range(3):
        start, path = str(time.time() + 1.5), str(tmp_path / f"{turn}.db")
        children = [
            subprocess.Popen(
                [sys.executable, "-c", script, path, str(number), start], stdout=subprocess.PIPE, text=True
            )
            for number in range(4)
        ]
        printed = {child.communicate()[0] for child in children}
        assert [child.returncode for child in children] == [0] * 4
        assert len(printed) == 1  # one configuration won, and all have it


def test_what_a_killed_process_saw_committed_is_committed(tmp_path):
    child = _appending(tmp_path / "guard.db", 100_000)
    printed = [int(child.stdout.readline()) for _ in range(50)]
    os.kill(child.pid, signal.SIGKILL)
    printed += [int(line) for line in child.communicate()[0].split()]
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.tail().query in (len(printed), len(printed) + 1)  # it may have died before it could say so
    append(ledger, make_row(ledger.tail().query + 1))
    ledger.close()


def test_a_batch_is_written_wholly_or_not_at_all(tmp_path):
    script = """
import sys
sys.path.insert(0, sys.argv[2])
from contracts.ledger_contract import make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
rows = [make_row(query, batch=1) for query in range(1, 20_001)]
print("ready", flush=True)
with ledger.transaction() as transaction:
    transaction.append(rows)
    print("written, not committed", flush=True)
    sys.stdin.read()
"""
    tests = str(Path(__file__).parent.parent)
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "guard.db"), tests],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    assert child.stdout.readline() == "written, not committed\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.rows() == []
    ledger.close()


def test_waiting_for_another_writer_does_not_fail(tmp_path):
    ledger = SqlLedger(tmp_path / "guard.db")
    ledger.create("{}")
    holder = sqlite3.connect(tmp_path / "guard.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    from threading import Timer

    Timer(0.3, lambda: holder.execute("COMMIT")).start()
    start = time.monotonic()
    append(ledger, make_row(1))
    assert time.monotonic() - start > 0.2
    ledger.close()
    holder.close()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("missing/guard.db", "folder must exist"),
        (".", "folder"),
        ("sqlite://", "in memory"),
        ("nonsense://x/y", "opened"),
        ("://", "cannot be read"),
        (3, "file or a SQLAlchemy URL"),
        ("", "file or a SQLAlchemy URL"),
    ],
)
def test_a_location_that_cannot_hold_a_ledger_is_refused(tmp_path, monkeypatch, location, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=words):
        SqlLedger(location)


def test_a_text_file_is_no_ledger(tmp_path):
    path = tmp_path / "guard.db"
    path.write_text("not a database, " * 100)
    with pytest.raises(LedgerError, match="NOTADB"):
        SqlLedger(path)
    assert path.read_text().startswith("not a database")


def test_another_database_is_no_ledger(tmp_path):
    path = tmp_path / "guard.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE customers (name)")
    other.commit()
    other.close()
    with pytest.raises(LedgerError, match="another database"):
        SqlLedger(path)


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "guard.db"
    ledger = SqlLedger(path)
    ledger.create("{}")
    ledger.close()
    change = sqlite3.connect(path)
    change.execute("UPDATE configuration SET schema_version = 99")
    change.commit()
    change.close()
    with pytest.raises(LedgerError, match="schema 1; it has 99"):
        SqlLedger(path)


def test_a_ledger_that_must_exist_is_not_made(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        SqlLedger(tmp_path / "guard.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []
