"""The scorer in scikit-learn's other loops: what is asked, what is charged, what is refused."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from reusable_holdout_sklearn import guarded_scorer, prior_scorer
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout.errors import Halted, InputError, ModelError, Refused

MODEL = LogisticRegression()
JOBS = pytest.mark.parametrize("n_jobs", [1, 2])


@pytest.fixture
def guard(make_guard):
    return make_guard(tolerance=0.2, queries=200)


@JOBS
@pytest.mark.parametrize("shape", [lambda one: one, lambda one: {"guard": one, "acc": "accuracy"}])
def test_cross_validation_asks_once_for_each_fold_alone_and_among_others(guard, train, n_jobs, shape):
    scoring = shape(guarded_scorer(guard))
    scores = cross_validate(MODEL, *train, scoring=scoring, cv=4, n_jobs=n_jobs, return_train_score=True)
    plain = cross_validate(MODEL, *train, cv=4, return_train_score=True)
    name = "guard" if isinstance(scoring, dict) else "score"
    assert guard.queries_asked == 4
    assert sorted(guard.history()["prior"]) == pytest.approx(sorted(plain["test_score"]))
    assert sorted(scores[f"test_{name}"]) == sorted(guard.history()["value"])
    np.testing.assert_array_equal(scores[f"train_{name}"], scores[f"test_{name}"])  # a model has one answer


@JOBS
@pytest.mark.parametrize(
    ("loop", "asked"),
    [
        (lambda **same: cross_val_score(MODEL, same.pop("X"), same.pop("y"), cv=3, **same), 3),
        (
            lambda **same: GridSearchCV(
                MODEL,
                {"C": [1e-4, 1.0]},
                cv=3,
                scoring=same["scoring"],
                n_jobs=same["n_jobs"],
                return_train_score=True,
            ).fit(same["X"], same["y"]),
            6,
        ),
        (
            lambda **same: RandomizedSearchCV(
                MODEL,
                {"C": [1e-4, 1.0]},
                n_iter=2,
                cv=3,
                scoring={"guard": same["scoring"], "auc": "roc_auc"},
                refit="guard",
                n_jobs=same["n_jobs"],
            ).fit(same["X"], same["y"]),
            6,
        ),
        (
            lambda **same: HalvingGridSearchCV(
                DecisionTreeClassifier(random_state=0),
                {"max_depth": [1, 2, 3, 4]},
                factor=2,
                cv=3,
                random_state=0,
                scoring=same["scoring"],
                n_jobs=same["n_jobs"],
            ).fit(same["X"], same["y"]),
            3 * (4 + 2 + 1),
        ),
        (
            lambda **same: learning_curve(
                MODEL,
                same["X"],
                same["y"],
                train_sizes=[0.5, 1.0],
                cv=3,
                scoring=same["scoring"],
                n_jobs=same["n_jobs"],
            ),
            6,
        ),
        (
            lambda **same: learning_curve(
                SGDClassifier(random_state=0, eta0=0.0001, learning_rate="constant"),
                same["X"],
                same["y"],
                train_sizes=[0.5, 1.0],
                cv=3,
                scoring=same["scoring"],
                n_jobs=same["n_jobs"],
                exploit_incremental_learning=True,
            ),
            6,
        ),
        (
            lambda **same: validation_curve(
                MODEL,
                same["X"],
                same["y"],
                param_name="C",
                param_range=[1e-4, 1.0],
                cv=3,
                scoring=same["scoring"],
                n_jobs=same["n_jobs"],
            ),
            6,
        ),
    ],
    ids=["score", "grid", "randomized", "halving", "learning", "incremental", "validation"],
)
def test_a_loop_asks_for_each_fold_and_never_for_training_rows(guard, train, loop, asked, n_jobs):
    X, y = train
    loop(X=X, y=y, scoring=guarded_scorer(guard), n_jobs=n_jobs)
    assert guard.queries_asked == asked
    assert guard.history()["charged"].sum() == 0


@pytest.mark.parametrize(
    ("backend", "jobs"), [("loky", 1), ("loky", 2), ("threading", 2), ("multiprocessing", 2)]
)
def test_permutation_importance_is_refused_with_the_way_to_do_it(guard, train, backend, jobs):
    X, y = train
    model = clone(MODEL).fit(X[:1_000], y[:1_000])
    with joblib.parallel_config(backend):
        for scoring in (guarded_scorer(guard), {"guarded": guarded_scorer(guard), "plain": "accuracy"}):
            with pytest.raises(Refused, match=r"scoring=prior_scorer\(guard\)"):
                permutation_importance(model, X[1_000:], y[1_000:], scoring=scoring, n_repeats=3, n_jobs=jobs)
        wish = {"n_repeats": 3, "random_state": 0, "n_jobs": jobs}
        result = permutation_importance(model, X[1_000:], y[1_000:], scoring=prior_scorer(guard), **wish)
    plain = permutation_importance(model, X[1_000:], y[1_000:], n_repeats=3, random_state=0)
    assert guard.queries_asked == 0
    np.testing.assert_allclose(result.importances, plain.importances, atol=1e-9)


@JOBS
def test_recursive_elimination_is_asked_about_the_columns_of_each_step(make_guard, train, n_jobs):
    guard = make_guard(tolerance=0.2)
    selector = RFECV(MODEL, cv=3, scoring=guarded_scorer(guard), n_jobs=n_jobs).fit(*train)
    plain = RFECV(MODEL, cv=3, scoring="accuracy").fit(*train)
    assert guard.queries_asked == 3 * 4
    assert sorted(guard.history()["prior"]) == pytest.approx(
        sorted(np.concatenate([plain.cv_results_[f"split{fold}_test_score"] for fold in range(3)]))
    )
    assert guard.history()["charged"].sum() == 0  # a model asked about the wrong columns would be charged
    assert selector.support_[0]


def test_a_model_of_the_right_columns_of_the_holdout_is_asked_about(make_guard, data, train):
    X, y = data
    wish = {"tolerance": None, "charges": 20, "threshold": 0.01, "noise_scale": 1e-6}
    guard, twin = make_guard(**wish), make_guard(**wish)
    columns = [0, 2]
    model = clone(MODEL).fit(X[:1_000][:, columns], y[:1_000])
    scorer = guarded_scorer(guard, features=X[:2_000])
    answer = scorer(model, X[1_000:1_100][:, columns], y[1_000:1_100])
    assert guard.history()["charged"].all()
    prior = guard.history()["prior"][0]
    right, wrong = (
        twin.evaluate_predictions(model.predict(X[2_000:][:, which]), prior=prior)
        for which in (columns, [1, 2])
    )
    assert answer == right.value != wrong.value
    assert answer == pytest.approx(model.score(X[2_000:][:, columns], y[2_000:]), abs=0.005)


@JOBS
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_sequential_selection_asks_for_each_feature_and_fold(make_guard, train, n_jobs, direction):
    guard = make_guard(tolerance=0.2)
    scorer = guarded_scorer(guard, features=train[0])
    settings = {"n_features_to_select": 2, "direction": direction, "cv": 3}
    selector = SequentialFeatureSelector(MODEL, scoring=scorer, n_jobs=n_jobs, **settings).fit(*train)
    assert guard.queries_asked == (4 + 3) * 3
    assert guard.history()["charged"].sum() == 0
    plain = SequentialFeatureSelector(MODEL, scoring="accuracy", **settings).fit(*train)
    np.testing.assert_array_equal(selector.get_support(), plain.get_support())


def test_columns_that_cannot_be_told_are_refused_without_a_question(guard, train):
    X, y = train
    model = clone(MODEL).fit(X[:, :2], y)
    with pytest.raises(Refused, match="features=X"):
        guarded_scorer(guard)(model, X[:100, :2], y[:100])
    alike = X.copy()
    alike[:, 3] = alike[:, 0]
    with pytest.raises(Refused, match="2 alike"):
        guarded_scorer(guard, features=alike)(model, X[:100, :2], y[:100])
    with pytest.raises(Refused, match="hold none"):
        guarded_scorer(guard, features=X[:50])(model, X[:100, :2], y[:100])
    assert guard.queries_asked == 0


def test_frames_sparse_matrices_and_missing_values_have_columns_too(make_guard, data):
    X, y = data
    guard = make_guard(tolerance=0.2)
    model = clone(MODEL).fit(X[:1_000, 1:3], y[:1_000])
    for features, fold in [
        (pd.DataFrame(X[:2_000]), pd.DataFrame(X[1_000:1_100, 1:3])),
        (sparse.csr_matrix(X[:2_000]), sparse.csr_matrix(X[1_000:1_100, 1:3])),
    ]:
        guarded_scorer(guard, features=features)(model, fold, y[1_000:1_100])
    assert guard.queries_asked == 1


def test_tuned_thresholds_are_refused_with_the_way_to_do_it(guard, train):
    tuned = TunedThresholdClassifierCV(MODEL, scoring=guarded_scorer(guard))
    with pytest.raises(Refused, match=r"guard\.evaluate\(tuned"):
        tuned.fit(*train)
    with pytest.raises(Refused, match="nothing was charged"):
        cross_val_score(tuned, *train, cv=2)
    assert guard.queries_asked == 0
    plain = TunedThresholdClassifierCV(MODEL, scoring="accuracy").fit(*train)
    assert guard.evaluate(plain, prior=0.7).query == 1
    cross_val_score(TunedThresholdClassifierCV(MODEL), *train, scoring=guarded_scorer(guard), cv=2)
    assert guard.queries_asked == 3


@pytest.mark.parametrize(
    ("backend", "jobs", "error_score", "shape"),
    [
        ("loky", 1, np.nan, lambda one: one),
        ("loky", 1, "raise", lambda one: {"guard": one, "acc": "accuracy"}),
        ("loky", 2, np.nan, lambda one: {"guard": one, "acc": "accuracy"}),
        ("threading", 2, np.nan, lambda one: one),
        ("threading", 2, 0.0, lambda one: {"guard": one, "acc": "accuracy"}),
        ("multiprocessing", 2, np.nan, lambda one: one),
        ("multiprocessing", 2, 0.0, lambda one: {"guard": one, "acc": "accuracy"}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*A worker stopped:UserWarning")
def test_a_halt_surfaces_with_every_backend(make_guard, train, error_score, backend, jobs, shape):
    guard = make_guard(queries=4)
    scoring = shape(guarded_scorer(guard))
    with joblib.parallel_config(backend, n_jobs=jobs), pytest.raises(Halted) as caught:
        cross_validate(MODEL, *train, cv=6, scoring=scoring, error_score=error_score)
    assert caught.value.reason == "queries"
    assert len(caught.value.history) == guard.queries_asked == 4


def test_a_model_that_fails_on_the_holdout_is_a_failed_fold(make_guard, train):
    class Fails(DummyClassifier):
        def predict(self, X):
            if len(X) == 4_000:
                raise ValueError("private words")
            return super().predict(X)

    guard = make_guard()
    with pytest.warns(UserWarning, match="Scoring failed") as caught:
        scores = cross_val_score(Fails(), *train, cv=2, scoring=guarded_scorer(guard))
    assert np.isnan(scores).all()
    assert "private words" not in str(caught[0].message)
    with pytest.raises(ModelError):
        cross_val_score(Fails(), *train, cv=2, scoring=guarded_scorer(guard), error_score="raise")


# ---- metadata


def test_weights_reach_the_prior_when_they_are_requested(make_guard, train):
    X, y = train
    weights = np.where(y == 1, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        for requested in (False, True):
            guard = make_guard(tolerance=None, charges=50, threshold=0.9, noise_scale=1e-6)
            scorer = guarded_scorer(guard).set_score_request(sample_weight=requested)
            scorer = pickle.loads(pickle.dumps(clone(scorer, safe=False)))
            plain = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=requested)
            model = LogisticRegression().set_fit_request(sample_weight=False)
            scores = cross_validate(
                model,
                X,
                y,
                cv=3,
                scoring={"guard": scorer, "acc": plain},
                params={"sample_weight": weights} if requested else {},
            )
            np.testing.assert_allclose(sorted(guard.history()["prior"]), sorted(scores["test_acc"]))


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_the_fit_are_not_an_error(guard, train, routing):
    X, y = train
    with sklearn.config_context(enable_metadata_routing=routing):
        model = LogisticRegression().set_fit_request(sample_weight=True) if routing else LogisticRegression()
        scores = cross_validate(
            model, X, y, cv=3, scoring=guarded_scorer(guard), params={"sample_weight": np.ones(len(y))}
        )
    assert not np.isnan(scores["test_score"]).any()
    assert guard.queries_asked == 3


def test_policies_that_do_not_score_a_model_are_refused(make_guard):
    with pytest.raises(InputError, match="GuardedSearchCV"):
        guarded_scorer(make_guard(policy="ladder", tolerance=0.1))
    with pytest.raises(InputError, match=r"guard\.compare"):
        guarded_scorer(make_guard(policy="gate"))
