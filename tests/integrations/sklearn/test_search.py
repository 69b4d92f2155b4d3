"""The guarded search that asks about each candidate, its priors, and its place among estimators."""

import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import for_each, refuses
from integrations.sklearn.models import Counting, TreeFailsOnTheHoldout
from long_tests import GUARD
from made_guards import made_guard
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer, prior_scorer
from reusable_holdout_sklearn.priors import PriorColumn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, brier_score_loss, get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from reusable_holdout import ParquetRows, Question, verify
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.metrics import Metric, mae, negated, resolve_metric

DEPTHS, CS = {"max_depth": [1, 2, 3, 5, 8, 12]}, {"C": [0.001, 1.0]}
# every prior is wrong by more than the threshold: every question is charged
UPSIDE_DOWN = {"tolerance": None, "charges": 6, "threshold": 0.1, "noise": 0.002}


def trees(**settings):
    return GridSearchCV(DecisionTreeClassifier(random_state=0), DEPTHS, cv=3, **settings)


def one_by_one(search, guard, **settings):
    return GuardedSearchCV(search, guard, ask="evaluate", **settings)


# ---- asked one by one


def test_each_candidate_is_asked_about_once_with_its_mean_as_prior(make_guard, train):
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


def test_the_best_has_the_highest_lower_end_and_is_the_model_that_was_asked_about(make_guard, train):
    search = one_by_one(trees(), make_guard()).fit(*train)
    best = search.guard_results_["low"].idxmax()
    assert search.best_index_ == best
    assert search.best_params_ == search.cv_results_["params"][best]
    assert search.best_answer_.value == search.best_score_
    assert search.best_answer_.low == search.guard_results_["low"].max()
    twin = DecisionTreeClassifier(random_state=0, **search.best_params_).fit(*train)
    np.testing.assert_array_equal(search.predict(train[0]), twin.predict(train[0]))
    assert search.score(*train) == accuracy_score(train[1], twin.predict(train[0]))


def test_of_equal_answers_the_first_of_the_best_rank_is_taken(make_guard, train):
    grid = [{"max_depth": [5]}, {"max_depth": [1]}, {"max_depth": [1], "splitter": ["best"]}]
    inner = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=3)
    search = one_by_one(inner, make_guard()).fit(*train)
    assert search.guard_results_["answer"].tolist()[1] == search.guard_results_["answer"].tolist()[2]
    assert search.best_index_ == search.guard_results_["answer"].idxmax() == 1


def test_a_guard_in_memory_serves_workers_too(make_guard, train):
    guard = make_guard(ledger=None)
    search = one_by_one(trees(n_jobs=2), guard).fit(*train)
    assert guard.queries_asked == 6
    assert not search.guard_results_["charged"].any()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_candidate_that_fails_on_the_holdout_is_charged_and_is_not_the_best(make_guard, train, jobs):
    guard = make_guard(tolerance=0.2)
    inner = GridSearchCV(TreeFailsOnTheHoldout(random_state=0, since=3, until=3), DEPTHS, cv=3, n_jobs=jobs)
    search = one_by_one(inner, guard).fit(*train)
    failed = search.guard_results_.loc[2]
    assert np.isnan(failed["answer"])
    assert failed["charged"]
    assert guard.history()["charged"].tolist() == [False, False, True, False, False, False]
    assert search.best_index_ != 2
    assert guard.queries_asked == 6


# ---- halts


@pytest.mark.parametrize(
    ("backend", "jobs", "error_score"),
    [("loky", 1, "raise"), ("loky", 2, np.nan), ("threading", 2, 0.0), ("multiprocessing", 2, np.nan)],
)
def test_a_halt_is_raised_and_the_answers_are_kept(
    make_guard, train, monkeypatch, error_score, backend, jobs
):
    monkeypatch.setattr("reusable_holdout_sklearn.search._BATCH", 3)
    guard = make_guard(queries=4)
    search = one_by_one(trees(error_score=error_score, n_jobs=jobs), guard)
    with joblib.parallel_config(backend), pytest.raises(Halted) as caught:
        search.fit(*train)
    assert caught.value.reason == "queries"
    assert search.guard_results_["candidate"].tolist() == [0, 1, 2, 3]
    assert [answer.value for answer in caught.value.answers] == search.guard_results_["answer"].tolist()
    assert caught.value.history["value"].tolist() == search.guard_results_["answer"].tolist()
    assert "4 of 6 candidates were answered" in "".join(caught.value.__notes__)
    assert search.best_index_ == search.guard_results_["low"].idxmax()
    assert len(search.predict(train[0])) == 2_000
    assert len(search.search_.cv_results_["params"]) == 6


