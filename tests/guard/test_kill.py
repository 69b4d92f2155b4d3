"""Kill -9 at any moment: what was released is recorded, once, and nothing is paid twice."""

import signal

import numpy as np
import pytest
from children import Child
from guard.killing import (
    ASK_ON,
    DEATHS,
    DYING,
    LAST_QUESTIONS,
    after_a_death,
    as_told,
    died,
    kill_until_halted,
)

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import Halted

ROWS, CHARGES = 10_000, 100

# coin flips against a prior five hundredths above: five standard deviations beyond the threshold, so each is charged
_COMMON = """
import json, os, signal, sys
import numpy as np
from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.errors import Halted

def guard_of(ledger, labels=np.random.default_rng(0).integers(0, 2, 10_000)):
    plan = Plan(queries=1_000, charges=100, threshold=0.025, noise=1e-4)
    return ReusableHoldout(None, labels, ledger=ledger, plan=plan, seed=11)

def question(number):
    return np.random.default_rng([1, number]).integers(0, 2, 10_000), 0.55 + number * 1e-5

def ask(guard, number):
    predictions, prior = question(number)
    return guard.evaluate(predictions, prior=prior, name="asked")
"""


@pytest.fixture(scope="module")
def here():
    """The functions that the children have too."""
    names = {}
    exec(_COMMON, names)
    return names["guard_of"], names["question"]


def child(script, *arguments):
    return Child(_COMMON + script, *arguments)


def test_a_hundred_charged_answers_survive_kill_9_at_random_moments(tmp_path, here):
    guard_of, question = here
    ledger = tmp_path / "guard.db"
    told, rounds = kill_until_halted(
        lambda questions: child("guard = guard_of(sys.argv[1])" + ASK_ON, ledger, questions)
    )
    assert rounds >= 4
    with guard_of(ledger) as guard:
        history = guard.history()
        as_told(told, history, charges=CHARGES, rounds=rounds)
        for number in range(CHARGES):
            predictions, prior = question(number)
            again = guard.evaluate(predictions, prior=prior)
            assert (again.replayed, again.query) == (True, number + 1)
            assert again.value == history["value"].iloc[number]
        with pytest.raises(Halted) as halt:
            guard.evaluate(question(CHARGES)[0], prior=question(CHARGES)[1])
        assert halt.value.reason == "charges"
        assert guard.queries_asked == CHARGES
    found = verify(ledger)
    assert (found.problems, found.queries, found.charges) == ([], CHARGES, CHARGES)


@pytest.mark.parametrize("how", ["single", "batch"])
@DEATHS
def test_a_death_at_the_worst_moment_neither_loses_nor_doubles_nor_renews_an_answer(
    tmp_path, here, moment, recorded, how
):
    guard_of, question = here
    ledger = tmp_path / "guard.db"
    guard_of(ledger).close()
    died(child(DYING + "guard = guard_of(sys.argv[1])" + LAST_QUESTIONS, ledger, moment, how))
    with guard_of(ledger) as guard:
        after_a_death(guard, guard_of(None), question, recorded=recorded, how=how)
    assert verify(ledger).problems == []


@pytest.mark.parametrize(
    "death",
    [
        "ledger.storage Transaction.create",
        "ledger.storage Transaction.__exit__",
        "ledger.connection Connection.prepare",
        "guard.stores create_key_file",
        "ledger.key_file _sync_folder",
    ],
)
def test_a_guard_killed_while_it_is_made_can_be_made_again(tmp_path, here, death):
    guard_of, _ = here
    ledger, (module, name) = tmp_path / "guard.db", death.split()
    script = f"""
import reusable_holdout.{module}
reusable_holdout.{module}.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
guard_of(sys.argv[1])
"""
    process = child(script, ledger)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with guard_of(ledger) as guard:
        assert guard.queries_asked == 0
    with ReusableHoldout.open(ledger, None, np.random.default_rng(0).integers(0, 2, ROWS)) as guard:
        assert guard.evaluate(np.zeros(ROWS, int), prior=0.9).query == 1
