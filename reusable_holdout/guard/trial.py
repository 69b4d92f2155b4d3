"""A model is tried on made-up rows before it reads the holdout's: what fails on whatever rows is refused, free.

The order is what makes it free. Were a model tried only after it failed on the holdout's rows, then the free refusal
itself would tell that it failed there; so the trial comes first and decides alone, by public facts.
"""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import quiet
from reusable_holdout.guard.models import predictions_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.queries import Response
    from reusable_holdout.queries.predictions import Predictions

__all__ = ["Trial"]

_LONGEST = 500  # words of a model's that are shown
_READERS: dict[int, weakref.ref[Any]] = {}
"""Models that have been given a holdout's rows in this process: what they say now may quote them."""


class _Failure(NamedTuple):
    kind: str
    words: str


class Trial:
    """Tries models on rows like a holdout's.

    The holdout's values have no part in it. A model that refuses some values and not others fails in several ways, or
    not at all, and is not refused: it goes on to the holdout's rows, and if it fails there, that takes a charge. One
    that was given a holdout's rows before is not tried again, for what it kept of them could speak.

    Parameters
    ----------
    X : array-like
        The holdout's features.
    response, classes
        As for :func:`predictions_of`.
    form : Predictions
        For all rows.
    """

    def __init__(
        self, X: Any, *, response: Response, classes: NDArray[Any] | None, form: Predictions
    ) -> None:
        self._X, self._response, self._classes, self._form = X, response, classes, form
        self._passed: set[Any] = set()

    def check(self, model: Any, X_train: Any) -> None:
        """Refuse a model that fails in the same way on all of several made-up rows, and on training rows if they came.

        Of estimators of one make the first that passes passes for all: a trial costs as much as a small answer.

        Parameters
        ----------
        model : estimator
        X_train : array-like or None
            Training rows, which are tried if they are like the holdout's.

        Raises
        ------
        InputError
            With the model's own words: it has seen no row of the holdout's.
        """
        if _has_read(model):
            return
        make = _make(model)
        if make is None or make not in self._passed:
            failure = self._same_failure(model, X_train)
            if failure is not None:
                raise InputError(
                    f"the model must predict rows with the holdout's columns; {type(model).__name__} fails on made-up "
                    f"ones, whatever their values, with {failure.kind}: {failure.words}; nothing was asked and nothing "
                    "was charged; mend it, pass X_train and y_train if it works on those, or ask about its predictions"
                )
            self._passed |= {make} - {None}
        _remember(model)

    def _same_failure(self, model: Any, X_train: Any) -> _Failure | None:
        """How a model fails on all rows, if it fails on all of them alike."""
        from reusable_holdout.guard.stand_ins import made_like  # noqa: PLC0415 - loads pandas

        first: _Failure | None = None
        for rows in made_like(self._X, X_train):
            failure = None if rows is None else self._failure(model, rows)
            if failure is None or (first is not None and failure != first):
                return None
            first = failure
        return first

    def _failure(self, model: Any, rows: Any) -> _Failure | None:
        """How a model fails on rows, if it does; where it lies in memory is no part of that."""
        try:
            with quiet():
                count = rows.shape[0] if hasattr(rows, "shape") else len(rows)
                told = predictions_of(model, rows, response=self._response, classes=self._classes)
                self._form.of_rows(count).prepare(told)
        except KeyboardInterrupt:  # the user's, not the model's
            raise
        except BaseException as error:
            return _Failure(type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", _words(error))[:_LONGEST])
        return None


def _make(model: Any) -> Any:
    """What estimators have in common that refuse the same rows: their types, parts, functions and columns."""
    try:
        parts = tuple(
            (name, value if callable(value) else type(value)) for name, value in model.get_params().items()
        )
        names = getattr(model, "feature_names_in_", None)
        make = (type(model), parts, None if names is None else tuple(names))
        hash(make)
    except Exception:  # no estimator, or one that cannot be told from others
        return None
    return make


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "no words"


def _has_read(model: Any) -> bool:
    try:
        weakref.ref(model)
    except TypeError:  # it cannot be remembered, so perhaps it has
        return True
    known = _READERS.get(id(model))
    return known is not None and known() is model


def _remember(model: Any) -> None:
    number = id(model)
    _READERS[number] = weakref.ref(model, lambda _: _READERS.pop(number, None))
