"""Models of several targets or labels are guarded like others."""

import numpy as np
import pandas as pd
import pytest
from made_guards import made_guard
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer, prior_scorer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.metrics import hamming_loss, mae, negated

OUTPUTS = 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4_000, 4))
REAL = np.clip(X[:, :OUTPUTS] + RNG.normal(size=(len(X), OUTPUTS)), -5, 5)
MARKS = (REAL > 0.5).astype(int)
X_TRAIN, X_HELD = X[:1_000], X[1_000:]


@pytest.fixture
def make_guard(tmp_path, closed_at_the_end):
    def make(y, **settings):
        wish = {"queries": 30, "ledger": tmp_path / "guard.db", "seed": 0, **settings}
        return closed_at_the_end(made_guard(X_HELD, y[1_000:], **wish))

    return make


def test_a_search_among_regressors_of_several_targets(make_guard):
    guard, y = make_guard(REAL, metric=negated(mae(lower=-5, upper=5)), tolerance=2.0), REAL[:1_000]
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 1e6]}, scoring="neg_mean_absolute_error")
    guarded = GuardedSearchCV(search, guard, ask="choose").fit(X_TRAIN, y)
    assert guarded.best_params_ == {"alpha": 1.0}
    assert guarded.best_answer_.low < -0.8 < guarded.best_answer_.high  # the mean of |N(0, 1)|
    assert guarded_cross_validate(Ridge(), X_TRAIN, y, guard)["guard_answer"].value < 0
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
    guard, y = make_guard(MARKS, metric="accuracy", tolerance=0.2), MARKS[:1_000]
    amiss = guard.on("hamming_loss")
    plain = cross_val_score(model, X_TRAIN, y, scoring="accuracy").mean()
    assert guard.evaluate(model, X_TRAIN, y).value == pytest.approx(plain, abs=0.05)
    fitted = model.fit(X_TRAIN, y)
    prior = hamming_loss().measure(y, fitted.predict(X_TRAIN))
    assert amiss.evaluate(fitted, prior=prior).value < 0.35
    assert amiss.evaluate(1 - MARKS[1_000:], prior=1.0).value == 1.0
    scores = cross_val_score(model, X_TRAIN, y, cv=2, scoring=guarded_scorer(guard))
    assert (scores > 0.2).all()
    search = GridSearchCV(model, {}, scoring=prior_scorer(amiss))
    assert GuardedSearchCV(search, amiss, ask="choose").fit(X_TRAIN, y).best_score_ < 0


def test_a_guard_of_several_targets_is_opened_again_and_gets_new_rows(make_guard):
    frame = pd.DataFrame(REAL, columns=list("abc"))
    guard = make_guard(frame, metric=mae(lower=-5, upper=5), tolerance=2.0)
    model = Ridge().fit(X_TRAIN, REAL[:1_000])
    answer = guard.evaluate(model, prior=0.8)
    again = ReusableHoldout.open(guard.ledger, X_HELD, frame[1_000:])
    assert again.evaluate(model, prior=0.8).value == answer.value
    assert again.queries_asked == 1
    rotated, _, _ = guard.rotate(X_TRAIN, REAL[:1_000], early=True)
    assert rotated.evaluate(model, prior=0.8).query == 1
