"""Loops of other libraries, unmodified, each with a guard in it: a conformance test runs them on every backend.

A loop takes a :class:`Stage` and gives numbers that must be finite. It runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any, NamedTuple, TypeAlias

import joblib
import lightgbm
import numpy as np
import optuna
import xgboost
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution
from optuna_integration import OptunaSearchCV
from reusable_holdout_callbacks import LightGBMCallback, XGBoostCallback
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
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

from reusable_holdout import ReusableHoldout

__all__ = ["BACKENDS", "LOOPS", "REFUSED", "Stage"]

_MODEL, _CS = LogisticRegression(), {"C": [0.01, 0.1, 1.0]}


class Stage(NamedTuple):
    """A guard, training rows, and predictions for the holdout's rows: all that a loop has."""

    guard: ReusableHoldout
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    predictions: NDArray[np.int64]
    jobs: int

    @property
    def wish(self) -> dict[str, Any]:
        """Arguments of a loop that scores with the guard."""
        return {"scoring": guarded_scorer(self.guard), "n_jobs": self.jobs}


Loop: TypeAlias = Callable[[Stage], Any]


# ---- scikit-learn


def _searched(made: type, model: Any = _MODEL, grid: Any = None, **settings: Any) -> Loop:
    def loop(stage: Stage) -> Any:
        search = made(model, _CS if grid is None else grid, cv=2, **stage.wish, **settings)
        return search.fit(stage.X, stage.y).cv_results_["mean_test_score"]

    return loop


def _several_metrics(stage: Stage) -> Any:
    scoring = {"guarded": guarded_scorer(stage.guard), "plain": "accuracy"}
    scores = cross_validate(_MODEL, stage.X, stage.y, scoring=scoring, cv=4, n_jobs=stage.jobs)
    return scores["test_guarded"]


def _learning(stage: Stage) -> Any:
    return learning_curve(_MODEL, stage.X, stage.y, cv=2, train_sizes=[0.5, 1.0], **stage.wish)[2]


def _validation(stage: Stage) -> Any:
    wish = {"param_name": "C", "param_range": _CS["C"], "cv": 2, **stage.wish}
    return validation_curve(_MODEL, stage.X, stage.y, **wish)[1]


def _asking_search(stage: Stage) -> Any:
    return GridSearchCV(_MODEL, _CS, scoring=guarded_scorer(stage.guard), cv=2)


def _stacking(stage: Stage) -> Any:
    search = _asking_search(stage)
    stack = StackingClassifier([("a", search), ("b", clone(search))], _MODEL, cv=2, n_jobs=stage.jobs)
    return stack.fit(stage.X, stage.y).predict_proba(stage.X)


def _choosing(stage: Stage) -> Any:
    """Make two choices: the second one asks a guard that may have halted."""
    searches = [
        GuardedSearchCV(GridSearchCV(_MODEL, grid, cv=2, n_jobs=stage.jobs), stage.guard, ask="choose")
        for grid in (_CS, {"C": [0.02, 0.2]})
    ]
    return [search.fit(stage.X, stage.y).best_answer_.value for search in searches]


def _confirming(stage: Stage) -> Any:
    search = GridSearchCV(_MODEL, {"C": [0.001, 0.01, 0.1, 1.0]}, cv=2, n_jobs=stage.jobs)
    return GuardedSearchCV(search, stage.guard, ask="evaluate").fit(stage.X, stage.y).guard_results_["answer"]


def _guarded_cross_validate(stage: Stage) -> Any:
    models = [LogisticRegression(C=C) for C in (0.001, 0.01, 0.1, 1.0)]
    wish = {"guard": stage.guard, "cv": 2, "n_jobs": stage.jobs}
    return [guarded_cross_validate(one, stage.X, stage.y, **wish)["guard_answer"].value for one in models]


# ---- other libraries: of several threads Optuna raises what ended a trial, but not what ended the very last ones


def _optuna_search(stage: Stage) -> Any:
    space = {"C": FloatDistribution(0.01, 1.0, log=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = OptunaSearchCV(_MODEL, space, cv=2, n_trials=8, random_state=0, **stage.wish)
        return search.fit(stage.X, stage.y).best_score_


def _optuna_objective(stage: Stage) -> Any:
    """Optimize a plain objective that asks."""

    def objective(trial: Any) -> float:
        model = LogisticRegression(C=trial.suggest_float("C", 0.01, 1.0, log=True)).fit(stage.X, stage.y)
        return float(stage.guard.evaluate(model, prior=0.8).value)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0), direction="maximize")
    study.optimize(objective, n_trials=8, n_jobs=stage.jobs)
    return [trial.value for trial in study.trials]


