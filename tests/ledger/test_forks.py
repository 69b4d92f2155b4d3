"""What a fork must not do to a ledger."""

import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from contracts.ledger_contract import append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import MemoryLedger, chain_problems
from reusable_holdout.ledger.storage import SqlLedger


@pytest.fixture
def ledger(tmp_path):
    ledger = SqlLedger(tmp_path / "guard.db")
    yield ledger
    ledger.close()


def test_a_fork_opens_its_own_connection(ledger):
    ledger.create("{}")
    context = multiprocessing.get_context("fork")
    child = context.Process(target=append, args=(ledger, make_row(1)))
    child.start()
    child.join()
    assert child.exitcode == 0
    append(ledger, make_row(2))
    assert [row.query for row in ledger.rows()] == [1, 2]


def test_what_a_child_commits_outlives_its_parents_close(ledger):
    """SQLite deletes the log when it believes that it closes the last connection."""
    ledger.create("{}")
    append(ledger, make_row(1))
    context = multiprocessing.get_context("fork")
    asked, closed = context.Event(), context.Event()
    child = context.Process(target=_append_before_and_after, args=(ledger, asked, closed))
    child.start()
    assert asked.wait(30)
    ledger.close()
    closed.set()
    child.join(30)
    assert child.exitcode == 0
    again = SqlLedger(ledger.path)
    assert [row.query for row in again.rows()] == [1, 2, 3]
    again.close()


def test_what_a_parent_commits_outlives_its_childs_close(ledger):
    ledger.create("{}")
    append(ledger, make_row(1))
    child = multiprocessing.get_context("fork").Process(target=_append_and_close, args=(ledger,))
    child.start()
    child.join(30)
    append(ledger, make_row(3))
    ledger.close()
    again = SqlLedger(ledger.path)
    assert [row.query for row in again.rows()] == [1, 2, 3]
    again.close()


def test_forks_and_threads_share_one_budget(ledger):
    ledger.create("{}")
    context = multiprocessing.get_context("fork")
    threads = [threading.Thread(target=_append_often, args=(ledger, 50)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = [context.Process(target=_append_often, args=(ledger, 20)) for _ in range(5)]
    for child in children:
        child.start()
    for one in (*threads, *children):
        one.join(60)
    assert [child.exitcode for child in children] == [0] * 5
    assert [row.query for row in ledger.rows()] == list(range(1, 251))
    assert chain_problems("{}", ledger.rows(), ledger.seals()) == []


def test_a_fork_waits_for_the_transactions_of_other_threads(ledger):
    ledger.create("{}")
    holding = threading.Event()

    def hold():
        with ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            holding.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait()
    child = multiprocessing.get_context("fork").Process(target=_append_next, args=(ledger,))
    child.start()
    holder.join()
    child.join(30)
    assert child.exitcode == 0
    _append_next(ledger)
    assert [row.query for row in ledger.rows()] == [1, 2, 3]


@pytest.mark.parametrize("leave", ["by_its_end", "by_an_error"])
def test_a_child_forked_inside_a_transaction_commits_nothing_of_it(ledger, leave):
    ledger.create("{}")
    with ledger.transaction() as transaction:
        transaction.append([make_row(1)])
        child = multiprocessing.get_context("fork").Process(target=_leave, args=(transaction, leave))
        child.start()
        child.join(30)
        assert child.exitcode == 0
    assert ledger.rows() == [make_row(1)]
    assert ledger._connection.driver.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_child_that_ends_like_a_program_leaves_its_parents_transaction_alone(tmp_path):
    """Its interpreter closes whatever it can; the inherited connection must not be among it."""
    script = """
import os, sys
sys.path.insert(0, sys.argv[2])
from contracts.ledger_contract import make_row
from reusable_holdout.ledger.storage import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
with ledger.transaction() as transaction:
    transaction.append([make_row(1)])
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
for query in range(2, 50):
    with ledger.transaction() as transaction:
        transaction.append([make_row(query)])
print(len(ledger.rows()), ledger._connection.driver.execute("PRAGMA integrity_check").fetchone()[0])
"""
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", script, str(tmp_path / "guard.db"), tests]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "49 ok\n", ran.stderr


def test_a_ledger_in_memory_is_not_a_second_budget_in_a_child():
    ledger = MemoryLedger()
    ledger.create("{}")
    child = multiprocessing.get_context("fork").Process(target=_refuses, args=(ledger,))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def _refuses(ledger):
    with pytest.raises(LedgerError, match="belongs to the process"):
        append(ledger, make_row(1))
    ledger.close()


def _append_next(ledger):
    with ledger.transaction() as transaction:
        transaction.append([make_row(transaction.tail.query + 1)])


def _append_often(ledger, count):
    for _ in range(count):
        _append_next(ledger)


def _append_and_close(ledger):
    _append_next(ledger)
    ledger.close()


def _append_before_and_after(ledger, asked, closed):
    _append_next(ledger)
    asked.set()
    assert closed.wait(30)
    _append_next(ledger)


def _leave(transaction, way):
    """Leave, in a child, the block that its parent is in."""
    for use in (transaction._ledger.tail, lambda: append(transaction._ledger, make_row(2))):
        with pytest.raises(LedgerError, match="forked inside a transaction"):
            use()
    with pytest.raises(LedgerError, match="by the process that began it"):
        transaction.find([make_row(1).digest])
    if way == "by_an_error":
        assert transaction.__exit__(ValueError, ValueError(), None) is None
    else:
        with pytest.raises(LedgerError, match="by the process that began it"):
            transaction.__exit__(None, None, None)
