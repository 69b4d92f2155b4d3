"""Forks beside and inside the transactions of a ledger."""

import contextlib
import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cases import refuses
from contracts.ledger_contract import append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import MemoryLedger, SqlLedger, chain_problems

CONTEXT = multiprocessing.get_context("fork")


@pytest.fixture
def ledger(tmp_path):
    with contextlib.closing(SqlLedger(tmp_path / "guard.db")) as ledger:
        ledger.create("{}")
        yield ledger


def forked(work, *arguments):
    """Run work in a forked child until it ends."""
    child = CONTEXT.Process(target=work, args=arguments)
    child.start()
    child.join(30)
    assert child.exitcode == 0


def append_next(ledger, count=1):
    for _ in range(count):
        with ledger.transaction() as transaction:
            transaction.append([make_row(transaction.tail.query + 1)])


def numbers(ledger):
    with contextlib.closing(SqlLedger(ledger.path)) as again:
        return [row.query for row in again.rows()]


def test_parent_and_child_each_open_a_connection_and_the_childs_close_loses_nothing(ledger):
    append_next(ledger)
    forked(lambda: (append_next(ledger), ledger.close()))
    append_next(ledger)
    ledger.close()
    assert numbers(ledger) == [1, 2, 3]


def test_what_a_child_commits_outlives_its_parents_close(ledger):
    """SQLite deletes the log when it believes that it closes the last connection."""
    append_next(ledger)
    asked, closed = CONTEXT.Event(), CONTEXT.Event()

    def append_before_and_after():
        append_next(ledger)
        asked.set()
        assert closed.wait(30)
        append_next(ledger)

    child = CONTEXT.Process(target=append_before_and_after)
    child.start()
    assert asked.wait(30)
    ledger.close()
    closed.set()
    child.join(30)
    assert child.exitcode == 0
    assert numbers(ledger) == [1, 2, 3]


def test_forks_and_threads_share_one_budget(ledger):
    threads = [threading.Thread(target=append_next, args=(ledger, 50)) for _ in range(3)]
    children = [CONTEXT.Process(target=append_next, args=(ledger, 20)) for _ in range(5)]
    for one in (*threads, *children):
        one.start()
    for one in (*threads, *children):
        one.join(60)
    assert [child.exitcode for child in children] == [0] * 5
    assert numbers(ledger) == list(range(1, 251))
    assert chain_problems("{}", ledger.rows(), ledger.seals()) == []


def test_a_fork_waits_for_the_transactions_of_other_threads(ledger):
    holding = threading.Event()

    def hold():
        with ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            holding.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait()
    forked(append_next, ledger)
    holder.join()
    append_next(ledger)
    assert numbers(ledger) == [1, 2, 3]


def leave(transaction, way):
    """Leave, in a child, the block that its parent is in."""
    for use in (transaction._ledger.tail, lambda: append(SqlLedger(transaction._ledger.path), make_row(2))):
        refuses(LedgerError, "forked inside a transaction", use)
    refuses(LedgerError, "by the process that began it", transaction.find, [make_row(1).digest])
    if way == "by an error":
        assert transaction.__exit__(ValueError, ValueError(), None) is None
    else:
        refuses(LedgerError, "by the process that began it", transaction.__exit__, None, None, None)


@pytest.mark.parametrize("way", ["by its end", "by an error"])
def test_a_child_forked_inside_a_transaction_commits_nothing_of_it(ledger, way):
    with ledger.transaction() as transaction:
        transaction.append([make_row(1)])
        forked(leave, transaction, way)
    assert ledger.rows() == [make_row(1)]
    assert ledger._connection.driver.execute("PRAGMA integrity_check").fetchone() == ("ok",)


_ENDS_LIKE_A_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[2])
from contracts.ledger_contract import append, make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
with ledger.transaction() as transaction:
    transaction.append([make_row(1)])
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
for query in range(2, 50):
    append(ledger, make_row(query))
print(len(ledger.rows()), ledger._connection.driver.execute("PRAGMA integrity_check").fetchone()[0])
"""


def test_a_child_that_ends_like_a_program_leaves_its_parents_transaction_alone(tmp_path):
    """Its interpreter closes whatever it can; the inherited connection must not be among it."""
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", _ENDS_LIKE_A_PROGRAM, str(tmp_path / "guard.db"), tests]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "49 ok\n", ran.stderr


def test_a_ledger_in_memory_is_not_a_second_budget_in_a_child_which_may_have_its_own():
    ledger = MemoryLedger()
    ledger.create("{}")
    append_next(ledger)

    def refused():
        for use in (ledger.tail, ledger.latest, lambda: append_next(ledger)):
            refuses(LedgerError, "belongs to the process", use)
        ledger.close()
        own = MemoryLedger()
        own.create("{}")
        append_next(own)
        assert own.tail().query == 1

    forked(refused)
    with ledger.transaction() as transaction:
        transaction.append([make_row(2)])
        forked(refused)
    assert [row.query for row in ledger.rows()] == [1, 2]
