"""Rotation: a fresh holdout in the same ledger, the old one released."""

import json
import pickle
import re

import numpy as np
import pytest
from cases import refuses
from children import Child
from guard.forging import sql
from made_guards import made_guard

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import Halted, InputError, LedgerError, PlanError, RotatedError
from reusable_holdout.ways import State

ROWS = 2_000
WISH = {"tolerance": 0.15, "queries": 50, "metric": "accuracy"}


def labels(seed, rows=ROWS):
    return np.random.default_rng(seed).integers(0, 2, rows)


def wrong(y, share=0.5):
    return np.where(np.arange(len(y)) < share * len(y), 1 - y, y)


def halt(guard, y):
    """Spend every charge, each on another overfitted prior."""
    with pytest.raises(Halted):
        for question in range(guard.plan.queries):
            guard.evaluate(wrong(y, 0.5 + question / ROWS), prior=1.0)


@pytest.fixture
def halted(ledger):
    y = labels(0)
    guard = made_guard(None, y, ledger=ledger, seed=0, **WISH)
    halt(guard, y)
    return guard


# ---- the new epoch


@pytest.mark.parametrize("on_disk", [True, False])
def test_it_has_a_whole_budget_and_the_old_holdout_is_released(ledger, on_disk):
    features, y = np.arange(ROWS)[:, None], labels(0)
    guard = made_guard(features, y, ledger=ledger if on_disk else None, seed=0, **WISH)
    halt(guard, y)
    fresh = labels(1)
    new, X_old, y_old = guard.rotate(features + ROWS, fresh)
    assert np.array_equal(X_old, features)
    assert np.array_equal(y_old, y)
    assert (new.epoch, new.queries_asked, new.charges_left) == (2, 0, new.plan.charges)
    answer = new.evaluate(fresh, prior=0.5)
    assert (answer.query, answer.charged) == (1, True)
    assert answer.charges_left == new.plan.charges - 1
    assert answer.low <= 1.0 <= answer.high


def test_what_was_released_before_stays_readable(halted):
    before = halted.history()
    new = halted.rotate(None, labels(1)).guard
    assert new.history().empty
    assert new.history(epoch=1).equals(before)
    assert halted.history().equals(before)
    refuses(InputError, "from 1 to 2", new.history, epoch=3)


def test_the_same_question_has_other_noise(halted):
    new = halted.rotate(None, labels(1)).guard
    questions = [bytes([i]) * 32 for i in range(20)]
    old_noise, new_noise = (
        guard._view.ways.main._at(State()).query_noise(questions) for guard in (halted, new)
    )
    assert not np.array_equal(old_noise, new_noise)


def test_a_question_of_the_old_epoch_is_asked_anew(halted):
    y = labels(0)
    assert halted.evaluate(wrong(y), prior=1.0).replayed
    new = halted.rotate(None, labels(1)).guard
    assert not new.evaluate(wrong(y), prior=1.0).replayed


def test_it_can_be_rotated_again(halted):
    second = halted.rotate(None, labels(1)).guard
    third = second.rotate(None, labels(2), early=True).guard
    assert third.epoch == 3
    refuses(InputError, "rows of epoch 1", third.rotate, None, labels(0), early=True)


# ---- the plan


def test_more_rows_pay_for_more_charges_at_the_same_tolerance(halted):
    plan = halted.rotate(None, labels(1, 3 * ROWS)).guard.plan
    assert (plan.rows, plan.tolerance, plan.queries) == (3 * ROWS, WISH["tolerance"], WISH["queries"])
    assert plan.charges > halted.plan.charges


def test_as_many_rows_make_the_same_plan(halted):
    assert halted.rotate(None, labels(1)).guard.plan == halted.plan


def test_named_charges_make_the_tolerance_follow(halted):
    plan = halted.rotate(None, labels(1, 3 * ROWS), charges=2).guard.plan
    assert plan.charges == 2
    assert plan.tolerance < WISH["tolerance"]


def test_a_stated_noise_scale_is_kept():
    guard = made_guard(None, labels(0), noise=0.001, seed=0, **WISH)
    assert guard.rotate(None, labels(1, 3 * ROWS), early=True).guard.plan.noise == 0.001


