"""What children that are killed have in common, and what must hold of a ledger after their deaths."""

import json
import signal
import time

import numpy as np
import pytest

from reusable_holdout import Answer

__all__ = [
    "ASK_ON",
    "DEATHS",
    "DYING",
    "LAST_QUESTIONS",
    "after_a_death",
    "as_told",
    "died",
    "kill_until_halted",
]

ASK_ON = """
try:
    for _ in range(int(sys.argv[-1])):
        print(json.dumps(ask(guard, guard.queries_asked)), flush=True)
    sys.stdin.readline()  # until it is killed, if that comes late
except Halted as halt:
    print(json.dumps(halt.reason), flush=True)
"""
"""Asks `guard`, by a function `ask`, until it halts; its last argument is the number of questions."""

DYING = """
import os, signal
from reusable_holdout.ledger.storage import Transaction

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def dying_after(method):
    return lambda *arguments: (method(*arguments), die())

def dies(moment):
    if moment == "before the row":
        Transaction.append = die
    elif moment == "before the commit":
        Transaction.append = dying_after(Transaction.append)
    elif moment == "after the commit":
        Transaction.__exit__ = dying_after(Transaction.__exit__)
"""
"""Defines, in a child, how it dies at a moment."""

BATCH = 20
LAST_QUESTIONS = f"""
dies(sys.argv[-2])
asked = [question(number) for number in range({BATCH} if sys.argv[-1] == "batch" else 1)]
predictions, priors = [one for one, _ in asked], [prior for _, prior in asked]
guard.evaluate(predictions, prior=priors) if len(asked) > 1 else guard.evaluate(predictions[0], prior=priors[0])
"""
"""Asks `guard` about its `question`s, and dies of it; its last arguments are the moment, and "single" or "batch"."""

DEATHS = pytest.mark.parametrize(
    ("moment", "recorded"), [("before the row", 0), ("before the commit", 0), ("after the commit", 1)]
)


def kill_until_halted(start):
    """Start processes that ask so many questions, and kill each at a random moment, until the charges are spent.

    It gives the answers that were told, and the number of processes.
    """
    moments, told, rounds = np.random.default_rng(8), [], 0
    while "charges" not in told:  # the reason of a halt
        rounds += 1
        lines = int(moments.integers(1, 16))
        process = start(lines + 10)
        printed = [line for _ in range(lines) if (line := process.stdout.readline())]
        time.sleep(float(moments.uniform(0.0, 0.012)))
        process.kill()
        printed += process.communicate().splitlines(keepends=True)
        told += [json.loads(line) for line in printed if line.endswith("\n")]
    return [Answer(*answer) for answer in told if answer != "charges"], rounds


def died(process):
    """Hold that a child died of itself, and said nothing."""
    assert process.communicate() == ""
    assert process.returncode == -signal.SIGKILL


def as_told(told, history, *, charges, rounds):
    """Hold that as many answers were recorded as could be charged, and those that were told as they were told."""
    assert len(history) == int(history["charged"].sum()) == charges
    assert history["query"].tolist() == list(range(1, charges + 1))
    assert len({answer.query for answer in told}) == len(told)  # none was told twice
    assert len(told) >= charges - rounds  # a child may die before it could say what it had committed
    recorded = history.set_index("query")
    for answer in told:
        row = recorded.loc[answer.query]
        for column in ("value", "prior", "charged", "low", "high", "threshold", "charges_left", "name"):
            assert row[column] == getattr(answer, column)


def after_a_death(guard, twin, question, *, recorded, how):
    """Hold that questions were answered or not, and are as those of a guard of the same key and no deaths."""
    asked = [question(number) for number in range(BATCH if how == "batch" else 1)]
    predictions, priors = [one for one, _ in asked], [prior for _, prior in asked]
    assert guard.queries_asked == recorded * len(asked)  # the whole batch or nothing
    answers, expected = (one.evaluate(predictions, prior=priors) for one in (guard, twin))
    assert [answer.replayed for answer in answers] == [bool(recorded)] * len(asked)
    assert [answer.value for answer in answers] == [answer.value for answer in expected]
    assert [answer[4:6] for answer in answers] == [answer[4:6] for answer in expected]
    assert guard.queries_asked == int(guard.history()["charged"].sum()) == len(asked)
