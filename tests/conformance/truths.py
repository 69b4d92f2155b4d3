"""Loops with a guard in them, whose numbers are compared with the truth: the holdout's own scores, computed by hand.

A loop takes a :class:`Rows` and a scoring, and gives its scores. It runs twice: with a guarded scorer, and with a
scorer that knows the holdout. Loops that ask a guard by themselves give pairs of an answer and the truth.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from made_guards import made_guard
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution
from optuna_integration import OptunaSearchCV
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import ReusableHoldout

__all__ = ["ASKING", "REFUSED", "SCORED", "TOLERANCE", "Rows", "guarded_rows"]

TOLERANCE = 0.06
"""How far an agreed answer may be from the holdout's score."""

_TRAIN, _HELD = 600, 2_000
_TREE = DecisionTreeClassifier(random_state=0)  # it knows its training rows by heart
_MODEL = LogisticRegression()
_CS = {"C": [1e-9, 1.0]}  # the first one predicts the larger class


class Rows(NamedTuple):
    """Training rows, the holdout's rows, and a guard of these."""

    guard: ReusableHoldout
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_held: NDArray[np.float64]
    y_held: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    folder: Path
    jobs: int

    @property
    def scorer(self) -> Any:
        return guarded_scorer(self.guard)

    def truth(self, model: Any, *_: Any, sample_weight: Any = None) -> float:
        """Return a model's score on the holdout: the truth that an answer about it must be near, a scorer as well."""
        return float(accuracy_score(self.y_held, model.predict(self.X_held), sample_weight=self.weights))


def guarded_rows(folder: Path, *, jobs: int = 1, weighted: bool = False, **settings: Any) -> Rows:
    """Rows on which the fold's scores are near the holdout's, and a guard of them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(_TRAIN + _HELD, 4))
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.6 * rng.normal(size=len(X)) > 0).astype(np.int64)
    weights = rng.uniform(size=_HELD) if weighted else None
    exact = {"threshold": 0.05, "noise": 1e-6, "charges": 60, "vacuous": True}
    wish = {
        "queries": 500,
        "ledger": folder / "guard.db",
        "unwitnessed": True,
        "seed": 0,
        **(settings or exact),
    }
    guard = made_guard(X[_TRAIN:], y[_TRAIN:], sample_weight=weights, **wish)
    return Rows(guard, X[:_TRAIN], y[:_TRAIN], X[_TRAIN:], y[_TRAIN:], weights, folder, jobs)


# ---- loops that take a scoring


def _train_scores(rows: Rows, scoring: Any) -> Any:
    wish = {"scoring": scoring, "return_train_score": True, "n_jobs": rows.jobs}
    scores = cross_validate(_TREE, rows.X, rows.y, cv=4, **wish)
    return [scores["test_score"], scores["train_score"]]


def _train_scores_of_sorted_labels(rows: Rows, scoring: Any) -> Any:
    """Both folds have the same labels in the same order."""
    least = int(min(rows.y.sum(), len(rows.y) - rows.y.sum())) // 2 * 2
    order = np.concatenate([np.flatnonzero(rows.y == label)[:least] for label in (0, 1)])
    wish = {"scoring": scoring, "return_train_score": True, "n_jobs": rows.jobs}
    scores = cross_validate(_TREE, rows.X[order], rows.y[order], cv=2, **wish)
    return [scores["test_score"], scores["train_score"]]


def _learning(rows: Rows, scoring: Any) -> Any:
    return learning_curve(
        _TREE, rows.X, rows.y, scoring=scoring, cv=3, train_sizes=[0.5, 1.0], n_jobs=rows.jobs
    )[1:3]


def _validation(rows: Rows, scoring: Any) -> Any:
    wish = {"param_name": "max_depth", "param_range": [1, 8], "cv": 3, "n_jobs": rows.jobs}
    return validation_curve(_TREE, rows.X, rows.y, scoring=scoring, **wish)


def _grid(rows: Rows, scoring: Any) -> Any:
    search = GridSearchCV(_MODEL, _CS, scoring=scoring, cv=3, return_train_score=True, n_jobs=rows.jobs)
    results = search.fit(rows.X, rows.y).cv_results_
    return [results["mean_test_score"], results["mean_train_score"]]


def _score_of_a_search(rows: Rows, scoring: Any) -> Any:
    search = GridSearchCV(_TREE, {"max_depth": [None]}, scoring=scoring, cv=3).fit(rows.X, rows.y)
    return [search.score(rows.X, rows.y), search.score(rows.X[:100], rows.y[:100])]


def _nested_scores(rows: Rows, scoring: Any) -> Any:
    search = GridSearchCV(_MODEL, _CS, scoring=scoring, cv=2)
    return cross_val_score(search, rows.X, rows.y, cv=3, n_jobs=rows.jobs)


def _prefit(rows: Rows, scoring: Any) -> Any:
    """Most folds are rows that the model was fitted on."""
    fitted = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(rows.X[150:], rows.y[150:]))
    return cross_val_score(fitted, rows.X, rows.y, scoring=scoring, cv=4, n_jobs=rows.jobs)


def _prefit_in_a_search(rows: Rows, scoring: Any) -> Any:
    fitted = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(rows.X[150:], rows.y[150:]))
    calibrated = CalibratedClassifierCV(fitted, cv=2)
    search = GridSearchCV(calibrated, {"method": ["sigmoid"]}, scoring=scoring, cv=4, n_jobs=rows.jobs)
    return search.fit(rows.X, rows.y).cv_results_["mean_test_score"]


def _halving(rows: Rows, scoring: Any) -> Any:
    wish = {"scoring": scoring, "cv": 2, "min_resources": 200, "random_state": 0, "n_jobs": rows.jobs}
    search = HalvingGridSearchCV(_MODEL, {"C": [1e-9, 1e-8, 1.0]}, **wish)
    return search.fit(rows.X, rows.y).cv_results_["mean_test_score"]


def _weighted_search(rows: Rows, scoring: Any) -> Any:
    search = GridSearchCV(_MODEL, _CS, scoring=scoring, cv=3, n_jobs=rows.jobs)
    weights = np.random.default_rng(2).uniform(size=len(rows.y))
    return search.fit(rows.X, rows.y, sample_weight=weights).cv_results_["mean_test_score"]


class ReadsAFile(ClassifierMixin, BaseEstimator):
    """A model whose rule lies in a file that an environment variable names."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        with open(os.environ["RULE_OF_A_TEST"]) as file:  # noqa: PTH123 - as models do
            sign = float(file.read())
        return (sign * np.asarray(X)[:, 0] > 0).astype(int)


