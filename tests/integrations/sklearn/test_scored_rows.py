"""A model that is scored on other rows gives its one answer again; rows with shuffled columns are refused."""

import pickle
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from reusable_holdout_sklearn import guarded_scorer
from reusable_holdout_sklearn.scored_rows import ScoredRows
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from reusable_holdout.errors import InputError, Refused


@pytest.fixture
def model(data):
    X, y = data
    return LogisticRegression().fit(X[:500], y[:500])


@pytest.fixture
def rows(data):
    """Rows on which the model was not fitted."""
    X, y = data
    return X[500:2_000], y[500:2_000]


def shuffled(X, column=0):
    X = X.copy()
    X[:, column] = np.random.default_rng(0).permutation(X[:, column])
    return X


def test_one_model_has_one_answer_whatever_rows_it_is_scored_on(make_guard, model, rows):
    guard, (X, y) = make_guard(), rows
    scorer = guarded_scorer(guard)
    parts = [slice(0, 300), slice(300, 900), slice(700, 1_500), slice(0, 300)]
    assert len({scorer(model, X[part], y[part]) for part in parts}) == 1
    assert guard.queries_asked == 1
    assert guard.history()["prior"].tolist() == [model.score(X[:300], y[:300])]


def test_another_scorer_another_process_and_a_clone_give_the_recorded_answer(make_guard, model, rows):
    guard, (X, y) = make_guard(), rows
    answer = guarded_scorer(guard)(model, X[:300], y[:300])
    again = pickle.loads(pickle.dumps(model))
    assert guarded_scorer(guard)(again, X[300:], y[300:]) == answer
    frozen = FrozenEstimator(model)
    scores = cross_val_score(frozen, X, y, cv=4, scoring=guarded_scorer(guard), n_jobs=2)
    assert len(set(scores)) == 1
    assert guard.queries_asked == 2  # the frozen one is a model of its own


def test_what_evaluate_was_asked_with_the_same_prior_is_the_same_question(make_guard, model, rows):
    guard, (X, y) = make_guard(), rows
    answer = guard.evaluate(model, prior=model.score(X, y))
    assert guarded_scorer(guard)(model, X, y) == answer.value
    assert guard.queries_asked == 1


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_matrix, lambda X: X.astype(object)])
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_shuffled_columns_are_refused_and_free(make_guard, model, rows, kind):
    guard, (X, y) = make_guard(), rows
    scorer = guarded_scorer(guard)
    scorer(model, kind(X), y)
    with pytest.raises(Refused, match=r"columns shuffled.*nothing was charged.*prior_scorer") as refused:
        scorer(model, kind(shuffled(X)), y)
    assert type(refused.value.error) is InputError
    assert guard.queries_asked == 1


def test_of_a_wide_table_some_columns_are_enough(data):
    X, y = np.hstack([data[0][:500]] * 40), data[1][:500]
    known = ScoredRows()
    assert not known.are_shuffled(b"model", X, y, 0.9)
    assert not known.are_shuffled(b"another", shuffled(X), y, 0.5)
    assert all(known.are_shuffled(b"model", shuffled(X, column), y, 0.5) for column in (0, 1, 159))


def test_the_only_column_and_all_of_them_are_known_when_they_are_shuffled(make_guard, model, rows):
    guard, (X, y) = make_guard(), rows
    scorer = guarded_scorer(guard)
    scorer(model, X, y)
    every = X[np.random.default_rng(0).permutation(len(X))]
    for changed in (every, shuffled(shuffled(X), 1)):
        with pytest.raises(Refused, match="columns shuffled"):
            scorer(model, changed, y)


def test_a_shuffle_that_changes_no_prediction_changes_no_answer(make_guard, rows):
    guard, (X, y) = make_guard(), rows
    constant, scorer = DummyClassifier().fit(X, y), guarded_scorer(guard)
    assert scorer(constant, X, y) == scorer(constant, shuffled(X), y)


def _falls(scorer, model, X, y):
    return scorer(model, shuffled(X), y)


@pytest.mark.usefixtures("fresh_workers")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_know_the_rows_of_the_process_that_sent_them(make_guard, model, rows, backend):
    guard = make_guard()
    scorer = guarded_scorer(guard)
    scorer(model, *rows)
    with pytest.raises(Refused, match="columns shuffled"):
        Parallel(2, backend=backend)(delayed(_falls)(scorer, model, *rows) for _ in range(2))
    assert guard.queries_asked == 1


def test_a_file_does_not_hold_the_rows_and_a_worker_gets_digests_alone(make_guard, model, rows):
    scorer = guarded_scorer(make_guard())
    scorer(model, *rows)
    assert len(pickle.dumps(scorer)) < 2_000
    sent = bytes(ForkingPickler.dumps(scorer))
    assert rows[0][0].tobytes() not in sent
    assert len(sent) < 20_000


class HoldsALock(LogisticRegression):
    def __getstate__(self):
        raise TypeError("it holds a lock")


def test_a_model_that_cannot_be_read_whole_is_scored_once(make_guard, data, rows):
    guard, (X, y) = make_guard(), rows
    model, scorer = HoldsALock().fit(data[0][:500], data[1][:500]), guarded_scorer(guard)
    scorer(model, X[:700], y[:700])
    with pytest.raises(Refused, match=r"read whole.*nothing was charged"):
        scorer(model, X[700:], y[700:])
    assert guard.queries_asked == 1


def test_columns_are_told_by_the_same_rows_alone_where_nobody_named_the_features(make_guard, data):
    guard, (X, y) = make_guard(tolerance=0.2), data
    scorer = guarded_scorer(guard)
    RFECV(LogisticRegression(), cv=3, scoring=scorer).fit(X[:2_000], y[:2_000])
    few = SequentialFeatureSelector(LogisticRegression(), n_features_to_select=2, cv=2, scoring=scorer)
    with pytest.raises(Refused, match="features=X"):
        few.fit(X[:1_999], y[:1_999])
