"""What a fitted search hands on to its best model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

__all__ = ["BestModel", "best_can"]

_Method = TypeVar("_Method")


def best_can(name: str) -> Callable[[_Method], _Method]:
    """Whether the best model, or before fit the estimator that is searched, has this method."""

    def check(self: BestModel) -> bool:
        if hasattr(self, "best_estimator_"):
            getattr(self.best_estimator_, name)
        elif not self.refit:
            raise AttributeError(
                f"{name} needs a best model, which refit=False does not keep; set refit=True, or fit the one you want "
                "with best_params_"
            )
        else:
            getattr(getattr(self.search, "estimator", self.search), name)
        return True

    return cast("Callable[[_Method], _Method]", available_if(check))


class BestModel:
    """Methods of the best model, each there if the model has it."""

    search: Any
    refit: bool
    best_estimator_: Any

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    @best_can("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the best model."""
        return self._best().predict(X)

    @best_can("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the best model."""
        return self._best().predict_proba(X)

    @best_can("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities with the best model."""
        return self._best().predict_log_proba(X)

    @best_can("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Decision scores of the best model."""
        return self._best().decision_function(X)

    @best_can("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Sample scores of the best model."""
        return self._best().score_samples(X)

    @best_can("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the best model."""
        return self._best().transform(X)

    @best_can("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """Invert the transformation of the best model."""
        return self._best().inverse_transform(X)
