"""Logging of the best model of a guarded search, as MLflow's autologging logs a fitted model."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import mlflow
from mlflow.utils import autologging_utils
from mlflow.utils.autologging_utils import (
    autologging_is_disabled,
    disable_autologging,
    get_autologging_config,
)
from sklearn.base import is_classifier

from reusable_holdout.slips import warn
from reusable_holdout_mlflow.run_log import told

__all__ = ["SILENCE", "log_winner"]


class _Silence:
    """Context manager that turns MLflow's autologging off while guarded searches are fitted.

    MLflow has one switch for the whole process. It stays off until the last of several searches has ended, and is then
    as the user had set it. Entering returns True if autologging was on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._switch: AbstractContextManager[None] | None = None

    def __enter__(self) -> bool:
        with self._lock:
            off = bool(getattr(autologging_utils, "_AUTOLOGGING_GLOBALLY_DISABLED", False))
            if not self._inside and not off:
                self._switch = disable_autologging()
                self._switch.__enter__()
            self._inside += 1
            return self._switch is not None

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._switch is not None:
                self._switch.__exit__(None, None, None)
                self._switch = None


SILENCE = _Silence()


def log_winner(search: Any, X: Any, y: Any = None, *, own: bool, **_: Any) -> None:
    """Log a search's best model, its parameters and its training scores to the active run.

    Nothing is logged if ``mlflow.sklearn.autolog`` is off. The scores are on the training rows; the holdout is not
    used.

    Parameters
    ----------
    search : GuardedSearchCV
        The fitted search.
    X, y : array-like
        The search's training rows.
    own : bool
        True if the run was started for this search. With autolog's setting ``exclusive``, nothing is logged to a run
        that the user has started.
    """
    best = getattr(search, "best_estimator_", None)
    if best is None or mlflow.active_run() is None or autologging_is_disabled("sklearn"):
        return
    if get_autologging_config("sklearn", "exclusive", False) and not own:
        return
    try:
        mlflow.log_params({f"best_{name}": value for name, value in search.best_params_.items()})
        mlflow.log_metrics(_training_scores(best, X, y))
        if get_autologging_config("sklearn", "log_models", True):
            mlflow.sklearn.log_model(best, name="model", **_model_settings(best, X))
    except Exception as error:
        warn(f"the winner was not logged ({told(error)})", RuntimeWarning)


def _training_scores(best: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the model's scores on the training rows, under the names that MLflow's autologging uses."""
    score = float(best.score(X, y))
    return {"training_score": score} | ({"training_accuracy_score": score} if is_classifier(best) else {})


def _model_settings(best: Any, X: Any) -> dict[str, Any]:
    """Return the arguments of `log_model` that follow from the settings of ``mlflow.sklearn.autolog``."""
    settings = {"registered_model_name": get_autologging_config("sklearn", "registered_model_name", None)}
    if get_autologging_config("sklearn", "log_input_examples", False):
        settings["input_example"] = X[:5]
    if get_autologging_config("sklearn", "log_model_signatures", True):
        settings["signature"] = mlflow.models.infer_signature(X, best.predict(X[:5]))
    return settings
