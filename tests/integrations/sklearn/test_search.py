"""The guarded search: answers, charges and the best, in candidate order whatever the number of jobs."""

import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from long_tests import GUARD
from made_guards import made_guard
from reusable_holdout.guard.batches import about
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer, prior_scorer
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, brier_score_loss, get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from reusable_holdout import ParquetRows, verify
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import Metric, mae, negated

long = pytest.mark.long("integrations/reusable_holdout_sklearn", "reusable_holdout")
DEPTHS = {"max_depth": [1, 2, 3, 5, 8, 12]}
UPSIDE_DOWN = {  # every prior is wrong by more than the threshold: every question is charged
    "tolerance": None,
    "charges": 6,
    "threshold": 0.1,
    "noise_scale": 0.002,
}


def trees(**settings):
    return GridSearchCV(DecisionTreeClassifier(random_state=0), DEPTHS, cv=3, **settings)


def one_by_one(search, guard, **settings):
    return GuardedSearchCV(search, guard, ask="evaluate", **settings)


# ---- asked one by one


def test_each_candidate_is_asked_once_with_its_mean_as_prior(make_guard, train):
    guard = make_guard()
    search = one_by_one(trees(), guard).fit(*train)
    history, results = guard.history(), search.guard_results_
    assert guard.queries_asked == 6
    assert history["prior"].tolist() == results["cv_mean"].tolist()
    assert results["cv_mean"].tolist() == search.cv_results_["mean_test_score"].tolist()
    assert results["candidate"].tolist() == list(range(6))
    assert results["query"].tolist() == history["query"].tolist()
    assert results["answer"].tolist() == history["value"].tolist()
    assert results["params"].tolist() == search.cv_results_["params"]
    assert history["name"].tolist()[2] == "candidate 2: max_depth=3"
    assert verify(guard.ledger).sound


def test_the_best_has_the_best_answer_and_is_the_model_that_was_asked_about(make_guard, train):
    guard = make_guard()
    search = one_by_one(trees(), guard).fit(*train)
    best = search.guard_results_["answer"].idxmax()
    assert search.best_index_ == best
    assert search.best_params_ == search.cv_results_["params"][best]
    assert search.best_answer_.value == search.best_score_ == search.guard_results_["answer"].max()
    assert search.best_estimator_.get_params()["max_depth"] == search.best_params_["max_depth"]
    twin = DecisionTreeClassifier(random_state=0, **search.best_params_).fit(*train)
    np.testing.assert_array_equal(search.predict(train[0]), twin.predict(train[0]))
    assert search.score(*train) == accuracy_score(train[1], twin.predict(train[0]))


def test_a_prior_that_the_holdout_contradicts_costs_the_candidate_its_place(make_guard, train):
    X, y = train
    guard = make_guard(**UPSIDE_DOWN)
    grid = {"max_depth": [1, 2]}
    search = one_by_one(GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=3), guard)
    search.fit(X, 1 - y)
    assert search.guard_results_["charged"].all()
    assert (search.guard_results_["cv_mean"] > 0.6).all()
    assert (search.guard_results_["answer"] < 0.4).all()
    assert guard.history()["charged"].sum() == 2


@pytest.mark.parametrize(
    ("model", "upside_down"),
    [
        (LogisticRegression(), False),
        (RandomForestClassifier(5, random_state=0), True),
        pytest.param(LogisticRegression(), True, marks=long),
        pytest.param(SVC(), False, marks=long),
        pytest.param(SVC(), True, marks=long),
        pytest.param(RandomForestClassifier(5, random_state=0), False, marks=long),
    ],
)
def test_jobs_and_backends_change_neither_answers_nor_charges(make_guard, train, model, upside_down):
    X, y = train
    grid = {"C": [0.01, 0.1, 1.0]} if hasattr(model, "C") else {"max_depth": [2, 4, 6]}
    settings = UPSIDE_DOWN if upside_down else {}
    transcripts, questions = [], []
    for backend, jobs in [("loky", 1), ("loky", 2), ("threading", 2), ("multiprocessing", 2)]:
        guard = make_guard(**settings)
        with joblib.parallel_config(backend):
            search = one_by_one(GridSearchCV(model, grid, cv=2, n_jobs=jobs), guard, batch_size=2)
            search.fit(X[:400], 1 - y[:400] if upside_down else y[:400])
        transcripts.append(guard.history().drop(columns="asked_at"))
        questions.append([row.digest for row in guard._ledger.rows()])
    assert transcripts[0]["charged"].any() == upside_down
    for transcript, asked in zip(transcripts[1:], questions[1:], strict=True):
        pd.testing.assert_frame_equal(transcript, transcripts[0])
        assert asked == questions[0]


