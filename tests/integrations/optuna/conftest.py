"""Guards whose answers can be computed by hand, and studies whose values are given."""

import functools

import numpy as np
import optuna
import pytest
from made_guards import made_guard, right_in

optuna.logging.set_verbosity(optuna.logging.ERROR)
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
def make_guard(labels, closed_at_the_end):
    def make(*, X=None, y=labels, **changes):
        settings = {**SETTINGS, **changes}
        settings["charges"] = min(settings["charges"], settings["queries"])
        return closed_at_the_end(made_guard(X, y, **settings))

    return make


@pytest.fixture
def study():
    return optuna.create_study(direction="maximize")


@pytest.fixture
def told(scoring):
    """An objective with given values, and predictions of given accuracies: by default of those values."""

    def make(*values, accuracies=None):
        def objective(trial):
            value = values[trial.number % len(values)]
            if isinstance(value, BaseException):
                raise value
            return value

        def predict(trial):
            accuracy = (accuracies or values)[trial.number % len(values)]
            return scoring(accuracy, trial.number)

        return objective, predict

    return make
