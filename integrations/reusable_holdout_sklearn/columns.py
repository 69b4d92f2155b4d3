"""Models of some of the columns, as feature selectors fit them: which columns they are, and how to ask about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from reusable_holdout.errors import InputError

__all__ = ["OnColumns", "columns_of"]


class OnColumns:
    """Fitted model that takes some columns of its input, by position.

    Parameters
    ----------
    model : estimator
        Fitted on those columns, as an array.
    columns : list of int
    width : int
        Of its input.
    """

    def __init__(self, model: Any, columns: list[int], width: int) -> None:
        self.model = model
        self.columns = columns
        self.n_features_in_ = width

    def __getattr__(self, name: str) -> Any:
        if name in {"predict", "predict_proba", "decision_function"}:
            method = getattr(self.model, name)
            return lambda X: method(_chosen(X, self.columns))
        if name == "classes_":
            return self.model.classes_
        raise AttributeError(name)


def _chosen(X: Any, columns: list[int]) -> Any:
    return np.asarray(X.iloc[:, columns]) if hasattr(X, "iloc") else X[:, columns]


def columns_of(fold: Any, reference: Any) -> list[int]:
    """Find which columns of a reference a fold has, by their values.

    Parameters
    ----------
    fold : array-like of shape (rows of the fold, some columns)
    reference : array-like of shape (rows, columns)
        The same rows, or more rows that hold them.

    Raises
    ------
    InputError
        If a column is not among them, or could be several.
    """
    part, whole = _table(fold), _table(reference)
    same_rows = len(part) == len(whole)
    columns = []
    for column in part.T:
        possible = [
            place
            for place, known in enumerate(whole.T)
            if (np.array_equal(column, known) if same_rows else bool(np.isin(column, known).all()))
        ]
        if len(possible) != 1:
            found = "none" if not possible else f"{len(possible)} alike"
            raise InputError(
                f"the model was fitted to {part.shape[1]} columns, to be told from their values; of one of them the "
                f"training features hold {found}; nothing was asked and nothing was charged; make the selector a step "
                "of a pipeline, search it with GuardedSearchCV, or ask guard.evaluate about the fitted selector"
            )
        columns += possible
    return columns


def _table(X: Any) -> np.ndarray[Any, Any]:
    """As numbers; missing ones are a number of their own, for NaN is not equal to itself."""
    if hasattr(X, "tocsr"):
        X = X.toarray()
    table = np.asarray(X)
    return np.nan_to_num(table, nan=np.finfo(table.dtype).max) if table.dtype.kind == "f" else table