def test_a_second_search_with_the_same_data_is_all_replays(make_guard, train):
    guard = make_guard()
    first = one_by_one(trees(), guard).fit(*train)
    again = one_by_one(trees(n_jobs=2), guard, batch_size=4).fit(*train)
    assert guard.queries_asked == 6
    assert again.guard_results_["replayed"].all()
    columns = ["candidate", "answer", "low", "high", "query"]
    pd.testing.assert_frame_equal(again.guard_results_[columns], first.guard_results_[columns])
    assert again.best_index_ == first.best_index_


def test_a_random_fit_is_a_question_of_its_own(make_guard, train):
    guard = make_guard()
    search = GridSearchCV(RandomForestClassifier(3, max_depth=2), {"max_features": [2, 3]}, cv=2)
    for _ in range(2):
        one_by_one(search, guard).fit(*train)
    assert guard.queries_asked == 4


def test_a_guard_in_memory_serves_workers_too(data, train):
    X, y = data
    guard = made_guard(X[2_000:], y[2_000:], tolerance=0.15, queries=60, seed=0)
    search = one_by_one(trees(n_jobs=2), guard).fit(*train)
    assert guard.queries_asked == 6
    assert not search.guard_results_["charged"].any()


@pytest.mark.parametrize(
    ("make", "asked"),
    [
        (lambda model, grid: RandomizedSearchCV(model, grid, n_iter=4, random_state=0, cv=3), 4),
        (lambda model, grid: HalvingGridSearchCV(model, grid, random_state=0, cv=3, factor=2), 2),
        (
            lambda model, grid: HalvingRandomSearchCV(
                model, grid, n_candidates=6, random_state=0, cv=3, factor=2
            ),
            2,
        ),
    ],
)
def test_other_searches_work_and_halving_is_asked_about_its_last_round(make_guard, train, make, asked):
    guard = make_guard()
    search = one_by_one(make(DecisionTreeClassifier(random_state=0), DEPTHS), guard).fit(*train)
    results = search.cv_results_
    last = np.flatnonzero(results["iter"] == results["iter"].max()) if "iter" in results else range(4)
    assert search.guard_results_["candidate"].tolist() == list(last)
    assert guard.queries_asked == asked
    assert search.best_index_ in last


def test_only_the_best_by_cross_validation_are_asked_if_so_wished(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard, candidates=2).fit(*train)
    ranks = search.cv_results_["rank_test_score"]
    left_out = np.setdiff1d(np.arange(6), search.guard_results_["candidate"])
    assert ranks[search.guard_results_["candidate"]].max() < ranks[left_out].min()
    assert search.guard_results_["candidate"].is_monotonic_increasing
    assert guard.queries_asked == 2


# ---- halts


@pytest.mark.parametrize(
    ("backend", "jobs", "error_score"),
    [
        ("loky", 1, np.nan),
        ("loky", 1, "raise"),
        ("loky", 2, np.nan),
        ("threading", 2, 0.0),
        ("multiprocessing", 2, np.nan),
    ],
)
def test_a_halt_is_raised_and_what_was_answered_is_kept(make_guard, train, error_score, backend, jobs):
    guard = make_guard(queries=4)
    search = one_by_one(trees(error_score=error_score, n_jobs=jobs), guard, batch_size=3)
    with joblib.parallel_config(backend), pytest.raises(Halted) as caught:
        search.fit(*train)
    assert caught.value.reason == "queries"
    assert search.guard_results_["candidate"].tolist() == [0, 1, 2, 3]
    assert [answer.value for answer in caught.value.answers] == search.guard_results_["answer"].tolist()
    assert caught.value.history["value"].tolist() == search.guard_results_["answer"].tolist()
    assert "4 of 6 candidates were answered" in "".join(caught.value.__notes__)
    assert search.best_index_ == search.guard_results_["answer"].idxmax()
    assert len(search.predict(train[0])) == 2_000
    assert len(search.search_.cv_results_["params"]) == 6