def _files_of_the_environment(rows: Rows, scoring: Any) -> Any:
    """The same model before and after its file was written anew."""
    rule, found = rows.folder / "rule", []
    os.environ["RULE_OF_A_TEST"] = str(rule)
    try:
        for sign in ("1", "-1"):
            rule.write_text(sign)
            found.append(scoring(ReadsAFile().fit(rows.X, rows.y), rows.X, rows.y))
    finally:
        del os.environ["RULE_OF_A_TEST"]
    return found


# how many questions each asks: one for each fitted model
SCORED: dict[str, tuple[Callable[[Rows, Any], Any], int]] = {
    "cross_validate(return_train_score=True)": (_train_scores, 4),
    "cross_validate(return_train_score=True) of sorted labels": (_train_scores_of_sorted_labels, 2),
    "learning_curve": (_learning, 2 * 3),
    "validation_curve": (_validation, 2 * 3),
    "GridSearchCV(return_train_score=True)": (_grid, 2 * 3),
    "score of a fitted GridSearchCV": (_score_of_a_search, 3 + 1),
    "cross_val_score of a GridSearchCV": (
        _nested_scores,
        2 * 3 + 3,
    ),  # inner folds of two outer ones are the same
    "cross_val_score of a prefit model": (_prefit, 1),
    "GridSearchCV of a calibrated prefit model": (_prefit_in_a_search, 4),
    "HalvingGridSearchCV": (_halving, (3 + 1) * 2),
    "GridSearchCV.fit(sample_weight=) of weighted rows": (_weighted_search, 2 * 3),
    "a model that reads a file of the environment": (_files_of_the_environment, 2),
}


# ---- loops that ask by themselves: pairs of an answer and the truth


def _guarded_search(rows: Rows) -> Any:
    search = GuardedSearchCV(GridSearchCV(_MODEL, _CS, cv=3, n_jobs=rows.jobs), rows.guard, ask="choose")
    search.fit(rows.X, rows.y)
    return [(search.best_answer_.value, rows.truth(search.best_estimator_))]


def _guarded_optuna_search(rows: Rows) -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space, wish = {"C": FloatDistribution(0.01, 1.0, log=True)}, {"n_trials": 4, "cv": 3, "random_state": 0}
    inner = OptunaSearchCV(_MODEL, space, scoring="accuracy", **wish)
    search = GuardedSearchCV(inner, rows.guard, ask="choose").fit(rows.X, rows.y)
    assert search.best_params_["C"] == search.best_estimator_.C
    return [(search.best_answer_.value, rows.truth(search.best_estimator_))]


