"""A question after thousands of others takes the database as many steps as one after a few: none reads the ledger."""

import pickle
from itertools import count

import numpy as np
import pytest
from contracts.ledger_contract import append
from ledger.test_schema import CHARGED, chained
from made_guards import made_guard, right_in

from reusable_holdout.errors import Halted

ROWS = 2_000
LABELS = np.arange(ROWS) % 2
SETTINGS = {
    "queries": 20_000,
    "charges": 40,
    "threshold": 0.1,
    "noise": 0.0,
    "reveals": 5,
    "choices": [2],
    "vacuous": True,
}
FEW, MANY = 100, 5_000


class Asked:
    """A guard with earlier answers, and how many steps its database takes for a question."""

    def __init__(self, path, earlier, charged, **changes):
        self.guard = made_guard(None, LABELS, ledger=path, seed=0, **{**SETTINGS, **changes})
        self.ledger, self._fresh = self.guard._view.ledger, count()
        append(self.ledger, *chained(earlier, CHARGED[charged]))

    def predictions(self, share=0.9):
        return right_in(LABELS, share, next(self._fresh))

    def steps(self, ask):
        """Steps of one question, once everything was read that a process reads once."""
        ask(self)
        taken = []
        connection = self.ledger._connection.driver
        connection.set_progress_handler(lambda: taken.append(1), 1)
        ask(self)
        connection.set_progress_handler(None, 0)
        return len(taken)


def _replay(asked):
    asked.guard.evaluate(right_in(LABELS, 0.9, 1_999), prior=0.9)


def _guarded(asked):
    odd = asked.guard.on(sample_weight=LABELS == 1, name="odd", allow={"vacuous"})
    asked.guard.gate(right_in(LABELS, 0.9, 1_997), 0.7, guardrails={odd: 0.7})


def _choose(asked):
    asked.guard.choose([right_in(LABELS, 0.9, 1_998), right_in(LABELS, 0.8, 1_998)], [0.9, 0.8])


WAYS = {
    "a question that agrees": lambda a: a.guard.evaluate(a.predictions(), prior=0.9),
    "a question that is charged": lambda a: a.guard.evaluate(a.predictions(0.7), prior=0.9),
    "a replay": _replay,
    "a batch": lambda a: a.guard.evaluate([a.predictions() for _ in range(3)], prior=[0.9] * 3),
    "a reveal": lambda a: a.guard.reveal(a.predictions(), prior=0.9),
    "a replayed choice": _choose,
    "another metric": lambda a: a.guard.on("balanced_accuracy", allow={"vacuous"}).evaluate(
        a.predictions(), prior=0.9
    ),
    "what is left": lambda a: (a.guard.charges_left, a.guard.queries_asked, a.guard.halted),
}


@pytest.mark.parametrize("charged", ["nothing", "twenty long ago"])
@pytest.mark.parametrize("way", list(WAYS))
def test_a_late_question_takes_as_many_steps_as_an_early_one(tmp_path, way, charged):
    steps = []
    for earlier in (FEW, MANY):
        asked = Asked(tmp_path / f"{earlier}.db", earlier, charged)
        steps.append(asked.steps(WAYS[way]))
        asked.guard.close()
    assert steps[1] <= 1.05 * steps[0]


@pytest.mark.parametrize("policy", ["claims", "gate", "gate and guardrail"])
def test_so_does_one_of_another_policy_beside_thousands_of_questions(tmp_path, policy):
    changes = {"policy": policy.partition(" ")[0], "threshold": None, "noise": None}
    if policy == "claims":
        changes["charges"] = 3
    asking = {
        "claims": lambda a: a.guard.evaluate(a.predictions(), prior=0.8, series="Blue"),
        "gate": lambda a: a.guard.gate(a.predictions(), 0.7),
        "gate and guardrail": _guarded,
    }
    steps = []
    for earlier in (FEW, MANY):
        asked = Asked(tmp_path / f"{earlier}.db", earlier, "nothing", **changes)
        steps.append(asked.steps(asking[policy]))
        asked.guard.close()
    assert steps[1] <= 1.05 * steps[0]


def test_a_halt_reads_what_was_released_when_somebody_looks_at_it(tmp_path):
    steps = []

    def halted(asked):
        with pytest.raises(
            Halted, match=r"all 20 charges are spent \(on queries 1, 2, 3,.* 19, 20\)"
        ) as caught:
            asked.guard.evaluate(asked.predictions(), prior=0.9)
        return caught.value

    for earlier in (FEW, MANY):
        asked = Asked(tmp_path / f"{earlier}.db", earlier, "twenty long ago", charges=20)
        steps.append(asked.steps(halted))
        before, pickled = halted(asked), pickle.dumps(halted(asked))
        asked.guard.final(asked.predictions())
        asked.guard.close()
        assert len(before.history) == len(pickle.loads(pickled).history) == earlier
        assert before.history["charged"].sum() == 20
    assert steps[1] <= 1.05 * steps[0]
