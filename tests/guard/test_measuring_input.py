"""What cannot be asked of measured models is refused before any of it is asked: also what comes after a failure."""

import numpy as np
import pytest
from cases import refuses
from made_guards import made_guard
from sklearn.linear_model import LogisticRegression

from reusable_holdout.errors import InputError
from reusable_holdout.guard.prospects import check_choice, could_have_chosen, could_replay


class FailsOnTheHoldout(LogisticRegression):
    def predict(self, X):
        if len(X) == 1_000:
            raise ValueError("private words")
        return super().predict(X)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_200, 3))
    return X, (X[:, 0] + rng.normal(size=1_200) > 0).astype(int)


@pytest.fixture
def guard(data):
    X, y = data
    return made_guard(X[200:], y[200:], tolerance=0.2, queries=20, vacuous=True)


@pytest.fixture(scope="module")
def models(data):
    X, y = data
    return [kind().fit(X[:200], y[:200]) for kind in (FailsOnTheHoldout, LogisticRegression)]


GOOD = {"models": lambda models: models, "priors": [0.5, 0.5], "name": ["failed", "good"]}
BAD_BATCHES = [
    {"priors": [0.5, np.nan]},
    {"priors": [0.5, 2.0]},
    {"priors": [0.5]},
    {"priors": [0.5, "a"]},
    {"priors": None},
    {"priors": 0.5},
    {"name": ["failed"]},
    {"name": ["failed", "good", "more"]},
    {"name": ["failed", 3]},
    {"name": ["failed", "\ud800"]},
    {"models": lambda _: []},
    {"models": lambda models: [models[0], None]},
    {"models": lambda models: [models[0], models[1]._replace(content="text")]},
    {"models": lambda models: [models[0], models[1]._replace(content="text", found=None)]},
    {"models": lambda models: [models[0], models[1]._replace(found=3)]},
]


@pytest.mark.parametrize("bad", BAD_BATCHES)
def test_a_batch_is_refused_whole_before_its_failures_are_charged(guard, models, bad):
    measured = [guard.measure(model, prior=0.5) for model in models]
    batch = GOOD | bad
    with pytest.raises(InputError):
        guard.evaluate(batch["models"](measured), prior=batch["priors"], name=batch["name"])
    assert (guard.answered, guard.charges_left) == (0, guard.plan.charges)


@pytest.mark.parametrize("bad", [*(one for one in BAD_BATCHES if "name" not in one), {"name": 3}])
def test_a_choice_is_refused_before_it_is_told(guard, models, bad):
    measured = [guard.measure(model, prior=0.5, way="choose") for model in models]
    batch = GOOD | {"name": "best"} | bad
    refuses(InputError, "", guard.choose, batch["models"](measured), batch["priors"], name=batch["name"])
    assert guard.answered == 0


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda guard, model: guard.measure(model, prior=0.5, way="look"), "way"),
        (lambda guard, model: guard.measure(model, prior=np.nan, way="choose"), "a prior must be"),
        (lambda guard, model: guard.measure(type(model)(), prior=0.5), "must be fitted"),
        (lambda guard, _: guard.choose([], []), "at least one"),
        (lambda guard, _: check_choice(guard, 2.5), "candidates must be"),
        (lambda guard, _: check_choice(guard, 3, [0.5]), "priors must have shape"),
        (lambda guard, _: could_replay(guard, "abc"), "priors must be a list"),
        (lambda guard, _: could_have_chosen(guard, 0.5), "priors must be a list"),
        (lambda guard, _: could_replay(guard, [np.nan]), "a prior must be"),
    ],
)
def test_what_cannot_be_asked_says_what_must_hold(guard, models, ask, words):
    refuses(InputError, words, ask, guard, models[1])


@pytest.mark.parametrize("rows", ["rows.csv", 3, object(), LogisticRegression()])
def test_training_rows_that_are_no_rows_are_refused_before_anything_is_asked(guard, models, rows):
    for kind, ask in (
        ("evaluate", lambda one: guard.evaluate([one], rows, prior=[0.5])),
        ("choose", lambda one: guard.choose([one], [0.5], X_train=rows)),
    ):
        with pytest.raises(InputError, match="X_train must be a list or an array"):
            ask(guard.measure(models[1], prior=0.5, way=kind))
    assert guard.answered == 0


def test_a_guard_of_labels_alone_measures_no_model_and_charges_no_failure(guard, models, data):
    labels = made_guard(None, data[1][200:], tolerance=0.2, queries=20, vacuous=True)
    refuses(InputError, "labels only", labels.measure, models[1], prior=0.5)
    unmeasured = guard.measure(models[1], prior=0.5)._replace(found=None)
    refuses(InputError, "labels only", labels.evaluate, [unmeasured], prior=[0.5])
    refuses(InputError, "labels only", labels.choose, [unmeasured], [0.5])
    assert labels.answered == 0