def test_charges_that_run_out_in_a_batch_halt_after_the_last_one_paid(make_guard, train):
    X, y = train
    guard = make_guard(**UPSIDE_DOWN | {"charges": 3})
    search = one_by_one(trees(), guard)
    with pytest.raises(Halted) as caught:
        search.fit(X, 1 - y)
    assert len(search.guard_results_) == len(caught.value.answers) == guard.queries_asked == 3
    assert search.guard_results_["charged"].all()
    assert guard.charges_left == 0


class Counting(DecisionTreeClassifier):
    fits = 0

    def fit(self, X, y, sample_weight=None, check_input=True):
        type(self).fits += 1
        return super().fit(X, y, sample_weight, check_input)


def test_of_a_halted_guard_only_possible_replays_are_fitted(make_guard, train):
    X, y = train
    guard = make_guard(queries=4)
    search = one_by_one(
        GridSearchCV(Counting(random_state=0), DEPTHS, cv=3, refit=False), guard, batch_size=2
    )
    with pytest.raises(Halted):
        search.fit(X, y)
    first = search.guard_results_
    Counting.fits = 0
    with pytest.raises(Halted) as caught:
        search.fit(X, y)
    assert Counting.fits == 3 * 6 + 4
    assert search.guard_results_["replayed"].all()
    assert search.guard_results_["answer"].tolist() == first["answer"].tolist()
    assert len(caught.value.answers) == 4
    Counting.fits = 0
    with pytest.raises(Halted) as caught:
        search.fit(X[:1_000], y[:1_000])  # other priors: nothing of it was asked before
    assert Counting.fits == 3 * 6
    assert caught.value.answers == []
    assert len(search.guard_results_) == 0
    assert not hasattr(search, "best_estimator_")


def test_a_search_whose_last_answer_takes_the_last_query_does_not_raise(make_guard, train):
    guard = make_guard(queries=6)
    search = one_by_one(trees(), guard).fit(*train)
    assert guard.halted
    assert len(search.guard_results_) == 6
    assert one_by_one(trees(), guard).fit(*train).guard_results_["replayed"].all()


class FailsOnTheHoldout(DecisionTreeClassifier):
    """Fails where there are 4,000 rows and its depth is 3."""

    def predict(self, X, check_input=True):
        if len(X) == 4_000 and self.max_depth == 3:
            raise ValueError("private words")
        return super().predict(X, check_input)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_candidate_that_fails_on_the_holdout_is_charged_and_is_not_the_best(make_guard, train, jobs):
    guard = make_guard(tolerance=0.2)
    inner = GridSearchCV(FailsOnTheHoldout(random_state=0), DEPTHS, cv=3, n_jobs=jobs)
    search = one_by_one(inner, guard).fit(*train)
    failed = search.guard_results_.loc[2]
    assert np.isnan(failed["answer"])
    assert failed["charged"]
    assert guard.history()["charged"].tolist() == [False, False, True, False, False, False]
    assert search.best_index_ != 2
    assert guard.queries_asked == 6


