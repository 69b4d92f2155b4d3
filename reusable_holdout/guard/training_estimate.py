"""Training estimates of a model's score, for priors that are not stated."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.guard.models import predictions_of
from reusable_holdout.metrics import Metric


class Estimate(NamedTuple):
    """An estimate of a model's score by training data, and its standard error, which is 0 if it is unknown."""

    mean: float
    error: float = 0.0


def error_of_folds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of means over cross-validation folds; shape (..., folds) to (...).

    The folds' models share training rows, so a mean of k folds has the variance ``(1/k + 1/(k - 1)) s**2``; see Nadeau
    and Bengio (2003), "Inference for the generalization error", Machine Learning 52. For one fold it is 0.
    """
    folds = scores.shape[-1]
    if folds < 2:
        return np.zeros(scores.shape[:-1])
    return np.asarray(scores.std(axis=-1, ddof=1) * math.sqrt(1.0 / folds + 1.0 / (folds - 1)))


def training_estimate(
    metric: Metric, model: Any, X_train: Any, y_train: Any, *, cv: Any, classes: NDArray[Any] | str | None
) -> Estimate:
    """Return the score of a model by training data alone, which must not contain holdout rows.

    The model is cloned and refitted on folds. If `cv` is a number, the folds are shuffled with a fixed seed, so that
    the same model gets the same estimate; they are stratified if the guard's classes are public, and each class of the
    training data has a row for each fold. An InputError says that the data do not fit the metric.
    """
    from sklearn.base import clone  # noqa: PLC0415
    from sklearn.utils import _safe_indexing  # noqa: PLC0415

    if not hasattr(model, "get_params"):
        raise InputError(
            f"a cross-validated prior needs a scikit-learn estimator, to fit it on folds; got {type(model).__name__}; "
            "state a prior"
        )

    scores = []
    folds = _splitter(cv, y_train, stratified=isinstance(classes, np.ndarray))
    for train, test in folds.split(X_train, y_train):
        fold = clone(model).fit(_safe_indexing(X_train, train), _safe_indexing(y_train, train))
        X, y = (_safe_indexing(data, test) for data in (X_train, y_train))
        predictions = predictions_of(fold, X, response=metric.response, classes=classes)
        scores.append(metric.measure(y, predictions, classes=classes))
    if not scores:
        raise InputError("cv must give at least one fold; it gave none; pass a number of folds")
    return Estimate(math.fsum(scores) / len(scores), float(error_of_folds(np.array(scores))))


def _splitter(cv: Any, y: Any, *, stratified: bool) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold  # noqa: PLC0415

    if hasattr(cv, "split") and not isinstance(cv, str):
        return cv
    if isinstance(cv, bool) or not isinstance(cv, int) or cv < 2:
        raise InputError(f"cv must be a whole number of folds, 2 or more, or a splitter; got {cv!r}")
    if cv > len(y):
        raise InputError(
            f"cv must not exceed the training rows; got {cv} folds and {len(y)} rows; state a prior"
        )
    rarest = np.unique(np.asarray(y), return_counts=True)[1].min() if stratified else 0
    return (StratifiedKFold if rarest >= cv else KFold)(cv, shuffle=True, random_state=0)
