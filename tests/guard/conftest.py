"""Holdouts and guards whose answers can be computed by hand."""

import functools

import numpy as np
import pytest
from made_guards import made_guard, right_in

from reusable_holdout import ReusableHoldout

ROWS = 2_000
# without noise every decision is exact: charged if and only if |score - prior| >= 0.1
SETTINGS = {"queries": 40, "charges": 3, "threshold": 0.1, "noise": 0.0, "estimate": 0.7}


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, ROWS)


@pytest.fixture
def scoring(labels):
    """Predictions of exactly this accuracy; `variant` gives other predictions of the same accuracy."""
    return functools.partial(right_in, labels)


@pytest.fixture
def settings():
    return dict(SETTINGS)


@pytest.fixture
def make_guard(labels, closed_at_the_end):
    """Guards of the labels, closed when the test ends; what their plans promise is not what is tested."""

    def make(ledger=None, *, X=None, y=labels, **changes):
        if changes.get("policy") == "gate":  # it has no threshold
            changes = {**changes, "threshold": None}
        return closed_at_the_end(made_guard(X, y, ledger=ledger, **{"vacuous": True, **SETTINGS, **changes}))

    return make


@pytest.fixture
def reopen(labels, closed_at_the_end):
    """Guards opened from a ledger, closed when the test ends."""

    @functools.wraps(ReusableHoldout.open)
    def again(ledger, X=None, y=labels, **changes):
        return closed_at_the_end(ReusableHoldout.open(ledger, X, y, **changes))

    return again


@pytest.fixture
def ledger(tmp_path):
    """Where a ledger may be made."""
    return tmp_path / "guard.db"


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def durable(request):
    """Both backends, for each test that asks for it or for a place."""
    return request.param


@pytest.fixture
def place(durable, ledger):
    """Ledger of the tests that run on both backends."""
    return ledger if durable else None


@pytest.fixture
def spend(scoring):
    """Charged questions, up to three in a guard of these settings."""

    def ask(guard, count=3):
        return [guard.evaluate(scoring(0.7, k), prior=0.85) for k in range(count)]

    return ask


@pytest.fixture
def problem():
    """Features and labels that a line separates with some noise: 600 training rows, 2,000 in the holdout."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2_600, 4))
    y = (X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=2_600) > 0).astype(int)
    return X[:600], y[:600], X[600:], y[600:]
