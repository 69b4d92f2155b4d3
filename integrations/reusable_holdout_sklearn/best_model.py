"""The methods of a fitted search, such as `predict`, that it passes on to its best model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

__all__ = ["BestModel", "if_best_has"]

_Method = TypeVar("_Method")


def if_best_has(name: str) -> Callable[[_Method], _Method]:
    """Return a decorator that makes a method available only if the best model has a method called `name`.

    Before the search is fitted there is no best model; then the estimator that is searched must have the method.
    """

    def check(search: BestModel) -> bool:
        if hasattr(search, "best_estimator_"):
            getattr(search.best_estimator_, name)
        elif not search.refit:
            raise AttributeError(
                f"{name} needs a best model, which refit=False does not keep; set refit=True, or fit the one you want "
                "with best_params_"
            )
        else:
            getattr(getattr(search.search, "estimator", search.search), name)
        return True

    return cast("Callable[[_Method], _Method]", available_if(check))


def _of_best(name: str, words: str) -> Any:
    def method(self: BestModel, X: Any) -> Any:
        return getattr(self._best(), name)(X)

    method.__name__, method.__doc__ = name, words
    return if_best_has(name)(method)


class BestModel:
    """The methods that a search passes on to its best model; each is available only if that model has it.

    The text below each method is for the documentation site, which reads it there.
    """

    search: Any
    refit: bool
    best_estimator_: Any

    predict = _of_best("predict", "Predict with the best model.")
    """Predict with the best model."""
    predict_proba = _of_best("predict_proba", "Predict probabilities with the best model.")
    """Predict probabilities with the best model."""
    predict_log_proba = _of_best(
        "predict_log_proba", "Predict logarithms of probabilities with the best model."
    )
    """Predict logarithms of probabilities with the best model."""
    decision_function = _of_best("decision_function", "Return the decision scores of the best model.")
    """Return the decision scores of the best model."""
    score_samples = _of_best("score_samples", "Return the sample scores of the best model.")
    """Return the sample scores of the best model."""
    transform = _of_best("transform", "Transform with the best model.")
    """Transform with the best model."""
    inverse_transform = _of_best("inverse_transform", "Invert the transformation of the best model.")
    """Invert the transformation of the best model."""

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_