def test_another_number_of_queries_can_be_named(halted):
    assert halted.rotate(None, labels(1), queries=60).guard.plan.queries == 60


# ---- the old epoch


def test_it_answers_nothing_new_and_replays_what_it_answered(halted, ledger):
    y = labels(0)
    elsewhere = ReusableHoldout.open(ledger, None, y)
    halted.rotate(None, labels(1))
    for guard in (halted, elsewhere):
        refuses(RotatedError, "last epoch, 2", guard.evaluate, y, prior=0.1)
        refuses(RotatedError, "last epoch, 2", guard.evaluate, [y, 1 - y], prior=[0.1, 0.1])
        assert guard.epoch == 1


def test_it_is_rotated_once(halted, ledger):
    elsewhere = ReusableHoldout.open(ledger, None, labels(0))
    halted.rotate(None, labels(1))
    refuses(RotatedError, "last epoch, 2", elsewhere.rotate, None, labels(2))
    assert ReusableHoldout.open(ledger, None, labels(1)).epoch == 2


def test_its_holdout_cannot_open_the_ledger_again(halted, ledger):
    halted.rotate(None, labels(1))
    for attempt in (
        lambda: ReusableHoldout.open(ledger, None, labels(0)),
        lambda: made_guard(None, labels(0), ledger=ledger, **WISH),
    ):
        refuses(RotatedError, "that of epoch 1, which was released", attempt)
    assert ReusableHoldout.open(ledger, None, labels(1)).epoch == 2
    assert made_guard(None, labels(1), ledger=ledger, **WISH).epoch == 2


# ---- refusals


@pytest.fixture
def unharmed(halted, ledger):
    before = ledger.read_bytes(), halted.history()
    yield
    assert halted.epoch == 1
    assert halted.history().equals(before[1])
    assert verify(ledger).sound
    assert ReusableHoldout.open(ledger, None, labels(0)).epoch == 1