def test_charges_that_run_out_in_a_batch_halt_after_the_last_one_paid(make_guard, train):
    X, y = train
    guard = make_guard(**UPSIDE_DOWN | {"charges": 3})
    search = one_by_one(trees(), guard)
    caught = refuses(Halted, "", search.fit, X, 1 - y)
    assert len(search.guard_results_) == len(caught.answers) == guard.queries_asked == 3
    assert search.guard_results_["charged"].all()
    assert guard.charges_left == 0


def test_of_a_halted_guard_only_possible_replays_are_fitted(make_guard, train):
    X, y = train
    guard = make_guard(queries=4)
    search = one_by_one(GridSearchCV(Counting(random_state=0), DEPTHS, cv=3, refit=False), guard)
    Counting.fits = 0  # an attribute of the class is a part of the model
    refuses(Halted, "", search.fit, X, y)
    first = search.guard_results_
    Counting.fits = 0
    caught = refuses(Halted, "", search.fit, X, y)
    assert Counting.fits == 3 * 6 + 4
    assert search.guard_results_["replayed"].all()
    assert search.guard_results_["answer"].tolist() == first["answer"].tolist()
    assert len(caught.answers) == 4
    Counting.fits = 0
    # other priors: nothing of it was asked before
    caught = refuses(Halted, "", search.fit, X[:1_000], y[:1_000])
    assert Counting.fits == 3 * 6
    assert caught.answers == []
    assert len(search.guard_results_) == 0
    assert not hasattr(search, "best_estimator_")


# ---- the metric


def test_the_scores_of_a_search_are_the_metric_they_are_taken_for(make_guard, train):
    """Every name of scikit-learn that is taken for a guard's metric gives its priors, within the metric's bounds."""
    losses = {"neg_brier_score": "brier", "accuracy": "zero_one_loss"}
    taken = []
    for name in sorted(get_scorer_names()):
        for metric in {name, losses.get(name, name)}:
            try:
                resolve_metric(metric)
                guard = make_guard(metric=metric, tolerance=0.9)
                search = GuardedSearchCV(
                    GridSearchCV(LogisticRegression(), CS, scoring=name), guard, ask="choose"
                )
                search.fit(*train)
            except InputError:
                continue
            taken.append(metric)
            ours = GridSearchCV(LogisticRegression(), CS, scoring=prior_scorer(guard)).fit(*train)
            sign = 1 if guard.metric.greater_is_better else -1
            means = sign * ours.cv_results_["mean_test_score"]
            clipped = 1e-3 if name == "neg_log_loss" else 1e-7
            np.testing.assert_allclose(search.guard_results_["cv_mean"], means, rtol=clipped, err_msg=name)
            assert search.best_score_ == sign * search.best_answer_.value
    assert {"accuracy", "zero_one_loss", "balanced_accuracy", "roc_auc", "average_precision"} <= set(taken)
    assert {"brier", "neg_brier_score", "neg_log_loss", "f1", "f1_macro", "recall"} <= set(taken)
    assert {"precision_weighted", "matthews_corrcoef"} <= set(taken)


