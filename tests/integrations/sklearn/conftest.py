"""Data and guards for the loops of scikit-learn."""

import numpy as np
import pytest

from reusable_holdout import ReusableHoldout


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 4))
    y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    return X, y


@pytest.fixture
def make_guard(data, tmp_path):
    X, y = data
    made = []

    def make(**settings):
        defaults = {
            "tolerance": 0.15,
            "queries": 60,
            "ledger": tmp_path / f"guard{len(made)}.db",
            "seed": 0,
            "vacuous": True,
        }
        guard = ReusableHoldout(X[2_000:], y[2_000:], **{**defaults, **settings})
        made.append(guard)
        return guard

    yield make
    for guard in made:
        guard.close()


@pytest.fixture
def train(data):
    X, y = data
    return X[:2_000], y[:2_000]
