"""Loops of other libraries, unmodified, each with a guard in it: what a conformance test runs on every backend.

A loop takes a :class:`Stage` and gives numbers that must be finite. It runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from conformance.training import TRAINING
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from reusable_holdout import ReusableHoldout

__all__ = ["BACKENDS", "LOOPS", "Stage"]

_CS = {"C": [0.01, 0.1, 1.0]}


class Stage(NamedTuple):
    """What a loop has: a guard, training rows, and predictions for the holdout's rows."""

    guard: ReusableHoldout
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    predictions: NDArray[np.int64]
    jobs: int

    @property
    def scorer(self) -> Any:
        return guarded_scorer(self.guard)


# ---- scikit-learn


def _search(stage: Stage, made: type, **settings: Any) -> Any:
    model = settings.pop("model", LogisticRegression())
    grid = settings.pop("grid", _CS)
    search = made(model, grid, scoring=stage.scorer, cv=2, n_jobs=stage.jobs, **settings)
    return search.fit(stage.X, stage.y).cv_results_["mean_test_score"]


def _grid(stage: Stage) -> Any:
    return _search(stage, GridSearchCV)


def _error_score(stage: Stage) -> Any:
    return _search(stage, GridSearchCV, error_score=0.0)


def _several_metrics(stage: Stage) -> Any:
    scoring = {"guarded": stage.scorer, "plain": "accuracy"}
    scores = cross_validate(LogisticRegression(), stage.X, stage.y, scoring=scoring, cv=4, n_jobs=stage.jobs)
    return scores["test_guarded"]


def _random(stage: Stage) -> Any:
    return _search(stage, RandomizedSearchCV, n_iter=3)


def _halving(stage: Stage) -> Any:
    return _search(stage, HalvingGridSearchCV, min_resources=100)


def _pandas(stage: Stage) -> Any:
    model = make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform="pandas")
    return _search(stage, GridSearchCV, model=model, grid={"logisticregression__C": _CS["C"]})


def _sequential(stage: Stage) -> Any:
    scorer = guarded_scorer(stage.guard, features=stage.X)
    selector = SequentialFeatureSelector(
        LogisticRegression(), n_features_to_select=2, scoring=scorer, cv=2, n_jobs=stage.jobs
    )
    return selector.fit(stage.X, stage.y).n_features_to_select_


def _recursive(stage: Stage) -> Any:
    selector = RFECV(LogisticRegression(), scoring=stage.scorer, cv=2, n_jobs=stage.jobs)
    return selector.fit(stage.X, stage.y).cv_results_["mean_test_score"]


def _learning(stage: Stage) -> Any:
    wish = {"scoring": stage.scorer, "cv": 2, "n_jobs": stage.jobs, "train_sizes": [0.5, 1.0]}
    return learning_curve(LogisticRegression(), stage.X, stage.y, **wish)[2]


def _validation(stage: Stage) -> Any:
    wish = {"param_name": "C", "param_range": _CS["C"], "cv": 2, "n_jobs": stage.jobs}
    return validation_curve(LogisticRegression(), stage.X, stage.y, scoring=stage.scorer, **wish)[1]


def _cross_val_score(stage: Stage) -> Any:
    return cross_val_score(
        LogisticRegression(), stage.X, stage.y, scoring=stage.scorer, cv=4, n_jobs=stage.jobs
    )


def _cross_val_predict(stage: Stage) -> Any:
    """Of a search that asks in each fold."""
    search = GridSearchCV(LogisticRegression(), _CS, scoring=stage.scorer, cv=2)
    return cross_val_predict(search, stage.X, stage.y, cv=2, n_jobs=stage.jobs)


def _stacking(stage: Stage) -> Any:
    search = GridSearchCV(LogisticRegression(), _CS, scoring=stage.scorer, cv=2)
    stack = StackingClassifier(
        [("a", search), ("b", clone(search))], LogisticRegression(), cv=2, n_jobs=stage.jobs
    )
    return stack.fit(stage.X, stage.y).predict_proba(stage.X)


def _choosing(stage: Stage) -> Any:
    """Two choices: the second one is of a guard that may have halted."""
    searches = [
        GuardedSearchCV(GridSearchCV(LogisticRegression(), grid, cv=2, n_jobs=stage.jobs), stage.guard)
        for grid in (_CS, {"C": [0.02, 0.2]})
    ]
    return [search.fit(stage.X, stage.y).best_answer_.value for search in searches]


def _confirming(stage: Stage) -> Any:
    grid = {"C": [0.001, 0.01, 0.1, 1.0]}
    search = GridSearchCV(LogisticRegression(), grid, cv=2, n_jobs=stage.jobs)
    return GuardedSearchCV(search, stage.guard, ask="evaluate").fit(stage.X, stage.y).guard_results_["answer"]


def _guarded_cross_validate(stage: Stage) -> Any:
    return [
        guarded_cross_validate(
            LogisticRegression(C=C), stage.X, stage.y, stage.guard, cv=2, n_jobs=stage.jobs
        )["guard_answer"].value
        for C in (0.001, 0.01, 0.1, 1.0)
    ]


def _permutation(stage: Stage) -> Any:
    """Refused, always."""
    model = LogisticRegression().fit(stage.X, stage.y)
    return permutation_importance(model, stage.X, stage.y, scoring=stage.scorer, n_jobs=stage.jobs)


