"""The scorer inside scikit-learn's own loops."""

import copy
import pickle
import warnings
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pandas as pd
import pytest
from reusable_holdout_sklearn import guarded_scorer
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import Halted, HandleError
from reusable_holdout.metrics import mae

long = pytest.mark.long("integrations/reusable_holdout_sklearn", "reusable_holdout")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 4))
    y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    return X, y


@pytest.fixture
def make_guard(data, tmp_path):
    X, y = data

    def make(**settings):
        defaults = {
            "tolerance": 0.15,
            "queries": 60,
            "ledger": tmp_path / "guard.db",
            "seed": 0,
            "vacuous": True,
        }
        return ReusableHoldout(X[2_000:], y[2_000:], **{**defaults, **settings})

    return make


@pytest.fixture
def train(data):
    X, y = data
    return X[:2_000], y[:2_000]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validate_asks_once_for_each_fold(make_guard, train, n_jobs):
    guard = make_guard()
    scoring = {"acc": "accuracy", "guard": guarded_scorer(guard)}
    scores = cross_validate(LogisticRegression(), *train, scoring=scoring, n_jobs=n_jobs)
    history = guard.history()
    assert len(history) == 5
    assert sorted(scores["test_guard"]) == sorted(history["value"])
    assert sorted(scores["test_acc"]) == pytest.approx(sorted(history["prior"]))
    assert verify(guard.ledger).sound


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_train_scores_repeat_the_answer_and_are_free(make_guard, train, n_jobs):
    guard = make_guard()
    scoring = {"acc": "accuracy", "guard": guarded_scorer(guard)}
    scores = cross_validate(
        LogisticRegression(), *train, scoring=scoring, n_jobs=n_jobs, return_train_score=True
    )
    assert guard.queries_asked == 5
    np.testing.assert_array_equal(scores["train_guard"], scores["test_guard"])


def test_train_scores_of_a_constant_model_are_free(make_guard, train):
    guard = make_guard()
    cross_validate(
        DummyClassifier(), *train, scoring=guarded_scorer(guard), cv=KFold(2), return_train_score=True
    )
    assert guard.queries_asked == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_shares_one_budget(make_guard, train, n_jobs):
    guard = make_guard()
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.001, 0.1, 1.0, 10.0]}
    search = GridSearchCV(
        pipe, grid, scoring=guarded_scorer(guard), cv=3, n_jobs=n_jobs, return_train_score=True
    )
    search.fit(*train)
    assert 6 < guard.queries_asked <= 12  # candidates with the same predictions and scores are one question
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_score_ <= 1.0
    asked = guard.queries_asked
    assert search.score(*train) == guard.history()["value"].iloc[-1]
    assert guard.queries_asked == asked + 1  # the refitted model is another one


@pytest.mark.parametrize(
    "search",
    [
        lambda scorer: GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=scorer, cv=2),
        lambda scorer: GridSearchCV(
            LogisticRegression(),
            {"C": [0.1, 1.0]},
            scoring={"guarded": scorer, "plain": "accuracy"},
            refit="guarded",
            cv=2,
        ),
        lambda scorer: RFECV(LogisticRegression(), scoring=scorer, cv=2),
        pytest.param(
            lambda scorer: LogisticRegressionCV(
                scoring=scorer, cv=2, Cs=2, l1_ratios=(0.0,), use_legacy_attributes=False
            ),
            marks=pytest.mark.skipif(
                "use_legacy_attributes" not in LogisticRegressionCV().get_params(),
                reason="an earlier one gave scorers labels of -1 and 1",
            ),
        ),
    ],
)
def test_the_score_of_a_fitted_search_is_one_question_about_its_best_model(make_guard, train, search):
    guard = make_guard()
    fitted = search(guarded_scorer(guard)).fit(*train)
    before = guard.queries_asked
    first, again = (fitted.score(X, y) for X, y in (train, (train[0][:700], train[1][:700])))
    assert guard.queries_asked == before + 1
    assert first == again == guard.history()["value"].iloc[-1]
    assert guard.history()["prior"].iloc[-1] == accuracy_score(train[1], fitted.predict(train[0]))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_halted_search_has_found_so_far_stands_in_its_history(make_guard, train, n_jobs):
    guard = make_guard(queries=5)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(
        pipe, {"logisticregression__C": [0.1, 2.0, 3.0]}, scoring=guarded_scorer(guard), cv=2, n_jobs=n_jobs
    )
    with pytest.raises(Halted) as caught:
        search.fit(*train)
    names = caught.value.history["name"].tolist()
    assert len(names) == 5
    for C in ("0.1", "2.0"):
        assert sum(f"LogisticRegression(C={C})" in name for name in names) == 2 or n_jobs == 2
    assert all("LogisticRegression(C=" in name for name in names)


