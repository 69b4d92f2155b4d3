"""What public numbers refuse, a halt ends or a ledger knows already is settled before the rows are read."""

import numpy as np
import pytest
from cases import for_each, refuses
from guard.counting import ROWS, Counting, predictions
from made_guards import made_guard

from reusable_holdout.errors import BudgetError, InputError

SETTINGS = {"charges": 2, "threshold": 0.1, "noise": 0.0, "estimate": 0.7, "seed": 1}


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def make(counting):
    metric = counting.metric()

    def make(queries=40, **changes):
        y = (np.arange(ROWS) >= 0.5 * ROWS).astype(int)
        guard = made_guard(np.zeros((ROWS, 1)), y, metric=metric, queries=queries, **{**SETTINGS, **changes})
        counting.measured = counting.predicted = 0
        return guard

    return make


def ask(guard, counting, share, way):
    """Ask about models, or predictions, that are off on |share - 0.5| of the rows."""
    several = [predictions(share), predictions(share + 0.01)]
    models = [counting.model(share), counting.model(share + 0.01)]
    ways = {
        "evaluate several": lambda: guard.evaluate(several, prior=[0.2, 0.2]),
        "reveal": lambda: guard.reveal(models[0], prior=0.2),
        "reveal predictions": lambda: guard.reveal(several[0], prior=0.2),
        "choose": lambda: guard.choose(models, [0.2, 0.2]),
        "choose predictions": lambda: guard.choose(several, [0.2, 0.2]),
    }
    return ways[way]()


@for_each("way", ["reveal", "reveal predictions", "choose", "choose predictions"])
def test_what_would_break_a_promise_is_refused_before_the_rows_are_read(make, counting, way):
    guard = make(reveals=0, charges=None, threshold=None, tolerance=0.08)
    assert not guard.price(way.removesuffix(" predictions"), candidates=2).allowed
    refuses(InputError, "are left after what the charges", ask, guard, counting, 0.7, way)
    assert (counting.used, guard.answered) == (0, 0)


def test_a_batch_of_more_than_are_left_is_refused_before_the_rows_are_read(make, counting):
    guard = make(queries=3)
    first = ask(guard, counting, 0.7, "evaluate several")
    used = counting.used
    refuses(BudgetError, "2 new questions asked, 1 left of 3", ask, guard, counting, 0.6, "evaluate several")
    four = [predictions(share) for share in (0.7, 0.71, 0.7, 0.71)]  # more than are left, but none is new
    again = guard.evaluate(list(four), prior=[0.2] * 4)
    assert [one.value for one in again] == [one.value for one in (*first, *first)]
    assert counting.used == used
    mixed = guard.evaluate([*four, predictions(0.8)], prior=[0.2] * 5)  # one of five is
    assert [one.replayed for one in mixed] == [True] * 4 + [False]
    assert guard.queries_asked == 3


def test_a_choice_is_refused_when_another_process_has_taken_its_room_meanwhile(make, monkeypatch):
    guard = make(reveals=0, charges=None, threshold=None, tolerance=0.08)
    looked = iter([True])  # it had room when it was asked
    refused = type(guard._view.ways.choose).check_affordable

    def check(way, *given):
        return None if next(looked, False) else refused(way, *given)

    monkeypatch.setattr(type(guard._view.ways.choose), "check_affordable", check)
    with pytest.raises(InputError, match="are left after what the charges"):
        guard.choose([predictions(0.7), predictions(0.71)], [0.2, 0.2])
    assert guard.answered == 0


def test_a_reveal_that_was_told_replays_when_no_more_can_be_afforded(make, counting):
    guard = make(charges=None, threshold=None, tolerance=0.2, reveals=1)
    first = guard.reveal(counting.model(0.6), prior=0.2)
    with pytest.raises(InputError, match="are left after what the charges"):
        for percent in range(61, 100):
            guard.reveal(counting.model(percent / 100), prior=0.2)
    used = counting.used
    assert guard.reveal(counting.model(0.6), prior=0.2) == first._replace(replayed=True)
    assert counting.used == used
