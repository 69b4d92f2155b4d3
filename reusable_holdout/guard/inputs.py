"""What comes into the guard: its private data, priors and names, checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.errors import HandleError, InputError
from reusable_holdout.guard import chunks
from reusable_holdout.guard.boundary import attempt
from reusable_holdout.guard.chunks import ChunkedRows, rows_and_labels
from reusable_holdout.guard.exam import bind_rows
from reusable_holdout.guard.models import predictions_of
from reusable_holdout.guard.row_sets import column_names, ordered_rows
from reusable_holdout.queries.containers import as_array, no_array, one_column
from reusable_holdout.slips import percentage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.guard import trial
    from reusable_holdout.guard.row_sets import RowSet
    from reusable_holdout.queries import Metric
else:  # of models, not of predictions: it loads pandas
    (trial,) = modules_on_first_use(__package__, "trial")

__all__ = ["PrivateData", "checked_names", "checked_prior", "checked_priors", "listed"]


_NO_NUMBERS = (str, bytes, bytearray, bool, np.bool_)


class PrivateData:
    """The holdout, bound to a metric; says nothing about itself and cannot be pickled.

    Parameters
    ----------
    X : array-like of shape (rows, features), ChunkedRows or None
    y : array-like of shape (rows,)
        Labels; of judged scores ids.
    metric : Metric
    classes, sample_weight, groups : array-like or None
    largest_group : int or None
        As for :meth:`Metric.bind`.
    exam, opened
        As for :func:`bind_rows`.

    Attributes
    ----------
    rows : BoundRows
        The metric on them.
    bound : BoundMetric
        The metric on those that questions read.

    Raises
    ------
    InputError
        If X and y have different numbers of rows, or do not fit the metric.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        metric: Metric,
        *,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        largest_group: int | None = None,
        exam: float | NDArray[np.bool_] | None = None,
        opened: bool = False,
    ) -> None:
        X, y = rows_and_labels(X, y)
        if metric.response == "judged" and X is not None:
            raise InputError(
                f"X must be None for metric {metric.name!r}, whose rows are judged elsewhere and have ids; got "
                f"{type(X).__name__}; ask with evaluate_predictions; nothing was made"
            )
        self.rows = bind_rows(
            metric,
            y,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            largest_group=largest_group,
            exam=exam,
            opened=opened,
        )
        self.X, self.y, self.classes, self.sample_weight, self.groups = X, y, classes, sample_weight, groups
        self.largest_group = largest_group
        self.bound = self.rows.asked
        self._trial: trial.Trial | None = None
        if X is None:
            return
        if isinstance(X, type) or not hasattr(X, "shape"):
            _check_list(X)
        shape = getattr(X, "shape", None)
        count, labels = shape[0] if shape else len(X), self.bound.rows
        if count != labels:
            advice = "; transpose X" if shape is not None and shape[1:] == (labels,) else ""
            raise InputError(
                f"X and y must have as many rows; got {count:,} and {labels:,}{advice}; nothing was made"
            )

    @cached_property
    def row_set(self) -> RowSet:
        """Features of the holdout, row by row; there must be some."""
        return ordered_rows(self.X, column_names(self.X))

    def copied(self) -> Any:
        """Features for a model to work on: what it does to them must not change the holdout."""
        return self.X.copy() if hasattr(self.X, "copy") else copy.deepcopy(self.X)

    def try_out(self, models: Sequence[Any], X_train: Any = None) -> None:
        """Refuse models that fail on whatever rows, by what is public, before one of them reads the holdout's.

        Raises
        ------
        InputError
            As for :meth:`Trial.check`.
        """
        if self.X is None or isinstance(self.X, ChunkedRows):
            return
        if self._trial is None:
            bound = self.bound
            self._trial = trial.Trial(
                self.X, response=bound.metric.response, classes=bound.classes, form=bound.form
            )
        for model in models:
            self._trial.check(model, X_train)

    def predicted(self, model: Any) -> NDArray[Any] | None:
        """What a model predicts for the rows, in canonical form; None if it fails.

        Raises
        ------
        InputError
            As for :meth:`try_out`.
        """
        bound = self.bound
        response, classes, form = bound.metric.response, bound.classes, bound.form
        if isinstance(self.X, ChunkedRows):
            return chunks.predicted_by_chunks(model, self.X, response=response, classes=classes, form=form)
        self.try_out([model])
        return attempt(
            lambda: bound.prepare(predictions_of(model, self.copied(), response=response, classes=classes))
        )

    def predicted_by(self, models: Sequence[Any]) -> NDArray[Any] | None:
        """What several models predict, shape (models, ...); None if one of them fails, after all have been tried."""
        every = [self.predicted(model) for model in models]
        found = [one[None] for one in every if one is not None]
        if len(found) < len(every):
            return None
        return found[0] if len(found) == 1 else np.concatenate(found)

    def __repr__(self) -> str:
        return "<private data>"

    def __reduce__(self) -> str:
        raise HandleError("the holdout cannot be pickled; pickle the guard, which becomes a handle")


def _check_list(X: Any) -> None:
    if not isinstance(X, list | tuple):
        raise no_array(X, what="X")
    try:
        np.asarray(X)
    except ValueError:
        pass
    else:
        return
    raise InputError("X must be rows of one length; got a list of rows of several lengths; nothing was made")


def checked_prior(prior: object, lower: float, upper: float, what: str) -> float:
    """One prior within the bounds of what it estimates.

    Raises
    ------
    InputError
        If it is something else.
    """
    if type(prior) is float and lower <= prior <= upper:
        return prior
    try:
        number = float(prior)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if (
        isinstance(prior, _NO_NUMBERS)
        or np.asarray(prior).dtype.kind not in "fiuO"
        or not lower <= number <= upper
    ):
        raise InputError(
            f"a prior must be a number in [{lower:g}, {upper:g}], the range of {what}; got {prior!r}"
            f"{percentage(number, most=upper)}; nothing was asked and nothing was charged"
        )
    return number


def checked_priors(
    priors: ArrayLike, count: int, lower: float, upper: float, what: str
) -> NDArray[np.float64]:
    """Priors of a batch, shape (count,).

    Raises
    ------
    InputError
        If the shape is another or one of them is out of bounds.
    """
    given = one_column(as_array(priors, what="priors"))
    if given.shape != (count,):
        raise InputError(f"priors must have shape ({count},), one for each question; got {given.shape}")
    if given.dtype.kind not in "fiu":
        raise InputError(f"priors must be numbers; got dtype {given.dtype}; pass one float for each question")
    stated = given.astype(np.float64)
    wrong = np.flatnonzero(~((stated >= lower) & (stated <= upper)))
    if len(wrong):
        checked_prior(float(stated[wrong[0]]), lower, upper, what)
    return stated


def checked_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Names of a batch; empty ones by default.

    Raises
    ------
    InputError
        If they are not text, or not as many as questions.
    """
    if names is None:
        return [""] * count
    if names == [""]:
        return [""]
    labels = list(names) if isinstance(names, Iterable) else [names]
    if (
        isinstance(names, str)
        or len(labels) != count
        or not all(isinstance(label, str) and _is_unicode(label) for label in labels)
    ):
        raise InputError(
            f"names must be text, one for each question; {count} asked, {len(labels)} came or one is no text"
        )
    return labels


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(several: Any, what: str) -> list[Any]:
    """A list of at least one.

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(several, list | tuple) and several:
        return list(several)
    raise InputError(
        f"{what} must be a list of at least one; got {type(several).__name__}; nothing was asked"
    )