class FailsToFit(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth == 3:
            raise ValueError("no")
        return super().fit(X, y, sample_weight, check_input)


def test_a_candidate_without_a_score_is_not_asked_about(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(GridSearchCV(FailsToFit(), DEPTHS, cv=3), guard)
    with pytest.warns((FitFailedWarning, UserWarning)):
        search.fit(*train)
    assert search.guard_results_["candidate"].tolist() == [0, 1, 3, 4, 5]


# ---- the metric


@pytest.mark.parametrize(
    ("metric", "scoring"),
    [
        ("accuracy", None),
        ("accuracy", "accuracy"),
        ("zero_one_loss", "accuracy"),
        ("balanced_accuracy", "balanced_accuracy"),
        ("roc_auc", "roc_auc"),
        ("average_precision", "average_precision"),
        ("brier", "neg_brier_score"),
        ("neg_brier_score", "neg_brier_score"),
        ("f1", "f1"),
        ("f1_macro", "f1_macro"),
        ("precision_weighted", "precision_weighted"),
        ("recall", "recall"),
        ("mcc", "matthews_corrcoef"),
    ],
)
def test_the_scores_of_a_search_are_the_metric_they_are_taken_for(make_guard, train, metric, scoring):
    guard = make_guard(metric=metric, tolerance=0.9)
    model = LogisticRegression()
    by_name = GuardedSearchCV(GridSearchCV(model, {"C": [0.001, 1.0]}, scoring=scoring), guard).fit(*train)
    ours = GridSearchCV(model, {"C": [0.001, 1.0]}, scoring=prior_scorer(guard))
    plain = GuardedSearchCV(ours, guard).fit(*train)
    np.testing.assert_allclose(by_name.guard_results_["cv_mean"], plain.guard_results_["cv_mean"])
    sign = 1 if guard.metric.greater_is_better else -1
    best = (sign * by_name.guard_results_["answer"]).max()
    assert by_name.best_score_ == best == sign * by_name.best_answer_.value


@pytest.mark.parametrize("sign", [1, -1])
def test_targets_with_bounds_are_asked_about_through_the_scorer_of_the_guard(sign):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = np.clip(X[:, 0] + rng.normal(size=3_000), -5, 5)
    error = mae(lower=-5, upper=5) if sign == 1 else negated(mae(lower=-5, upper=5))
    guard = made_guard(X[1_000:], y[1_000:], metric=error, tolerance=2.5, queries=20, seed=0)
    for scoring in ("neg_mean_absolute_error", prior_scorer(guard)):
        search = GridSearchCV(Ridge(), {"alpha": [1.0, 1e6]}, scoring=scoring)
        guarded = GuardedSearchCV(search, guard).fit(X[:1_000], y[:1_000])
        assert guarded.best_params_ == {"alpha": 1.0}
        assert guarded.best_score_ == (-sign * guarded.guard_results_["answer"]).max()
        assert sign * guarded.best_answer_.value > 0


@pytest.mark.parametrize("scoring", ["neg_log_loss", get_scorer("neg_log_loss")])
@pytest.mark.parametrize("ask", ["choose", "evaluate"])
def test_a_guard_of_scikit_learns_name_has_its_sign_too(make_guard, train, scoring, ask):
    guard = make_guard(metric="neg_log_loss", tolerance=0.9)
    model = LogisticRegression()
    search = GuardedSearchCV(GridSearchCV(model, {"C": [1e-5, 1.0]}, scoring=scoring), guard, ask=ask)
    search.fit(*train)
    means = [
        cross_val_score(model.set_params(C=c), *train, scoring="neg_log_loss").mean() for c in (1e-5, 1.0)
    ]
    np.testing.assert_allclose(search.guard_results_["cv_mean"], means)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ == search.best_answer_.value < 0
    assert guard.metric.lower <= search.best_answer_.low < search.best_answer_.high <= 0
    answer = guard.evaluate(search.best_estimator_, prior=means[1])
    assert answer.value < 0
    assert verify(guard.ledger).sound


@pytest.mark.skipif(
    "labels" not in inspect.signature(brier_score_loss).parameters, reason="scikit-learn's was of two classes"
)
def test_a_brier_score_of_three_classes_is_half_of_what_scikit_learn_calls_so(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    with made_guard(X[600:], y[600:], metric="brier", tolerance=0.25, queries=20, seed=0) as guard:
        found = []
        for scoring in ("neg_brier_score", prior_scorer(guard)):
            search = GridSearchCV(LogisticRegression(), {"C": [1e-5, 1.0]}, scoring=scoring)
            found.append(GuardedSearchCV(search, guard).fit(X[:600], y[:600]).guard_results_["cv_mean"])
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize(
    "scoring", ["neg_log_loss", {"auc": "roc_auc"}, ["roc_auc", "f1"], lambda model, X, y: 0.5]
)
def test_a_search_scored_by_something_else_is_refused_before_it_starts(make_guard, train, scoring):
    guard = make_guard()
    search = GuardedSearchCV(GridSearchCV(Counting(), DEPTHS, scoring=scoring, refit=False), guard)
    Counting.fits = 0
    with pytest.raises(InputError, match=r"prior_scorer\(guard\)"):
        search.fit(*train)
    assert Counting.fits == 0
    assert guard.queries_asked == 0


@pytest.mark.parametrize("refit", [False, "auc", "acc"])
def test_of_several_metrics_the_guards_is_found(make_guard, train, refit):
    guard = make_guard()
    inner = trees(scoring={"auc": "roc_auc", "acc": "accuracy"}, refit=refit)
    search = GuardedSearchCV(inner, guard).fit(*train)
    assert search.guard_results_["cv_mean"].tolist() == search.cv_results_["mean_test_acc"].tolist()
    assert search.best_index_ == np.argmax(search.guard_results_["answer"])
    assert 0.5 < search.score(*train) < 1
    assert search.multimetric_


def test_a_key_can_be_named(make_guard, train):
    guard = make_guard()
    inner = trees(scoring=lambda model, X, y: float(np.mean(model.predict(X) == y)))
    search = GuardedSearchCV(inner, guard, prior="score").fit(*train)
    assert search.guard_results_["cv_mean"].tolist() == search.cv_results_["mean_test_score"].tolist()


def test_a_metric_of_ones_own_works_through_its_scorer(data, train):
    X, y = data
    own = Metric(
        name="hits",
        lower=0,
        upper=1,
        greater_is_better=True,
        response="labels",
        family="binomial",
        loss=np.equal,
    )
    guard = made_guard(X[2_000:], y[2_000:], metric=own, tolerance=0.15, queries=60, seed=0)
    search = GuardedSearchCV(trees(scoring=prior_scorer(guard)), guard).fit(*train)
    assert len(search.guard_results_) == 6


def test_a_ladders_best_is_its_last_new_best(make_guard, train):
    guard = make_guard(policy="ladder", tolerance=0.1)
    search = one_by_one(trees(), guard).fit(*train)
    charged = search.guard_results_[search.guard_results_["charged"]]
    assert len(charged) >= 1
    assert search.best_index_ == charged["candidate"].iloc[-1]
    assert search.best_answer_.charged


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"candidates": 0}, "candidates must be"),
        ({"batch_size": 1.5}, "batch_size must be"),
        ({"refit": "accuracy"}, "refit must be"),
        ({"search": LogisticRegression()}, "must have an estimator"),
    ],
)
def test_what_cannot_work_is_refused(make_guard, train, change, match):
    search = GuardedSearchCV(trees(), make_guard()).set_params(**change)
    with pytest.raises(InputError, match=match):
        search.fit(*train)


