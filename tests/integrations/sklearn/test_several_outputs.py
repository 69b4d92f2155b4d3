"""Models of several targets or labels are guarded like others."""

import numpy as np
import pandas as pd
import pytest
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer, prior_scorer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.metrics import hamming_loss, mae, negated

TRAIN, OUTPUTS = 1_000, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4_000, 4))
REAL = np.clip(X[:, :OUTPUTS] + RNG.normal(size=(len(X), OUTPUTS)), -5, 5)
MARKS = (REAL > 0.5).astype(int)


@pytest.fixture
def make_guard(tmp_path):
    made = []

    def make(y, **settings):
        ledger = tmp_path / f"guard{len(made)}.db"
        made.append(ReusableHoldout(X[TRAIN:], y[TRAIN:], queries=30, ledger=ledger, seed=0, **settings))
        return made[-1]

    yield make
    for guard in made:
        guard.close()


def test_a_search_among_regressors_of_several_targets(make_guard):
    guard = make_guard(REAL, metric=negated(mae(lower=-5, upper=5)), tolerance=2.0)
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 1e6]}, scoring="neg_mean_absolute_error")
    guarded = GuardedSearchCV(search, guard).fit(X[:TRAIN], REAL[:TRAIN])
    assert guarded.best_params_ == {"alpha": 1.0}
    assert guarded.best_answer_.low < -0.8 < guarded.best_answer_.high  # the mean of |N(0, 1)|
    assert guarded_cross_validate(Ridge(), X[:TRAIN], REAL[:TRAIN], guard)["guard_answer"].value < 0
    final = guard.final(guarded.best_estimator_)
    assert final.low < -0.8 < final.high
    assert verify(guard.ledger).sound


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        KNeighborsClassifier(25),
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_several_labels_are_asked_about(make_guard, model):
    guard = make_guard(MARKS, metric="accuracy", tolerance=0.2)
    amiss = guard.on("hamming_loss")
    answer = guard.evaluate(model, X[:TRAIN], MARKS[:TRAIN])
    assert answer.value == pytest.approx(
        cross_val_score(model, X[:TRAIN], MARKS[:TRAIN], scoring="accuracy").mean(), abs=0.05
    )
    fitted = model.fit(X[:TRAIN], MARKS[:TRAIN])
    prior = hamming_loss().measure(MARKS[:TRAIN], fitted.predict(X[:TRAIN]))
    assert amiss.evaluate(fitted, prior=prior).value < 0.35
    assert amiss.evaluate_predictions(1 - MARKS[TRAIN:], prior=1.0).value == 1.0
    scores = cross_val_score(model, X[:TRAIN], MARKS[:TRAIN], cv=2, scoring=guarded_scorer(guard))
    assert (scores > 0.2).all()
    search = GridSearchCV(model, {}, scoring=prior_scorer(amiss))
    assert GuardedSearchCV(search, amiss).fit(X[:TRAIN], MARKS[:TRAIN]).best_score_ < 0


def test_two_models_of_several_labels_are_compared_row_by_row(make_guard):
    guard = make_guard(MARKS, metric="f1_samples", tolerance=0.25, policy="gate")
    models = [DecisionTreeClassifier(max_depth=depth).fit(X[:TRAIN], MARKS[:TRAIN]) for depth in (4, 1)]
    assert guard.compare(*models, prior=0.0).charged


def test_a_guard_of_several_targets_is_opened_again_and_gets_new_rows(make_guard):
    frame = pd.DataFrame(REAL, columns=list("abc"))
    guard = make_guard(frame, metric=mae(lower=-5, upper=5), tolerance=2.0)
    model = Ridge().fit(X[:TRAIN], REAL[:TRAIN])
    answer = guard.evaluate(model, prior=0.8)
    again = ReusableHoldout.open(guard.ledger, X[TRAIN:], frame[TRAIN:])
    assert again.evaluate(model, prior=0.8).value == answer.value
    assert again.queries_asked == 1
    rotated, _, _ = guard.rotate(X[:TRAIN], REAL[:TRAIN], early=True)
    assert rotated.evaluate(model, prior=0.8).query == 1
