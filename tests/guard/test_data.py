"""Whatever features, labels and predictions come in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import for_each, refuses
from guard.counting import Sign
from sklearn.linear_model import LinearRegression, LogisticRegression

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import mae, resolve_metric

CONTAINERS = {
    "numpy": np.asarray,
    "fortran": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"], index=range(100, 2_100)),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b"]),
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_features_may_come_in_any_container(make_guard, reopen, ledger, labels, container):
    X = np.stack([np.where(labels, 1.0, -1.0), np.zeros(2_000)], axis=1)
    wrapped = CONTAINERS[container](X)
    with make_guard(ledger, X=wrapped) as guard:
        assert guard.final(Sign()).value == 1.0
    assert reopen(ledger, CONTAINERS[container](X)).final(Sign()).replayed


def test_a_list_of_other_than_as_many_rows_is_refused(make_guard, labels):
    with pytest.raises(InputError, match="the same number of rows; got 2 and 2,000; nothing was made"):
        make_guard(X=[[1.0], [2.0]], y=labels)
    refuses(InputError, "transpose X", make_guard, X=np.zeros((3, len(labels))), y=labels)


def test_the_model_gets_the_features_in_their_own_container(make_guard, labels):
    seen = []

    class Looking(Sign):
        def predict(self, X):
            seen.append(type(X))
            return super().predict(X)

    for wrap in CONTAINERS.values():
        X = wrap(np.zeros((2_000, 2)))
        make_guard(X=X).evaluate(Looking(), prior=0.5)
        assert seen.pop() is type(X)


def test_equal_sparse_holdouts_are_the_same_holdout(make_guard, reopen, ledger):
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(np.where(rng.random((2_000, 5)) < 0.1, rng.random((2_000, 5)), 0.0))
    make_guard(ledger, X=X)
    assert reopen(ledger, X.tocoo()).queries_asked == 0
    assert reopen(ledger, X.tocsc()).queries_asked == 0


def test_explicit_zeros_do_not_make_another_holdout(make_guard, reopen, ledger):
    coordinates = np.arange(2_000), np.zeros(2_000, dtype=int)
    X = scipy.sparse.coo_array((np.ones(2_000), coordinates), shape=(2_000, 5)).tocsr()
    zero = scipy.sparse.csr_array(([0.0], ([7], [3])), shape=(2_000, 5))
    stored = scipy.sparse.csr_array(scipy.sparse.hstack([X[:, :3], zero[:, 3:]]))
    assert (stored.nnz, stored.count_nonzero()) == (2_001, 2_000)
    make_guard(ledger, X=X)
    assert reopen(ledger, stored).queries_asked == 0


STRINGS = np.array(["no", "yes"])


@for_each(
    "wrap",
    [
        *(lambda y: y, lambda y: y.astype(object), list, pd.Series),
        *(lambda y: pd.Series(pd.Categorical(y)), lambda y: pd.Series(y, dtype="string"), pl.Series),
        lambda y: pl.Series(y).cast(pl.Categorical),
    ],
    ids=["numpy", "object", "list", "pandas", "categorical", "string dtype", "polars", "polars categorical"],
)
def test_labels_may_be_text(make_guard, labels, scoring, wrap):
    guard = make_guard(y=wrap(STRINGS[labels]))
    assert guard.final(wrap(STRINGS[scoring(0.9)])).value == 0.9
    assert guard.final(STRINGS[scoring(0.9)]).replayed


def test_text_labels_from_a_model(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=STRINGS[y])
    answer = guard.evaluate(LogisticRegression(), X_train, STRINGS[y_train])
    assert answer.prior > 0.7
    assert not answer.charged


def test_booleans_are_labels(make_guard, labels, scoring):
    guard = make_guard(y=labels.astype(bool))
    assert guard.final(scoring(0.9).astype(bool)).value == 0.9


def test_roc_auc_takes_probabilities_and_scores(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(metric="roc_auc", X=X, y=y, queries=5, charges=2, threshold=0.2, estimate=0.9)
    model = LogisticRegression().fit(X_train, y_train)
    assert not guard.evaluate(model, X_train, y_train).charged
    from sklearn.metrics import roc_auc_score

    backwards = 1.0 - model.predict_proba(X)[:, 1]
    assert guard.evaluate(backwards, prior=0.5).charged
    assert guard.final(backwards).value == pytest.approx(roc_auc_score(y, backwards), abs=1e-6)


@pytest.fixture
def multiclass():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2_600, 3))
    y = np.argmax(X + rng.normal(scale=0.5, size=X.shape), axis=1)
    return X[:600], y[:600], X[600:], y[600:]


@for_each("metric", ["accuracy", "balanced_accuracy", "log_loss", "brier"])
def test_several_classes(make_guard, multiclass, metric):
    X_train, y_train, X, y = multiclass
    bound = resolve_metric(metric)
    span = bound.upper - bound.lower
    guard = make_guard(
        metric=metric,
        X=X,
        y=np.array(["red", "green", "blue"])[y],
        queries=10,
        charges=2,
        threshold=0.25 * span,
        noise=0.0,
        estimate=None,
    )
    answer = guard.evaluate(LogisticRegression(), X_train, np.array(["red", "green", "blue"])[y_train])
    assert not answer.charged
    assert answer.low <= answer.value <= answer.high
    model = LogisticRegression().fit(X_train, np.array(["red", "green", "blue"])[y_train])
    worst = bound.lower if bound.greater_is_better else bound.upper
    assert guard.evaluate(model, prior=worst).charged
    assert abs(guard.final(model).value - answer.prior) < 0.1 * span


def test_a_model_that_never_saw_a_class_has_probability_zero_for_it(make_guard, multiclass):
    X_train, y_train, X, y = multiclass
    two = y_train < 2
    guard = make_guard(metric="brier", X=X, y=y, threshold=0.3, queries=5, charges=1, estimate=None)
    model = LogisticRegression().fit(X_train[two], y_train[two])
    answer = guard.final(model)
    table = np.column_stack([model.predict_proba(X), np.zeros(len(X))])
    bound = resolve_metric("brier")
    assert answer.value == pytest.approx(bound.measure(y, table), abs=1e-6)


def test_real_values_with_bounds(make_guard):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_600, 3))
    y = np.clip(X @ [1.0, 0.5, 0.0] + rng.normal(scale=0.1, size=2_600), -5.0, 5.0)
    guard = make_guard(
        metric=mae(lower=-5.0, upper=5.0),
        X=X[600:],
        y=y[600:],
        threshold=1.0,
        noise=0.0,
        estimate=None,
        queries=5,
        charges=2,
    )
    answer = guard.evaluate(LinearRegression(), X[:600], y[:600])
    assert not answer.charged
    assert guard.metric.lower <= answer.low <= answer.value <= answer.high <= guard.metric.upper
    assert guard.evaluate(np.full(2_000, -5.0), prior=0.1).charged
    wrong = guard.final(np.full(2_000, -5.0))
    assert wrong.value == pytest.approx(np.mean(np.abs(y[600:] + 5.0)), abs=1e-6)
