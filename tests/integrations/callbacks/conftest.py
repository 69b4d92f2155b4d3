"""Guards without noise, and rows that boosters learn something from."""

import numpy as np
import pytest
from made_guards import made_guard

ROWS = 400
# without noise every decision is exact: charged if and only if |score - prior| >= 0.5, so hardly ever
SETTINGS = {
    "queries": 40, "charges": 3, "threshold": 0.5, "noise": 0.0, "estimate": 0.7, "vacuous": True, "seed": 0,
}  # fmt: skip


class Rows:
    """Rows to train on, to validate on, and to hold out; labels of two classes and of three, and values."""

    def __init__(self, wrap=np.asarray):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3 * ROWS, 4))
        value = X[:, 0] + 0.3 * rng.normal(size=3 * ROWS)
        labels = {
            "two": (value > 0).astype(int),
            "three": np.digitize(value, [-0.5, 0.5]),
            "value": np.clip(value, -4, 4),
        }
        parts = [slice(start, start + ROWS) for start in range(0, 3 * ROWS, ROWS)]
        self.X, self.X_valid, self.X_held = (wrap(X[part]) for part in parts)
        for name, y in labels.items():
            setattr(self, name, [y[part] for part in parts])


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def make_guard(rows, closed_at_the_end):
    def make(kind="two", *, X=None, y=None, **changes):
        settings = {**SETTINGS, **changes}
        settings["charges"] = min(settings["charges"], settings["queries"])
        X, y = rows.X_held if X is None else X, getattr(rows, kind)[2] if y is None else y
        return closed_at_the_end(made_guard(X, y, **settings))

    return make