@pytest.mark.parametrize("sign", [1, -1])
def test_targets_with_bounds_are_asked_about_through_the_scorer_of_the_guard(sign):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = np.clip(X[:, 0] + rng.normal(size=3_000), -5, 5)
    error = mae(lower=-5, upper=5) if sign == 1 else negated(mae(lower=-5, upper=5))
    guard = made_guard(X[1_000:], y[1_000:], metric=error, tolerance=2.5, queries=20, seed=0)
    for scoring in ("neg_mean_absolute_error", get_scorer("neg_mean_absolute_error"), prior_scorer(guard)):
        search = GridSearchCV(Ridge(), {"alpha": [1.0, 1e6]}, scoring=scoring)
        guarded = GuardedSearchCV(search, guard, ask="choose").fit(X[:1_000], y[:1_000])
        assert guarded.best_params_ == {"alpha": 1.0}
        assert guarded.best_score_ == (-sign * guarded.guard_results_["answer"]).max()
        assert sign * guarded.best_answer_.value > 0


@pytest.mark.skipif(
    "labels" not in inspect.signature(brier_score_loss).parameters, reason="scikit-learn's was of two classes"
)
def test_a_brier_score_of_three_classes_is_half_of_what_scikit_learn_calls_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    with made_guard(X[600:], y[600:], metric="brier", tolerance=0.25, queries=20, seed=0) as guard:
        found = []
        for scoring in ("neg_brier_score", prior_scorer(guard)):
            search = GridSearchCV(LogisticRegression(), {"C": [1e-5, 1.0]}, scoring=scoring)
            found.append(
                GuardedSearchCV(search, guard, ask="choose").fit(X[:600], y[:600]).guard_results_["cv_mean"]
            )
    np.testing.assert_allclose(*found)


@for_each("scoring", ["neg_log_loss", {"auc": "roc_auc"}, ["roc_auc", "f1"], lambda model, X, y: 0.5])
def test_a_search_scored_by_something_else_is_refused_before_it_starts(make_guard, train, scoring):
    guard = make_guard()
    search = GuardedSearchCV(
        GridSearchCV(Counting(), DEPTHS, scoring=scoring, refit=False), guard, ask="choose"
    )
    Counting.fits = 0
    refuses(InputError, r"prior_scorer\(guard\)", search.fit, *train)
    assert Counting.fits == 0
    assert guard.queries_asked == 0


@for_each("refit", [False, "auc", "acc"])
def test_of_several_metrics_the_guards_is_found(make_guard, train, refit):
    inner = trees(scoring={"auc": "roc_auc", "acc": "accuracy"}, refit=refit)
    search = GuardedSearchCV(inner, make_guard(), ask="choose").fit(*train)
    assert search.guard_results_["cv_mean"].tolist() == search.cv_results_["mean_test_acc"].tolist()
    assert search.best_index_ == np.argmax(search.guard_results_["answer"])
    assert 0.5 < search.score(*train) < 1
    assert search.multimetric_


def test_no_prior_is_surer_than_those_of_as_many_rows_are_on_average():
    """Folds that happen to agree say little: a hundred candidates have some whose folds do."""
    folds = {"split0_test_score": [0.7, 0.8, 0.5, np.nan], "split1_test_score": [0.7, 0.9, 0.5, 0.5]}
    column, some = PriorColumn("score", -2.0), 2.0 * np.sqrt(1.5) * np.std([0.8, 0.9], ddof=1)
    fitted_to = {"n_resources": [100, 100, 50, 50]}
    np.testing.assert_allclose(column.errors(folds | fitted_to), [some / np.sqrt(2.0), some, 0.0, 0.0])
    np.testing.assert_allclose(column.errors(folds), [some / 2.0, some, some / 2.0, some / 2.0])


def test_a_key_can_be_named_and_a_metric_of_ones_own_works_through_its_scorer(data, make_guard, train):
    inner = trees(scoring=lambda model, X, y: float(np.mean(model.predict(X) == y)))
    search = GuardedSearchCV(inner, make_guard(), prior="score", ask="choose").fit(*train)
    assert search.guard_results_["cv_mean"].tolist() == search.cv_results_["mean_test_score"].tolist()
    kind = {"greater_is_better": True, "response": "labels", "family": "binomial"}
    own = Metric(name="hits", lower=0, upper=1, loss=np.equal, **kind)
    X, y = data
    guard = made_guard(X[2_000:], y[2_000:], metric=own, charges=3, queries=60, choices=[6], seed=0)
    search = GuardedSearchCV(trees(scoring=prior_scorer(guard)), guard, ask="choose").fit(*train)
    assert len(search.guard_results_) == 6


