"""What the guard refuses inside scikit-learn's loops reaches the caller: never NaN, and nothing chosen by it."""

import pickle

import numpy as np
import pytest
from reusable_holdout_sklearn import guarded_scorer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)

from reusable_holdout import InputError, LedgerError, Refused

MODEL, CS = LogisticRegression(), {"C": [0.1, 1.0, 10.0]}


class OtherClasses(ClassifierMixin, BaseEstimator):
    """Knows a class that the guard does not: what that guard refuses of every model."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.classes_ = np.array([0, 1, 7])
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


LOOPS = {
    "GridSearchCV": lambda scorer, X, y, n: GridSearchCV(OtherClasses(), CS, scoring=scorer, n_jobs=n).fit(
        X, y
    ),
    "error_score": lambda scorer, X, y, n: GridSearchCV(
        OtherClasses(), CS, scoring=scorer, n_jobs=n, error_score=0.0
    ).fit(X, y),
    "several metrics": lambda scorer, X, y, n: GridSearchCV(
        OtherClasses(), CS, scoring={"guarded": scorer, "plain": "accuracy"}, refit="guarded", n_jobs=n
    ).fit(X, y),
    "RandomizedSearchCV": lambda scorer, X, y, n: RandomizedSearchCV(
        OtherClasses(), CS, n_iter=2, scoring=scorer, n_jobs=n
    ).fit(X, y),
    "Halving": lambda scorer, X, y, n: HalvingRandomSearchCV(
        OtherClasses(), CS, n_candidates=3, scoring=scorer, n_jobs=n
    ).fit(X, y),
    "cross_validate": lambda scorer, X, y, n: cross_validate(OtherClasses(), X, y, scoring=scorer, n_jobs=n),
    "cross_val_score": lambda scorer, X, y, n: cross_val_score(
        OtherClasses(), X, y, scoring=scorer, n_jobs=n
    ),
    "learning_curve": lambda scorer, X, y, n: learning_curve(OtherClasses(), X, y, scoring=scorer, n_jobs=n),
    "validation_curve": lambda scorer, X, y, n: validation_curve(
        OtherClasses(), X, y, param_name="C", param_range=[0.1, 1.0], scoring=scorer, n_jobs=n
    ),
    "SequentialFeatureSelector": lambda scorer, X, y, n: SequentialFeatureSelector(
        MODEL, n_features_to_select=2, scoring=scorer, cv=2, n_jobs=n
    ).fit(X, y),
    "RFECV": lambda scorer, X, y, n: RFECV(MODEL, scoring=scorer, cv=2, n_jobs=n).fit(X[:, :3], y),
}


LONG = pytest.mark.long("reusable_holdout/guard", "integrations/reusable_holdout_sklearn")


@pytest.mark.parametrize(
    ("loop", "n_jobs"),
    [
        *((loop, 1) for loop in LOOPS),
        ("GridSearchCV", 2),
        *(pytest.param(loop, 2, marks=LONG) for loop in LOOPS if loop != "GridSearchCV"),
    ],
)
def test_a_wrong_input_ends_the_loop_with_the_guards_own_words(make_guard, train, loop, n_jobs):
    guard = make_guard()
    with pytest.raises(Refused, match="InputError: ") as caught:
        LOOPS[loop](guarded_scorer(guard), *train, n_jobs)
    assert type(caught.value.error) is InputError
    assert "nothing was asked" in str(caught.value) or "pass classes=" in str(caught.value)
    assert guard.queries_asked == 0


def test_a_ledger_that_is_gone_ends_the_loop(make_guard, train, tmp_path):
    guard = make_guard(ledger=tmp_path / "gone.db")
    guard.close()
    for file in tmp_path.glob("gone.db*"):
        file.unlink()
    with pytest.raises(Refused) as caught:
        GridSearchCV(MODEL, CS, scoring=guarded_scorer(guard)).fit(*train)
    assert type(caught.value.error) is LedgerError


def test_a_refusal_travels():
    refused = pickle.loads(pickle.dumps(Refused(InputError("words"))))
    assert str(refused) == "InputError: words"
    assert type(refused.error) is InputError
    assert not isinstance(refused, Exception)
