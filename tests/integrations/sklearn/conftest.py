"""Data and guards for the loops of scikit-learn."""

import itertools

import numpy as np
import pytest
from made_guards import made_guard
from reusable_holdout_sklearn import GuardedSearchCV, prior_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 4))
    y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    return X, y


@pytest.fixture
def make_guard(data, tmp_path, closed_at_the_end):
    X, y = data
    numbers = itertools.count()

    def make(**settings):
        wish = {"tolerance": 0.15, "queries": 60, "seed": 0, "vacuous": True}
        wish["ledger"] = tmp_path / f"guard{next(numbers)}.db"
        if not settings.keys() & {"tolerance", "charges", "queries", "gates"}:
            wish["choices"] = [6, 6]
        return closed_at_the_end(made_guard(X[2_000:], y[2_000:], **{**wish, **settings}))

    return make


@pytest.fixture
def train(data):
    X, y = data
    return X[:2_000], y[:2_000]


@pytest.fixture
def guard(make_guard, tmp_path):
    """One whose path can be looked for."""
    folder = tmp_path / "a_secret_folder"
    folder.mkdir()
    return make_guard(ledger=folder / "the_ledger.db", seed=None)


@pytest.fixture
def fitted(guard, train):
    """A fitted search of this guard."""
    inner = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2, scoring=prior_scorer(guard))
    return GuardedSearchCV(inner, guard, ask="choose").fit(*train)


@pytest.fixture
def private(guard, data):
    """Paths, key and rows of the guard, in any form they could be found in."""
    X, y = data
    key = guard._view.key[1].read_text().strip()
    texts = [str(guard._view.key[1].parent), "a_secret_folder", "the_ledger", key]
    rows = [X[row].tobytes() for row in range(2_000, 6_000)]
    labels = [y[2_000:].tobytes(), y[2_000:].astype(np.int8).tobytes()]
    return [*(text.encode() for text in texts), bytes.fromhex(key), *rows, *labels]
