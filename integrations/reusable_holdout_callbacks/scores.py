"""The prior of a round: the validation score that measures the guard's metric, in the guard's unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["LIGHTGBM", "XGBOOST", "Library", "Score", "prior_of"]


class Library(NamedTuple):
    """A library of boosters.

    Attributes
    ----------
    scores : mapping of str to str
        The guard's name for each score, by the library's name for it.
    sets : str
        Code that passes evaluation sets to the library, for messages.
    objectives : str
        Objectives that give probabilities, for messages.
    """

    scores: Mapping[str, str]
    sets: str
    objectives: str


XGBOOST = Library(
    {
        "error": "zero_one_loss",
        "merror": "zero_one_loss",
        "logloss": "log_loss",
        "mlogloss": "log_loss",
        "auc": "roc_auc",
        "aucpr": "average_precision",
        "rmse": "rmse",
        "mae": "mae",
    },
    'evals=[(dvalid, "valid")] (of fit: eval_set=[(X_valid, y_valid)])',
    'objective="binary:logistic" or "multi:softprob"',
)
LIGHTGBM = Library(
    {
        "binary_error": "zero_one_loss",
        "multi_error": "zero_one_loss",
        "binary_logloss": "log_loss",
        "multi_logloss": "log_loss",
        "auc": "roc_auc",
        "average_precision": "average_precision",
        "rmse": "rmse",
        "l1": "mae",
        "l2": "mse",
    },
    "valid_sets=[valid] (of fit: eval_set=[(X_valid, y_valid)])",
    'objective="binary" or "multiclass"',
)
_TRAINING = {"train", "training", "dtrain"}  # training rows as evaluation sets: scores on them are too good


class _Reading(NamedTuple):
    """The rule by which a metric of the guard is computed from a library's score: `offset` + `factor` * score."""

    measured: str
    factor: float
    offset: float


_READINGS = {
    "accuracy": _Reading("zero_one_loss", -1.0, 1.0),
    "roc_auc_ovr_weighted": _Reading("roc_auc", 1.0, 0.0),  # XGBoost's "auc" of three or more classes
    "neg_log_loss": _Reading("log_loss", -1.0, 0.0),
    "neg_mean_absolute_error": _Reading("mae", -1.0, 0.0),
    "neg_mean_squared_error": _Reading("mse", -1.0, 0.0),
    "neg_root_mean_squared_error": _Reading("rmse", -1.0, 0.0),
}


class Score(NamedTuple):
    """A score of one round.

    Attributes
    ----------
    data : str
        Name of the evaluation set on which the score was measured.
    name : str
        The library's name for the score.
    value : float
    """

    data: str
    name: str
    value: float

    @property
    def full_name(self) -> str:
        """Names of the evaluation set and of the score, joined as XGBoost writes them: ``validation-auc``."""
        return f"{self.data}-{self.name}"


def prior_of(scores: Sequence[Score], metric: Metric, wanted: str | None, library: Library) -> float:
    """Return the validation score of a round in the unit of a guard's metric.

    If the library's score is a known one, it is converted to the metric's unit and clipped to the metric's bounds, as
    the guard clips the losses of rows. A score with another name is returned as it is.

    Parameters
    ----------
    scores : sequence of Score
        The scores of the round, in the order of the evaluation sets.
    metric : Metric
        The guard's metric.
    wanted : str or None
        Name of the score, alone ("auc") or after the evaluation set's name ("valid-auc"). None takes the score of the
        guard's metric on the last evaluation set that is not called "train", "training" or "dtrain".
    library : Library
        The library that logged the scores.

    Raises
    ------
    InputError
        If there is no such score, or it is known to measure another metric; the message says what to pass.
    """
    reading, known = _READINGS.get(metric.name, _Reading(metric.name, 1.0, 0.0)), library.scores
    listed = ", ".join(one.full_name for one in scores) or "none"
    if wanted is None:
        fit = [one for one in scores if known.get(one.name) == reading.measured and one.data not in _TRAINING]
    else:
        fit = [one for one in scores if wanted in (one.name, one.full_name)]
    if not fit and wanted is not None:
        raise InputError(
            f"there is no score {wanted!r}; the scores of a round are: {listed}; nothing was asked; pass "
            f"{library.sets} too"
        )
    if not fit:
        names = " or ".join(f'"{name}"' for name, meaning in known.items() if meaning == reading.measured)
        how = f"the metric {names}" if names else "prior= a function of its scores"
        raise InputError(
            f"the prior of a round must be a validation score of the guard's metric, {metric.name}; the scores are: "
            f"{listed}; nothing was asked; pass {library.sets} and {how}; or prior= the name of a score, or a function"
        )
    found = fit[-1]
    if found.name not in known:
        return found.value
    if known[found.name] != reading.measured:
        raise InputError(
            f"the prior must be in the unit of the guard's metric, {metric.name}; {found.name} is {known[found.name]}; "
            f"nothing was asked; name another score, or pass prior= a function that tells {metric.name}"
        )
    value = reading.offset + reading.factor * found.value
    return float(np.clip(value, metric.lower, metric.upper))  # NaN stays, and the guard refuses it