def test_a_guard_that_still_answers_is_kept():
    guard = made_guard(None, labels(0), seed=0, **WISH)
    with pytest.raises(InputError, match=r"50 queries left; nothing was released; pass early=True"):
        guard.rotate(None, labels(1))
    assert guard.evaluate(labels(0), prior=1.0).query == 1


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize(
    ("error", "words", "X", "y"),
    [
        (InputError, "rows of epoch 1", None, labels(0)),
        (PlanError, "rows", None, labels(1, 40)),
        (InputError, "the same number of rows", np.zeros((3, 1)), labels(1)),
        (InputError, "", None, np.full(ROWS, np.nan)),
        (InputError, "", None, np.full(ROWS, 7)),
        (InputError, "", None, np.array(["a", "b"] * (ROWS // 2))),
        (InputError, "", None, labels(1).reshape(2, -1)),
        *((InputError, "", None, nothing) for nothing in (np.array([]), None, "text")),
    ],
    ids=[
        "the same rows",
        "too few",
        "another length",
        "NaN",
        "one class",
        "text",
        "two rows",
        "none",
        "None",
        "a word",
    ],
)
def test_what_is_no_new_holdout_is_refused(halted, error, words, X, y):
    refuses(error, words, halted.rotate, X, y)


# ---- other processes


def test_a_pickled_guard_stands_at_its_own_epoch(halted):
    new = halted.rotate(None, labels(1)).guard
    pickles = [pickle.dumps(guard) for guard in (new, halted)]
    code = (
        "import pickle, sys; from reusable_holdout.errors import RotatedError\n"
        "print(pickle.loads(bytes.fromhex(sys.argv[1])).epoch)\n"
        "try: pickle.loads(bytes.fromhex(sys.argv[2])).history()\n"
        "except RotatedError: print('rotated')"
    )
    child = Child(code, *(one.hex() for one in pickles))
    assert child.communicate().split() == ["2", "rotated"]


def test_a_killed_rotation_happened_or_did_not(ledger):
    """The child tells each rotation that returned; the ledger has those, and at most one more."""
    code = (
        "import sys, numpy as np; from reusable_holdout import ReusableHoldout\n"
        "labels = lambda seed: np.random.default_rng(seed).integers(0, 2, 500)\n"
        "guard = ReusableHoldout(None, labels(0), tolerance=0.25, queries=9, ledger=sys.argv[1])\n"
        "for seed in range(1, 10_000):\n"
        "    guard = guard.rotate(None, labels(seed), early=True).guard\n"
        "    print(seed, flush=True)"
    )
    child = Child(code, ledger)
    told = [int(child.stdout.readline()) for _ in range(7)]
    child.kill()
    told += [int(line) for line in child.communicate().split()]
    found = verify(ledger)
    assert found.sound
    last = [seed for seed in (told[-1], told[-1] + 1) if opens(ledger, labels(seed, 500))]
    assert len(last) == 1


def opens(ledger, y):
    try:
        ReusableHoldout.open(ledger, None, y)
    except LedgerError:
        return False
    return True


# ---- verification


def test_all_epochs_are_verified_as_one_chain(halted, ledger):
    head = verify(ledger).head
    new = halted.rotate(None, labels(1)).guard
    new.evaluate(labels(1), prior=1.0)
    found = verify(ledger, expected_head=head)
    assert found.sound
    assert found.queries == halted.queries_asked + 1


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE answers SET value = 0.75 WHERE epoch = 1 AND query = 2", "epoch 1: row 2 was changed"),
        ("DELETE FROM answers WHERE epoch = 1", "epoch 2: its configuration does not follow"),
        ("DELETE FROM configuration WHERE epoch = 1", "does not follow"),
        (
            "UPDATE answers SET low = 0.0 WHERE epoch = 2",
            "epoch 2: row 1 was changed|the configuration or row 1",
        ),
        (
            "UPDATE configuration SET text = replace(text, '\"epoch\":2', '\"epoch\":3') WHERE epoch = 2",
            "epoch 2: ",
        ),
    ],
)
def test_a_change_in_any_epoch_is_found(halted, ledger, statement, problem):
    new = halted.rotate(None, labels(1)).guard
    new.evaluate(labels(1), prior=1.0)
    for guard in (halted, new):
        guard.close()
    sql(ledger, (statement,))
    found = verify(ledger)
    assert not found.sound
    assert re.search(problem, "; ".join(found.problems))


def test_the_command_line_shows_any_epoch(halted, ledger, capsys):
    halted.rotate(None, labels(1))
    assert main(["history", str(ledger)]) == 0
    assert "nothing was asked yet" in capsys.readouterr().out
    assert main(["history", str(ledger), "--epoch", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == halted.queries_asked
    assert main(["history", str(ledger), "--epoch", "7"]) == 1
    assert "from 1 to 2" in capsys.readouterr().err


def test_a_guard_whose_tolerance_follows_from_having_no_noise_can_be_rotated():
    """With the noise that would be derived for it, its plan could not be kept: so it was stated, and stays."""
    settings = {"queries": 40, "charges": 3, "threshold": 0.1, "noise": 0.0, "estimate": 0.7}
    guard = made_guard(None, labels(0), seed=0, **settings)
    new = guard.rotate(None, labels(1, 2 * ROWS), early=True).guard
    assert (new.plan.rows, new.plan.noise, new.plan.threshold) == (2 * ROWS, 0.0, 0.1)
    assert new.plan.tolerance == guard.plan.tolerance
    assert new.plan.charges > 3


def test_the_next_holdout_has_what_was_set_aside_for_reveals_and_choices():
    y, fresh = labels(0), labels(1)
    guard = made_guard(None, y, seed=0, queries=50, charges=2, threshold=0.1, reveals=2, choices=[3])
    guard.reveal(wrong(y, 0.3), prior=0.7)
    new = guard.rotate(None, fresh, early=True).guard
    assert (new.plan.reveals, new.plan.choices) == (2, (3,))
    for question in range(2):
        assert new.reveal(wrong(fresh, 0.3 + question / 10), prior=0.1).query == question + 1
    assert new.price("choose", candidates=3).allowed
