"""Kinds beside one another in one ledger: what a reveal does to a ladder, a failure to a choice, a forger to a final.

What is marked as failing is a known defect: when it is mended, the mark goes.
"""

import functools

import numpy as np
import pytest
from guard.forging import all_rows, fitting, seal_again, sql, state_after
from made_guards import made_guard, right_in

from reusable_holdout import verify
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger import Row
from reusable_holdout.ways import State, Told
from reusable_holdout.ways.table import Ways

ROWS = 2_000
LABELS = np.arange(ROWS) % 2
scoring = functools.partial(right_in, LABELS)


def guard_of(**changes):
    settings = {"queries": 40, "charges": 3, "tolerance": 0.2, "estimate": 0.7, "noise": 0.0}
    return made_guard(None, LABELS, **{**settings, "seed": 1, **changes})


def forged(path, change):
    """Seal changed rows again, each with what follows from its kind, outcome and batch, as one commit or several."""
    text, rows, _ = all_rows(path)
    changed = recomputed(Ways(Configuration.parse(text).view.kept), change(rows))
    names = [*Row._fields, "seal", "epoch"]
    insert = f"INSERT INTO answers ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    last = [after is None or after.batch == after.query for after in [*changed[1:], None]]
    rows = [(insert, *row, b"" if ends else None, 1) for row, ends in zip(changed, last, strict=True)]
    sql(path, ("DELETE FROM answers",), *rows)
    seal_again(path)
    return verify(path).problems


def recomputed(ways, rows):
    states, found = [State(last_charge=0)], []
    for number, row in enumerate(rows, start=1):
        if Told.parse(row.told) is None:
            raise ValueError(f"{row.told} is no outcome")
        answers = sum(other.kind == "final" and other.batch == row.batch for other in rows)
        began = states[row.batch - 1]
        found.append(fitting(ways.named(row.kind), row, states[-1], began, answers)._replace(query=number))
        states.append(state_after(found[-1], states[-1]))
    return found


@pytest.fixture
def ledger(tmp_path):
    """A charge, a reveal, a choice, an agreement and a final of two."""
    path = tmp_path / "guard.db"
    with guard_of(ledger=path) as guard:
        guard.evaluate(scoring(0.9), prior=0.7)
        guard.reveal(scoring(0.72, 1), prior=0.7)
        guard.choose([scoring(0.7, 2), scoring(0.75, 3), scoring(0.6, 4)], [0.7, 0.7, 0.7])
        guard.evaluate(scoring(0.71, 5), prior=0.7)
        guard.final([scoring(0.7, 6), scoring(0.71, 7)])
    return path


def replaced(rows, place, **changes):
    return [*rows[:place], rows[place]._replace(**changes), *rows[place + 1 :]]


def copies(rows, *places):
    """Some rows anew, each a commit of its own, under names of their own."""
    return [
        rows[place]._replace(query=number, batch=number, digest=bytes([number]) * len(rows[place].digest))
        for number, place in enumerate(places, start=1)
    ]


def test_a_sound_ledger_of_all_kinds_passes_also_when_it_is_sealed_again(ledger):
    assert verify(ledger).problems == []
    assert forged(ledger, lambda rows: rows) == []


FORGERIES = {
    "a reveal is told as an agreement": (lambda rows: replaced(rows, 1, told="agreed"), "has no outcome"),
    "a second final": (lambda rows: [*rows[:5], rows[5]._replace(batch=6)], "had to halt"),
    "a reveal after a final": (lambda rows: copies(rows, 0, 4, 1), "had to halt"),
    "a reveal after the last charge": (lambda rows: copies(rows, 0, 0, 0, 1), "had to halt"),
    "a charge after the last": (lambda rows: copies(rows, 0, 0, 0, 0), "had to halt"),
    "a choice of another number": (
        lambda rows: replaced(rows, 2, told="candidate 1 of 1, rank 1, cell 4"),
        "no outcome",
    ),
    "a reveal in a batch": (lambda rows: [*rows[:1], rows[1]._replace(batch=1)], "is in a batch"),
    "more than can be afforded": (
        lambda rows: [row._replace(told="cell 0") for row in copies(rows, *[1] * 39)],
        "could have broken a promise",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_rows_that_the_plan_does_not_allow_are_found_though_all_numbers_follow(ledger, forgery):
    change, words = FORGERIES[forgery]
    try:
        problems = forged(ledger, change)
    except Exception as error:
        problems = [str(error)]
    assert any(words in problem for problem in problems)


def test_the_last_charge_may_be_followed_by_a_final(ledger):
    def alone(rows):
        *charged, last = copies(rows, 0, 0, 0, 4)
        return [*charged, last._replace(told=last.told.partition(", weight")[0])]

    assert forged(ledger, alone) == []


def test_a_final_is_certified_by_the_state_in_which_it_was_given(ledger):
    def joined(rows):
        charged, other, last = copies(rows, 0, 0, 4)
        return [charged, other._replace(batch=1), last._replace(batch=1)]

    assert forged(ledger, joined)


def test_a_batch_is_of_one_kind(ledger):
    def joined(rows):
        charged, other = copies(rows, 0, 3)
        return [charged, other._replace(batch=1, kind="compare", prior=0.0)]

    assert forged(ledger, joined)


@pytest.mark.parametrize("gates", [False, True])
def test_a_guard_that_promises_little_answers(gates):
    with guard_of(gates=gates, queries=1, charges=1, confidence=0.5) as guard:
        asked = scoring(0.7)
        answer = guard.gate(asked, 0.7) if gates else guard.evaluate(asked, prior=0.7)
        assert answer.low <= 0.7
