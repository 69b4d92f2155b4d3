"""The scorer inside scikit-learn's own loops: what is asked, what is charged, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import for_each, refuses
from integrations.sklearn.models import FailsOnTheHoldout
from made_guards import made_guard
from reusable_holdout_sklearn import guarded_scorer, prior_scorer
from reusable_holdout_sklearn.scored_rows import ScoredRows
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score, cross_validate

from reusable_holdout import Question, verify
from reusable_holdout.errors import InputError, ModelError, Refused
from reusable_holdout.metrics import mae

MODEL, GRID = LogisticRegression(), {"C": [1e-4, 1.0]}
JOBS = pytest.mark.parametrize("n_jobs", [1, 2])


@pytest.fixture
def guard(make_guard):
    return make_guard(tolerance=0.2, queries=200)


@pytest.fixture
def model(train):
    X, y = train
    return LogisticRegression().fit(X[:500], y[:500])


@pytest.fixture
def rows(train):
    """Rows on which the model was not fitted."""
    X, y = train
    return X[500:], y[500:]


def shuffled(X, column=0):
    X = X.copy()
    X[:, column] = np.random.default_rng(0).permutation(X[:, column])
    return X


# ---- what is asked


@JOBS
@pytest.mark.parametrize("shape", [lambda one: one, lambda one: {"guard": one, "acc": "accuracy"}])
def test_cross_validation_asks_once_for_each_fold_alone_and_among_others(guard, train, n_jobs, shape):
    scoring = shape(guarded_scorer(guard))
    scores = cross_validate(MODEL, *train, scoring=scoring, cv=4, n_jobs=n_jobs, return_train_score=True)
    plain = cross_validate(MODEL, *train, cv=4)
    name = "guard" if isinstance(scoring, dict) else "score"
    assert guard.queries_asked == 4
    assert sorted(guard.history()["prior"]) == pytest.approx(sorted(plain["test_score"]))
    assert sorted(scores[f"test_{name}"]) == sorted(guard.history()["value"])
    np.testing.assert_array_equal(scores[f"train_{name}"], scores[f"test_{name}"])  # a model has one answer
    assert verify(guard.ledger).sound


@for_each(
    ("metric", "better"),
    [("roc_auc", 1), ("log_loss", -1), ("neg_log_loss", -1), ("brier", -1), ("balanced_accuracy", 1)],
)
def test_metrics_of_probabilities_and_scores_work_and_losses_are_negated(make_guard, train, metric, better):
    guard = make_guard(metric=metric, tolerance=0.4)
    scores = cross_val_score(MODEL, *train, scoring=guarded_scorer(guard))
    assert (np.sign(scores) == better).all()
    sign = 1 if guard.metric.greater_is_better else -1
    assert sorted(sign * scores) == sorted(guard.history()["value"])


def test_regressors_frames_and_text_labels_work(data):
    X, y = data
    values = np.clip(X[:, 0] + np.random.default_rng(0).normal(size=len(X)), -5, 5)
    wish = {"tolerance": 2.5, "queries": 20}
    guard = made_guard(X[2_000:], values[2_000:], metric=mae(lower=-5, upper=5), **wish)
    scores = cross_val_score(LinearRegression(), X[:2_000], values[:2_000], scoring=guarded_scorer(guard))
    assert sorted(-scores) == sorted(guard.history()["value"])
    frame, label = pd.DataFrame(X, columns=list("abcd")), np.where(y == 1, "yes", "no")
    guard = made_guard(frame[2_000:], label[2_000:], tolerance=0.15, queries=60)
    scores = cross_val_score(MODEL, frame[:2_000], label[:2_000], scoring=guarded_scorer(guard))
    assert (scores > 0.7).all()


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


# ---- one model has one answer


def test_a_refitted_estimator_is_a_new_question(make_guard, train, rows):
    (X, y), guard, model = train, make_guard(), LogisticRegression()
    scorer = guarded_scorer(guard)
    scorer(model.fit(X[:500], y[:500]), *rows)
    answer = scorer(model.fit(X[500:550], y[500:550]), *rows)
    assert guard.queries_asked == 2
    assert scorer(model, rows[0].copy(), rows[1]) == answer == guard.history()["value"].iloc[-1]
    assert guard.queries_asked == 2


def test_what_evaluate_was_asked_with_the_same_prior_is_the_same_question(make_guard, model, rows):
    guard = make_guard()
    answer = guard.evaluate(model, prior=model.score(*rows))
    assert guarded_scorer(guard)(model, *rows) == answer.value
    assert guard.queries_asked == 1


def test_what_a_scorer_was_told_is_no_answer_to_a_gate_or_of_another_model(make_guard, model, rows):
    guard, other = make_guard(), LogisticRegression(C=1e-3).fit(*rows)
    told = guarded_scorer(guard)(model, *rows)
    (reached,) = guard.ask([Question("gate", model, 0.99, once=True)])
    assert (reached.way, reached.outcome, reached.replayed) == ("gate", "not shown", False)
    ((same, another),) = guard.ask([Question("evaluate", [model, other], [0.5, 0.7], once=True)])
    assert (same.replayed, same.value, another.replayed) == (True, told, False)
    assert guarded_scorer(guard)(other, *rows) == another.value
    assert guard.queries_asked == 3


# ---- rows with shuffled columns


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_matrix, lambda X: X.astype(object)])
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_shuffled_columns_are_refused_and_free(make_guard, model, rows, kind):
    guard, (X, y) = make_guard(), rows
    scorer = guarded_scorer(guard)
    scorer(model, kind(X), y)
    every = X[np.random.default_rng(0).permutation(len(X))]
    for changed in (shuffled(X), shuffled(shuffled(X), 1), every):
        refused = refuses(Refused, r"columns shuffled.*prior_scorer", scorer, model, kind(changed), y)
        assert type(refused.error) is InputError
    assert guard.queries_asked == 1


def test_of_a_wide_table_some_columns_are_enough(data):
    X, y = np.hstack([data[0][:500]] * 40), data[1][:500]
    known = ScoredRows()
    assert not known.are_shuffled(b"model", X, y, 0.9)
    assert not known.are_shuffled(b"another", shuffled(X), y, 0.5)
    assert all(known.are_shuffled(b"model", shuffled(X, column), y, 0.5) for column in (0, 1, 159))


def test_a_shuffle_that_changes_no_prediction_changes_no_answer(make_guard, rows):
    constant, scorer = DummyClassifier().fit(*rows), guarded_scorer(make_guard())
    assert scorer(constant, *rows) == scorer(constant, shuffled(rows[0]), rows[1])


@JOBS
def test_permutation_importance_is_measured_by_the_scorer_of_the_prior(guard, model, rows, n_jobs):
    wish = {"n_repeats": 3, "random_state": 0, "n_jobs": n_jobs}
    found = permutation_importance(model, *rows, scoring=prior_scorer(guard), **wish)
    plain = permutation_importance(model, *rows, **wish)
    np.testing.assert_allclose(found.importances, plain.importances, atol=1e-9)
    assert guard.queries_asked == 0


class HoldsALock(LogisticRegression):
    def __getstate__(self):
        raise TypeError("it holds a lock")


def test_a_model_that_cannot_be_read_whole_is_scored_once(make_guard, train, rows):
    guard, (X, y) = make_guard(), rows
    model, scorer = HoldsALock().fit(train[0][:500], train[1][:500]), guarded_scorer(guard)
    scorer(model, X[:700], y[:700])
    refuses(Refused, r"read whole.*nothing was charged", scorer, model, X[700:], y[700:])
    assert guard.queries_asked == 1


# ---- other refusals


def test_models_of_some_columns_are_refused_with_the_way_to_do_it(guard, train):
    X, y = train
    narrow = clone(MODEL).fit(X[:, :2], y)
    for given in (X[:100, :2], pd.DataFrame(X[:100, :2]), sparse.csr_matrix(X[:100, :2]), X[:100, 0]):
        with pytest.raises(Refused, match=r"the holdout's 4 columns.*nothing was charged; .*pipeline"):
            guarded_scorer(guard)(narrow, given, y[:100])
    assert guard.queries_asked == 0


def test_tuned_thresholds_are_refused_with_the_way_to_do_it(guard, train):
    tuned = TunedThresholdClassifierCV(MODEL, scoring=guarded_scorer(guard))
    refuses(Refused, r"guard\.evaluate\(tuned", tuned.fit, *train)
    assert guard.queries_asked == 0
    cross_val_score(TunedThresholdClassifierCV(MODEL), *train, scoring=guarded_scorer(guard), cv=2)
    assert guard.queries_asked == 2


def test_guards_that_do_not_score_a_model_are_refused(make_guard):
    with pytest.raises(InputError, match=r"plan is for gates.*guard\.gate"):
        guarded_scorer(make_guard(gates=True, tolerance=0.1))


def test_a_model_that_fails_on_the_holdout_is_a_failed_fold(make_guard, train):
    guard = make_guard()
    with pytest.warns(UserWarning, match="Scoring failed") as caught:
        scores = cross_val_score(FailsOnTheHoldout(), *train, cv=2, scoring=guarded_scorer(guard))
    assert np.isnan(scores).all()
    assert "private words" not in str(caught[0].message)
    with pytest.raises(ModelError):
        cross_val_score(FailsOnTheHoldout(), *train, cv=2, scoring=guarded_scorer(guard), error_score="raise")


# ---- halts and budgets


def test_a_search_can_be_cloned_and_copied_and_keeps_one_budget(make_guard, train):
    for guard in (make_guard(), make_guard(ledger=None)):
        search = GridSearchCV(MODEL, {"C": [0.1]}, scoring=guarded_scorer(guard), cv=2)
        for other in (clone(search), copy.deepcopy(search)):
            other.fit(*train)
        assert guard.queries_asked == 2  # the second search asks the same questions


def test_a_pickled_scorer_carries_no_rows_and_shares_the_budget(make_guard, model, rows):
    guard = make_guard()
    scorer = guarded_scorer(guard)
    scorer(model, *rows)
    pickled = pickle.dumps(scorer)
    assert len(pickled) < 20_000
    assert rows[0][0].tobytes() not in pickled
    pickle.loads(pickled)(LogisticRegression(C=0.1).fit(*rows), *rows)
    assert guard.queries_asked == 2


# ---- metadata


def test_weights_reach_the_prior_when_they_are_requested(make_guard, train):
    X, y = train
    weights = np.where(y == 1, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        for requested in (False, True):
            guard = make_guard(tolerance=None, charges=50, threshold=0.9, noise=1e-6)
            scorer = guarded_scorer(guard).set_score_request(sample_weight=requested)
            scorer = pickle.loads(pickle.dumps(clone(scorer, safe=False)))
            plain = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=requested)
            model = LogisticRegression().set_fit_request(sample_weight=False)
            params = {"sample_weight": weights} if requested else {}
            scores = cross_validate(model, X, y, cv=3, scoring={"guard": scorer, "acc": plain}, params=params)
            np.testing.assert_allclose(sorted(guard.history()["prior"]), sorted(scores["test_acc"]))


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_the_fit_are_not_an_error(guard, train, routing):
    weights = {"sample_weight": np.ones(len(train[1]))}
    with sklearn.config_context(enable_metadata_routing=routing):
        model = LogisticRegression().set_fit_request(sample_weight=True) if routing else MODEL
        scores = cross_validate(model, *train, cv=3, scoring=guarded_scorer(guard), params=weights)
    assert not np.isnan(scores["test_score"]).any()
    assert guard.queries_asked == 3
