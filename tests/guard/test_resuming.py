"""Resuming a guard from its ledger: nothing is refilled, nothing is changed, nothing else is let in."""

import json

import numpy as np
import pandas as pd
import pytest
from cases import refuses
from guard.counting import AGREEMENT
from made_guards import made_guard

from reusable_holdout import Metric
from reusable_holdout.errors import Halted, InputError, LedgerError, LedgerKeyError, LedgerMismatchError
from reusable_holdout.metrics import resolve_metric


def test_opening_resumes_where_the_ledger_ends(make_guard, reopen, ledger, scoring):
    with make_guard(ledger) as guard:
        first = guard.evaluate(scoring(0.9), prior=0.5, name="first")
        history, plan = guard.history(), guard.plan
    again = reopen(ledger)
    pd.testing.assert_frame_equal(again.history(), history)
    assert (again.queries_asked, again.charges_left) == (1, first.charges_left)
    assert again.plan.record() == plan.record()
    assert again.evaluate(scoring(0.9), prior=0.5) == first._replace(replayed=True)
    assert again.evaluate(scoring(0.8), prior=0.8).query == 2


def test_opening_again_does_not_refill(make_guard, reopen, ledger, scoring):
    made = 0
    with pytest.raises(Halted):
        for k in range(10):
            with make_guard(ledger) if k % 2 else (reopen(ledger) if k else make_guard(ledger)) as guard:
                guard.evaluate(scoring(0.7, k), prior=0.85)
                made += 1
    assert made == 3


def test_the_same_settings_resume_however_they_are_spelled(make_guard, ledger, labels, settings, scoring):
    make_guard(ledger).evaluate(scoring(0.9), prior=0.5)
    spellings = [
        *({"y": labels.tolist()}, {"y": pd.Series(labels)}, {"y": labels.astype(np.int32)}),
        *({"confidence": 0.95}, {"metric": resolve_metric("accuracy")}, {"threshold": np.float64(0.1)}),
    ]
    for changes in spellings:
        assert make_guard(ledger, **changes).queries_asked == 1
    with made_guard(None, labels, ledger=str(ledger), **settings) as guard:
        assert guard.queries_asked == 1
    with made_guard(None, labels, ledger=f"sqlite:///{ledger}", **settings) as guard:
        assert guard.queries_asked == 1


@pytest.mark.parametrize(
    "changes",
    [
        *({"queries": np.int64(40)}, {"charges": np.int32(3)}, {"threshold": np.float32(0.125)}),
        *({"confidence": np.float32(0.875)}, {"estimate": np.float32(0.75)}, {"seed": np.int64(3)}),
    ],
    ids=str,
)
def test_settings_may_be_numbers_of_numpy(make_guard, place, scoring, changes):
    assert make_guard(place, **changes).evaluate(scoring(0.7), prior=0.7).query == 1


@pytest.mark.parametrize(
    "changes",
    [
        *({"queries": 41}, {"queries": 39}, {"charges": 4}, {"charges": 2}, {"threshold": 0.11}),
        *({"noise": 0.001}, {"prior_error": 0.03}, {"reveals": 3}, {"choices": [10]}, {"confidence": 0.9}),
        *({"estimate": 0.71}, {"delta": 0.01}, {"tolerance": 0.3}, {"metric": "zero_one_loss"}),
        {"metric": "balanced_accuracy"},
    ],
    ids=str,
)
def test_other_settings_are_refused_and_change_nothing(make_guard, ledger, scoring, changes):
    guard = make_guard(ledger)
    guard.evaluate(scoring(0.9), prior=0.5)
    before = ledger.read_bytes(), guard.history()
    refuses(LedgerMismatchError, "nothing was asked and nothing was charged", make_guard, ledger, **changes)
    pd.testing.assert_frame_equal(guard.history(), before[1])
    assert ledger.read_bytes() == before[0]


def test_other_data_are_refused(make_guard, reopen, ledger, labels):
    X = np.random.default_rng(1).normal(size=(2_000, 3))
    make_guard(ledger, X=X)
    flipped = labels.copy()
    flipped[17] = 1 - flipped[17]
    other = X.copy()
    other[5, 2] += 1e-12
    for changes in (
        *({"X": X, "y": flipped}, {"X": X, "y": labels[::-1]}, {"X": other}, {"X": X[:, ::-1]}),
        *({"X": X[:, :2]}, {"X": None}, {"X": X[:-1], "y": labels[:-1]}),
        {"X": pd.DataFrame(X, columns=list("abc"))},
    ):
        refuses(LedgerMismatchError, "other data", reopen, ledger, **changes)
        refuses(LedgerMismatchError, "other data", make_guard, ledger, **changes)
    assert reopen(ledger, X).queries_asked == 0


def test_another_seed_is_refused_and_the_same_resumes(make_guard, reopen, ledger):
    make_guard(ledger, seed=7)
    assert make_guard(ledger, seed=7).queries_asked == 0
    assert make_guard(ledger).queries_asked == 0  # the key lies beside the ledger
    assert reopen(ledger, seed=7).queries_asked == 0
    for opened in (lambda: make_guard(ledger, seed=8), lambda: reopen(ledger, seed=8)):
        refuses(LedgerKeyError, "", opened)


def test_a_lost_key_is_not_replaced(make_guard, reopen, ledger):
    make_guard(ledger)
    ledger.with_name("guard.db.key").unlink()
    for opened in (lambda: make_guard(ledger), lambda: reopen(ledger)):
        refuses(LedgerKeyError, "restore", opened)
    assert not ledger.with_name("guard.db.key").exists()


def test_a_key_that_others_can_read_is_refused(make_guard, reopen, ledger):
    make_guard(ledger)
    key = ledger.with_name("guard.db.key")
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    refuses(LedgerKeyError, "644", reopen, ledger)


def test_opening_what_was_never_made_is_refused(reopen, tmp_path):
    refuses(LedgerError, "there is no ledger", reopen, tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_metric_of_ones_own_resumes_with_itself_only(make_guard, reopen, ledger, labels, scoring):
    own = Metric(name="agreement", loss=lambda y, p: y == p, **AGREEMENT)
    make_guard(ledger, metric=own).evaluate(scoring(0.9), prior=0.5)
    refuses(InputError, "pass the same metric=", reopen, ledger)
    assert reopen(ledger, metric=own).queries_asked == 1
    refuses(LedgerMismatchError, "", reopen, ledger, metric="accuracy")


def test_a_configuration_is_written_in_the_order_of_its_names(make_guard, ledger):
    """A field that moves in the source leaves the text, and so the ledger's first seal, as it was."""
    text = make_guard(ledger)._view.ledger.configuration()
    names = list(json.loads(text))
    assert names == sorted(names)