def _trained(stage: Stage, *, by_xgboost: bool) -> Any:
    """Train a booster with a callback that asks in each round."""
    half = len(stage.y) // 2
    parts = [(stage.X[part], stage.y[part]) for part in (slice(0, half), slice(half, None))]
    if by_xgboost:
        asked = XGBoostCallback(stage.guard)
        wish = {"objective": "binary:logistic", "eval_metric": "error", "max_depth": 2, "nthread": 1}
        train, valid = (xgboost.DMatrix(*part) for part in parts)
        xgboost.train(wish, train, 6, evals=[(valid, "valid")], callbacks=[asked], verbose_eval=False)
    else:
        asked = LightGBMCallback(stage.guard)
        wish = {
            "objective": "binary",
            "metric": "binary_error",
            "num_leaves": 4,
            "num_threads": 1,
            "verbose": -1,
        }
        train, valid = (lightgbm.Dataset(*part) for part in parts)
        lightgbm.train(wish, train, 6, valid_sets=[valid.set_reference(train)], callbacks=[asked])
    assert asked.answers
    return [one.answer.value for one in asked.answers]


# ---- pools


def _ask(task: tuple[ReusableHoldout, NDArray[np.int64], int]) -> float:
    guard, predictions, number = task
    return float(guard.evaluate(np.roll(predictions, number), prior=0.5).value)


def _tasks(stage: Stage) -> Iterator[tuple[ReusableHoldout, NDArray[np.int64], int]]:
    return ((stage.guard, stage.predictions, number) for number in range(6))


def _in(pool: Callable[[int], Any], run: Callable[[Any, Any], Any]) -> Loop:
    def loop(stage: Stage) -> Any:
        with pool(2) as workers:
            return list(run(workers, _tasks(stage)))

    return loop


def _joblib(stage: Stage) -> Any:
    return joblib.Parallel(n_jobs=stage.jobs)(joblib.delayed(_ask)(task) for task in _tasks(stage))


# ---- the table

_BOOSTED = {"learning_rate": [0.1, 0.3, 0.5]}
_PANDAS = make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform="pandas")
_EVERYWHERE: dict[str, Loop] = {
    "GridSearchCV": _searched(GridSearchCV),
    "GridSearchCV(error_score=0.0)": _searched(GridSearchCV, error_score=0.0),
    "RandomizedSearchCV": _searched(RandomizedSearchCV, n_iter=3),
    "HalvingGridSearchCV": _searched(HalvingGridSearchCV, min_resources=100),
    "GridSearchCV of a pipeline with pandas output": _searched(
        GridSearchCV, _PANDAS, {"logisticregression__C": _CS["C"]}
    ),
    "learning_curve": _learning,
    "validation_curve": _validation,
    "cross_val_score": lambda stage: cross_val_score(_MODEL, stage.X, stage.y, cv=4, **stage.wish),
    "cross_validate of several metrics": _several_metrics,
    "cross_val_predict of a GridSearchCV": lambda stage: cross_val_predict(
        _asking_search(stage), stage.X, stage.y, cv=2, n_jobs=stage.jobs
    ),
    "StackingClassifier of GridSearchCVs": _stacking,
    "GuardedSearchCV": _choosing,
    'GuardedSearchCV(ask="evaluate")': _confirming,
    "guarded_cross_validate": _guarded_cross_validate,
    "TunedThresholdClassifierCV": lambda stage: TunedThresholdClassifierCV(_MODEL, **stage.wish).fit(
        stage.X, stage.y
    ),
    "xgboost.XGBClassifier in GridSearchCV": _searched(
        GridSearchCV, xgboost.XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1), _BOOSTED
    ),
    "lightgbm.LGBMClassifier in GridSearchCV": _searched(
        GridSearchCV, lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, n_jobs=1, verbose=-1), _BOOSTED
    ),
    "joblib.Parallel": _joblib,
}
_OF_OPTUNA: dict[str, Loop] = {
    "OptunaSearchCV": _optuna_search,
    "optuna objective that asks": _optuna_objective,
}
LOOPS: dict[str, dict[str, Loop]] = {
    "serial": {
        **_EVERYWHERE,
        **_OF_OPTUNA,
        "xgboost.train with XGBoostCallback": lambda stage: _trained(stage, by_xgboost=True),
        "lightgbm.train with LightGBMCallback": lambda stage: _trained(stage, by_xgboost=False),
    },
    "threading": {**_EVERYWHERE, **_OF_OPTUNA},
    "loky": _EVERYWHERE,
    "multiprocessing": _EVERYWHERE,
    "dask": _EVERYWHERE,
    "pools": {
        "multiprocessing.Pool.map": _in(multiprocessing.Pool, lambda pool, tasks: pool.map(_ask, tasks)),
        "multiprocessing.Pool.imap_unordered": _in(
            multiprocessing.Pool, lambda pool, tasks: pool.imap_unordered(_ask, tasks)
        ),
        "multiprocessing.Pool.apply_async": _in(
            multiprocessing.Pool,
            lambda pool, tasks: [one.get() for one in [pool.apply_async(_ask, (task,)) for task in tasks]],
        ),
        "multiprocessing.pool.ThreadPool": _in(ThreadPool, lambda pool, tasks: pool.map(_ask, tasks)),
        "ProcessPoolExecutor": _in(ProcessPoolExecutor, lambda pool, tasks: pool.map(_ask, tasks)),
    },
}
BACKENDS = list(LOOPS)
REFUSED = {"TunedThresholdClassifierCV"}