@for_each(
    ("change", "match"),
    [
        ({"candidates": 0}, "candidates must be"),
        ({"candidates": 1.5}, "candidates must be"),
        ({"refit": "accuracy"}, "refit must be"),
        ({"search": LogisticRegression()}, "must have an estimator"),
        ({"ask": "reveal"}, '"choose" or "evaluate"'),
        ({"guard": None}, "guard must be a ReusableHoldout"),
    ],
)
def test_what_cannot_work_is_refused(make_guard, train, change, match):
    search = GuardedSearchCV(trees(), make_guard(), ask="choose").set_params(**change)
    refuses(InputError, match, search.fit, *train)


def test_guards_that_cannot_tell_the_best_are_refused(make_guard, data, train):
    with pytest.raises(InputError, match=r"guard\.gate"):
        one_by_one(trees(), make_guard(gates=True, tolerance=0.1)).fit(*train)
    labels_only = made_guard(None, data[1][2_000:], tolerance=0.15, queries=60)
    refuses(InputError, "labels only", one_by_one(trees(), labels_only).fit, *train)
    guard = make_guard()
    for scoring in (guarded_scorer(guard), {"guard": guarded_scorer(guard)}):
        with pytest.raises(InputError, match="once per fold"):
            one_by_one(trees(scoring=scoring, refit=False), guard).fit(*train)
    assert guard.queries_asked == 0


# ---- an estimator among others


def test_it_delegates_what_the_best_model_can(make_guard, data, train):
    X, y = pd.DataFrame(data[0], columns=list("abcd")), np.where(data[1] == 1, "yes", "no")
    guard = made_guard(X[2_000:], y[2_000:], charges=3, queries=60, choices=[2], seed=0)
    inner = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1.0]})
    search = GuardedSearchCV(inner, guard, ask="choose")
    assert hasattr(search, "decision_function")
    assert not hasattr(search, "predict_proba")
    assert search.predict.__doc__ == "Predict with the best model."
    refuses(NotFittedError, "", search.predict, X)
    for name in ("cv_results_", "guard_results_"):
        refuses(AttributeError, name, getattr, search, name)
    search.fit(X[:2_000], y[:2_000])
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.feature_names_in_.tolist() == list("abcd")
    assert (search.n_features_in_, search.n_splits_) == (4, 5)
    assert not hasattr(search, "predict_proba")
    assert len(search.decision_function(X[:2_000])) == 2_000


def test_without_refit_there_is_an_answer_and_no_model(make_guard, train):
    search = GuardedSearchCV(trees(), make_guard(), refit=False, ask="choose").fit(*train)
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert not hasattr(search, "best_estimator_")
    caught = refuses(AttributeError, "", lambda: search.predict(train[0]))
    assert "refit=False" in str(caught.__cause__)


def test_clones_and_pickles_share_the_budget(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard, ask="choose").fit(*train)
    loaded = pickle.loads(pickle.dumps(search))
    assert loaded.guard.queries_asked == 6
    pd.testing.assert_frame_equal(loaded.guard_results_, search.guard_results_)
    np.testing.assert_array_equal(loaded.predict(train[0]), search.predict(train[0]))
    assert clone(search).guard is guard


@pytest.mark.filterwarnings("ignore:.*does not support sample_weight:UserWarning")
@pytest.mark.parametrize("routing", [False, True])
def test_weights_and_groups_reach_the_fits(make_guard, train, routing):
    X, y = train
    weights, groups = np.where(y == 1, 100.0, 1.0), {"groups": np.arange(len(y)) % 4}
    guard = make_guard(**UPSIDE_DOWN)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = LogisticRegression()
        if routing:
            model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            inner, groups = GridSearchCV(model, {"C": [1.0]}, cv=4), {}
        else:
            inner = GridSearchCV(model, {"C": [1.0]}, scoring=prior_scorer(guard), cv=GroupKFold(4))
        search = one_by_one(inner, guard).fit(X, y, sample_weight=weights, **groups)
    direct = LogisticRegression(C=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.coef_, direct.coef_)
    assert search.n_splits_ == 4


