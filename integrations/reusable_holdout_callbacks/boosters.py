"""Boosters, wrapped as models that a guard can be asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout_callbacks.scores import Library

__all__ = ["BoosterModel", "classes_of"]


class BoosterModel:
    """A copy of a booster as it was after one round.

    Two copies with the same trees are the same model for the guard, even if they were trained with different numbers of
    threads.

    Parameters
    ----------
    content : bytes
        The booster in the format in which its library saves it.
    columns : int
        Number of columns of its training rows.
    classes : numpy.ndarray or None
        The classes that the booster's labels 0, 1, ... stand for; None if it predicts values.
    """

    def __init__(self, content: bytes, columns: int, classes: NDArray[Any] | None) -> None:
        self.content, self.n_features_in_, self.classes_ = content, columns, classes
        self._booster: Any = None

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row, or its value if the booster has no classes."""
        told = self._told(X)
        if self.classes_ is None:
            return told
        places = told.argmax(axis=1) if told.ndim == 2 else (told > 0.5).astype(np.intp)
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Predict the probabilities of the classes for each row, with one column for each class."""
        told = self._told(X)
        return told if told.ndim == 2 else np.column_stack([1.0 - told, told])

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Predict one score for each row, by which a metric such as ROC AUC ranks the rows."""
        told = self._told(X)
        return told[:, -1] if told.ndim == 2 else told

    def _told(self, X: Any) -> NDArray[Any]:
        if self._booster is None:
            self._booster = self._loaded()
        return np.asarray(self._outputs(self._booster, X), dtype=np.float64)

    def _loaded(self) -> Any:
        raise NotImplementedError

    def _outputs(self, booster: Any, X: Any) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_booster": None}


def classes_of(
    guard: ReusableHoldout, objective: str, count: int | None, classes: Any, library: Library
) -> NDArray[Any] | None:
    """Return the classes that a booster's labels 0, 1, ... stand for.

    Return None if the booster's outputs are the values or scores that the metric needs, so that no classes are needed.

    Parameters
    ----------
    guard : ReusableHoldout
    objective : str
        The booster's objective.
    count : int or None
        Number of the booster's classes; None if its objective gives no probabilities.
    classes : array-like or None
        The classes that the user has named; by default the guard's classes.
    library : Library
        The library that trains the booster.

    Raises
    ------
    InputError
        If the metric needs classes, and the booster gives no probabilities or has another number of classes.
    """
    response = guard.metric.response
    if response == "values" or (response == "scores" and count is None):
        return None
    known = guard.classes if classes is None else np.asarray(classes)
    if count is None:
        raise InputError(
            f"{guard.metric.name} needs a booster that predicts a probability for each class; its objective is "
            f"{objective or 'one of your own'}; nothing was asked; train with {library.objectives}, or ask after the "
            "training: guard.evaluate(model, prior=...)"
        )
    if known is None or len(known) != count:
        there = "the guard's set of labels is private" if known is None else f"it has {len(known)}"
        raise InputError(
            f"the booster has {count} classes, and the list of classes must have the same length; {there}; nothing was "
            "asked; pass classes= a list of what the booster's labels 0, 1, ... stand for"
        )
    return known
