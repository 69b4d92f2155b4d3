"""Asking about models: fits, priors, failures, and which models are one question."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from cases import for_each, refuses
from guard.counting import Crashing
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import verify
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.models import check_model, fitted, predictions_of
from reusable_holdout.guard.training_estimate import training_estimate
from reusable_holdout.metrics import mae, resolve_metric


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
        def __init__(self):
            self.lock = threading.Lock()

        def predict(self, X):
            return np.ones(len(X), dtype=int)

    guard, model = make_guard(X=problem[2], y=problem[3]), Local()
    assert not guard.evaluate(model, prior=0.5).replayed
    assert not guard.evaluate(model, prior=0.5).replayed
    assert guard.queries_asked == 2


@pytest.mark.parametrize("nonsense", [np.nan, 7, -1, 0.5], ids=str)
def test_predictions_that_cannot_be_scored_are_a_failure_and_the_ledger_stays_sound(
    make_guard, ledger, problem, nonsense
):
    class Nonsense:
        def predict(self, X):
            return np.full(len(X), nonsense if len(X) == 2_000 else 0)

    guard = make_guard(ledger, X=problem[2], y=problem[3])
    refuses(ModelError, "withheld", guard.evaluate, Nonsense(), prior=0.5)
    assert (guard.queries_asked, int(guard.history()["charged"].sum())) == (1, 1)
    assert verify(ledger).problems == []


# ---- the parts: predictions


class Fixed:
    """Gives back what it was made with."""

    def __init__(self, **methods):
        for name, value in methods.items():
            setattr(self, name, value if name.endswith("_") else lambda _, value=value: value)


TWO = np.array([0, 1])
THREE = np.array(["a", "b", "c"])


def test_probabilities_come_in_the_order_of_the_guards_classes():
    model = Fixed(predict_proba=np.array([[0.2, 0.8]]), classes_=np.array(["c", "a"]))
    assert predictions_of(model, None, response="probabilities", classes=THREE).tolist() == [[0.8, 0.0, 0.2]]


def test_a_model_that_does_not_name_its_classes_is_taken_as_it_is():
    model = Fixed(predict_proba=np.array([[0.2, 0.8]]))
    assert predictions_of(model, None, response="probabilities", classes=TWO).tolist() == [[0.2, 0.8]]


def test_scores_prefer_the_decision_function_and_fall_back_on_the_last_class():
    both = Fixed(decision_function=np.array([3.0]), predict_proba=np.array([[0.2, 0.8]]))
    assert predictions_of(both, None, response="scores", classes=TWO).tolist() == [3.0]
    one = Fixed(predict_proba=np.array([[0.8, 0.2]]), classes_=np.array([1, 0]))
    assert predictions_of(one, None, response="scores", classes=TWO).tolist() == [0.8]


def test_a_model_that_saw_one_class_scores_the_other_with_zero(problem):
    X_train, _, X, _ = problem
    model = DummyClassifier().fit(X_train, np.zeros(600, dtype=int))
    assert predictions_of(model, X, response="scores", classes=TWO).tolist() == [0.0] * 2_000


# ---- the parts: what is refused before the holdout is touched


@for_each(
    ("model", "response", "words"),
    [
        (Fixed(predict_proba=0), "labels", "predict;"),
        (Fixed(predict=0), "probabilities", "predict_proba;"),
        (Fixed(predict=0), "scores", "decision_function or predict_proba"),
        (Fixed(predict=0, n_features_in_=3), "labels", "4 columns; it was fitted on 3"),
        (Fixed(predict=0, classes_=[0, 1, 2]), "labels", "3 classes, and some are not"),
        (Fixed(predict=0, classes_=["0", "1"]), "labels", "classes"),
        (Fixed, "labels", "must be an object; got the class Fixed"),
        (SVC(), "probabilities", "predict_proba; got SVC"),  # it has one only if asked to
    ],
)
def test_what_cannot_fit_is_refused_by_what_is_public(model, response, words):
    refuses(InputError, words, check_model, model, np.zeros((5, 4)), response=response, classes=TWO)


@for_each("wrap", [np.asarray, scipy.sparse.csr_array, list], ids=["array", "sparse", "list"])
@for_each("said", [{}, {"n_features_in_": 4}, {"classes_": [1]}, {"classes_": [False, True]}])
def test_what_may_fit_is_let_through_and_not_called(wrap, said):
    class Untouched:
        def predict(self, X):
            raise AssertionError

    model = Untouched()
    vars(model).update(said)
    check_model(model, wrap(np.zeros((5, 4))), response="labels", classes=TWO)


# ---- the parts: fits


@pytest.mark.parametrize("given", [(None, None), ([[0.0]], None), (None, [0])], ids=["none", "X", "y"])
def test_an_unfitted_model_needs_both_features_and_labels(given):
    refuses(InputError, "unfitted LogisticRegression", fitted, LogisticRegression(), *given)


# ---- the parts: training estimates


def estimate(model, X, y, *, cv=5, metric="accuracy", classes=TWO):
    return training_estimate(resolve_metric(metric), model, X, y, cv=cv, classes=classes).mean


def test_the_cross_validated_estimate_is_the_mean_of_the_folds(problem):
    X, y, folds = problem[0], problem[1], KFold(3)
    model, scores = DecisionTreeClassifier(random_state=0), []
    for train, test in folds.split(X):
        scores.append(np.mean(model.fit(X[train], y[train]).predict(X[test]) == y[test]))
    assert estimate(model, X, y, cv=folds) == pytest.approx(np.mean(scores), abs=1e-12)


def test_folds_hold_every_class_in_its_share_and_values_are_split_as_they_come(problem):
    X, y = problem[0], np.repeat([0, 1], [560, 40])
    for metric, classes, splitter in (
        ("accuracy", TWO, StratifiedKFold),
        (mae(lower=0.0, upper=1.0), None, KFold),
    ):
        model, scores = DecisionTreeClassifier(random_state=0), []
        for train, test in splitter(3, shuffle=True, random_state=0).split(X, y):
            right = (model.fit(X[train], y[train]).predict(X[test]) == y[test]).mean()
            scores.append(right if metric == "accuracy" else 1.0 - right)
        estimated = estimate(model, X, y, cv=3, metric=metric, classes=classes)
        assert estimated == pytest.approx(np.mean(scores), abs=1e-12)


def test_a_class_rarer_than_the_folds_does_not_stop_the_estimate(problem):
    y = np.zeros(600, dtype=int)
    y[:2] = 1
    assert estimate(DummyClassifier(), problem[0], y) == pytest.approx(598 / 600)


def test_a_fold_without_a_class_is_measured_with_the_guards_classes(problem):
    labels = THREE[problem[1]]
    model = LogisticRegression()
    assert 0.0 < estimate(model, problem[0], labels, metric="brier", classes=THREE) < 0.5


def test_a_model_without_parameters_needs_a_stated_prior(problem):
    refuses(InputError, "state a prior", estimate, Crashing(), problem[0], problem[1])


# ---- found while testing, not mended: strict, so that whoever mends them is told to take the mark away


def test_a_model_that_scales_in_place_does_not_change_the_holdout(make_guard, problem):
    X_train, y_train, X, y = problem
    X_train, X = X_train * 5.0 + 50.0, X * 5.0 + 50.0
    careless = make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(X_train.copy(), y_train)
    careful = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
    truth = float(np.mean(careful.predict(X) == y))
    guard = make_guard(X=X.copy(), y=y)
    guard.evaluate(careless, prior=0.5)
    assert guard.final(careful).value == pytest.approx(truth, abs=1e-9)


ONE_QUESTION = {
    "a k-nearest-neighbours model": KNeighborsClassifier(),  # its tree counts what it searches
    "a grid search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),  # it holds masked arrays
}


@pytest.mark.parametrize("name", ONE_QUESTION)
def test_the_same_fitted_model_is_one_question(make_guard, problem, name):
    guard = make_guard(X=problem[2], y=problem[3])
    model = ONE_QUESTION[name].fit(problem[0], problem[1])
    guard.evaluate(model, prior=0.5)
    assert guard.evaluate(model, prior=0.5).replayed


def test_a_model_that_was_saved_and_loaded_is_one_question(make_guard, problem):
    guard = make_guard(X=problem[2], y=problem[3])
    model = LogisticRegression().fit(problem[0], problem[1])
    guard.evaluate(model, prior=0.5)
    assert guard.evaluate(pickle.loads(pickle.dumps(model)), prior=0.5).replayed


def test_scores_of_a_model_with_its_classes_the_other_way_round_are_turned():
    model = Fixed(decision_function=np.array([3.0]), classes_=np.array([1, 0]))
    assert predictions_of(model, None, response="scores", classes=TWO).tolist() == [-3.0]


class Plain:
    """Fits and predicts, but knows nothing of scikit-learn."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.ones(len(X), dtype=int)


def test_a_fitted_model_of_another_library_is_taken_to_be_ready():
    model = Plain()
    assert fitted(model, None, None) is model
