"""Asking about models: fits, priors, failures, and which models are one question."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import (
    Halted,
    ModelError,
)

BOTH = pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])


def test_training_data_give_the_prior_and_the_fit(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    answer = guard.evaluate(LogisticRegression(), X_train, y_train)
    model = LogisticRegression().fit(X_train, y_train)
    assert not answer.charged
    assert abs(answer.prior - model.score(X_train, y_train)) < 0.05
    assert answer.name == "LogisticRegression"
    assert guard.history()["name"].tolist() == ["LogisticRegression"]


def test_an_unfitted_model_stays_unfitted(make_guard, problem):
    X_train, y_train, X, y = problem
    model = LogisticRegression()
    make_guard(X=X, y=y).evaluate(model, X_train, y_train)
    assert not hasattr(model, "coef_")


def test_the_fitted_model_is_asked_about_and_not_refitted(make_guard, problem):
    X_train, y_train, X, y = problem
    inverted = LogisticRegression().fit(X_train, 1 - y_train)
    answer = make_guard(X=X, y=y).evaluate(inverted, X_train, y_train)
    assert answer.prior > 0.7  # its recipe is fine
    assert answer.charged
    assert answer.value < 0.3  # it is not


def test_a_stated_prior_is_taken_as_given(make_guard, problem):
    X_train, y_train, X, y = problem
    model = LogisticRegression().fit(X_train, y_train)
    answer = make_guard(X=X, y=y).evaluate(model, prior=0.123)
    assert answer.prior == 0.123
    assert answer.charged


def test_a_stated_prior_lets_training_data_serve_the_fit_alone(make_guard, problem):
    X_train, y_train, X, y = problem
    answer = make_guard(X=X, y=y).evaluate(LogisticRegression(), X_train, y_train, prior=0.8, name="mine")
    assert (answer.prior, answer.charged, answer.name) == (0.8, False, "mine")


def test_the_in_sample_prior_is_the_training_score(make_guard, problem):
    X_train, y_train, X, y = problem
    answer = make_guard(X=X, y=y).evaluate(
        DecisionTreeClassifier(random_state=0), X_train, y_train, prior="in-sample"
    )
    assert answer.prior == 1.0  # a full tree knows its training rows
    assert answer.charged


@pytest.mark.parametrize("cv", [2, 5])
def test_the_cross_validated_prior_is_repeatable(make_guard, problem, cv):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
    first = guard.evaluate(tree, X_train, y_train, cv=cv)
    assert first.prior < 0.9  # unlike its in-sample score
    assert guard.evaluate(tree, X_train, y_train, cv=cv).replayed


def test_equal_models_are_one_question_and_other_models_are_others(make_guard, problem):
    X_train, y_train, X, y = problem
    guard = make_guard(X=X, y=y)
    first = DummyClassifier(strategy="constant", constant=1).fit(X_train, y_train)
    same = DummyClassifier(strategy="constant", constant=1).fit(X_train, y_train)
    other = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X_train, np.ones(600, dtype=int))
    assert not guard.evaluate(first, prior=0.5).replayed
    assert guard.evaluate(same, prior=0.5).replayed
    # it predicts the same for every row; that is not for the analyst to learn for free
    assert not guard.evaluate(other, prior=0.5).replayed
    assert guard.queries_asked == 2


def test_a_model_that_cannot_be_pickled_is_a_new_question_each_time(make_guard, problem):
    class Local:
        def predict(self, X):
            return np.ones(len(X), dtype=int)

    guard, model = make_guard(X=problem[2], y=problem[3]), Local()
    assert not guard.evaluate(model, prior=0.5).replayed
    assert not guard.evaluate(model, prior=0.5).replayed
    assert guard.queries_asked == 2


class Crashing:
    """A model that fails on the holdout, and tells its rows."""

    def predict(self, X):
        raise ValueError(f"cannot digest {X!r}")


@BOTH
def test_a_model_that_fails_takes_one_charge_and_no_second(make_guard, place, problem):
    guard = make_guard(place, X=problem[2], y=problem[3])
    for _ in range(2):  # the second is a replay
        with pytest.raises(ModelError, match="withheld"):
            guard.evaluate(Crashing(), prior=0.5)
    history = guard.history()
    assert history["charged"].tolist() == [True]
    assert history[["low", "high"]].to_numpy().tolist() == [[0.0, 1.0]]
    assert guard.charges_left < 3


def test_failures_alone_halt_the_guard(make_guard, problem):
    guard = make_guard(X=problem[2], y=problem[3])
    for prior in (0.5, 0.51, 0.52):
        with pytest.raises((ModelError, Halted)):
            guard.evaluate(Crashing(), prior=prior)
    with pytest.raises(Halted) as halt:
        guard.evaluate(Crashing(), prior=0.53)
    assert halt.value.reason in {"charges", "code"}
    with pytest.raises(ModelError):  # a replay, also after the halt
        guard.evaluate(Crashing(), prior=0.5)
