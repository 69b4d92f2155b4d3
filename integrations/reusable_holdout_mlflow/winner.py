"""The winner of a guarded search, logged as the autologging of MLflow logs a fitted model."""

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
    """Context in which MLflow's autologging is off until the last search inside has ended; on entry, if it was on.

    The process has one switch, which is afterwards as the user had it.
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
    """Log parameters, training scores and the model of the best estimator to the active run.

    Nothing is logged where ``mlflow.sklearn.autolog`` is off. Only the training rows are known here.

    Parameters
    ----------
    search : GuardedSearchCV
        Fitted.
    X, y : array-like
        Its training rows.
    own : bool
        Whether the run was started for this search; an exclusive autologging logs nothing to a user's.
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
    """Return scores on the training rows, by MLflow's names for them."""
    score = float(best.score(X, y))
    return {"training_score": score} | ({"training_accuracy_score": score} if is_classifier(best) else {})


def _model_settings(best: Any, X: Any) -> dict[str, Any]:
    """Return the settings of ``mlflow.sklearn.autolog`` about the model."""
    settings = {"registered_model_name": get_autologging_config("sklearn", "registered_model_name", None)}
    if get_autologging_config("sklearn", "log_input_examples", False):
        settings["input_example"] = X[:5]
    if get_autologging_config("sklearn", "log_model_signatures", True):
        settings["signature"] = mlflow.models.infer_signature(X, best.predict(X[:5]))
    return settings