# ---- scikit-learn's own checks of estimators


class OnItsOwnRows(GuardedSearchCV):
    """A search whose guard is made of the rows of each check: their shapes differ, and a guard's rows have one."""

    def fit(self, X, y=None, **params):
        rows = np.asarray(X, dtype=object)
        guard = None
        if y is not None and rows.ndim == 2 and len(np.unique(np.asarray(y, dtype=object).astype(str))) > 1:
            guard = _guard_of(X, y)
        if guard is None:  # the check wants these rows refused, by the search itself
            inner = clone(self.search).fit(X, y, **params)
        else:
            inner = GuardedSearchCV(self.search, guard, ask="choose").fit(X, y, **params)
        kept = {"_told"} | {name for name in vars(inner) if name.endswith("_")} - {"certificate_"}
        vars(self).update({name: one for name, one in vars(inner).items() if name in kept})
        return self


def _guard_of(X, y):
    # some checks fit the same rows in two layouts, where only noise tells models apart
    wish = {"charges": 20, "threshold": 0.9, "vacuous": True, "overlapping": True, "noise": 0.0}
    try:
        return made_guard(X, y, queries=100, choices=[2], confidence=0.9, seed=0, **wish)
    except InputError:
        return None


INNER = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)


def test_the_guard_of_a_check_is_asked(train):
    search = OnItsOwnRows(INNER, None).fit(train[0][:100], train[1][:100])
    assert len(search.guard_results_) == 2
    assert search.best_answer_.query in (1, 2)


@pytest.mark.long(*GUARD, "integrations/reusable_holdout_sklearn")
@parametrize_with_checks([OnItsOwnRows(INNER, None)])
def test_scikit_learns_checks_pass(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data of some checks do not converge
        check(estimator)


# ---- what is measured in a worker


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
    concealed = [one.found for one in measured]
    view = guard._view
    way = view.way_of(kind, paired=False, guarded=False)
    found = [view.content.reveal(one.found, view.about(way, one.content)) for one in measured]
    assert found[0].tolist() == found[1].tolist()
    assert concealed[0] != concealed[1]
    assert found[3] is None
    assert len({len(one) for one in concealed}) == 1
    assert not any(found[0].tobytes() in one for one in concealed)
    assert guard.queries_asked == 0


@for_each(
    "change",
    [
        lambda one, other: one._replace(found=other.found),
        lambda one, other: one._replace(content=other.content),
        lambda one, _: one._replace(found=one.found[:-1] + bytes([one.found[-1] ^ 1])),
        lambda one, _: one._replace(found=b""),
    ],
)
def test_what_was_measured_of_one_model_is_no_answer_about_another(make_guard, data, change):
    guard, (X, y) = make_guard(), data
    models = [LogisticRegression(C=C).fit(X[:500], y[:500]) for C in (1e-4, 1.0)]
    for kind, ask in (
        ("evaluate", lambda one: guard.ask([Question("evaluate", one, 0.5)])),
        ("choose", lambda one: guard.ask([Question("choose", [one], [0.5])])),
    ):
        one, other = (guard.measure(model, prior=0.5, way=kind) for model in models)
        refuses(InputError, "must come from this guard's measure", ask, change(one, other))
    wrong = guard.measure(models[0], prior=0.5, way="choose")
    refuses(InputError, "this kind of query", guard.ask, [Question("evaluate", wrong, 0.5)])
    assert guard.queries_asked == 0


def test_a_holdout_in_files_is_asked_chunk_by_chunk(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.iloc[2_000:].assign(label=y[2_000:]).to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    searches = []
    for place in (ParquetRows(tmp_path / "rows.parquet"), frame.iloc[2_000:]):
        labels = "label" if isinstance(place, ParquetRows) else y[2_000:]
        guard = made_guard(place, labels, tolerance=0.15, queries=60, seed=0)
        grid = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=3)
        searches.append(one_by_one(grid, guard).fit(frame.iloc[:2_000], y[:2_000]))
    assert searches[0].guard_results_.equals(searches[1].guard_results_)