def _nested_search(rows: Rows) -> Any:
    search = GuardedSearchCV(GridSearchCV(_MODEL, _CS, cv=2), rows.guard, ask="choose")
    found = cross_validate(search, rows.X, rows.y, cv=5, n_jobs=rows.jobs, return_estimator=True)
    assert np.isfinite(found["test_score"]).all()
    return [(one.best_answer_.value, rows.truth(one.best_estimator_)) for one in found["estimator"]]


def _guarded_cross_validate(rows: Rows) -> Any:
    found = guarded_cross_validate(
        _TREE, rows.X, rows.y, rows.guard, cv=3, n_jobs=rows.jobs, return_estimator=True
    )
    return [(found["guard_answer"].value, rows.truth(found["guard_estimator"]))]


ASKING: dict[str, Callable[[Rows], Any]] = {
    "GuardedSearchCV": _guarded_search,
    "GuardedSearchCV of an OptunaSearchCV": _guarded_optuna_search,
    "cross_validate of a GuardedSearchCV": _nested_search,
    "guarded_cross_validate": _guarded_cross_validate,
}


# ---- loops that are refused


def _shuffled(rows: Rows, *, in_place: bool) -> Any:
    """Permutation importance, as libraries other than scikit-learn have it."""
    model, scorer, rng = _MODEL.fit(rows.X[:300], rows.y[:300]), rows.scorer, np.random.default_rng(0)
    X, y = rows.X[300:].copy(), rows.y[300:]
    base, falls = scorer(model, X, y), []
    for column in range(X.shape[1]):
        changed = X if in_place else X.copy()
        changed[:, column] = rng.permutation(changed[:, column])
        falls.append(base - scorer(model, changed, y))
    return falls


def _permutation(rows: Rows, **wish: Any) -> Any:
    model = LogisticRegression().fit(rows.X[:300], rows.y[:300])
    return permutation_importance(
        model, rows.X[300:], rows.y[300:], scoring=rows.scorer, n_jobs=rows.jobs, random_state=0, **wish
    )


def _selected(rows: Rows, made: Any, **wish: Any) -> Any:
    """Select columns: a selector fits models to some of them."""
    return made(_MODEL, scoring=rows.scorer, cv=3, n_jobs=rows.jobs, **wish).fit(rows.X, rows.y)


def _tuned(rows: Rows) -> Any:
    tuned = TunedThresholdClassifierCV(_MODEL, scoring=rows.scorer, cv=2, n_jobs=rows.jobs)
    return tuned.fit(rows.X, rows.y)


def _tuned_in_a_loop(rows: Rows) -> Any:
    tuned = TunedThresholdClassifierCV(_MODEL, scoring=rows.scorer, cv=2)
    return cross_val_score(tuned, rows.X, rows.y, cv=2, n_jobs=rows.jobs)


def _early_stopping(rows: Rows) -> Any:
    model = HistGradientBoostingClassifier(max_iter=5, early_stopping=True, scoring=rows.scorer)
    return model.fit(rows.X, rows.y).validation_score_


def _ridge(rows: Rows) -> Any:
    """Its scorer gets predictions in place of rows."""
    return RidgeClassifierCV(scoring=rows.scorer).fit(rows.X, rows.y).best_score_


def _nested_search_of_too_many(rows: Rows) -> Any:
    search = GuardedSearchCV(GridSearchCV(_MODEL, {"C": [0.01, 0.1, 1.0]}, cv=2), rows.guard, ask="choose")
    return cross_val_score(search, rows.X, rows.y, cv=8, n_jobs=rows.jobs)


def _unweighted(rows: Rows) -> Any:
    return cross_val_score(_MODEL, rows.X, rows.y, scoring=rows.scorer, cv=2, n_jobs=rows.jobs)


REFUSED: dict[str, Callable[[Rows], Any]] = {
    "columns shuffled in copies": lambda rows: _shuffled(rows, in_place=False),
    "columns shuffled in place": lambda rows: _shuffled(rows, in_place=True),
    "permutation_importance": _permutation,
    "permutation_importance(max_samples=0.5, n_repeats=1)": lambda rows: _permutation(
        rows, max_samples=0.5, n_repeats=1
    ),
    "RFECV": lambda rows: _selected(rows, RFECV),
    "SequentialFeatureSelector": lambda rows: _selected(
        rows, SequentialFeatureSelector, n_features_to_select=2
    ),
    "TunedThresholdClassifierCV": _tuned,
    "cross_val_score of a TunedThresholdClassifierCV": _tuned_in_a_loop,
    "early stopping of HistGradientBoostingClassifier": _early_stopping,
    "RidgeClassifierCV": _ridge,
    "cross_val_score of a GuardedSearchCV, without room": _nested_search_of_too_many,
    "cross_val_score of weighted rows without weights": _unweighted,
}