def test_guards_that_cannot_tell_the_best_are_refused(make_guard, data, train):
    with pytest.raises(InputError, match=r"guard\.compare"):
        one_by_one(trees(), make_guard(policy="gate")).fit(*train)
    labels_only = made_guard(None, data[1][2_000:], tolerance=0.15, queries=60)
    with pytest.raises(InputError, match="labels only"):
        one_by_one(trees(), labels_only).fit(*train)
    guard = make_guard()
    for scoring in (guarded_scorer(guard), {"guard": guarded_scorer(guard)}):
        with pytest.raises(InputError, match="once per fold"):
            one_by_one(trees(scoring=scoring, refit=False), guard).fit(*train)
    assert guard.queries_asked == 0


# ---- an estimator among others


def test_it_delegates_what_the_best_model_can(make_guard, train):
    X, y = pd.DataFrame(train[0], columns=list("abcd")), np.where(train[1] == 1, "yes", "no")
    guard = make_guard()
    inner = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1.0]})
    search = GuardedSearchCV(inner, guard)
    assert hasattr(search, "decision_function")
    assert not hasattr(search, "predict_proba")
    with pytest.raises(NotFittedError):
        search.predict(X)
    with pytest.raises(AttributeError, match="cv_results_"):
        search.cv_results_  # noqa: B018
    search.fit(*train)
    assert search.classes_.tolist() == [0, 1]
    assert search.n_features_in_ == 4
    assert search.n_splits_ == 5
    assert not hasattr(search, "predict_proba")
    assert not hasattr(search, "feature_names_in_")
    assert len(search.decision_function(train[0])) == 2_000
    named = GuardedSearchCV(inner, None).fit(X, y)
    assert named.classes_.tolist() == ["no", "yes"]
    assert named.feature_names_in_.tolist() == list("abcd")


