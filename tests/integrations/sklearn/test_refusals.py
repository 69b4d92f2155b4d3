"""What the guard refuses inside scikit-learn's loops reaches the caller: never NaN, and nothing chosen by it."""

import pickle

import numpy as np
import pytest
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer
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

from reusable_holdout.errors import InputError, LedgerError, Refused

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


# ---- a guarded search in the loops of others


def _outer(search, X, y, n=1):
    return cross_val_score(search, X, y, cv=5, n_jobs=n)


def _search(guard, Cs=(0.01, 0.1, 1.0), **settings):
    inner = settings.pop("inner", GridSearchCV(MODEL, {"C": list(Cs)}, cv=2))
    return GuardedSearchCV(inner, guard, **settings)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, r"choices=\[3\] \* folds"),
        ({"queries": 13}, r"BudgetError: .*at least 3 \* folds queries"),
        ({"ask": "reveal"}, 'ask must be "choose"'),
        ({"inner": GridSearchCV(MODEL, CS, scoring="roc_auc")}, "scored by the guard's metric"),
    ],
    ids=["no room", "no queries", "no way to ask", "another metric"],
)
def test_a_guarded_search_refuses_in_an_outer_loop_what_it_refuses_by_itself(make_guard, train, made, words):
    queries = made.pop("queries", 60)
    guard = make_guard(queries=queries, tolerance=0.08, choices=[3] * 4 if queries == 13 else None)
    search = _search(guard, **made)
    with pytest.raises(Refused, match=words) as refused:
        _outer(search, *train)
    assert guard.history()["charged"].sum() == 0
    with pytest.raises(type(refused.value.error)):
        [_search(guard, Cs=[C, 2 * C, 3 * C], **made).fit(*train) for C in (2.0, 3.0)]


def test_with_room_for_each_fold_nested_cross_validation_has_all_its_scores(make_guard, train):
    guard = make_guard(tolerance=0.1, choices=[3] * 5)
    assert "nested cross-validation asks one for each outer fold" in str(guard.plan)
    assert np.isfinite(_outer(_search(guard), *train)).all()
    assert guard.history()["kind"].tolist() == ["choose"] * 5


def test_a_search_without_params_of_its_candidates_is_refused_after_its_own_fit(make_guard, train):
    class Bare(GridSearchCV):
        def fit(self, X, y=None, **params):
            super().fit(X, y, **params)
            del self.cv_results_["params"]
            return self

    guard = make_guard()
    with pytest.raises(InputError, match=r"params of each candidate.*nothing was charged"):
        _search(guard, inner=Bare(MODEL, CS, cv=2)).fit(*train)
    assert guard.queries_asked == 0
