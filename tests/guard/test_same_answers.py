"""The same questions have the same answers, wherever the budget lies and however the guard was opened."""

import itertools

import numpy as np
import pytest
from made_guards import made_guard

from reusable_holdout import Difference, ReusableHoldout, verify
from reusable_holdout.errors import Halted, HoldoutError

ROWS = 2_000
LABELS, NEXT = np.random.default_rng(0).integers(0, 2, (2, ROWS))
X, NEXT_X = np.random.default_rng(1).normal(size=(2, ROWS, 3))
THIRD = (np.arange(ROWS) % 3 == 0).astype(float)
WAYS = [
    *("one", "batch", "slice", "slice batch", "gate", "rails", "comparison", "reveal", "choice"),
    *("failure", "again"),
]
SETTINGS = [{}, {"gates": True}]


class Failing:
    def __init__(self, number):
        self.number = number

    def predict(self, X):
        raise ValueError(f"{self.number}: {np.asarray(X).ravel()[0]}")


def predictions(number, rate, labels):
    return np.where(np.random.default_rng([1, number]).random(ROWS) > rate, 1 - labels, labels)


def questions(seed):
    random = np.random.default_rng(seed)
    asked = [
        (str(random.choice(WAYS)), int(random.integers(1_000)), *random.uniform(0.5, 0.95, 2))
        for _ in range(25)
    ]
    return [*asked[:17], ("rotation", 0, 0.0, 0.0), *asked[17:]]


def ask(guard, question, labels):
    way, number, rate, prior = question
    three = [predictions(number + place, rate, labels) for place in range(3)]

    def part():
        return guard.on(sample_weight=THIRD, allow={"vacuous"})

    def check(one, subject, prior):  # a plan for gates alone has no other way
        if guard.plan.asks == "gates":
            return one.gate(subject, prior)
        return one.evaluate(subject, prior=prior)

    ways = {
        "one": lambda: check(guard, three[0], prior),
        "again": lambda: check(guard, predictions(number % 3, 0.8, labels), 0.8),
        "batch": lambda: check(guard, three, [prior] * 3),
        "comparison": lambda: check(guard, Difference(*three[:2]), 0.0),
        "reveal": lambda: guard.reveal(three[0], prior=prior),
        "choice": lambda: guard.choose(list(three), priors=[prior] * 3),
        "failure": lambda: check(guard, Failing(number), prior),
        "gate": lambda: guard.gate(three[0], prior),
        "rails": lambda: guard.gate(three[0], prior, guardrails={part(): prior}),
        "slice": lambda: check(part(), three[0], prior),
        "slice batch": lambda: check(part(), three, [prior] * 3),
    }
    return ways[way]()


def told(guard, question, labels):
    """What an analyst hears, but for the time of day."""
    try:
        return repr(ask(guard, question, labels))
    except Halted as halt:
        return ["halted", *map(repr, halt.answers)]
    except HoldoutError as error:
        return [type(error).__name__, str(error)]


def heard(seed, ledger, setting, *, reopened=False):
    """All that is told, and how the ledger ends."""
    guard = made_guard(X, LABELS, queries=300, charges=15, seed=2, vacuous=True, ledger=ledger, **setting)
    rows, labels, found = X, LABELS, []
    for question in questions(seed):
        if question[0] == "rotation":
            turned = guard.rotate(NEXT_X, NEXT, early=True)
            guard.close()
            guard, rows, labels = turned.guard, NEXT_X, NEXT
        else:
            found.append(told(guard, question, labels))
        if reopened:
            guard.close()
            guard = ReusableHoldout.open(ledger, rows, labels, seed=2)
    tail = guard._view.ledger.tail()._replace(seal=b"")
    guard.close()
    return found, tail


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_in_memory_on_disk_and_reopened_after_each_question(seed, setting, tmp_path):
    expected = heard(seed, None, setting)
    assert heard(seed, tmp_path / "kept.db", setting) == expected
    assert heard(seed, tmp_path / "reopened.db", setting, reopened=True) == expected
    assert verify(tmp_path / "reopened.db").sound
    assert expected[1].last_charged


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_in_a_batch_and_one_by_one(setting):
    random = np.random.default_rng(3)
    rates = random.uniform(0.5, 0.95, 24)
    asked = [predictions(number, rate, LABELS) for number, rate in enumerate(rates)]
    priors = rates + random.choice([0.0, 0.04, -0.1], 24)
    found = []
    for cuts in (range(25), [0, 24], [0, 5, 6, 20, 24]):
        guard = made_guard(None, LABELS, queries=100, charges=12, seed=2, vacuous=True, **setting)
        answers = []
        for start, stop in itertools.pairwise(cuts):
            try:
                some, stated = asked[start:stop], priors[start:stop]
                answers += guard.gate(some, stated) if setting else guard.evaluate(some, prior=stated)
            except Halted as halt:
                answers += halt.answers
                break
        values = [(answer.value, answer.charged, answer.prior) for answer in answers]
        found.append((values, guard._view.ledger.tail()._replace(seal=b"", spent_nats=0.0)))
    assert found[0] == found[1] == found[2]
    assert found[0][1].charges > 2