@pytest.mark.parametrize(
    ("error_score", "n_jobs"),
    [
        (np.nan, 1),
        ("raise", 1),
        (0.0, 1),
        (np.nan, 2),
        pytest.param("raise", 2, marks=long),
        pytest.param(0.0, 2, marks=long),
    ],
)
def test_a_halt_is_never_swallowed(make_guard, train, n_jobs, error_score):
    guard = make_guard(queries=4)
    search = GridSearchCV(
        LogisticRegression(),
        {"C": [0.001, 0.1, 1.0]},
        scoring=guarded_scorer(guard),
        cv=3,
        n_jobs=n_jobs,
        error_score=error_score,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # joblib tells of workers it stopped
        with pytest.raises(Halted) as caught:
            search.fit(*train)
    assert caught.value.reason == "queries"
    assert len(caught.value.history) == 4
    assert guard.queries_asked == 4
    assert not hasattr(search, "best_index_")


def test_charges_are_counted_once_over_all_workers(make_guard, train):
    X, y = train
    guard = make_guard(tolerance=None, charges=5, threshold=0.05, noise_scale=0.001)
    upside_down = RandomForestClassifier(20, random_state=0)  # fitted on 1 - y: every question is charged
    with pytest.raises(Halted) as caught:
        cross_val_score(upside_down, X, 1 - y, scoring=guarded_scorer(guard), n_jobs=2, cv=10)
    history = guard.history()
    assert history["charged"].all()
    assert list(history["query"]) == [1, 2, 3, 4, 5]
    assert caught.value.reason == "charges"
    assert guard.charges_left == 0


def test_a_refitted_estimator_is_a_new_question(make_guard, train):
    X, y = train
    guard = make_guard()
    scorer, model = guarded_scorer(guard), LogisticRegression()
    scorer(model.fit(X[:500], y[:500]), X[1_500:], y[1_500:])
    scorer(model.fit(X[500:550], y[500:550]), X[1_500:], y[1_500:])
    assert guard.queries_asked == 2
    again = scorer(model, X[1_500:].copy(), y[1_500:])
    assert guard.queries_asked == 2
    assert again == guard.history()["value"].iloc[-1]


def test_losses_are_negated(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = np.clip(X[:, 0] + rng.normal(size=3_000), -5, 5)
    guard = ReusableHoldout(
        X[1_000:],
        y[1_000:],
        metric=mae(lower=-5, upper=5),
        tolerance=2.5,
        queries=20,
        ledger=tmp_path / "guard.db",
    )
    scores = cross_val_score(LinearRegression(), X[:1_000], y[:1_000], scoring=guarded_scorer(guard))
    assert (scores < 0).all()
    assert sorted(-scores) == sorted(guard.history()["value"])


@pytest.mark.parametrize(
    ("metric", "better"),
    [("roc_auc", 1), ("log_loss", -1), ("neg_log_loss", -1), ("brier", -1), ("balanced_accuracy", 1)],
)
def test_metrics_of_probabilities_and_scores_work(make_guard, train, metric, better):
    guard = make_guard(metric=metric, tolerance=0.4)
    scores = cross_val_score(LogisticRegression(), *train, scoring=guarded_scorer(guard))
    assert (np.sign(scores) == better).all()


def test_frames_and_text_labels_work(data, tmp_path):
    X, y = data
    frame, label = pd.DataFrame(X, columns=list("abcd")), np.where(y == 1, "yes", "no")
    guard = ReusableHoldout(
        frame[2_000:], label[2_000:], tolerance=0.15, queries=60, ledger=tmp_path / "guard.db"
    )
    scores = cross_val_score(
        LogisticRegression(), frame[:2_000], label[:2_000], scoring=guarded_scorer(guard)
    )
    assert (scores > 0.7).all()


def test_sample_weights_in_the_search_do_not_reach_the_guard(make_guard, train):
    guard = make_guard()
    scoring = {"acc": "accuracy", "guard": guarded_scorer(guard)}
    weights = np.ones(len(train[1]))
    cross_validate(LogisticRegression(), *train, scoring=scoring, params={"sample_weight": weights})
    assert guard.queries_asked == 5


def test_randomized_search_and_learning_curve_work(make_guard, train):
    guard = make_guard(queries=200)
    RandomizedSearchCV(
        LogisticRegression(),
        {"C": np.logspace(-3, 3, 50)},
        n_iter=3,
        random_state=0,
        cv=3,
        scoring=guarded_scorer(guard),
    ).fit(*train)
    asked = guard.queries_asked
    learning_curve(LogisticRegression(), *train, scoring=guarded_scorer(guard), cv=3, train_sizes=[0.5, 1.0])
    assert guard.queries_asked <= asked + 6


def test_a_search_can_be_cloned_and_copied_and_keeps_one_budget(make_guard, train):
    guard = make_guard()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1]}, scoring=guarded_scorer(guard), cv=2)
    for other in (clone(search), copy.deepcopy(search)):
        other.fit(*train)
    assert guard.queries_asked == 2  # the second search asks the same questions