def _threshold(stage: Stage) -> Any:
    """Refused, always."""
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=stage.scorer, n_jobs=stage.jobs)
    return tuned.fit(stage.X, stage.y)


# ---- other libraries: of several threads Optuna raises what ended a trial, but not what ended the very last ones


def _optuna_search(stage: Stage) -> Any:
    from optuna.distributions import FloatDistribution
    from optuna_integration import OptunaSearchCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = OptunaSearchCV(
            LogisticRegression(),
            {"C": FloatDistribution(0.01, 1.0, log=True)},
            scoring=stage.scorer,
            cv=2,
            n_trials=8,
            n_jobs=stage.jobs,
            random_state=0,
        )
        return search.fit(stage.X, stage.y).best_score_


def _optuna_objective(stage: Stage) -> Any:
    """A plain objective that asks."""
    import optuna

    def objective(trial: Any) -> float:
        C = trial.suggest_float("C", 0.01, 1.0, log=True)
        model = LogisticRegression(C=C).fit(stage.X, stage.y)
        return float(stage.guard.evaluate(model, prior=0.8).value)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0), direction="maximize")
    study.optimize(objective, n_trials=8, n_jobs=stage.jobs)
    return [trial.value for trial in study.trials]


def _xgboost(stage: Stage) -> Any:
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1)
    return _search(stage, GridSearchCV, model=model, grid={"learning_rate": [0.1, 0.3, 0.5]})


def _lightgbm(stage: Stage) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=3, num_leaves=4, n_jobs=1, verbose=-1)
    return _search(stage, GridSearchCV, model=model, grid={"learning_rate": [0.1, 0.3, 0.5]})


# ---- pools


def _ask(task: tuple[ReusableHoldout, NDArray[np.int64], int]) -> float:
    guard, predictions, number = task
    return float(guard.evaluate(np.roll(predictions, number), prior=0.5).value)


def _tasks(stage: Stage, count: int = 6) -> Iterator[tuple[ReusableHoldout, NDArray[np.int64], int]]:
    return ((stage.guard, stage.predictions, number) for number in range(count))


def _map(stage: Stage) -> Any:
    with multiprocessing.Pool(2) as pool:
        return pool.map(_ask, _tasks(stage))


def _imap_unordered(stage: Stage) -> Any:
    with multiprocessing.Pool(2) as pool:
        return list(pool.imap_unordered(_ask, _tasks(stage)))


def _apply_async(stage: Stage) -> Any:
    with multiprocessing.Pool(2) as pool:
        return [one.get() for one in [pool.apply_async(_ask, (task,)) for task in _tasks(stage)]]


def _thread_pool(stage: Stage) -> Any:
    with ThreadPool(2) as pool:
        return pool.map(_ask, _tasks(stage))


def _executor(stage: Stage) -> Any:
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(_ask, _tasks(stage)))


def _joblib(stage: Stage) -> Any:
    return joblib.Parallel(n_jobs=stage.jobs)(joblib.delayed(_ask)(task) for task in _tasks(stage))


# ---- the table

_OF_SCIKIT_LEARN: dict[str, Callable[[Stage], Any]] = {
    "GridSearchCV": _grid,
    "GridSearchCV(error_score=0.0)": _error_score,
    "RandomizedSearchCV": _random,
    "HalvingGridSearchCV": _halving,
    "GridSearchCV of a pipeline with pandas output": _pandas,
    "SequentialFeatureSelector": _sequential,
    "RFECV": _recursive,
    "learning_curve": _learning,
    "validation_curve": _validation,
    "cross_val_score": _cross_val_score,
    "cross_validate of several metrics": _several_metrics,
    "cross_val_predict of a GridSearchCV": _cross_val_predict,
    "StackingClassifier of GridSearchCVs": _stacking,
    "GuardedSearchCV": _choosing,
    'GuardedSearchCV(ask="evaluate")': _confirming,
    "guarded_cross_validate": _guarded_cross_validate,
    "permutation_importance": _permutation,
    "TunedThresholdClassifierCV": _threshold,
    "xgboost.XGBClassifier in GridSearchCV": _xgboost,
    "lightgbm.LGBMClassifier in GridSearchCV": _lightgbm,
    "joblib.Parallel": _joblib,
}
_OF_OPTUNA: dict[str, Callable[[Stage], Any]] = {
    "OptunaSearchCV": _optuna_search,
    "optuna objective that asks": _optuna_objective,
}
LOOPS: dict[str, dict[str, Callable[[Stage], Any]]] = {
    "serial": {**_OF_SCIKIT_LEARN, **_OF_OPTUNA, **TRAINING},
    "threading": {**_OF_SCIKIT_LEARN, **_OF_OPTUNA},
    "loky": _OF_SCIKIT_LEARN,
    "multiprocessing": _OF_SCIKIT_LEARN,
    "dask": _OF_SCIKIT_LEARN,
    "pools": {
        "multiprocessing.Pool.map": _map,
        "multiprocessing.Pool.imap_unordered": _imap_unordered,
        "multiprocessing.Pool.apply_async": _apply_async,
        "multiprocessing.pool.ThreadPool": _thread_pool,
        "ProcessPoolExecutor": _executor,
    },
}
BACKENDS = list(LOOPS)
REFUSED = {"permutation_importance", "TunedThresholdClassifierCV"}