def test_without_refit_there_is_an_answer_and_no_model(make_guard, train):
    search = GuardedSearchCV(trees(), make_guard(), refit=False).fit(*train)
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError) as caught:
        search.predict(train[0])
    assert "refit=False" in str(caught.value.__cause__)


def test_clones_and_pickles_share_the_budget(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard).fit(*train)
    loaded = pickle.loads(pickle.dumps(search))
    assert loaded.guard.queries_asked == 6
    pd.testing.assert_frame_equal(loaded.guard_results_, search.guard_results_)
    np.testing.assert_array_equal(loaded.predict(train[0]), search.predict(train[0]))
    assert clone(search).guard is guard


def test_nested_cross_validation_spends_one_budget(make_guard, train):
    guard = make_guard()
    scores = cross_validate(one_by_one(trees(), guard), *train, cv=3, n_jobs=2, error_score="raise")
    assert guard.queries_asked == 18
    assert (scores["test_score"] > 0.6).all()


@pytest.mark.filterwarnings("ignore:.*does not support sample_weight:UserWarning")
def test_weights_and_groups_reach_the_fits(make_guard, train):
    X, y = train
    weights, groups = np.where(y == 1, 100.0, 1.0), np.arange(len(y)) % 4
    guard = make_guard(**UPSIDE_DOWN)
    inner = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=prior_scorer(guard), cv=GroupKFold(4))
    search = one_by_one(inner, guard).fit(X, y, sample_weight=weights, groups=groups)
    direct = LogisticRegression(C=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.coef_, direct.coef_)
    assert search.n_splits_ == 4


def test_metadata_is_routed_to_the_search(make_guard, train):
    X, y = train
    weights = np.where(y == 1, 100.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            LogisticRegression().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        )
        search = one_by_one(GridSearchCV(model, {"C": [1.0]}), make_guard(**UPSIDE_DOWN))
        search.fit(X, y, sample_weight=weights)
    direct = LogisticRegression(C=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.coef_, direct.coef_)


def test_the_progress_bar_is_off_unless_asked_for(make_guard, train, capsys):
    guard = make_guard()
    one_by_one(trees(), guard).fit(*train)
    assert capsys.readouterr() == ("", "")
    one_by_one(trees(), guard, verbose=1).fit(*train)
    assert "6/6" in capsys.readouterr().err


def test_without_a_guard_it_is_the_search(train):
    for inner in (trees(), trees(refit=False)):
        search = GuardedSearchCV(inner, None).fit(*train)
        plain = trees().fit(*train)
        assert search.best_params_ == plain.best_params_
        assert search.best_score_ == plain.best_score_
        assert search.score(*train) == plain.score(*train)
        assert not hasattr(search, "guard_results_")


# ---- scikit-learn's own checks of estimators


class OnItsOwnRows(GuardedSearchCV):
    """With a real guard, made of the rows of each check: their shapes differ, and a guard's rows have one."""

    def fit(self, X, y=None, **params):
        rows = np.asarray(X, dtype=object)
        guard = None
        if y is not None and rows.ndim == 2 and len(np.unique(np.asarray(y, dtype=object).astype(str))) > 1:
            guard = _guard_of(X, y)
        inner = GuardedSearchCV(self.search, guard).fit(X, y, **params)
        vars(self).update({name: value for name, value in vars(inner).items() if name.endswith("_")})
        return self


def _guard_of(X, y):
    try:
        return made_guard(
            X,
            y,
            queries=100,
            charges=20,
            threshold=0.9,
            mechanism="noiseless",
            choices=[2],
            confidence=0.9,
            seed=0,
            vacuous=True,
            overlapping=True,
        )
    except InputError:  # data that the check wants refused by fit itself
        return None