def test_a_pickled_scorer_carries_no_rows_and_shares_the_budget(make_guard, train):
    X, y = train
    guard = make_guard()
    pickled = pickle.dumps(guarded_scorer(guard))
    assert len(pickled) < 2_000
    other = pickle.loads(pickled)
    other(LogisticRegression().fit(X[:1_000], y[:1_000]), X[1_000:], y[1_000:])
    assert guard.queries_asked == 1


def test_a_guard_in_memory_says_what_to_do_when_it_must_travel(data, train):
    X, y = data
    guard = ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.15, queries=60)
    with pytest.raises(HandleError, match="ledger="):
        ForkingPickler.dumps(guarded_scorer(guard))
    cross_val_score(LogisticRegression(), *train, scoring=guarded_scorer(guard))
    assert guard.queries_asked == 5


def test_the_repr_shows_no_rows(make_guard):
    assert repr(guarded_scorer(make_guard())).startswith(
        "guarded_scorer(<ReusableHoldout: accuracy, 4,000 rows"
    )


class ShownAs(LogisticRegression):
    shown = None

    def __repr__(self, **_):
        if self.shown is None:
            raise ValueError("cannot be shown")
        return self.shown


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        (None, "ShownAs"),
        (3, "ShownAs"),
        ("two\n\t lines", "two lines"),
        ("\x1b[31mred\x00\u202e\ud800", "?[31mred???"),
        ("x" * 100_000, "x" * 117 + "..."),
    ],
)
def test_a_model_is_asked_about_however_it_is_shown(make_guard, data, monkeypatch, shown, name):
    guard, (X, y) = make_guard(), data
    monkeypatch.setattr(ShownAs, "shown", shown)
    guarded_scorer(guard)(ShownAs().fit(X[:500], y[:500]), X[500:1_000], y[500:1_000])
    assert guard.history()["name"].tolist() == [name]
