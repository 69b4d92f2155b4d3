"""A model's predictions, and the checks that refuse a model before it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Response
from reusable_holdout.metrics.containers import as_array, check_same_order, from_arrow, no_array, one_column
from reusable_holdout.metrics.predictions import Predictions

_NO_DATA = (type, str, bytes, Mapping, Set)


class Needed(NamedTuple):
    """The properties of a model that a metric needs; of the labels it holds only the classes."""

    response: Response
    classes: NDArray[Any] | None
    form: Predictions

    def predicted(self, model: Any, X: Any) -> Any:
        """Return the model's predictions for some rows, as :func:`predictions_of` does."""
        return predictions_of(model, X, response=self.response, classes=self.classes)


def predictions_of(model: Any, X: Any, *, response: Response, classes: NDArray[Any] | str | None) -> Any:
    """Return a model's predictions of the kind that a metric needs.

    Parameters
    ----------
    model : estimator
        Fitted; with `predict`, `predict_proba` or `decision_function` as needed.
    X : array-like of shape (rows, features)
    response : {"labels", "probabilities", "scores", "values"}
    classes : numpy.ndarray, "private" or None
        The guard's `class_set`; columns of probabilities are brought into their order.

    Raises
    ------
    InputError
        If the model has no such method, or knows a class the guard does not.
    """
    if response in ("labels", "values"):
        return _method(model, "predict")(X)
    if response == "scores" and hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return -scores if _places(model, classes) == [1, 0] else scores
    table = _aligned(model, _method(model, "predict_proba")(X), classes)
    return table[:, -1] if response == "scores" else table


def check_model(model: Any, X: Any, *, response: Response, classes: NDArray[Any] | None) -> None:
    """Refuse a model that does not fit, by public facts: its methods, its classes, the number of columns.

    A misfit that is found here is free; one that is found on the holdout's rows takes a charge.
    """
    _check_object(model)
    methods = {"labels": ["predict"], "values": ["predict"], "probabilities": ["predict_proba"]}
    names = methods.get(response, ["decision_function", "predict_proba"])
    if not any(callable(getattr(model, name, None)) for name in names):
        told = hasattr(model, "shape") or isinstance(model, list | tuple)
        advice = "predictions are asked about as they are; " if told else ""
        raise InputError(
            f"this metric needs a model with {' or '.join(names)}; got {type(model).__name__}; {advice}nothing was "
            "asked"
        )
    known, columns = getattr(model, "n_features_in_", None), np.shape(X)[1:]
    if known is not None and len(columns) == 1 and known != columns[0]:
        raise InputError(
            f"the model must take the holdout's {columns[0]} columns; it was fitted on {known}; "
            "nothing was asked and nothing was charged"
        )
    _places(model, classes)


def _check_object(model: Any) -> None:
    if isinstance(model, type):
        raise InputError(
            f"the model must be an object; got the class {model.__name__}; make one with {model.__name__}(...); "
            "nothing was asked"
        )


def _method(model: Any, name: str) -> Any:
    method = getattr(model, name, None)
    if method is None:
        raise InputError(
            f"this metric needs a model with {name}(); got {type(model).__name__}, which has none"
        )
    return method


def _aligned(model: Any, probabilities: Any, classes: NDArray[Any] | str | None) -> NDArray[Any]:
    """Return columns in the order of the guard's classes; a class that the model never saw has probability 0."""
    table = np.asarray(probabilities, dtype=np.float64)
    columns = _places(model, classes)
    if columns is None or classes is None:
        return table
    full = np.zeros((len(table), len(classes)))
    full[:, columns] = table
    return full


def _places(model: Any, classes: NDArray[Any] | str | None) -> list[int] | None:
    """Return the positions of the model's classes among the guard's; None if they are equal or not stated."""
    known = getattr(model, "classes_", None)
    if known is None or classes is None or isinstance(classes, str):
        return None
    if np.ndim(known) != 1:
        raise InputError(
            "the model's classes must be one list, for one output; got something else; wrap the model"
        )
    if np.array_equal(known, classes):
        return None
    places = {label: index for index, label in enumerate(classes.tolist())}
    labels = np.asarray(known).tolist()
    if not places.keys() >= set(labels):
        alike = {str(label) for label in labels} <= {str(label) for label in places}
        advice = (
            "one has text, the other numbers; train the model with labels of the guard's type; nothing was asked"
            if alike
            else "pass classes= to the guard with all classes that may occur"
        )
        raise InputError(
            f"the model's classes must be among the guard's; got {len(labels)} classes, and some are not; {advice}"
        )
    return [places[label] for label in labels]


def check_data(data: Any, what: str) -> None:
    """Refuse data without rows."""
    sized = hasattr(data, "shape") or hasattr(data, "__len__")
    if isinstance(data, _NO_DATA) or np.isscalar(data) or not sized or hasattr(data, "predict"):
        raise no_array(data, what=what)


def training_rows(X_train: Any, y_train: Any) -> tuple[Any, Any]:
    """Return training data that a model can be fitted on, or two Nones; pyarrow data become pandas.

    An InputError is raised if they are no data, if one of the two is missing, if they are not equally long, or if they
    have the same pandas index in different orders.
    """
    if isinstance(X_train, Real | str) and y_train is None:
        raise InputError(
            "a prior must be passed by its name, because X_train comes second; got it by position; write "
            "prior=...; nothing was asked"
        )
    both = {"X_train": X_train, "y_train": y_train}
    came = [name for name, data in both.items() if data is not None]
    if len(came) == 1:
        raise InputError(
            f"X_train and y_train must come together; got {came[0]} alone; pass both, or prior=; nothing was asked"
        )
    if not came:
        return None, None
    for name, data in both.items():
        check_data(data, name)
    X_train, y_train = from_arrow(X_train), from_arrow(y_train)
    rows, labels = length_of(X_train), length_of(y_train)
    if isinstance(rows, int) and isinstance(labels, int) and rows != labels:
        raise InputError(
            f"X_train and y_train must have the same number of rows; got {rows:,} and {labels:,}; nothing was asked"
        )
    check_same_order(X_train, y_train, names=("X_train", "y_train"), nothing="nothing was asked")
    column = y_train if hasattr(y_train, "ndim") else as_array(y_train, what="y_train")
    if column.ndim == 2 and column.shape[1] == 1:
        y_train = one_column(as_array(column, what="y_train"))
    return X_train, y_train


def length_of(data: Any) -> Any:
    """Return the number of rows; for rows that are computed later, it may not be known yet."""
    shape = getattr(data, "shape", None)  # a sparse matrix has no length
    return shape[0] if shape else len(data)


def fitted(model: Any, X_train: Any, y_train: Any) -> Any:
    """Return the model, or if it is not fitted a clone of it fitted on the training data.

    An InputError says that it is a class, or that it is not fitted and there are no training data.
    """
    _check_object(model)
    if not hasattr(model, "__sklearn_tags__"):  # no estimator: an object with predict() is taken to be fitted
        return model
    from sklearn.base import clone  # noqa: PLC0415 - importing the library does not load scikit-learn
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    try:
        check_is_fitted(model)
    except NotFittedError:
        if X_train is None or y_train is None:
            raise InputError(
                "the model must be fitted, or come with X_train and y_train to be fitted on; "
                f"got an unfitted {type(model).__name__}; call its fit; nothing was asked"
            ) from None
        return clone(model).fit(X_train, y_train)
    except (TypeError, AttributeError):  # an object with only a part of an estimator's methods
        pass
    return model