def test_the_guard_of_a_check_is_asked(train):
    search = OnItsOwnRows(INNER, None).fit(train[0][:100], train[1][:100])
    assert len(search.guard_results_) == 2
    assert search.best_answer_.query in (1, 2)


INNER = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)


@parametrize_with_checks([GuardedSearchCV(INNER, None)])
def test_scikit_learns_checks_pass_without_a_guard(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data of some checks do not converge
        check(estimator)


@pytest.mark.long(*GUARD, "integrations/reusable_holdout_sklearn")
@parametrize_with_checks([OnItsOwnRows(INNER, None)])
def test_scikit_learns_checks_pass_with_a_guard_of_the_checks_own_rows(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


REGRESSION = GridSearchCV(LinearRegression(), {"fit_intercept": [True, False]}, cv=2)


@parametrize_with_checks(
    [GuardedSearchCV(REGRESSION, None)],
    expected_failed_checks=lambda _: {
        "check_supervised_y_2d": "it fails for GridSearchCV of this model, too"
    },
)
def test_scikit_learns_checks_pass_for_a_regressor(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("kind", ["evaluate", "choose"])
@pytest.mark.parametrize("metric", ["accuracy", "f1", "brier"])
def test_what_a_worker_measured_is_noise_to_others_and_as_long_as_a_failure(make_guard, data, metric, kind):
    class Fails(LogisticRegression):
        def predict(self, X):
            if len(X) > 1_000:
                raise ValueError
            return super().predict(X)

        def predict_proba(self, X):
            self.predict(X)
            return super().predict_proba(X)

    guard = make_guard(metric=metric, tolerance=None, charges=2, vacuous=True)
    X, y = data
    fits = [LogisticRegression(), LogisticRegression(), LogisticRegression(C=1e-4), Fails()]
    measured = [guard.measure(model.fit(X[:500], y[:500]), prior=0.5, way=kind) for model in fits]
    concealed = [one.measured for one in measured]
    found = [guard._content.reveal(one.measured, about(guard, kind, one.content)) for one in measured]
    assert found[0].tolist() == found[1].tolist()
    assert concealed[0] != concealed[1]
    assert found[3] is None
    assert len({len(one) for one in concealed}) == 1
    assert not any(found[0].tobytes() in one for one in concealed)
    assert guard.queries_asked == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda one, other: one._replace(measured=other.measured),
        lambda one, other: one._replace(content=other.content),
        lambda one, _: one._replace(measured=one.measured[:-1] + bytes([one.measured[-1] ^ 1])),
        lambda one, _: one._replace(measured=b""),
    ],
)
def test_what_was_measured_of_one_model_is_no_answer_about_another(make_guard, data, change):
    guard, (X, y) = make_guard(), data
    models = [LogisticRegression(C=C).fit(X[:500], y[:500]) for C in (1e-4, 1.0)]
    for kind, ask in (
        ("evaluate", lambda one: guard.ask([one], [0.5], names=["one"])),
        ("choose", lambda one: guard.ask_choice([one], [0.5])),
    ):
        one, other = (guard.measure(model, prior=0.5, way=kind) for model in models)
        with pytest.raises(InputError, match="must come from this guard's measure"):
            ask(change(one, other))
    wrong = guard.measure(models[0], prior=0.5, way="choose")
    with pytest.raises(InputError, match="this kind of query"):
        guard.ask([wrong], [0.5], names=["one"])
    assert guard.queries_asked == 0


def test_a_holdout_in_files_is_asked_chunk_by_chunk(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.iloc[2_000:].assign(label=y[2_000:]).to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    wish = {"tolerance": 0.15, "queries": 60, "seed": 0}
    searches = []
    for place in (ParquetRows(tmp_path / "rows.parquet"), frame.iloc[2_000:]):
        labels = "label" if isinstance(place, ParquetRows) else y[2_000:]
        guard = made_guard(place, labels, **wish)
        grid = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=3)
        searches.append(one_by_one(grid, guard).fit(frame.iloc[:2_000], y[:2_000]))
    assert searches[0].guard_results_.equals(searches[1].guard_results_)
